//! From an HTTP request to the endpoint's function and back.

use bytes::Bytes;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::faults::{Fault, Seen};
use super::state::State;
use super::{FakeHomeserver, Flavour, TransportError};

/// A request taken apart.
pub(super) struct Ask {
    pub(super) method: String,
    /// The path below `/_matrix`, percent-decoded.
    pub(super) path: Vec<String>,
    pub(super) query: Vec<(String, String)>,
    pub(super) token: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Who asks.
pub(super) struct Caller {
    pub(super) user: String,
    pub(super) device: Option<String>,
    /// By the appservice's token.
    pub(super) masquerades: bool,
}

/// A refusal, in Synapse's words; Conduit's own where given.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) errcode: &'static str,
    pub(super) synapse: String,
    pub(super) conduit: &'static str,
    pub(super) retry_after: Option<u64>,
}

/// An endpoint's outcome.
pub(super) type Outcome = Result<Value, Refusal>;

pub(super) fn no(status: u16, errcode: &'static str, words: impl Into<String>) -> Refusal {
    Refusal { status, errcode, synapse: words.into(), conduit: "", retry_after: None }
}

/// What Conduit answers where its handler panics.
pub(super) fn panicked() -> Refusal {
    no(500, "", "")
}

impl Refusal {
    pub(super) fn or_conduit(mut self, words: &'static str) -> Self {
        self.conduit = words;
        self
    }

    pub(super) fn body(&self, flavour: Flavour) -> String {
        if self.errcode.is_empty() {
            return self.synapse.clone();
        }
        let words = match (flavour, self.conduit) {
            (Flavour::Synapse, _) => self.synapse.clone(),
            (Flavour::Conduit, "") => format!("{}: {}", self.errcode, self.synapse),
            (Flavour::Conduit, words) => format!("{}: {words}", self.errcode),
        };
        let mut body = json!({ "errcode": self.errcode, "error": words });
        if let Some(ms) = self.retry_after {
            body["retry_after_ms"] = json!(ms);
        }
        body.to_string()
    }
}

impl FakeHomeserver {
    /// Takes one request, faults included.
    pub(super) fn take(
        &self,
        request: &::http::Request<Vec<u8>>,
    ) -> Result<::http::Response<Bytes>, TransportError> {
        let ask = Ask::read(request);
        let mut state = self.lock();
        let path = format!("/_matrix/{}", ask.path.join("/"));
        state.requests.push(format!("{} {path}", ask.method));
        let body = String::from_utf8_lossy(&ask.body).into_owned();
        let fault = state.faults.meet(&Seen { method: &ask.method, path: &path, body: &body });
        let lost = || Err(TransportError::Uncertain("the connection was cut".to_owned()));
        match fault {
            None => Ok(state.answer(&ask)),
            Some(Fault::Down) => Err(TransportError::NotSent("connection refused".to_owned())),
            Some(Fault::CutBefore) => lost(),
            Some(Fault::CutAfter) => {
                state.answer(&ask);
                lost()
            }
            Some(Fault::CutAfterForgetting) => {
                let known = state.sent.clone();
                state.answer(&ask);
                state.sent = known;
                lost()
            }
            Some(Fault::Limited(delay)) => Ok(limited(state.setup.flavour, delay)),
            Some(Fault::Answer(status, body)) => Ok(respond(status, body)),
        }
    }
}

fn limited(flavour: Flavour, delay: std::time::Duration) -> ::http::Response<Bytes> {
    let mut refusal = no(429, "M_LIMIT_EXCEEDED", "Too Many Requests");
    refusal.retry_after = u64::try_from(delay.as_millis()).ok();
    respond(429, refusal.body(flavour))
}

pub(super) fn respond(status: u16, body: String) -> ::http::Response<Bytes> {
    let mut response = ::http::Response::new(Bytes::from(body));
    *response.status_mut() = ::http::StatusCode::from_u16(status).expect("a status the test chose");
    response.headers_mut().insert("content-type", ::http::HeaderValue::from_static("application/json"));
    response
}

