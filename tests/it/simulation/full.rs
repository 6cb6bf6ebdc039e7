//! A room bears so many events of Personas in any span: what is more waits, and operators are told of it once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use persona_bridge::bridge::orders::Lever;
use persona_bridge::conversation::Level;
use persona_bridge::persona::Limit;
use ruma::OwnedRoomAliasId;
use serde_json::{Value, json};

use super::among::replying;
use super::stage::{BOT, BRAGE, EIR, counts};
use super::world::{Script, World};
use crate::fake::homeserver::{FakeHomeserver, Fault, Flavour};

fn limit(most: u32, seconds: u64) -> Option<Limit> {
    Some(Limit { most, within: Duration::from_secs(seconds) })
}

/// When Personas sent something to a room: messages and reactions.
fn times(home: &FakeHomeserver, room: &str) -> Vec<u64> {
    let events = home.timeline(room).into_iter();
    let ours = events.filter(|event| [EIR, BRAGE].contains(&event.sender.as_str()));
    let said = ours.filter(|event| ["m.room.message", "m.reaction"].contains(&event.kind.as_str()));
    said.map(|event| event.at).collect()
}

/// Asserts that no span of these holds more of the times than so many.
#[track_caller]
fn never_more_than(most: usize, seconds: u64, times: &[u64]) {
    for begin in times {
        let within = times.iter().filter(|at| (*begin..begin + seconds * 1_000).contains(*at)).count();
        assert!(within <= most, "{within} in {seconds} s of {times:?}");
    }
}

/// A mind that says something everywhere it may.
fn says_everywhere(rooms: Vec<String>) -> Script {
    let turns = Mutex::new(0);
    Arc::new(move |who, _| {
        let mut turns = turns.lock().expect("not poisoned");
        *turns += 1;
        let says: Vec<Value> =
            rooms.iter().map(|room| json!({ "text": format!("{who}-{turns}."), "room": room })).collect();
        replying(&json!({ "say": says, "react": [] }))
    })
}

#[test]
fn a_room_bears_so_much_of_a_model_that_says_something_everywhere_and_nothing_said_is_lost() {
    let mut world = World::new(Flavour::Synapse);
    world.config.among.room = limit(5, 60);
    let den: OwnedRoomAliasId = "#persona_den:hs.test".try_into().expect("an alias");
    let kind = world.config.rooms.values().next().cloned().expect("the swarm's");
    world.config.rooms.insert(den.clone(), kind);
    world.config.personas.iter_mut().for_each(|persona| persona.rooms.push(den.clone()));
    let (swarm, den) = world.play(async |stage| {
        let swarm = stage.swarm().await;
        let den = stage.home.alias("#persona_den:hs.test").expect("it is made");
        stage.joins(&den, BRAGE).await;
        (swarm, den)
    });
    world.script = says_everywhere(vec![swarm.clone(), den.clone()]);
    world.play(async |stage| {
        for line in 0..12 {
            stage.alice().say(&swarm, &format!("Eir and Brage, {line}"));
            stage.pass(200).await;
        }
        stage.pass(30_000).await;
        assert_eq!(stage.home.bodies(&den, EIR).len() + stage.home.bodies(&den, BRAGE).len(), 5);
    });
    world.play(async |stage| {
        stage.pass(20_000).await;
        let waits = stage.stats().await["outbox"].as_u64().expect("a number");
        assert!(waits > 0, "a restart lets nothing through");
        stage.pass(900_000).await;
        assert_eq!(stage.stats().await["outbox"], 0);
    });
    for who in ["eir", "brage"] {
        counts(&[world.words(who)], &[("Eir and Brage, 0", 1), ("Eir and Brage, 11", 1)]);
    }
    for room in [&swarm, &den] {
        let times = times(&world.home, room);
        let turns = world.fed("eir").len() + world.fed("brage").len();
        assert_eq!(times.len(), turns, "each turn said one thing here, and it came");
        never_more_than(5, 60, &times);
    }
    counts(&world.told(), &[(&format!("{den} has as many messages of Personas"), 1)]);
}

#[test]
fn a_turn_for_a_full_room_alone_waits_and_another_room_is_answered() {
    let mut world = World::new(Flavour::Synapse);
    world.config.among.room = limit(2, 60);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let dm = stage.dm(&stage.bob(), EIR).await;
        stage.ask("one").await;
        stage.ask("two").await;
        stage.alice().say(&swarm, "Eir, three");
        stage.pass(30_000).await;
        assert_eq!(stage.thoughts("eir"), 2, "the room is full");
        stage.bob().say(&dm, "and here?");
        stage.said(&dm, EIR, 1).await;
        stage.pass(60_000).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("three", 1)]);
    });
    counts(&world.told(), &[("has as many messages of Personas", 1)]);
}

