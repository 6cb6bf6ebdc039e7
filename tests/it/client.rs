//! The client, and the fake homeserver that stands in for a real one, held against the same contract.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use persona_bridge::conversation::RequestId;
use persona_bridge::homeserver::client::{
    CallErrorKind, Client, CreateRoom, Identity, Mode, ReqwestTransport, Transport, TransportError,
    probe_mode,
};
use ruma::{OwnedRoomId, OwnedUserId, room_id, user_id};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::{World, establish, holds};
use crate::fake::homeserver::{FakeHomeserver, Fault, Flavour, TestUser, serve};

/// The fake, called in memory or over a socket.
struct Fake {
    home: FakeHomeserver,
    alice: TestUser,
    socket: Option<SocketAddr>,
}

impl Fake {
    fn new(flavour: Flavour) -> Self {
        let home = FakeHomeserver::new(flavour);
        Self { alice: home.user("alice"), home, socket: None }
    }
}

impl World for Fake {
    fn flavour(&self) -> Flavour {
        self.home.setup().flavour
    }

    fn client(&self) -> Client {
        self.socket.map_or_else(|| self.home.client(), over)
    }

    async fn restart(&mut self) {
        self.home.restart();
    }

    async fn create_room(&self, fields: Value) -> String {
        self.alice.create_room_of(&fields)
    }

    async fn send(&self, room: &str, kind: &str, content: Value) -> String {
        self.alice.say_content(room, kind, content)
    }

    async fn put_member(&self, room: &str, verb: &str, user: &str) {
        match verb {
            "invite" => self.alice.invite(room, user),
            "kick" => self.alice.kick(room, user),
            "ban" => self.alice.ban(room, user),
            other => panic!("no such verb: {other}"),
        };
    }

    async fn silence(&self, room: &str) {
        self.alice.set_muted(room, "@persona_eir:hs.test", true);
    }
}

fn over(address: SocketAddr) -> Client {
    let transport = ReqwestTransport::new(Duration::from_secs(10)).unwrap();
    Client::new(Arc::new(transport), format!("http://{address}/").parse().unwrap(), "as_secret".into())
}

#[tokio::test]
async fn the_contract_holds_in_memory_as_synapse() {
    holds(&mut Fake::new(Flavour::Synapse)).await;
}

#[tokio::test]
async fn the_contract_holds_in_memory_as_conduit() {
    holds(&mut Fake::new(Flavour::Conduit)).await;
}

#[tokio::test]
async fn the_contract_holds_over_a_socket() {
    for flavour in [Flavour::Synapse, Flavour::Conduit] {
        let mut fake = Fake::new(flavour);
        fake.socket = Some(serve(fake.home.clone()).await);
        holds(&mut fake).await;
    }
}

/// Keeps the last request and answers with one thing.
#[derive(Default)]
struct Recorder(Mutex<Option<Request<Vec<u8>>>>);

impl Transport for Recorder {
    fn call(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        *self.0.lock().unwrap() = Some(request);
        let answer = r#"{"event_id":"$e","room_id":"!r","user_id":"@a:x","duration_ms":1,"joined":{}}"#;
        Box::pin(async move { Ok(Response::new(Bytes::from_static(answer.as_bytes()))) })
    }
}

impl Recorder {
    fn client(self: &Arc<Self>) -> Client {
        Client::new(self.clone(), "http://hs.invalid:8008".parse().unwrap(), "as_secret".into())
    }

    fn last(&self) -> Request<Vec<u8>> {
        self.0.lock().unwrap().take().unwrap()
    }
}

fn eir(device: Option<&str>, token: Option<&str>) -> Identity {
    let owned = |text: &str| text.to_owned();
    Identity {
        user: user_id!("@persona_eir:hs.test").to_owned(),
        device: device.map(owned),
        token: token.map(owned),
    }
}

fn authorization(request: &Request<Vec<u8>>) -> &str {
    request.headers()["authorization"].to_str().unwrap()
}