impl Ask {
    pub(super) fn read(request: &::http::Request<Vec<u8>>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let bearer = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
        let in_query = query.iter().find(|(key, _)| key == "access_token").map(|(_, token)| token.clone());
        let path = request.uri().path().split('/').skip(2).map(decode).collect();
        let method = request.method().to_string();
        Self { method, path, query, token: bearer.or(in_query), body: request.body().clone() }
    }

    pub(super) fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> Outcome {
        serde_json::from_slice(&self.body).map_err(|_| no(400, "M_NOT_JSON", "Content not JSON."))
    }
}

fn decode(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl State {
    /// Answers one request.
    fn answer(&mut self, ask: &Ask) -> ::http::Response<Bytes> {
        let flavour = self.setup.flavour;
        match self.route(ask) {
            Ok(body) => respond(200, body.to_string()),
            Err(refusal) => respond(refusal.status, refusal.body(flavour)),
        }
    }

    /// Finds the endpoint.
    fn route(&mut self, ask: &Ask) -> Outcome {
        let path: Vec<&str> = ask.path.iter().map(String::as_str).collect();
        match (ask.method.as_str(), path.as_slice()) {
            ("GET", ["client", "versions"]) => return Ok(json!({ "versions": ["v1.1", "v1.11"] })),
            ("POST", ["client", "v3", "register"]) => return self.register(ask),
            ("POST", ["client", "v3", "login"]) => return self.login(ask),
            _ => {}
        }
        let caller = self.caller(ask)?;
        match (ask.method.as_str(), path.as_slice()) {
            ("GET", ["client", "v3", "account", "whoami"]) => Ok(self.whoami(&caller)),
            ("PUT", ["client", "v3", "devices", device]) => self.put_device(&caller, device),
            (method, ["client", "v3", "profile", user, field]) => {
                self.profile(method, ask, &caller, user, field)
            }
            (method, ["client", "v3", "user", user, "account_data", kind]) => {
                self.account_data(method, ask, &caller, user, kind)
            }
            ("POST", ["media", "v3", "upload"]) => Ok(self.upload()),
            ("GET", ["client", "v3", "directory", "room", alias]) => self.resolve(alias),
            ("POST", ["client", "v3", "createRoom"]) => self.create_room(ask, &caller),
            ("POST", ["client", "v3", "join", room] | ["client", "v3", "rooms", room, "join"]) => {
                self.join(&caller, room)
            }
            ("GET", ["client", "v3", "joined_rooms"]) => Ok(self.joined_rooms(&caller)),
            ("GET", ["client", "v3", "sync"]) => self.sync(ask, &caller),
            (method, ["client", "v3", "rooms", room, rest @ ..]) => {
                self.route_room(method, ask, &caller, room, rest)
            }
            _ => Err(no(404, "M_UNRECOGNIZED", "Unrecognized request")),
        }
    }

    fn route_room(&mut self, method: &str, ask: &Ask, caller: &Caller, room: &str, rest: &[&str]) -> Outcome {
        match (method, rest) {
            ("POST", ["leave"]) => self.leave(ask, caller, room),
            ("POST", ["invite"]) => self.invite(ask, caller, room),
            ("PUT", ["send", kind, txn]) => self.send(ask, caller, room, kind, txn),
            ("PUT", ["state", kind, key]) => self.send_state(ask, caller, room, kind, key),
            ("GET", ["state", kind, key]) => self.read_state(caller, room, kind, key),
            ("PUT", ["typing", user]) => self.set_typing(ask, caller, room, user),
            ("POST", ["receipt", "m.read", event]) => {
                self.receipts.push((room.to_owned(), caller.user.clone(), (*event).to_owned()));
                Ok(json!({}))
            }
            ("GET", ["joined_members"]) => self.joined_members(caller, room),
            ("GET", ["messages"]) => self.messages(ask, caller, room),
            ("GET", ["context", event]) => self.context(caller, room, event),
            _ => Err(no(404, "M_UNRECOGNIZED", "Unrecognized request")),
        }
    }
}
