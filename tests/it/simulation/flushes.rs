//! Before a warm session ends in which it is not remembered what has become of an open task, she is asked once to note it.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::{Lever, Order};
use persona_bridge::config::prices;
use persona_bridge::conversation::{Millis, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::session::Usd;
use persona_bridge::persona::session::care::{Flushing, Word};
use persona_bridge::persona::session::sums;
use persona_bridge::persona::{Budget, Ending, RequestUsage, Usage};
use serde_json::{Value, json};

use super::stage::{EIR, Stage, counts, swarm};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

const MODEL: &str = "claude-sonnet-4-5";
/// How the line begins that asks her.
pub(super) const ASKED: &str = "# nothing was said; your session may end soon.";
/// By then the prompt cache has forgotten, in ms.
const COLD: u64 = 310_000;
/// More virtual time than a flush, and the turn after it, take, in ms.
const STEPS: u64 = 60;

fn answers(reply: &Value) -> Outcome {
    Outcome::Ends(Ending::Answered { reply: reply.to_string() })
}

fn says(text: &str, remember: &[Value]) -> Value {
    json!({"say": [{"text": text, "room": "#persona_swarm:hs.test"}], "react": [], "remember": remember})
}

fn task(text: &str) -> Value {
    json!({"text": text, "about": ["@alice:hs.test"], "task": "open"})
}

/// Whether mail says so, not what was said earlier.
fn is_told(words: &str, what: &str) -> bool {
    words.lines().any(|line| !line.starts_with("earlier") && line.contains(what))
}

/// A world in which each thought costs a cent. Eir takes on a task when she is told to promise something; asked to note what
/// matters, she fares as is said here.
fn world(asked: Outcome) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.prices = prices::shipped().expect("shipped prices");
    world.script = Arc::new(move |who, words| {
        let outcome = match words {
            words if words.starts_with(ASKED) => asked.clone(),
            words if who == "eir" && is_told(words, "Eir, promise") => {
                answers(&says("I promise", &[task("I promised tea")]))
            }
            _ => Outcome::Usual,
        };
        let request =
            RequestUsage { model: MODEL.into(), cache_read: 10_000, output: 10, ..RequestUsage::default() };
        let usage = Usage { requests: vec![request], money: Some(0.01), ..Usage::default() };
        Scripted { outcome, usage, ..usual() }
    });
    world
}

/// A world in which she notes a second task when she is asked, and says something that nobody is to hear.
fn noting() -> World {
    world(answers(&says("unheard", &[task("the kettle is on")])))
}

/// She promises something, and talks on.
async fn promise(stage: &Stage) {
    stage.ask("promise me tea").await;
    stage.ask("hello").await;
}

async fn order(stage: &Stage, word: Word) {
    let order = Order::Session { persona: PersonaId("eir".into()), word };
    let (status, answer) = stage.order(&order.to_json()).await;
    assert_eq!(status, 200, "{answer}");
}

/// Which of the lines fed to Eir asked her to note something, counted from 1.
fn asked(world: &World) -> Vec<usize> {
    let fed = world.fed("eir");
    (1..).zip(&fed).filter(|(_, fed)| fed.words.starts_with(ASKED)).map(|(number, _)| number).collect()
}

/// What she remembers.
fn memories(world: &World) -> Vec<String> {
    let eir = PersonaId("eir".into());
    world.store().memories(&eir, |all| all.all().map(|memory| memory.kept.text.clone()).collect())
}

#[test]
fn what_she_notes_when_she_is_asked_stands_before_her_in_the_next_session_and_nobody_hears_of_it() {
    let mut world = noting();
    world.play(async |stage| {
        promise(stage).await;
        order(stage, Word::Refresh).await;
        stage.calm().await;
        stage.ask("are you there?").await;
    });
    assert_eq!(asked(&world), [3]);
    let fed = world.fed("eir");
    assert!(fed[2].words.contains("Of what you heard in register swarm,"), "{}", fed[2].words);
    counts(
        &[fed[3].words.clone()],
        &[("(task; in register swarm; about <@alice:hs.test>): the kettle is on", 1)],
    );
    counts(&world.told(), &[("Eir begins session 2: operator", 1)]);
    counts(&world.home.bodies(&swarm(&world.home).expect("the swarm"), EIR), &[("unheard", 0)]);
}