#[tokio::test]
async fn without_a_token_the_appservice_masquerades() {
    let recorder = Arc::new(Recorder::default());
    let client = recorder.client();
    client.whoami(&eir(Some("DEV"), None)).await.unwrap();
    let request = recorder.last();
    assert_eq!(authorization(&request), "Bearer as_secret");
    let expect = "http://hs.invalid:8008/_matrix/client/v3/account/whoami?user_id=%40persona_eir%3Ahs.test&device_id=DEV";
    assert_eq!(request.uri().to_string(), expect);
    client.whoami(&eir(None, None)).await.unwrap();
    assert!(recorder.last().uri().to_string().ends_with("?user_id=%40persona_eir%3Ahs.test"));
    client.newest(&eir(None, None), room_id!("!r"), 5).await.unwrap();
    let query = recorder.last().uri().query().unwrap().to_owned();
    assert_eq!(query, "dir=b&limit=5&user_id=%40persona_eir%3Ahs.test");
}

#[tokio::test]
async fn with_a_token_she_speaks_for_herself() {
    let recorder = Arc::new(Recorder::default());
    let client = recorder.client();
    let own = eir(Some("DEV"), Some("own_secret"));
    let body = "{ \"body\" : \"a\\u0000b\" }";
    client.send(&own, room_id!("!r"), "m.room.message", &RequestId("a/b?c".to_owned()), body).await.unwrap();
    let request = recorder.last();
    assert_eq!(authorization(&request), "Bearer own_secret");
    let path = "/_matrix/client/v3/rooms/!r/send/m.room.message/a%2Fb%3Fc";
    assert_eq!((request.uri().path(), request.uri().query()), (path, None));
    assert_eq!(request.body(), body.as_bytes());
    assert_eq!(request.headers()["content-type"], "application/json");
    // Except where a room is made: aliases in the namespace belong to the appservice.
    client.create_room(&own, CreateRoom::default()).await.unwrap();
    let request = recorder.last();
    assert_eq!(authorization(&request), "Bearer as_secret");
    assert_eq!(request.uri().query(), Some("user_id=%40persona_eir%3Ahs.test"));
}

#[tokio::test]
async fn neither_tokens_nor_bodies_are_shown() {
    let home = FakeHomeserver::new(Flavour::Synapse);
    let own = eir(None, Some("own_secret"));
    assert!(!format!("{own:?}").contains("secret"));
    let address = serve(home).await;
    for client in [over(address), over("127.0.0.1:1".parse().unwrap())] {
        let id = request("t");
        let sent = client.send(&own, room_id!("!r"), "m.room.message", &id, "private words");
        let error = sent.await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret") && !shown.contains("private words"), "{shown}");
    }
}

/// A ghost in a private room of Alice's.
async fn settled(flavour: Flavour) -> (FakeHomeserver, Client, TestUser, Identity, OwnedRoomId) {
    let home = FakeHomeserver::new(flavour);
    let client = home.client();
    client.register("persona-bridge").await.unwrap();
    let user: OwnedUserId = "@persona_eir:hs.test".try_into().unwrap();
    client.register(user.localpart()).await.unwrap();
    let mode = probe_mode(&client, &user, "DEV").await.unwrap();
    let eir = establish(&client, user, "DEV", mode).await;
    let alice = home.user("alice");
    let room: OwnedRoomId = alice.create_dm(eir.user.as_str()).try_into().unwrap();
    client.join(&eir, &room).await.unwrap();
    (home, client, alice, eir, room)
}

fn request(id: &str) -> RequestId {
    RequestId(id.to_owned())
}

async fn say(client: &Client, eir: &Identity, room: &OwnedRoomId, id: &str) -> Result<(), CallErrorKind> {
    let body = json!({ "msgtype": "m.text", "body": id }).to_string();
    let sent = client.send(eir, room, "m.room.message", &request(id), &body).await;
    sent.map(drop).map_err(|error| error.kind)
}

