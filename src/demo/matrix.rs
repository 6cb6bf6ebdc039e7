//! The few client calls that the demo makes as an ordinary user: JSON over HTTP and no more.

use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

/// A user's (or nobody's) client; clones share its connections.
#[derive(Clone)]
pub struct Matrix {
    http: reqwest::Client,
    url: Url,
    token: Option<String>,
}

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallFault {
    /// The server answered with an error.
    #[error("the homeserver answered {status} {errcode} {message}")]
    Answered {
        /// HTTP status.
        status: u16,
        /// `errcode`, empty where there was none.
        errcode: String,
        /// The server's words.
        message: String,
        /// The whole answer.
        body: Box<Value>,
    },
    /// There was no answer.
    #[error("the homeserver at {url} gave no answer: {source}")]
    Unanswered {
        /// Where.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The answer lacks what it must have.
    #[error("the homeserver's answer has no {0}")]
    Incomplete(&'static str),
}

/// A user who has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The full user id.
    pub user_id: String,
    /// The access token.
    pub access_token: String,
}

impl CallFault {
    /// Whether the server answered with this `errcode`.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Answered { errcode, .. } if errcode == code)
    }
}

impl Matrix {
    /// A client of the homeserver at `url` that is not logged in.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new(url: Url) -> Result<Self, CallFault> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(90))
            .build()
            .map_err(|source| CallFault::Unanswered { url: url.to_string(), source })?;
        Ok(Self { http, url, token: None })
    }

    /// The same client with a user's token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The homeserver's URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// GET.
    ///
    /// # Errors
    /// As [`CallFault`] says.
    pub async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, CallFault> {
        self.call(http::Method::GET, path, query, None).await
    }

    /// POST with a JSON body.
    ///
    /// # Errors
    /// As [`CallFault`] says.
    pub async fn post(&self, path: &[&str], body: &Value) -> Result<Value, CallFault> {
        self.call(http::Method::POST, path, &[], Some(body)).await
    }

    /// PUT with a JSON body.
    ///
    /// # Errors
    /// As [`CallFault`] says.
    pub async fn put(&self, path: &[&str], body: &Value) -> Result<Value, CallFault> {
        self.call(http::Method::PUT, path, &[], Some(body)).await
    }

    /// Whether a page of what listens there is a success, and what it says if not.
    pub async fn page(&self, page: &str) -> Result<(), String> {
        let mut url = self.url.clone();
        url.set_path(page);
        let answer = self.http.get(url).send().await.map_err(|error| error.without_url().to_string())?;
        if answer.status().is_success() { Ok(()) } else { Err(answer.text().await.unwrap_or_default()) }
    }

    async fn call(
        &self,
        method: http::Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, CallFault> {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("_matrix").push("client").extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let unanswered = |source: reqwest::Error| CallFault::Unanswered {
            url: self.url.to_string(),
            source: source.without_url(),
        };
        let answer = request.send().await.map_err(unanswered)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(unanswered)?;
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if status.is_success() { Ok(body) } else { Err(answered(status.as_u16(), body)) }
    }

    /// Registers an ordinary user and logs them in.
    ///
    /// # Errors
    /// The name is taken, or the server does not let anyone register.
    pub async fn register(&self, name: &str, password: &str) -> Result<Login, CallFault> {
        let mut body = json!({"username": name, "password": password});
        let path = ["v3", "register"];
        let answer = match self.post(&path, &body).await {
            Err(CallFault::Answered { status: 401, body: asked, .. }) => {
                body["auth"] = json!({"type": "m.login.dummy", "session": asked["session"]});
                self.post(&path, &body).await?
            }
            other => other?,
        };
        Login::read(&answer)
    }

    /// Logs an ordinary user in.
    ///
    /// # Errors
    /// No such user, or another password.
    pub async fn login(&self, name: &str, password: &str) -> Result<Login, CallFault> {
        let identifier = json!({"type": "m.id.user", "user": name});
        let body = json!({"type": "m.login.password", "identifier": identifier, "password": password});
        Login::read(&self.post(&["v3", "login"], &body).await?)
    }

    /// Joins a room by id or alias: its id.
    ///
    /// # Errors
    /// As [`CallFault`] says.
    pub async fn join(&self, room: &str) -> Result<String, CallFault> {
        text(&self.post(&["v3", "join", room], &json!({})).await?, "room_id")
    }

    /// Sends a plain text message: its event id.
    ///
    /// # Errors
    /// As [`CallFault`] says.
    pub async fn say(&self, room: &str, txn: &str, body: &str) -> Result<String, CallFault> {
        let content = json!({"msgtype": "m.text", "body": body, "m.mentions": {}});
        let path = ["v3", "rooms", room, "send", "m.room.message", txn];
        text(&self.put(&path, &content).await?, "event_id")
    }
}

impl Login {
    fn read(answer: &Value) -> Result<Self, CallFault> {
        Ok(Self { user_id: text(answer, "user_id")?, access_token: text(answer, "access_token")? })
    }

    /// The server's name, from the user id.
    pub fn server_name(&self) -> &str {
        self.user_id.split_once(':').map_or("", |(_, server)| server)
    }
}

/// A text field of an answer.
pub(crate) fn text(answer: &Value, field: &'static str) -> Result<String, CallFault> {
    answer[field].as_str().map(str::to_owned).ok_or(CallFault::Incomplete(field))
}

fn answered(status: u16, body: Value) -> CallFault {
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    CallFault::Answered { status, errcode: field("errcode"), message: field("error"), body: Box::new(body) }
}
