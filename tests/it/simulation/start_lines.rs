//! Where each Persona's hearing begins in a room, however its events come.

use std::time::Duration;

use persona_bridge::conversation::RegisterName;
use serde_json::{Value, json};

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{Fault, Flavour};

/// A world in which any room is heard that somebody invites a Persona to.
fn world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.default_register = Some(RegisterName("swarm".into()));
    world
}

/// A room of Alice's in which Brage sits and is heard.
async fn room_of_brage(stage: &Stage) -> String {
    stage.swarm().await;
    let room = stage.alice().create_room("both");
    stage.alice().invite(&room, BRAGE);
    stage.joins(&room, BRAGE).await;
    stage.alice().say(&room, "Brage, hello");
    stage.said(&room, BRAGE, 1).await;
    room
}

/// An event of a room as a transaction carries it.
fn wire(stage: &Stage, room: &str, id: &str) -> Value {
    let event = stage.home.timeline(room).into_iter().find(|event| event.id == id).expect("it was said");
    json!({
        "event_id": event.id, "room_id": event.room, "sender": event.sender, "type": event.kind,
        "origin_server_ts": event.at, "content": event.content,
    })
}

#[test]
fn a_second_persona_hears_nothing_from_before_her_invite() {
    for pushed in [false, true] {
        on_both(|flavour| {
            let mut world = world(flavour);
            world.play(async |stage| {
                let room = room_of_brage(stage).await;
                stage.home.set_silent(true);
                stage.alice().say(&room, "Eir and Brage, long-ago");
                stage.pass(10).await;
                if pushed {
                    stage.home.lose_queue();
                    stage.home.set_silent(false);
                }
                stage.alice().invite(&room, EIR);
                stage.alice().say(&room, "Eir and Brage, from-now-on");
                if !pushed {
                    stage.home.lose_queue();
                    stage.home.set_silent(false);
                }
                stage.pass(310_000).await;
                stage.said(&room, EIR, 1).await;
                stage.calm().await;
                counts(&[stage.words("brage")], &[("long-ago", 1), ("from-now-on", 1)]);
                let heard = stage.words("eir");
                let mail = heard.lines().filter(|line| !line.starts_with("earlier ")).collect::<String>();
                counts(&[mail], &[("long-ago", 0), ("from-now-on", 1)]);
            });
        });
    }
}

#[test]
fn a_message_from_before_her_join_that_is_pushed_late_is_not_mail() {
    on_both(|flavour| {
        let mut world = world(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            let room = stage.alice().create_room("late");
            let old = stage.alice().say(&room, "Eir, long-ago");
            stage.pass(10).await;
            stage.alice().invite(&room, EIR);
            stage.joins(&room, EIR).await;
            stage.calm().await;
            let body = json!({ "events": [wire(stage, &room, &old)] });
            assert_eq!(stage.push("900", &body).await, 200);
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), 0, "{flavour:?}: {}", stage.words("eir"));
            stage.alice().say(&room, "Eir, now");
            stage.said(&room, EIR, 1).await;
        });
    });
}

#[test]
fn a_message_that_is_pushed_before_her_lost_invite_is_found_is_hers_if_it_is_newer() {
    on_both(|flavour| {
        let mut world = world(flavour);
        world.play(async |stage| {
            let room = room_of_brage(stage).await;
            stage.home.set_silent(true);
            stage.alice().invite(&room, EIR);
            stage.pass(10).await;
            stage.home.lose_queue();
            stage.home.set_silent(false);
            stage.alice().say(&room, "Eir and Brage, hear me");
            stage.pass(310_000).await;
            stage.calm().await;
            counts(&[stage.words("brage")], &[("hear me", 1)]);
        });
    });
}

#[test]
fn reading_past_an_invite_asks_for_it_first() {
    on_both(|flavour| {
        let mut world = world(flavour);
        world.config.reconcile = Duration::from_secs(5);
        world.play(async |stage| {
            let room = room_of_brage(stage).await;
            stage.home.set_silent(true);
            stage.alice().invite(&room, EIR);
            stage.alice().say(&room, "Eir, at once");
            // The pass cannot ask for invites, but it reads the room.
            let failing = if flavour == Flavour::Synapse { 1 } else { 2 };
            let broken = Fault::Answer(500, String::new());
            stage.home.fail_when(failing, broken, |seen| seen.path.ends_with("/sync"));
            stage.said(&room, EIR, 1).await;
            counts(&[stage.words("eir")], &[("at once", 1)]);
        });
    });
}

#[test]
fn who_was_put_out_and_invited_again_while_nothing_came_hears_only_her_own_stays() {
    on_both(|flavour| {
        let mut world = world(flavour);
        let room = world.play(async |stage| {
            let room = room_of_brage(stage).await;
            stage.alice().invite(&room, EIR);
            stage.joins(&room, EIR).await;
            stage.calm().await;
            room
        });
        let alice = world.home.user("alice");
        world.home.set_silent(true);
        alice.say(&room, "Eir, still-in");
        alice.kick(&room, EIR);
        alice.say(&room, "Eir, meanwhile-out");
        alice.invite(&room, EIR);
        alice.say(&room, "Eir, in-again");
        world.home.lose_queue();
        world.play(async |stage| {
            stage.swarm().await;
            stage.home.set_silent(false);
            stage.until("she hears", || stage.words("eir").contains("in-again")).await;
            stage.calm().await;
            counts(&[stage.words("eir")], &[("still-in", 1), ("meanwhile-out", 0), ("in-again", 1)]);
        });
    });
}
