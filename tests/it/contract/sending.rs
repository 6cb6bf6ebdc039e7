//! Sending: what is refused, and what a repeat does.

use persona_bridge::conversation::Membership;
use persona_bridge::homeserver::client::{CallErrorKind, Client, Identity};
use ruma::OwnedRoomId;
use serde_json::{Value, json};

use super::{World, bodies, kind, masquerade, request, shared_room, text};
use crate::fake::homeserver::Flavour;

/// The body arrives as it was frozen, escapes, spaces and all, and says the same.
pub(super) async fn sends(world: &impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let frozen = "{ \"msgtype\":\"m.text\",\t\"body\" : \"gr\\u00fc\u{df}e \\ud83d\\ude00 \u{1f600} \u{202e}x\" , \"n\": 9007199254740991 }";
    let sent = client.send(eir, &shared, "m.room.message", &request("a/b %c"), frozen).await.unwrap();
    let newest = client.newest(eir, &shared, 1).await.unwrap();
    let found: Value = serde_json::from_str(newest.events[0].get()).unwrap();
    assert_eq!(found["event_id"], sent.as_str());
    assert_eq!(found["content"], serde_json::from_str::<Value>(frozen).unwrap());
    assert_eq!(found["unsigned"]["transaction_id"], "a/b %c");
    client.leave(eir, &shared, "").await.unwrap();
}

pub(super) async fn refusals(world: &impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let send =
        async |id: &str, body: &str| client.send(eir, &shared, "m.room.message", &request(id), body).await;
    let fits = send("r0", &text(&"x".repeat(60_000))).await;
    assert!(fits.is_ok(), "{fits:?}");
    // Conduit has two ways to say so, for a little and for much too much.
    for (id, size) in [("r1", 65_200), ("r2", 70_000), ("r3", 700_000)] {
        assert_eq!(kind(send(id, &text(&"x".repeat(size))).await), CallErrorKind::TooLarge, "{size}");
    }
    assert_eq!(kind(send("r4", r#"{"body":1.5}"#).await), CallErrorKind::Refused);
    assert_eq!(kind(send("r5", r#"{"body":"#).await), CallErrorKind::Refused);
    world.silence(shared.as_str()).await;
    assert_eq!(kind(send("r6", &text("x")).await), CallErrorKind::Forbidden);
    assert_eq!(client.membership(eir, &shared).await.unwrap(), Some(Membership::Join));
    client.leave(eir, &shared, "").await.unwrap();
}

pub(super) async fn reactions(world: &impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let to = world.say(shared.as_str(), "hello").await;
    let body =
        json!({ "m.relates_to": { "rel_type": "m.annotation", "event_id": to, "key": "+" } }).to_string();
    let react = async |id: &str| client.send(eir, &shared, "m.reaction", &request(id), &body).await;
    let first = react("e1").await.unwrap();
    match world.flavour() {
        Flavour::Synapse => assert_eq!(kind(react("e2").await), CallErrorKind::Already),
        Flavour::Conduit => assert_ne!(react("e2").await.unwrap(), first),
    }
    client.leave(eir, &shared, "").await.unwrap();
}

pub(super) async fn lost_room(world: &impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let send = async |id: &str| client.send(eir, &shared, "m.room.message", &request(id), &text("x")).await;
    let before = send("k1").await.unwrap();
    world.put_member(shared.as_str(), "kick", eir.user.as_str()).await;
    assert_eq!(kind(send("k2").await), CallErrorKind::Forbidden);
    assert_eq!(send("k1").await.unwrap(), before);
    assert_eq!(client.membership(eir, &shared).await.unwrap(), Some(Membership::Leave));
    assert_eq!(kind(client.typing(eir, &shared, false).await), CallErrorKind::Forbidden);
    assert_eq!(kind(client.leave(eir, &shared, "").await), CallErrorKind::Forbidden);
    assert_eq!(kind(client.join(eir, &shared).await), CallErrorKind::Forbidden);
    world.put_member(shared.as_str(), "ban", eir.user.as_str()).await;
    assert_eq!(client.membership(eir, &shared).await.unwrap(), Some(Membership::Leave));
}

/// The same transaction id again, at once.
pub(super) async fn repeats(world: &impl World, client: &Client, eir: &Identity, brage: &Identity) {
    let (here, there) = (shared_room(world, client, eir).await, shared_room(world, client, eir).await);
    world.put_member(here.as_str(), "invite", brage.user.as_str()).await;
    client.join(brage, &here).await.unwrap();
    let put = async |who: &Identity, room: &OwnedRoomId, kind: &str, body: &str| {
        client.send(who, room, kind, &request("same"), &text(body)).await.unwrap()
    };
    let first = put(eir, &here, "m.room.message", "one").await;
    assert_eq!(put(eir, &here, "m.room.message", "one").await, first);
    assert_eq!(put(eir, &here, "m.room.message", "another body").await, first);
    assert_eq!(put(eir, &here, "dev.persona_bridge.other", "another type").await, first);
    let elsewhere = put(eir, &there, "m.room.message", "another room").await;
    assert_eq!(elsewhere == first, world.flavour() == Flavour::Conduit);
    let other = put(brage, &here, "m.room.message", "another ghost").await;
    assert_eq!(other == first, world.flavour() == Flavour::Synapse);
    let page = client.newest(eir, &here, 3).await.unwrap();
    let said = bodies(&page.events);
    assert_eq!(said.iter().filter(|body| *body == "one").count(), 1, "{said:?}");
    for room in [&here, &there] {
        client.leave(eir, room, "").await.unwrap();
    }
}

/// The same transaction id again, after the homeserver was killed: a device makes it last.
pub(super) async fn repeats_after_a_restart(world: &mut impl World, client: &Client, eir: &Identity) {
    let shared = shared_room(world, client, eir).await;
    let send = async |who: &Identity, id: &str| {
        client.send(who, &shared, "m.room.message", &request(id), &text(id)).await.unwrap()
    };
    let bare = masquerade(eir.user.clone());
    let (with_device, without) = (send(eir, "p1").await, send(&bare, "p2").await);
    world.restart().await;
    assert_eq!(send(eir, "p1").await, with_device);
    assert_eq!(send(&bare, "p2").await == without, world.flavour() == Flavour::Conduit);
}
