//! What becomes of a Persona's session: kept, or followed by the next generation, and why.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use persona_bridge::bridge::orders::{Order, carry_out};
use persona_bridge::conversation::prompt::PING;
use persona_bridge::conversation::{Millis, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted, WEIGHED};
use persona_bridge::persona::session::Usd;
use persona_bridge::persona::session::care::{Apply, KeepWarm, OnRedaction, Word};
use persona_bridge::persona::session::sums;
use persona_bridge::persona::{Ending, RequestUsage, Usage};
use serde_json::json;
use tokio::time::Instant;

use super::log::logged;
use super::stage::{EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// How the words of a session begin that is not her first.
pub(super) const SEAM: &str = "# your next session begins here";
/// The first prompt of a session, and the part of it that sessions share, in tokens.
const FIRST: u64 = 6_000;
const SHARED: u64 = 3_800;
/// The pings while mail comes every eight minutes, and what they saved.
const PINGS: u64 = 3;
const SAVED: Usd = Usd(12_145_000);
/// What a turn adds.
const TURN: u64 = 600;
/// How long the cache keeps what was not used, and a little more.
pub(super) const COLD: u64 = 310_000;

/// So many messages, one after the other.
pub(super) async fn chat(stage: &Stage, turns: usize) {
    for turn in 0..turns {
        stage.ask(&format!("number-{turn};")).await;
    }
}

/// A prompt cache that keeps five minutes, behind a model with this window.
struct Cache {
    /// The first prompt of a session, the part of it that sessions share, and what a turn adds, in tokens.
    sizes: [u64; 3],
    prefix: u64,
    used: Option<Instant>,
}

impl Cache {
    fn count(&mut self, words: &str) -> RequestUsage {
        let is_ping = words == PING;
        let is_warm = self.used.is_some_and(|used| used.elapsed() < Duration::from_secs(300));
        if is_ping {
            self.used = Some(Instant::now());
            return RequestUsage {
                cache_read: self.prefix,
                written_5m: 30,
                output: 20,
                ..RequestUsage::default()
            };
        }
        let begins = self.used.is_none() || words.starts_with(SEAM);
        let [first, shared, turn] = self.sizes;
        let (held, prompt) = if begins { (shared, first) } else { (self.prefix, self.prefix + turn) };
        (self.prefix, self.used) = (prompt, Some(Instant::now()));
        let cache_read = if is_warm { held } else { 0 };
        RequestUsage { cache_read, written_5m: prompt - cache_read, output: 100, ..RequestUsage::default() }
    }
}

/// A world in which Eir's requests are counted.
pub(super) fn counted(window: u64) -> World {
    counted_as(window, [FIRST, SHARED, TURN])
}

fn counted_as(window: u64, sizes: [u64; 3]) -> World {
    let mut world = World::new(Flavour::Synapse);
    let cache = Mutex::new(Cache { sizes, prefix: 0, used: None });
    world.script = Arc::new(move |_, words| {
        if words == WEIGHED {
            return usual();
        }
        let requests = vec![cache.lock().expect("not poisoned").count(words)];
        Scripted { usage: Usage { requests, window: Some(window), ..Usage::default() }, ..usual() }
    });
    world
}

/// Which of the lines fed to Eir began a session that was not her first, counted from 1.
pub(super) fn seams(world: &World) -> Vec<usize> {
    let fed = world.fed("eir");
    (1..).zip(&fed).filter(|(_, fed)| fed.words.starts_with(SEAM)).map(|(number, _)| number).collect()
}

/// Her refreshes in the ledger, by reason.
pub(super) fn refreshes(world: &World) -> Vec<(String, u64)> {
    let entries = world.store().ledger(Millis(0)).expect("the ledger");
    let sum = sums::sum(&entries, Millis(0));
    sum.personas[&PersonaId("eir".into())].refreshes.clone().into_iter().collect()
}

#[test]
fn a_session_is_followed_by_the_next_when_its_rent_has_reached_the_price_of_that() {
    let mut world = counted(200_000);
    let ((), log) = logged(|| {
        world.play(async |stage| {
            stage.ask("hello").await;
            // By the second session it is measured how much of one the next finds in the cache.
            stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
            chat(stage, 25).await;
        });
    });
    assert_eq!(world.fed("eir").len(), 26, "each is answered once");
    assert_eq!(seams(&world), [2, 12, 22]);
    counts(&log, &[("a session begins persona=eir generation=3 reason=\"rental\"", 1)]);
    counts(&world.told(), &[("Eir begins session 3: rental", 1), ("Eir begins session 4: rental", 1)]);
    assert_eq!(refreshes(&world), [("operator".to_owned(), 1), ("rental".to_owned(), 2)]);
    assert_eq!(world.records("eir"), (1, 3), "earlier sessions are put aside");
    let swarm = super::stage::swarm(&world.home).expect("the swarm");
    counts(&world.home.bodies(&swarm, EIR), &[("session", 0)]);
}

#[test]
fn an_operators_keep_holds_the_rent_off() {
    let mut world = counted(200_000);
    world.play(async |stage| {
        stage.ask("hello").await;
        let (_, answer) = stage.order(&json!({ "order": "keep", "persona": "eir" })).await;
        assert_eq!(answer["follows"], "session 1 of eir goes on for as long as it can");
        chat(stage, 29).await;
    });
    assert_eq!(seams(&world), [0; 0]);
}

#[test]
fn an_operators_keep_takes_back_what_was_decided_at_the_end_of_the_last_turn() {
    let mut world = counted(200_000);
    world.play(async |stage| {
        stage.ask("hello").await;
        stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        // Enough for the rent, as another scene shows.
        chat(stage, 10).await;
        stage.order(&json!({ "order": "keep", "persona": "eir" })).await;
        chat(stage, 2).await;
    });
    assert_eq!(seams(&world), [2]);
}

#[test]
fn a_cold_session_is_not_written_again() {
    let mut world = counted(200_000);
    world.play(async |stage| {
        chat(stage, 2).await;
        stage.pass(COLD).await;
        stage.ask("back").await;
        stage.pass(COLD / 2).await;
        stage.ask("still here").await;
    });
    assert_eq!(seams(&world), [3]);
    assert_eq!(refreshes(&world), [("cold".to_owned(), 1)]);
}

/// Mail comes every eight minutes, so that the cache forgets between; answers how it went from the sixth on.
fn every_eight_minutes(keep_warm: KeepWarm) -> (World, usize) {
    let mut world = counted(200_000);
    world.config.care.keep_warm = keep_warm;
    world.play(async |stage| {
        for number in 0..8 {
            stage.ask(&format!("number-{number};")).await;
            stage.pass(480_000).await;
        }
    });
    let late = seams(&world).into_iter().filter(|number| *number > 6).count();
    (world, late)
}

#[test]
fn who_comes_back_soon_enough_is_kept_warm_by_pings_that_tell_what_they_saved() {
    let ((world, refreshed), log) = logged(|| every_eight_minutes(KeepWarm::Auto));
    assert_eq!(refreshed, 0);
    let fed = world.fed("eir");
    let pings: Vec<u64> = fed.iter().filter(|fed| fed.words == PING).map(|fed| fed.at).collect();
    let entries = world.store().ledger(Millis(0)).expect("the ledger");
    let sum = &sums::sum(&entries, Millis(0)).personas[&PersonaId("eir".into())];
    assert_eq!(sum.pings, pings.len() as u64);
    counts(&log, &[("decided=Ping reason=\"return-likely\"", pings.len())]);
    // Exact, so that no constant of the decision changes unseen.
    assert_eq!((sum.pings, sum.saved, sum.lost), (PINGS, SAVED, Usd(0)), "{sum:?}");
    // Each comes just before the cache forgets what was used last.
    let after = |ping: u64| fed.iter().map(|fed| fed.at).filter(|at| *at < ping).max().expect("a turn");
    assert!(pings.iter().all(|ping| (280_000..300_000).contains(&(ping - after(*ping)))), "{pings:?}");
    let swarm = super::stage::swarm(&world.home).expect("the swarm");
    assert_eq!(world.home.bodies(&swarm, EIR).len(), 8, "nobody hears of it");
}

/// How many pings are sent while mail comes every eight minutes, where the prompt of her session is of so many tokens.
fn pings_for(prompt: u64) -> usize {
    let mut world = counted_as(200_000, [prompt, 100, 0]);
    world.config.care.keep_warm = KeepWarm::Auto;
    world.play(async |stage| {
        stage.ask("number-8;").await;
        stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        for number in 0..8 {
            stage.ask(&format!("number-{number};")).await;
            stage.pass(480_000).await;
        }
    });
    world.fed("eir").iter().filter(|fed| fed.words == PING).count()
}

#[test]
fn a_ping_is_sent_where_it_just_pays_and_where_it_just_does_not_it_is_not() {
    // What warmth saves grows with the prompt; what a ping adds to it, and is answered with, is as dear in all.
    assert_eq!(pings_for(135), 0);
    assert!(pings_for(136) > 0);
}

#[test]
fn nobody_is_pinged_unless_the_operator_says_so() {
    let (world, refreshed) = every_eight_minutes(KeepWarm::Off);
    assert_eq!(refreshed, 2);
    counts(&[world.words("eir")], &[(PING, 0)]);
}

#[test]
fn a_window_that_fills_is_left_in_time_with_the_same_mail() {
    let mut world = counted(9_600);
    world.play(async |stage| chat(stage, 6).await);
    assert_eq!(seams(&world), [4]);
    assert_eq!(refreshes(&world), [("watermark".to_owned(), 1)]);
    assert!(world.fed("eir")[3].words.contains("number-3;"), "the mail waits for the next session");
}

#[test]
fn mail_that_is_too_long_by_itself_is_split_and_all_of_it_is_answered_in_order() {
    let mut world = World::new(Flavour::Synapse);
    world.config.settle.quiet = Duration::from_millis(100);
    world.script = Arc::new(|_, words| match words.matches("(to you)").count() {
        0..=3 => usual(),
        4.. => Scripted { outcome: Outcome::Ends(Ending::TooLong), ..usual() },
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for number in 0..11 {
            stage.alice().say(&swarm, &format!("Eir, number-{number};"));
        }
        stage.until("all were fed", || stage.words("eir").contains("number-10;")).await;
        stage.pass(2_000).await;
        let answers = stage.home.bodies(&swarm, EIR);
        let place =
            |number: usize| answers.iter().position(|said| said.contains(&format!("number-{number};")));
        let places: Vec<usize> = (0..11).filter_map(place).collect();
        assert_eq!(places.len(), 11, "{answers:?}");
        assert!(places.is_sorted(), "{answers:?}");
        counts(&answers, &[("number-", 11)]);
        counts(&stage.told(), &[("held", 0)]);
    });
    assert_eq!(world.store().counts().held, 0);
}

#[test]
fn one_message_that_is_too_long_by_itself_is_held() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::Ends(Ending::TooLong), Outcome::Ends(Ending::TooLong)]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, a whole book");
        stage.pass(3_000).await;
        counts(
            &stage.told(),
            &[("session 2: the prompt is too long", 1), ("they are held: the prompt is too long", 1)],
        );
    });
    assert_eq!(world.store().counts().held, 1);
}

