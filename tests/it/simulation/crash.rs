//! Whatever the millisecond in which the power is cut: every message is heard once and answered once, in order.

use std::time::Duration;

use super::stage::{BRAGE, EIR, swarm};
use super::world::World;
use crate::fake::homeserver::{FakeHomeserver, Flavour};

/// More virtual time than the whole scene takes without a crash, in ms.
const PATIENCE: u64 = 1_200;
/// By then the last message of the scene has been said, in ms.
const LAST: u64 = 350;
/// Longer than a pass over all rooms takes to come again, in ms.
const AGAIN: u64 = 450;
/// How many tests share the milliseconds between them.
const PARTS: u64 = 2;

/// Alice opens a direct chat with Eir and talks in the swarm; each message carries a word of its own.
fn scene(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.reconcile = Duration::from_millis(400);
    world.deed(150, |home| {
        let alice = home.user("alice");
        let room = alice.create_dm(EIR);
        alice.say(&room, "first-dm");
    });
    world.deed(200, |home| {
        let alice = home.user("alice");
        if let Some(room) = swarm(home) {
            alice.join(&room);
        }
    });
    world.deed(230, |home| in_swarm(home, "Eir, swarm-one"));
    world.deed(255, |home| in_swarm(home, "Brage, swarm-two"));
    world.deed(300, |home| in_swarm(home, "Eir and Brage, swarm-three"));
    world.deed(LAST - 10, |home| in_dm(home, "second-dm"));
    world
}

fn in_swarm(home: &FakeHomeserver, words: &str) {
    if let Some(room) = swarm(home) {
        let alice = home.user("alice");
        alice.join(&room);
        alice.say(&room, words);
    }
}

fn in_dm(home: &FakeHomeserver, words: &str) {
    home.user("alice").say(&dm(home), words);
}

/// The direct room is the one that is not the swarm's and not the bot's.
fn dm(home: &FakeHomeserver) -> String {
    home.rooms_of("@alice:hs.test")
        .into_iter()
        .find(|room| swarm(home).as_ref() != Some(room))
        .expect("alice opened it")
}

/// Where each word is answered, and by whom.
fn expected(home: &FakeHomeserver) -> [(String, &'static str, [&'static str; 2]); 3] {
    let swarm = swarm(home).expect("the bridge made it");
    [
        (dm(home), EIR, ["first-dm", "second-dm"]),
        (swarm.clone(), EIR, ["swarm-one", "swarm-three"]),
        (swarm, BRAGE, ["swarm-two", "swarm-three"]),
    ]
}

/// Whether everything is answered.
fn answered(home: &FakeHomeserver) -> bool {
    expected(home).iter().all(|(room, who, words)| {
        let answers = home.bodies(room, who).join("\n");
        words.iter().all(|word| answers.contains(word))
    })
}

/// Lives until everything is answered, and then as long as it takes to find it once more.
fn live_on(world: &mut World) {
    world.play(async |stage| {
        stage.pass(PATIENCE / 3).await;
        for _ in 0..PATIENCE {
            if answered(&stage.home) {
                break;
            }
            stage.pass(2).await;
        }
        stage.pass(AGAIN).await;
    });
}

/// Each word is answered exactly once, and in the order it was said.
fn check(world: &World, when: &str) {
    let home = &world.home;
    for (room, who, words) in expected(home) {
        let answers = home.bodies(&room, who).join("\n");
        let mut from = 0;
        for word in words {
            let times = answers.matches(word).count();
            assert_eq!(times, 1, "{when}: {who} answers {word} once, not {times} times:\n{answers}");
            let place = answers.find(word).unwrap_or_default();
            assert!(place >= from, "{when}: {who} answers {word} in order:\n{answers}");
            from = place;
        }
    }
}

/// The virtual millisecond in which the scene is over without a crash: all is said, and nothing is left to be done.
fn end(flavour: Flavour) -> u64 {
    let mut world = scene(flavour);
    world.play(async |stage| {
        stage.pass(LAST).await;
        stage.rest("all is answered", || answered(&stage.home)).await;
    });
    check(&world, "no crash");
    world.elapsed()
}

#[test]
fn without_a_crash_every_message_is_answered_once() {
    for flavour in [Flavour::Synapse, Flavour::Conduit] {
        let end = end(flavour);
        assert!((LAST..PATIENCE).contains(&end), "{flavour:?} ends at {end} ms");
    }
}

/// Cuts at every millisecond that leaves `rest` when divided by [`PARTS`], from the first to beyond the scene's end.
fn cut_all(flavour: Flavour, rest: u64) {
    for cut in (1..=end(flavour) + PARTS).filter(|cut| cut % PARTS == rest) {
        let mut world = scene(flavour);
        world.live(Duration::from_millis(cut));
        live_on(&mut world);
        check(&world, &format!("cut at {cut} ms"));
    }
}

#[test]
fn a_crash_at_any_even_millisecond_loses_and_doubles_nothing_on_synapse() {
    cut_all(Flavour::Synapse, 0);
}

#[test]
fn a_crash_at_any_odd_millisecond_loses_and_doubles_nothing_on_synapse() {
    cut_all(Flavour::Synapse, 1);
}

#[test]
fn a_crash_at_any_even_millisecond_loses_and_doubles_nothing_on_conduit() {
    cut_all(Flavour::Conduit, 0);
}

#[test]
fn a_crash_at_any_odd_millisecond_loses_and_doubles_nothing_on_conduit() {
    cut_all(Flavour::Conduit, 1);
}
