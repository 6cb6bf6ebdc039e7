//! An HTTP proxy on the way between bridge and homeserver that passes, cuts, swallows, holds or limits what it is told to.

use std::io::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use url::Url;

use super::messages_api::Gate;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It is forwarded and answered.
    Pass,
    /// It is forwarded, and the connection cut when the other side has answered.
    CutAfter,
    /// The connection is cut at once.
    Cut,
    /// It is never answered nor forwarded.
    Swallow,
    /// It is forwarded once the gate is open.
    Hold(Gate),
    /// It is answered by a 429 that asks to wait so many milliseconds.
    Limit(u64),
}

/// A request's first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
}

impl Asked {
    /// Whether it sends a message.
    pub(crate) fn is_send(&self) -> bool {
        self.method == "PUT" && self.path.contains("/send/m.room.message/")
    }

    /// Whether a homeserver brings events by it.
    pub(crate) fn is_transaction(&self) -> bool {
        self.method == "PUT" && self.path.contains("/transactions/")
    }
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was read, and nothing has been done yet.
    Seen,
    /// The other side answered with this status.
    Answered(u16),
    /// The other side gave no answer.
    Unanswered,
}

type Rule = Box<dyn Fn(&Asked) -> Verdict + Send + Sync>;

struct Shared {
    upstream: u16,
    http: reqwest::Client,
    rule: Mutex<Rule>,
    log: watch::Sender<Vec<(Asked, Outcome)>>,
}

impl Shared {
    fn rule(&self) -> MutexGuard<'_, Rule> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The proxy; it ends when it is dropped.
pub(crate) struct Proxy {
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Listens on a port of 127.0.0.1 (0 for any) and passes everything to the port `upstream`.
    pub(crate) async fn start(port: u16, upstream: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let rule: Mutex<Rule> = Mutex::new(Box::new(|_| Verdict::Pass));
        let shared = Arc::new(Shared { upstream, http, rule, log: watch::channel(Vec::new()).0 });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, shared.clone()));
        Self { port, shared, _tasks: tasks }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> Url {
        format!("http://127.0.0.1:{}", self.port).parse().unwrap()
    }

    /// Treats requests by this rule from now on.
    pub(crate) fn rule(&self, rule: impl Fn(&Asked) -> Verdict + Send + Sync + 'static) {
        *self.shared.rule() = Box::new(rule);
    }

    /// Passes everything from now on.
    pub(crate) fn pass(&self) {
        self.rule(|_| Verdict::Pass);
    }

    /// How many requests fit so far.
    pub(crate) fn count(&self, fits: impl Fn(&Asked, Outcome) -> bool) -> usize {
        self.shared.log.borrow().iter().filter(|(asked, outcome)| fits(asked, *outcome)).count()
    }

    /// Waits until more than `count` requests fit.
    pub(crate) async fn wait_beyond(&self, count: usize, fits: impl Fn(&Asked, Outcome) -> bool) {
        let mut log = self.shared.log.subscribe();
        let enough = log.wait_for(|log| log.iter().filter(|(asked, out)| fits(asked, *out)).count() > count);
        let done = tokio::time::timeout(Duration::from_secs(60), enough).await;
        assert!(done.is_ok(), "no such request came: {:#?}", self.shared.log.borrow());
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        connections.spawn(async move {
            let mut stream = BufStream::new(stream);
            // Whoever cut a connection has seen it.
            while serve(&mut stream, &shared).await.is_ok() {}
        });
        while connections.try_join_next().is_some() {}
    }
}

/// One request of a connection; an error cuts it.
async fn serve(stream: &mut BufStream<TcpStream>, shared: &Shared) -> Result<()> {
    let (request, body) = read(stream).await?;
    let asked = Asked { method: request.method().to_string(), path: request.uri().to_string() };
    let mut number = 0;
    shared.log.send_modify(|log| {
        number = log.len();
        log.push((asked.clone(), Outcome::Seen));
    });
    let verdict = shared.rule()(&asked);
    match verdict.clone() {
        Verdict::Pass | Verdict::CutAfter => {}
        Verdict::Cut => return Err(Error::other("cut")),
        Verdict::Swallow => return swallow(stream).await,
        Verdict::Hold(gate) => gate.passed().await,
        Verdict::Limit(ms) => {
            let words = format!(r#"{{"errcode":"M_LIMIT_EXCEEDED","error":"slow","retry_after_ms":{ms}}}"#);
            return answer(stream, 429, words.as_bytes()).await;
        }
    }
    let url = format!("http://127.0.0.1:{}{}", shared.upstream, asked.path);
    let mut forwarded = shared.http.request(request.method().clone(), url).body(body);
    for (name, value) in request.headers().iter().filter(|(name, _)| is_end_to_end(name.as_str())) {
        forwarded = forwarded.header(name, value);
    }
    let answered = async {
        let answered = forwarded.send().await?;
        let status = answered.status().as_u16();
        answered.bytes().await.map(|body| (status, body))
    };
    let answered = answered.await;
    let outcome = answered.as_ref().map_or(Outcome::Unanswered, |(status, _)| Outcome::Answered(*status));
    shared.log.send_modify(|log| log[number].1 = outcome);
    let (status, body) = answered.map_err(Error::other)?;
    if matches!(verdict, Verdict::CutAfter) {
        return Err(Error::other("cut"));
    }
    answer(stream, status, &body).await
}

/// Says nothing until the other side gives up.
async fn swallow(stream: &mut BufStream<TcpStream>) -> Result<()> {
    stream.read_u8().await?;
    Err(Error::other("it goes on talking"))
}

fn is_end_to_end(header: &str) -> bool {
    !["host", "connection", "content-length", "transfer-encoding", "accept-encoding"].contains(&header)
}

async fn read(stream: &mut BufStream<TcpStream>) -> Result<(http::Request<()>, Vec<u8>)> {
    let first = line(stream).await?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = http::Request::builder().method(method).uri(path);
    let mut length = 0;
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").ok_or_else(|| Error::other("a header without a value"))?;
        assert!(!name.eq_ignore_ascii_case("transfer-encoding"), "bodies come with their length");
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(Error::other)?;
        }
        request = request.header(name, value);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((request.body(()).map_err(Error::other)?, body))
}

async fn line(stream: &mut BufStream<TcpStream>) -> Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line).await? {
        0 => Err(Error::other("the end")),
        _ => Ok(line.trim_end().to_owned()),
    }
}

async fn answer(stream: &mut BufStream<TcpStream>, status: u16, body: &[u8]) -> Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Proxied\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await
}
