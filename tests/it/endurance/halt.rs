//! The bridge dies at the very points where a crash hurts: each message is answered once all the same.

use std::os::unix::process::ExitStatusExt;

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::Kind;
use ruma::OwnedRoomId;
use serde_json::json;

use super::ground::{Mind, account, all_answered_once, one, wait_for_answers, word};
use crate::bridge::{Bridge, Setup, alias, persona};
use crate::servers::{self, Server};
use crate::tools;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_was_answered_is_stored_on_synapse() {
    answered_is_stored(Kind::Synapse, "a_transaction_that_was_answered_is_stored_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_was_answered_is_stored_on_conduit() {
    answered_is_stored(Kind::Conduit, "a_transaction_that_was_answered_is_stored_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_answered_before_it_is_stored_is_lost() {
    answered_first(Kind::Synapse, "a_transaction_that_is_answered_before_it_is_stored_is_lost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_around_the_ears_flush_on_synapse() {
    around_the_flush(Kind::Synapse, "killed_around_the_ears_flush_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_around_the_ears_flush_on_conduit() {
    around_the_flush(Kind::Conduit, "killed_around_the_ears_flush_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_around_the_put_on_synapse() {
    around_the_put(Kind::Synapse, "killed_around_the_put_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_around_the_put_on_conduit() {
    around_the_put(Kind::Conduit, "killed_around_the_put_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_result_and_commit_on_synapse() {
    before_commit(Kind::Synapse, "killed_between_result_and_commit_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_result_and_commit_on_conduit() {
    before_commit(Kind::Conduit, "killed_between_result_and_commit_on_conduit").await;
}

/// A room in which Eir has answered once.
struct Stage {
    server: Server,
    bridge: Bridge,
    alice: User,
    room: OwnedRoomId,
    eir: String,
}

impl Stage {
    async fn set(server: Server, setup: &Setup) -> Self {
        let bridge = Bridge::spawn(&server, setup).await;
        let mut alice = User::register(&server, "alice").await;
        let room = alice.join(&alias("swarm")).await;
        let eir = persona("eir");
        alice.say(&room, "Eir, w0000?").await;
        wait_for_answers(&mut alice, &room, &eir, 1).await;
        Self { server, bridge, alice, room, eir }
    }

    /// Starts the bridge anew, to die at a point if there is one.
    async fn restart(&mut self, halt: Option<&str>) {
        self.bridge.kill(Signal::KILL).await;
        let halt = halt.map(|halt| ("PERSONA_BRIDGE_HALT".to_owned(), halt.to_owned()));
        self.bridge.env = halt.into_iter().collect();
        self.bridge.start().await;
    }

    /// Waits until it has died by the signal that it sends itself.
    async fn dies(&mut self) {
        let status = self.bridge.ended().await.unwrap();
        assert_eq!(status.signal(), Some(9), "{status}\n{}", self.bridge.log());
    }

    async fn ask(&self, number: u32) {
        self.alice.say(&self.room, &format!("Eir, {}?", word(number))).await;
    }

    /// Waits until transactions are heard: each room is read back first.
    async fn hears(&self) {
        self.bridge.logs("caught up").await;
    }

    /// Brings an event that no homeserver has ever had; answers the status, none if there was no answer.
    async fn bring(&self, number: u32) -> Option<u16> {
        let word = word(number);
        let event = json!({
            "type": "m.room.message",
            "event_id": format!("$made-by-a-test-{word}"),
            "room_id": self.room,
            "sender": self.alice.id,
            "origin_server_ts": tools::now(),
            "content": {"msgtype": "m.text", "body": format!("Eir, {word}?"), "m.mentions": {}},
        });
        let url = format!("http://127.0.0.1:{}/_matrix/app/v1/transactions/made-{word}", self.bridge.port);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let put = http.put(url).bearer_auth(&self.server.appservice.hs_token);
        let answer = put.body(json!({"events": [event]}).to_string()).send().await.ok()?;
        Some(answer.status().as_u16())
    }
}

/// A 200 means that it is stored: killed right after it, the bridge answers what no homeserver can bring again.
async fn answered_is_stored(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    // Nothing is to be fed, and so flushed, between the answer and the kill.
    let setup = Setup { settle: "1s".to_owned(), ..one() };
    let mut stage = Stage::set(server, &setup).await;
    let mut brought = vec![word(0)];
    for number in 1..=3 * tools::scale() {
        stage.hears().await;
        assert_eq!(stage.bring(number).await, Some(200), "{}", stage.bridge.log());
        stage.bridge.kill(Signal::KILL).await;
        stage.restart(None).await;
        brought.push(word(number));
        wait_for_answers(&mut stage.alice, &stage.room, &stage.eir, brought.len()).await;
        let (_, answered) = account(&stage.alice, &stage.room, &stage.eir).await;
        assert_eq!(answered, brought);
    }
}

/// That the test above can fail: an ear that answers first loses what it acknowledged.
async fn answered_first(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mut stage = Stage::set(server, &one()).await;
    stage.restart(Some("ear-answers-first")).await;
    stage.hears().await;
    assert_eq!(stage.bring(1).await, Some(200), "{}", stage.bridge.log());
    stage.dies().await;
    stage.restart(None).await;
    stage.hears().await;
    stage.ask(2).await;
    wait_for_answers(&mut stage.alice, &stage.room, &stage.eir, 2).await;
    let (_, answered) = account(&stage.alice, &stage.room, &stage.eir).await;
    assert_eq!(answered, [word(0), word(2)], "these tests cannot tell an early answer from a good one");
}

/// Before, inside and after the flush: what was not answered is brought again, and all is answered once.
async fn around_the_flush(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    // Conduit brings nothing for a while after a failure; then reading back finds it, and dies at the same points.
    let setup = Setup { reconcile: "1s".to_owned(), ..one() };
    let mut stage = Stage::set(server, &setup).await;
    let mut brought = vec![word(0)];
    for (number, point) in (1..).zip(["ear-before-flush", "ear-inside-flush", "ear-after-flush"]) {
        stage.restart(Some(point)).await;
        stage.hears().await;
        assert_eq!(stage.bring(number).await, None, "it died without an answer at {point}");
        stage.dies().await;
        stage.restart(None).await;
        stage.hears().await;
        brought.push(word(number));
        if point == "ear-after-flush" {
            wait_for_answers(&mut stage.alice, &stage.room, &stage.eir, brought.len()).await;
        }
        assert_eq!(stage.bring(number).await, Some(200), "brought again after {point}");
        wait_for_answers(&mut stage.alice, &stage.room, &stage.eir, brought.len()).await;
        let (_, answered) = account(&stage.alice, &stage.room, &stage.eir).await;
        assert_eq!(answered, brought, "{point}");
        // And the same with what the homeserver itself brings.
        let number = number + 10;
        stage.restart(Some(point)).await;
        stage.hears().await;
        stage.ask(number).await;
        stage.dies().await;
        stage.restart(None).await;
        brought.push(word(number));
        wait_for_answers(&mut stage.alice, &stage.room, &stage.eir, brought.len()).await;
        let (_, answered) = account(&stage.alice, &stage.room, &stage.eir).await;
        assert_eq!(answered, brought, "{point}");
    }
}

/// Between commit and PUT, and between PUT and its row: each answer is there once.
async fn around_the_put(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mut stage = Stage::set(server, &one()).await;
    let mut number = 0;
    for point in ["after-commit", "after-put"] {
        for _ in 0..5 * tools::scale() {
            stage.restart(Some(point)).await;
            number += 1;
            stage.ask(number).await;
            stage.dies().await;
        }
    }
    stage.restart(None).await;
    let asked = all_answered_once(&mut stage.alice, &stage.room, &stage.eir).await;
    assert_eq!(asked.len(), number as usize + 2);
}

/// Between the `result` of the real CLI and our commit, 20 times: the API is asked once for each line.
async fn before_commit(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mind = Mind::start().await;
    let Some(setup) = mind.setup(&server) else { return };
    let mut stage = Stage::set(server, &setup).await;
    for number in 1..=20 {
        // The turn that died before is taken from its record, and this message begins the one that dies.
        stage.ask(number).await;
        stage.restart(Some("before-commit")).await;
        stage.dies().await;
    }
    stage.restart(None).await;
    let asked = all_answered_once(&mut stage.alice, &stage.room, &stage.eir).await;
    let requests: Vec<String> = mind.asked().into_iter().flat_map(|(_, words)| words).collect();
    assert_eq!(requests, asked, "each line is asked for once");
    assert_eq!(mind.api.requests().len(), asked.len());
}
