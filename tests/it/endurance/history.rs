//! What was said before she was there, or before the store was made, is context and never mail.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::Kind;
use ruma::RoomId;
use serde_json::json;

use super::ground::{account, all_answered_once, one, wait_for_answers, word, words};
use crate::bridge::{Bridge, Setup, name, persona};
use crate::servers;
use crate::tools;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn old_messages_are_neither_fed_nor_answered_on_synapse() {
    old_messages(Kind::Synapse, "old_messages_are_neither_fed_nor_answered_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_messages_are_neither_fed_nor_answered_on_conduit() {
    old_messages(Kind::Conduit, "old_messages_are_neither_fed_nor_answered_on_conduit").await;
}

async fn old_messages(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let setup = Setup { default_register: Some("swarm".to_owned()), ..one() };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let eir = persona("eir");
    let room = alice.create_room(json!({"name": "Old"})).await;
    let (old, answered) = if tools::scale() == 1 { (200, 20) } else { (1000, 1000) };
    for number in 0..old {
        alice.say(&room, &format!("{}, {}?", name("eir"), word(number))).await;
    }
    // She joins a room full of old messages.
    alice.invite(&room, &eir).await;
    alice.event("her join", |event| event.is_join_of(&eir)).await;
    alice.say(&room, &format!("{}, {}?", name("eir"), word(5001))).await;
    wait_for_answers(&mut alice, &room, &eir, 1).await;
    assert_eq!(account(&alice, &room, &eir).await.1, [word(5001)]);
    assert_eq!(fed(&bridge.dir), [word(5001)]);
    // She has answered many in a direct room, and the store is deleted: hearing begins at the newest message.
    let direct = alice.create_dm(&eir).await;
    for number in 0..answered {
        alice.say(&direct, &word(number)).await;
    }
    all_answered_once(&mut alice, &direct, &eir).await;
    for room in [&room, &direct] {
        bridge.kill(Signal::KILL).await;
        std::fs::remove_dir_all(bridge.dir.join("store")).unwrap();
        std::fs::remove_dir_all(bridge.dir.join("scripted")).unwrap();
        bridge.restart().await;
        let (_, before) = account(&alice, room, &eir).await;
        let asked = ask_until_heard(&mut alice, room).await;
        let (_, after) = account(&alice, room, &eir).await;
        let new = after.strip_prefix(before.as_slice()).unwrap();
        assert!(!new.is_empty() && asked.ends_with(new), "{new:?} of {asked:?}");
        assert_eq!(fed(&bridge.dir), new);
    }
}

/// Asks until she answers: what is said before the new store has seen the room is old to it.
async fn ask_until_heard(alice: &mut User, room: &RoomId) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(6000);
    let eir = persona("eir");
    let answers = account(alice, room, &eir).await.1.len();
    let mut asked = Vec::new();
    loop {
        let word = word(NEXT.fetch_add(1, Ordering::Relaxed));
        alice.say(room, &format!("{}, {word}?", name("eir"))).await;
        asked.push(word);
        let answer = wait_for_answers(alice, room, &eir, answers + 1);
        if tokio::time::timeout(Duration::from_secs(3), answer).await.is_ok() {
            return asked;
        }
        assert!(asked.len() < 10, "she hears nothing in {room}");
    }
}

/// The numbered words that were fed as mail, from the stand-in's records; lines shown as context are not mail.
fn fed(dir: &Path) -> Vec<String> {
    let mut fed = Vec::new();
    for file in files(&dir.join("scripted")) {
        for row in std::fs::read_to_string(file).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let text = row["words"].as_str().unwrap_or_default();
            fed.extend(text.lines().filter(|line| !line.starts_with("earlier ")).flat_map(words));
        }
    }
    fed
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}
