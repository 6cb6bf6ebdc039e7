//! Admins who stop Personas in a room by a word, and let them go on.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::Lever;
use persona_bridge::conversation::Level;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::{Ending, Limit};
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour};

/// A world in which Alice is an admin and Bob is not.
fn world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world
}

fn slow_world(flavour: Flavour) -> World {
    let mut world = world(flavour);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    world
}

/// Alice says a word, and its transaction is answered: how many messages Personas have said in the room by then.
async fn says(stage: &Stage, room: &str, word: &str) -> usize {
    stage.alice().say(room, word);
    stage.until("the word is taken", || stage.home.waiting() == 0).await;
    said(stage, room)
}

fn said(stage: &Stage, room: &str) -> usize {
    [EIR, BRAGE].iter().map(|who| stage.home.bodies(room, who).len()).sum()
}

#[test]
fn a_stop_ends_what_is_thought_about_a_room_and_she_goes_on_elsewhere() {
    on_both(|flavour| {
        let mut world = slow_world(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let dm = stage.dm(&stage.bob(), EIR).await;
            stage.alice().say(&swarm, "Eir, first");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            says(stage, &swarm, "STOP").await;
            let stopped = stage.now();
            stage.bob().say(&dm, "are you there?");
            stage.said(&dm, EIR, 1).await;
            assert!(stage.now() - stopped < 12_000, "her turn was ended at once");
            stage.bob().say(&swarm, "Eir, second");
            stage.pass(600_000).await;
            assert_eq!((said(stage, &swarm), stage.thoughts("eir")), (0, 2));
            assert_eq!(stage.stats().await["braked"], format!("everyone in {swarm}"));
            assert_eq!(stage.unready().await, [""; 0], "a stopped room is no fault");
            says(stage, &swarm, "!persona go").await;
            counts(&stage.said(&swarm, EIR, 1).await, &[("first", 1), ("second", 1)]);
            let told = stage.told();
            counts(
                &told,
                &[
                    ("@alice:hs.test has stopped everyone in", 1),
                    ("@alice:hs.test lets everyone go on in", 1),
                ],
            );
        });
        let words = world.words("eir");
        counts(&[words], &[("STOP", 0), ("!persona go", 0)]);
        assert_eq!(world.store().counts().held, 0);
    });
}

#[test]
fn of_two_in_a_room_one_is_stopped_by_name() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        says(stage, &swarm, "Eir: stop").await;
        stage.bob().say(&swarm, "Eir and Brage, hello");
        stage.said(&swarm, BRAGE, 1).await;
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 0);
        says(stage, &swarm, "eir go").await;
        stage.said(&swarm, EIR, 1).await;
    });
}

#[test]
fn who_is_no_admin_stops_nobody_and_is_answered() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "Eir stop");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().say(&swarm, "Eir, please stop it now");
        stage.said(&swarm, EIR, 2).await;
        counts(&stage.told(), &[("has stopped", 0)]);
    });
}

#[test]
fn a_word_that_comes_again_or_late_undoes_nothing_that_was_said_after_it() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.pass(5_000).await;
        let stop = stage.alice().say(&swarm, "stop");
        stage.calm().await;
        stage.alice().say(&swarm, "!persona go");
        stage.calm().await;
        let event = |id: &str, at: u64| {
            json!({
                "type": "m.room.message", "event_id": id, "room_id": swarm, "sender": "@alice:hs.test",
                "origin_server_ts": at, "content": { "msgtype": "m.text", "body": "stop" },
            })
        };
        let (again, late) = (event(&stop, stage.now()), event("$late:hs.test", stage.now() - 2_000));
        assert_eq!(stage.push("again", &json!({ "events": [again, late] })).await, 200);
        stage.bob().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 1).await;
        stage.calm().await;
        counts(&stage.told(), &[("has stopped", 1), ("something newer was said", 1)]);
        // A clock that is ahead keeps nobody from saying what comes after.
        let ahead = event("$newer:hs.test", stage.now() + 600_000);
        assert_eq!(stage.push("newer", &json!({ "events": [ahead] })).await, 200);
        stage.bob().say(&swarm, "Eir, and now?");
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 1);
        says(stage, &swarm, "Eir go").await;
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 1);
        counts(&stage.told(), &[("everyone is stopped there", 1), ("lets eir go on", 1)]);
        says(stage, &swarm, "!persona go").await;
        stage.said(&swarm, EIR, 2).await;
    });
}

#[test]
fn a_stop_that_was_said_while_the_bridge_was_away_counts_when_it_is_read_back() {
    on_both(|flavour| {
        let mut world = world(flavour);
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "hello all");
            stage.calm().await;
            swarm
        });
        world.home.user("bob").say(&swarm, "Eir, hello");
        world.home.user("alice").say(&swarm, "stop");
        world.play(async |stage| {
            stage.pass(600_000).await;
            assert_eq!(stage.thoughts("eir"), 0);
            says(stage, &swarm, "!persona go").await;
            stage.said(&swarm, EIR, 1).await;
        });
    });
}

