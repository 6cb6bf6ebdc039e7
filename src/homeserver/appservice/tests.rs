use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use axum::body::{Body, to_bytes};
use axum::http::Method;
use ruma::owned_user_id;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

const TOKEN: &str = "hs_s3cret";

/// An ear and what stands behind it.
struct Bench {
    router: Router,
    received: mpsc::Receiver<Received>,
    pings: mpsc::Receiver<Option<String>>,
    ready: watch::Sender<Result<(), Vec<String>>>,
}

fn carry_out(order: &Value) -> Result<Value, String> {
    match order["order"].as_str() {
        Some("dance") => Ok(json!({"follows": "she dances"})),
        _ => Err("no".to_owned()),
    }
}

fn bench() -> Bench {
    let (transactions, received) = mpsc::channel(4);
    let (pings_in, pings) = mpsc::channel(1);
    let (ready, ready_out) = watch::channel(Ok(()));
    let ear = Ear {
        hs_token: TOKEN.into(),
        transactions,
        users: [owned_user_id!("@persona_eir:hs.test")].into(),
        ready: ready_out,
        stats: Arc::new(|| json!({"waiting": 3})),
        ledger: Arc::new(|since| Ok(json!([since]))),
        orders: Arc::new(|order| Box::pin(async move { carry_out(&order) })),
        pings: pings_in,
    };
    Bench { router: router(ear), received, pings, ready }
}

impl Bench {
    async fn call(&self, request: Request) -> (u16, Value) {
        call(self.router.clone(), request).await
    }

    /// Calls while somebody answers each transaction the same way; also what was handed on.
    async fn call_answered(
        &mut self,
        request: Request,
        answer: Option<Answer>,
    ) -> (u16, Value, Vec<Received>) {
        let mut handed_on = Vec::new();
        let mut call = pin!(call(self.router.clone(), request));
        loop {
            tokio::select! {
                biased;
                (status, body) = &mut call => return (status, body, handed_on),
                Some(mut received) = self.received.recv() => {
                    let (spent, _) = oneshot::channel();
                    let to = std::mem::replace(&mut received.answer, spent);
                    if let Some(answer) = answer {
                        to.send(answer).unwrap();
                    }
                    handed_on.push(received);
                }
            }
        }
    }
}

async fn call(router: Router, request: Request) -> (u16, Value) {
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let status = response.status().as_u16();
    (status, serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap())
}

fn request(method: Method, path: &str, body: impl Into<Body>) -> Request {
    let mut request = Request::new(body.into());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    request
}

fn anonymous(mut request: Request) -> Request {
    request.headers_mut().remove("authorization");
    request
}

fn put_events(txn: &str, events: &[Value]) -> Request {
    let path = format!("/_matrix/app/v1/transactions/{txn}");
    request(Method::PUT, &path, json!({"events": events}).to_string())
}

fn message(id: &str, age: u64) -> Value {
    json!({
        "type": "m.room.message", "event_id": id, "room_id": "!r", "sender": "@a:hs.test", "age": age,
        "content": {"msgtype": "m.text", "body": "x"},
    })
}

fn ids(received: &Received) -> Vec<&str> {
    received.events.iter().map(|event| event.id.as_str()).collect()
}

#[tokio::test]
async fn a_good_transaction_is_handed_on_and_its_answer_given() {
    let mut bench = bench();
    let call = put_events("a%2Fb", &[message("$1", 0), json!("foo"), message("$2", 0)]);
    let (status, body, handed_on) = bench.call_answered(call, Some(Answer::Taken)).await;
    assert_eq!((status, body, handed_on.len()), (200, json!({}), 1));
    assert_eq!((handed_on[0].txn.as_str(), ids(&handed_on[0])), ("a/b", vec!["$1", "$2"]));
    assert_eq!(handed_on[0].unreadable, [Unreadable::new("\"foo\"", "the event is not an object")]);
}

#[tokio::test]
async fn a_transaction_without_events_is_handed_on_too() {
    let mut bench = bench();
    for body in ["{}", r#"{"events":[],"ephemeral":[{}]}"#, r#"{"events":5}"#] {
        let call = request(Method::PUT, "/_matrix/app/v1/transactions/1", body);
        let (status, _, handed_on) = bench.call_answered(call, Some(Answer::Taken)).await;
        assert_eq!((status, handed_on.len(), handed_on[0].events.len()), (200, 1, 0), "{body}");
    }
}

