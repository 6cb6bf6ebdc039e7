//! A room's history in the homeserver's own order, both ways.

use ruma::api::client::context::get_context;
use ruma::api::client::filter::RoomEventFilter;
use ruma::api::client::message::get_message_events;
use ruma::{OwnedEventId, RoomId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::Speaker;
use super::{CallError, CallErrorKind, Called, Client, Identity, Page};
use crate::conversation::RequestId;
use crate::homeserver::event::REQUEST_KEY;

/// The pages that [`Client::find_sent`] reads at most.
const FIND_PAGES: u32 = 20;
/// The events on each of them; Conduit gives no more.
const FIND_LIMIT: u32 = 100;
/// How far the homeserver's clock may lag behind ours, in ms.
const FIND_SKEW: u64 = 600_000;

/// A page as the homeserver writes it.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    chunk: Vec<Box<RawValue>>,
    end: Option<String>,
}

impl Client {
    /// The newest events, newest first.
    pub async fn newest(&self, identity: &Identity, room: &RoomId, limit: u32) -> Called<Page> {
        let request = get_message_events::v3::Request::backward(room.to_owned());
        self.page("newest", identity, request, limit).await
    }

    /// A page backwards from a token of a page before.
    pub async fn older(&self, identity: &Identity, room: &RoomId, from: &str, limit: u32) -> Called<Page> {
        let request = get_message_events::v3::Request::backward(room.to_owned()).from(from.to_owned());
        self.page("older", identity, request, limit).await
    }

    /// A page forwards from a token.
    pub async fn newer(&self, identity: &Identity, room: &RoomId, from: &str, limit: u32) -> Called<Page> {
        let request = get_message_events::v3::Request::forward(room.to_owned()).from(from.to_owned());
        self.page("newer", identity, request, limit).await
    }

    async fn page(
        &self,
        call: &'static str,
        identity: &Identity,
        mut request: get_message_events::v3::Request,
        limit: u32,
    ) -> Called<Page> {
        request.limit = limit.into();
        let from = request.from.clone();
        let answer: Answer = self.ask(call, Speaker::As(identity), request).await?;
        // A token that leads nowhere would be read for ever.
        let end = answer.end.filter(|end| !answer.chunk.is_empty() || Some(end) != from.as_ref());
        Ok(Page { events: answer.chunk, end })
    }

