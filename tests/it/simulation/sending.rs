//! From the outbox to the rooms: once, in order, and what is done with each refusal.

use std::time::Duration;

use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, is_joined, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour, Seen};

/// A PUT of hers into a room.
fn sends_to(room: &str) -> impl Fn(&Seen<'_>) -> bool + Send + use<> {
    let path = format!("/rooms/{room}/send/");
    move |seen| seen.method == "PUT" && seen.path.contains(&path)
}

/// Whatever is sent into any room.
fn sends(seen: &Seen<'_>) -> bool {
    seen.method == "PUT" && seen.path.contains("/send/")
}

fn says(texts: &[&str]) -> Outcome {
    let say: Vec<_> = texts.iter().map(|text| json!({ "text": text })).collect();
    let reply = json!({ "say": say, "react": [] }).to_string();
    Outcome::Ends(Ending::Answered { reply })
}

/// A world of slow thinkers, so that things happen meanwhile.
fn slow_world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.script = std::sync::Arc::new(|_, _| Scripted { thinking: Duration::from_millis(200), ..usual() });
    world
}

async fn thinks(stage: &Stage) {
    stage.until("she thinks", || stage.thoughts("eir") > 0).await;
    stage.pass(20).await;
}

/// A direct room in which she thinks about a question of Alice's.
async fn asked_directly(stage: &Stage) -> String {
    let direct = stage.dm(&stage.alice(), EIR).await;
    stage.alice().say(&direct, "a question");
    thinks(stage).await;
    direct
}

#[test]
fn a_send_cut_after_it_was_taken_is_found_and_not_repeated() {
    on_both(|flavour| {
        for fault in [Fault::CutAfter, Fault::CutAfterForgetting] {
            let mut world = slow_world(flavour);
            world.play(async |stage| {
                let swarm = stage.swarm().await;
                stage.home.fail_when(1, fault.clone(), sends_to(&swarm));
                stage.alice().say(&swarm, "Eir, one");
                thinks(stage).await;
                // The echo is kept from us on both ways: only looking back for the request id can tell.
                stage.home.set_silent(true);
                let unread = Fault::Answer(500, String::new());
                stage.home.fail_when(u32::MAX, unread, |seen| seen.path.contains("/context/"));
                stage.until("it was sent", || !stage.home.bodies(&swarm, EIR).is_empty()).await;
                stage.home.lose_idempotency();
                stage.pass(10_000).await;
                counts(&stage.home.bodies(&swarm, EIR), &[("one", 1)]);
                stage.home.clear_faults();
                stage.home.set_silent(false);
                stage.alice().say(&swarm, "Eir, two");
                stage.said(&swarm, EIR, 2).await;
            });
            assert_eq!(world.store().counts().outbox, 0);
        }
    });
}

#[test]
fn a_send_cut_before_a_restart_is_one_event_even_without_idempotency() {
    on_both(|flavour| {
        for fault in [Fault::CutAfter, Fault::CutBefore] {
            let mut world = World::new(flavour);
            let swarm = world.play(async |stage| {
                let swarm = stage.swarm().await;
                stage.home.fail_when(1, fault.clone(), sends_to(&swarm));
                stage.alice().say(&swarm, "Eir, one");
                let sent = |seen: &String| seen.contains(&format!("/rooms/{swarm}/send/"));
                stage.until("it is sent", || stage.home.requests().iter().any(sent)).await;
                stage.pass(10).await;
                swarm
            });
            world.home.lose_queue();
            world.home.lose_idempotency();
            world.play(async |stage| {
                stage.swarm().await;
                stage.home.set_silent(true);
                stage.said(&swarm, EIR, 1).await;
                stage.pass(10_000).await;
            });
            counts(&world.home.bodies(&swarm, EIR), &[("one", 1)]);
        }
    });
}

#[test]
fn a_limit_waits_its_delay_and_keeps_the_order_while_other_rooms_go_on() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.stumbles([says(&["part one", "part two", "part three"])]);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.home.fail_when(2, Fault::Limited(Duration::from_secs(3)), sends_to(&swarm));
            let begun = stage.now();
            stage.alice().say(&swarm, "Eir, tell me");
            let direct = stage.dm(&stage.bob(), BRAGE).await;
            stage.bob().say(&direct, "meanwhile");
            stage.said(&direct, BRAGE, 1).await;
            assert!(stage.now() - begun < 3_000, "another room does not wait");
            assert!(stage.home.bodies(&swarm, EIR).is_empty());
            let bodies = stage.said(&swarm, EIR, 3).await;
            assert_eq!(bodies, ["part one", "part two", "part three"]);
            let waited = stage.now() - begun;
            assert!((6_000..7_000).contains(&waited), "{waited} ms");
        });
    });
}

