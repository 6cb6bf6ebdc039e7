//! An account that the API refuses: nobody asks, now and then one question finds out, and all goes on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use persona_bridge::bridge::orders::{Lever, Order};
use persona_bridge::conversation::Millis;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use persona_bridge::persona::probe::ACCOUNT;
use persona_bridge::persona::session::EntryKind;

use super::stage::{BRAGE, EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

const MINUTE: u64 = 60_000;

/// A world whose account is refused for as long as the switch is on.
fn refusing() -> (World, Arc<AtomicBool>) {
    let mut world = World::new(Flavour::Synapse);
    let refuses = Arc::new(AtomicBool::new(true));
    let switch = refuses.clone();
    world.script = Arc::new(move |_, _| {
        let refused = || Outcome::Ends(Ending::Refused { reason: "401".into() });
        let outcome = if refuses.load(Ordering::Relaxed) { refused() } else { Outcome::Usual };
        Scripted { outcome, ..usual() }
    });
    (world, switch)
}

/// Both Personas are asked and refused.
async fn both_refused(stage: &Stage) -> (String, String) {
    let swarm = stage.swarm().await;
    let direct = stage.dm(&stage.bob(), BRAGE).await;
    stage.alice().say(&swarm, "Eir, one");
    stage.bob().say(&direct, "two");
    stage.pass(MINUTE).await;
    assert_eq!(stage.unready().await.len(), 2);
    (swarm, direct)
}

#[test]
fn a_refused_account_is_asked_about_every_quarter_of_an_hour_and_all_go_on_when_it_is_taken() {
    let (mut world, refuses) = refusing();
    world.play(async |stage| {
        let (swarm, direct) = both_refused(stage).await;
        for (minutes, probes) in [(13, 0), (2, 1), (14, 1), (2, 2)] {
            stage.pass(minutes * MINUTE).await;
            assert_eq!(stage.thoughts(ACCOUNT), probes);
        }
        assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (1, 1), "nobody else is asked");
        refuses.store(false, Ordering::Relaxed);
        stage.pass(15 * MINUTE).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("one", 1)]);
        counts(&stage.home.bodies(&direct, BRAGE), &[("two", 1)]);
        assert_eq!(stage.unready().await, Vec::<String>::new());
        counts(&stage.told(), &[("is not asked any more", 2), ("takes the account again", 1)]);
        stage.pass(180 * MINUTE).await;
        assert_eq!(stage.thoughts(ACCOUNT), 3, "what is taken is not asked about");
    });
    let ledger = world.store().ledger(Millis(0)).unwrap();
    let probes = ledger.iter().filter_map(|entry| match entry.kind {
        EntryKind::Probe { answered, .. } => Some((entry.persona.as_str(), answered)),
        EntryKind::Request(_)
        | EntryKind::Ping { .. }
        | EntryKind::Warmth { .. }
        | EntryKind::Begun { .. } => None,
    });
    assert_eq!(probes.collect::<Vec<_>>(), [(ACCOUNT, false), (ACCOUNT, false), (ACCOUNT, true)]);
}

#[test]
fn whoever_is_answered_ends_it_for_all() {
    let (mut world, refuses) = refusing();
    world.play(async |stage| {
        let (swarm, direct) = both_refused(stage).await;
        refuses.store(false, Ordering::Relaxed);
        let of = Some(("eir".into(), EIR.parse().unwrap()));
        let of = of.map(|(id, user): (String, _)| (persona_bridge::conversation::PersonaId(id), user));
        assert_eq!(stage.order(&Order::Release { of }.to_json()).await.0, 200);
        stage.said(&swarm, EIR, 1).await;
        stage.said(&direct, BRAGE, 1).await;
        stage.pass(60 * MINUTE).await;
        assert_eq!(stage.thoughts(ACCOUNT), 0);
    });
}

#[test]
fn the_brake_holds_this_question_too() {
    let (mut world, refuses) = refusing();
    world.play(async |stage| {
        let (swarm, _) = both_refused(stage).await;
        let order = |lever| Order::Brake { lever, persona: None }.to_json();
        assert_eq!(stage.order(&order(Lever::Hold)).await.0, 200);
        refuses.store(false, Ordering::Relaxed);
        stage.pass(60 * MINUTE).await;
        assert_eq!(stage.thoughts(ACCOUNT), 0);
        assert_eq!(stage.order(&order(Lever::Release)).await.0, 200);
        stage.pass(16 * MINUTE).await;
        stage.said(&swarm, EIR, 1).await;
    });
}
