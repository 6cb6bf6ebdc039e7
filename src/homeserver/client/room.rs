//! Rooms: joining, leaving, making them, and who is in them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ruma::api::client::alias::get_alias;
use ruma::api::client::filter::{Filter, FilterDefinition, RoomEventFilter};
use ruma::api::client::membership::{
    invite_user, join_room_by_id, join_room_by_id_or_alias, joined_members, joined_rooms, leave_room,
};
use ruma::api::client::room::{Visibility, create_room};
use ruma::api::client::sync::sync_events;
use ruma::events::StateEventType;
use ruma::presence::PresenceState;
use ruma::{OwnedRoomId, OwnedServerName, OwnedUserId, RoomAliasId, RoomId, UserId};
use serde::Deserialize;
use serde_json::Value;

use super::call::Speaker;
use super::{CallErrorKind, Called, Client, CreateRoom, Identity, PendingInvite};
use crate::conversation::Membership;

/// The one field of an answer that names a room.
#[derive(Deserialize)]
struct RoomAnswer {
    room_id: OwnedRoomId,
}

impl Client {
    /// Joins by id.
    pub async fn join(&self, identity: &Identity, room: &RoomId) -> Called<()> {
        let request = join_room_by_id::v3::Request::new(room.to_owned());
        self.tell("join", Speaker::As(identity), request).await
    }

    /// Joins by alias: the room.
    pub async fn join_alias(&self, identity: &Identity, alias: &RoomAliasId) -> Called<OwnedRoomId> {
        let request = join_room_by_id_or_alias::v3::Request::new(alias.to_owned().into());
        let answer: RoomAnswer = self.ask("join_alias", Speaker::As(identity), request).await?;
        Ok(answer.room_id)
    }

    /// Joins by id a room that other servers may know better.
    pub async fn join_via(
        &self,
        identity: &Identity,
        room: &RoomId,
        via: Vec<OwnedServerName>,
    ) -> Called<()> {
        let mut request = join_room_by_id_or_alias::v3::Request::new(room.to_owned().into());
        request.via = via;
        self.tell("join", Speaker::As(identity), request).await
    }

    /// Leaves, or refuses an invite, with a reason.
    pub async fn leave(&self, identity: &Identity, room: &RoomId, reason: &str) -> Called<()> {
        let mut request = leave_room::v3::Request::new(room.to_owned());
        request.reason = Some(reason.to_owned());
        self.tell("leave", Speaker::As(identity), request).await
    }

    /// Invites a user.
    pub async fn invite(&self, identity: &Identity, room: &RoomId, user: &UserId) -> Called<()> {
        let whom = invite_user::v3::InviteUserId::new(user.to_owned());
        let whom = invite_user::v3::InvitationRecipient::UserId(whom);
        let request = invite_user::v3::Request::new(room.to_owned(), whom);
        self.tell("invite", Speaker::As(identity), request).await
    }

    /// Makes a room (always by masquerading, for the alias namespace); `alias_localpart` in use is [`CallErrorKind::Already`].
    pub async fn create_room(&self, identity: &Identity, room: CreateRoom) -> Called<OwnedRoomId> {
        let device = if identity.token.is_none() { identity.device.clone() } else { None };
        let masquerade = Identity { user: identity.user.clone(), device, token: None };
        let mut request = create_room::v3::Request::new();
        request.room_alias_name = room.alias_localpart;
        request.name = room.name;
        request.invite = room.invite;
        request.visibility = Visibility::Private;
        request.preset = Some(if room.public {
            create_room::v3::RoomPreset::PublicChat
        } else {
            create_room::v3::RoomPreset::PrivateChat
        });
        let answer: RoomAnswer = self.ask("create_room", Speaker::As(&masquerade), request).await?;
        Ok(answer.room_id)
    }