#[test]
fn the_ledger_tells_what_a_flush_cost_and_why_it_was() {
    let mut world = noting();
    world.play(async |stage| {
        promise(stage).await;
        order(stage, Word::Refresh).await;
        stage.calm().await;
    });
    let entries = world.store().ledger(Millis(0)).expect("the ledger");
    let sum = &sums::sum(&entries, Millis(0)).personas[&PersonaId("eir".into())];
    assert_eq!(sum.flushes, [("operator".to_owned(), 1)].into());
    assert_eq!((sum.flushed, sum.money), (Usd::of_dollars(0.01), Usd::of_dollars(0.03)));
    assert_eq!((sum.turns, sum.requests), (2, 3));
}

#[test]
fn before_the_cache_forgets_she_is_asked_once() {
    let mut world = noting();
    world.play(async |stage| {
        promise(stage).await;
        stage.pass(3 * COLD).await;
        stage.ask("back").await;
    });
    assert_eq!(asked(&world), [3]);
    counts(&world.told(), &[("Eir begins session 2: cold", 1)]);
    let fed = world.fed("eir");
    let after = fed[2].at - fed[1].at;
    assert!((280_000..300_000).contains(&after), "{after}");
}

#[test]
fn she_is_not_asked_in_vain_nor_in_a_cold_session_nor_where_the_operator_does_not_want_it() {
    let refreshed = |talks: &[&str], before: u64, flush: Flushing, keep: u64| {
        let mut world = noting();
        world.config.transcript_keep = Duration::from_secs(keep);
        world.play(async |stage| {
            for words in talks {
                stage.ask(words).await;
            }
        });
        world.config.care.flush = flush;
        world.play(async |stage| {
            stage.swarm().await;
            stage.brake(Lever::Hold).await;
            stage.pass(before).await;
            order(stage, Word::Refresh).await;
            stage.brake(Lever::Release).await;
            stage.calm().await;
            stage.ask("back").await;
        });
        counts(&world.told(), &[("Eir begins session 2", 1)]);
        asked(&world).len()
    };
    let week = 7 * 24 * 3600;
    assert_eq!(refreshed(&["promise", "hello"], 0, Flushing::Auto, week), 1);
    assert_eq!(refreshed(&["promise"], 0, Flushing::Auto, week), 0, "all is noted");
    assert_eq!(refreshed(&["hello", "hello", "hello"], 0, Flushing::Auto, week), 0, "no task is open");
    assert_eq!(refreshed(&["promise", "hello"], COLD, Flushing::Auto, week), 0, "cold");
    assert_eq!(refreshed(&["promise", "hello"], 0, Flushing::Off, week), 0, "off");
    assert_eq!(refreshed(&["promise", "hello"], 0, Flushing::Auto, 0), 0, "no record of what it comes from");
}

#[test]
fn an_operators_flush_is_done_once_by_hand_and_the_session_goes_on() {
    let mut world = noting();
    world.config.care.flush = Flushing::Off;
    world.play(async |stage| {
        stage.ask("hello").await;
        order(stage, Word::Flush).await;
        stage.calm().await;
        stage.ask("hello").await;
        stage.ask("hello").await;
    });
    assert_eq!((asked(&world), memories(&world)), (vec![2], vec!["the kettle is on".to_owned()]));
    counts(&world.told(), &[("begins session", 0)]);
}

#[test]
fn what_she_noted_so_goes_with_the_message_that_is_taken_back() {
    let mut world = noting();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let slip = stage.alice().say(&swarm, "Eir, you promised me tea");
        stage.said(&swarm, EIR, 1).await;
        order(stage, Word::Flush).await;
        stage.calm().await;
        assert!(stage.words("eir").contains(ASKED));
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
    });
    assert_eq!(memories(&world), Vec::<String>::new());
}

