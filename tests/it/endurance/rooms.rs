//! Rooms that begin, end or close at awkward moments.

use persona_bridge::demo::homeserver::Kind;
use ruma::{OwnedRoomId, RoomId};
use serde_json::json;

use super::ground::{account, all_answered_once, one, wait_for_answers, word};
use crate::bridge::{Bridge, Setup, alias, name, persona};
use crate::fake::messages_api::Gate;
use crate::fake::proxy::{Proxy, Verdict};
use crate::servers;
use crate::tools;
use crate::user::{Seen, User};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_before_she_joins_is_answered_on_synapse() {
    first_messages(Kind::Synapse, "what_is_said_before_she_joins_is_answered_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_before_she_joins_is_answered_on_conduit() {
    first_messages(Kind::Conduit, "what_is_said_before_she_joins_is_answered_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_lost_in_the_middle_of_a_reply_is_left_in_peace_on_synapse() {
    lost_rooms(Kind::Synapse, "a_room_lost_in_the_middle_of_a_reply_is_left_in_peace_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_lost_in_the_middle_of_a_reply_is_left_in_peace_on_conduit() {
    lost_rooms(Kind::Conduit, "a_room_lost_in_the_middle_of_a_reply_is_left_in_peace_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_rooms_and_strangers_get_one_sentence_on_synapse() {
    closed_doors(Kind::Synapse, "encrypted_rooms_and_strangers_get_one_sentence_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_rooms_and_strangers_get_one_sentence_on_conduit() {
    closed_doors(Kind::Conduit, "encrypted_rooms_and_strangers_get_one_sentence_on_conduit").await;
}

/// Room, invite and first message at once, as Element begins a direct chat; no transaction brings such a message.
async fn first_messages(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let _bridge = Bridge::spawn(&server, &one()).await;
    let mut alice = User::register(&server, "alice").await;
    let eir = persona("eir");
    for number in 0..20 * tools::scale() {
        let room = alice.create_room(json!({"is_direct": true, "invite": [eir]})).await;
        alice.say(&room, &word(number)).await;
        wait_for_answers(&mut alice, &room, &eir, 1).await;
        let (asked, answered) = account(&alice, &room, &eir).await;
        assert_eq!((&asked, answered), (&vec![word(number)], asked.clone()));
    }
}

/// She is kicked, or the room is replaced, while the homeserver has her words in hand; she goes on in the next one once she is
/// invited there.
async fn lost_rooms(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mut alice = User::register(&server, "alice").await;
    let mouth = Proxy::start(0, server.homeserver.url().port().unwrap()).await;
    let setup = Setup {
        homeserver: Some(mouth.url()),
        default_register: Some("swarm".to_owned()),
        permissions: format!("\"{}\" = \"chat\"\n\"{}\" = \"admin\"\n", servers::SERVER_NAME, alice.id),
        ..one()
    };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let control = alice.join(&control_room(&bridge)).await;
    let eir = persona("eir");

    let (left, upgraded) = (a_room(&mut alice, &eir).await, a_room(&mut alice, &eir).await);
    let gate = say_and_hold(&alice, &mouth, &left, 1).await;
    alice.kick(&left, &eir).await;
    gate.open();
    bridge.logs(&format!("is not in {left} any more")).await;

    let gate = say_and_hold(&alice, &mouth, &upgraded, 2).await;
    let replacement = alice.upgrade(&upgraded).await;
    assert_ne!(replacement, upgraded);
    gate.open();
    let told = format!("{eir} could not say something in {upgraded}");
    alice
        .event("word in the control room", |event| event.room == control && event.body().contains(&told))
        .await;
    mouth.pass();

    bridge.restart().await;
    let room = alice.join(&alias("swarm")).await;
    alice.say(&room, &format!("{}, {}?", name("eir"), word(3))).await;
    all_answered_once(&mut alice, &room, &eir).await;
    alice.invite(&replacement, &eir).await;
    alice.event("her join", |event| event.room == replacement && event.is_join_of(&eir)).await;
    alice.say(&replacement, &format!("{}, {}?", name("eir"), word(4))).await;
    all_answered_once(&mut alice, &replacement, &eir).await;
    let is_leave = |event: &Seen| event.key == eir && event.content["membership"] == "leave";
    alice.event("her leave", |event| event.room == upgraded && is_leave(event)).await;
    for room in [&left, &upgraded] {
        let timeline = alice.timeline(room).await;
        assert!(!timeline.iter().any(|event| event.is_message_of(&eir)), "{timeline:#?}");
        let mut hers = timeline.iter().filter(|event| event.kind == "m.room.member" && event.key == eir);
        assert_eq!(hers.next_back().unwrap().content["membership"], "leave", "{timeline:#?}");
    }
}

/// The control room as the log of a first start names it.
pub(super) fn control_room(bridge: &Bridge) -> String {
    let log = bridge.log();
    let (_, room) = log.split_once("the control room of a new store room=").unwrap();
    room.lines().next().unwrap().to_owned()
}

/// A room of Alice's with Eir in it.
async fn a_room(alice: &mut User, eir: &str) -> OwnedRoomId {
    let room = alice.create_room(json!({"name": "A room", "invite": [eir]})).await;
    alice.event("her join", |event| event.room == room && event.is_join_of(eir)).await;
    room
}

/// Asks her something and holds what she says on its way until the gate is opened.
async fn say_and_hold(alice: &User, mouth: &Proxy, room: &RoomId, number: u32) -> Gate {
    let gate = Gate::closed();
    let held = gate.clone();
    mouth.rule(move |asked| if asked.is_send() { Verdict::Hold(held.clone()) } else { Verdict::Pass });
    let before = mouth.count(|asked, _| asked.is_send());
    alice.say(room, &format!("{}, {}?", name("eir"), word(number))).await;
    mouth.wait_beyond(before, |asked, _| asked.is_send()).await;
    gate
}

/// Encrypted rooms, and people who may not chat.
async fn closed_doors(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let permissions = format!("\"{}\" = \"chat\"\n\"@mallory:hs.test\" = \"block\"\n", servers::SERVER_NAME);
    let setup = Setup { permissions, default_register: Some("swarm".to_owned()), ..one() };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let mut mallory = User::register(&server, "mallory").await;
    let eir = persona("eir");

    let encryption = json!({"algorithm": "m.megolm.v1.aes-sha2"});
    let before = alice.create_room(json!({"name": "Encrypted before she came"})).await;
    alice.send_state(&before, "m.room.encryption", "", encryption.clone()).await;
    alice.invite(&before, &eir).await;
    let after = a_room(&mut alice, &eir).await;
    alice.send_state(&after, "m.room.encryption", "", encryption).await;
    for room in [&before, &after] {
        alice.event("the notice", |event| event.room == **room && event.is_message_of(&eir)).await;
        alice.say(room, &format!("{}, {}?", name("eir"), word(1))).await;
        alice
            .send(room, "m.room.encrypted", json!({"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"}))
            .await;
    }

    let room = alice.join(&alias("swarm")).await;
    mallory.join(&alias("swarm")).await;
    mallory.say(&room, &format!("{}, {}?", name("eir"), word(2))).await;
    let trap = mallory.create_room(json!({"is_direct": true, "invite": [eir]})).await;
    let refused = |event: &Seen| event.key == eir && event.content["membership"] == "leave";
    let refusal = mallory.event("a refusal", |event| event.room == trap && refused(event)).await;
    assert_eq!(
        refusal.content["reason"],
        "You are not allowed to invite here; ask the operator of this bridge."
    );

    bridge.restart().await;
    alice.say(&room, &format!("{}, {}?", name("eir"), word(3))).await;
    wait_for_answers(&mut alice, &room, &eir, 1).await;
    assert_eq!(account(&alice, &room, &eir).await.1, [word(3)]);
    for room in [&before, &after] {
        let said = alice.said_by(room, &eir).await;
        assert_eq!(said.len(), 1, "{said:#?}");
        assert_eq!(said[0].content["msgtype"], "m.notice");
    }
}
