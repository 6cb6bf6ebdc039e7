//! A loopback Messages API: answers by script or by rule, keeps every request, and watches over the prompt cache.
//!
//! Whatever is asked, each request of a session must begin with all of the request before, or dropping it fails the
//! test: that is what the prompt cache needs.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use url::Url;

use super::cache::Cache;
use super::prefix::{blocks, broken_prefix, messages, plain};

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A typed reply with this input.
    Typed(Value),
    /// Plain text.
    Text(String),
    /// Any other tool.
    Tool(&'static str, Value),
    /// No content, and no tokens counted.
    Nothing,
    /// No content and this reason to stop.
    Stopped(&'static str),
    /// Text and then this reason to stop.
    TextThen(String, &'static str),
    /// An error before the stream.
    Error { status: u16, kind: &'static str, message: String, headers: Vec<(&'static str, String)> },
    /// An error within the stream.
    StreamError(&'static str),
    /// Nothing at all.
    Stall,
    /// The start of a stream, then nothing.
    StallInStream,
    /// The start of a stream, then a cut connection.
    Cut,
    /// So many thoughts with a pause before each, then the answer.
    Thinking(u32, Duration, Box<Answer>),
    /// The answer once the gate is open.
    Held(Gate, Box<Answer>),
    /// All of the answer but its last events; those once the gate is open.
    HeldInStream(Gate, Box<Answer>),
}

impl Answer {
    /// A reply that says one thing.
    pub(crate) fn say(text: &str) -> Self {
        Self::Typed(json!({"say": [{"text": text}], "react": []}))
    }

    /// An error as the API words it.
    pub(crate) fn error(status: u16, kind: &'static str, message: &str) -> Self {
        Self::Error { status, kind, message: message.to_owned(), headers: Vec::new() }
    }
}

/// Something that is waited for until it is opened.
#[derive(Clone, Debug)]
pub(crate) struct Gate(watch::Sender<bool>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(watch::channel(false).0)
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn passed(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// A request as it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) user_agent: String,
    pub(crate) session: String,
    pub(crate) body: Value,
}

impl Request {
    /// The newest words of the user, without what the CLI adds.
    pub(crate) fn words(&self) -> String {
        let own = |text: &&String| {
            !text.starts_with("<system-reminder>") && !text.starts_with("Continue from where")
        };
        let texts = self.newest();
        texts.iter().rfind(own).map(|text| text.trim_end().to_owned()).unwrap_or_default()
    }

    /// All texts of the newest message of the user: what no reply has come to yet.
    pub(crate) fn unanswered(&self) -> String {
        self.newest().join("\n")
    }

    fn newest(&self) -> Vec<String> {
        let last = messages(&self.body).iter().rev().find(|message| message["role"] == "user");
        let blocks = last.map(blocks).unwrap_or_default();
        blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
    }
}

/// The tokens of each answer.
const OUTPUT: u64 = 20;

type Rule = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

#[derive(Default)]
struct Book {
    requests: Vec<Request>,
    script: VecDeque<Answer>,
    rule: Option<Rule>,
    faults: Vec<String>,
    newest: BTreeMap<String, Value>,
    cache: Cache,
    usages: Vec<Value>,
    answered: Vec<Value>,
}

/// The server; it ends when it is dropped.
pub(crate) struct MessagesApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    book: Mutex<Book>,
    count: watch::Sender<usize>,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl MessagesApi {
    /// Listens on a free port of 127.0.0.1; every request is answered by an echo.
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared { book: Mutex::default(), count: watch::channel(0).0 });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/v1/messages", post(answer))
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://{}", self.address).parse().unwrap()
    }

    /// Answers the next requests by these, before the rule has its turn again.
    pub(crate) fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.book().script.extend(answers);
    }

    /// Answers by this rule from now on.
    pub(crate) fn rule(&self, rule: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        self.shared.book().rule = Some(Box::new(rule));
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.book().requests.clone()
    }

    /// Lets go of the requests so far, where there are very many.
    pub(crate) fn forget_requests(&self) {
        self.shared.book().requests.clear();
    }

    /// What each request used, as its answer says or would have said; null where it was refused.
    pub(crate) fn usages(&self) -> Vec<Value> {
        self.shared.book().usages.clone()
    }

    /// What each request used whose answer began.
    pub(crate) fn answered(&self) -> Vec<Value> {
        self.shared.book().answered.clone()
    }

    /// Takes what was wrong with requests so far, for tests that mean to break a prefix.
    pub(crate) fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.book().faults)
    }

    /// Its prompt cache is asked at this time (unix ms) from now on, and keeps no prompt of fewer tokens.
    pub(crate) fn at(&self, now: u64, minimum: usize) {
        let cache = &mut self.shared.book().cache;
        (cache.now, cache.minimum) = (now, minimum);
    }

    /// Its prompt cache forgets all, as after its time to live.
    pub(crate) fn forget(&self) {
        self.shared.book().cache.forget();
    }

    /// How many requests have come.
    pub(crate) fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&self, count: usize) {
        let mut seen = self.shared.count.subscribe();
        let enough = seen.wait_for(|seen| *seen >= count);
        tokio::time::timeout(Duration::from_secs(60), enough).await.unwrap().unwrap();
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        let faults = std::mem::take(&mut self.shared.book().faults);
        if !std::thread::panicking() {
            assert!(faults.is_empty(), "{}", faults.join("\n"));
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let request =
        Request { user_agent: header("user-agent"), session: header("x-claude-code-session-id"), body };
    let (answer, usage) = {
        let mut book = shared.book();
        let fault = watch_over(&mut book, &request);
        book.faults.extend(fault);
        book.requests.push(request.clone());
        let scripted = book.script.pop_front();
        let ruled = || book.rule.as_ref().map(|rule| rule(&request));
        let echo = || Answer::say(&format!("echo {}", request.words()));
        let answer = scripted.or_else(ruled).unwrap_or_else(echo);
        // What is refused is not looked at.
        let refused = matches!(answer, Answer::Error { .. });
        let usage = if refused { Value::Null } else { book.cache.count(&request.body) };
        book.usages.push(in_all(&usage));
        (answer, usage)
    };
    shared.count.send_modify(|count| *count += 1);
    let response = give(answer, request.body["model"].as_str().unwrap_or_default(), &usage).await;
    if !usage.is_null() {
        shared.book().answered.push(in_all(&usage));
    }
    response
}

/// What a request has used at its end, by what it had when its answer began.
fn in_all(usage: &Value) -> Value {
    let mut usage = usage.clone();
    if let Some(output) = usage.get_mut("output_tokens") {
        *output = OUTPUT.into();
    }
    usage
}

async fn give(mut answer: Answer, model: &str, usage: &Value) -> Response<Body> {
    while let Answer::Held(gate, then) = answer {
        gate.passed().await;
        answer = *then;
    }
    if let Answer::Error { status, kind, message, headers } = answer {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
        for (name, value) in headers {
            response = response.header(name, value);
        }
        return response.header("content-type", "application/json").body(body.to_string().into()).unwrap();
    }
    if matches!(answer, Answer::Stall) {
        std::future::pending::<()>().await;
    }
    let parts = VecDeque::from(stream(answer, model, usage));
    let body = futures_util::stream::unfold(parts, |mut parts| async move {
        loop {
            match parts.pop_front()? {
                Part::Event(text) => return Some((Ok(Bytes::from(text)), parts)),
                Part::Pause(time) => tokio::time::sleep(time).await,
                Part::Wait(gate) => gate.passed().await,
                Part::Cut => return Some((Err(std::io::Error::other("cut")), VecDeque::new())),
                Part::Silence => std::future::pending::<Infallible>().await.into_never(),
            }
        }
    });
    Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(body)).unwrap()
}

