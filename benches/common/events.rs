//! Events and transactions as a homeserver sends them.

use serde_json::{Value, json};
use uuid::Uuid;

/// About as much as people say at once.
const WORDS: &str =
    "the quick brown fox jumps over the lazy dog and then, as foxes do, it looks back at us all";

/// The id of the event with a number, of the length and randomness that room versions since 4 have.
pub(crate) fn event_id(number: u64) -> String {
    let half = |space: &Uuid| Uuid::new_v5(space, &number.to_be_bytes()).simple().to_string();
    let id = half(&Uuid::NAMESPACE_OID) + &half(&Uuid::NAMESPACE_DNS);
    format!("${}", &id[..43])
}

/// A message of alice, about 550 bytes long; with somebody to mention, it is addressed to them.
pub(crate) fn message(number: u64, room: &str, mention: Option<&str>) -> String {
    let mentions = mention.map_or_else(|| json!({}), |user| json!({ "user_ids": [user] }));
    event(
        number,
        room,
        json!({ "msgtype": "m.text", "body": format!("{number}: {WORDS}"), "m.mentions": mentions }),
    )
}

fn event(number: u64, room: &str, content: Value) -> String {
    json!({
        "event_id": event_id(number), "room_id": room, "sender": "@alice:hs.test", "user_id": "@alice:hs.test",
        "type": "m.room.message", "content": content, "origin_server_ts": 1_800_000_000_000_u64 + number,
        "age": 42, "unsigned": { "age": 42, "membership": "join" },
    })
    .to_string()
}

/// The body of a transaction.
pub(crate) fn transaction(events: &[String]) -> String {
    format!("{{\"events\":[{}],\"ephemeral\":[]}}", events.join(","))
}
