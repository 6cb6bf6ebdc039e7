//! The mouth: calls to the homeserver, as the bot or as a Persona.
//!
//! Every call is one HTTP request (a few verbs that read before they write, or page, make more); retrying is the
//! caller's business, and [`CallError`] says what a retry may hope for. Requests are ruma's; answers are read
//! leniently, only the fields that are needed. No token and no body reaches an error or a log line.
//!
//! One more verb is one more method in the file of its kind: `account`, `room`, `event` or `history`.

mod account;
mod call;
mod event;
mod history;
mod look;
mod mode;
mod room;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde_json::value::RawValue;
use url::Url;

pub use mode::probe_mode;
pub use transport::ReqwestTransport;

/// Carries one HTTP request to the homeserver and brings the answer; the seam for tests on virtual time.
pub trait Transport: Send + Sync + 'static {
    /// Carries one request (absolute URI).
    fn call(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;
}

/// Why no answer came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The request certainly did not arrive (connection refused, no such host).
    #[error("the homeserver cannot be reached: {0}")]
    NotSent(String),
    /// It may have arrived (time-out, connection cut).
    #[error("the homeserver gave no answer: {0}")]
    Uncertain(String),
}

/// A call that was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {kind:?} {errcode} {message}")]
pub struct CallError {
    /// The verb, e.g. `send`.
    pub call: &'static str,
    /// What a retry may hope for.
    pub kind: CallErrorKind,
    /// HTTP status, zero where there was none.
    pub status: u16,
    /// `errcode`, empty where there was none.
    pub errcode: String,
    /// The server's words, a Conduit `M_X: ` prefix removed.
    pub message: String,
}

/// What a retry may hope for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// It certainly did not arrive.
    NotSent,
    /// It may have taken effect.
    Uncertain,
    /// 429: again after this long.
    Limited(Duration),
    /// 401.
    Unauthorized,
    /// 403, and 400 that mean the same.
    Forbidden,
    /// 404.
    NotFound,
    /// 413 or Conduit's 400 for an event that is too large.
    TooLarge,
    /// 5xx; it may have taken effect.
    Server,
    /// Already so (`M_USER_IN_USE`, `M_ROOM_IN_USE`, `M_DUPLICATE_ANNOTATION`).
    Already,
    /// Any other refusal.
    Refused,
}

/// As whom a call is made.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: OwnedUserId,
    /// Her device, where masquerading takes one.
    pub device: Option<String>,
    /// Her own token; without it the appservice's token masquerades.
    pub token: Option<String>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("user", &self.user)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// How this homeserver lets ghosts speak; probed by whoami.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The appservice's token with `user_id` and `device_id` (Synapse).
    Masquerade,
    /// The ghost's own token from an appservice login (Conduit).
    Token,
}

/// One page of a room's history, raw, in the order asked for.
#[derive(Debug)]
pub struct Page {
    /// The events.
    pub events: Vec<Box<RawValue>>,
    /// Where the next page begins; none at the end.
    pub end: Option<String>,
}

/// The client; clones share it.
#[derive(Clone)]
pub struct Client {
    /// The seam.
    pub(crate) transport: Arc<dyn Transport>,
    /// The homeserver's URL.
    pub(crate) url: Url,
    /// The appservice's token.
    pub(crate) as_token: Arc<str>,
    /// Which run of ours this is.
    run: u64,
    /// How often it asked for a /sync.
    syncs: Arc<AtomicU64>,
}

/// The outcome of a call.
pub type Called<T> = Result<T, CallError>;

impl Client {
    /// The same client over its transport wrapped.
    pub fn through(self, wrap: impl FnOnce(Arc<dyn Transport>) -> Arc<dyn Transport>) -> Self {
        Self { transport: wrap(self.transport), ..self }
    }

    /// A client over a transport.
    pub fn new(transport: Arc<dyn Transport>, url: Url, as_token: Arc<str>) -> Self {
        Self { transport, url, as_token, run: 0, syncs: Arc::default() }
    }

    /// The same client for a run of the process, by a number that no run of the last minutes had (its start, in unix
    /// ms): homeservers repeat an answer of before to a question of before.
    #[must_use]
    pub fn for_run(self, run: u64) -> Self {
        Self { run, ..self }
    }
}

/// An invite that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingInvite {
    /// The room.
    pub room: OwnedRoomId,
    /// Who invited.
    pub sender: OwnedUserId,
    /// Whether the invite says it is a direct chat.
    pub is_direct: bool,
    /// The invite event, where the server tells its id.
    pub event: Option<OwnedEventId>,
}

/// A room to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateRoom {
    /// The alias without `#` and server.
    pub alias_localpart: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Whom to invite.
    pub invite: Vec<OwnedUserId>,
    /// Whether anyone may join.
    pub public: bool,
}