#[tokio::test]
async fn a_store_that_is_full_or_gone_is_503() {
    let mut bench = bench();
    for answer in [Some(Answer::Full), None] {
        let (status, body, _) = bench.call_answered(put_events("1", &[message("$1", 0)]), answer).await;
        assert_eq!((status, &body["errcode"]), (503, &json!("M_UNAVAILABLE")));
    }
    bench.received.close();
    assert_eq!(bench.call(put_events("1", &[])).await.0, 503);
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_and_marks_nothing() {
    let mut bench = bench();
    for body in ["", "{", "[]", "null"] {
        let call = request(Method::PUT, "/_matrix/app/v1/transactions/1", body);
        let (status, answer, handed_on) = bench.call_answered(call, Some(Answer::Taken)).await;
        assert_eq!((status, &answer["errcode"], handed_on.len()), (400, &json!("M_NOT_JSON"), 0), "{body}");
    }
    let (status, _, handed_on) =
        bench.call_answered(put_events("1", &[message("$1", 0)]), Some(Answer::Taken)).await;
    assert_eq!((status, handed_on.len()), (200, 1));
}

#[tokio::test]
async fn a_huge_transaction_is_taken_and_one_over_the_limit_refused() {
    let mut bench = bench();
    let huge: Vec<_> = (0..100)
        .map(|n| {
            let mut event = message(&format!("${n}"), 0);
            event["content"]["body"] = json!("x".repeat(60_000));
            event
        })
        .collect();
    let (status, _, handed_on) = bench.call_answered(put_events("1", &huge), Some(Answer::Taken)).await;
    assert_eq!((status, handed_on[0].events.len()), (200, 100));
    let over = request(Method::PUT, "/_matrix/app/v1/transactions/1", " ".repeat(BODY_MAX + 1));
    let (status, body) = bench.call(over).await;
    assert_eq!((status, &body["errcode"]), (413, &json!("M_TOO_LARGE")));
}

#[tokio::test]
async fn every_endpoint_of_the_homeserver_wants_its_token() {
    let bench = bench();
    for (method, path) in [
        (Method::PUT, "/_matrix/app/v1/transactions/1"),
        (Method::PUT, "/transactions/1"),
        (Method::GET, "/_matrix/app/v1/users/@persona_eir:hs.test"),
        (Method::GET, "/users/@persona_eir:hs.test"),
        (Method::GET, "/_matrix/app/v1/rooms/%23persona_swarm:hs.test"),
        (Method::POST, "/_matrix/app/v1/ping"),
    ] {
        let (status, body) = bench.call(anonymous(request(method.clone(), path, "{}"))).await;
        assert_eq!((status, &body["errcode"]), (401, &json!("M_MISSING_TOKEN")), "{path}");
        let wrong = format!("{path}?access_token=wrong");
        let (status, body) = bench.call(anonymous(request(method, &wrong, "{}"))).await;
        assert_eq!((status, &body["errcode"]), (403, &json!("M_FORBIDDEN")), "{path}");
    }
}

#[tokio::test]
async fn the_token_may_stand_in_the_query() {
    let mut bench = bench();
    let path = format!("/_matrix/app/v1/transactions/1?access_token={TOKEN}");
    let call = anonymous(request(Method::PUT, &path, "{}"));
    assert_eq!(bench.call_answered(call, Some(Answer::Taken)).await.0, 200);
}

#[tokio::test]
async fn the_legacy_paths_work() {
    let mut bench = bench();
    let call = request(Method::PUT, "/transactions/1", json!({"events": [message("$1", 0)]}).to_string());
    let (status, _, handed_on) = bench.call_answered(call, Some(Answer::Taken)).await;
    assert_eq!((status, handed_on.len()), (200, 1));
    assert_eq!(bench.call(request(Method::GET, "/users/@persona_eir:hs.test", "")).await.0, 200);
    assert_eq!(bench.call(request(Method::GET, "/users/@persona_eir:hs.test", "")).await.0, 200);
}

#[tokio::test]
async fn users_and_rooms_exist_or_do_not() {
    let bench = bench();
    let check = async |path: &str, expect: (u16, Value)| {
        let path = format!("/_matrix/app/v1/{path}");
        let (status, body) = bench.call(request(Method::GET, &path, "")).await;
        assert_eq!((status, body["errcode"].clone()), expect, "{path}");
    };
    check("users/%40persona_eir%3Ahs.test", (200, Value::Null)).await;
    check("users/@persona_nobody:hs.test", (404, json!("M_NOT_FOUND"))).await;
    check("users/%FF", (404, json!("M_NOT_FOUND"))).await;
    check("rooms/%23persona_swarm%3Ahs.test", (404, json!("M_NOT_FOUND"))).await;
}

#[tokio::test]
async fn a_ping_tells_its_id_and_never_waits() {
    let mut bench = bench();
    for body in [r#"{"transaction_id":"t1"}"#, r#"{"transaction_id":"lost, for nobody listens"}"#, ""] {
        assert_eq!(bench.call(request(Method::POST, "/_matrix/app/v1/ping", body)).await, (200, json!({})));
    }
    assert_eq!(bench.pings.try_recv(), Ok(Some("t1".to_owned())));
    assert!(bench.pings.try_recv().is_err());
}

#[tokio::test]
async fn the_ledger_is_told_with_the_token_alone() {
    let bench = bench();
    let call = |path: &str| request(Method::GET, path, "");
    assert_eq!(bench.call(call("/_persona_bridge/ledger?since=7")).await, (200, json!([7])));
    assert_eq!(bench.call(call("/_persona_bridge/ledger")).await, (200, json!([0])));
    let (status, body) = bench.call(anonymous(call("/_persona_bridge/ledger?since=7"))).await;
    assert_eq!((status, &body["errcode"]), (401, &json!("M_MISSING_TOKEN")));
}

#[tokio::test]
async fn an_order_is_carried_out_with_the_token_alone() {
    let bench = bench();
    let order = |body: &'static str| request(Method::POST, "/_persona_bridge/order", body);
    let follows = json!({"follows": "she dances"});
    assert_eq!(bench.call(order(r#"{"order":"dance"}"#)).await, (200, follows));
    let (status, body) = bench.call(order(r#"{"order":"fly"}"#)).await;
    assert_eq!((status, &body["error"]), (409, &json!("no")));
    assert_eq!(bench.call(order("dance")).await.0, 400);
    let (status, body) = bench.call(anonymous(order(r#"{"order":"dance"}"#))).await;
    assert_eq!((status, &body["errcode"]), (401, &json!("M_MISSING_TOKEN")));
}

#[tokio::test]
async fn health_is_told_without_a_token() {
    let bench = bench();
    for path in ["/live", "/_matrix/mau/live", "/ready", "/_matrix/mau/ready"] {
        let call = anonymous(request(Method::GET, path, ""));
        assert_eq!(bench.call(call).await, (200, json!({"ok": true})), "{path}");
    }
    for path in ["/stats", "/_matrix/mau/stats"] {
        let call = anonymous(request(Method::GET, path, ""));
        assert_eq!(bench.call(call).await, (200, json!({"waiting": 3})), "{path}");
    }
    bench.ready.send(Err(vec!["the disk is full".into()])).unwrap();
    let not_ready = (503, json!({"ok": false, "reasons": ["the disk is full"]}));
    for path in ["/ready", "/_matrix/mau/ready"] {
        assert_eq!(bench.call(anonymous(request(Method::GET, path, ""))).await, not_ready, "{path}");
    }
    assert_eq!(bench.call(anonymous(request(Method::GET, "/live", ""))).await.0, 200);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_answered_in_json() {
    let bench = bench();
    for path in [
        "/",
        "/_matrix/app/v1/transactions",
        "/_matrix/app/v1/nothing/1",
        "/_matrix/app/v2/users/x",
        "/nothing",
    ] {
        let (status, body) = bench.call(request(Method::GET, path, "")).await;
        assert_eq!((status, &body["errcode"]), (404, &json!("M_UNRECOGNIZED")), "{path}");
    }
    for path in
        ["/_matrix/app/v1/transactions/1", "/_matrix/app/v1/ping", "/transactions/1", "/users/x", "/live"]
    {
        let (status, body) = bench.call(request(Method::DELETE, path, "")).await;
        assert_eq!((status, &body["errcode"]), (405, &json!("M_UNRECOGNIZED")), "{path}");
    }
}

/// Polls a call until it waits for its answer.
fn waits(call: Pin<&mut impl Future<Output = (u16, Value)>>) {
    assert!(call.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test]
async fn a_repeat_in_flight_shares_the_first_answer() {
    let mut bench = bench();
    let mut first = pin!(call(bench.router.clone(), put_events("7", &[message("$1", 1)])));
    let mut repeat = pin!(call(bench.router.clone(), put_events("7", &[message("$1", 2000)])));
    waits(first.as_mut());
    waits(repeat.as_mut());
    let received = bench.received.try_recv().unwrap();
    assert!(bench.received.try_recv().is_err());
    received.answer.send(Answer::Taken).unwrap();
    assert_eq!((first.await.0, repeat.await.0), (200, 200));
}

#[tokio::test]
async fn a_repeat_goes_on_when_the_first_caller_went_away() {
    let mut bench = bench();
    let mut first = Box::pin(call(bench.router.clone(), put_events("7", &[message("$1", 1)])));
    let mut repeat = pin!(call(bench.router.clone(), put_events("7", &[message("$1", 2)])));
    waits(first.as_mut());
    waits(repeat.as_mut());
    drop(first);
    let received = bench.received.try_recv().unwrap();
    received.answer.send(Answer::Full).unwrap();
    assert_eq!(repeat.await.0, 503);
}

#[tokio::test]
async fn what_was_handed_on_stays_so_when_its_caller_goes_away() {
    let mut bench = bench();
    let mut first = Box::pin(call(bench.router.clone(), put_events("7", &[message("$1", 1)])));
    waits(first.as_mut());
    drop(first);
    assert_eq!(ids(&bench.received.try_recv().unwrap()), ["$1"]);
    let (status, _, handed_on) =
        bench.call_answered(put_events("7", &[message("$1", 2)]), Some(Answer::Taken)).await;
    assert_eq!((status, handed_on.len()), (200, 1));
}

#[tokio::test]
async fn the_same_id_with_other_events_is_another_transaction() {
    let mut bench = bench();
    let mut first = pin!(call(bench.router.clone(), put_events("3", &[message("$old", 1)])));
    let mut other = pin!(call(bench.router.clone(), put_events("3", &[message("$new", 1)])));
    waits(first.as_mut());
    waits(other.as_mut());
    let old = bench.received.try_recv().unwrap();
    let new = bench.received.try_recv().unwrap();
    assert_eq!((ids(&old), ids(&new)), (vec!["$old"], vec!["$new"]));
    old.answer.send(Answer::Taken).unwrap();
    new.answer.send(Answer::Full).unwrap();
    assert_eq!((first.await.0, other.await.0), (200, 503));
}

#[tokio::test]
async fn afterwards_a_transaction_id_means_nothing() {
    let mut bench = bench();
    for n in 1..=3 {
        let (status, _, handed_on) =
            bench.call_answered(put_events("1", &[message("$1", n)]), Some(Answer::Taken)).await;
        assert_eq!((status, handed_on.len()), (200, 1));
    }
}

#[tokio::test]
async fn a_full_channel_makes_calls_wait_and_loses_none() {
    let mut bench = bench();
    let mut calls: Vec<_> = (0..8)
        .map(|n| {
            Box::pin(call(bench.router.clone(), put_events(&n.to_string(), &[message(&format!("${n}"), 0)])))
        })
        .collect();
    for call in &mut calls {
        waits(call.as_mut());
    }
    let answers = async {
        for _ in 0..8 {
            bench.received.recv().await.unwrap().answer.send(Answer::Taken).unwrap();
        }
    };
    let (statuses, ()) = tokio::join!(futures_util::future::join_all(calls), answers);
    assert!(statuses.iter().all(|(status, _)| *status == 200));
}

#[test]
fn an_ear_does_not_show_its_token() {
    let (transactions, _received) = mpsc::channel(1);
    let (pings, _) = mpsc::channel(1);
    let (_, ready) = watch::channel(Ok(()));
    let ear = Ear {
        hs_token: TOKEN.into(),
        transactions,
        users: [].into(),
        ready,
        stats: Arc::new(|| Value::Null),
        ledger: Arc::new(|_| Ok(Value::Null)),
        orders: Arc::new(|_| Box::pin(async { Ok(Value::Null) })),
        pings,
    };
    assert!(!format!("{ear:?}").contains(TOKEN));
}
