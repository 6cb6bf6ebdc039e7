//! What becomes of a Persona's session: kept, or followed by the next generation, and why.

use persona_bridge::bridge::orders::{Order, carry_out};
use persona_bridge::conversation::PersonaId;
use persona_bridge::persona::session::care::Word;
use serde_json::json;

use super::stage::{EIR, Stage, counts};
use super::world::World;
use crate::fake::homeserver::Flavour;

/// One more message to Eir in the swarm, answered.
async fn talk(stage: &Stage, words: &str) {
    let swarm = stage.swarm().await;
    let before = stage.home.bodies(&swarm, EIR).len();
    stage.alice().say(&swarm, &format!("Eir, {words}"));
    stage.said(&swarm, EIR, before + 1).await;
    stage.calm().await;
}

#[test]
fn an_operators_refresh_begins_the_next_session_with_the_next_mail_and_once() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        talk(stage, "one").await;
        let (status, answer) = stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        assert_eq!((status, &answer["follows"]), (200, &json!("the next mail begins session 2 of eir")));
        stage.calm().await;
        counts(&stage.told(), &[("begins session", 0)]);
        talk(stage, "two").await;
        counts(&stage.told(), &[("Eir begins session 2: operator", 1)]);
        talk(stage, "three").await;
        counts(&stage.told(), &[("begins session", 1)]);
        let (status, answer) = stage.order(&json!({ "order": "refresh", "persona": "loki" })).await;
        assert_eq!(status, 409, "{answer}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains("no Persona loki")), "{answer}");
    });
}

#[test]
fn an_order_given_while_the_bridge_is_away_is_carried_out_when_it_is_back() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| talk(stage, "one").await);
    let order = Order::Session { persona: PersonaId("eir".into()), word: Word::Refresh };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let follows = runtime.block_on(carry_out(&world.store(), &order)).expect("the store takes it");
    assert_eq!(follows, "the next mail begins session 2 of eir");
    world.play(async |stage| talk(stage, "two").await);
    counts(&world.told(), &[("Eir begins session 2: operator", 1)]);
}
