//! Commands of admins in chat.

use std::time::Duration;

use persona_bridge::conversation::Level;
use persona_bridge::persona::Limit;
use serde_json::json;

use super::stage::{BOT, EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::Flavour;

/// A world in which Alice is an admin and Bob is not.
fn world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world
}

/// Alice says a command in a room: the bot's answer there.
async fn answer(stage: &Stage, room: &str, command: &str) -> String {
    let before = stage.home.bodies(room, BOT).len();
    stage.alice().say(room, command);
    stage.said(room, BOT, before + 1).await.remove(before)
}

/// The management room of Alice.
async fn desk(stage: &Stage) -> String {
    stage.swarm().await;
    stage.dm(&stage.alice(), BOT).await
}

#[test]
fn each_command_is_answered_in_a_room_of_an_admin_and_the_bot() {
    on_both(|flavour| {
        let mut world = world(flavour);
        world.play(async |stage| {
            let (swarm, desk) = (stage.swarm().await, desk(stage).await);
            stage.alice().say(&swarm, "Eir, remember that my cat is Tom");
            stage.said(&swarm, EIR, 1).await;
            for (command, expect) in [
                ("help", "pause NAME: "),
                ("personas", "brage: Brage, @persona_brage:hs.test; #persona_swarm:hs.test"),
                ("wakes #persona_swarm:hs.test", "eir (register swarm): people wake her by a mention"),
                ("budget", "per_persona_per_day no limit"),
                ("ledger", "eir: 0 turns"),
                ("version", concat!("persona-bridge ", env!("CARGO_PKG_VERSION"))),
                ("memory eir", "my cat is Tom"),
                ("memory eir show n1", "learned in session 1"),
                ("memory eir forget n1", "eir has forgotten 1 of 1"),
                ("campaign open fair The big fair", "fair"),
                ("campaign", "The big fair"),
                ("campaign close fair", "fair"),
                ("refresh eir", "the next mail begins session 2 of eir"),
                ("flush eir", "eir is asked once to note"),
                ("release", "0 held messages are asked again"),
                ("pause Eir", "the brake holds eir"),
                ("release eir", "the brake holds eir: `brake release`"),
                ("resume eir", "the brake holds nobody"),
                ("brake", "the brake holds everyone"),
                ("!persona brake show", "the brake holds everyone"),
                ("brake release", "the brake holds nobody"),
            ] {
                let answer = answer(stage, &desk, command).await;
                assert!(answer.contains(expect), "{command}: {answer}");
            }
            assert_eq!(stage.stats().await["braked"], json!(null));
        });
    });
}

#[test]
fn status_tells_how_everybody_is() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let (swarm, desk) = (stage.swarm().await, desk(stage).await);
        stage.ask("hello").await;
        answer(stage, &desk, "pause brage").await;
        stage.bob().say(&swarm, "Brage, are you there?");
        stage.pass(90_000).await;
        let status = answer(stage, &desk, "status").await;
        for expect in [
            "eir: idle\n  session 1, ",
            "brage: held\n  session none yet",
            "waiting 3 in swarm, the oldest for 1m",
            "the brake holds brage",
            "the next beat falls 2027-01-15 08:30",
        ] {
            assert!(status.contains(expect), "{expect}: {status}");
        }
    });
}

#[test]
fn wakes_tells_of_two_who_are_held_because_they_woke_each_other_too_often() {
    let mut world = world(Flavour::Synapse);
    world.config.registers.values_mut().for_each(|register| register.heed.personas_wake = true);
    world.config.among.max_hops = u32::MAX;
    world.config.among.pair = Some(Limit { most: 2, within: Duration::from_secs(3_600) });
    world.script = super::among::always_answering();
    world.play(async |stage| {
        let (swarm, desk) = (stage.swarm().await, desk(stage).await);
        let wakes = async || answer(stage, &desk, "wakes #persona_swarm:hs.test").await;
        let held = "she and another woke each other too often";
        assert_eq!(wakes().await.matches(held).count(), 0);
        stage.alice().say(&swarm, "Eir, begin");
        stage.pass(60_000).await;
        assert_eq!(wakes().await.matches(held).count(), 2);
    });
}

