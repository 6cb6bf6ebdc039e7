//! What the log does not say: no words of users above DEBUG, and no token or key at any level that is asked for here.

use std::path::Path;

use persona_bridge::conversation::Millis;
use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::Kind;
use persona_bridge::store::{Config, Opening, Owner, Store};
use ruma::OwnedUserId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::ground::{Mind, wait_for_answers, word, words};
use crate::bridge::{Bridge, PROGRAM, Setup, alias, name, persona};
use crate::fake::messages_api::Answer;
use crate::servers::{self, SERVER_NAME, Server};
use crate::user::User;

/// Stands in everything that a user says, and in what a stranger shows for a token.
const WORDS: &str = "plover";

#[tokio::test(flavor = "multi_thread")]
async fn the_log_holds_no_words_and_no_secrets_on_synapse() {
    at_info(Kind::Synapse, "the_log_holds_no_words_and_no_secrets_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_holds_no_words_and_no_secrets_on_conduit() {
    at_info(Kind::Conduit, "the_log_holds_no_words_and_no_secrets_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_at_debug_holds_no_secrets_on_synapse() {
    at_debug(Kind::Synapse, "the_log_at_debug_holds_no_secrets_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_at_debug_holds_no_secrets_on_conduit() {
    at_debug(Kind::Conduit, "the_log_at_debug_holds_no_secrets_on_conduit").await;
}

async fn at_info(kind: Kind, test: &str) {
    let Some(said) = life(kind, test, "info").await else { return };
    for line in said.text.lines() {
        assert!(!line.to_lowercase().contains(WORDS), "words of a user: {line}");
        assert_eq!(words(line), [""; 0], "words of a user or of hers: {line}");
    }
    said.hold_no_secrets();
}

async fn at_debug(kind: Kind, test: &str) {
    let Some(said) = life(kind, test, "debug").await else { return };
    assert!(said.text.contains("DEBUG"), "{}", said.text);
    said.hold_no_secrets();
}

/// What the bridge and the doctor have said, and what must never be said.
struct Said {
    text: String,
    secrets: Vec<String>,
}

impl Said {
    fn hold_no_secrets(&self) {
        assert!(self.secrets.len() >= 3 && self.secrets.iter().all(|secret| secret.len() > 8));
        for line in self.text.lines() {
            let told = self.secrets.iter().position(|secret| line.contains(secret));
            assert_eq!(told, None, "a secret, by its place in the list: {line}");
        }
    }
}

/// A bridge's life with everything that tempts it to say too much; the real claude thinks.
async fn life(kind: Kind, test: &str, log: &'static str) -> Option<Said> {
    let server = servers::server(kind, test).await?;
    let mind = Mind::start().await;
    let permissions = format!("\"{SERVER_NAME}\" = \"chat\"\n\"@alice:{SERVER_NAME}\" = \"admin\"\n");
    let heart = "beat_min = \"1s\"\n".to_owned();
    let setup = Setup { log, permissions, heart, ..mind.setup(&server)? };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let eir = persona("eir");
    let room = alice.join(&alias("swarm")).await;
    alice.say(&room, &format!("{}, {WORDS} in a room, {}?", name("eir"), word(1))).await;
    wait_for_answers(&mut alice, &room, &eir, 1).await;
    let direct = alice.create_dm(&eir).await;
    alice.say(&direct, &format!("{WORDS} in private, {}?", word(2))).await;
    wait_for_answers(&mut alice, &direct, &eir, 1).await;
    reminder(&mind, &mut alice, &direct).await;
    beside_mail(&mut alice, &room, &direct).await;
    commands(&mut alice).await;
    strange_calls(&bridge, &server).await;
    let doctors = doctor(&bridge).await;
    failing_turn(&mind, &alice, &direct, &bridge).await;
    bridge.stop().await;
    let mut secrets = secrets(&server, &bridge.dir);
    refused_token(&mut bridge, &mut secrets).await;
    let text = format!("{}{doctors}", bridge.log());
    for step in ["turn begins", "they are held", "unreadable", "the homeserver refuses"] {
        assert!(text.contains(step), "{step} was to be seen in\n{text}");
    }
    Some(Said { text, secrets })
}

/// She sets a reminder in private, and is told it when it is due.
async fn reminder(mind: &Mind, alice: &mut User, direct: &ruma::RoomId) {
    let says = |text: String, remind: Value| {
        Answer::Typed(json!({"say": [{"text": text}], "react": [], "remind": remind}))
    };
    let text = format!("{WORDS} in a reminder, {}", word(4));
    mind.api.script([
        says(format!("Yes, {}.", word(5)), json!([{ "in": "2s", "text": text }])),
        says(format!("Yes, {}.", word(6)), json!([])),
    ]);
    alice.say(direct, &format!("{WORDS} to be reminded of, {}?", word(5))).await;
    let eir = persona("eir");
    wait_for_answers(alice, direct, &eir, 3).await;
    assert!(mind.api.requests().iter().any(|request| request.words().contains(&text)), "it was told");
}

/// What people do in a room beside talking.
async fn beside_mail(alice: &mut User, room: &ruma::RoomId, direct: &ruma::RoomId) {
    let said = alice.said_by(room, &persona("eir")).await.remove(0).event_id;
    let relation = json!({ "rel_type": "m.annotation", "event_id": said, "key": WORDS });
    alice.send(room, "m.reaction", json!({ "m.relates_to": relation })).await;
    alice
        .send_state(direct, "m.room.topic", "", json!({ "topic": format!("{WORDS} and {}", word(7)) }))
        .await;
}

/// Commands in chat with words in them, and such as show some.
async fn commands(alice: &mut User) {
    let bot = format!("@persona-bridge:{SERVER_NAME}");
    let desk = alice.create_dm(&bot).await;
    alice.event("the bot comes", |seen| seen.room == desk && seen.is_join_of(&bot)).await;
    let long = format!("campaign {WORDS} {}", "so ".repeat(500));
    for (command, answer) in [
        (format!("campaign open fair The {WORDS} fair {}", word(8)), "fair"),
        (format!("{WORDS} {}", word(8)), "I do not know"),
        ("campaign".to_owned(), WORDS),
        ("memory eir".to_owned(), "remembers nothing"),
        ("remind eir".to_owned(), "no reminder"),
        (long, "too long"),
    ] {
        let asked = alice.say(&desk, &command).await;
        let said = alice.answer(&desk, &asked, &bot).await.body().to_owned();
        assert!(said.contains(answer), "{command}: {said}");
    }
}

/// Malformed events, and calls with no token of ours in either place.
async fn strange_calls(bridge: &Bridge, server: &Server) {
    let url = format!("http://127.0.0.1:{}/_matrix/app/v1/transactions/{WORDS}", bridge.port);
    let odd = json!({ "type": 7, "sender": "@alice:hs.test", "content": { "body": WORDS } });
    let body = json!({ "events": [odd, WORDS, null] }).to_string();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let put = || http.put(&url).body(body.clone());
    let status = async |call: reqwest::RequestBuilder| call.send().await.unwrap().status().as_u16();
    assert_eq!(status(put().bearer_auth(format!("{WORDS}-wrong-token"))).await, 403);
    assert_eq!(status(http.put(format!("{url}?access_token={WORDS}-wrong")).body("{}")).await, 403);
    assert_eq!(status(put()).await, 401);
    assert_eq!(status(put().bearer_auth(&server.appservice.hs_token)).await, 200);
    let page: Value = serde_json::from_str(&bridge.get("stats").await.unwrap().1).unwrap();
    assert_eq!(page["quarantined"], 3, "{page}");
}

/// Her mail cannot be answered, and the API's own words repeat it.
async fn failing_turn(mind: &Mind, alice: &User, direct: &ruma::RoomId, bridge: &Bridge) {
    let refused = Answer::error(400, "invalid_request_error", &format!("messages: {WORDS} cannot be taken"));
    mind.api.rule(move |_| refused.clone());
    alice.say(direct, &format!("{WORDS} that fails, {}?", word(3))).await;
    bridge.logs("they are held").await;
}

async fn doctor(bridge: &Bridge) -> String {
    let mut doctor = tokio::process::Command::new(PROGRAM);
    doctor.args(["doctor", "--config", "config.toml"]).current_dir(&bridge.dir).kill_on_drop(true);
    let output = doctor.output().await.unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A start with a token that the homeserver does not know.
async fn refused_token(bridge: &mut Bridge, secrets: &mut Vec<String>) {
    let registration = bridge.dir.join("registration.yaml");
    let (other, text) = ("as-of-another-bridge".to_owned(), std::fs::read_to_string(&registration).unwrap());
    std::fs::write(&registration, text.replace(&secrets[0], &other)).unwrap();
    secrets.push(other);
    bridge.start().await;
    let status = bridge.ended().await.unwrap();
    assert_eq!(status.code(), Some(16), "{status}\n{}", bridge.log());
    bridge.kill(Signal::KILL).await;
}

/// Every secret there is: the registration's, the mind's key, and the Personas' own tokens where they have some.
fn secrets(server: &Server, dir: &Path) -> Vec<String> {
    let appservice = &server.appservice;
    let mut all = vec![appservice.as_token.clone(), appservice.hs_token.clone()];
    all.push(std::fs::read_to_string(dir.join("key")).unwrap());
    let owner = Owner { server_name: SERVER_NAME.to_owned(), appservice: "persona-bridge".to_owned() };
    let opening = Opening { owner, epoch: Uuid::from_u128(1), now: Millis(0) };
    let store = Store::open(&Config { path: dir.join("store"), min_free: 0 }, opening).unwrap();
    for user in [persona("eir"), format!("@persona-bridge:{SERVER_NAME}")] {
        let row = store.identity(&OwnedUserId::try_from(user).unwrap()).unwrap();
        all.extend(row.and_then(|row| row.token));
    }
    all
}
