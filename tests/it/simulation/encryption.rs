//! What is not done in encrypted rooms, and in those that may be.

use std::time::Duration;

use serde_json::json;

use super::stage::{EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{Fault, Flavour};

#[test]
fn an_encrypted_dm_gets_one_plain_notice_ever_and_nothing_else() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let room = world.play(async |stage| {
            stage.swarm().await;
            let room = stage.alice().create_encrypted_dm(EIR);
            stage.joins(&room, EIR).await;
            stage.said(&room, EIR, 1).await;
            room
        });
        for _ in 0..2 {
            world.home.lose_idempotency();
            world.play(async |stage| {
                stage.swarm().await;
                let content = json!({ "algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x" });
                stage.alice().say_content(&room, "m.room.encrypted", content);
                stage.alice().say(&room, "a plain word in an encrypted room");
                stage.alice().encrypt(&room);
                stage.calm().await;
            });
        }
        let bodies = world.home.bodies(&room, EIR);
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        assert!(bodies[0].contains("encrypted") && bodies[0].contains(EIR), "{bodies:?}");
        let notice =
            world.home.timeline(&room).into_iter().find(|e| e.sender == EIR && e.kind == "m.room.message");
        assert_eq!(notice.expect("it was sent").content["msgtype"], "m.notice");
        assert_eq!(world.fed("eir"), []);
        assert!(world.home.typing().iter().all(|(at, ..)| *at != room));
        assert!(world.home.receipts().iter().all(|(at, ..)| *at != room));
    });
}

#[test]
fn encryption_that_comes_later_ends_all_but_the_notice() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.script = std::sync::Arc::new(|_, _| persona_bridge::mind::scripted::Scripted {
            thinking: Duration::from_millis(200),
            ..super::world::usual()
        });
        let room = world.play(async |stage| {
            stage.swarm().await;
            let room = stage.dm(&stage.alice(), EIR).await;
            stage.alice().say(&room, "first");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            stage.pass(20).await;
            stage.alice().encrypt(&room);
            stage.pass(20).await;
            stage.alice().say(&room, "second");
            stage.pass(2_000).await;
            room
        });
        let bodies = world.home.bodies(&room, EIR);
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        assert!(bodies[0].contains("encrypted"), "{bodies:?}");
        assert_eq!(world.fed("eir").len(), 1, "her session is not bothered with a reply that has no place");
        let shown: Vec<bool> =
            world.home.typing().into_iter().filter(|(at, ..)| *at == room).map(|t| t.2).collect();
        assert_eq!(shown.last(), Some(&false), "typing ends: {shown:?}");
    });
}

#[test]
fn mail_that_waits_when_encryption_comes_is_answered_nowhere_in_that_room() {
    let mut world = World::new(Flavour::Synapse);
    world.config.settle.quiet = Duration::from_millis(300);
    world.config.settle.cap = Duration::from_millis(900);
    let room = world.play(async |stage| {
        stage.swarm().await;
        let room = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&room, "first");
        stage.pass(50).await;
        stage.alice().encrypt(&room);
        stage.pass(3_000).await;
        room
    });
    let bodies = world.home.bodies(&room, EIR);
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert!(bodies[0].contains("encrypted"), "{bodies:?}");
    assert!(world.home.typing().iter().all(|(at, ..)| *at != room), "{:?}", world.home.typing());
    assert!(world.home.receipts().iter().all(|(at, ..)| *at != room), "{:?}", world.home.receipts());
}

/// Nothing of hers but the notice was ever sent to the room, and nothing was shown there.
fn only_the_notice(world: &World, room: &str) {
    let bodies = world.home.bodies(room, EIR);
    assert!(bodies.len() == 1 && bodies[0].contains("encrypted"), "{bodies:?}");
}

/// An answer to Alice waits in the outbox.
async fn answer_waits(stage: &Stage) -> String {
    stage.swarm().await;
    let room = stage.dm(&stage.alice(), EIR).await;
    let limited = Fault::Limited(Duration::from_secs(3_600));
    stage.home.fail_when(1, limited, |seen| seen.path.contains("/send/"));
    stage.alice().say(&room, "a secret");
    stage.until("she was asked", || stage.thoughts("eir") == 1).await;
    stage.calm().await;
    room
}

#[test]
fn encryption_that_came_while_the_bridge_was_away_is_asked_for_before_anything_is_sent() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let room = world.play(answer_waits);
        world.home.user("alice").encrypt(&room);
        world.home.lose_queue();
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
            counts(&stage.told(), &[("the room is encrypted now", 1)]);
        });
        only_the_notice(&world, &room);
    });
}

#[test]
fn encryption_that_came_while_the_homeserver_was_away_is_asked_for_too() {
    let mut world = World::new(Flavour::Synapse);
    let room = world.play(async |stage| {
        let swarm = stage.swarm().await;
        let room = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().say(&room, "a secret");
        stage.until("she was asked", || stage.thoughts("eir") == 2).await;
        stage.home.set_down(true);
        stage.pass(5_000).await;
        stage.alice().encrypt(&room);
        stage.home.lose_queue();
        stage.home.set_down(false);
        stage.pass(70_000).await;
        room
    });
    only_the_notice(&world, &room);
}

#[test]
fn nothing_is_sent_to_a_room_before_it_is_known_whether_it_is_encrypted() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let broken = Fault::Answer(500, String::new());
        world.home.fail_when(u32::MAX, broken, |seen| seen.path.contains("/state/m.room.encryption"));
        world.play(async |stage| {
            stage.swarm().await;
            let room = stage.dm(&stage.alice(), EIR).await;
            stage.alice().say(&room, "are you there?");
            stage.until("she was asked", || stage.thoughts("eir") == 1).await;
            stage.pass(1_200_000).await;
            assert_eq!(stage.home.bodies(&room, EIR), Vec::<String>::new());
            assert!(stage.home.typing().iter().all(|(_, _, on)| !on), "{:?}", stage.home.typing());
            assert_eq!(stage.home.receipts(), []);
            stage.home.clear_faults();
            stage.said(&room, EIR, 1).await;
            stage.alice().say(&room, "good");
            stage.said(&room, EIR, 2).await;
            assert!(stage.home.typing().iter().any(|(_, _, on)| *on));
            stage.pass(61_000).await;
        });
        assert_eq!(world.store().counts().outbox, 0, "nothing is parked");
    });
}