#[test]
fn one_long_message_that_is_too_long_by_itself_is_shown_in_part_and_answered() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, words| match words.len() {
        0..6_000 => usual(),
        6_000.. => Scripted { outcome: Outcome::Ends(Ending::TooLong), ..usual() },
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, &format!("Eir, a book: {}", "word ".repeat(1_400)));
        stage.said(&swarm, EIR, 1).await;
        stage.ask("and something short").await;
        counts(&stage.told(), &[("held", 0), ("session 3: the prompt is too long", 1)]);
    });
    assert_eq!(refreshes(&world), [("too-long".to_owned(), 2)], "the ledger has names, no sentences");
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 4);
    assert!(
        fed[2].words.contains("too long to be shown, ") && fed[2].words.contains("Eir, a book"),
        "{}",
        fed[2].words
    );
    assert_eq!(world.store().counts().held, 0);
}

#[test]
fn a_change_takes_effect_at_once_where_the_operator_says_so() {
    let mut world = counted(200_000);
    world.play(async |stage| chat(stage, 1).await);
    world.config.personas[0].doctrine.push("Be brave.".into());
    world.play(async |stage| chat(stage, 1).await);
    assert_eq!(seams(&world), [0; 0], "it is warm, and nothing is gained");
    world.config.care.apply = Apply::Now;
    world.play(async |stage| chat(stage, 1).await);
    assert_eq!(seams(&world), [3]);
    counts(&world.told(), &[("Eir begins session 2: stale, prompt changed", 1)]);
}

