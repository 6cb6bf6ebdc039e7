//! SIGKILL of the bridge at random moments, with the real CLI: each message is answered once, in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use persona_bridge::demo::child::Signal;
use persona_bridge::demo::homeserver::Kind;
use ruma::RoomId;

use super::ground::{self, Dice, Mind, account, all_answered_once, processes_of, word};
use crate::bridge::{Bridge, alias, persona};
use crate::servers;
use crate::tools;
use crate::user::User;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_each_message_is_answered_once_on_synapse() {
    killed(Kind::Synapse, "killed_at_any_moment_each_message_is_answered_once_on_synapse", 20_261).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_each_message_is_answered_once_on_conduit() {
    killed(Kind::Conduit, "killed_at_any_moment_each_message_is_answered_once_on_conduit", 20_262).await;
}

async fn killed(kind: Kind, test: &str, seed: u64) {
    let Some(server) = servers::server(kind, test).await else { return };
    let mind = Mind::start().await;
    let Some(setup) = mind.setup(&server) else { return };
    let kills = 10 * tools::scale();
    tools::aloud(&format!("{test}: {kills} kills, seed {seed}"));
    let mut bridge = Bridge::spawn(&server, &setup).await;
    let mut alice = User::register(&server, "alice").await;
    let eir = persona("eir");
    let room = alice.join(&alias("swarm")).await;
    let direct = alice.create_dm(&eir).await;
    let over = AtomicBool::new(false);
    let ((), found) = tokio::join!(talk(&alice, &room, &direct, &over, Dice::new(seed)), async {
        let found = kill_often(&mut bridge, &mind, kills, Dice::new(seed + 100)).await;
        over.store(true, Ordering::Relaxed);
        found
    });
    assert!(found, "processes are found at all");
    bridge.kill(Signal::KILL).await;
    let gone = tokio::time::timeout(Duration::from_secs(2), async {
        while !processes_of(&bridge.dir.join("minds")).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(gone.await.is_ok(), "left after a kill: {:#?}", processes_of(&bridge.dir.join("minds")));
    bridge.restart().await;
    let said = all_answered_once(&mut alice, &room, &eir).await.len();
    let said = said + all_answered_once(&mut alice, &direct, &eir).await.len();
    tools::aloud(&format!("{test}: {said} messages, {} requests", mind.asked().len()));
    assert!(mind.repeats() <= kills as usize, "more requests than kills explain: {:?}", mind.asked());
    for room in [&room, &direct] {
        none_is_asked_after_its_answer(&mind, &alice, room).await;
    }
}

/// Writes to both rooms until it is over.
async fn talk(alice: &User, room: &RoomId, direct: &RoomId, over: &AtomicBool, mut dice: Dice) {
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        number += 1;
        if dice.below(2) == 0 {
            alice.say(room, &format!("Eir, {}?", word(number))).await;
        } else {
            alice.say(direct, &word(number)).await;
        }
        tokio::time::sleep(dice.time(700)).await;
    }
}

/// Kills and starts the bridge again: now and then before it is ready, else while it thinks or has just thought.
/// Tells whether a process of her mind was ever seen before a kill.
async fn kill_often(bridge: &mut Bridge, mind: &Mind, kills: u32, mut dice: Dice) -> bool {
    let mut found = false;
    for _ in 0..kills {
        if dice.below(4) > 0 {
            mind.api.wait_for(mind.api.requests().len() + 1).await;
        }
        tokio::time::sleep(dice.time(800)).await;
        found |= !processes_of(&bridge.dir.join("minds")).is_empty();
        bridge.kill(Signal::KILL).await;
        bridge.start().await;
    }
    found
}

/// Whatever stands answered in the room was not asked for again after that.
async fn none_is_asked_after_its_answer(mind: &Mind, alice: &User, room: &RoomId) {
    let (_, answered) = account(alice, room, &persona("eir")).await;
    assert!(answered.len() > 3, "too little was said");
    for event in alice.said_by(room, &persona("eir")).await {
        for answered in ground::words(event.body()) {
            let late =
                mind.asked().into_iter().filter(|(at, words)| *at > event.at && words.contains(&answered));
            assert_eq!(late.collect::<Vec<_>>(), [], "asked again after its answer at {}", event.at);
        }
    }
}
