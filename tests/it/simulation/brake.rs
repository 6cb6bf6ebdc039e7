//! The operator's brake, and an account that is refused.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::orders::{Lever, Order, carry_out};
use persona_bridge::conversation::{Millis, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour};

/// Pulls or releases the brake of the running bridge: what follows.
async fn brake(stage: &Stage, lever: Lever, whom: Option<&str>) -> String {
    let order = Order::Brake { lever, persona: whom.map(|id| PersonaId(id.into())) };
    let (status, answer) = stage.order(&order.to_json()).await;
    assert_eq!(status, 200, "{answer}");
    answer["follows"].as_str().unwrap().to_owned()
}

fn slow_world(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    world
}

#[test]
fn the_brake_ends_a_turn_in_flight_and_holds_across_restarts_until_it_is_released() {
    on_both(|flavour| {
        let mut world = slow_world(flavour);
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, first");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            let follows = brake(stage, Lever::Hold, None).await;
            assert_eq!(follows, "the brake holds everyone: nothing is asked or said until `brake release`");
            assert_eq!(stage.unready().await, [follows]);
            assert_eq!(stage.stats().await["braked"], "everyone");
            stage.alice().say(&swarm, "Eir and Brage, second");
            stage.pass(600_000).await;
            swarm
        });
        world.play(async |stage| {
            stage.pass(600_000).await;
            let shown = stage.unready().await;
            assert!(shown.iter().any(|reason| reason.contains("the brake holds everyone")), "{shown:?}");
            assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (1, 0), "nothing was asked");
            assert!(stage.home.bodies(&swarm, EIR).is_empty());
            assert_eq!(brake(stage, Lever::Release, None).await, "the brake holds nobody");
            stage.said(&swarm, EIR, 2).await;
            stage.said(&swarm, BRAGE, 1).await;
            stage.pass(60_000).await;
            counts(&stage.home.bodies(&swarm, EIR), &[("first", 1), ("second", 1)]);
            assert_eq!(stage.stats().await["braked"], json!(null));
        });
        let fed = world.fed("eir");
        assert_eq!(fed[0].words, fed[1].words, "the turn stayed pending: the same line again");
        assert_eq!(world.store().counts().held, 0);
    });
}

#[test]
fn the_brake_of_one_holds_nobody_else() {
    let mut world = slow_world(Flavour::Synapse);
    let order = Order::Brake { lever: Lever::Hold, persona: Some(PersonaId("eir".into())) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(carry_out(&world.store(), &order, Millis(0))).unwrap();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir and Brage, hello");
        stage.said(&swarm, BRAGE, 1).await;
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 0);
        brake(stage, Lever::Release, Some("eir")).await;
        stage.said(&swarm, EIR, 1).await;
    });
}

#[test]
fn what_was_said_already_waits_for_the_release_and_is_said_once() {
    let mut world = World::new(Flavour::Synapse);
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        let refused = Fault::Answer(502, String::new());
        stage.home.fail_when(1, refused, |seen| seen.method == "PUT" && seen.path.contains("/send/"));
        stage.alice().say(&swarm, "Eir, hello");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.pass(50).await;
        brake(stage, Lever::Hold, None).await;
        assert_eq!(stage.stats().await["outbox"], 1, "her answer is on its way");
        stage.pass(60_000).await;
        swarm
    });
    world.play(async |stage| {
        stage.pass(60_000).await;
        assert_eq!(stage.home.bodies(&swarm, EIR), [""; 0]);
        brake(stage, Lever::Release, None).await;
        stage.said(&swarm, EIR, 1).await;
        stage.pass(60_000).await;
        assert_eq!((stage.home.bodies(&swarm, EIR).len(), stage.thoughts("eir")), (1, 1));
    });
}

#[test]
fn a_brake_that_cannot_be_read_holds_everyone() {
    let mut world = World::new(Flavour::Synapse);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(world.store().spoil_brake()).unwrap();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir and Brage, hello");
        stage.pass(60_000).await;
        assert_eq!((stage.thoughts("eir"), stage.thoughts("brage")), (0, 0));
        brake(stage, Lever::Release, None).await;
        stage.said(&swarm, EIR, 1).await;
        stage.said(&swarm, BRAGE, 1).await;
    });
}

#[test]
fn a_refused_account_is_asked_again_at_an_operators_order() {
    let mut world = World::new(Flavour::Synapse);
    world
        .stumbles([Outcome::Ends(Ending::Refused { reason: "the API refused the credential (401)".into() })]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, hello");
        stage.pass(60_000).await;
        assert_eq!(stage.thoughts("eir"), 1);
        counts(&stage.unready().await, &[("eir is not asked any more", 1)]);
        let (status, answer) = stage.order(&Order::Release { of: None }.to_json()).await;
        assert_eq!(status, 200, "{answer}");
        stage.said(&swarm, EIR, 1).await;
        assert_eq!(stage.unready().await, Vec::<String>::new());
    });
}
