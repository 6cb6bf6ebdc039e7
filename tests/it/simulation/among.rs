//! Personas among themselves: how far they wake each other, and what ends it.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::conversation::{Bots, Wakes};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::decide::Settle;
use persona_bridge::persona::{Ending, Limit};
use serde_json::{Value, json};

use super::stage::{BRAGE, EIR, Stage, counts, swarm};
use super::world::{Script, World, usual};
use crate::fake::homeserver::{FakeHomeserver, Flavour};

/// A thought that ends with this reply.
pub(crate) fn replying(reply: &Value) -> Scripted {
    Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
}

/// Two who answer each other whatever they hear.
pub(crate) fn always_answering() -> Script {
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

/// A beat of the shipped config.
const BEAT: u64 = 30 * 60_000;

#[test]
fn two_who_are_left_alone_fall_silent_and_no_beat_asks_them_again() {
    for personas_wake in [true, false] {
        let mut world = world();
        world.config.registers.values_mut().for_each(|register| register.heed.personas_wake = personas_wake);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, begin");
            stage.pass(4 * BEAT).await;
            assert_eq!(hops(&stage.home), [0, 1, 2, 3], "{personas_wake}");
            stage.pass(10 * BEAT).await;
            assert_eq!(hops(&stage.home), [0, 1, 2, 3], "{personas_wake}");
            stage.bob().say(&swarm, "what a day");
            stage.pass(15 * BEAT).await;
        });
        let said = hops(&world.home);
        assert_eq!(said.len(), if personas_wake { 7 } else { 6 }, "{said:?}");
        counts(&[world.words("eir")], &[("Eir, and then?", 3)]);
    }
}

/// Whoever is Eir says this to Brage, with a reminder in a minute each time.
fn reminding(who: &str, text: &str) -> Scripted {
    let mut reply = json!({ "say": [], "react": [] });
    if who == "eir" {
        reply["say"] = json!([{ "text": text }]);
        reply["remind"] = json!([{ "in": "1m", "text": "go on" }]);
    }
    replying(&reply)
}

#[test]
fn a_chain_of_reminders_ends_waking_others_and_slows_down_to_the_beat() {
    let mut world = world();
    world.script = Arc::new(|who, _| reminding(who, "Brage, go on"));
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.pass(10 * 60_000).await;
        assert_eq!(hops(&stage.home), [0, 1], "what a person asked for may come soon");
        stage.pass(5 * BEAT).await;
        assert_eq!(hops(&stage.home), [0, 1, 2, 3, 3, 3, 3]);
        assert_eq!(stage.thoughts("brage"), 3);
        stage.alice().say(&swarm, "Eir, again");
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("brage"), 4, "a person who asks begins anew");
    });
}

#[test]
fn a_turn_without_mail_wakes_nobody() {
    let mut world = world();
    world.config.heart.wake_on_silence = true;
    let said = world.play(async |stage| {
        stage.swarm().await;
        stage.pass(8 * BEAT).await;
        hops(&stage.home)
    });
    assert_eq!(said, [3; 4], "as often as silence wakes a day");
    for who in ["eir", "brage"] {
        assert!(
            world.fed(who).iter().all(|fed| fed.words.starts_with("# a scheduled wake")),
            "{}",
            world.words(who)
        );
    }
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

/// A world without an end by hops, where two may wake each other ten times in a minute.
fn endless() -> World {
    let mut world = world();
    world.config.among.max_hops = u32::MAX;
    world.config.among.pair = Some(Limit { most: 10, within: Duration::from_secs(60) });
    world.config.among.room = None;
    world
}

/// How many thoughts there were so far.
fn thoughts(stage: &Stage) -> usize {
    stage.thoughts("eir") + stage.thoughts("brage")
}

#[test]
fn two_who_wake_each_other_too_often_are_held_and_operators_are_told_once() {
    let mut world = endless();
    let (eir, brage) = asked_once(&mut world);
    // The first is a person's doing, ten more are allowed, and one is too many.
    assert_eq!(eir + brage, 12);
    counts(
        &world.told(),
        &[("have woken each other in", 1), ("more often than [talk] pair_limit allows (10 per 1m)", 1)],
    );
    world.play(async |stage| stage.pass(600_000).await);
    assert_eq!(world.fed("eir").len() + world.fed("brage").len(), 12, "a restart and time change nothing");
}

#[test]
fn where_a_pair_is_held_a_reminder_waits_until_a_person_lets_both_go() {
    let mut world = endless();
    let answering = world.script.clone();
    world.script = Arc::new(move |who, words| {
        if who == "eir" && words.contains("Eir, begin") {
            let remind = json!([{ "in": "10m", "text": "ask him" }]);
            return replying(
                &json!({ "say": [{ "text": "Brage, and then?" }], "react": [], "remind": remind }),
            );
        }
        if words.contains("that is enough") || words.contains("reminder r1 ") {
            return replying(&json!({ "say": [], "react": [] }));
        }
        answering(who, words)
    });
    world.config.addressed_only = world.config.rooms.keys().cloned().collect();
    let (eir, brage) = asked_once(&mut world);
    assert_eq!(eir + brage, 12, "both are held");
    world.play(async |stage| {
        stage.pass(20 * 60_000).await;
        assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (eir, brage));
        let swarm = swarm(&stage.home).expect("there");
        stage.bob().say(&swarm, "Brage, that is enough");
        stage.pass(5_000).await;
        assert_eq!(stage.thoughts("eir"), eir + 1, "she goes on, although it was not said to her");
    });
    counts(&[world.words("eir")], &[("reminder r1 ", 1)]);
}

