//! A transaction's body, opened leniently: whatever stands in it, an object is taken.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::event::{self, Unreadable};
use crate::conversation::Event;

/// The fields of a body, unread.
type Body<'a> = BTreeMap<String, &'a RawValue>;

/// A body as it should be, which takes one look less than [`Body`].
#[derive(Deserialize)]
struct Usual<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

/// The events of a transaction and what could not be read; `None` where the body is not a JSON object.
pub(super) fn open(body: &[u8]) -> Option<(Vec<Event>, Vec<Unreadable>)> {
    let text = String::from_utf8_lossy(body);
    if let Ok(Usual { events }) = serde_json::from_str(&text) {
        return Some(read(events));
    }
    let fields: Body<'_> = serde_json::from_str(&text).ok()?;
    let Some(events) = fields.get("events") else { return Some((Vec::new(), Vec::new())) };
    let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(events.get()) else {
        return Some((Vec::new(), vec![Unreadable::new(events.get(), "the events are not a list")]));
    };
    Some(read(list))
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
    use super::*;

    const GOOD: &str = r#"{"type":"t","event_id":"$e","room_id":"!r","sender":"@a:b"}"#;

    fn check(body: &[u8], expect: Option<(usize, &[&str])>) {
        let opened = open(body);
        let found = opened.as_ref().map(|(events, unreadable)| {
            (events.len(), unreadable.iter().map(|u| u.reason.as_str()).collect::<Vec<_>>())
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
        assert_eq!(open(&body).unwrap().0[0].sender, "@\u{fffd}:b");
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