#[tokio::test]
async fn every_fault_is_told_as_what_it_is() {
    let (home, client, _, eir, room) = settled(Flavour::Synapse).await;
    let check = async |fault: Fault, expect: CallErrorKind, said: &[&str]| {
        home.fail_next(1, fault);
        assert_eq!(say(&client, &eir, &room, "x").await, Err(expect));
        assert_eq!(home.bodies(room.as_str(), eir.user.as_str()), said);
    };
    let limited = Duration::from_millis(3584);
    check(Fault::Down, CallErrorKind::NotSent, &[]).await;
    check(Fault::CutBefore, CallErrorKind::Uncertain, &[]).await;
    check(Fault::Limited(limited), CallErrorKind::Limited(limited), &[]).await;
    check(Fault::Answer(502, "<html>".to_owned()), CallErrorKind::Server, &[]).await;
    check(Fault::CutAfter, CallErrorKind::Uncertain, &["x"]).await;
    // It took effect: the repeat is the same event.
    assert_eq!(say(&client, &eir, &room, "x").await, Ok(()));
    assert_eq!(home.bodies(room.as_str(), eir.user.as_str()), ["x"]);
    home.set_largest(100);
    let long = "y".repeat(100);
    assert_eq!(say(&client, &eir, &room, &long).await, Err(CallErrorKind::TooLarge));
}

#[tokio::test]
async fn a_lost_transaction_id_makes_the_repeat_a_second_event() {
    for flavour in [Flavour::Synapse, Flavour::Conduit] {
        let (home, client, _, eir, room) = settled(flavour).await;
        home.fail_next(1, Fault::CutAfterForgetting);
        assert_eq!(say(&client, &eir, &room, "x").await, Err(CallErrorKind::Uncertain));
        let found = client.find_sent(&eir, &room, &request("x"), 0).await.unwrap();
        assert!(found.is_some());
        say(&client, &eir, &room, "x").await.unwrap();
        home.lose_idempotency();
        say(&client, &eir, &room, "x").await.unwrap();
        assert_eq!(home.bodies(room.as_str(), eir.user.as_str()), ["x", "x", "x"]);
    }
}

