//! What is missed is read back; what is away is waited for.

use std::time::Duration;

use serde_json::json;

use super::stage::{BRAGE, EIR, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{Fault, Flavour};

#[test]
fn transaction_ids_that_fall_make_a_pass() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let direct = stage.dm(&stage.bob(), EIR).await;
        stage.alice().say(&swarm, "hello");
        stage.calm().await;
        stage.home.set_silent(true);
        stage.bob().say(&direct, "lost in the restart");
        stage.home.restart();
        stage.home.set_silent(false);
        stage.alice().say(&swarm, "hello again");
        stage.said(&direct, EIR, 1).await;
        assert!(stage.now() < 1_800_000_000_000 + 60_000, "long before the next pass is due");
    });
    counts(&[world.words("eir")], &[("lost in the restart", 1), ("late by", 0)]);
}

#[test]
fn a_restart_loses_three_and_a_fourth_arrives_and_all_are_heard_in_order() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.calm().await;
        stage.home.set_silent(true);
        for word in ["alpha", "beta", "gamma"] {
            stage.alice().say(&swarm, &format!("Eir, {word}"));
        }
        stage.home.restart();
        stage.home.set_silent(false);
        stage.alice().say(&swarm, "Eir, delta");
        stage.calm().await;
        let answers = stage.home.bodies(&swarm, EIR);
        counts(&answers, &[("alpha", 1), ("beta", 1), ("gamma", 1), ("delta", 1)]);
        let heard = stage.words("eir");
        let places: Vec<_> = ["alpha", "beta", "gamma"].iter().map(|word| heard.find(word)).collect();
        assert!(places.is_sorted(), "{heard}");
    });
}

#[test]
fn reading_back_alone_delivers() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(5);
        world.home.set_silent(true);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, one");
            stage.said(&swarm, EIR, 1).await;
            let direct = stage.alice().create_dm(BRAGE);
            stage.alice().say(&direct, "two");
            stage.said(&direct, BRAGE, 1).await;
            for n in 0..250 {
                stage.bob().say(&swarm, &format!("chatter-{n}."));
            }
            stage.alice().say(&swarm, "Eir, three");
            stage.until("she answers", || stage.home.bodies(&swarm, EIR).join(" ").contains("three")).await;
            stage.pass(20_000).await;
            counts(&stage.home.bodies(&swarm, EIR), &[("one", 1), ("three", 1)]);
        });
        let words = world.words("eir");
        for n in 0..250 {
            counts(std::slice::from_ref(&words), &[(&format!("chatter-{n}."), 1)]);
        }
    });
}

#[test]
fn a_quiet_dm_whose_only_message_was_lost_is_answered_within_one_pass() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            let direct = stage.dm(&stage.bob(), EIR).await;
            stage.home.set_silent(true);
            stage.bob().say(&direct, "anybody there?");
            stage.home.lose_queue();
            let begun = stage.now();
            while stage.home.bodies(&direct, EIR).is_empty() {
                stage.pass(1_000).await;
                assert!(stage.now() - begun < 310_000, "within one pass");
            }
        });
        let words = world.words("eir");
        assert!(words.contains("late by") && words.contains("anybody there?"), "{words}");
    });
}

#[test]
fn a_homeserver_that_is_away_for_an_hour_costs_nothing() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let direct = stage.dm(&stage.bob(), EIR).await;
            for n in 0..3 {
                stage.alice().say(&swarm, &format!("Eir, before-{n}."));
            }
            stage.pass(45).await;
            stage.home.set_down(true);
            for n in 0..3 {
                stage.alice().say(&swarm, &format!("Eir, during-{n}."));
                stage.bob().say(&direct, &format!("direct-{n}."));
                stage.pass(1_200_000).await;
            }
            let unready = stage.unready().await;
            assert!(unready.iter().any(|reason| reason.contains("cannot be reached")), "{unready:?}");
            stage.home.set_down(false);
            stage.pass(700_000).await;
            assert_eq!(stage.unready().await, Vec::<String>::new());
            for (room, stem) in [(&swarm, "before"), (&swarm, "during"), (&direct, "direct")] {
                let all = stage.home.bodies(room, EIR).join("\n");
                let words: Vec<String> = (0..3).map(|n| format!("{stem}-{n}.")).collect();
                for word in &words {
                    counts(std::slice::from_ref(&all), &[(word, 1)]);
                }
                assert!(words.iter().map(|word| all.find(word)).is_sorted(), "in order: {all}");
            }
        });
        assert_eq!(world.store().counts().outbox, 0);
    });
}

#[test]
fn what_waits_is_sent_as_soon_as_the_homeserver_answers_again() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, before");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            stage.home.set_down(true);
            stage.pass(1_230_000).await;
            stage.home.set_down(false);
            let answered = stage.home.requests().len();
            stage.until("it answers a call", || stage.home.requests().len() > answered).await;
            stage.pass(3_000).await;
            assert_eq!(stage.home.bodies(&swarm, EIR).len(), 1);
        });
    });
}

#[test]
fn a_bridge_that_starts_before_its_homeserver_waits_for_it() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.home.set_down(true);
        world.play(async |stage| {
            stage.pass(300_000).await;
            let unready = stage.unready().await;
            assert!(unready.iter().any(|reason| reason.contains("does not answer")), "{unready:?}");
            stage.home.set_down(false);
            stage.pass(70_000).await;
            let swarm = stage.swarm().await;
            assert_eq!(stage.unready().await, Vec::<String>::new());
            stage.alice().say(&swarm, "Eir, hello");
            stage.said(&swarm, EIR, 1).await;
        });
    });
}

