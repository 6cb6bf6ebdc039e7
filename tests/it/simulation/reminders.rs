//! Reminders that Personas set: told once, when they are due, where they were set.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::Order;
use persona_bridge::bridge::reminders::Reminders;
use persona_bridge::conversation::{Level, PersonaId, ReminderNumber};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::{Value, json};

use super::stage::{BOT, EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

const MINUTE: u64 = 60_000;

/// A world in which Eir sets reminders for in ten minutes when she is told to, and says so when one comes.
fn world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.script = Arc::new(|who, words| {
        let mut reply = json!({ "say": [], "react": [] });
        if let Some((_, tea)) = words.split_once("remind yourself of ").filter(|_| who == "eir") {
            let text = tea.lines().next().unwrap_or_default();
            reply["remind"] = json!([{ "in": "10m", "text": text }]);
        }
        if words.contains("never mind") {
            reply["unremind"] = json!(["r1"]);
        }
        if words.lines().any(|line| line.starts_with("reminder r")) {
            reply["say"] = json!([{ "text": "reminded" }]);
        }
        replies(&reply)
    });
    world
}

fn replies(reply: &Value) -> Scripted {
    Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
}

/// Alice has Eir set a reminder in the swarm.
async fn sets(stage: &Stage, what: &str) -> String {
    let swarm = stage.swarm().await;
    let before = stage.thoughts("eir");
    stage.alice().say(&swarm, &format!("Eir, remind yourself of {what}"));
    stage.until("she is asked", || stage.thoughts("eir") > before).await;
    stage.calm().await;
    swarm
}

fn told(words: &str) -> usize {
    words.lines().filter(|line| line.starts_with("reminder r")).count()
}

#[test]
fn a_reminder_is_told_once_when_it_is_due_and_she_speaks_where_it_is_about() {
    on_both(|flavour| {
        let mut world = world(flavour);
        let swarm = world.play(async |stage| {
            let swarm = sets(stage, "the tea").await;
            stage.pass(9 * MINUTE).await;
            assert_eq!(told(&stage.words("eir")), 0, "before it is due");
            stage.pass(2 * MINUTE).await;
            assert_eq!(told(&stage.words("eir")), 1);
            stage.pass(60 * MINUTE).await;
            assert_eq!(told(&stage.words("eir")), 1, "and no more");
            assert_eq!(stage.words("brage").matches("reminder r").count(), 0);
            swarm
        });
        let words = world.words("eir");
        assert!(words.contains("# a reminder of yours: nothing new was said in register swarm"), "{words}");
        assert!(words.contains(": the tea\n"), "{words}");
        assert_eq!(world.home.bodies(&swarm, EIR), ["reminded"]);
        world.play(async |stage| stage.pass(60 * MINUTE).await);
        assert_eq!(told(&world.words("eir")), 1, "not again after a restart");
    });
}

#[test]
fn a_reminder_that_came_due_while_the_bridge_was_away_is_told_at_its_start() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| drop(sets(stage, "the tea").await));
    world.away(Duration::from_secs(24 * 3_600));
    world.play(async |stage| {
        stage.pass(5 * MINUTE).await;
        assert_eq!(told(&stage.words("eir")), 1);
    });
}

#[test]
fn a_due_reminder_comes_along_with_mail() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = sets(stage, "the tea").await;
        stage.alice().say(&swarm, "stop");
        stage.pass(11 * MINUTE).await;
        stage.alice().say(&swarm, "Eir, and the cake?");
        stage.pass(MINUTE).await;
        assert_eq!(told(&stage.words("eir")), 0);
        stage.alice().say(&swarm, "!persona go");
        stage.pass(MINUTE).await;
    });
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 2);
    counts(
        &[fed[1].words.clone()],
        &[("reminder r1 ", 1), ("and the cake?", 1), ("# a reminder of yours", 0)],
    );
}

#[test]
fn where_she_is_stopped_a_reminder_waits() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = sets(stage, "the tea").await;
        stage.alice().say(&swarm, "stop");
        stage.pass(30 * MINUTE).await;
        assert_eq!(stage.thoughts("eir"), 1);
        stage.alice().say(&swarm, "!persona go");
        stage.said(&swarm, EIR, 1).await;
    });
    assert_eq!(told(&world.words("eir")), 1);
}

#[test]
fn she_and_an_operator_cancel_by_label() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = sets(stage, "the tea").await;
        stage.alice().say(&swarm, "Eir, never mind");
        stage.pass(MINUTE).await;
        sets(stage, "the milk").await;
        sets(stage, "the cake").await;
        let order = |asked| Order::Remind { persona: PersonaId("eir".into()), asked }.to_json();
        let (status, listed) = stage.order(&order(Reminders::List)).await;
        let listed = listed["follows"].as_str().unwrap_or_default().to_owned();
        assert_eq!(status, 200);
        counts(
            &[listed],
            &[("the tea", 0), ("r2 ", 1), ("the milk", 1), ("r3 ", 1), ("in register swarm", 2)],
        );
        let cancel = || order(Reminders::Cancel(ReminderNumber(2)));
        assert_eq!(stage.order(&cancel()).await.1["follows"], "eir is not reminded of r2 any more");
        assert_eq!(stage.order(&cancel()).await.1["follows"], "eir has no reminder r2 open");
        stage.pass(60 * MINUTE).await;
    });
    let words = world.words("eir");
    counts(&[words], &[("reminder r1 ", 0), ("reminder r2 ", 0), ("reminder r3 ", 1)]);
}

