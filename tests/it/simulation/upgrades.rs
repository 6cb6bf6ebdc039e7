//! A room that is upgraded is followed once, with its lane, its register and its alias.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::conversation::Level;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, is_joined, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// Both have come to the room that takes the swarm's place, and left the old one.
async fn moved(stage: &Stage, old: &str, new: &str) {
    for who in [EIR, BRAGE] {
        stage.joins(new, who).await;
        stage.until("she leaves the old one", || !is_joined(&stage.home, old, who)).await;
    }
    stage.calm().await;
}

#[test]
fn an_upgraded_room_is_followed_once_with_its_lane_and_alias_and_told_so() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let (old, new) = world.play(async |stage| {
            stage.ask("first").await;
            let old = stage.swarm().await;
            let new = stage.alice().upgrade_to(&old, true);
            stage.alice().bury(&old, &new);
            moved(stage, &old, &new).await;
            stage.alice().say(&new, "Eir, second");
            stage.said(&new, EIR, 1).await;
            stage.alice().say(&new, "Eir, third");
            stage.said(&new, EIR, 2).await;
            stage.alice().bury(&old, &new);
            (old, new)
        });
        let words = world.words("eir");
        counts(
            std::slice::from_ref(&words),
            &[("takes the place of the room you were in", 1), ("you are not in", 0)],
        );
        assert_eq!(words.matches("# mail for you in register swarm").count(), 3, "{words}");
        assert!(words.contains("room \"#persona_swarm:hs.test\" takes the place"), "{words}");
        world.play(async |stage| {
            stage.pass(700_000).await;
            assert!(!is_joined(&stage.home, &old, EIR), "the alias still leads there, and she stays away");
            stage.alice().say(&new, "Eir, fourth");
            stage.said(&new, EIR, 3).await;
        });
        counts(&world.told(), &[("went on from", 2)]);
    });
}

#[test]
fn a_direct_room_goes_on_in_the_next_with_what_was_noted_there_once_she_is_let_in() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let next = world.play(async |stage| {
            stage.swarm().await;
            let dm = stage.dm(&stage.alice(), EIR).await;
            stage.alice().say(&dm, "remember that my cat is Tom");
            stage.said(&dm, EIR, 1).await;
            let next = stage.alice().upgrade(&dm);
            stage.pass(610_000).await;
            counts(&stage.told(), &[("does not let eir in", 1), ("went on from", 0)]);
            assert!(is_joined(&stage.home, &dm, EIR));
            stage.alice().invite(&next, EIR);
            stage.joins(&next, EIR).await;
            stage.until("she leaves the old one", || !is_joined(&stage.home, &dm, EIR)).await;
            stage.calm().await;
            stage.alice().say(&next, "again");
            stage.said(&next, EIR, 1).await;
            next
        });
        world.delete_minds();
        world.play(async |stage| {
            stage.alice().say(&next, "what do you remember?");
            assert!(stage.said(&next, EIR, 2).await[1].contains("my cat is Tom"));
        });
        let fed = world.fed("eir");
        let last = &fed.last().expect("she was fed").words;
        assert!(last.contains("# mail for you in a direct room"), "{last}");
    });
}

#[test]
fn a_room_that_does_not_say_so_too_is_not_followed() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(5);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let mallory = stage.home.user("mallory");
            let trap = mallory.create_public_room("trap");
            stage.alice().bury(&swarm, &trap);
            stage.pass(60_000).await;
            counts(&stage.told(), &[("nobody follows", 1)]);
            let other = mallory.replacement("!other", false, false);
            stage.alice().bury(&swarm, &other);
            stage.calm().await;
            mallory.invite(&other, EIR);
            stage.pass(60_000).await;
            for who in [EIR, BRAGE] {
                assert!(is_joined(&stage.home, &swarm, who));
                assert!(!is_joined(&stage.home, &trap, who) && !is_joined(&stage.home, &other, who));
            }
            counts(&stage.told(), &[("nobody follows", 2), ("went on from", 0)]);
        });
        counts(&[world.words("eir")], &[("# mail for you", 0)]);
    });
}

