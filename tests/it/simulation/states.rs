//! A Persona's state: her file is the first one, the store has it from then on, and a changed one waits for a cheap point.

use persona_bridge::conversation::PersonaId;
use persona_bridge::persona::State;
use persona_bridge::persona::session::care::Apply;
use serde_json::{Value, json};

use super::stage::{EIR, Stage, counts};
use super::world::World;
use crate::fake::homeserver::Flavour;

fn state(text: &str) -> Option<State> {
    Some(State::read(text).expect("a state"))
}

/// A world in which Eir's file says that she is calm.
fn calm() -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.personas[0].state = state("{\"mood\": \"calm\"}");
    world
}

async fn get(stage: &Stage) -> Value {
    let (status, answer) = stage.order(&json!({ "order": "get-state", "persona": "eir" })).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(answer["follows"].as_str().expect("the document")).expect("JSON")
}

async fn put(stage: &Stage, document: &Value) -> (u16, Value) {
    let order = json!({ "order": "put-state", "persona": "eir", "document": document.to_string() });
    stage.order(&order).await
}

/// One more message to Eir in the swarm, answered.
async fn talk(stage: &Stage, count: usize) {
    let swarm = stage.swarm().await;
    stage.alice().say(&swarm, "Eir, hello");
    stage.said(&swarm, EIR, count).await;
    stage.calm().await;
}

#[test]
fn the_file_of_her_state_is_her_first_one_and_changes_nothing_from_then_on() {
    let mut world = calm();
    world.play(async |stage| {
        stage.swarm().await;
        let first = get(stage).await;
        assert_eq!(first["mood"], "calm");
        let wild = json!({ "mood": "wild", "updatedAt": first["updatedAt"] });
        assert_eq!(put(stage, &wild).await.0, 200);
    });
    let kept = || world.store().state(&PersonaId("eir".into())).expect("readable").expect("there").text();
    let before = kept();
    assert!(before.contains("wild"), "{before}");
    world.config.personas[0].state = state("{\"mood\": \"sad\"}");
    world.play(async |stage| {
        stage.swarm().await;
        assert_eq!(get(stage).await["mood"], "wild");
    });
    assert_eq!(world.store().state(&PersonaId("eir".into())).unwrap().unwrap().text(), before);
}

#[test]
fn of_two_who_change_her_state_at_once_the_second_is_refused() {
    let mut world = calm();
    world.play(async |stage| {
        stage.swarm().await;
        let read = get(stage).await;
        let change = |mood: &str| json!({ "mood": mood, "updatedAt": read["updatedAt"] });
        assert_eq!(put(stage, &change("wild")).await.0, 200);
        let now = get(stage).await;
        let (status, answer) = put(stage, &change("sad")).await;
        let error = answer["error"].as_str().expect("why").to_owned();
        assert_eq!(status, 409);
        for stamp in [&read["updatedAt"], &now["updatedAt"]] {
            assert!(error.contains(stamp.as_str().expect("a stamp")), "{error}");
        }
        assert_eq!(put(stage, &change("wild")).await.0, 200, "whose answer was lost may put it again");
        assert_eq!(get(stage).await, now);
        assert_eq!(put(stage, &json!([])).await.0, 409);
    });
}

/// Changes her state between two of three turns; answers what operators were told.
fn changed_while_warm(apply: Apply) -> Vec<String> {
    let mut world = calm();
    world.config.care.apply = apply;
    world.play(async |stage| {
        talk(stage, 1).await;
        let wild = json!({ "mood": "wild", "updatedAt": get(stage).await["updatedAt"] });
        assert_eq!(put(stage, &wild).await.0, 200);
        talk(stage, 2).await;
        stage.pass(310_000).await;
        talk(stage, 3).await;
    });
    world.told()
}

#[test]
fn a_changed_state_waits_for_a_cheap_point_unless_the_operator_wants_it_at_once() {
    counts(
        &changed_while_warm(Apply::AtCheapPoint),
        &[("session 2: stale, prompt changed", 1), ("session 3", 0)],
    );
    let told = changed_while_warm(Apply::Now);
    counts(&told, &[("session 2: stale, prompt changed", 1)]);
}

#[test]
fn the_next_session_begins_with_the_changed_state() {
    let mut world = calm();
    world.play(async |stage| {
        talk(stage, 1).await;
        let wild = json!({ "mood": "wild", "updatedAt": get(stage).await["updatedAt"] });
        assert_eq!(put(stage, &wild).await.0, 200);
        stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        talk(stage, 2).await;
        stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        talk(stage, 3).await;
    });
    let eir = PersonaId("eir".into());
    let (_, session) = world.store().standing(&eir).expect("readable");
    let begun_with = session.expect("a session").fingerprint;
    world.config.personas[0].state = None;
    world.play(async |stage| talk(stage, 4).await);
    let (_, session) = world.store().standing(&eir).expect("readable");
    assert_eq!(
        session.expect("a session").fingerprint,
        begun_with,
        "the store has it, whatever the config names"
    );
}