/// A piece of a stream.
enum Part {
    Event(String),
    Pause(Duration),
    Wait(Gate),
    Cut,
    Silence,
}

trait Never {
    fn into_never(self);
}

impl Never for Infallible {
    fn into_never(self) {
        match self {}
    }
}

fn event(kind: &str, mut data: Value) -> Part {
    data["type"] = kind.into();
    Part::Event(format!("event: {kind}\ndata: {data}\n\n"))
}

fn stream(answer: Answer, model: &str, usage: &Value) -> Vec<Part> {
    let message = json!({"id": format!("msg_{}", uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, &unique())),
        "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage});
    if matches!(answer, Answer::Nothing) {
        return nothing(message);
    }
    let mut parts = vec![event("message_start", json!({"message": message}))];
    content(answer, &mut parts);
    parts
}

fn nothing(mut message: Value) -> Vec<Part> {
    message["usage"] = json!({"input_tokens": 0, "output_tokens": 0});
    let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
    vec![
        event("message_start", json!({"message": message})),
        event("message_delta", json!({"delta": delta, "usage": {"output_tokens": 0}})),
        event("message_stop", json!({})),
    ]
}

/// Bytes that never come twice.
fn unique() -> [u8; 8] {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (NEXT.fetch_add(1, Ordering::Relaxed) ^ (u64::from(std::process::id()) << 32)).to_be_bytes()
}

fn content(answer: Answer, parts: &mut Vec<Part>) {
    match answer {
        Answer::Typed(input) => tool("StructuredOutput", &input, parts),
        Answer::Tool(name, input) => tool(name, &input, parts),
        Answer::Text(text) => spoken(&text, "end_turn", parts),
        Answer::TextThen(text, reason) => spoken(&text, reason, parts),
        Answer::Stopped(reason) => end(reason, parts),
        Answer::StreamError(kind) => {
            parts.push(event("error", json!({"error": {"type": kind, "message": "scripted"}})));
        }
        Answer::StallInStream => parts.push(Part::Silence),
        Answer::Cut => parts.push(Part::Cut),
        Answer::Thinking(count, pause, then) => {
            thoughts(count, pause, parts);
            content(*then, parts);
        }
        Answer::HeldInStream(gate, then) => {
            content(*then, parts);
            let at = parts.len().saturating_sub(2);
            parts.insert(at, Part::Wait(gate));
        }
        Answer::Held(..) | Answer::Error { .. } | Answer::Stall | Answer::Nothing => {
            unreachable!("given before the stream")
        }
    }
}

fn thoughts(count: u32, pause: Duration, parts: &mut Vec<Part>) {
    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
    parts.push(event("content_block_start", json!({"index": 0, "content_block": block})));
    for number in 0..count {
        parts.push(Part::Pause(pause));
        let delta = json!({"type": "thinking_delta", "thinking": format!("thought {number}. ")});
        parts.push(event("content_block_delta", json!({"index": 0, "delta": delta})));
    }
    let delta = json!({"type": "signature_delta", "signature": "c2lnbmVk"});
    parts.push(event("content_block_delta", json!({"index": 0, "delta": delta})));
    parts.push(event("content_block_stop", json!({"index": 0})));
}

fn tool(name: &str, input: &Value, parts: &mut Vec<Part>) {
    let index = usize::from(parts.len() > 1);
    let id = format!("toolu_{}", uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, &unique()).simple());
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let text = input.to_string();
    parts.push(event("content_block_start", json!({"index": index, "content_block": block})));
    for piece in text.as_bytes().chunks(64 * 1024).map(String::from_utf8_lossy) {
        let delta = json!({"type": "input_json_delta", "partial_json": piece});
        parts.push(event("content_block_delta", json!({"index": index, "delta": delta})));
    }
    parts.push(event("content_block_stop", json!({"index": index})));
    end("tool_use", parts);
}