#[test]
fn an_encrypted_room_is_followed_and_nothing_is_said_there() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let next = stage.alice().replacement(&swarm, true, true);
            stage.alice().bury(&swarm, &next);
            moved(stage, &swarm, &next).await;
            stage.alice().say(&next, "Eir, hello");
            stage.pass(60_000).await;
            let said: Vec<String> =
                [EIR, BRAGE].iter().flat_map(|who| stage.home.bodies(&next, who)).collect();
            assert!(said.len() == 1 && said[0].contains("I cannot read encrypted rooms"), "{said:?}");
        });
    });
}

#[test]
fn what_was_asked_before_the_upgrade_is_answered_in_the_next_room() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(5), ..usual() });
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let dm = stage.dm(&stage.alice(), EIR).await;
            for room in [swarm, dm] {
                let before = stage.thoughts("eir");
                stage.alice().say(&room, "Eir, a question");
                stage.until("she thinks", || stage.thoughts("eir") > before).await;
                let next = stage.alice().upgrade_to(&room, true);
                stage.alice().say(&room, "Eir, one more");
                stage.said(&next, EIR, 2).await;
                assert!(stage.home.bodies(&room, EIR).is_empty());
            }
            counts(&stage.told(), &[("cannot speak any more", 0), ("does not let her speak", 0)]);
        });
    });
}

#[test]
fn a_stopped_room_stays_stopped_when_it_is_upgraded() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
        world.play(async |stage| {
            stage.ask("first").await;
            let old = stage.swarm().await;
            stage.alice().say(&old, "stop");
            stage.calm().await;
            let new = stage.alice().upgrade_to(&old, true);
            moved(stage, &old, &new).await;
            stage.alice().say(&new, "Eir, second");
            stage.pass(120_000).await;
            assert_eq!(stage.thoughts("eir"), 1, "nobody has let her go on");
            stage.alice().say(&new, "!persona go");
            stage.said(&new, EIR, 1).await;
        });
    });
}

#[test]
fn a_reminder_of_a_direct_room_is_told_in_the_one_that_takes_its_place() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, words| {
        let mut reply = json!({ "say": [], "react": [] });
        if words.contains("remind yourself") {
            reply["remind"] = json!([{ "in": "10m", "text": "the tea" }]);
        }
        if words.lines().any(|line| line.starts_with("reminder r")) {
            reply["say"] = json!([{ "text": "reminded" }]);
        }
        Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
    });
    world.play(async |stage| {
        stage.swarm().await;
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "remind yourself");
        stage.until("she is asked", || stage.thoughts("eir") == 1).await;
        stage.calm().await;
        let next = stage.alice().upgrade_to(&dm, true);
        stage.joins(&next, EIR).await;
        stage.until("she leaves the old one", || !is_joined(&stage.home, &dm, EIR)).await;
        stage.pass(600_000).await;
        assert_eq!(stage.home.bodies(&next, EIR), ["reminded"]);
        assert_eq!(stage.thoughts("eir"), 2);
    });
}

#[test]
fn a_room_that_is_upgraded_twice_is_followed_to_the_last() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let old = world.play(async |stage| {
            stage.ask("first").await;
            stage.swarm().await
        });
        let alice = world.home.user("alice");
        let middle = alice.upgrade_to(&old, true);
        let last = alice.upgrade_to(&middle, true);
        world.play(async |stage| {
            moved(stage, &old, &last).await;
            assert!(!is_joined(&stage.home, &middle, EIR) && !is_joined(&stage.home, &middle, BRAGE));
            stage.alice().say(&last, "Eir, second");
            stage.said(&last, EIR, 1).await;
        });
    });
}

#[test]
fn an_upgrade_while_the_bridge_is_away_is_followed_whenever_the_power_is_cut() {
    for cut in [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 100, 150] {
        let mut world = World::new(Flavour::Synapse);
        let old = world.play(async |stage| {
            stage.ask("first").await;
            stage.swarm().await
        });
        let new = world.home.user("alice").upgrade_to(&old, true);
        world.live(Duration::from_millis(cut));
        world.play(async |stage| {
            moved(stage, &old, &new).await;
            stage.alice().say(&new, "Eir, second");
            stage.said(&new, EIR, 1).await;
        });
        counts(&world.told(), &[("eir went on from", 1), ("brage went on from", 1)]);
    }
}
