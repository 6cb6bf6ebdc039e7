//! When a turn begins, what is in it, and what follows from each way it can end.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

fn answered(reply: &serde_json::Value) -> Outcome {
    Outcome::Ends(Ending::Answered { reply: reply.to_string() })
}

fn silence() -> Outcome {
    answered(&json!({ "say": [], "react": [] }))
}

fn transient(retry_after: Option<Duration>) -> Outcome {
    Outcome::Ends(Ending::Transient { reason: "529".into(), retry_after })
}

fn final_ending() -> Outcome {
    Outcome::Ends(Ending::Final { reason: "refusal".into() })
}

fn invalid() -> Outcome {
    Outcome::Ends(Ending::Invalid { fault: "no structured output".into() })
}

/// One message to Eir in the swarm, and time for all that follows.
async fn ask(stage: &Stage, words: &str, ms: u64) -> Vec<String> {
    let swarm = stage.swarm().await;
    stage.alice().say(&swarm, &format!("Eir, {words}"));
    stage.pass(ms).await;
    stage.home.bodies(&swarm, EIR)
}

#[test]
fn a_turn_waits_until_the_room_has_settled() {
    let mut world = World::new(Flavour::Synapse);
    world.config.settle.quiet = Duration::from_millis(100);
    world.config.settle.cap = Duration::from_millis(1_000);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for n in 0..5 {
            stage.alice().say(&swarm, &format!("Eir, part-{n}"));
            stage.pass(80).await;
            assert_eq!(stage.thoughts("eir"), 0, "she waits for the quiet");
        }
        stage.said(&swarm, EIR, 1).await;
    });
    assert_eq!(world.fed("eir").len(), 1, "one turn for all of it");
    counts(&[world.words("eir")], &[("(to you): Eir, part-", 5)]);
}

#[test]
fn a_turn_waits_no_longer_than_the_cap() {
    let mut world = World::new(Flavour::Synapse);
    world.config.settle.quiet = Duration::from_millis(100);
    world.config.settle.cap = Duration::from_millis(300);
    let begun = world.play(async |stage| {
        let swarm = stage.swarm().await;
        let begun = stage.now();
        stage.alice().say(&swarm, "Eir, now");
        while stage.thoughts("eir") == 0 {
            stage.pass(40).await;
            stage.bob().say(&swarm, "chatter");
        }
        begun
    });
    let waited = world.fed("eir")[0].at + 1_800_000_000_000 - begun;
    assert!((300..360).contains(&waited), "{waited} ms");
}

#[test]
fn what_is_not_addressed_rides_along() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "nice weather");
        stage.calm().await;
        assert_eq!(stage.thoughts("eir") + stage.thoughts("brage"), 0);
        stage.alice().say(&swarm, "Eir, what do you think?");
        stage.said(&swarm, EIR, 1).await;
        stage.calm().await;
        assert_eq!(stage.thoughts("brage"), 0);
    });
    let words = world.words("eir");
    assert!(words.contains("2 new") && words.contains("<@bob:hs.test>: nice weather"), "{words}");
}

#[test]
fn what_comes_while_she_thinks_waits_for_the_next_turn() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_millis(300), ..usual() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, one");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.alice().say(&swarm, "Eir, two");
        stage.alice().say(&swarm, "Eir, three");
        stage.pass(200).await;
        assert_eq!(stage.thoughts("eir"), 1, "one turn in flight");
        stage.said(&swarm, EIR, 2).await;
    });
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 2);
    counts(&[fed[0].words.clone()], &[("Eir, one", 1), ("Eir, two", 0)]);
    counts(&[fed[1].words.clone()], &[("Eir, one", 0), ("Eir, two", 1), ("Eir, three", 1)]);
}

#[test]
fn lanes_never_mix() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let (hers, his) = (stage.dm(&stage.alice(), EIR).await, stage.dm(&stage.bob(), EIR).await);
            stage.alice().say(&hers, "a secret of Alice");
            stage.bob().say(&his, "a secret of Bob");
            stage.alice().say(&swarm, "Eir, in public");
            stage.said(&swarm, EIR, 1).await;
            stage.said(&hers, EIR, 1).await;
            stage.said(&his, EIR, 1).await;
        });
        assert_eq!(world.fed("eir").len(), 3, "three lanes, three turns");
        for fed in world.fed("eir") {
            let here = ["secret of Alice", "secret of Bob", "in public"];
            assert_eq!(here.iter().filter(|words| fed.words.contains(*words)).count(), 1, "{}", fed.words);
        }
    });
}

