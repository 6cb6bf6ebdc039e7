//! The ear over a real loopback socket, with somebody behind it who only notes what came.

use std::net::SocketAddr;
use std::time::Duration;

use persona_bridge::homeserver::appservice::{self, Answer, Ear, Received};
use ruma::owned_user_id;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

const TOKEN: &str = "hs_s3cret";

/// A served ear and its other end.
struct Served {
    url: String,
    address: SocketAddr,
    received: mpsc::Receiver<Received>,
    pings: mpsc::Receiver<Option<String>>,
    ready: watch::Sender<Result<(), Vec<String>>>,
    stop: oneshot::Sender<()>,
    tasks: JoinSet<std::io::Result<()>>,
    http: reqwest::Client,
}

async fn served() -> Served {
    let (transactions, received) = mpsc::channel(8);
    let (pings_in, pings) = mpsc::channel(8);
    let (ready, ready_out) = watch::channel(Ok(()));
    let ear = Ear {
        hs_token: TOKEN.into(),
        transactions,
        users: [owned_user_id!("@persona_eir:hs.test")].into(),
        ready: ready_out,
        stats: std::sync::Arc::new(|| json!({})),
        ledger: std::sync::Arc::new(|_| Ok(json!([]))),
        orders: std::sync::Arc::new(|_| Box::pin(async { Ok(json!({})) })),
        pings: pings_in,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(appservice::serve(listener, ear, async move {
        let _ = stopped.await;
    }));
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    Served { url: format!("http://{address}"), address, received, pings, ready, stop, tasks, http }
}

impl Served {
    fn put(&self, txn: &str, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        let url = format!("{}/_matrix/app/v1/transactions/{txn}", self.url);
        self.http.put(url).bearer_auth(TOKEN).body(body)
    }
}

async fn answer_of(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    assert_eq!(response.headers()["content-type"], "application/json");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("a body")).expect("JSON"))
}

/// Answers everything the same way and hands back how many events came.
fn answer_all(tasks: &mut JoinSet<usize>, mut received: mpsc::Receiver<Received>, answer: Answer) {
    tasks.spawn(async move {
        let mut events = 0;
        while let Some(one) = received.recv().await {
            events += one.events.len() + one.unreadable.len();
            let _ = one.answer.send(answer);
        }
        events
    });
}

fn message(id: usize, body: &str) -> Value {
    json!({
        "type": "m.room.message", "event_id": format!("$e{id}"), "room_id": "!r", "sender": "@alice:hs.test",
        "content": {"msgtype": "m.text", "body": body},
    })
}

fn events(events: &[Value]) -> String {
    json!({"events": events}).to_string()
}

#[tokio::test]
async fn transactions_good_huge_and_broken() {
    let mut ear = served().await;
    let mut behind = JoinSet::new();
    let (_, none) = mpsc::channel(1);
    answer_all(&mut behind, std::mem::replace(&mut ear.received, none), Answer::Taken);
    let huge: Vec<_> = (0..100).map(|n| message(n, &"x".repeat(60_000))).collect();
    assert_eq!(answer_of(ear.put("1", events(&huge))).await, (200, json!({})));
    let mixed = [message(100, "x"), json!("foo"), json!(null), json!({"sender": 5})];
    assert_eq!(answer_of(ear.put("2", events(&mixed))).await, (200, json!({})));
    for broken in ["", "{\"events\":[", "[]"] {
        assert_eq!(answer_of(ear.put("3", broken)).await.0, 400, "{broken}");
    }
    ear.stop.send(()).unwrap();
    drop(ear.http);
    assert!(ear.tasks.join_next().await.unwrap().unwrap().is_ok());
    assert_eq!(behind.join_next().await.unwrap().unwrap(), 104);
}

#[tokio::test]
async fn tokens_missing_wrong_and_in_the_query() {
    let mut ear = served().await;
    let mut behind = JoinSet::new();
    let (_, none) = mpsc::channel(1);
    answer_all(&mut behind, std::mem::replace(&mut ear.received, none), Answer::Taken);
    let url = format!("{}/_matrix/app/v1/transactions/1", ear.url);
    let put = |url: &str| ear.http.put(url).body("{}");
    assert_eq!(answer_of(put(&url)).await.0, 401);
    assert_eq!(answer_of(put(&url).bearer_auth("wrong")).await.0, 403);
    assert_eq!(answer_of(put(&format!("{url}?access_token=wrong"))).await.0, 403);
    assert_eq!(answer_of(put(&format!("{url}?access_token={TOKEN}"))).await.0, 200);
    let both = put(&format!("{url}?access_token={TOKEN}")).bearer_auth(TOKEN);
    assert_eq!(answer_of(both).await.0, 200);
}