    /// Resolves an alias.
    pub async fn resolve(&self, alias: &RoomAliasId) -> Called<OwnedRoomId> {
        let request = get_alias::v3::Request::new(alias.to_owned());
        let answer: RoomAnswer = self.ask("resolve", Speaker::Appservice, request).await?;
        Ok(answer.room_id)
    }

    /// The user's own membership in a room, by the server's word; `None` where it knows of none.
    ///
    /// Who may not read the room is not in it: both homeservers refuse that only to those who are not joined, so a
    /// refusal reads as [`Membership::Leave`], a pending invite and a ban on some homeservers included.
    pub async fn membership(&self, identity: &Identity, room: &RoomId) -> Called<Option<Membership>> {
        let kind = StateEventType::RoomMember.to_string();
        match self.state(identity, room, &kind, identity.user.as_str()).await {
            Ok(content) => Ok(content.and_then(|content| membership(content.get()))),
            Err(error) if error.kind == CallErrorKind::Forbidden => Ok(Some(Membership::Leave)),
            Err(error) => Err(error),
        }
    }

    /// The rooms the user is joined to.
    pub async fn joined_rooms(&self, identity: &Identity) -> Called<Vec<OwnedRoomId>> {
        #[derive(Deserialize)]
        struct Answer {
            joined_rooms: Vec<OwnedRoomId>,
        }
        let request = joined_rooms::v3::Request::new();
        let answer: Answer = self.ask("joined_rooms", Speaker::As(identity), request).await?;
        Ok(answer.joined_rooms)
    }

    /// Joined members and display names.
    pub async fn joined_members(
        &self,
        identity: &Identity,
        room: &RoomId,
    ) -> Called<Vec<(OwnedUserId, Option<String>)>> {
        #[derive(Deserialize)]
        struct Answer {
            joined: BTreeMap<String, Value>,
        }
        let request = joined_members::v3::Request::new(room.to_owned());
        let answer: Answer = self.ask("joined_members", Speaker::As(identity), request).await?;
        let member = |(user, member): (String, Value)| {
            let name = member.get("display_name").and_then(Value::as_str).map(str::to_owned);
            Some((OwnedUserId::try_from(user).ok()?, name))
        };
        Ok(answer.joined.into_iter().filter_map(member).collect())
    }

    /// The user's pending invites by a short /sync; an invite whose sender cannot be read is left out.
    ///
    /// Synapse answers the same question within two minutes with the answer it gave before; so no two questions of a
    /// client are the same, nor those of two runs (see [`Client::for_run`]). Conduit does so whenever a device asks
    /// twice in a row since the same point; so where the user has a token, a second question asks what is new since,
    /// and if anything is, the first answer may have been an old one.
    pub async fn pending_invites(&self, identity: &Identity) -> Called<Vec<PendingInvite>> {
        let mut answer = self.sync(identity, None).await?;
        if identity.token.is_some() && self.is_old(identity, &answer).await? {
            answer = self.sync(identity, None).await?;
            self.is_old(identity, &answer).await?;
        }
        let invites = answer.pointer("/rooms/invite").and_then(Value::as_object);
        Ok(invites.into_iter().flatten().filter_map(|(room, said)| invite(identity, room, said)).collect())
    }

    /// Whether anything happened in the user's rooms since an answer of /sync.
    async fn is_old(&self, identity: &Identity, answer: &Value) -> Called<bool> {
        let since = answer.get("next_batch").and_then(Value::as_str).map(str::to_owned);
        let news = self.sync(identity, since).await?;
        let rooms = |kind: &Value| kind.as_object().is_some_and(|rooms| !rooms.is_empty());
        Ok(news.get("rooms").and_then(Value::as_object).is_some_and(|kinds| kinds.values().any(rooms)))
    }

