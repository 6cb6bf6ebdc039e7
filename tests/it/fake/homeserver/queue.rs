//! The outgoing queue to the appservice: transactions in order, repeated until they are taken.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::faults::{Fault, Seen};
use super::http::{Ask, no, respond};
use super::state::State;
use super::{FakeHomeserver, Flavour, TransportError};

/// The most bytes of an answer that are read.
const ANSWER_MAX: usize = 1 << 20;

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    /// Room and event, oldest first; read anew when they are sent.
    pending: VecDeque<(String, String)>,
    in_flight: Option<InFlight>,
    sent: u64,
    router: Option<axum::Router>,
    silent: bool,
}

#[derive(Clone)]
struct InFlight {
    txn: String,
    events: Vec<(String, String)>,
}

/// What became of an attempt to push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Nothing waits.
    Idle,
    /// The appservice took so many events.
    Taken(usize),
    /// It did not, with this status; the same transaction will come again.
    Refused(u16),
}

impl State {
    /// Queues the newest event of a room if the appservice has a part in it.
    pub(super) fn enqueue(&mut self, room: &str) {
        let known = &self.rooms[room];
        let Some(event) = known.events.last() else { return };
        let ours = |user: &str| self.is_ours(user);
        let interesting = ours(&event.sender)
            || event.state_key.as_deref().is_some_and(ours)
            || known.members.keys().any(|user| known.is_joined(user) && ours(user));
        if interesting {
            self.queue.pending.push_back((room.to_owned(), event.id.clone()));
        }
    }

    /// The transaction to send now: the one in flight, else the next.
    fn next(&mut self) -> Option<(String, Value)> {
        if self.queue.in_flight.is_none() {
            let events = self.batch();
            if events.is_empty() {
                return None;
            }
            self.queue.sent += 1;
            let txn = match self.setup.flavour {
                Flavour::Synapse => self.queue.sent.to_string(),
                // A hash of what is in it: the same on every fresh homeserver.
                Flavour::Conduit => format!("c{}", events[0].1.trim_start_matches('$')),
            };
            self.queue.in_flight = Some(InFlight { txn, events });
        }
        let flight = self.queue.in_flight.clone()?;
        let events: Vec<Value> =
            flight.events.iter().filter_map(|(room, id)| self.pushed(room, id)).collect();
        Some((flight.txn, json!({ "events": events })))
    }

    /// Synapse takes up to 100 events in order; Conduit up to 30, room by room.
    fn batch(&mut self) -> Vec<(String, String)> {
        let pending = &mut self.queue.pending;
        match self.setup.flavour {
            Flavour::Synapse => pending.drain(..pending.len().min(100)).collect(),
            Flavour::Conduit => {
                let mut rooms: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
                for (room, event) in pending.drain(..) {
                    rooms.entry(room.clone()).or_default().push((room, event));
                }
                let mut all: VecDeque<_> = rooms.into_values().flatten().collect();
                let batch = all.drain(..all.len().min(30)).collect();
                *pending = all;
                batch
            }
        }
    }

    fn pushed(&self, room: &str, id: &str) -> Option<Value> {
        let room = self.rooms.get(room)?;
        let event = room.events.iter().rev().find(|event| event.id == id)?;
        let mut wire = event.wire(self.setup.flavour);
        let invited = event.state_key.as_deref().filter(|_| event.content["membership"] == "invite");
        if let (Flavour::Synapse, Some(user)) = (self.setup.flavour, invited) {
            wire["unsigned"]["invite_room_state"] = json!(super::read::stripped(room, user));
        }
        Some(wire)
    }

    pub(super) fn lose_queue(&mut self) {
        self.queue.pending.clear();
        self.queue.in_flight = None;
        self.queue.sent = 0;
    }
}

impl FakeHomeserver {
    /// The transaction that waits to be sent, its id and body; the same again until it is settled.
    pub(crate) fn next_transaction(&self) -> Option<(String, Value)> {
        self.lock().next()
    }

    /// Says that the transaction in flight was taken.
    pub(crate) fn settle_transaction(&self) {
        self.lock().queue.in_flight = None;
    }

    /// How many events wait, those in flight included.
    pub(crate) fn waiting(&self) -> usize {
        let queue = &self.lock().queue;
        queue.pending.len() + queue.in_flight.as_ref().map_or(0, |flight| flight.events.len())
    }

    /// Loses everything that waits and begins counting transactions anew, as a Synapse restart does.
    pub(crate) fn lose_queue(&self) {
        self.lock().lose_queue();
    }

    /// Counts transactions from one again.
    pub(crate) fn reset_transaction_ids(&self) {
        self.lock().queue.sent = 0;
    }

    /// Connects the appservice, for pings and [`Self::pump`]; `None` while it is away.
    pub(crate) fn connect(&self, router: Option<axum::Router>) {
        self.lock().queue.router = router;
        self.queued.notify_one();
    }

    /// Asks the connected appservice anything, with the homeserver's token: status and body.
    pub(crate) async fn ask_appservice(&self, method: &str, path: &str, body: &Value) -> (u16, Vec<u8>) {
        let router = self.lock().queue.router.clone();
        self.put(router.expect("the appservice is connected"), method, path, body).await
    }