#[test]
fn limits_on_any_other_call_wait_too() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.home.fail_next(5, Fault::Limited(Duration::from_secs(2)));
        world.play(async |stage| {
            let begun = stage.now();
            let swarm = stage.swarm().await;
            assert!(stage.now() - begun >= 10_000);
            stage.alice().say(&swarm, "Eir, hello");
            stage.said(&swarm, EIR, 1).await;
        });
    });
}

#[test]
fn server_faults_that_stay_while_others_succeed_park_and_are_told() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let direct = stage.dm(&stage.bob(), EIR).await;
            let broken = Fault::Answer(500, r#"{"errcode":"M_UNKNOWN","error":"unknown room"}"#.to_owned());
            stage.home.fail_when(u32::MAX, broken, sends_to(&swarm));
            stage.alice().say(&swarm, "Eir, one");
            stage.pass(5_000).await;
            for n in 0..60 {
                stage.bob().say(&direct, &format!("still-{n}."));
                stage.pass(10_000).await;
            }
            counts(&stage.told(), &[("could not say something", 1)]);
            stage.home.clear_faults();
            stage.alice().say(&swarm, "Eir, two");
            stage.said(&swarm, EIR, 1).await;
        });
        let counted = world.store().counts();
        assert_eq!((counted.outbox, counted.parked), (1, 1));
    });
}

#[test]
fn a_quiet_room_that_the_server_fails_on_is_given_up_while_any_other_call_succeeds() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let broken = Fault::Answer(500, r#"{"errcode":"M_UNKNOWN","error":"unknown room"}"#.to_owned());
            stage.home.fail_when(u32::MAX, broken, sends_to(&swarm));
            stage.alice().say(&swarm, "Eir, one");
            stage.pass(1_200_000).await;
            counts(&stage.told(), &[("could not say something", 1)]);
        });
        assert_eq!(world.store().counts().parked, 1);
    });
}

#[test]
fn server_faults_of_everything_are_an_outage_and_park_nothing() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, before");
            stage.said(&swarm, EIR, 1).await;
            stage.home.fail_next(u32::MAX, Fault::Answer(502, "<html>bad gateway</html>".to_owned()));
            stage.alice().say(&swarm, "Eir, during");
            stage.pass(3_600_000).await;
            stage.home.clear_faults();
            stage.said(&swarm, EIR, 2).await;
            stage.calm().await;
            counts(&stage.home.bodies(&swarm, EIR), &[("before", 1), ("during", 1)]);
        });
        assert_eq!(world.store().counts().parked, 0);
    });
}

#[test]
fn what_is_too_large_is_split_in_place() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let long = (0..200).map(|n| format!("word-{n}.")).collect::<Vec<_>>().join(" ");
        world.stumbles([says(&["first of all", &long, "last of all"])]);
        world.home.set_largest(900);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, tell me");
            stage
                .until("the last is said", || {
                    stage.home.bodies(&swarm, EIR).join(" ").contains("last of all")
                })
                .await;
            let bodies = stage.home.bodies(&swarm, EIR);
            assert!(bodies.len() > 3, "{}", bodies.len());
            let read: Vec<String> = bodies.join(" ").split_whitespace().map(str::to_owned).collect();
            assert_eq!(
                read,
                format!("first of all {long} last of all").split_whitespace().collect::<Vec<_>>()
            );
            let keys =
                stage.home.timeline(&swarm).into_iter().filter(|e| e.sender == EIR).filter_map(|e| e.txn);
            let keys: Vec<String> = keys.collect();
            assert_eq!(
                keys.iter().collect::<std::collections::BTreeSet<_>>().len(),
                keys.len(),
                "an id each"
            );
        });
    });
}

#[test]
fn kicked_while_she_thinks_her_answer_is_dropped_and_told() {
    on_both(|flavour| {
        let mut world = slow_world(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let direct = asked_directly(stage).await;
            stage.alice().kick(&direct, EIR);
            stage.pass(600_000).await;
            assert!(stage.home.bodies(&direct, EIR).is_empty());
            assert!(!is_joined(&stage.home, &direct, EIR), "she never comes back by herself");
            assert_eq!(stage.thoughts("eir"), 1, "it is no fault of hers");
            counts(
                &stage.told(),
                &[("was put out of", 1), ("answered in", 1), ("held", 0), ("begins session", 0)],
            );
            stage.alice().say(&swarm, "Eir, life goes on");
            stage.said(&swarm, EIR, 1).await;
        });
        assert_eq!(world.store().counts().outbox, 0);
    });
}