#[tokio::test]
async fn a_full_store_is_503_and_told_by_readiness() {
    let mut ear = served().await;
    let mut behind = JoinSet::new();
    let (_, none) = mpsc::channel(1);
    answer_all(&mut behind, std::mem::replace(&mut ear.received, none), Answer::Full);
    assert_eq!(answer_of(ear.put("1", events(&[message(1, "x")]))).await.0, 503);
    let ready = || ear.http.get(format!("{}/ready", ear.url));
    assert_eq!(answer_of(ready()).await, (200, json!({"ok": true})));
    ear.ready.send(Err(vec!["the disk is full".into()])).unwrap();
    assert_eq!(answer_of(ready()).await, (503, json!({"ok": false, "reasons": ["the disk is full"]})));
}

#[tokio::test]
async fn users_and_pings() {
    let mut ear = served().await;
    let get = |path: &str| ear.http.get(format!("{}{path}", ear.url)).bearer_auth(TOKEN);
    assert_eq!(answer_of(get("/_matrix/app/v1/users/%40persona_eir%3Ahs.test")).await, (200, json!({})));
    assert_eq!(answer_of(get("/_matrix/app/v1/users/@nobody:hs.test")).await.0, 404);
    assert_eq!(answer_of(get("/_matrix/app/v1/rooms/%23nowhere:hs.test")).await.0, 404);
    let ping = ear.http.post(format!("{}/_matrix/app/v1/ping", ear.url)).bearer_auth(TOKEN);
    assert_eq!(answer_of(ping.body(r#"{"transaction_id":"p1"}"#)).await, (200, json!({})));
    assert_eq!(ear.pings.recv().await, Some(Some("p1".to_owned())));
}

#[tokio::test]
async fn two_calls_of_one_transaction_in_flight_share_an_answer() {
    let mut ear = served().await;
    let mut calls = JoinSet::new();
    for _ in 0..2 {
        calls.spawn(answer_of(ear.put("7", events(&[message(1, "x")]))));
    }
    let first = ear.received.recv().await.unwrap();
    first.answer.send(Answer::Taken).unwrap();
    answer_until_done(&mut calls, &mut ear.received).await;
}

/// Takes whatever is handed on until all calls are answered with 200; a repeat may have joined or come on its own.
async fn answer_until_done(calls: &mut JoinSet<(u16, Value)>, received: &mut mpsc::Receiver<Received>) {
    loop {
        tokio::select! {
            Some(repeat) = received.recv() => repeat.answer.send(Answer::Taken).expect("a caller"),
            call = calls.join_next() => match call {
                Some(call) => assert_eq!(call.expect("an answer"), (200, json!({}))),
                None => break,
            },
        }
    }
}

#[tokio::test]
async fn a_caller_who_hangs_up_does_not_undo_what_was_handed_on() {
    let mut ear = served().await;
    let body = events(&[message(1, "x")]);
    let head = format!(
        "PUT /_matrix/app/v1/transactions/1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut caller = TcpStream::connect(ear.address).await.unwrap();
    caller.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let handed_on = ear.received.recv().await.unwrap();
    drop(caller);
    assert_eq!(handed_on.events[0].id, "$e1");
    // Nobody may be left to be answered.
    let _ = handed_on.answer.send(Answer::Taken);
    let mut calls = JoinSet::new();
    calls.spawn(answer_of(ear.put("1", body)));
    answer_until_done(&mut calls, &mut ear.received).await;
}

#[tokio::test]
async fn a_body_cut_short_marks_nothing() {
    let mut ear = served().await;
    let head = format!(
        "PUT /_matrix/app/v1/transactions/1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 100\r\n\r\n{{}}"
    );
    let mut caller = TcpStream::connect(ear.address).await.unwrap();
    caller.write_all(head.as_bytes()).await.unwrap();
    caller.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), caller.read_to_end(&mut answer));
    read.await.expect("the ear lets a cut call go").ok();
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    assert!(ear.received.try_recv().is_err());
}
