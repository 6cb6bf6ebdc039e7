//! Reads events leniently, field by field: a broken field costs that field alone.
//!
//! It never fails for anything but an event id, room id, sender or type that cannot be read, and it never decides
//! what an event is good for. To read one more type of event, add an arm to `content`.

mod fields;
mod message;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use ruma::{EventId, OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};
use serde_json::value::RawValue;

use self::fields::{Fields, without_lone_surrogates};
use crate::conversation::{Cause, Content, Described, Event, Member, Membership, Millis, RequestId, TurnId};

/// The namespaced content key that carries our request id.
pub const REQUEST_KEY: &str = "dev.persona_bridge.request_id";

/// The namespaced content key that carries the turn in which a Persona said it, and its hops.
pub const CAUSE_KEY: &str = "dev.persona_bridge.cause";

/// The most bytes of raw JSON that go into quarantine.
pub const RAW_MAX: usize = 64 * 1024;

/// The most bytes of a room's name or topic that are read.
const DESCRIBED_MAX: usize = 4 * 1024;

/// The most bytes of a reaction that are read.
const REACTION_MAX: usize = 256;

/// The latest time that Matrix' JSON can carry exactly.
const TIME_MAX: u64 = 1 << 53;

/// An event that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The raw JSON, cut at 64 KiB on a character border.
    pub raw: String,
    /// Why, as a fixed phrase.
    pub reason: String,
}

impl Unreadable {
    /// Keeps the raw text, cut at [`RAW_MAX`] bytes on a character border.
    pub fn new(raw: &str, reason: &str) -> Self {
        Self { raw: raw[..raw.floor_char_boundary(RAW_MAX)].to_owned(), reason: reason.to_owned() }
    }
}

/// Reads one event; fails only where event id, room id, sender or type cannot be read.
///
/// # Errors
/// What was unreadable, with the raw text for the quarantine.
pub fn read(raw: &RawValue) -> Result<Event, Unreadable> {
    let text = without_lone_surrogates(raw.get());
    read_text(&text).map_err(|reason| Unreadable::new(raw.get(), reason))
}

fn read_text(text: &str) -> Result<Event, &'static str> {
    let event = Fields::read(text).ok_or("the event is not an object")?;
    let kind = event.string("type").ok_or("the event has no readable type")?;
    let id =
        event.string("event_id").and_then(|id| event_id(&id)).ok_or("the event has no readable event_id")?;
    let room = event
        .string("room_id")
        .and_then(|room| RoomId::parse(room).ok())
        .ok_or("the event has no readable room_id")?;
    let sender =
        event.string("sender").and_then(|user| user_id(&user)).ok_or("the event has no readable sender")?;
    let at = event.number("origin_server_ts").filter(|at| *at <= TIME_MAX).unwrap_or_default();
    let fields = event.object("content");
    let request = fields.string(REQUEST_KEY).filter(|key| !key.is_empty());
    let request = request.map(|key| RequestId(key.into_owned()));
    let cause = cause(&fields.object(CAUSE_KEY));
    Ok(Event { id, room, sender, at: Millis(at), request, cause, content: content(kind, &event, &fields) })
}

/// What a frozen content comes of, if it says so.
pub fn cause_of(content: &str) -> Option<Cause> {
    cause(&Fields::read(content)?.object(CAUSE_KEY))
}

/// Which event a frozen content answers or is a reaction to, if one.
pub fn answered_by(content: &str) -> Option<OwnedEventId> {
    message::answered(&Fields::read(content)?.object("m.relates_to"))
}

/// Of which turn an event says that it is; none where either half of it cannot be read.
fn cause(fields: &Fields<'_>) -> Option<Cause> {
    let turn = fields.string("turn")?.parse().ok().map(TurnId)?;
    let hops = fields.number("hops").and_then(|hops| u32::try_from(hops).ok())?;
    Some(Cause { turn, hops })
}

