//! Who was put out of a room comes back only by invite.

use super::stage::{BRAGE, EIR, Stage, counts, is_joined, on_both, swarm};
use super::world::World;
use crate::fake::homeserver::Membership;

/// Waits for a start after which Eir is not in the swarm, and lets passes go by.
async fn stays_out(stage: &Stage) -> String {
    let room = swarm(&stage.home).expect("it was made in the life before");
    stage.joins(&room, BRAGE).await;
    stage
        .until("the bridge is ready", || stage.home.requests().iter().any(|r| r.contains("/joined_rooms")))
        .await;
    stage.pass(310_000).await;
    assert!(!is_joined(&stage.home, &room, EIR), "she came back by herself");
    room
}

/// An invite brings her back, and she hears again.
async fn comes_back(stage: &Stage, room: &str) {
    if stage.home.membership(room, EIR) == Some(Membership::Ban) {
        stage.alice().kick(room, EIR);
    }
    stage.alice().invite(room, EIR);
    stage.joins(room, EIR).await;
    stage.calm().await;
    stage.alice().say(room, "Eir, welcome back");
    stage.said(room, EIR, 1).await;
}

#[test]
fn kicked_from_a_configured_room_she_stays_out_until_she_is_invited() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let room = stage.swarm().await;
            stage.alice().kick(&room, EIR);
            stage.calm().await;
            counts(&stage.told(), &[("comes back only by invite", 1)]);
        });
        for _ in 0..2 {
            world.play(async |stage| drop(stays_out(stage).await));
        }
        world.play(async |stage| {
            let room = stays_out(stage).await;
            comes_back(stage, &room).await;
        });
        world.play(async |stage| {
            let room = stage.swarm().await;
            stage.alice().say(&room, "Eir, still here?");
            stage.said(&room, EIR, 2).await;
        });
    });
}

#[test]
fn banned_or_kicked_while_the_bridge_is_away_she_stays_out_too() {
    for ban in [true, false] {
        on_both(|flavour| {
            let mut world = World::new(flavour);
            let room = world.play(async |stage| stage.swarm().await);
            let alice = world.home.user("alice");
            if ban {
                alice.ban(&room, EIR)
            } else {
                alice.kick(&room, EIR)
            };
            world.home.lose_queue();
            for _ in 0..2 {
                world.play(async |stage| {
                    stays_out(stage).await;
                    counts(&stage.told(), &[("comes back only by invite", 1)]);
                });
            }
            world.play(async |stage| {
                let room = stays_out(stage).await;
                comes_back(stage, &room).await;
            });
        });
    }
}

#[test]
fn a_new_store_or_a_new_room_behind_the_alias_is_entered_as_before() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let room = world.play(async |stage| stage.swarm().await);
        world.home.user("alice").kick(&room, EIR);
        world.delete_store();
        world.play(async |stage| assert_eq!(stage.swarm().await, room));
        world.home.user("alice").kick(&room, EIR);
        world.home.forget_alias("#persona_swarm:hs.test");
        world.play(async |stage| assert_ne!(stage.swarm().await, room));
    });
}