#[test]
fn what_is_nearly_a_command_is_answered_and_not_carried_out() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let (swarm, desk) = (stage.swarm().await, desk(stage).await);
        assert!(answer(stage, &desk, "puase eir").await.contains("did you mean `pause eir`?"));
        assert!(answer(stage, &swarm, "!persona barke").await.contains("did you mean `brake`?"));
        assert_eq!(stage.stats().await["braked"], json!(null));
        assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (0, 0));
    });
}

#[test]
fn a_command_in_a_room_of_personas_is_carried_out_and_is_no_mail() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.ask("remember that my cat is Tom").await;
        assert!(answer(stage, &swarm, "!persona pause eir").await.contains("the brake holds eir"));
        let memory = answer(stage, &swarm, "!persona memory eir").await;
        assert!(!memory.contains("Tom") && memory.contains("in a room of you and me"), "{memory}");
        let wakes = answer(stage, &swarm, "!persona wakes").await;
        assert!(wakes.contains("the brake holds her"), "{wakes}");
        answer(stage, &swarm, "!persona resume eir").await;
        stage.ask("and now?").await;
    });
    counts(&[world.words("eir")], &[("!persona", 0)]);
}

#[test]
fn who_is_no_admin_is_told_so_once_in_a_direct_chat_and_commands_nothing() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let desk = stage.dm(&stage.bob(), BOT).await;
        for _ in 0..3 {
            stage.bob().say(&desk, "brake");
            stage.bob().say(&swarm, "!persona brake");
            stage.bob().say(&swarm, "!persona pause Eir");
            stage.calm().await;
        }
        counts(&stage.home.bodies(&desk, BOT), &[("I take commands of admins alone", 1)]);
        assert_eq!(stage.home.bodies(&swarm, BOT), [""; 0]);
        assert_eq!((stage.stats().await["braked"].clone(), stage.thoughts("eir")), (json!(null), 0));
    });
}

#[test]
fn a_room_that_somebody_else_joins_is_no_management_room_any_more() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let desk = desk(stage).await;
        assert!(answer(stage, &desk, "status").await.contains("eir: idle"));
        stage.alice().invite(&desk, &stage.bob().id);
        stage.bob().join(&desk);
        stage.alice().say(&desk, "brake");
        stage.bob().say(&desk, "status");
        stage.calm().await;
        assert_eq!(stage.home.bodies(&desk, BOT).len(), 1);
        assert_eq!(stage.stats().await["braked"], json!(null));
        assert!(answer(stage, &desk, "!persona memory eir").await.contains("in a room of you and me"));
    });
}

#[test]
fn a_command_that_is_delivered_again_runs_once() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let desk = desk(stage).await;
        let brake = stage.alice().say(&desk, "pause eir");
        stage.said(&desk, BOT, 1).await;
        answer(stage, &desk, "resume eir").await;
        let event = json!({
            "type": "m.room.message", "event_id": brake, "room_id": desk, "sender": "@alice:hs.test",
            "origin_server_ts": stage.now(), "content": { "msgtype": "m.text", "body": "pause eir" },
        });
        assert_eq!(stage.push("again", &json!({ "events": [event] })).await, 200);
        stage.calm().await;
        assert_eq!(stage.home.bodies(&desk, BOT).len(), 2);
        assert_eq!(stage.stats().await["braked"], json!(null));
    });
}

#[test]
fn a_command_is_answered_once_whenever_the_power_was_cut() {
    for life in (1..40).step_by(3) {
        let mut world = world(Flavour::Synapse);
        let desk = world.play(async |stage| {
            let desk = desk(stage).await;
            stage.alice().say(&desk, "brake");
            stage.pass(life).await;
            desk
        });
        world.play(async |stage| {
            stage.said(&desk, BOT, 1).await;
            stage.calm().await;
            assert_eq!(stage.stats().await["braked"], "everyone");
            assert_eq!(stage.home.bodies(&desk, BOT).len(), 1, "cut after {life} ms");
            assert!(
                answer(stage, &desk, "brake release").await.contains("holds nobody"),
                "it is still known"
            );
        });
    }
}
