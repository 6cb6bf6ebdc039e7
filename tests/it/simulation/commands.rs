//! Commands of admins in chat.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::{Lever, Order, carry_out};
use persona_bridge::conversation::{Bots, Level, Millis, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::session::Usd;
use persona_bridge::persona::session::care::Word;
use persona_bridge::persona::{Budget, Ending, Limit};
use serde_json::json;

use super::budget::dear_world;
use super::flushes::ASKED;
use super::stage::{BOT, EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour};

/// A world in which Alice is an admin and Bob is not.
pub(super) fn world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world
}

/// Alice says a command in a room: the bot's answer there.
pub(super) async fn answer(stage: &Stage, room: &str, command: &str) -> String {
    let before = stage.home.bodies(room, BOT).len();
    stage.alice().say(room, command);
    stage.said(room, BOT, before + 1).await.remove(before)
}

/// The management room of Alice.
pub(super) async fn desk(stage: &Stage) -> String {
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
fn a_command_that_is_too_long_is_answered_and_no_mail() {
    on_both(|flavour| {
        let mut world = world(flavour);
        world.play(async |stage| {
            let (swarm, desk) = (stage.swarm().await, desk(stage).await);
            let long = format!("!persona pause eir, Eir, {}", "so ".repeat(1_000));
            for room in [&swarm, &desk] {
                let answer = answer(stage, room, &long).await;
                assert!(answer.contains("too long"), "{answer}");
            }
            assert!(answer(stage, &desk, &long[9..]).await.contains("too long"));
            stage.bob().say(&swarm, &long);
            stage.calm().await;
            assert_eq!(stage.home.bodies(&swarm, BOT).len(), 1, "Bob commands nothing");
            assert_eq!(stage.stats().await["braked"], json!(null));
            stage.ask("hello").await;
        });
        counts(&[world.words("eir")], &[("!persona", 0), ("hello", 1)]);
    });
}

#[test]
fn status_and_wakes_tell_of_a_budget_that_is_spent() {
    let mut world =
        dear_world(Budget { per_persona_per_day: Some(Usd::of_dollars(1.0)), ..Budget::default() });
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.play(async |stage| {
        let (swarm, desk) = (stage.swarm().await, desk(stage).await);
        stage.ask("first").await;
        stage.alice().say(&swarm, "Eir, second");
        stage.pass(60_000).await;
        let held = "her budget of the day is spent: nothing is asked of her until 2027-01-16 00:00 UTC";
        let status = answer(stage, &desk, "status").await;
        assert!(status.contains(&format!("eir: {held}\n")) && status.contains("brage: idle\n"), "{status}");
        let wakes = answer(stage, &desk, "wakes #persona_swarm:hs.test").await;
        assert_eq!(wakes.matches(held).count(), 1, "{wakes}");
    });
}

#[test]
fn wakes_tells_what_keeps_the_words_of_a_room_from_waking() {
    let mut world = world(Flavour::Synapse);
    world.config.registers.values_mut().for_each(|register| register.heed.personas_wake = true);
    world.config.bots = Bots(vec!["@*bot:hs.test".to_owned()]);
    world.config.addressed_only.insert("#persona_swarm:hs.test".parse().expect("an alias"));
    world.config.among.max_hops = 0;
    world.config.among.room = Some(Limit { most: 1, within: Duration::from_secs(3_600) });
    world.play(async |stage| {
        let desk = desk(stage).await;
        let wakes = async || answer(stage, &desk, "wakes #persona_swarm:hs.test").await;
        let calm = wakes().await;
        for (expect, count) in [
            ("listen = \"addressed\": what is addressed to nobody is not even heard", 1),
            ("bots wake nobody: @*bot:hs.test, and whatever is a notice", 1),
            ("Personas do not wake her: max_hops is 0", 2),
            ("room_limit", 0),
        ] {
            assert_eq!(calm.matches(expect).count(), count, "{expect}: {calm}");
        }
        stage.ask("hello").await;
        let full =
            "room_limit (1 per 1h) is reached: nothing said here wakes anybody until 2027-01-15 09:00 UTC";
        let wakes = wakes().await;
        assert!(wakes.contains(full), "{wakes}");
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
fn what_is_nearly_stop_or_go_is_answered_in_the_room_and_stops_nobody() {
    on_both(|flavour| {
        let mut world = world(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            for (said, meant) in [("stpo", "stop"), ("gp", "go"), ("eir stpo", "eir stop")] {
                let answer = answer(stage, &swarm, &format!("!persona {said}")).await;
                assert!(answer.contains(&format!("did you mean `!persona {meant}`?")), "{said}: {answer}");
                assert_eq!(stage.stats().await["braked"], json!(null));
            }
            stage.ask("hello").await;
        });
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

/// A world in which Eir sets a reminder when she is first asked, and goes on with her session whatever that costs.
fn with_a_reminder() -> World {
    let mut world = world(Flavour::Synapse);
    world.script = Arc::new(|who, words| {
        let mut reply = json!({ "say": [], "react": [] });
        if who == "eir" && words.contains("remind yourself") {
            reply["remind"] = json!([{ "in": "10h", "text": "the tea" }]);
        }
        if who == "eir" && words.contains("# mail for you") {
            reply["say"] = json!([{ "text": "yes" }]);
        }
        Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
    });
    world
}

/// Asks for the members of rooms are refused for so long.
fn keep_waiting(stage: &Stage) {
    let refused = Fault::Answer(502, String::new());
    stage.home.fail_when(u32::MAX, refused, |seen| seen.path.contains("/joined_members"));
}

#[test]
fn what_was_carried_out_before_a_crash_is_answered_and_not_carried_out_again() {
    let eir = || PersonaId("eir".into());
    let session = |word| Order::Session { persona: eir(), word };
    for (command, order) in [("refresh eir", session(Word::Refresh)), ("flush eir", session(Word::Flush))] {
        let mut world = with_a_reminder();
        let (event, desk) = world.play(async |stage| {
            let desk = desk(stage).await;
            stage.ask("first").await;
            keep_waiting(stage);
            let event = stage.alice().say(&desk, command);
            stage.pass(5_000).await;
            assert_eq!(stage.home.bodies(&desk, BOT), [""; 0], "it waits");
            (event, desk)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let store = world.store().for_question(&event.try_into().expect("an event id"));
        runtime.block_on(carry_out(&store, &order, Millis(0))).expect("it is carried out");
        drop(store);
        world.play(async |stage| {
            stage.ask("second").await;
            let fed = stage.thoughts("eir");
            stage.home.clear_faults();
            stage.said(&desk, BOT, 1).await;
            stage.calm().await;
            let answer = stage.home.bodies(&desk, BOT);
            assert!(answer.len() == 1 && answer[0].contains("was dealt with before"), "{answer:?}");
            stage.pass(60_000).await;
            assert_eq!(stage.thoughts("eir"), fed, "{command}: she is not asked again");
            stage.ask("third").await;
        });
        counts(&world.told(), &[("begins session 3", 0)]);
        let flushes = world.words("eir").matches(ASKED).count();
        assert_eq!(flushes, usize::from(order == session(Word::Flush)), "{command}");
    }
}

/// Cuts the power while the order is on its way to the disk, and before and after that.
#[test]
fn an_order_in_chat_is_carried_out_once_whenever_the_power_was_cut() {
    for (command, expect) in [
        ("campaign open fair The big fair", "the campaign fair is open; every Persona"),
        ("remind eir cancel r1", "eir is not reminded of r1 any more"),
        ("refresh eir", "the next mail begins session 2 of eir"),
        ("flush eir", "eir is asked once to note"),
    ] {
        for (life, yields) in (1..10).flat_map(|life| [0, 30, 300].map(|yields| (life, yields))) {
            let mut world = with_a_reminder();
            let desk = world.play(async |stage| {
                let desk = desk(stage).await;
                stage.ask("remind yourself").await;
                stage.alice().say(&desk, command);
                stage.pass(life).await;
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                desk
            });
            world.play(async |stage| {
                stage.said(&desk, BOT, 1).await;
                stage.calm().await;
                let said = stage.home.bodies(&desk, BOT);
                let is_told = said[0].contains(expect) || said[0].contains("was dealt with before");
                assert!(said.len() == 1 && is_told, "cut after {life} ms and {yields} steps: {said:?}");
            });
        }
    }
}

#[test]
fn a_command_that_was_said_before_an_order_came_changes_nothing_of_it() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let desk = desk(stage).await;
        let said = |id: &str, body: &str, at: u64| {
            let event = json!({
                "type": "m.room.message", "event_id": id, "room_id": desk, "sender": "@alice:hs.test",
                "origin_server_ts": at, "content": { "msgtype": "m.text", "body": body },
            });
            json!({ "events": [event] })
        };
        let before = stage.now();
        stage.pass(1_000).await;
        stage.brake(Lever::Hold).await;
        assert_eq!(stage.push("1", &said("$1:hs.test", "brake release", before)).await, 200);
        stage.said(&desk, BOT, 1).await;
        assert_eq!(stage.stats().await["braked"], "everyone");
        assert!(answer(stage, &desk, "brake release").await.contains("holds nobody"));
        assert_eq!(stage.push("2", &said("$2:hs.test", "pause eir", before)).await, 200);
        let answers = stage.said(&desk, BOT, 3).await;
        counts(&answers, &[("nothing is changed; say it again", 2)]);
        assert_eq!(stage.stats().await["braked"], json!(null));
        // A clock that is ahead keeps nobody from saying what comes after.
        assert_eq!(stage.push("3", &said("$3:hs.test", "pause eir", stage.now() + 600_000)).await, 200);
        assert!(stage.said(&desk, BOT, 4).await[3].contains("holds eir"));
        stage.brake(Lever::Release).await;
        assert!(answer(stage, &desk, "pause eir").await.contains("holds eir"));
        // Whichever comes first, what was done to one bears on the other one as little as a hold on a hold.
        let (earlier, later) = (stage.now() - 1_000, stage.now());
        stage.brake(Lever::Release).await;
        for (txn, whom, at) in [("4", "brage", later + 10), ("5", "eir", earlier + 1_005)] {
            stage.pass(20).await;
            let (event, command) = (format!("${txn}:hs.test"), format!("pause {whom}"));
            assert_eq!(stage.push(txn, &said(&event, &command, at)).await, 200);
            stage.calm().await;
        }
        assert_eq!(stage.stats().await["braked"], "brage, eir");
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