#[test]
fn a_change_takes_effect_with_the_next_refresh_whatever_that_is_for() {
    let mut world = counted(200_000);
    world.play(async |stage| chat(stage, 2).await);
    world.config.personas[0].doctrine.push("Be brave.".into());
    world.play(async |stage| {
        chat(stage, 1).await;
        stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        chat(stage, 1).await;
        stage.pass(COLD).await;
        chat(stage, 1).await;
    });
    assert_eq!(seams(&world), [4, 5]);
    counts(&world.told(), &[("session 2: operator", 1), ("session 3: cold", 1), ("stale", 0)]);
}

/// Stops in a turn that waits after some deaths, and goes on with another version of the mind.
fn another_version_after(deaths: [Outcome; 3]) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::Usual].into_iter().chain(deaths));
    world.play(async |stage| {
        stage.ask("one;").await;
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, two;");
        stage.until("she was asked three times", || stage.thoughts("eir") == 4).await;
        stage.pass(500).await;
    });
    world.config.mind_version = "another".into();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.said(&swarm, EIR, 2).await;
        stage.ask("three;").await;
        counts(&stage.home.bodies(&swarm, EIR), &[("two;", 1), ("three;", 1)]);
    });
    counts(&world.told(), &[("Eir begins session 2: cli-version", 1), ("begins session", 1)]);
    world
}