#[test]
fn a_refused_token_stops_the_start_with_the_remedy() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let unknown = r#"{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}"#;
        world.home.fail_next(u32::MAX, Fault::Answer(401, unknown.to_owned()));
        let error = world.refuses();
        assert!(error.to_string().contains("copy that file, restart the homeserver"), "{error}");
    });
}

#[test]
fn a_full_disk_takes_nothing_and_resumes_when_there_is_room() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(1);
        let swarm = world.play(async |stage| stage.swarm().await);
        world.min_free = u64::MAX;
        world.play(async |stage| {
            stage.swarm().await;
            assert_eq!(stage.push("900", &json!({ "events": [] })).await, 503);
            stage.alice().say(&swarm, "Eir, is there room?");
            stage.pass(10_000).await;
            let unready = stage.unready().await;
            assert!(unready.iter().any(|reason| reason.contains("free some space")), "{unready:?}");
            assert_eq!(stage.thoughts("eir"), 0, "reading back takes nothing either");
        });
        world.min_free = 0;
        world.play(async |stage| {
            stage.swarm().await;
            stage.said(&swarm, EIR, 1).await;
            stage.calm().await;
            assert_eq!(stage.unready().await, Vec::<String>::new());
            counts(&stage.home.bodies(&swarm, EIR), &[("is there room?", 1)]);
        });
    });
}

#[test]
fn a_mark_that_the_server_does_not_know_begins_at_the_newest_and_is_told() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, before");
            stage.said(&swarm, EIR, 1).await;
            stage.calm().await;
            swarm
        });
        let missing = r#"{"errcode":"M_NOT_FOUND","error":"Event not found."}"#;
        world.home.fail_when(u32::MAX, Fault::Answer(404, missing.to_owned()), |seen| {
            seen.path.contains("/context/")
        });
        world.home.user("alice").say(&swarm, "Eir, in the gap");
        world.home.lose_queue();
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
            counts(&stage.told(), &[("reading begins at the newest", 1)]);
            stage.alice().say(&swarm, "Eir, after");
            stage.said(&swarm, EIR, 2).await;
        });
        counts(&world.home.bodies(&swarm, EIR), &[("before", 1), ("in the gap", 0), ("after", 1)]);
    });
}

#[test]
fn a_mark_that_one_persona_is_not_shown_is_read_on_from_through_another() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, before");
            stage.said(&swarm, EIR, 1).await;
            stage.calm().await;
            stage.home.set_silent(true);
            stage.alice().say(&swarm, "Eir, in the gap");
            stage.home.lose_queue();
            let hidden =
                r#"{"errcode":"M_FORBIDDEN","error":"You don't have permission to access that event."}"#;
            stage
                .home
                .fail_when(1, Fault::Answer(403, hidden.to_owned()), |seen| seen.path.contains("/context/"));
            stage.pass(310_000).await;
            counts(&stage.home.bodies(&swarm, EIR), &[("in the gap", 1)]);
            assert!(!stage.told().join(" ").contains("reading begins at the newest"));
        });
    });
}

#[test]
fn a_ping_that_fails_says_so_until_it_succeeds() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        stage.swarm().await;
        let bad = r#"{"errcode":"M_CONNECTION_FAILED","error":"Failed to connect"}"#;
        stage
            .home
            .fail_when(u32::MAX, Fault::Answer(502, bad.to_owned()), |seen| seen.path.ends_with("/ping"));
        stage.pass(130_000).await;
        let unready = stage.unready().await;
        assert!(unready.iter().any(|reason| reason.contains("does not reach us")), "{unready:?}");
        stage.home.clear_faults();
        stage.pass(130_000).await;
        assert_eq!(stage.unready().await, Vec::<String>::new());
    });
}

#[test]
fn a_server_without_a_retry_timer_is_nudged() {
    let mut world = World::new(Flavour::Conduit);
    let swarm = world.play(async |stage| stage.swarm().await);
    // Away when it wants to deliver: it would try again only when something else happens.
    world.home.user("alice").say(&swarm, "Eir, while you were away");
    world.play(async |stage| {
        stage.swarm().await;
        stage.said(&swarm, EIR, 1).await;
        stage.until("its queue is empty", || stage.home.waiting() == 0).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("while you were away", 1)]);
    });
}

#[test]
fn what_was_lost_while_the_bridge_was_away_is_heard_before_what_comes_now() {
    let mut world = World::new(Flavour::Synapse);
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 1).await;
        stage.calm().await;
        swarm
    });
    let room = swarm.clone();
    world.deed(world.elapsed(), move |home| {
        home.set_silent(true);
        home.user("alice").say(&room, "Eir, first");
        home.restart();
        home.set_silent(false);
    });
    world.deed(world.elapsed() + 3, move |home| drop(home.user("alice").say(&swarm, "Eir, second")));
    let answers = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.calm().await;
        stage.home.bodies(&swarm, EIR).join(" ")
    });
    counts(std::slice::from_ref(&answers), &[("Eir, first", 1), ("Eir, second", 1)]);
    assert!(answers.find("first") < answers.find("second"), "{answers}");
}

#[test]
fn a_room_that_cannot_be_read_back_is_heard_by_transactions() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.calm().await;
            swarm
        });
        world
            .home
            .fail_when(u32::MAX, Fault::Answer(500, String::new()), |seen| seen.path.ends_with("/messages"));
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
            stage.alice().say(&swarm, "Eir, can you hear me?");
            stage.said(&swarm, EIR, 1).await;
        });
    });
}