fn spoken(text: &str, reason: &str, parts: &mut Vec<Part>) {
    let index = usize::from(parts.len() > 1);
    let block = json!({"type": "text", "text": ""});
    parts.push(event("content_block_start", json!({"index": index, "content_block": block})));
    let delta = json!({"type": "text_delta", "text": text});
    parts.push(event("content_block_delta", json!({"index": index, "delta": delta})));
    parts.push(event("content_block_stop", json!({"index": index})));
    end(reason, parts);
}

fn end(reason: &str, parts: &mut Vec<Part>) {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    parts.push(event("message_delta", json!({"delta": delta, "usage": {"output_tokens": OUTPUT}})));
    parts.push(event("message_stop", json!({})));
}

/// What is wrong with a request, given the one before of its session.
fn watch_over(book: &mut Book, request: &Request) -> Option<String> {
    if !request.user_agent.contains("claude-cli") {
        return Some(format!("a request came from {:?}, not from the CLI", request.user_agent));
    }
    let next = plain(&request.body);
    let before = book.newest.insert(request.session.clone(), next.clone())?;
    let differs = ["tools", "system"].into_iter().find(|part| before[*part] != next[*part]);
    let differs = differs.map(|part| format!("{part}\nbefore: {}\nnow: {}", before[part], next[part]));
    let fault = differs.or_else(|| broken_prefix(&before, &next))?;
    Some(format!("the prefix of session {} broke at {fault}", request.session))
}
