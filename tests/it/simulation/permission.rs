//! Permission that is withdrawn between what somebody says and what follows from it.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::Lever;
use persona_bridge::conversation::Level;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::{Value, json};

use super::stage::{BRAGE, EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour};

fn block(world: &mut World, user: &str) {
    world.config.permissions.0.insert(user.to_owned(), Level::Block);
}

#[test]
fn waiting_mail_of_who_is_blocked_by_now_is_never_fed() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.brake(Lever::Hold).await;
        stage.alice().say(&swarm, "good morning all");
        stage.bob().say(&swarm, "Eir, a secret of mine");
        stage.calm().await;
    });
    block(&mut world, "@bob:hs.test");
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.brake(Lever::Release).await;
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 0, "nobody who is heard has asked anything");
        stage.alice().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().say(&swarm, "Brage, hello");
        stage.said(&swarm, BRAGE, 1).await;
    });
    for who in ["eir", "brage"] {
        counts(&[world.words(who)], &[("a secret", 0), ("good morning", 1)]);
    }
}

#[test]
fn a_turn_is_not_asked_again_for_who_is_blocked_by_now() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "good morning all");
        stage.bob().say(&swarm, "Eir, hello");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        swarm
    });
    block(&mut world, "@bob:hs.test");
    world.play(async |stage| {
        stage.pass(60_000).await;
        assert_eq!((stage.thoughts("eir"), stage.home.bodies(&swarm, EIR).len()), (1, 0));
        stage.alice().say(&swarm, "Eir, and I?");
        counts(&stage.said(&swarm, EIR, 1).await, &[("and I?", 1)]);
    });
}

#[test]
fn what_was_said_to_nobody_but_who_is_blocked_by_now_is_dropped_and_told_once() {
    for (asked_by, said) in [(&["bob"][..], 0), (&["bob", "alice"][..], 1)] {
        let mut world = World::new(Flavour::Synapse);
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            let refused = Fault::Answer(502, String::new());
            stage
                .home
                .fail_when(u32::MAX, refused, |seen| seen.method == "PUT" && seen.path.contains("/send/"));
            for user in asked_by {
                stage.home.user(user).say(&swarm, "Eir, hello");
            }
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            stage.pass(100).await;
            assert_eq!(stage.stats().await["outbox"], 1);
            swarm
        });
        world.home.clear_faults();
        block(&mut world, "@bob:hs.test");
        world.play(async |stage| {
            stage.pass(60_000).await;
            assert_eq!(stage.home.bodies(&swarm, EIR).len(), said);
            counts(&stage.told(), &[("is blocked in [permissions] by now", 1 - said)]);
            assert_eq!(stage.stats().await["outbox"], 0);
        });
    }
}

/// A world in which Eir always says this.
fn saying(says: Value) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(move |who, _| {
        let says = if who == "eir" { says.clone() } else { json!([]) };
        let reply = json!({ "say": says, "react": [] }).to_string();
        Scripted { outcome: Outcome::Ends(Ending::Answered { reply }), ..usual() }
    });
    world
}

/// Bob is blocked, and the homeserver takes what waits: what Eir has said then.
fn said_once_bob_is_blocked(world: &mut World, swarm: &str) -> Vec<String> {
    world.home.clear_faults();
    block(world, "@bob:hs.test");
    world.play(async |stage| {
        stage.pass(60_000).await;
        assert_eq!(stage.stats().await["outbox"], 0);
        counts(&stage.told(), &[("is blocked in [permissions] by now", 1)]);
    });
    world.home.bodies(swarm, EIR)
}

/// Bob, then these others say this, and Eir has answered it at once or at a beat, which the homeserver does not take for now.
async fn heard(stage: &Stage, others: &[&str], text: &str) -> String {
    let swarm = stage.swarm().await;
    for user in ["bob"].iter().chain(others) {
        stage.home.user(user).say(&swarm, text);
    }
    let refused = Fault::Answer(502, String::new());
    stage.home.fail_when(u32::MAX, refused, |seen| seen.method == "PUT" && seen.path.contains("/send/"));
    for _ in 0..61 {
        if stage.thoughts("eir") == 0 {
            stage.pass(60_000).await;
        }
    }
    assert!(stage.stats().await["outbox"].as_u64() > Some(0), "it waits");
    swarm
}

#[test]
fn what_was_said_at_a_beat_where_only_who_is_blocked_by_now_was_heard_is_dropped() {
    let mut world = saying(json!([{ "text": "well" }]));
    let swarm = world.play(async |stage| heard(stage, &[], "what a day").await);
    assert_eq!(said_once_bob_is_blocked(&mut world, &swarm), [""; 0]);
    let mut world = saying(json!([{ "text": "well" }]));
    let swarm = world.play(async |stage| heard(stage, &["alice"], "what a day").await);
    world.home.clear_faults();
    block(&mut world, "@bob:hs.test");
    world.play(async |stage| stage.said(&swarm, EIR, 1).await);
}

#[test]
fn an_answer_to_who_is_blocked_by_now_is_dropped_and_what_was_said_beside_it_is_sent() {
    let mut world = saying(json!([
        { "text": "to bob", "reply_to": "m1" },
        { "text": "to alice", "reply_to": "m2" },
    ]));
    let swarm = world.play(async |stage| heard(stage, &["alice"], "Eir, hello").await);
    assert_eq!(said_once_bob_is_blocked(&mut world, &swarm), ["to alice"]);
}
