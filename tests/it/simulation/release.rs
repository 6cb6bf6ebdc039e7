//! What was put aside goes again: by an operator's order, or by itself.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::{Order, carry_out};
use persona_bridge::conversation::{Millis, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour, Seen};

fn sends(seen: &Seen<'_>) -> bool {
    seen.method == "PUT" && seen.path.contains("/send/")
}

fn disk_full() -> Fault {
    Fault::Answer(500, r#"{"errcode":"M_UNKNOWN","error":"no space left"}"#.to_owned())
}

/// Gives the running bridge the order to release: what follows.
async fn release(stage: &Stage, whose: Option<&str>) -> String {
    let user = |id: &str| format!("@persona_{id}:hs.test").parse().unwrap();
    let order = Order::Release { of: whose.map(|id| (PersonaId(id.into()), user(id))) };
    let (status, answer) = stage.order(&order.to_json()).await;
    assert_eq!(status, 200, "{answer}");
    answer["follows"].as_str().unwrap().to_owned()
}

fn of_eir() -> Order {
    Order::Release { of: Some((PersonaId("eir".into()), EIR.parse().unwrap())) }
}

/// Whatever she is asked first is refused until it is held.
fn refusing(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    let refused = || Outcome::Ends(Ending::Final { reason: "the model refused".into() });
    world.stumbles((0..3).map(|_| refused()));
    world
}

#[test]
fn held_mail_is_asked_again_at_an_operators_order_and_answered_once() {
    on_both(|flavour| {
        let mut world = refusing(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, first");
            stage.pass(10_000).await;
            assert_eq!(stage.stats().await["held"], 1);
            stage.alice().say(&swarm, "Eir, second");
            stage.said(&swarm, EIR, 1).await;
            assert_eq!(
                release(stage, Some("brage")).await,
                "0 held messages are asked again, 0 parked says are sent again"
            );
            assert_eq!(
                release(stage, None).await,
                "1 held messages are asked again, 0 parked says are sent again"
            );
            stage.said(&swarm, EIR, 2).await;
            assert_eq!(
                release(stage, None).await,
                "0 held messages are asked again, 0 parked says are sent again"
            );
            stage.calm().await;
            counts(&stage.home.bodies(&swarm, EIR), &[("first", 1), ("second", 1)]);
        });
        assert_eq!(world.store().counts().held, 0);
    });
}

#[test]
fn what_is_released_while_no_bridge_runs_is_asked_at_the_next_start() {
    let mut world = refusing(Flavour::Synapse);
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, first");
        stage.pass(10_000).await;
        swarm
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let done = runtime.block_on(carry_out(&world.store(), &of_eir(), Millis(0))).unwrap();
    assert_eq!(done, "1 held messages are asked again, 0 parked says are sent again");
    world.play(async |stage| drop(stage.said(&swarm, EIR, 1).await));
    counts(&world.home.bodies(&swarm, EIR), &[("first", 1)]);
}

#[test]
fn a_parked_say_is_sent_at_an_operators_order() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.swarm().await;
            let direct = stage.dm(&stage.alice(), EIR).await;
            stage.alice().set_muted(&direct, EIR, true);
            stage.alice().say(&direct, "a question");
            stage.pass(2_000).await;
            assert_eq!(stage.stats().await["parked"], 1);
            stage.alice().set_muted(&direct, EIR, false);
            stage.pass(3_600_000).await;
            assert!(
                stage.home.bodies(&direct, EIR).is_empty(),
                "nobody but an operator knows that she may speak"
            );
            assert_eq!(
                release(stage, Some("eir")).await,
                "0 held messages are asked again, 1 parked says are sent again"
            );
            stage.said(&direct, EIR, 1).await;
            stage.calm().await;
            counts(&stage.home.bodies(&direct, EIR), &[("a question", 1)]);
        });
        assert_eq!(world.store().counts().outbox, 0);
    });
}

/// The homeserver reads and cannot write for a while, and she answers in two rooms meanwhile.
async fn outage_of_sending(stage: &Stage) -> (String, String) {
    let swarm = stage.swarm().await;
    let direct = stage.dm(&stage.bob(), BRAGE).await;
    stage.home.fail_when(u32::MAX, disk_full(), sends);
    stage.alice().say(&swarm, "Eir, one");
    stage.alice().say(&swarm, "Eir, two");
    stage.bob().say(&direct, "a question");
    stage.pass(2_400_000).await;
    stage.alice().say(&swarm, "Eir, three");
    stage.pass(1_200_000).await;
    assert!(stage.stats().await["parked"].as_u64() >= Some(3), "{}", stage.stats().await);
    (swarm, direct)
}