#[test]
fn kicked_with_words_in_the_outbox_they_are_dropped_and_told() {
    on_both(|flavour| {
        for pushed in [true, false] {
            let mut world = World::new(flavour);
            world.play(async |stage| {
                stage.swarm().await;
                let direct = stage.dm(&stage.alice(), EIR).await;
                stage.home.fail_when(1, Fault::Limited(Duration::from_secs(20)), sends_to(&direct));
                stage.alice().say(&direct, "a question");
                stage.calm().await;
                stage.home.set_silent(!pushed);
                stage.alice().ban(&direct, EIR);
                stage.pass(700_000).await;
                assert!(stage.home.bodies(&direct, EIR).is_empty());
                let told = stage.told();
                counts(&told, &[(&direct, 1)]);
                stage.home.set_silent(false);
            });
            assert_eq!(world.store().counts().outbox, 0);
        }
    });
}

#[test]
fn muted_or_upgraded_her_words_are_parked_and_told() {
    on_both(|flavour| {
        for upgraded in [true, false] {
            let mut world = slow_world(flavour);
            world.play(async |stage| {
                let swarm = stage.swarm().await;
                let direct = asked_directly(stage).await;
                if upgraded {
                    stage.alice().upgrade(&direct);
                } else {
                    stage.alice().set_muted(&direct, EIR, true);
                }
                stage.pass(2_000).await;
                assert!(stage.home.bodies(&direct, EIR).is_empty());
                assert!(is_joined(&stage.home, &direct, EIR));
                counts(&stage.told(), &[("does not let her speak (muted or upgraded)", 1)]);
                stage.alice().say(&swarm, "Eir, elsewhere");
                stage.said(&swarm, EIR, 1).await;
            });
            assert_eq!(world.store().counts().parked, 1);
        }
    });
}

#[test]
fn where_only_our_cache_was_stale_she_joins_and_sends_once_more() {
    on_both(|flavour| {
        let mut world = slow_world(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            let direct = asked_directly(stage).await;
            // As after a server lost her join: she is merely invited again, and no one says so.
            stage.home.set_silent(true);
            stage.alice().invite_directly(&direct, EIR);
            stage.said(&direct, EIR, 1).await;
            stage.home.lose_queue();
            stage.home.set_silent(false);
            stage.calm().await;
            counts(&stage.home.bodies(&direct, EIR), &[("a question", 1)]);
            assert!(is_joined(&stage.home, &direct, EIR));
        });
        assert_eq!(world.store().counts().parked, 0);
    });
}

#[test]
fn a_reaction_that_stands_already_is_done() {
    let mut world = World::new(Flavour::Synapse);
    let reply =
        json!({ "say": [{ "text": "yes" }], "react": [{ "message": "m1", "key": "👍" }] }).to_string();
    let ends = || Outcome::Ends(Ending::Answered { reply: reply.clone() });
    world.stumbles([ends(), ends()]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for n in 1..=2 {
            stage.alice().say(&swarm, "Eir, agreed?");
            stage.said(&swarm, EIR, n).await;
        }
        stage.calm().await;
        let reactions = stage.home.timeline(&swarm).into_iter().filter(|e| e.kind == "m.reaction").count();
        assert_eq!(reactions, 1);
        assert_eq!(stage.told(), Vec::<String>::new(), "nothing to bother operators with");
    });
    assert_eq!(world.store().counts().outbox, 0);
}

#[test]
fn a_storm_of_limits_and_faults_loses_and_doubles_nothing() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            for n in 0..12 {
                stage.home.fail_when(1, Fault::Limited(Duration::from_millis(700)), sends);
                stage.home.fail_when(1, Fault::CutAfter, sends);
                stage.home.fail_when(1, Fault::Answer(503, String::new()), sends);
                stage.alice().say(&swarm, &format!("Eir, word-{n}."));
                stage.pass(900).await;
            }
            stage.pass(120_000).await;
            let all = stage.home.bodies(&swarm, EIR).join("\n");
            let places: Vec<usize> = (0..12)
                .map(|n| {
                    let word = format!("word-{n}.");
                    assert_eq!(all.matches(&word).count(), 1, "{word} in:\n{all}");
                    all.find(&word).unwrap_or_default()
                })
                .collect();
            assert!(places.is_sorted(), "in order:\n{all}");
        });
    });
}
