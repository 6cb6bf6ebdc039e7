//! What may be spent, and what a plan allows: mail waits for it and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use persona_bridge::config::prices;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::session::Usd;
use persona_bridge::persona::{Budget, Ending, RequestUsage, Usage};

use super::stage::{BRAGE, EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

const HOUR: u64 = 3_600_000;
const MODEL: &str = "claude-sonnet-4-5";

/// A world in which each thought costs a dollar; it begins at eight in the morning.
pub(super) fn dear_world(budget: Budget) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.prices = prices::shipped().unwrap();
    world.config.budget = budget;
    world.script = Arc::new(|_, _| dear(Outcome::Usual));
    world
}

/// A thought that costs a dollar.
pub(super) fn dear(outcome: Outcome) -> Scripted {
    let request = RequestUsage { model: MODEL.to_owned(), input: 1_000, ..RequestUsage::default() };
    let usage = Usage { requests: vec![request], money: Some(1.0), ..Usage::default() };
    Scripted { outcome, usage, ..usual() }
}

fn dollars(amount: f64) -> Option<Usd> {
    Some(Usd::of_dollars(amount))
}

async fn ask(stage: &Stage, room: &str, who: &str, words: &str, answers: usize) {
    stage.alice().say(room, words);
    stage.said(room, who, answers).await;
    stage.calm().await;
}

#[test]
fn once_the_days_budget_is_spent_mail_waits_for_the_next_day_of_utc() {
    let mut world = dear_world(Budget { per_day: dollars(2.0), ..Budget::default() });
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        ask(stage, &swarm, EIR, "Eir, first", 1).await;
        assert_eq!(stage.unready().await, Vec::<String>::new());
        ask(stage, &swarm, BRAGE, "Brage, second", 1).await;
        stage.alice().say(&swarm, "Eir and Brage, third");
        stage.pass(HOUR).await;
        let shown = stage.unready().await;
        let until = "[budget] per_day (2.0000 USD) is spent: nobody is asked until 2027-01-16 00:00 UTC";
        assert!(!shown.is_empty() && shown.iter().all(|reason| reason == until), "{shown:?}");
        swarm
    });
    world.play(async |stage| {
        stage.swarm().await;
        stage.pass(14 * HOUR).await;
        assert_eq!(
            stage.thoughts("eir") + stage.thoughts("brage"),
            2,
            "also after a restart nothing more is asked"
        );
        counts(&stage.told(), &[("is spent", 1)]);
        stage.pass(HOUR).await;
        for who in [EIR, BRAGE] {
            counts(&stage.home.bodies(&swarm, who), &[("third", 1)]);
        }
    });
    assert_eq!(world.store().counts().held, 0);
}

#[test]
fn a_persona_who_has_spent_her_own_waits_alone() {
    let mut world = dear_world(Budget { per_persona_per_day: dollars(1.0), ..Budget::default() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        ask(stage, &swarm, EIR, "Eir, first", 1).await;
        stage.alice().say(&swarm, "Eir and Brage, second");
        stage.said(&swarm, BRAGE, 1).await;
        stage.pass(HOUR).await;
        assert_eq!(stage.thoughts("eir"), 1);
        counts(&stage.told(), &[("per_persona_per_day (1.0000 USD) of eir is spent", 1)]);
        stage.pass(16 * HOUR).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("second", 1)]);
    });
}

#[test]
fn a_turn_that_costs_too_much_is_not_tried_again_and_its_mail_is_held() {
    let mut world = dear_world(Budget { per_turn: dollars(2.0), ..Budget::default() });
    let failing = || Ending::Transient { reason: "overloaded".into(), retry_after: None };
    let thoughts = AtomicUsize::new(0);
    world.script = Arc::new(move |_, _| match thoughts.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => dear(Outcome::Ends(failing())),
        _ => dear(Outcome::Usual),
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, something dear");
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 2);
        counts(&stage.told(), &[("as much as [budget] per_turn allows", 1)]);
        ask(stage, &swarm, EIR, "Eir, life goes on", 1).await;
        assert_eq!(stage.stats().await["held"], 1);
    });
}

/// A thought in which a dollar and a half was used before the process died.
fn dying(outcome: Outcome) -> Scripted {
    let request = RequestUsage { model: MODEL.to_owned(), output: 100_000, ..RequestUsage::default() };
    Scripted { outcome, usage: Usage { requests: vec![request], ..Usage::default() }, ..usual() }
}

/// A world in which the first thoughts end so, and each later one costs a dollar.
fn deadly_world(budget: Budget, first: [Outcome; 2]) -> World {
    let mut world = dear_world(budget);
    let thoughts = AtomicUsize::new(0);
    world.script = Arc::new(move |_, _| {
        let thought = thoughts.fetch_add(1, Ordering::Relaxed);
        first.get(thought).map_or_else(|| dear(Outcome::Usual), |outcome| dying(outcome.clone()))
    });
    world
}