fn content(kind: Cow<'_, str>, event: &Fields<'_>, fields: &Fields<'_>) -> Content {
    let read = match &*kind {
        "m.room.message" if !is_redacted(event) => message::message(fields).map(Content::Message),
        "m.sticker" if !is_redacted(event) => message::sticker(fields).map(Content::Message),
        "m.reaction" if !is_redacted(event) => reaction(&fields.object("m.relates_to")),
        "m.room.member" => member(event, fields).map(Content::Member),
        "m.room.redaction" => redacts(event, fields).map(|redacts| Content::Redaction { redacts }),
        "m.room.encryption" => is_room_state(event).then_some(Content::Encryption),
        "m.room.tombstone" => is_room_state(event).then(|| Content::Tombstone(successor(fields))),
        kind @ ("m.room.name" | "m.room.topic") if is_room_state(event) => {
            described(kind, fields).map(Content::Described)
        }
        _ => None,
    };
    read.unwrap_or(Content::Other { kind: kind.into_owned() })
}

/// What the content of such a state event says of its room; none where it is of another type or no JSON object.
pub fn description(kind: &str, content: &str) -> Option<Described> {
    described(kind, &Fields::read(&without_lone_surrogates(content))?)
}

/// Which room takes the place of one, by the content of its `m.room.tombstone`.
pub fn replacement(content: &str) -> Option<OwnedRoomId> {
    successor(&Fields::read(content)?)
}

/// Whose place a room takes, by the content of its `m.room.create`.
pub fn predecessor(content: &str) -> Option<OwnedRoomId> {
    room_in(&Fields::read(content)?.object("predecessor"), "room_id")
}

fn successor(fields: &Fields<'_>) -> Option<OwnedRoomId> {
    room_in(fields, "replacement_room")
}

fn room_in(fields: &Fields<'_>, key: &str) -> Option<OwnedRoomId> {
    RoomId::parse(fields.string(key)?).ok()
}

fn described(kind: &str, content: &Fields<'_>) -> Option<Described> {
    let text = |key| {
        let text = content.string(key).filter(|text| !text.trim().is_empty())?;
        Some(text[..text.floor_char_boundary(DESCRIBED_MAX)].to_owned())
    };
    match kind {
        "m.room.name" => Some(Described::Name(text("name"))),
        "m.room.topic" => Some(Described::Topic(text("topic"))),
        _ => None,
    }
}

fn is_redacted(event: &Fields<'_>) -> bool {
    event.object("unsigned").has("redacted_because")
}

fn is_room_state(event: &Fields<'_>) -> bool {
    event.string("state_key").is_some_and(|key| key.is_empty())
}

fn member(event: &Fields<'_>, content: &Fields<'_>) -> Option<Member> {
    let membership = match &*content.string("membership")? {
        "join" => Membership::Join,
        "invite" => Membership::Invite,
        "leave" => Membership::Leave,
        "ban" => Membership::Ban,
        "knock" => Membership::Knock,
        _ => return None,
    };
    Some(Member {
        user: event.string("state_key").and_then(|user| user_id(&user))?,
        membership,
        display_name: content.string("displayname").map(Cow::into_owned),
        is_direct: content.bool("is_direct"),
    })
}

fn reaction(relation: &Fields<'_>) -> Option<Content> {
    if relation.string("rel_type")? != "m.annotation" {
        return None;
    }
    let (to, key) = (event_id(&relation.string("event_id")?)?, relation.string("key")?);
    Some(Content::Reaction { to, key: key[..key.floor_char_boundary(REACTION_MAX)].to_owned() })
}

/// The top-level key goes first: below room version 11 it alone is authoritative, and in later versions the server
/// writes it from the content.
fn redacts(event: &Fields<'_>, content: &Fields<'_>) -> Option<OwnedEventId> {
    [event, content].into_iter().find_map(|fields| event_id(&fields.string("redacts")?))
}

fn event_id(id: &str) -> Option<OwnedEventId> {
    (id.len() <= 255).then(|| EventId::parse(id).ok()).flatten()
}

fn user_id(id: &str) -> Option<OwnedUserId> {
    UserId::parse(id).ok()
}
