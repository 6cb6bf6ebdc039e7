//! What fails in a pass waits alone, and no longer or shorter than it should.

use std::time::Duration;

use super::stage::{BRAGE, EIR, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{FakeHomeserver, Fault, Flavour};

/// How often the homeserver was asked so.
fn asked(home: &FakeHomeserver, what: &str) -> usize {
    home.requests().iter().filter(|request| request.ends_with(what)).count()
}

#[test]
fn a_limit_in_a_pass_waits_the_delay_it_gave() {
    for what in ["/joined_rooms", "/sync", "/messages"] {
        let mut world = World::new(Flavour::Synapse);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.pass(200_000).await;
            let limited = Fault::Limited(Duration::from_secs(200));
            stage.home.fail_when(2, limited, move |seen| seen.path.ends_with(what));
            stage.pass(120_000).await;
            let before = asked(&stage.home, what);
            stage.pass(170_000).await;
            assert_eq!(asked(&stage.home, what), before, "{what} is left alone");
            stage.alice().say(&swarm, "Eir, meanwhile");
            stage.said(&swarm, EIR, 1).await;
            stage.pass(60_000).await;
            assert!(asked(&stage.home, what) > before, "{what} is asked again");
        });
    }
}

#[test]
fn a_limit_on_a_receipt_waits_the_delay_it_gave() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let limited = Fault::Limited(Duration::from_secs(30));
        stage.home.fail_when(1, limited, |seen| seen.path.contains("/receipt/"));
        stage.alice().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 1).await;
        stage.pass(25_000).await;
        assert_eq!(stage.home.receipts(), []);
        stage.pass(10_000).await;
        assert_eq!(stage.home.receipts().len(), 1);
    });
}

#[test]
fn a_time_out_of_one_room_holds_back_nothing_that_is_pushed() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.pass(200_000).await;
            let path = format!("/rooms/{swarm}/messages");
            let begun = asked(&stage.home, &path);
            stage.home.fail_when(5, Fault::CutBefore, move |seen| seen.path.ends_with(&path));
            let path = format!("/rooms/{swarm}/messages");
            while asked(&stage.home, &path) < begun + 2 {
                stage.pass(100).await;
            }
            let before = stage.now();
            stage.alice().say(&swarm, "Eir, at once");
            stage.said(&swarm, EIR, 1).await;
            assert!(stage.now() - before < 1_000, "{} ms", stage.now() - before);
        });
    });
}

#[test]
fn a_room_that_times_out_is_heard_all_the_same_and_read_ever_more_seldom() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let room = world.play(async |stage| {
            stage.swarm().await;
            let room = stage.dm(&stage.bob(), BRAGE).await;
            stage.bob().say(&room, "hello");
            stage.said(&room, BRAGE, 1).await;
            stage.calm().await;
            room
        });
        let messages = format!("/rooms/{room}/messages");
        let path = messages.clone();
        world.home.fail_when(u32::MAX, Fault::CutBefore, move |seen| seen.path.ends_with(&path));
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, hello");
            stage.said(&swarm, EIR, 1).await;
            stage.pass(20_000).await;
            stage.bob().say(&room, "can you hear me?");
            stage.said(&room, BRAGE, 2).await;
            let before = asked(&stage.home, &messages);
            stage.pass(600_000).await;
            let tries = asked(&stage.home, &messages) - before;
            assert!((9..=14).contains(&tries), "{tries} tries in ten minutes");
            counts(&stage.told(), &[("cannot be read back", 1)]);
            stage.bob().say(&room, "still?");
            stage.said(&room, BRAGE, 3).await;
        });
    });
}
