//! What another process of ours asks the running bridge: it stands at the ear's address, and carries hs_token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::answer::{Refusal, json};
use super::{Answered, Hearing, body_of, token};
use crate::homeserver::client::Transport;

/// Where the ledger is asked for, with `?since=` in milliseconds since 1970.
pub(super) const LEDGER: &str = "/_persona_bridge/ledger";
/// Where operators' orders are taken, a JSON object each.
pub(super) const ORDER: &str = "/_persona_bridge/order";

/// Reads the ledger from a time on (milliseconds since 1970); blocks, and tells what went wrong.
pub type Ledger = Arc<dyn Fn(u64) -> Result<Value, String> + Send + Sync>;

/// Carries out an order and tells what follows, or why it cannot be.
pub type Orders = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

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

/// Carries out an order.
pub(super) async fn order(State(hearing): State<Hearing>, request: Request) -> Answered {
    token::check(&hearing.ear.hs_token, request.headers(), request.uri())?;
    let body = body_of(request).await?;
    let order = serde_json::from_slice(&body).map_err(|_| Refusal::NotJson)?;
    Ok(match (hearing.ear.orders)(order).await {
        Ok(follows) => json(StatusCode::OK, &follows),
        Err(error) => {
            json(StatusCode::CONFLICT, &serde_json::json!({ "errcode": "M_UNKNOWN", "error": error }))
        }
    })
}

/// The bridge that runs at an address, as another process of ours sees it.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// How it is called.
    pub transport: &'a dyn Transport,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The token of the homeserver.
    pub hs_token: &'a str,
}

impl Running<'_> {
    /// Asks for the ledger from a time on.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub async fn ledger(&self, since: u64) -> Result<Value, String> {
        self.call("GET", &format!("{LEDGER}?since={since}"), Vec::new()).await
    }

    /// Gives an order; the answer is what follows.
    ///
    /// # Errors
    /// Why it is not carried out, in words.
    pub async fn order(&self, order: &Value) -> Result<Value, String> {
        self.call("POST", ORDER, order.to_string().into_bytes()).await
    }

    /// Whether it is ready, else the reasons; none where something else answers.
    pub async fn ready(&self) -> Option<Result<(), Vec<String>>> {
        let request = http::Request::get(format!("http://{}/ready", self.listen)).body(Vec::new()).ok()?;
        let answer = self.transport.call(request).await.ok()?;
        let body: Value = serde_json::from_slice(answer.body()).ok()?;
        if body["ok"].as_bool()? {
            return Some(Ok(()));
        }
        let reasons = body["reasons"].as_array()?.iter();
        Some(Err(reasons.filter_map(|reason| Some(reason.as_str()?.to_owned())).collect()))
    }

    async fn call(&self, method: &str, path: &str, body: Vec<u8>) -> Result<Value, String> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.listen))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.hs_token))
            .body(body)
            .map_err(|error| error.to_string())?;
        let response = self.transport.call(request).await.map_err(|error| error.to_string())?;
        let answer: Option<Value> = serde_json::from_slice(response.body()).ok();
        match (response.status(), answer) {
            (StatusCode::OK, answer) => answer.ok_or_else(|| "its answer is no JSON".to_owned()),
            (status, answer) => {
                let told = answer.and_then(|answer| Some(answer["error"].as_str()?.to_owned()));
                Err(told.unwrap_or_else(|| format!("it answered with status {}", status.as_u16())))
            }
        }
    }
}
