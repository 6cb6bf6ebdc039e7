//! A homeserver of which only what the doctor asks is there, and which can be given faults.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::servers::Appservice;

/// A call that is answered otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    path: &'static str,
    status: u16,
    body: &'static str,
    once: bool,
}

/// Calls whose path and query contain `path` are answered so; `COUNT` in the body is a number of its own.
pub(crate) fn fault(path: &'static str, status: u16, body: &'static str) -> Fault {
    Fault { path, status, body, once: false }
}

impl Fault {
    /// Only the first such call.
    pub(crate) fn once(mut self) -> Self {
        self.once = true;
        self
    }
}

/// The homeserver; it ends with the test's runtime.
pub(crate) struct Stub {
    /// Its address.
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    appservice: Appservice,
    faults: Mutex<Vec<Fault>>,
    calls: Mutex<Vec<String>>,
}

impl Stub {
    pub(crate) async fn start(appservice: &Appservice, faults: Vec<Fault>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (faults, calls) = (Mutex::new(faults), Mutex::default());
        let shared = Arc::new(Shared { appservice: appservice.clone(), faults, calls });
        let router = axum::Router::new().fallback(answer).with_state(Arc::clone(&shared));
        #[expect(clippy::disallowed_methods, reason = "the stub lives beside the test")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    /// How many calls had this in their path.
    pub(crate) fn calls(&self, path: &str) -> usize {
        self.shared.calls.lock().unwrap().iter().filter(|call| call.contains(path)).count()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let call = request.uri().to_string().replace("%40", "@").replace("%3A", ":");
    let count = {
        let mut calls = shared.calls.lock().unwrap();
        calls.push(call.clone());
        calls.len()
    };
    if let Some((status, body)) = fault_for(&shared, &call) {
        return reply(status, body.replace("COUNT", &count.to_string()));
    }
    let path = call.split('?').next().unwrap_or_default();
    let answer = match path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default() {
        "versions" => json!({"versions": ["v1.1", "v1.7", "v1.12"]}),
        "whoami" => return whoami(&call),
        "ping" => return ping(&shared.appservice).await,
        "createRoom" => return reply(400, json!({"errcode": "M_ROOM_IN_USE", "error": "taken"}).to_string()),
        _ if path.contains("/directory/room/") => json!({"room_id": "!scratch:hs.test", "servers": []}),
        _ if path.contains("/send/") => json!({"event_id": "$one"}),
        _ if path.contains("/login") => {
            json!({"user_id": "@persona-bridge:hs.test", "access_token": "own", "device_id": "DOCTOR"})
        }
        _ => json!({}),
    };
    reply(200, answer.to_string())
}

fn fault_for(shared: &Shared, call: &str) -> Option<(u16, String)> {
    let mut faults = shared.faults.lock().unwrap();
    let at = faults.iter().position(|fault| call.contains(fault.path))?;
    let fault = if faults[at].once { faults.remove(at) } else { faults[at].clone() };
    Some((fault.status, fault.body.to_owned()))
}

/// The bot is registered, Personas are not; the device is echoed.
fn whoami(call: &str) -> Response {
    let query = call.split_once('?').map_or("", |(_, query)| query);
    let field = |name: &str| {
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    let user = field("user_id").unwrap_or_else(|| "@persona-bridge:hs.test".into());
    if user.starts_with("@persona_") {
        let error = format!("Application service has not registered this user ({user})");
        return reply(403, json!({"errcode": "M_FORBIDDEN", "error": error}).to_string());
    }
    let mut answer = json!({"user_id": user, "is_guest": false});
    if let Some(device) = field("device_id") {
        answer["device_id"] = Value::String(device);
    }
    reply(200, answer.to_string())
}

/// Pings back, and says what Synapse says of a bad answer.
async fn ping(appservice: &Appservice) -> Response {
    let url = format!("http://127.0.0.1:{}/_matrix/app/v1/ping", appservice.port);
    let call = reqwest::Client::new().post(url).bearer_auth(&appservice.hs_token).body("{}").send().await;
    let status = call.map(|answer| answer.status());
    let (status, errcode, error) = match status {
        Ok(status) if status.is_success() => return reply(200, r#"{"duration_ms":1}"#.into()),
        Ok(status) => (502, "M_BAD_STATUS", format!("HTTP {status}")),
        Err(_) => (502, "M_CONNECTION_FAILED", "ConnectionRefusedError: Connection refused".into()),
    };
    reply(status, json!({"errcode": errcode, "error": error}).to_string())
}

fn reply(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/json")], Bytes::from(body)).into_response()
}
