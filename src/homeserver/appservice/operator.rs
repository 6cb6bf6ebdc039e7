//! What another process of ours asks the running bridge: it stands at the ear's address, and carries hs_token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use serde_json::Value;

use super::answer::{Refusal, json};
use super::{Answered, Hearing, token};
use crate::homeserver::client::Transport;

/// Where the ledger is asked for, with `?since=` in milliseconds since 1970.
pub(super) const LEDGER: &str = "/_persona_bridge/ledger";

/// Reads the ledger from a time on (milliseconds since 1970); blocks, and tells what went wrong.
pub type Ledger = Arc<dyn Fn(u64) -> Result<Value, String> + Send + Sync>;

/// From when on.
#[derive(serde::Deserialize)]
pub(super) struct Since {
    #[serde(default)]
    since: u64,
}

/// Answers with the ledger's entries.
pub(super) async fn ledger(
    State(hearing): State<Hearing>,
    Query(Since { since }): Query<Since>,
    headers: HeaderMap,
    uri: Uri,
) -> Answered {
    token::check(&hearing.ear.hs_token, &headers, &uri)?;
    let read = hearing.ear.ledger.clone();
    match tokio::task::spawn_blocking(move || read(since)).await {
        Ok(Ok(entries)) => Ok(json(StatusCode::OK, &entries)),
        Ok(Err(_)) | Err(_) => Err(Refusal::Unreadable),
    }
}

/// Asks the bridge that runs at this address for its ledger.
///
/// # Errors
/// Why there is none, in words.
pub async fn ask_ledger(
    transport: &dyn Transport,
    listen: SocketAddr,
    hs_token: &str,
    since: u64,
) -> Result<Value, String> {
    let request = http::Request::get(format!("http://{listen}{LEDGER}?since={since}"))
        .header(header::AUTHORIZATION, format!("Bearer {hs_token}"))
        .body(Vec::new())
        .map_err(|error| error.to_string())?;
    let response = transport.call(request).await.map_err(|error| error.to_string())?;
    if response.status() != StatusCode::OK {
        return Err(format!("it answered with status {}", response.status().as_u16()));
    }
    serde_json::from_slice(response.body()).map_err(|_| "its answer is no JSON".to_owned())
}