#[tokio::test]
async fn faults_can_be_aimed() {
    let (home, client, _, eir, room) = settled(Flavour::Conduit).await;
    home.fail_when(2, Fault::Down, |seen| {
        seen.method == "PUT" && seen.path.ends_with("/send/m.room.message/b")
    });
    assert_eq!(say(&client, &eir, &room, "a").await, Ok(()));
    assert_eq!(say(&client, &eir, &room, "b").await, Err(CallErrorKind::NotSent));
    assert_eq!(say(&client, &eir, &room, "b").await, Err(CallErrorKind::NotSent));
    assert_eq!(say(&client, &eir, &room, "b").await, Ok(()));
    home.set_down(true);
    assert_eq!(say(&client, &eir, &room, "c").await, Err(CallErrorKind::NotSent));
    home.clear_faults();
    assert_eq!(say(&client, &eir, &room, "c").await, Ok(()));
    assert_eq!(home.bodies(room.as_str(), eir.user.as_str()), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_effect_in_the_middle_of_its_latency() {
    let (home, client, _, eir, room) = settled(Flavour::Synapse).await;
    home.set_latency(Duration::from_millis(20));
    let started = Instant::now();
    say(&client, &eir, &room, "whole").await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_millis(20));
    for (wait, expect) in [(9, 1), (11, 2)] {
        let _: Result<_, _> =
            tokio::time::timeout(Duration::from_millis(wait), say(&client, &eir, &room, "cut")).await;
        assert_eq!(home.bodies(room.as_str(), eir.user.as_str()).len(), expect);
    }
}

#[tokio::test]
async fn looking_back_stops_where_nothing_can_be() {
    let (home, client, alice, eir, room) = settled(Flavour::Conduit).await;
    say(&client, &eir, &room, "old").await.unwrap();
    for n in 0..2500 {
        alice.say(room.as_str(), &n.to_string());
    }
    let find = async |since: u64| {
        let before = home.requests().len();
        let found = client.find_sent(&eir, &room, &request("old"), since).await.unwrap();
        (found.is_some(), home.requests().len() - before)
    };
    // Twenty pages and no more.
    assert_eq!(find(0).await, (false, 20));
    // The clock of the fake goes one millisecond an event; ten minutes are allowed for.
    let newest = home.timeline(room.as_str()).last().unwrap().at;
    assert_eq!(find(newest + 600_000 - 250).await, (false, 3));
}

#[tokio::test]
async fn conduit_hides_for_good_what_is_asked_for_before_the_join() {
    let (_, client, alice, eir, _) = settled(Flavour::Conduit).await;
    let room: OwnedRoomId = alice.create_dm(eir.user.as_str()).try_into().unwrap();
    alice.say(room.as_str(), "before you came");
    assert!(client.newest(&eir, &room, 10).await.unwrap().events.is_empty());
    client.join(&eir, &room).await.unwrap();
    let page = client.newest(&eir, &room, 10).await.unwrap();
    assert!(!page.events.iter().any(|event| event.get().contains("before you came")));
}

#[tokio::test]
async fn direct_rooms_are_kept_beside_each_other() {
    let (home, client, alice, eir, room) = settled(Flavour::Synapse).await;
    client.mark_direct(&eir, user_id!("@alice:hs.test"), &room).await.unwrap();
    client.mark_direct(&eir, user_id!("@bob:hs.test"), room_id!("!b:hs.test")).await.unwrap();
    let direct = home.account_data(eir.user.as_str(), "m.direct").unwrap();
    assert_eq!(direct, json!({ &alice.id: [room], "@bob:hs.test": ["!b:hs.test"] }));
}

#[tokio::test]
async fn a_profile_is_written_only_where_it_differs() {
    let (home, client, _, eir, room) = settled(Flavour::Conduit).await;
    let before = home.timeline(room.as_str()).len();
    for _ in 0..3 {
        client.set_display_name(&eir, "Eir").await.unwrap();
    }
    assert_eq!(home.timeline(room.as_str()).len(), before + 1);
    assert_eq!(home.display_name(eir.user.as_str()).as_deref(), Some("Eir"));
}

#[tokio::test]
async fn a_closed_port_is_certain_and_a_cut_is_not() {
    let (home, _, _, eir, room) = settled(Flavour::Synapse).await;
    let closed = over("127.0.0.1:1".parse().unwrap());
    assert_eq!(say(&closed, &eir, &room, "x").await, Err(CallErrorKind::NotSent));
    let open = over(serve(home.clone()).await);
    home.fail_next(1, Fault::CutAfter);
    assert_eq!(say(&open, &eir, &room, "x").await, Err(CallErrorKind::Uncertain));
    assert_eq!(say(&open, &eir, &room, "x").await, Ok(()));
    assert_eq!(home.bodies(room.as_str(), eir.user.as_str()), ["x"]);
    home.fail_next(1, Fault::Answer(307, String::new()));
    assert_eq!(say(&open, &eir, &room, "y").await, Err(CallErrorKind::Refused));
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_uncertain() {
    let (home, _, _, eir, room) = settled(Flavour::Synapse).await;
    let address = serve(home.clone()).await;
    home.set_latency(Duration::from_secs(3600));
    let transport = ReqwestTransport::new(Duration::from_millis(50)).unwrap();
    let url = format!("http://{address}").parse().unwrap();
    let client = Client::new(Arc::new(transport), url, "as_secret".into());
    assert_eq!(say(&client, &eir, &room, "x").await, Err(CallErrorKind::Uncertain));
}

#[tokio::test]
async fn the_mode_is_probed() {
    for (flavour, expect) in [(Flavour::Synapse, Mode::Masquerade), (Flavour::Conduit, Mode::Token)] {
        let (home, client, _, eir, _) = settled(flavour).await;
        assert_eq!(probe_mode(&client, &eir.user, "DEV2").await.unwrap(), expect);
        home.set_down(true);
        let error = probe_mode(&client, &eir.user, "DEV2").await.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::NotSent);
    }
}
