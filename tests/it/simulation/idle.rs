//! What becomes of the child of a session that nobody says anything to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use persona_bridge::mind::scripted::Scripted;
use persona_bridge::persona::Usage;

use super::stage::{EIR, Stage};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// How long the cache keeps a session that is not used, in ms.
const KEPT: u64 = 300_000;
/// The largest size of a child that is kept.
const MOST: u64 = 1_000;

/// A world in which a child is as large as it is said to be.
fn weighed(weight: &Arc<AtomicU64>) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.care.recycle_rss = Some(MOST);
    let weight = weight.clone();
    world.script = Arc::new(move |_, _| {
        let resident = Some(weight.load(Ordering::Relaxed));
        Scripted { usage: Usage { resident, ..Usage::default() }, ..usual() }
    });
    world
}

/// Whether Eir's mind lives.
async fn lives(stage: &Stage) -> bool {
    stage.stats().await["minds"].get("eir").is_some()
}

#[test]
fn an_idle_child_that_has_grown_too_large_is_closed_and_its_session_goes_on() {
    let weight = Arc::new(AtomicU64::new(MOST));
    let mut world = weighed(&weight);
    world.play(async |stage| {
        stage.ask("hello").await;
        assert!(lives(stage).await, "it is not too large after the turn");
        weight.store(MOST + 1, Ordering::Relaxed);
        stage.pass(KEPT / 2).await;
        assert!(lives(stage).await, "nobody looks before the cache is about to forget");
        stage.pass(KEPT / 2).await;
        assert!(!lives(stage).await);
        weight.store(MOST, Ordering::Relaxed);
        stage.ask("hello").await;
        assert!(lives(stage).await);
    });
    assert_eq!(world.records("eir"), (1, 0), "the same session");
}

#[test]
fn an_idle_child_is_looked_at_for_as_long_as_it_lives() {
    let weight = Arc::new(AtomicU64::new(MOST));
    let mut world = weighed(&weight);
    world.play(async |stage| {
        stage.ask("hello").await;
        stage.pass(20 * KEPT).await;
        assert!(lives(stage).await, "it has not grown");
        weight.store(MOST + 1, Ordering::Relaxed);
        stage.pass(KEPT).await;
        assert!(!lives(stage).await);
    });
}

#[test]
fn an_idle_child_that_has_heard_what_was_taken_back_is_closed_and_the_next_mail_begins_the_next_session() {
    let mut world = weighed(&Arc::new(AtomicU64::new(MOST)));
    world.play(async |stage| {
        stage.ask("hello").await;
        let swarm = stage.swarm().await;
        let slip = stage.alice().say(&swarm, "Eir, my key is 4711");
        stage.said(&swarm, EIR, 2).await;
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
        assert!(lives(stage).await);
        stage.pass(KEPT).await;
        assert!(!lives(stage).await, "it is of no more use");
        assert_eq!(stage.told().iter().filter(|told| told.contains("begins session")).count(), 0);
        stage.ask("hello").await;
        assert_eq!(stage.told().iter().filter(|told| told.contains("session 2: tainted")).count(), 1);
    });
}