#[test]
fn what_was_said_waits_for_the_word_to_go_and_others_speak_past_it() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let refused = Fault::Answer(502, String::new());
        stage.home.fail_when(1, refused, |seen| seen.method == "PUT" && seen.path.contains("/send/"));
        stage.bob().say(&swarm, "Eir, tell us a long story");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.pass(50).await;
        assert_eq!(stage.stats().await["outbox"], 1, "her answer is on its way");
        assert_eq!(says(stage, &swarm, "Eir stop").await, 0);
        stage.bob().say(&swarm, "Brage, and you?");
        stage.said(&swarm, BRAGE, 1).await;
        stage.pass(60_000).await;
        assert_eq!(stage.home.bodies(&swarm, EIR), [""; 0]);
        says(stage, &swarm, "Eir go").await;
        stage.said(&swarm, EIR, 1).await;
        stage.pass(60_000).await;
        assert_eq!(stage.home.bodies(&swarm, EIR).len(), 1, "nothing is lost, and nothing said twice");
    });
}

#[test]
fn what_waits_for_the_word_to_go_does_not_fill_the_room_for_others() {
    let mut world = world(Flavour::Synapse);
    world.config.among.room = Some(Limit { most: 2, within: Duration::from_secs(60) });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let later = Fault::Limited(Duration::from_secs(20));
        stage.home.fail_when(1, later, |seen| seen.method == "PUT" && seen.path.contains("/send/"));
        for word in ["one", "two"] {
            stage.bob().say(&swarm, &format!("Eir, {word}"));
            stage.calm().await;
        }
        assert_eq!(stage.stats().await["outbox"], 2, "her answers are on their way");
        says(stage, &swarm, "Eir stop").await;
        stage.pass(60_000).await;
        stage.bob().say(&swarm, "Brage, and you?");
        stage.said(&swarm, BRAGE, 1).await;
        let first = stage.now();
        says(stage, &swarm, "Eir go").await;
        stage.pass(first + 59_000 - stage.now()).await;
        assert_eq!(said(stage, &swarm), 2, "the room bears no more");
        stage.said(&swarm, EIR, 2).await;
    });
}

#[test]
fn once_a_stop_is_acknowledged_nothing_enters_the_room_any_more() {
    for moment in (0..60).step_by(2) {
        let mut world = world(Flavour::Synapse);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            for number in 0..4 {
                stage.bob().say(&swarm, &format!("Eir and Brage, what is {number}?"));
                stage.pass(10).await;
            }
            stage.pass(moment).await;
            let said_by_then = says(stage, &swarm, "stop").await;
            stage.pass(60_000).await;
            assert_eq!(said(stage, &swarm), said_by_then, "after {moment} ms");
            says(stage, &swarm, "!persona go").await;
            stage.pass(60_000).await;
            let all = [stage.home.bodies(&swarm, EIR), stage.home.bodies(&swarm, BRAGE)].concat();
            for number in 0..4 {
                counts(&all, &[(&format!("what is {number}?"), 2)]);
            }
        });
    }
}

/// Two who always answer each other, and are let.
fn storm(flavour: Flavour) -> World {
    let mut world = world(flavour);
    world.config.among.max_hops = u32::MAX;
    for register in world.config.registers.values_mut() {
        register.heed.personas_wake = true;
    }
    world.script = Arc::new(|who, _| {
        let other = if who == "eir" { "Brage" } else { "Eir" };
        let reply = json!({ "say": [{ "text": format!("{other}, and you?") }], "react": [] });
        Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
    });
    world
}

#[test]
fn a_stop_ends_a_storm_and_the_word_to_go_lets_it_go_on() {
    on_both(|flavour| {
        let mut world = storm(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.bob().say(&swarm, "Eir, begin");
            stage.until("they storm", || said(stage, &swarm) >= 10).await;
            let said_by_then = says(stage, &swarm, "stop").await;
            stage.pass(600_000).await;
            assert_eq!(said(stage, &swarm), said_by_then);
            says(stage, &swarm, "!persona go").await;
            stage.until("they go on", || said(stage, &swarm) >= said_by_then + 10).await;
            says(stage, &swarm, "brage stop").await;
            stage.calm().await;
            let said_by_then = said(stage, &swarm);
            stage.pass(600_000).await;
            assert_eq!(said(stage, &swarm), said_by_then, "one alone does not storm");
        });
    });
}

#[test]
fn a_stop_holds_whenever_the_power_is_cut_and_operators_release_it_too() {
    for life in (1..30).step_by(3) {
        let mut world = slow_world(Flavour::Synapse);
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.bob().say(&swarm, "Eir, hello");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            stage.alice().say(&swarm, "stop");
            stage.pass(life).await;
            swarm
        });
        world.play(async |stage| {
            stage.pass(60_000).await;
            assert_eq!(said(stage, &swarm), 0, "cut after {life} ms");
            stage.brake(Lever::Release).await;
            stage.said(&swarm, EIR, 1).await;
            stage.pass(60_000).await;
            assert_eq!(said(stage, &swarm), 1);
        });
    }
}
