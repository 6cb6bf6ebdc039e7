//! The ear: the endpoints a homeserver calls.
//!
//! Every answer has a JSON body, also refusals, and a token never reaches a log. It never judges an event and never
//! answers 200 on its own: a transaction is taken by whoever stands behind [`Ear::transactions`]. A new endpoint is
//! a route in [`router`] whose handler checks the token first.

mod answer;
mod envelope;
mod flight;
mod operator;
#[cfg(test)]
mod tests;
mod token;

use std::future::Future;
use std::sync::Arc;

use axum::RequestExt;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post, put};
use axum::serve::ListenerExt;
use ruma::OwnedUserId;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

use self::answer::{Refusal, done, json};
use self::flight::Flights;
pub use self::operator::{Ledger, Orders, Running};

use super::event::Unreadable;
use crate::conversation::{Event, Typing};

/// A transaction on its way to the store.
#[derive(Debug)]
pub struct Received {
    /// The transaction id, for logs.
    pub txn: String,
    /// Its events in order.
    pub events: Vec<Event>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Who types, where the registration asks for it.
    pub typing: Vec<Typing>,
    /// Where the answer goes; dropped without one the call is answered 503.
    pub answer: oneshot::Sender<Answer>,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is durable: 200 `{}`.
    Taken,
    /// The store must not be written: 503.
    Full,
}

/// Makes the figures that /stats shows; they hold counts alone.
pub type Stats = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

/// What the ear needs to know.
#[derive(Clone)]
pub struct Ear {
    /// The token of the homeserver.
    pub hs_token: Arc<str>,
    /// Where transactions go.
    pub transactions: mpsc::Sender<Received>,
    /// The users that exist (bot and Personas).
    pub users: Arc<[OwnedUserId]>,
    /// Readiness: `Ok` or the reasons why not; shown by /ready.
    pub ready: watch::Receiver<Result<(), Vec<String>>>,
    /// What /stats shows.
    pub stats: Stats,
    /// The ledger, for our own command.
    pub ledger: Ledger,
    /// Who carries out what our own commands order.
    pub orders: Orders,
    /// Told of each ping's transaction id.
    pub pings: mpsc::Sender<Option<String>>,
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ear").field("users", &self.users).finish_non_exhaustive()
    }
}

/// The most bytes a transaction may have; Synapse puts up to 100 events and 200 other things into one.
const BODY_MAX: usize = 64 * 1024 * 1024;

/// Serves the ear's endpoints on a listener until `stop` resolves and the calls in hand are answered.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    ear: Ear,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps Nagle's delay");
        }
    });
    axum::serve(listener, router(ear)).with_graceful_shutdown(stop).await
}

/// The router of all endpoints: transactions (64 MiB at most), users, rooms, ping, /live, /ready, /stats and the mau twins.
pub fn router(ear: Ear) -> Router {
    let homeserver = Router::new()
        .route("/transactions/{txn}", put(transaction))
        .route("/users/{user}", get(user))
        .route("/rooms/{alias}", get(alias));
    let health =
        Router::new().route("/live", get(live)).route("/ready", get(ready)).route("/stats", get(stats));
    Router::new()
        .nest("/_matrix/app/v1", homeserver.clone().route("/ping", post(ping)))
        .nest("/_matrix/mau", health.clone())
        .merge(homeserver)
        .merge(health)
        .route(operator::LEDGER, get(operator::ledger))
        .route(operator::ORDER, post(operator::order))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(Hearing { ear, flights: Flights::default() })
}

/// What the handlers share.
#[derive(Clone)]
struct Hearing {
    ear: Ear,
    flights: Flights,
}

/// An endpoint's answer.
type Answered = Result<Response, Refusal>;

async fn transaction(State(hearing): State<Hearing>, txn: PathPart, request: Request) -> Answered {
    token::check(&hearing.ear.hs_token, request.headers(), request.uri())?;
    let body = body_of(request).await?;
    let opened = envelope::open(&body).ok_or(Refusal::NotJson)?;
    drop(body);
    let txn = part(txn);
    tracing::debug!(txn, events = opened.events.len(), unreadable = opened.unreadable.len(), "transaction");
    match hearing.flights.join(&hearing.ear.transactions, txn, opened).await {
        Some(Answer::Taken) => Ok(done()),
        Some(Answer::Full) => Err(Refusal::Full),
        None => Err(Refusal::Stopping),
    }
}

async fn user(State(hearing): State<Hearing>, user: PathPart, headers: HeaderMap, uri: Uri) -> Answered {
    token::check(&hearing.ear.hs_token, &headers, &uri)?;
    let user = part(user);
    if hearing.ear.users.iter().any(|known| *known == user) { Ok(done()) } else { Err(Refusal::NoUser) }
}

/// Asked only about aliases that do not exist: our rooms are made at start, never by a query.
async fn alias(State(hearing): State<Hearing>, headers: HeaderMap, uri: Uri) -> Answered {
    token::check(&hearing.ear.hs_token, &headers, &uri)?;
    Err(Refusal::NoRoom)
}

async fn ping(State(hearing): State<Hearing>, request: Request) -> Answered {
    token::check(&hearing.ear.hs_token, request.headers(), request.uri())?;
    let body = body_of(request).await?;
    if hearing.ear.pings.try_send(envelope::ping(&body)).is_err() {
        tracing::debug!("nobody waits for this ping");
    }
    Ok(done())
}

async fn live() -> Response {
    json(StatusCode::OK, &serde_json::json!({"ok": true}))
}

async fn ready(State(hearing): State<Hearing>) -> Response {
    match &*hearing.ear.ready.borrow() {
        Ok(()) => json(StatusCode::OK, &serde_json::json!({"ok": true})),
        Err(reasons) => {
            json(StatusCode::SERVICE_UNAVAILABLE, &serde_json::json!({"ok": false, "reasons": reasons}))
        }
    }
}

async fn stats(State(hearing): State<Hearing>) -> Response {
    json(StatusCode::OK, &(hearing.ear.stats)())
}

async fn unknown_path() -> Refusal {
    Refusal::NoEndpoint
}

async fn unknown_method() -> Refusal {
    Refusal::NoMethod
}

async fn body_of(request: Request) -> Result<Bytes, Refusal> {
    request.extract().await.map_err(|refusal: BytesRejection| match refusal.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::TooLarge,
        _ => Refusal::NotJson,
    })
}

/// The one variable part of a path, percent-decoded.
type PathPart = Result<Path<String>, PathRejection>;

/// The part as text; empty where it is no UTF-8, which names no user, room or transaction of ours.
fn part(path: PathPart) -> String {
    path.map(|Path(part)| part).unwrap_or_default()
}
