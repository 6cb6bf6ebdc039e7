//! Registers: what wakes in which room, how it is spoken in, and where a lane may speak.

use persona_bridge::conversation::{Heed, Wakes};
use persona_bridge::persona::session::care::Apply;

use super::stage::{EIR, Stage, counts};
use super::world::World;
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
