//! Personas among themselves: how far they wake each other, and what ends it.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::conversation::Bots;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::{Value, json};

use super::stage::{BRAGE, EIR, swarm};
use super::world::{Script, World, usual};
use crate::fake::homeserver::{FakeHomeserver, Flavour};

/// A thought that ends with this reply.
fn replying(reply: &Value) -> Scripted {
    Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
}

/// Two who answer each other whatever they hear.
fn always_answering() -> Script {
    Arc::new(|who, _| {
        let other = if who == "eir" { "Brage" } else { "Eir" };
        replying(&json!({ "say": [{ "text": format!("{other}, and then?") }], "react": [] }))
    })
}

/// A world in which Personas wake each other, with a mind that goes on for as long as it is let.
fn world() -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.registers.values_mut().for_each(|register| register.heed.personas_wake = true);
    world.script = always_answering();
    world
}

/// The hops of what Personas said in the swarm, in order.
fn hops(home: &FakeHomeserver) -> Vec<u64> {
    let swarm = swarm(home).expect("the bridge made it");
    let events = home.timeline(&swarm).into_iter();
    let ours = events.filter(|event| [EIR, BRAGE].contains(&event.sender.as_str()));
    let said = ours.filter(|event| ["m.room.message", "m.reaction"].contains(&event.kind.as_str()));
    said.map(|event| event.content["dev.persona_bridge.cause"]["hops"].as_u64().expect("hops")).collect()
}

/// How often each of both was asked after Alice has asked Eir once.
fn asked_once(world: &mut World) -> (usize, usize) {
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.pass(120_000).await;
        (stage.thoughts("eir"), stage.thoughts("brage"))
    })
}

#[test]
fn two_who_always_answer_each_other_stop_at_max_hops() {
    let mut world = world();
    assert_eq!(asked_once(&mut world), (2, 2));
    assert_eq!(hops(&world.home), [0, 1, 2, 3]);
    let turns: std::collections::BTreeSet<String> = {
        let events = world.home.timeline(&swarm(&world.home).expect("there")).into_iter();
        events
            .filter_map(|event| Some(event.content["dev.persona_bridge.cause"]["turn"].as_str()?.to_owned()))
            .collect()
    };
    assert_eq!(turns.len(), 4, "each of a turn of its own");
    let eir = world.words("eir");
    assert!(eir.contains("(to you; persona): Eir, and then?"), "{eir}");
}

#[test]
fn max_hops_and_the_register_say_whether_personas_wake_each_other_at_all() {
    let mut short = world();
    short.config.among.max_hops = 1;
    assert_eq!(asked_once(&mut short), (1, 1));
    let mut none = world();
    none.config.among.max_hops = 0;
    assert_eq!(asked_once(&mut none), (1, 0));
    let mut apart = world();
    apart.config.registers.values_mut().for_each(|register| register.heed.personas_wake = false);
    assert_eq!(asked_once(&mut apart), (1, 0));
    let still = apart.play(async |stage| {
        let swarm = swarm(&stage.home).expect("there");
        stage.alice().say(&swarm, "Brage, what did she say?");
        stage.said(&swarm, BRAGE, 1).await;
        stage.words("brage")
    });
    assert!(still.contains("(to you; persona): Brage, and then?"), "it is for him all the same: {still}");
}

#[test]
fn a_person_who_asks_begins_anew_and_one_who_passes_does_not() {
    let mut world = world();
    asked_once(&mut world);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "what a day");
        stage.pass(60_000).await;
        assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (2, 2), "nobody was asked");
        stage.bob().say(&swarm, "Brage, once more");
        stage.pass(60_000).await;
    });
    assert_eq!(hops(&world.home), [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn a_reaction_and_what_says_nothing_wake_nobody() {
    let mut world = world();
    world.script = Arc::new(|who, words| {
        let label =
            words.lines().rev().find_map(|line| line.split(' ').next().filter(|word| word.starts_with('m')));
        let reply = if who == "eir" {
            json!({ "say": [{ "text": "Brage, look" }], "react": [] })
        } else {
            json!({ "say": [], "react": [{ "message": label, "key": "👍" }] })
        };
        replying(&reply)
    });
    assert_eq!(asked_once(&mut world), (1, 1));
    assert_eq!(hops(&world.home), [0, 1], "a reaction tells its turn, too");
}

#[test]
fn all_parts_of_what_is_split_tell_their_hops() {
    let mut world = world();
    world.config.among.max_hops = 0;
    let long = "Brage, all of this is for you. ".repeat(5_000);
    world.script = Arc::new(move |_, _| replying(&json!({ "say": [{ "text": long }], "react": [] })));
    world.home.fail_when(1, crate::fake::homeserver::Fault::Answer(413, String::new()), |seen| {
        seen.method == "PUT" && seen.path.contains("/send/m.room.message/")
    });
    asked_once(&mut world);
    let hops = hops(&world.home);
    assert!(hops.len() > 3 && hops.iter().all(|hops| *hops == 0), "{hops:?}");
}

#[test]
fn bots_are_heard_and_wake_nobody() {
    let mut world = World::new(Flavour::Synapse);
    world.config.bots = Bots(vec!["@*bot:hs.test".into()]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let bot = stage.home.user("newsbot");
        bot.join(&swarm);
        let dm = stage.dm(&bot, EIR).await;
        bot.say_to(&swarm, EIR, "Eir, ten new items");
        bot.say(&dm, "and here");
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 0);
        stage.alice().say(&swarm, "Eir, what is new?");
        stage.said(&swarm, EIR, 1).await;
    });
    let words = world.words("eir");
    assert!(words.contains("<@newsbot:hs.test>: Eir, ten new items"), "heard, and not as to her: {words}");
}

/// A world in which Alice is about to ask Eir; and the time.
fn about_to_ask() -> (World, u64) {
    let mut world = world();
    world.play(async |stage| {
        stage.swarm().await;
        stage.calm().await;
    });
    let now = world.elapsed();
    world.deed(now + 5, |home| drop(home.user("alice").say(&swarm(home).expect("there"), "Eir, begin")));
    (world, now)
}

#[test]
fn a_crash_at_any_moment_changes_no_hops() {
    let (mut world, begun) = about_to_ask();
    world.live(Duration::from_secs(60));
    let end = world.fed("brage").last().expect("he was asked").at - begun + 100;
    for cut in (1..end).step_by(9) {
        let (mut world, _) = about_to_ask();
        world.live(Duration::from_millis(cut));
        world.live(Duration::from_secs(60));
        assert_eq!(hops(&world.home), [0, 1, 2, 3], "cut at {cut} ms");
    }
}