#[test]
fn a_reply_into_another_lane_is_refused_and_told_to_her() {
    let mut world = World::new(Flavour::Synapse);
    let gossip = json!({ "say": [{ "text": "her secret is safe with me", "room": "#persona_swarm:hs.test" }], "react": [] });
    world.stumbles([answered(&gossip)]);
    let (swarm, direct) = world.play(async |stage| {
        let swarm = stage.swarm().await;
        let direct = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&direct, "a secret");
        stage.said(&direct, EIR, 1).await;
        (swarm, direct)
    });
    assert_eq!(world.home.bodies(&swarm, EIR), Vec::<String>::new());
    counts(&world.home.bodies(&direct, EIR), &[("a secret", 1)]);
    let told = &world.fed("eir")[1].words;
    assert!(told.starts_with("# your last reply could not be used"), "{told}");
}

#[test]
fn a_stuck_mind_holds_up_nobody_else() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|who, _| Scripted {
        outcome: if who == "eir" { Outcome::Stalls } else { Outcome::Usual },
        ..usual()
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for n in 0..3 {
            stage.alice().say(&swarm, &format!("Eir and Brage, number-{n}"));
            stage.said(&swarm, BRAGE, n + 1).await;
        }
        assert_eq!(stage.thoughts("eir"), 1);
    });
}

#[test]
fn typing_shows_while_she_thinks_and_ends_with_it() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let slow = |outcome| Scripted { thinking: Duration::from_secs(50), outcome, ..usual() };
        world.script =
            Arc::new(move |_, words| slow(if words.contains("hush") { silence() } else { Outcome::Usual }));
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            for (words, said) in [("Eir, speak", 1), ("Eir, hush", 1)] {
                let before = stage.home.typing().len();
                stage.alice().say(&swarm, words);
                stage.pass(10_000).await;
                let typing = stage.home.typing()[before..].to_vec();
                assert_eq!(typing, [(swarm.clone(), EIR.to_owned(), true)]);
                stage.pass(60_000).await;
                let typing: Vec<bool> = stage.home.typing()[before..].iter().map(|shown| shown.2).collect();
                assert_eq!(typing, [true, true, true, false], "renewed every 20 s, off at the end");
                assert_eq!(stage.home.bodies(&swarm, EIR).len(), said);
            }
        });
    });
}

#[test]
fn a_receipt_shows_when_the_batch_has_entered_her_session() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(1), ..usual() });
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "some words");
            stage.calm().await;
            assert_eq!(stage.home.receipts(), [], "what was not fed is not read");
            let last = stage.alice().say(&swarm, "Eir, read this");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            stage.pass(50).await;
            assert_eq!(stage.home.receipts(), [(swarm.clone(), EIR.to_owned(), last)]);
            assert!(stage.home.bodies(&swarm, EIR).is_empty());
        });
    });
}

#[test]
fn a_reaction_is_sent_to_its_message() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([answered(&json!({ "say": [], "react": [{ "message": "m1", "key": "👍" }] }))]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let said = stage.alice().say(&swarm, "Eir, agreed?");
        stage.calm().await;
        let reactions: Vec<_> =
            stage.home.timeline(&swarm).into_iter().filter(|e| e.kind == "m.reaction").collect();
        assert_eq!(reactions.len(), 1);
        assert_eq!(reactions[0].content["m.relates_to"]["event_id"], said.as_str());
    });
}

#[test]
fn a_transient_ending_is_waited_out_and_answered_once() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([transient(None), transient(Some(Duration::from_secs(30))), transient(None)]);
    let answers = world.play(async |stage| ask(stage, "patience", 60_000).await);
    counts(&answers, &[("patience", 1)]);
    let fed = world.fed("eir");
    assert_eq!(fed.iter().map(|fed| fed.words.as_str()).skip(1).collect::<Vec<_>>(), ["(retry)"; 3]);
    let waits: Vec<u64> = fed.windows(2).map(|two| two[1].at - two[0].at).collect();
    assert!(waits[0] >= 2_000 && waits[1] >= 30_000 && waits[2] >= 8_000, "{waits:?}");
}

#[test]
fn a_waiting_turn_survives_a_restart_and_its_time_is_kept() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([transient(Some(Duration::from_secs(30)))]);
    world.play(async |stage| assert!(ask(stage, "patience", 1_000).await.is_empty()));
    let answers = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.said(&swarm, EIR, 1).await
    });
    counts(&answers, &[("patience", 1)]);
    let fed = world.fed("eir");
    assert_eq!(fed[1].words, "(retry)");
    assert!(fed[1].at - fed[0].at >= 30_000);
}