    /// The token right after an event (`/context`, limit 0); `None` where the server does not know the event, or
    /// does not show it to the user.
    pub async fn after(
        &self,
        identity: &Identity,
        room: &RoomId,
        event: &OwnedEventId,
    ) -> Called<Option<String>> {
        #[derive(Deserialize)]
        struct Context {
            end: Option<String>,
        }
        let mut request = get_context::v3::Request::new(room.to_owned(), event.clone());
        request.limit = 0_u8.into();
        match self.ask::<_, Context>("after", Speaker::As(identity), request).await {
            Ok(context) => Ok(context.end),
            Err(error) if unknown_event(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks back for an event of the user that carries the request id: newest pages until one older than `since`
    /// (unix ms, less ten minutes for a homeserver's clock that lags) is reached, at most 20 pages of 100.
    pub async fn find_sent(
        &self,
        identity: &Identity,
        room: &RoomId,
        request: &RequestId,
        since: u64,
    ) -> Called<Option<OwnedEventId>> {
        let mut filter = RoomEventFilter::empty();
        filter.senders = Some(vec![identity.user.clone()]);
        let mut from = None;
        for _ in 0..FIND_PAGES {
            let mut page = get_message_events::v3::Request::backward(room.to_owned()).from(from);
            page.filter = filter.clone();
            let page = self.page("find_sent", identity, page, FIND_LIMIT).await?;
            let heads: Vec<Head> = page.events.iter().filter_map(|raw| Head::read(raw)).collect();
            if let Some(found) = heads.iter().find(|head| head.is(identity, request)) {
                return Ok(Some(found.event_id.clone()));
            }
            let oldest = heads.last().and_then(|head| head.origin_server_ts);
            if page.end.is_none() || oldest.is_some_and(|at| at < since.saturating_sub(FIND_SKEW)) {
                return Ok(None);
            }
            from = page.end;
        }
        Ok(None)
    }
}

/// Whether the server says that it has no such event, or none for this user. A 404 without that errcode is some
/// other fault on the way, and no reason to give up a mark.
fn unknown_event(error: &CallError) -> bool {
    match error.kind {
        CallErrorKind::NotFound => error.errcode == "M_NOT_FOUND",
        CallErrorKind::Forbidden => error.message.contains("permission") && error.message.contains("event"),
        CallErrorKind::NotSent
        | CallErrorKind::Uncertain
        | CallErrorKind::Limited(_)
        | CallErrorKind::Unauthorized
        | CallErrorKind::TooLarge
        | CallErrorKind::Server
        | CallErrorKind::Already
        | CallErrorKind::Refused => false,
    }
}

/// What tells one of our own events: read field by field.
struct Head {
    event_id: OwnedEventId,
    sender: String,
    origin_server_ts: Option<u64>,
    request: Option<String>,
    txn: Option<String>,
}

impl Head {
    fn read(raw: &RawValue) -> Option<Self> {
        let event: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
        let text = |at: Option<&serde_json::Value>| at.and_then(|v| v.as_str()).map(str::to_owned);
        Some(Self {
            event_id: text(event.get("event_id"))?.try_into().ok()?,
            sender: text(event.get("sender"))?,
            origin_server_ts: event.get("origin_server_ts").and_then(serde_json::Value::as_u64),
            request: text(event.get("content").and_then(|content| content.get(REQUEST_KEY))),
            txn: text(event.pointer("/unsigned/transaction_id")),
        })
    }

    fn is(&self, identity: &Identity, request: &RequestId) -> bool {
        let wanted = Some(request.as_str());
        self.sender == identity.user && (self.request.as_deref() == wanted || self.txn.as_deref() == wanted)
    }
}

#[cfg(test)]
mod tests {
    use ruma::user_id;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(event: serde_json::Value, expect: bool) {
        let me = Identity { user: user_id!("@pb_eir:x").to_owned(), device: None, token: None };
        let raw = serde_json::value::to_raw_value(&event).unwrap();
        let found = Head::read(&raw).is_some_and(|head| head.is(&me, &RequestId("r1".to_owned())));
        assert_eq!(found, expect, "{event}");
    }

    #[test]
    fn an_event_of_ours_is_told_by_either_key() {
        let event = |sender: &str, content: serde_json::Value, unsigned: serde_json::Value| {
            json!({
            "event_id": "$e", "sender": sender, "content": content, "unsigned": unsigned })
        };
        check(event("@pb_eir:x", json!({ REQUEST_KEY: "r1" }), json!(null)), true);
        check(event("@pb_eir:x", json!({}), json!({ "transaction_id": "r1" })), true);
        check(event("@pb_eir:x", json!(null), json!({ "transaction_id": "r2" })), false);
        check(event("@mallory:x", json!({ REQUEST_KEY: "r1" }), json!({ "transaction_id": "r1" })), false);
        check(event("@pb_eir:x", json!({ REQUEST_KEY: ["r1"] }), json!(7)), false);
        check(json!("foo"), false);
    }

    #[test]
    fn only_a_missing_event_is_unknown() {
        let error = |kind, errcode: &str, message: &str| CallError {
            call: "after",
            kind,
            status: 0,
            errcode: errcode.to_owned(),
            message: message.to_owned(),
        };
        use CallErrorKind::{Forbidden, NotFound, Server};
        assert!(unknown_event(&error(NotFound, "M_NOT_FOUND", "Event not found.")));
        assert!(!unknown_event(&error(NotFound, "M_UNRECOGNIZED", "Unrecognized request")));
        assert!(!unknown_event(&error(NotFound, "", "(an answer of 9 bytes)")));
        let hidden = "You don't have permission to access that event.";
        assert!(unknown_event(&error(Forbidden, "M_FORBIDDEN", hidden)));
        assert!(!unknown_event(&error(Forbidden, "M_FORBIDDEN", "User @a:x not in room !r:x")));
        assert!(!unknown_event(&error(Server, "", "(an empty answer)")));
    }
}