#[test]
fn whatever_becomes_of_it_mail_goes_on() {
    let reason = || "no".to_owned();
    for outcome in [
        Outcome::Dies,
        Outcome::DiesAnswered,
        answers(&json!({"say": "no list"})),
        Outcome::Ends(Ending::TooLong),
        Outcome::Ends(Ending::Transient { reason: reason(), retry_after: Some(Duration::from_secs(3600)) }),
        Outcome::Ends(Ending::Invalid { fault: reason() }),
        Outcome::Ends(Ending::Rejected { reason: reason() }),
        Outcome::Ends(Ending::Poisoned { reason: reason() }),
        Outcome::Ends(Ending::SessionGone { reason: reason() }),
        Outcome::Ends(Ending::Stranded),
    ] {
        let mut world = world(outcome);
        world.play(async |stage| {
            promise(stage).await;
            order(stage, Word::Refresh).await;
            stage.calm().await;
            stage.ask("are you there?").await;
            stage.ask("and now?").await;
        });
        assert_eq!(asked(&world), [3]);
        counts(&world.told(), &[("Eir begins session", 1), ("held", 0)]);
    }
}

#[test]
fn neither_the_brake_nor_the_budget_lets_a_flush_through() {
    let mut world = noting();
    world.play(async |stage| {
        promise(stage).await;
        stage.brake(Lever::Hold).await;
        order(stage, Word::Refresh).await;
        stage.calm().await;
        assert!(!stage.words("eir").contains(ASKED));
        stage.brake(Lever::Release).await;
        stage.calm().await;
    });
    assert_eq!(asked(&world), [3]);
    let mut world = noting();
    world.config.budget = Budget { per_day: Some(Usd::of_dollars(0.02)), ..Budget::default() };
    world.play(async |stage| {
        promise(stage).await;
        order(stage, Word::Refresh).await;
        stage.calm().await;
    });
    assert_eq!(asked(&world), [0; 0]);
}

#[test]
fn a_flush_that_was_stopped_goes_on_in_a_warm_session_and_is_given_up_in_a_cold_one() {
    for (held, times) in [(100, 2), (COLD, 1)] {
        let mut world = noting();
        let quick = world.script.clone();
        world.script = Arc::new(move |who, words| {
            let thinking = Duration::from_millis(if words.starts_with(ASKED) { 1_000 } else { 15 });
            Scripted { thinking, ..quick(who, words) }
        });
        world.play(async |stage| {
            promise(stage).await;
            order(stage, Word::Refresh).await;
            stage.until("she is asked", || stage.words("eir").contains(ASKED)).await;
            stage.brake(Lever::Hold).await;
            stage.pass(held).await;
            stage.brake(Lever::Release).await;
            stage.pass(2_000).await;
            stage.ask("are you there?").await;
        });
        assert_eq!(asked(&world).len(), times);
        assert_eq!(memories(&world).len(), times);
        counts(&world.told(), &[("Eir begins session 2", 1)]);
    }
}

/// Cuts the power at every millisecond from an order on, through the flush and the turn after it; answers the worlds.
fn cut(word: Word) -> impl Iterator<Item = (u64, World)> {
    (0..STEPS).map(move |cut| {
        let mut world = noting();
        world.play(async |stage| {
            promise(stage).await;
            order(stage, word).await;
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, are you there?");
            stage.pass(cut).await;
        });
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.said(&swarm, EIR, 3).await;
            stage.calm().await;
            counts(&stage.home.bodies(&swarm, EIR), &[("are you there?", 1), ("unheard", 0)]);
        });
        (cut, world)
    })
}

#[test]
fn whenever_the_power_is_cut_a_flush_before_a_refresh_is_done_once_and_mail_is_answered_once() {
    for (cut, world) in cut(Word::Refresh) {
        assert_eq!(memories(&world), ["I promised tea", "the kettle is on"], "cut at {cut} ms");
        counts(&world.told(), &[("Eir begins session", 1), ("held", 0)]);
    }
}

#[test]
fn whenever_the_power_is_cut_an_operators_flush_is_done_once() {
    for (cut, world) in cut(Word::Flush) {
        assert_eq!(memories(&world), ["I promised tea", "the kettle is on"], "cut at {cut} ms");
        counts(&world.told(), &[("Eir begins session", 0), ("held", 0)]);
    }
}