#[test]
fn a_turn_whose_process_dies_is_given_up_once_that_has_cost_too_much() {
    let budget = Budget { per_turn: dollars(2.0), ..Budget::default() };
    let mut world = deadly_world(budget, [Outcome::Dies, Outcome::Dies]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, something dear");
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 2);
        counts(&stage.told(), &[("has cost 3.0000 USD, as much as [budget] per_turn allows", 1)]);
        ask(stage, &swarm, EIR, "Eir, life goes on", 1).await;
        assert_eq!(stage.stats().await["held"], 1);
    });
}

#[test]
fn an_answer_that_a_dead_process_has_left_is_taken_whatever_the_turn_has_cost() {
    let budget = Budget { per_turn: dollars(2.0), ..Budget::default() };
    let mut world = deadly_world(budget, [Outcome::Dies, Outcome::DiesAnswered]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        ask(stage, &swarm, EIR, "Eir, something dear", 1).await;
        assert_eq!(stage.thoughts("eir"), 2);
        assert_eq!(stage.stats().await["held"], 0);
    });
}

#[test]
fn what_was_used_before_a_process_died_counts_for_the_day() {
    let budget = Budget { per_day: dollars(3.0), ..Budget::default() };
    let mut world = deadly_world(budget, [Outcome::Dies, Outcome::Dies]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, something dear");
        stage.pass(HOUR).await;
        assert_eq!(stage.thoughts("eir"), 2);
        counts(&stage.told(), &[("is spent", 1)]);
        stage.pass(16 * HOUR).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("something dear", 1)]);
    });
}

/// The plan's limit is reached for three hours, whoever asks meanwhile.
fn limited_world(courtesy: bool) -> World {
    let mut world = dear_world(Budget { courtesy, ..Budget::default() });
    let limited = || Ending::Transient {
        reason: "the plan's limit is reached (429)".into(),
        retry_after: Some(Duration::from_secs(3 * 3_600)),
    };
    world.stumbles([Outcome::Ends(limited()), Outcome::Ends(limited())]);
    world
}

#[test]
fn a_limit_of_the_plan_is_waited_out_and_told_once() {
    let mut world = limited_world(false);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let direct = stage.dm(&stage.bob(), BRAGE).await;
        stage.alice().say(&swarm, "Eir, one");
        stage.pass(120_000).await;
        stage.bob().say(&direct, "two");
        stage.pass(2 * HOUR).await;
        assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (1, 1));
        let told = "eir waits until 2027-01-15 11:00 UTC: the plan's limit is reached (429)";
        counts(&stage.told(), &[(told, 1), ("waits until", 1)]);
        assert!(stage.home.bodies(&direct, BRAGE).is_empty(), "nobody asked for a courtesy");
        stage.pass(HOUR + 60_000).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("one", 1)]);
        counts(&stage.home.bodies(&direct, BRAGE), &[("two", 1)]);
    });
}

#[test]
fn where_the_operator_wants_it_people_are_told_in_their_direct_rooms_once() {
    let mut world = limited_world(true);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let direct = stage.dm(&stage.bob(), BRAGE).await;
        stage.alice().say(&swarm, "Eir, one");
        stage.bob().say(&direct, "two");
        stage.pass(60_000).await;
        stage.bob().say(&direct, "three");
        stage.pass(HOUR).await;
        let until = "I cannot answer before 2027-01-15 11:00 UTC; your message waits for me.";
        assert_eq!(stage.home.bodies(&direct, BRAGE), [until]);
        assert!(stage.home.bodies(&swarm, EIR).is_empty(), "in direct rooms alone");
        stage.pass(2 * HOUR).await;
        counts(&stage.home.bodies(&direct, BRAGE), &[("two", 1), ("three", 1), ("I cannot answer", 1)]);
    });
}

#[test]
fn the_budgets_courtesy_goes_to_direct_rooms_with_mail() {
    let mut world = dear_world(Budget { per_day: dollars(1.0), courtesy: true, ..Budget::default() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let direct = stage.dm(&stage.bob(), EIR).await;
        ask(stage, &swarm, EIR, "Eir, first", 1).await;
        stage.bob().say(&direct, "and I?");
        stage.pass(HOUR).await;
        counts(&stage.home.bodies(&direct, EIR), &[("I cannot answer before 2027-01-16 00:00 UTC", 1)]);
        stage.pass(16 * HOUR).await;
        counts(&stage.home.bodies(&direct, EIR), &[("I cannot answer", 1), ("and I?", 1)]);
    });
}
