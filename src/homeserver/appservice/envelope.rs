//! A transaction's body, opened leniently: whatever stands in it, an object is taken.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedRoomId, OwnedUserId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::event::{self, Unreadable};
use crate::conversation::{Event, Typing};

/// The fields of a body, unread.
type Body<'a> = BTreeMap<String, &'a RawValue>;

/// A body as it should be, which takes one look less than [`Body`].
#[derive(Deserialize)]
struct Usual<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    ephemeral: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "de.sorunome.msc2409.ephemeral")]
    unstable: Option<&'a RawValue>,
}

/// What a transaction brings.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// Its events.
    pub(super) events: Vec<Event>,
    /// What could not be read.
    pub(super) unreadable: Vec<Unreadable>,
    /// Who types.
    pub(super) typing: Vec<Typing>,
}

/// Opens a transaction; `None` where the body is not a JSON object.
pub(super) fn open(body: &[u8]) -> Option<Opened> {
    let text = String::from_utf8_lossy(body);
    if let Ok(Usual { events, ephemeral, unstable }) = serde_json::from_str(&text) {
        let (events, unreadable) = read(events);
        return Some(Opened { events, unreadable, typing: typing(ephemeral.or(unstable)) });
    }
    let fields: Body<'_> = serde_json::from_str(&text).ok()?;
    let ephemeral = fields.get("ephemeral").or(fields.get("de.sorunome.msc2409.ephemeral")).copied();
    let typing = typing(ephemeral);
    let Some(events) = fields.get("events") else { return Some(Opened { typing, ..Opened::default() }) };
    let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(events.get()) else {
        let unreadable = vec![Unreadable::new(events.get(), "the events are not a list")];
        return Some(Opened { unreadable, typing, ..Opened::default() });
    };
    let (events, unreadable) = read(list);
    Some(Opened { events, unreadable, typing })
}

/// An `m.typing`, as far as it is read.
#[derive(Deserialize)]
struct TypingForm {
    #[serde(rename = "type")]
    kind: String,
    room_id: OwnedRoomId,
    content: TypingContent,
}

#[derive(Deserialize)]
struct TypingContent {
    user_ids: BTreeSet<OwnedUserId>,
}

/// Who types, of all that is ephemeral; what cannot be read tells nothing.
fn typing(ephemeral: Option<&RawValue>) -> Vec<Typing> {
    let list = ephemeral.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok());
    let forms = list.unwrap_or_default().into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok());
    let typing = forms.filter(|form: &TypingForm| form.kind == "m.typing");
    typing.map(|form| Typing { room: form.room_id, users: form.content.user_ids }).collect()
}

fn read(list: Vec<&RawValue>) -> (Vec<Event>, Vec<Unreadable>) {
    let (mut read, mut unreadable) = (Vec::with_capacity(list.len()), Vec::new());
    for raw in list {
        match event::read(raw) {
            Ok(event) => read.push(event),
            Err(reason) => unreadable.push(reason),
        }
    }
    (read, unreadable)
}

/// A ping's transaction id, where it has a readable one.
pub(super) fn ping(body: &[u8]) -> Option<String> {
    let fields: Body<'_> = serde_json::from_slice(body).ok()?;
    serde_json::from_str(fields.get("transaction_id")?.get()).ok()
}

#[cfg(test)]
mod tests {
    use ruma::{owned_room_id, owned_user_id};

    use super::*;

    const GOOD: &str = r#"{"type":"t","event_id":"$e","room_id":"!r","sender":"@a:b"}"#;

    fn check(body: &[u8], expect: Option<(usize, &[&str])>) {
        let opened = open(body);
        let found = opened.as_ref().map(|opened| {
            let reasons = opened.unreadable.iter().map(|u| u.reason.as_str()).collect::<Vec<_>>();
            (opened.events.len(), reasons)
        });
        assert_eq!(
            found,
            expect.map(|(n, reasons)| (n, reasons.to_vec())),
            "{}",
            String::from_utf8_lossy(body)
        );
    }

    #[test]
    fn an_object_is_taken_whatever_stands_in_it() {
        check(b"{}", Some((0, &[])));
        check(br#"{"events":[]}"#, Some((0, &[])));
        check(br#"{"ephemeral":5,"de.sorunome.msc2409.to_device":"x","events":[]}"#, Some((0, &[])));
        check(br#"{"events":{"a":1}}"#, Some((0, &["the events are not a list"])));
        check(br#"{"events":null}"#, Some((0, &["the events are not a list"])));
        check(format!(r#"{{"events":[{GOOD}],"events":[{GOOD},{GOOD}]}}"#).as_bytes(), Some((2, &[])));
    }

    #[test]
    fn who_types_is_read_under_both_names_and_what_else_is_ephemeral_passed_over() {
        let typing = r#"{"type":"m.typing","room_id":"!r:x","content":{"user_ids":["@a:x","@b:x"]}}"#;
        let receipt = r#"{"type":"m.receipt","room_id":"!r:x","content":{"$e":{}}}"#;
        let odd = r#"{"type":"m.typing","room_id":7,"content":{"user_ids":["@a:x"]}}"#;
        let list = format!("[{receipt},{odd},5,{typing}]");
        let users = BTreeSet::from([owned_user_id!("@a:x"), owned_user_id!("@b:x")]);
        let expect = Typing { room: owned_room_id!("!r:x"), users };
        for name in ["ephemeral", "de.sorunome.msc2409.ephemeral"] {
            for events in ["\"events\":[],", "\"events\":7,", ""] {
                let opened = open(format!("{{{events}\"{name}\":{list}}}").as_bytes()).unwrap();
                assert_eq!(opened.typing, std::slice::from_ref(&expect), "{name} {events}");
            }
        }
        assert!(open(br#"{"events":[],"ephemeral":{"a":1}}"#).unwrap().typing.is_empty());
    }

    #[test]
    fn a_bad_event_does_not_hurt_its_neighbours() {
        let body = format!(r#"{{"events":[{GOOD},"foo",null,{{}},{GOOD}]}}"#);
        let object = "the event is not an object";
        check(body.as_bytes(), Some((2, &[object, object, "the event has no readable type"])));
    }

    #[test]
    fn a_byte_that_is_no_utf_8_costs_its_character() {
        let mut body = format!(r#"{{"events":[{GOOD},{GOOD}]}}"#).into_bytes();
        let at = body.windows(3).position(|w| w == b"@a:").unwrap() + 1;
        body[at] = 0xff;
        check(&body, Some((2, &[])));
        assert_eq!(open(&body).unwrap().events[0].sender, "@\u{fffd}:b");
    }

    #[test]
    fn anything_but_an_object_is_refused() {
        for body in ["", " ", "[]", "null", "\"x\"", "{", "{\"events\":[}", "{} x", "\u{feff}"] {
            check(body.as_bytes(), None);
        }
    }

    #[test]
    fn a_ping_tells_its_transaction_id() {
        assert_eq!(ping(br#"{"transaction_id":"t1"}"#), Some("t1".into()));
        for body in ["", "{}", r#"{"transaction_id":5}"#, "x"] {
            assert_eq!(ping(body.as_bytes()), None);
        }
    }
}