#[test]
fn another_claude_begins_the_next_session_once_the_open_turn_is_settled_from_the_old_file() {
    let world = another_version_after([Outcome::Dies, Outcome::Dies, Outcome::DiesAnswered]);
    assert_eq!(seams(&world), [5]);
    assert!(world.fed("eir")[4].words.contains("three;"), "what was answered is not asked again");
}

#[test]
fn another_claude_is_fed_the_whole_mail_of_a_turn_that_the_old_file_does_not_answer() {
    let world = another_version_after([Outcome::Dies, Outcome::Dies, Outcome::Dies]);
    assert_eq!(seams(&world), [5]);
    assert!(world.fed("eir")[4].words.contains("two;"), "{}", world.fed("eir")[4].words);
}

#[test]
fn another_claude_that_comes_while_the_bridge_runs_begins_the_next_session_too() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::Usual, Outcome::OfVersion("another".into())]);
    world.play(async |stage| {
        for words in ["one;", "two;", "three;"] {
            stage.ask(words).await;
        }
    });
    assert_eq!(seams(&world), [3]);
    assert!(world.fed("eir")[2].words.contains("two;"), "{}", world.fed("eir")[2].words);
    world.config.mind_version = "another".into();
    world.play(async |stage| stage.ask("four;").await);
    counts(&world.told(), &[("Eir begins session 2: cli-version", 1), ("begins session", 1)]);
    assert_eq!(refreshes(&world), [("cli-version".to_owned(), 1)]);
}

#[test]
fn an_operators_refresh_begins_the_next_session_with_the_next_mail_and_once() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        stage.ask("one").await;
        let (status, answer) = stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        assert_eq!((status, &answer["follows"]), (200, &json!("the next mail begins session 2 of eir")));
        stage.calm().await;
        counts(&stage.told(), &[("begins session", 0)]);
        stage.ask("two").await;
        counts(&stage.told(), &[("Eir begins session 2: operator", 1)]);
        stage.ask("three").await;
        counts(&stage.told(), &[("begins session", 1)]);
        let (status, answer) = stage.order(&json!({ "order": "refresh", "persona": "loki" })).await;
        assert_eq!(status, 409, "{answer}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains("no Persona loki")), "{answer}");
    });
}

#[test]
fn an_order_given_while_the_bridge_is_away_is_carried_out_when_it_is_back() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| stage.ask("one").await);
    let order = Order::Session { persona: PersonaId("eir".into()), word: Word::Refresh };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let follows = runtime.block_on(carry_out(&world.store(), &order, Millis(0))).expect("the store takes it");
    assert_eq!(follows, "the next mail begins session 2 of eir");
    world.play(async |stage| stage.ask("two").await);
    counts(&world.told(), &[("Eir begins session 2: operator", 1)]);
}

/// Says something, takes it back, says something else; answers which lines began a session.
fn taken_back(on_redaction: OnRedaction) -> Vec<usize> {
    let mut world = counted(200_000);
    world.config.care.on_redaction = on_redaction;
    world.play(async |stage| {
        stage.ask("hello").await;
        let swarm = stage.swarm().await;
        let slip = stage.alice().say(&swarm, "Eir, my key is 4711");
        stage.said(&swarm, EIR, 2).await;
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
        chat(stage, 2).await;
    });
    seams(&world)
}

#[test]
fn a_session_that_heard_what_was_taken_back_is_not_gone_on_with() {
    assert_eq!(taken_back(OnRedaction::Refresh), [3]);
    assert_eq!(taken_back(OnRedaction::Note), [0; 0]);
}
