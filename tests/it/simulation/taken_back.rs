//! What is taken back: mail that waits, mail in a turn in flight, and what she said herself.

use std::sync::Arc;

use persona_bridge::bridge::orders::Lever;
use persona_bridge::conversation::{Delivery, DeliveryKind, Lane, RegisterName};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use persona_bridge::persona::session::care::OnRedaction;
use serde_json::json;

use super::care::SEAM;
use super::stage::{EIR, Stage, counts, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// The newest message of Eir's in a room.
pub(super) fn newest(stage: &Stage, room: &str) -> String {
    let said = stage.home.timeline(room).into_iter();
    let mut said = said.filter(|event| event.kind == "m.room.message" && event.sender == EIR);
    said.next_back().expect("she has said something").id
}

/// All that is taken down of what was heard and said in the swarm.
fn taken_down(world: &World) -> Vec<String> {
    let (eir, swarm) = (&world.config.personas[0].persona.id, Lane::Register(RegisterName("swarm".into())));
    let turns = world.store().past(eir, &swarm, Default::default()).expect("it is read").into_iter();
    turns.flat_map(|turn| turn.lines).map(|line| line.text).collect()
}

fn mail(world: &World) -> Vec<Delivery> {
    let eir = &world.config.personas[0].persona.id;
    world.store().deliveries(eir, &[1, 2, 3]).expect("it is read")
}

#[test]
fn mail_that_waits_loses_its_words_at_once_and_they_are_never_fed() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.brake(Lever::Hold).await;
        let slip = stage.alice().say(&swarm, "Eir, my key is 4711");
        stage.calm().await;
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
    });
    let kept = mail(&world);
    assert_eq!(
        kept.iter().map(|mail| (&mail.kind, mail.text.as_str())).collect::<Vec<_>>(),
        [(&DeliveryKind::Withdrawn, "")]
    );
    world.play(async |stage| {
        stage.swarm().await;
        stage.brake(Lever::Release).await;
        stage.ask("hello").await;
    });
    counts(&[world.words("eir")], &[("4711", 0), ("hello", 1), ("took back", 0)]);
    counts(&taken_down(&world), &[("4711", 0), ("hello", 2)]);
}

#[test]
fn mail_of_a_turn_in_flight_leaves_no_record_and_her_session_ends_with_the_turn() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.script = Arc::new(|_, words| {
            let noted = json!([{ "text": "the key is 4711", "about": [], "salience": 0.5 }]);
            let reply = json!({ "say": [{ "text": "noted: 4711" }], "react": [], "remember": noted });
            let answered = Outcome::Ends(Ending::Answered { reply: reply.to_string() });
            let outcome = if words.contains("my key") { answered } else { Outcome::Usual };
            Scripted { outcome, ..usual() }
        });
        world.play(async |stage| {
            stage.ask("good morning").await;
            let swarm = stage.swarm().await;
            let slip = stage.alice().say(&swarm, "Eir, my key is 4711");
            stage.bob().say(&swarm, "Eir, what is new");
            stage.until("she thinks", || stage.thoughts("eir") == 2).await;
            assert_eq!(stage.home.bodies(&swarm, EIR).len(), 1, "she has not answered");
            stage.alice().redact(&swarm, &slip);
            stage.said(&swarm, EIR, 2).await;
            stage.calm().await;
            stage.ask("how are you").await;
        });
        let fed = world.fed("eir");
        assert_eq!(
            fed.iter().map(|fed| fed.words.starts_with(SEAM)).collect::<Vec<_>>(),
            [false, false, true]
        );
        counts(&taken_down(&world), &[("good morning", 2), ("Eir, what is new", 1), ("4711", 0)]);
        let eir = &world.config.personas[0].persona.id;
        assert_eq!(world.store().memories(eir, |memories| memories.all().count()), 0);
        assert!(mail(&world).iter().all(|mail| !mail.text.contains("4711")));
    });
}

/// Eir repeats something, and somebody takes her message back; then she is spoken to once more.
fn her_own(
    flavour: Flavour,
    on_redaction: OnRedaction,
    by: fn(&Stage) -> crate::fake::homeserver::TestUser,
) -> World {
    let mut world = World::new(flavour);
    world.config.care.on_redaction = on_redaction;
    world.play(async |stage| {
        stage.ask("please say 4711").await;
        let swarm = stage.swarm().await;
        by(stage).redact(&swarm, &newest(stage, &swarm));
        stage.calm().await;
        assert_eq!(stage.thoughts("eir"), 1, "it wakes nobody");
    });
    counts(&taken_down(&world), &[("please say 4711", 1)]);
    world.play(async |stage| stage.ask("how are you").await);
    world
}

#[test]
fn what_she_said_herself_leaves_the_record_and_her_session_ends() {
    on_both(|flavour| {
        for by in [(|stage| stage.bob()) as fn(&Stage) -> _, |stage| stage.home.user("persona-bridge")] {
            let world = her_own(flavour, OnRedaction::Refresh, by);
            let last = world.fed("eir").pop().expect("she was fed").words;
            assert!(last.starts_with(SEAM), "{last}");
            // The question stands in the room, her answer does not.
            counts(&[last], &[("please say 4711", 1), ("(took back your message)", 1)]);
        }
    });
}

#[test]
fn where_the_operator_has_her_session_go_on_she_is_told_that_her_message_was_taken_back() {
    let world = her_own(Flavour::Synapse, OnRedaction::Note, |stage| stage.alice());
    let last = world.fed("eir").pop().expect("she was fed").words;
    assert!(!last.starts_with(SEAM), "{last}");
    counts(&[last], &[("(took back your message)", 1), ("4711", 0)]);
}

#[test]
fn what_was_said_before_she_came_ends_her_session_too_where_it_stood_before_her_mail() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.default_register = Some(RegisterName("swarm".into()));
        world.play(async |stage| {
            let (swarm, old) = (stage.swarm().await, stage.alice().create_room("old"));
            let slip = stage.alice().say(&old, "my key is 4711");
            stage.alice().invite(&old, EIR);
            stage.joins(&old, EIR).await;
            stage.pass(50).await;
            stage.alice().say(&old, "Eir, hello");
            stage.said(&old, EIR, 1).await;
            stage.ask("here, too").await;
            stage.alice().redact(&swarm, &slip);
            stage.ask("that was elsewhere").await;
            stage.alice().redact(&old, &slip);
            stage.calm().await;
            stage.ask("how are you").await;
        });
        let fed = world.fed("eir");
        counts(&[fed[0].words.clone()], &[("my key is 4711", 1)]);
        let seams: Vec<bool> = fed.iter().map(|fed| fed.words.starts_with(SEAM)).collect();
        assert_eq!(seams, [false, false, false, true]);
        counts(&fed[1..].iter().map(|fed| fed.words.clone()).collect::<Vec<_>>(), &[("4711", 0)]);
    });
}
