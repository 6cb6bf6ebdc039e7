//! Registers: what wakes in which room, how it is spoken in, and where a lane may speak.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use persona_bridge::bridge::RoomKind;
use persona_bridge::conversation::{Heed, Register, RegisterName, ReplyIn, SpeakFrom, Wakes};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use persona_bridge::persona::session::care::Apply;
use ruma::OwnedRoomAliasId;
use serde_json::{Value, json};

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::{Script, World, usual};
use crate::fake::homeserver::Flavour;

/// A world whose swarm heeds so.
fn heeding(change: impl Fn(&mut Heed)) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.registers.values_mut().for_each(|register| change(&mut register.heed));
    world
}

#[test]
fn where_anyone_wakes_her_only_what_is_for_others_alone_does_not() {
    let mut world = heeding(|heed| heed.wakes = Wakes::Anyone);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let said = stage.alice().say(&swarm, "good morning");
        stage.until("she is woken", || stage.thoughts("eir") == 1).await;
        stage.calm().await;
        stage.bob().reply(&swarm, &said, "to you too");
        stage.alice().say_to(&swarm, "@bob:hs.test", "thanks");
        stage.calm().await;
        assert_eq!(stage.thoughts("eir"), 1, "{}", stage.words("eir"));
        stage.bob().say(&swarm, "what a day");
        stage.until("she is woken again", || stage.thoughts("eir") == 2).await;
    });
    let words = world.words("eir");
    counts(&[words], &[("good morning", 1), ("to you too", 1), ("thanks", 1), ("(to you", 0)]);
}

#[test]
fn where_nobody_wakes_her_mail_waits() {
    let mut world = heeding(|heed| heed.wakes = Wakes::Nobody);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say_to(&swarm, EIR, "are you there?");
        stage.pass(120_000).await;
        assert_eq!(stage.thoughts("eir"), 0);
        assert!(stage.stats().await["waiting"].as_u64() >= Some(1), "it waits");
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "and here?");
        stage.said(&dm, EIR, 1).await;
    });
    counts(&[world.words("eir")], &[("and here?", 1), ("are you there?", 0)]);
}

/// Changes the swarm's voice between two of three turns; answers what operators were told.
fn revoiced_while_warm(apply: Apply) -> Vec<String> {
    let mut world = World::new(Flavour::Synapse);
    world.config.care.apply = apply;
    let talk = async |stage: &Stage, count: usize| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, count).await;
        stage.calm().await;
    };
    world.play(async |stage| talk(stage, 1).await);
    world.config.registers.values_mut().for_each(|register| register.voice = "loud".into());
    world.play(async |stage| {
        talk(stage, 2).await;
        stage.pass(310_000).await;
        talk(stage, 3).await;
    });
    world.told()
}

#[test]
fn a_changed_voice_waits_for_a_cheap_point_unless_the_operator_wants_it_at_once() {
    let waits = revoiced_while_warm(Apply::AtCheapPoint);
    counts(&waits, &[("session 2: stale, prompt changed", 1), ("session 3", 0)]);
    let at_once = revoiced_while_warm(Apply::Now);
    counts(&at_once, &[("session 2: stale, prompt changed", 1)]);
}

/// A mind that says its room's name everywhere it can think of: one say an attempt, so that each is judged by itself.
fn tries(rooms: Vec<String>) -> Script {
    let left = Mutex::new(rooms.into_iter().collect::<VecDeque<_>>());
    Arc::new(move |_, _| match left.lock().expect("not poisoned").pop_front() {
        Some(room) => {
            let say = json!({ "text": format!("tried {room}"), "room": room });
            let reply = json!({ "say": [say], "react": [] }).to_string();
            Scripted { outcome: Outcome::Ends(Ending::Answered { reply }), ..usual() }
        }
        None => usual(),
    })
}

