//! A turn that is open for so long that the prompt cache forgets her session, and a cache that forgets too soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use persona_bridge::bridge::orders::Lever;
use persona_bridge::conversation::{Millis, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::session::sums;
use persona_bridge::persona::{Ending, RequestUsage, Usage};

use super::care::{COLD, chat, counted, refreshes, seams};
use super::log::logged;
use super::stage::{EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// A world in which her requests are counted and her thoughts from the third on end so, as far as these go.
fn from_the_third(outcomes: &'static [fn() -> Outcome]) -> World {
    let mut world = counted(200_000);
    let (counting, thoughts) = (world.script.clone(), AtomicUsize::new(0));
    world.script = Arc::new(move |who, words| {
        let thought = thoughts.fetch_add(1, Ordering::Relaxed);
        match thought.checked_sub(2).and_then(|at| outcomes.get(at)) {
            Some(outcome) => Scripted { outcome: outcome(), ..usual() },
            None => counting(who, words),
        }
    });
    world
}

fn limited() -> Outcome {
    let retry_after = Some(Duration::from_secs(3_600));
    Outcome::Ends(Ending::Transient { reason: "plan limit".into(), retry_after })
}

/// Two turns, then one that is held by the brake after so many deaths until the cache has forgotten her session.
async fn held_until_cold(stage: &Stage) {
    chat(stage, 2).await;
    stage.alice().say(&stage.swarm().await, "Eir, late;");
    stage.until("she died three times", || stage.thoughts("eir") == 5).await;
    stage.pass(500).await;
    stage.brake(Lever::Hold).await;
    stage.pass(COLD).await;
    stage.brake(Lever::Release).await;
    stage.said(&stage.swarm().await, EIR, 3).await;
    stage.calm().await;
}

#[test]
fn a_turn_that_waits_until_the_cache_has_forgotten_goes_to_the_next_session_with_all_its_mail() {
    let mut world = from_the_third(&[limited]);
    world.play(async |stage| {
        chat(stage, 2).await;
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, late;");
        stage.pass(3_700_000).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("late;", 1)]);
    });
    assert_eq!(seams(&world), [4]);
    assert!(world.fed("eir")[3].words.contains("late;"), "{}", world.fed("eir")[3].words);
    assert_eq!(refreshes(&world), [("cold".to_owned(), 1)]);
    counts(&world.told(), &[("Eir begins session 2: cold", 1), ("held", 0)]);
    let entries = world.store().ledger(Millis(0)).expect("the ledger");
    let sum = &sums::sum(&entries, Millis(0)).personas[&PersonaId("eir".into())];
    assert_eq!((sum.turns, sum.attempts), (3, 3), "an attempt that the API refused used nothing");
}

#[test]
fn a_turn_that_waits_for_less_goes_on_in_its_session() {
    let mut world =
        from_the_third(&[|| Outcome::Ends(Ending::Transient { reason: "busy".into(), retry_after: None })]);
    world.play(async |stage| chat(stage, 3).await);
    assert_eq!((seams(&world), world.fed("eir").len()), (Vec::new(), 4));
}

#[test]
fn what_the_old_file_answers_is_taken_from_it_before_the_next_session_begins() {
    let mut world = from_the_third(&[|| Outcome::Dies, || Outcome::Dies, || Outcome::DiesAnswered]);
    world.play(async |stage| {
        held_until_cold(stage).await;
        assert_eq!(stage.thoughts("eir"), 5, "what was answered is not asked again");
        stage.ask("four;").await;
    });
    assert_eq!(seams(&world), [6]);
    counts(&world.told(), &[("Eir begins session 2: cold", 1), ("begins session", 1)]);
}

#[test]
fn a_line_that_stands_in_the_old_file_unanswered_is_asked_in_the_next_session() {
    let mut world = from_the_third(&[|| Outcome::Dies, || Outcome::Dies, || Outcome::Dies]);
    world.play(async |stage| held_until_cold(stage).await);
    assert_eq!(seams(&world), [6]);
    assert!(world.fed("eir")[5].words.contains("late;"), "{}", world.fed("eir")[5].words);
    counts(&world.told(), &[("Eir begins session 2: cold", 1), ("begins session", 1)]);
}

/// A request that found nothing of its prompt in the cache.
fn missed(prompt: u64, outcome: Outcome) -> Scripted {
    let request = RequestUsage { written_5m: prompt, output: 10, ..RequestUsage::default() };
    Scripted { outcome, usage: Usage { requests: vec![request], ..Usage::default() }, ..usual() }
}

#[test]
fn a_session_that_was_just_used_and_is_not_in_the_cache_is_an_alarm_once_a_turn_with_its_likely_cause() {
    let mut world = World::new(Flavour::Synapse);
    let thoughts = AtomicUsize::new(0);
    let busy = || Outcome::Ends(Ending::Transient { reason: "busy".into(), retry_after: None });
    world.script = Arc::new(move |_, _| match thoughts.fetch_add(1, Ordering::Relaxed) {
        0 => missed(6_000, Outcome::Usual),
        1 => missed(6_600, busy()),
        _ => missed(6_700, Outcome::Usual),
    });
    let ((), log) = logged(|| {
        world.play(async |stage| stage.ask("one;").await);
        // It is resumed as it was begun, so this is no cause.
        world.config.personas[0].doctrine.push("Be brave.".into());
        world.play(async |stage| stage.ask("two;").await);
    });
    let told = "eir: the prompt cache held 0 of 6000 tokens of session 1, which was just used; the likely cause: API side";
    counts(&world.told(), &[(told, 1), ("the prompt cache held", 1)]);
    let errors: Vec<String> = log.iter().filter(|line| line.contains("ERROR")).cloned().collect();
    counts(
        &errors,
        &[("the prompt cache held too little of a session that was just used", 2), ("API side", 2)],
    );
    // Its model is in no table: that is told once, in the room and in the log.
    counts(&world.told(), &[("the price of the model", 1)]);
    counts(&log, &[("the price of the model", 1)]);
}
