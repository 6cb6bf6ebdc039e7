//! How the process begins and ends: one on a store, in peace when it is asked, leaving nothing behind when it is killed.

use std::time::Duration;

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::{Kind, free_port};
use rustix::process::{Pid, kill_process};

use super::ground::{Mind, account, all_answered_once, one, processes_of, wait_for_answers, word};
use crate::bridge::{Bridge, PROGRAM, alias, name, persona};
use crate::fake::messages_api::{Answer, Gate};
use crate::servers;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_hand_is_finished_and_a_killed_one_leaves_nothing_on_synapse() {
    ends(Kind::Synapse, "a_turn_in_hand_is_finished_and_a_killed_one_leaves_nothing_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_hand_is_finished_and_a_killed_one_leaves_nothing_on_conduit() {
    ends(Kind::Conduit, "a_turn_in_hand_is_finished_and_a_killed_one_leaves_nothing_on_conduit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_instance_is_refused_on_synapse() {
    second(Kind::Synapse, "a_second_instance_is_refused_on_synapse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_instance_is_refused_on_conduit() {
    second(Kind::Conduit, "a_second_instance_is_refused_on_conduit").await;
}

async fn ends(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mind = Mind::start().await;
    let Some(setup) = mind.setup(&server) else { return };
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let minds = bridge.dir.join("minds");
    let mut alice = User::register(&server, "alice").await;
    let room = alice.join(&alias("swarm")).await;
    let eir = persona("eir");

    // The first signal comes while the API has not answered yet.
    let gate = Gate::closed();
    mind.api.script([Answer::Held(gate.clone(), Box::new(Answer::say(&word(1))))]);
    alice.say(&room, &format!("{}, {}?", name("eir"), word(1))).await;
    mind.api.wait_for(1).await;
    kill_process(Pid::from_raw(bridge.pid().unwrap()).unwrap(), Signal::TERM).unwrap();
    bridge.logs("stopping: turns in hand finish").await;
    gate.open();
    let status = bridge.ended().await.unwrap();
    assert_eq!(status.code(), Some(0), "{}", bridge.log());
    assert_eq!(account(&alice, &room, &eir).await.1, [word(1)], "answered before it left");
    assert_eq!(processes_of(&minds), Vec::<String>::new());

    // The second time it is killed in the middle of an answer.
    bridge.restart().await;
    mind.api.script([Answer::HeldInStream(Gate::closed(), Box::new(Answer::say("never heard")))]);
    alice.say(&room, &format!("{}, {}?", name("eir"), word(2))).await;
    mind.api.wait_for(2).await;
    assert_ne!(processes_of(&minds), Vec::<String>::new());
    bridge.kill(Signal::KILL).await;
    let gone = async {
        while !processes_of(&minds).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(2), gone).await.is_ok(), "{:#?}", processes_of(&minds));
    assert_eq!(mind.api.requests().len(), 2, "nobody asks any more");
    bridge.restart().await;
    assert_eq!(all_answered_once(&mut alice, &room, &eir).await.len(), 3);
    assert_eq!(mind.api.requests().len(), 4);
}

async fn second(kind: Kind, test: &str) {
    let Some(server) = servers::server(kind, test).await else { return };
    let bridge = Bridge::spawn(&server, &one()).await;
    let config = std::fs::read_to_string(bridge.dir.join("config.toml")).unwrap();
    let listen = |port: u16| format!("listen = \"127.0.0.1:{port}\"");
    let other = config.replace(&listen(bridge.port), &listen(free_port().unwrap()));
    assert_ne!(other, config);
    std::fs::write(bridge.dir.join("second.toml"), other).unwrap();
    let mut run = tokio::process::Command::new(PROGRAM);
    run.args(["run", "--config", "second.toml"]).current_dir(&bridge.dir).kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(30), run.output()).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(15), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("store") && last.contains("another persona-bridge"), "{said}");
    let mut alice = User::register(&server, "alice").await;
    let direct = alice.create_dm(&persona("eir")).await;
    alice.say(&direct, &word(1)).await;
    wait_for_answers(&mut alice, &direct, &persona("eir"), 1).await;
}
