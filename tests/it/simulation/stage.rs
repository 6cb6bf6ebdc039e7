//! Where a scene is played beside the running bridge: people, what they see, and virtual time that passes.

use std::time::Duration;

use persona_bridge::bridge::clock::Clock;
use persona_bridge::bridge::orders::{Lever, Order};
use serde_json::Value;

use super::world::FedLog;
use crate::fake::homeserver::{FakeHomeserver, Flavour, Membership, TestUser};

pub(crate) const EIR: &str = "@persona_eir:hs.test";
pub(crate) const BRAGE: &str = "@persona_brage:hs.test";
pub(crate) const BOT: &str = "@persona-bridge:hs.test";

/// The longest that anything is waited for, in virtual ms.
const PATIENCE: u64 = 60_000;
/// In which everything that was begun comes to its end, in virtual ms: settling, a thought, sending.
const CALM: u64 = 500;

/// The stage of one life.
pub(crate) struct Stage {
    pub(crate) home: FakeHomeserver,
    fed: FedLog,
    clock: Clock,
}

impl Stage {
    pub(crate) fn new(home: FakeHomeserver, fed: FedLog, clock: Clock) -> Self {
        Self { home, fed, clock }
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Lets the clock jump, where time is real otherwise.
    pub(crate) async fn jump(&self, time: Duration) {
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }

    /// Lets everything come to its end.
    pub(crate) async fn calm(&self) {
        self.pass(CALM).await;
    }

    /// Waits until something is so, with nothing left to be pushed or sent.
    pub(crate) async fn rest(&self, what: &str, so: impl Fn() -> bool) {
        for _ in 0..PATIENCE {
            if so() && self.home.waiting() == 0 && self.stats().await["outbox"] == 0 {
                return;
            }
            self.pass(1).await;
        }
        panic!("{what}: not within a minute");
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, so: impl Fn() -> bool) {
        for _ in 0..PATIENCE {
            if so() {
                return;
            }
            self.pass(1).await;
        }
        panic!("{what}: not within a minute");
    }

    /// The time, as unix ms.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().0
    }

    pub(crate) fn alice(&self) -> TestUser {
        self.home.user("alice")
    }

    pub(crate) fn bob(&self) -> TestUser {
        self.home.user("bob")
    }

    /// The swarm, with both Personas, Alice and Bob in it.
    pub(crate) async fn swarm(&self) -> String {
        let joined = |who: &str| swarm(&self.home).is_some_and(|room| is_joined(&self.home, &room, who));
        self.until("the bridge starts", || joined(EIR) && joined(BRAGE)).await;
        let room = swarm(&self.home).expect("it was just seen");
        for user in [self.alice(), self.bob()] {
            if !is_joined(&self.home, &room, &user.id) {
                user.join(&room);
            }
        }
        self.pass(50).await;
        room
    }

    /// A direct room that somebody opens with a Persona, who is waited for.
    pub(crate) async fn dm(&self, user: &TestUser, whom: &str) -> String {
        let room = user.create_dm(whom);
        self.joins(&room, whom).await;
        self.pass(50).await;
        room
    }

    /// Waits until somebody has joined.
    pub(crate) async fn joins(&self, room: &str, whom: &str) {
        self.until(&format!("{whom} joins {room}"), || is_joined(&self.home, room, whom)).await;
    }

    /// Waits until a Persona has said so many messages in a room: all of them.
    pub(crate) async fn said(&self, room: &str, who: &str, count: usize) -> Vec<String> {
        let bodies = || self.home.bodies(room, who);
        self.until(&format!("{who} says {count} in {room}"), || bodies().len() >= count).await;
        bodies()
    }

    /// Alice says something to Eir in the swarm; her answer is waited for, and what follows from it.
    pub(crate) async fn ask(&self, words: &str) {
        let swarm = self.swarm().await;
        let before = self.home.bodies(&swarm, EIR).len();
        self.alice().say(&swarm, &format!("Eir, {words}"));
        self.said(&swarm, EIR, before + 1).await;
        self.calm().await;
    }

    /// An operator moves the brake of all.
    pub(crate) async fn brake(&self, lever: Lever) {
        let (status, answer) = self.order(&Order::Brake { lever, persona: None }.to_json()).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// All words that were fed to a Persona so far.
    pub(crate) fn words(&self, who: &str) -> String {
        let fed = self.fed.lock().expect("not poisoned");
        fed.iter().filter(|fed| fed.who == who).map(|fed| format!("{}\n", fed.words)).collect()
    }

    /// How many lines were fed to a Persona so far.
    pub(crate) fn thoughts(&self, who: &str) -> usize {
        self.fed.lock().expect("not poisoned").iter().filter(|fed| fed.who == who).count()
    }

    /// What operators were told.
    pub(crate) fn told(&self) -> Vec<String> {
        told(&self.home)
    }

    /// Why the bridge is not ready; nothing if it is.
    pub(crate) async fn unready(&self) -> Vec<String> {
        let (status, body) = self.home.ask_appservice("GET", "/ready", &Value::Null).await;
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let reasons = body["reasons"].as_array().cloned().unwrap_or_default();
        assert_eq!(status == 200, reasons.is_empty(), "{status} {body}");
        reasons.iter().map(|reason| reason.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What /stats shows.
    pub(crate) async fn stats(&self) -> Value {
        let (status, body) = self.home.ask_appservice("GET", "/stats", &Value::Null).await;
        assert_eq!(status, 200);
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Gives an operator's order: the status, and what was answered.
    pub(crate) async fn order(&self, order: &Value) -> (u16, Value) {
        let (status, body) = self.home.ask_appservice("POST", "/_persona_bridge/order", order).await;
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    /// Pushes a transaction of any form beside the homeserver's own: the status.
    pub(crate) async fn push(&self, txn: &str, body: &Value) -> u16 {
        let path = format!("/_matrix/app/v1/transactions/{txn}");
        self.home.ask_appservice("PUT", &path, body).await.0
    }
}

/// The configured room.
pub(crate) fn swarm(home: &FakeHomeserver) -> Option<String> {
    home.alias("#persona_swarm:hs.test")
}

/// What operators were told in the control room.
pub(crate) fn told(home: &FakeHomeserver) -> Vec<String> {
    let room = home.alias("#persona_control-00000000000000000000000000000007:hs.test");
    room.map(|room| home.bodies(&room, BOT)).unwrap_or_default()
}

pub(crate) fn is_joined(home: &FakeHomeserver, room: &str, user: &str) -> bool {
    home.membership(room, user) == Some(Membership::Join)
}

/// Asserts that each word stands in the texts exactly so often.
#[track_caller]
pub(crate) fn counts(texts: &[String], words: &[(&str, usize)]) {
    let all = texts.join("\n");
    for (word, count) in words {
        assert_eq!(all.matches(word).count(), *count, "{word} in:\n{all}");
    }
}

/// Plays on both homeservers.
pub(crate) fn on_both(scene: impl Fn(Flavour)) {
    for flavour in [Flavour::Synapse, Flavour::Conduit] {
        scene(flavour);
    }
}