    async fn sync(&self, identity: &Identity, since: Option<String>) -> Called<Value> {
        let mut request = sync_events::v3::Request::new();
        let asked = self.syncs.fetch_add(1, Ordering::Relaxed);
        request.filter = Some(invites_only(format!("{}.{asked}", self.run)).into());
        request.since = since;
        request.timeout = Some(Duration::ZERO);
        request.set_presence = PresenceState::Offline;
        self.ask("pending_invites", Speaker::As(identity), request).await
    }
}

/// Everything that is not an invite, excluded as far as a filter goes; `mark` makes it a question of its own.
fn invites_only(mark: String) -> FilterDefinition {
    let nothing = || {
        let mut filter = RoomEventFilter::empty();
        filter.types = Some(Vec::new());
        filter
    };
    let mut filter = FilterDefinition::empty();
    filter.presence = Filter::ignore_all();
    // Every type is excluded already.
    filter.presence.not_types = vec![mark];
    filter.account_data = Filter::ignore_all();
    filter.room.timeline = nothing();
    filter.room.timeline.limit = Some(1_u8.into());
    filter.room.state = nothing();
    filter.room.ephemeral = nothing();
    filter.room.account_data = nothing();
    filter
}

fn invite(identity: &Identity, room: &str, said: &Value) -> Option<PendingInvite> {
    let events = said.pointer("/invite_state/events")?.as_array()?;
    let text = |event: &Value, key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
    let mine = events.iter().find(|event| {
        text(event, "type").as_deref() == Some("m.room.member")
            && text(event, "state_key").as_deref() == Some(identity.user.as_str())
    })?;
    Some(PendingInvite {
        room: OwnedRoomId::try_from(room).ok()?,
        sender: text(mine, "sender")?.try_into().ok()?,
        is_direct: mine.pointer("/content/is_direct").and_then(Value::as_bool).unwrap_or(false),
        event: text(mine, "event_id").and_then(|id| id.try_into().ok()),
    })
}

/// The membership that the content of an `m.room.member` names.
fn membership(content: &str) -> Option<Membership> {
    #[derive(Deserialize)]
    struct Content {
        membership: String,
    }
    match serde_json::from_str::<Content>(content).ok()?.membership.as_str() {
        "join" => Some(Membership::Join),
        "invite" => Some(Membership::Invite),
        "leave" => Some(Membership::Leave),
        "ban" => Some(Membership::Ban),
        "knock" => Some(Membership::Knock),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ruma::user_id;
    use serde_json::json;

    use super::*;

    fn me() -> Identity {
        Identity { user: user_id!("@pb_eir:x").to_owned(), device: None, token: None }
    }

    #[test]
    fn an_invite_is_read_field_by_field() {
        let member = |extra: Value| {
            let mut event = json!({ "type": "m.room.member", "state_key": "@pb_eir:x", "sender": "@a:x",
                "content": { "membership": "invite" } });
            event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({ "invite_state": { "events": [{ "type": "m.room.create" }, 7, event] } })
        };
        let plain = invite(&me(), "!r:x", &member(json!({}))).unwrap();
        assert_eq!((plain.sender.as_str(), plain.is_direct, plain.event), ("@a:x", false, None));
        let direct = member(json!({ "content": { "is_direct": true }, "event_id": "$e" }));
        let direct = invite(&me(), "!r", &direct).unwrap();
        assert_eq!((direct.is_direct, direct.event.unwrap().as_str()), (true, "$e"));
        assert_eq!(invite(&me(), "!r:x", &member(json!({ "sender": 7 }))), None);
        assert_eq!(invite(&me(), "!r:x", &json!({ "invite_state": {} })), None);
        assert_eq!(invite(&me(), "r", &member(json!({}))), None);
    }

    #[test]
    fn memberships_are_read_by_name() {
        assert_eq!(membership(r#"{"membership":"ban","reason":7}"#), Some(Membership::Ban));
        assert_eq!(membership(r#"{"membership":"join"}"#), Some(Membership::Join));
        assert_eq!(membership(r#"{"membership":"else"}"#), None);
        assert_eq!(membership("[]"), None);
    }
}