#[test]
fn without_the_pair_guard_and_with_a_slower_pace_they_go_on() {
    let mut off = endless();
    off.config.among.pair = None;
    off.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.pass(10_000).await;
        assert!(thoughts(stage) > 100, "{}", thoughts(stage));
    });
    let mut slow = endless();
    slow.config.settle = Settle { quiet: Duration::from_secs(7), cap: Duration::from_secs(7) };
    slow.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.pass(600_000).await;
        assert!(thoughts(stage) > 70, "{}", thoughts(stage));
    });
    counts(&slow.told(), &[("have woken each other", 0)]);
}

#[test]
fn a_third_person_who_chats_on_changes_nothing_and_one_who_addresses_either_lets_both_go_on() {
    let mut world = endless();
    world.config.registers.values_mut().for_each(|register| register.heed.wakes = Wakes::Anyone);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        // Bob chats beside them from the beginning: what he says wakes Personas here, until they are held.
        for line in 0..150 {
            stage.bob().say(&swarm, &format!("passing {line}."));
            stage.pass(200).await;
        }
        let held = thoughts(stage);
        counts(&stage.told(), &[("have woken each other in", 1)]);
        for line in 150..200 {
            stage.bob().say(&swarm, &format!("passing {line}."));
            stage.pass(500).await;
        }
        assert_eq!(thoughts(stage), held, "neither is woken by anything there");
        counts(&stage.told(), &[("have woken each other in", 1)]);

        stage.bob().say(&swarm, "Brage, stop that");
        stage.pass(120_000).await;
        let more = thoughts(stage) - held;
        assert!((10..=16).contains(&more), "both go on, and are counted from nothing: {more}");
        counts(&stage.told(), &[("have woken each other in", 2)]);
    });
    counts(&[world.words("brage")], &[("passing 199.", 1)]);
}

#[test]
fn who_is_held_in_one_room_goes_on_elsewhere() {
    let mut world = endless();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let dm = stage.dm(&stage.bob(), EIR).await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.pass(60_000).await;
        counts(&stage.told(), &[("have woken each other in", 1)]);
        let held = stage.home.bodies(&swarm, EIR).len();
        stage.bob().say(&dm, "and here?");
        stage.said(&dm, EIR, 1).await;
        stage.pass(60_000).await;
        assert_eq!(stage.home.bodies(&swarm, EIR).len(), held, "she is held there still");
    });
}

#[test]
fn a_crash_at_any_moment_changes_no_count_of_the_pair() {
    let scene = || {
        let mut world = endless();
        world.config.among.pair = Some(Limit { most: 3, within: Duration::from_secs(3_600) });
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
        });
        let now = world.elapsed();
        world.deed(now + 5, |home| drop(home.user("alice").say(&swarm(home).expect("there"), "Eir, begin")));
        world
    };
    for cut in (1..600).step_by(11) {
        let mut world = scene();
        world.live(Duration::from_millis(cut));
        world.live(Duration::from_secs(60));
        assert_eq!(hops(&world.home), [0, 1, 2, 3, 4], "cut at {cut} ms");
        counts(&world.told(), &[("have woken each other in", 1)]);
    }
}

#[test]
fn reminders_wait_for_a_full_room_and_what_waits_to_be_said_there_does_not_grow() {
    let mut world = world();
    world.config.among.room = Some(Limit { most: 5, within: Duration::from_secs(600) });
    world.config.heart.beat = Duration::from_secs(60);
    world.script = Arc::new(|who, _| {
        let other = if who == "eir" { "Brage" } else { "Eir" };
        let says = [json!({ "text": format!("{other}, go on") }), json!({ "text": "and on" })];
        replying(&json!({ "say": says, "react": [], "remind": [{ "in": "1m", "text": "go on" }] }))
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        for _ in 0..12 {
            stage.pass(10 * 60_000).await;
            let waits = stage.stats().await["outbox"].as_u64().expect("a number");
            assert!(waits <= 10, "{waits} wait to be said");
        }
        let turns = thoughts(stage);
        assert!((20..=40).contains(&turns), "{turns} turns where five messages in ten minutes are borne");
    });
}

#[test]
fn a_reminder_about_one_room_waits_for_that_alone() {
    let mut world = World::new(Flavour::Synapse);
    world.config.among.room = Some(Limit { most: 2, within: Duration::from_secs(600) });
    world.script = Arc::new(|_, words| {
        let begins = words.contains("Eir, begin");
        let says = if words.contains("Eir, ") { json!([{ "text": "yes" }]) } else { json!([]) };
        let remind = if begins { json!([{ "in": "2m", "text": "tea" }]) } else { json!([]) };
        replying(&json!({ "say": says, "react": [], "remind": remind }))
    });
    world.play(async |stage| {
        let dm = stage.dm(&stage.bob(), EIR).await;
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().say(&swarm, "Eir, and?");
        stage.said(&swarm, EIR, 2).await;
        stage.bob().say(&dm, "Eir, begin");
        stage.said(&dm, EIR, 1).await;
        stage.pass(5 * 60_000).await;
        assert_eq!(stage.thoughts("eir"), 4, "the chat is open, the swarm is full");
        stage.pass(6 * 60_000).await;
        assert_eq!(stage.thoughts("eir"), 5, "it bears more again");
    });
    counts(&[world.words("eir")], &[("reminder r1 ", 1), ("reminder r2 ", 1)]);
}
