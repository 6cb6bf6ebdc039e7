//! The fake's outgoing queue, as the ear meets it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use crate::fake::homeserver::{FakeHomeserver, Flavour, Pushed, TestUser};

const EIR: &str = "@persona_eir:hs.test";

/// An appservice that notes what it takes.
#[derive(Clone, Default)]
struct Ear {
    state: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    refuse: Option<StatusCode>,
    empty: bool,
    /// Each call: path and query, token, event ids.
    calls: Vec<(String, String, Vec<String>)>,
    at: Vec<Instant>,
}

impl Ear {
    fn router(&self) -> Router {
        let ear = self.clone();
        Router::new().fallback(move |request: Request| {
            let ear = ear.clone();
            async move {
                let path = request.uri().to_string();
                let token = request.headers()["authorization"].to_str().unwrap().to_owned();
                let body: Value =
                    serde_json::from_slice(&to_bytes(request.into_body(), 1 << 26).await.unwrap()).unwrap();
                let events = body["events"].as_array().into_iter().flatten();
                let ids = events.map(|event| event["event_id"].as_str().unwrap().to_owned()).collect();
                let mut heard = ear.state.lock().unwrap();
                heard.calls.push((path, token, ids));
                heard.at.push(Instant::now());
                let answer = if heard.empty { "" } else { "{}" };
                (heard.refuse.unwrap_or(StatusCode::OK), answer)
            }
        })
    }

    fn refuse(&self, status: Option<StatusCode>) {
        self.state.lock().unwrap().refuse = status;
    }

    fn paths(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.iter().map(|call| call.0.clone()).collect()
    }

    fn events(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.iter().flat_map(|call| call.2.clone()).collect()
    }
}

/// A homeserver with a room in which Eir is, and nothing waiting.
async fn settled(flavour: Flavour) -> (FakeHomeserver, TestUser, String) {
    let home = FakeHomeserver::new(flavour);
    home.client().register("persona_eir").await.unwrap();
    let alice = home.user("alice");
    let room = alice.create_dm(EIR);
    home.user("persona_eir").join(&room);
    home.drain_to(&Ear::default().router()).await;
    (home, alice, room)
}

#[tokio::test]
async fn transactions_come_in_order_until_they_are_taken() {
    let (home, alice, room) = settled(Flavour::Synapse).await;
    home.restart();
    let ear = Ear::default();
    let said: Vec<String> = (0..130).map(|n| alice.say(&room, &n.to_string())).collect();
    ear.refuse(Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(home.push_to(ear.router()).await, Pushed::Refused(503));
    ear.refuse(None);
    ear.state.lock().unwrap().empty = true;
    assert_eq!(home.push_to(ear.router()).await, Pushed::Refused(200));
    ear.state.lock().unwrap().empty = false;
    assert_eq!(home.push_to(ear.router()).await, Pushed::Taken(100));
    assert_eq!(home.drain_to(&ear.router()).await, 30);
    assert_eq!(home.push_to(ear.router()).await, Pushed::Idle);
    let txn = |n: u32| format!("/_matrix/app/v1/transactions/{n}");
    assert_eq!(ear.paths(), [txn(1), txn(1), txn(1), txn(2)]);
    assert_eq!(ear.events()[200..], said);
    assert!(ear.state.lock().unwrap().calls.iter().all(|call| call.1 == "Bearer hs_secret"));
}

#[tokio::test]
async fn conduit_drains_room_by_room_and_shows_the_token_in_the_query() {
    let (home, alice, room) = settled(Flavour::Conduit).await;
    let other = alice.create_dm(EIR);
    home.user("persona_eir").join(&other);
    let ear = Ear::default();
    home.drain_to(&ear.router()).await;
    let before = ear.events().len();
    let late: Vec<String> =
        (0..3).flat_map(|n| [alice.say(&other, &n.to_string()), alice.say(&room, &n.to_string())]).collect();
    ear.state.lock().unwrap().empty = true;
    home.drain_to(&ear.router()).await;
    let by_room: Vec<String> = [1, 3, 5, 0, 2, 4].map(|at| late[at].clone()).to_vec();
    assert_eq!(ear.events()[before..], by_room);
    assert!(ear.paths().iter().all(|path| path.ends_with("?access_token=hs_secret")));
}

#[tokio::test]
async fn only_what_concerns_the_appservice_is_sent_and_only_from_the_join() {
    let home = FakeHomeserver::new(Flavour::Synapse);
    let alice = home.user("alice");
    let elsewhere = alice.create_room("elsewhere");
    alice.say(&elsewhere, "unheard");
    assert_eq!(home.waiting(), 0);
    let room = alice.create_dm(EIR);
    let between = alice.say(&room, "between invite and join");
    let ear = Ear::default();
    home.drain_to(&ear.router()).await;
    assert_eq!(ear.events().len(), 1);
    home.user("persona_eir").join(&room);
    let heard = alice.say(&room, "heard");
    alice.kick(&room, EIR);
    alice.say(&room, "after the kick");
    home.drain_to(&ear.router()).await;
    let events = ear.events();
    assert_eq!(events.len(), 4, "invite, join, word, kick: {events:?}");
    assert!(events.contains(&heard) && !events.contains(&between));
}

#[tokio::test]
async fn a_restart_loses_synapses_queue_and_not_conduits() {
    for (flavour, kept) in [(Flavour::Synapse, 0), (Flavour::Conduit, 2)] {
        let (home, alice, room) = settled(flavour).await;
        alice.say(&room, "one");
        home.next_transaction();
        alice.say(&room, "two");
        home.restart();
        assert_eq!(home.waiting(), kept);
        alice.say(&room, "three");
        let (txn, _) = home.next_transaction().unwrap();
        assert_eq!(txn == "1", flavour == Flavour::Synapse);
    }
}

#[tokio::test(start_paused = true)]
async fn the_pump_repeats_as_its_flavour_does() {
    let (home, alice, room) = settled(Flavour::Synapse).await;
    let ear = Ear::default();
    ear.refuse(Some(StatusCode::BAD_GATEWAY));
    home.connect(Some(ear.router()));
    alice.say(&room, "x");
    let started = Instant::now();
    let run = async |for_: u64| {
        let _: Result<(), _> = tokio::time::timeout(Duration::from_secs(for_), home.pump()).await;
    };
    run(31).await;
    let seconds: Vec<u64> = ear.state.lock().unwrap().at.iter().map(|at| (*at - started).as_secs()).collect();
    assert_eq!(seconds, [0, 2, 6, 14, 30]);
    ear.refuse(None);
    let pinged = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        home.client().ping("persona-bridge", "p").await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    tokio::select! { () = home.pump() => {}, () = pinged => {} }
    assert_eq!(home.waiting(), 0);
}