#[test]
fn that_a_person_waits_for_a_full_room_is_told_once_and_again_once_it_was_calm() {
    let mut world = World::new(Flavour::Synapse);
    world.config.among.room = limit(2, 600);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.play(async |stage| {
        let full = format!("{} has as many messages of Personas", stage.swarm().await);
        let told = |times| counts(&stage.told(), &[(&full, times)]);
        for line in 0..4 {
            stage.alice().say(&stage.swarm().await, &format!("Eir, line-{line}"));
            stage.calm().await;
            told(usize::from(line > 1));
        }
        assert_eq!(stage.thoughts("eir"), 2);
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "!persona status");
        stage.calm().await;
        let status = stage.home.bodies(&swarm, BOT).pop().expect("it is answered");
        assert!(status.contains("waiting 2 in swarm, the oldest for"), "{status}");
        assert!(status.contains("; a room of it has reached room_limit and wakes nobody until"), "{status}");
        stage.pass(3 * 600_000).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("line-2", 1), ("line-3", 1)]);
        told(1);
        for line in 5..8 {
            stage.alice().say(&swarm, &format!("Eir, line-{line}"));
            stage.calm().await;
        }
        told(2);
    });
}

#[test]
fn of_a_full_room_for_which_only_who_is_held_has_mail_nothing_is_told() {
    let mut world = World::new(Flavour::Synapse);
    world.config.among.room = limit(2, 600);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.ask("one").await;
        stage.ask("two").await;
        stage.brake(Lever::Hold).await;
        stage.alice().say(&swarm, "Eir, three");
        stage.pass(30_000).await;
        counts(&stage.told(), &[("has as many messages of Personas", 0)]);
    });
}

/// Each says ten things at once, one of them too long for one event, and reacts.
fn says_much() -> Script {
    Arc::new(|who, words| {
        let labels =
            words.lines().filter(|line| line.starts_with('m')).filter_map(|line| line.split(' ').next());
        let long =
            |n| if n == 5 && who == "eir" { "A long line of hers. ".repeat(400) } else { String::new() };
        let says: Vec<Value> =
            (0..10).map(|n| json!({ "text": format!("{who}-{n}. {}", long(n)) })).collect();
        let react: Vec<Value> = labels.map(|label| json!({ "message": label, "key": "👍" })).collect();
        replying(&json!({ "say": says, "react": react }))
    })
}

#[test]
fn whatever_waits_for_a_room_no_span_holds_more_than_its_limit_also_where_that_was_changed() {
    for (before, most) in [(limit(5, 600), 5), (limit(2, 600), 5), (None, 5), (limit(8, 600), 5)] {
        let mut world = World::new(Flavour::Synapse);
        world.config.among.room = before;
        world.script = says_much();
        world.home.set_largest(4_000);
        let (swarm, began) = world.play(async |stage| {
            let swarm = stage.swarm().await;
            if before.is_none() {
                // What is said reaches the room only in the next life.
                stage.home.fail_when(1_000, Fault::Limited(Duration::from_secs(30)), |seen| {
                    seen.path.contains("/send/") && !seen.path.contains("control")
                });
            }
            stage.alice().say(&swarm, "Eir and Brage, talk");
            stage.until("both are asked", || stage.thoughts("eir") + stage.thoughts("brage") == 2).await;
            stage.pass(5_000).await;
            (swarm, stage.now())
        });
        let first = times(&world.home, &swarm).len();
        world.home.clear_faults();
        world.config.among.room = limit(most, 600);
        world.play(async |stage| {
            stage.pass(15_000).await;
            let soon = times(&stage.home, &swarm).len();
            assert!(soon <= first.max(5), "{soon} after the limit was {before:?}");
            stage.pass(4 * 3_600_000).await;
            assert_eq!(stage.stats().await["outbox"], 0);
        });
        let times = times(&world.home, &swarm);
        assert!(times.len() >= 22, "parts and reactions count: {times:?}");
        let since: Vec<u64> = times.into_iter().filter(|at| *at > began).collect();
        never_more_than(5, 600, &since);
    }
}