/// Where a model may speak that is asked in one place and tries all others, one a turn.
fn heard_of_a_model_that_tries_every_room(speak_from: &[&str], asked: &str) -> Vec<String> {
    let mut world = World::new(Flavour::Synapse);
    let name = |name: &str| RegisterName(name.to_owned());
    let from = SpeakFrom::new(speak_from.iter().map(|from| name(from)), true).expect("allowed");
    let minds = Register { voice: "clipped".into(), speak_from: from, ..Register::default() };
    world.config.registers.insert(name("minds"), minds);
    let alias: OwnedRoomAliasId = "#persona_minds:hs.test".try_into().expect("an alias");
    world.config.rooms.insert(alias.clone(), RoomKind::Register(name("minds")));
    world.config.personas[0].rooms.push(alias);
    let rooms = world.play(async |stage| {
        let swarm = stage.swarm().await;
        let minds = stage.home.alias("#persona_minds:hs.test").expect("it is made");
        stage.joins(&minds, EIR).await;
        let dm = stage.dm(&stage.alice(), EIR).await;
        let other = stage.dm(&stage.bob(), EIR).await;
        [swarm, minds, dm, other]
    });
    let place = if asked == "dm" { &rooms[2] } else { &rooms[0] };
    world.script = tries(rooms.to_vec());
    world.play(async |stage| {
        for count in 1..=rooms.len() {
            stage.alice().say_to(place, EIR, &format!("turn {count}"));
            stage.pass(30_000).await;
        }
    });
    let home = &world.home;
    let spoken = |room: &&String| home.bodies(room, EIR).iter().any(|said| said.starts_with("tried"));
    let names = ["swarm", "minds", "dm", "other"];
    for room in &rooms {
        let foreign = home
            .bodies(room, EIR)
            .iter()
            .any(|said| said.starts_with("tried") && !said.ends_with(room.as_str()));
        assert!(!foreign, "what is said goes where it was meant or nowhere");
    }
    rooms.iter().zip(names).filter(|(room, _)| spoken(room)).map(|(_, name)| name.to_owned()).collect()
}

#[test]
fn a_model_that_tries_every_room_speaks_only_where_its_lane_may() {
    let tried = heard_of_a_model_that_tries_every_room;
    assert_eq!(tried(&[], "swarm"), ["swarm"]);
    assert_eq!(tried(&["swarm"], "swarm"), ["swarm", "minds"]);
    assert_eq!(tried(&["swarm"], "dm"), ["dm"]);
    assert_eq!(tried(&["dm"], "dm"), ["minds", "dm"]);
}

#[test]
fn answers_stand_where_the_register_says() {
    let relation = |reply: ReplyIn| {
        let mut world = World::new(Flavour::Synapse);
        world.config.registers.values_mut().for_each(|register| register.reply = reply);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let asked = stage.alice().say(&swarm, "Eir, hello");
            stage.said(&swarm, EIR, 1).await;
            let hers = stage.home.timeline(&swarm).into_iter().rfind(|event| event.sender == EIR);
            let relation = hers.expect("she spoke").content["m.relates_to"].clone();
            (relation["event_id"] == json!(asked), relation["rel_type"].clone())
        })
    };
    assert_eq!(relation(ReplyIn::Thread), (true, json!("m.thread")));
    assert_eq!(relation(ReplyIn::AsAsked).1, Value::Null);
    assert_eq!(relation(ReplyIn::Timeline).1, Value::Null);
}

#[test]
fn a_second_persona_in_a_direct_chat_hears_it_as_a_direct_chat_whatever_invites_her() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.default_register = Some(RegisterName("swarm".into()));
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let dm = stage.dm(&stage.alice(), EIR).await;
            stage.alice().invite(&dm, BRAGE);
            stage.joins(&dm, BRAGE).await;
            stage.calm().await;
            stage.alice().say(&dm, "the canary sings");
            stage.said(&dm, BRAGE, 1).await;
            stage.said(&dm, EIR, 1).await;
            stage.bob().say(&swarm, "Brage, what do you hear?");
            stage.said(&swarm, BRAGE, 1).await;
        });
        for fed in world.fed("brage") {
            let is_direct = fed.words.contains("# mail for you in a direct room");
            assert_eq!(fed.words.contains("canary"), is_direct, "{}", fed.words);
        }
        counts(&[world.words("brage")], &[("the canary sings", 1), ("what do you hear?", 1)]);
    });
}