#[test]
fn a_final_ending_is_tried_again_then_in_a_new_session_then_held() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([final_ending(), final_ending(), final_ending()]);
    let answers = world.play(async |stage| {
        ask(stage, "forbidden", 10_000).await;
        ask(stage, "allowed", 1_000).await
    });
    counts(&answers, &[("forbidden", 0), ("allowed", 1)]);
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 4);
    assert_eq!(fed[1].words, "(retry)");
    assert!(fed[2].words.contains("forbidden"), "a new session gets the whole batch: {}", fed[2].words);
    counts(&world.told(), &[("begins session 2: refusal", 1), ("they are held: refusal", 1)]);
    assert_eq!(world.store().counts().held, 1);
}

#[test]
fn an_invalid_reply_is_named_twice_then_a_new_session_begins() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([invalid(), invalid(), invalid()]);
    let answers = world.play(async |stage| ask(stage, "well-formed", 5_000).await);
    counts(&answers, &[("well-formed", 1)]);
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 4);
    for fed in &fed[1..3] {
        assert!(fed.words.starts_with("# your last reply") && fed.words.contains("no structured output"));
    }
    assert!(fed[3].words.contains("well-formed"), "{}", fed[3].words);
    counts(&world.told(), &[("begins session 2", 1), ("held", 0)]);
}

#[test]
fn a_reply_that_is_invalid_in_both_sessions_is_held() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles(std::iter::repeat_with(invalid).take(6));
    let answers = world.play(async |stage| {
        ask(stage, "hopeless", 10_000).await;
        ask(stage, "later", 1_000).await
    });
    counts(&answers, &[("hopeless", 0), ("later", 1)]);
    counts(&world.told(), &[("begins session", 1), ("held", 1)]);
}

#[test]
fn a_refused_account_is_not_asked_again_and_said_once() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::Ends(Ending::Refused { reason: "401".into() })]);
    world.play(async |stage| {
        ask(stage, "first", 5_000).await;
        ask(stage, "second", 60_000).await;
        let unready = stage.unready().await;
        assert!(unready.len() == 1 && unready[0].contains("eir is not asked any more: 401"), "{unready:?}");
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Brage, and you?");
        stage.said(&swarm, BRAGE, 1).await;
        assert_eq!(stage.thoughts("eir"), 1);
    });
    counts(&world.told(), &[("is not asked any more", 1)]);
    let answers = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.said(&swarm, EIR, 2).await;
        stage.calm().await;
        stage.home.bodies(&swarm, EIR)
    });
    counts(&answers, &[("first", 1), ("second", 1)]);
}

#[test]
fn a_session_that_is_gone_is_followed_by_the_next_with_the_whole_batch() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| counts(&ask(stage, "before", 500).await, &[("before", 1)]));
    world.delete_minds();
    let answers = world.play(async |stage| ask(stage, "after", 3_000).await);
    counts(&answers, &[("before", 1), ("after", 1)]);
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 2);
    assert!(fed[1].words.contains("Eir, after"), "{}", fed[1].words);
    counts(&world.told(), &[("begins session 2: the session's record is missing", 1)]);
}

#[test]
fn a_prompt_that_is_too_long_begins_a_new_session_with_the_same_mail() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::Usual, Outcome::Ends(Ending::TooLong)]);
    let answers = world.play(async |stage| {
        ask(stage, "short", 500).await;
        ask(stage, "long", 3_000).await
    });
    counts(&answers, &[("short", 1), ("long", 1)]);
    counts(&world.told(), &[("begins session 2: the prompt is too long", 1)]);
}

#[test]
fn a_mind_that_dies_is_fed_the_same_line_again() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::Dies, Outcome::DiesAnswered]);
    let answers = world.play(async |stage| ask(stage, "again", 5_000).await);
    counts(&answers, &[("again", 1)]);
    assert_eq!(world.fed("eir").len(), 2, "what was answered before it died is not thought again");
}

#[test]
fn a_session_goes_on_with_what_it_was_begun_with_until_it_is_cheap_to_begin_anew() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| counts(&ask(stage, "one", 500).await, &[("one", 1)]));
    world.play(async |stage| counts(&ask(stage, "two", 500).await, &[("two", 1)]));
    counts(&world.told(), &[("begins session", 0)]);
    world.config.personas[0].doctrine.push("Be brave.".into());
    world.play(async |stage| {
        stage.swarm().await;
        stage.calm().await;
        counts(&stage.told(), &[("begins session", 0)]);
        counts(&ask(stage, "three", 500).await, &[("three", 1)]);
        counts(&stage.told(), &[("begins session", 0)]);
        // The cache forgets after five minutes.
        stage.pass(310_000).await;
        counts(&ask(stage, "four", 500).await, &[("four", 1)]);
    });
    counts(&world.told(), &[("Eir begins session 2: stale, prompt changed", 1)]);
}