    /// Whether it keeps its transactions to itself; what comes meanwhile waits.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.lock().queue.silent = silent;
        self.queued.notify_one();
    }

    /// Sends one transaction to the appservice's router, if one waits.
    pub(crate) async fn push_to(&self, router: axum::Router) -> Pushed {
        let Some((txn, body)) = self.next_transaction() else { return Pushed::Idle };
        let count = body["events"].as_array().map_or(0, Vec::len);
        let path = format!("/_matrix/app/v1/transactions/{txn}");
        let (status, answer) = self.put(router, "PUT", &path, &body).await;
        let taken = match self.lock().setup.flavour {
            Flavour::Synapse => {
                (200..300).contains(&status) && serde_json::from_slice::<Value>(&answer).is_ok()
            }
            Flavour::Conduit => (200..300).contains(&status),
        };
        if !taken {
            return Pushed::Refused(status);
        }
        let queue = &mut self.lock().queue;
        if queue.in_flight.as_ref().is_some_and(|flight| flight.txn == txn) {
            queue.in_flight = None;
        }
        Pushed::Taken(count)
    }

    /// Sends transactions until none waits or one is refused: the number of events taken.
    pub(crate) async fn drain_to(&self, router: &axum::Router) -> usize {
        let mut taken = 0;
        while let Pushed::Taken(count) = self.push_to(router.clone()).await {
            taken += count;
        }
        taken
    }

    /// Delivers to the connected appservice for as long as it is polled, with the flavour's own retries: Synapse
    /// after 2, 4, 8 … s or at once by a ping, Conduit when a new event comes 30·n² s after the n-th failure.
    pub(crate) async fn pump(&self) {
        let (mut failures, mut not_before) = (0_u32, tokio::time::Instant::now());
        loop {
            let waits =
                self.lock().setup.flavour == Flavour::Conduit && tokio::time::Instant::now() < not_before;
            let waits = waits || self.lock().queue.silent;
            let router = self.lock().queue.router.clone().filter(|_| !waits);
            let outcome = match router {
                Some(router) => self.push_to(router).await,
                None if self.waiting() == 0 || waits => Pushed::Idle,
                None => Pushed::Refused(0),
            };
            match outcome {
                Pushed::Taken(_) => failures = 0,
                Pushed::Idle => self.queued.notified().await,
                Pushed::Refused(_) => {
                    failures += 1;
                    self.wait_for_retry(failures, &mut not_before).await;
                }
            }
        }
    }

    async fn wait_for_retry(&self, failures: u32, not_before: &mut tokio::time::Instant) {
        match self.setup().flavour {
            Flavour::Synapse => {
                let delay = Duration::from_secs(2_u64.saturating_pow(failures.min(9)).min(512));
                let _: Result<(), _> = tokio::time::timeout(delay, self.pinged.notified()).await;
            }
            Flavour::Conduit => {
                let delay = Duration::from_secs(30 * u64::from(failures) * u64::from(failures));
                *not_before = tokio::time::Instant::now() + delay;
                self.queued.notified().await;
            }
        }
    }

    /// The transaction id of a request that asks for a ping.
    pub(super) fn ping_of(&self, request: &::http::Request<Vec<u8>>) -> Option<(String, String)> {
        let ask = Ask::read(request);
        let path: Vec<&str> = ask.path.iter().map(String::as_str).collect();
        let ["client", "v1", "appservice", id, "ping"] = path.as_slice() else { return None };
        let txn = ask.json().ok().and_then(|body| body["transaction_id"].as_str().map(str::to_owned));
        Some(((*id).to_owned(), txn.unwrap_or_default()))
    }

    /// Pings the connected appservice on its behalf.
    pub(super) async fn answer_ping(
        &self,
        (id, txn): (String, String),
    ) -> Result<::http::Response<Bytes>, TransportError> {
        self.pinged.notify_one();
        let seen = Seen { method: "POST", path: "/_matrix/client/v1/appservice/ping", body: "" };
        if let Some(Fault::Answer(status, body)) = self.lock().faults.meet(&seen) {
            return Ok(respond(status, body));
        }
        let (flavour, known, router) = {
            let state = self.lock();
            (state.setup.flavour, state.setup.appservice.clone(), state.queue.router.clone())
        };
        let refused = |refusal: super::http::Refusal| Ok(respond(refusal.status, refusal.body(flavour)));
        if id != known {
            return refused(no(
                403,
                "M_FORBIDDEN",
                "Mismatching application service IDs in path and access token",
            ));
        }
        let unreachable = || no(502, "M_CONNECTION_FAILED", "Failed to connect to application service");
        let Some(router) = router else { return refused(unreachable()) };
        let body = json!({ "transaction_id": txn });
        let (status, _) = self.put(router, "POST", "/_matrix/app/v1/ping", &body).await;
        if status != 200 {
            return refused(no(502, "M_BAD_STATUS", format!("Application service answered {status}")));
        }
        Ok(respond(200, json!({ "duration_ms": 1 }).to_string()))
    }

    async fn put(&self, router: axum::Router, method: &str, path: &str, body: &Value) -> (u16, Vec<u8>) {
        let setup = self.setup();
        let and = if path.contains('?') { '&' } else { '?' };
        let uri = match setup.flavour {
            Flavour::Synapse => path.to_owned(),
            Flavour::Conduit => format!("{path}{and}access_token={}", setup.hs_token),
        };
        let request = ::http::Request::builder()
            .method(method)
            .uri(uri)
            .header("authorization", format!("Bearer {}", setup.hs_token))
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .expect("a request of plain parts");
        let answer = match router.oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), ANSWER_MAX).await.unwrap_or_default();
        (status, body.to_vec())
    }
}
