//! Events: sending them and reading a room's state.

use std::time::Duration;

use ruma::api::client::message::send_message_event;
use ruma::api::client::receipt::create_receipt;
use ruma::api::client::state::{get_state_event_for_key, send_state_event};
use ruma::api::client::typing::create_typing_event;
use ruma::serde::Raw;
use ruma::{OwnedEventId, RoomId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::Speaker;
use super::{CallErrorKind, Called, Client, Identity};
use crate::conversation::RequestId;

/// How long a typing notice stands unless it is taken back.
const TYPING: Duration = Duration::from_secs(30);

/// The one field of an answer that names an event.
#[derive(Deserialize)]
struct Sent {
    event_id: OwnedEventId,
}

impl Client {
    /// PUT an event with its request id as transaction id; `body` is sent to the byte.
    pub async fn send(
        &self,
        identity: &Identity,
        room: &RoomId,
        kind: &str,
        request: &RequestId,
        body: &str,
    ) -> Called<OwnedEventId> {
        let request = send_message_event::v3::Request::new_raw(
            room.to_owned(),
            request.as_str().into(),
            kind.into(),
            Raw::from_json(RawValue::NULL.to_owned()),
        );
        let sent: Sent = self.ask_with("send", Speaker::As(identity), request, body).await?;
        Ok(sent.event_id)
    }

    /// PUT a state event; `body` is sent to the byte.
    pub async fn send_state(
        &self,
        identity: &Identity,
        room: &RoomId,
        kind: &str,
        key: &str,
        body: &str,
    ) -> Called<OwnedEventId> {
        let request = send_state_event::v3::Request::new_raw(
            room.to_owned(),
            kind.into(),
            key.to_owned(),
            Raw::from_json(RawValue::NULL.to_owned()),
        );
        let sent: Sent = self.ask_with("send_state", Speaker::As(identity), request, body).await?;
        Ok(sent.event_id)
    }

    /// GET a state event's content; not found is `None`.
    pub async fn state(
        &self,
        identity: &Identity,
        room: &RoomId,
        kind: &str,
        key: &str,
    ) -> Called<Option<Box<RawValue>>> {
        let request = get_state_event_for_key::v3::Request::new(room.to_owned(), kind.into(), key.to_owned());
        match self.ask("state", Speaker::As(identity), request).await {
            Ok(content) => Ok(Some(content)),
            // A 404 without that errcode is some other fault on the way.
            Err(error) if error.kind == CallErrorKind::NotFound && error.errcode == "M_NOT_FOUND" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Typing on (for 30 s) or off.
    pub async fn typing(&self, identity: &Identity, room: &RoomId, on: bool) -> Called<()> {
        use create_typing_event::v3::{Request, Typing, TypingInfo};
        let state = if on { Typing::Yes(TypingInfo::new(TYPING)) } else { Typing::No };
        let request = Request::new(identity.user.clone(), room.to_owned(), state);
        self.tell("typing", Speaker::As(identity), request).await
    }

    /// Read receipt.
    pub async fn receipt(&self, identity: &Identity, room: &RoomId, event: &OwnedEventId) -> Called<()> {
        use create_receipt::v3::{ReceiptType, Request};
        let request = Request::new(room.to_owned(), ReceiptType::Read, event.clone());
        self.tell("receipt", Speaker::As(identity), request).await
    }
}