#[test]
fn an_admin_lists_and_cancels_in_a_room_with_the_bot_alone() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = sets(stage, "the tea").await;
        let desk = stage.dm(&stage.alice(), BOT).await;
        for (count, (room, command, expect)) in [
            (&desk, "remind eir", "the tea"),
            (&desk, "remind eir cancel r1", "eir is not reminded of r1 any more"),
            (&desk, "remind eir", "eir has no reminder open"),
        ]
        .into_iter()
        .enumerate()
        {
            stage.alice().say(room, command);
            let answer = stage.said(room, BOT, count + 1).await.remove(count);
            assert!(answer.contains(expect), "{command}: {answer}");
        }
        stage.alice().say(&swarm, "!persona remind eir");
        let answer = stage.said(&swarm, BOT, 1).await.remove(0);
        assert!(answer.contains("only in a room of you and me"), "{answer}");
    });
}

#[test]
fn a_reminder_of_a_direct_chat_is_told_in_no_other_lane() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let dm = stage.dm(&stage.bob(), EIR).await;
        stage.bob().say(&dm, "remind yourself of the secret");
        stage.pass(MINUTE).await;
        for minute in 0..15 {
            stage.alice().say(&swarm, &format!("Eir, chat {minute}"));
            stage.pass(MINUTE).await;
        }
        assert_eq!(stage.home.bodies(&dm, EIR), ["reminded"]);
        assert_eq!(stage.home.bodies(&swarm, EIR), [""; 0]);
    });
    let fed = world.fed("eir");
    let (swarm, dm): (Vec<_>, Vec<_>) = fed.iter().partition(|fed| fed.words.contains("register swarm"));
    let words = |fed: &[&super::world::Fed]| fed.iter().map(|fed| fed.words.clone()).collect::<Vec<_>>();
    counts(&words(&swarm), &[("secret", 0), ("reminder", 0)]);
    counts(&words(&dm), &[("reminder r1 ", 1)]);
}

#[test]
fn whose_rooms_are_gone_is_dropped_and_operators_are_told_once() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let dm = stage.dm(&stage.bob(), EIR).await;
        stage.bob().say(&dm, "remind yourself of the tea");
        stage.pass(MINUTE).await;
        stage.bob().kick(&dm, EIR);
        stage.pass(30 * MINUTE).await;
        assert_eq!(stage.thoughts("eir"), 1);
        counts(&stage.told(), &[("set the reminder r1; it was dropped", 1)]);
    });
    assert_eq!(world.store().reminders(&PersonaId("eir".into())).expect("it is read"), []);
}

#[test]
fn she_is_shown_what_is_open_once_after_she_set_it() {
    let mut world = world(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = sets(stage, "the tea").await;
        for _ in 0..2 {
            stage.alice().say(&swarm, "Eir, hello");
            stage.pass(MINUTE).await;
        }
    });
    let fed: Vec<String> = world.fed("eir").into_iter().map(|fed| fed.words).collect();
    let shown: Vec<usize> =
        fed.iter().map(|words| words.matches("# open reminders of yours").count()).collect();
    assert_eq!(shown, [0, 1, 0]);
}

#[test]
fn what_cannot_be_answered_comes_again_later_and_not_at_once() {
    let mut world = world(Flavour::Synapse);
    let usual = world.script.clone();
    world.script = Arc::new(move |who, words| {
        if words.contains("reminder r1 ") || words.starts_with("(retry)") {
            let reason = "no".to_owned();
            return Scripted { outcome: Outcome::Ends(Ending::Final { reason }), ..super::world::usual() };
        }
        usual(who, words)
    });
    world.play(async |stage| {
        sets(stage, "the tea").await;
        stage.pass(60 * MINUTE).await;
        let once = stage.thoughts("eir");
        assert!((2..8).contains(&once), "{once}");
        counts(&stage.told(), &[("eir could not take up a turn without mail", 1)]);
        stage.pass(60 * MINUTE).await;
        let twice = stage.thoughts("eir");
        assert_eq!(
            twice - once,
            once - 1,
            "once more an hour later {:?} {}",
            stage.told(),
            stage.words("eir")
        );
    });
}

/// The power is cut around the time, a little later each time.
#[test]
fn a_power_cut_around_the_time_neither_loses_nor_doubles_a_reminder() {
    for cut in 0..45 {
        let mut world = world(Flavour::Synapse);
        world.config.personas.truncate(1);
        let swarm = world.play(async |stage| {
            stage.until("she joins", || stage.home.alias("#persona_swarm:hs.test").is_some()).await;
            let swarm = stage.home.alias("#persona_swarm:hs.test").expect("it was just seen");
            stage.joins(&swarm, EIR).await;
            stage.alice().join(&swarm);
            stage.pass(50).await;
            stage.alice().say(&swarm, "Eir, remind yourself of the tea");
            stage.until("she is asked", || stage.thoughts("eir") == 1).await;
            stage.pass(10 * MINUTE - 5 + cut).await;
            swarm
        });
        world.play(async |stage| stage.pass(25 * MINUTE).await);
        assert_eq!(world.home.bodies(&swarm, EIR), ["reminded"], "cut {cut}");
    }
}
