//! A homeserver in memory: rooms, people, ghosts, transactions to the appservice and every fault a real one has.
//!
//! It behaves as Synapse or Conduit were measured to behave, each with its own errors, tokens and idempotency. It is
//! deterministic (ids from counters, time from a clock that the test sets) and needs no sockets: it is a
//! [`Transport`]. To teach it one more endpoint, add an arm to `route` and a function to the file of its kind.

mod account;
mod faults;
mod http;
mod people;
mod queue;
mod read;
mod rooms;
mod send;
mod serve;
mod state;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use persona_bridge::homeserver::client::{Client, Transport, TransportError};
use tokio::sync::Notify;

pub(crate) use faults::{Fault, Seen};
pub(crate) use people::TestUser;
pub(crate) use queue::Pushed;
pub(crate) use serve::serve;
pub(crate) use state::{Event, Membership};

use state::State;

/// Which homeserver it behaves like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Device masquerading, transaction ids by room and device, a queue in memory.
    Synapse,
    /// Own tokens, transaction ids by user and device, a durable queue without a timer.
    Conduit,
}

/// What the homeserver knows of the appservice.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Which homeserver it behaves like.
    pub(crate) flavour: Flavour,
    /// Its name.
    pub(crate) server_name: String,
    /// The appservice's id.
    pub(crate) appservice: String,
    /// The appservice's token.
    pub(crate) as_token: String,
    /// The homeserver's token at the appservice.
    pub(crate) hs_token: String,
    /// The bot's localpart.
    pub(crate) bot: String,
    /// The prefix of ghosts and aliases in the exclusive namespaces.
    pub(crate) user_prefix: String,
}

impl Setup {
    /// The set-up that most tests use: server `hs.test`, bot `persona-bridge`, prefix `persona_`.
    pub(crate) fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            server_name: "hs.test".to_owned(),
            appservice: "persona-bridge".to_owned(),
            as_token: "as_secret".to_owned(),
            hs_token: "hs_secret".to_owned(),
            bot: "persona-bridge".to_owned(),
            user_prefix: "persona_".to_owned(),
        }
    }
}

/// The homeserver; clones share its state.
#[derive(Clone)]
pub(crate) struct FakeHomeserver {
    state: Arc<Mutex<State>>,
    /// Told whenever the outgoing queue may have grown.
    queued: Arc<Notify>,
    /// Told whenever the appservice asked for a ping, which ends Synapse's wait.
    pinged: Arc<Notify>,
}

impl FakeHomeserver {
    /// A fresh homeserver with the usual set-up.
    pub(crate) fn new(flavour: Flavour) -> Self {
        Self::with(Setup::new(flavour))
    }

    /// A fresh homeserver.
    pub(crate) fn with(setup: Setup) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(setup))),
            queued: Arc::default(),
            pinged: Arc::default(),
        }
    }

    /// A client of the appservice that calls in memory.
    pub(crate) fn client(&self) -> Client {
        let as_token = self.lock().setup.as_token.as_str().into();
        let url = "http://homeserver.invalid".parse().expect("a fixed URL");
        Client::new(Arc::new(self.clone()), url, as_token)
    }

    /// What it knows of the appservice.
    pub(crate) fn setup(&self) -> Setup {
        self.lock().setup.clone()
    }

    /// Lets event times come from the test's clock, in unix ms.
    pub(crate) fn set_clock(&self, clock: impl Fn() -> u64 + Send + Sync + 'static) {
        self.lock().clock = Some(Arc::new(clock));
    }

    /// The events of a room in order.
    pub(crate) fn timeline(&self, room: &str) -> Vec<Event> {
        self.lock().rooms.get(room).map(|room| room.events.clone()).unwrap_or_default()
    }

    /// The bodies of the unredacted messages that a user sent to a room, in order.
    pub(crate) fn bodies(&self, room: &str, sender: &str) -> Vec<String> {
        let said = |event: Event| event.content["body"].as_str().map(str::to_owned);
        let messages = self.timeline(room).into_iter();
        messages.filter(|e| e.kind == "m.room.message" && e.sender == sender).filter_map(said).collect()
    }

    /// The rooms that a user is joined to.
    pub(crate) fn rooms_of(&self, user: &str) -> Vec<String> {
        let state = self.lock();
        state.rooms.iter().filter(|(_, room)| room.is_joined(user)).map(|(id, _)| id.clone()).collect()
    }

    /// A user's membership in a room.
    pub(crate) fn membership(&self, room: &str, user: &str) -> Option<Membership> {
        self.lock().rooms.get(room)?.members.get(user).map(|member| member.membership)
    }

    /// The room of an alias.
    pub(crate) fn alias(&self, alias: &str) -> Option<String> {
        self.lock().aliases.get(alias).cloned()
    }

    /// An alias leads nowhere any more.
    pub(crate) fn forget_alias(&self, alias: &str) {
        self.lock().aliases.remove(alias);
    }

    /// The content of a room's current state event.
    pub(crate) fn state_of(&self, room: &str, kind: &str, key: &str) -> Option<serde_json::Value> {
        self.lock().rooms.get(room)?.state_event(kind, key).map(|event| event.content.clone())
    }

    /// A user's display name.
    pub(crate) fn display_name(&self, user: &str) -> Option<String> {
        self.lock().users.get(user)?.profile.get("displayname").cloned()
    }

    /// A field of a user's profile.
    pub(crate) fn profile_of(&self, user: &str, field: &str) -> Option<String> {
        self.lock().users.get(user)?.profile.get(field).cloned()
    }

    /// Sets a field of a user's profile, as an admin does.
    pub(crate) fn set_profile(&self, user: &str, field: &str, value: &str) {
        let mut home = self.lock();
        let known = home.users.get_mut(user).expect("a known user");
        known.profile.insert(field.to_owned(), value.to_owned());
    }

    /// Every typing notice: room, user, whether it was on.
    pub(crate) fn typing(&self) -> Vec<(String, String, bool)> {
        self.lock().typing.clone()
    }

    /// Every read receipt: room, user, event.
    pub(crate) fn receipts(&self) -> Vec<(String, String, String)> {
        self.lock().receipts.clone()
    }

    /// A user's global account data of one type.
    pub(crate) fn account_data(&self, user: &str, kind: &str) -> Option<serde_json::Value> {
        self.lock().users.get(user)?.account_data.get(kind).cloned()
    }

    /// Every request that arrived, as `METHOD path` without query.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the homeserver")
    }
}

impl Transport for FakeHomeserver {
    fn call(
        &self,
        request: ::http::Request<Vec<u8>>,
    ) -> BoxFuture<'_, Result<::http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let latency = self.lock().faults.latency;
            pause(latency / 2).await;
            let down = self.lock().faults.down;
            let outcome = match self.ping_of(&request) {
                Some(txn) if !down => self.answer_ping(txn).await,
                _ => self.take(&request),
            };
            self.queued.notify_one();
            pause(latency / 2).await;
            outcome
        })
    }
}

async fn pause(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