#[test]
fn what_a_full_disk_of_the_homeserver_parked_is_said_by_itself_once_it_has_room() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let (swarm, direct) = outage_of_sending(stage).await;
            stage.home.clear_faults();
            stage.pass(660_000).await;
            counts(&stage.home.bodies(&swarm, EIR), &[("one", 1), ("two", 1), ("three", 1)]);
            counts(&stage.home.bodies(&direct, BRAGE), &[("a question", 1)]);
        });
        assert_eq!(world.store().counts().outbox, 0);
    });
}

#[test]
fn what_was_parked_so_is_said_at_the_next_start_too() {
    let mut world = World::new(Flavour::Synapse);
    let (swarm, direct) = world.play(outage_of_sending);
    world.home.clear_faults();
    world.play(async |stage| stage.pass(60_000).await);
    counts(&world.home.bodies(&swarm, EIR), &[("one", 1), ("two", 1), ("three", 1)]);
    counts(&world.home.bodies(&direct, BRAGE), &[("a question", 1)]);
    assert_eq!(world.store().counts().outbox, 0);
}

#[test]
fn a_send_that_succeeds_elsewhere_brings_the_next_try_near() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let (swarm, direct) = outage_of_sending(stage).await;
        let tried =
            |stage: &Stage| stage.home.requests().iter().filter(|seen| seen.contains("/send/")).count();
        let before = tried(stage);
        for _ in 0..660 {
            if tried(stage) == before {
                stage.pass(1_000).await;
            }
        }
        stage.pass(5_000).await;
        stage.home.clear_faults();
        let other = stage.dm(&stage.alice(), BRAGE).await;
        stage.alice().say(&other, "elsewhere");
        stage.said(&other, BRAGE, 1).await;
        stage.pass(61_000).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("one", 1), ("two", 1), ("three", 1)]);
        counts(&stage.home.bodies(&direct, BRAGE), &[("a question", 1)]);
    });
}

#[test]
fn a_room_that_the_homeserver_never_takes_is_tried_now_and_then_and_told_once() {
    let mut world = World::new(Flavour::Synapse);
    // An answer every second is more than a room bears as shipped.
    world.config.among.room = None;
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let direct = stage.dm(&stage.bob(), EIR).await;
        let path = format!("/rooms/{swarm}/send/");
        stage.home.fail_when(u32::MAX, disk_full(), move |seen| seen.path.contains(&path));
        stage.alice().say(&swarm, "Eir, one");
        stage.pass(1_200_000).await;
        let tries = |stage: &Stage| {
            let path = format!("/rooms/{swarm}/send/");
            stage.home.requests().iter().filter(|seen| seen.contains(&path)).count()
        };
        let before = tries(stage);
        for n in 0..360 {
            stage.bob().say(&direct, &format!("still-{n}."));
            stage.pass(10_000).await;
        }
        let (hour, told) = (tries(stage) - before, stage.told());
        assert!((30..=62).contains(&hour), "{hour} tries in an hour of talk elsewhere");
        counts(&told, &[("could not say something", 1)]);
        counts(&stage.home.bodies(&direct, EIR), &[("still-359.", 1)]);
    });
    assert_eq!(world.store().counts().parked, 1);
}

/// She has said something that the homeserver took; nothing tells so, and it fails whenever it is asked, until it parks.
async fn taken_and_parked(stage: &Stage) -> String {
    let swarm = stage.swarm().await;
    stage.home.fail_when(1, Fault::CutAfterForgetting, sends);
    let messages = format!("/rooms/{swarm}/messages");
    let looks = move |seen: &Seen<'_>| seen.path.contains(&messages) || seen.path.contains("/context/");
    stage.home.fail_when(u32::MAX, disk_full(), looks);
    stage.alice().say(&swarm, "Eir, one");
    stage.until("she thinks", || stage.thoughts("eir") > 0).await;
    stage.home.set_silent(true);
    stage.until("it was taken", || !stage.home.bodies(&swarm, EIR).is_empty()).await;
    stage.pass(1_200_000).await;
    assert_eq!(stage.stats().await["parked"], 1);
    stage.home.lose_idempotency();
    stage.home.clear_faults();
    swarm
}

#[test]
fn a_parked_say_that_had_been_taken_is_found_and_not_said_twice() {
    on_both(|flavour| {
        for ordered in [false, true] {
            let mut world = World::new(flavour);
            world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_millis(200), ..usual() });
            world.play(async |stage| {
                let swarm = taken_and_parked(stage).await;
                if ordered {
                    release(stage, None).await;
                    stage.pass(5_000).await;
                } else {
                    stage.pass(660_000).await;
                }
                assert_eq!(stage.stats().await["outbox"], 0);
                counts(&stage.home.bodies(&swarm, EIR), &[("one", 1)]);
            });
        }
    });
}
