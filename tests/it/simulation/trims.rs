//! Long messages: shown in part, and in whole where she asks for that.

use std::sync::Arc;

use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::{Value, json};

use super::stage::{EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

fn replies(reply: &Value) -> Scripted {
    Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
}

/// A world in which she asks for the whole of the newest message that she is shown in part.
fn curious() -> World {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, words| {
        let part = words.lines().rfind(|line| line.contains("characters left out"));
        let Some(label) = part.and_then(|line| line.split(' ').next()) else { return usual() };
        replies(&json!({"say": [], "react": [], "show": [label]}))
    });
    world
}

fn paste() -> String {
    format!("Eir, read: {} middle {}", "head ".repeat(2_000), "tail ".repeat(2_000))
}

#[test]
fn a_long_paste_is_shown_in_part_and_in_whole_in_a_turn_of_its_own() {
    let mut world = curious();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, &paste());
        stage.until("she is shown a part", || stage.thoughts("eir") == 1).await;
        stage.alice().say(&swarm, "Eir, and?");
        stage.said(&swarm, EIR, 2).await;
    });
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 3);
    assert!(fed[0].words.len() < 10_000 && fed[0].words.contains("(to you; in part, "), "{}", fed[0].words);
    counts(&[fed[0].words.clone()], &[("middle", 0), ("[…]", 1)]);
    assert!(fed[1].words.contains("(to you; in whole): Eir, read: "));
    counts(&[fed[1].words.clone()], &[("middle", 1), ("Eir, and?", 0)]);
    counts(&[fed[2].words.clone()], &[("middle", 0), ("Eir, and?", 1)]);
}

#[test]
fn the_whole_comes_also_after_the_power_was_cut_and_not_where_it_was_taken_back() {
    let shown = |taken_back: bool| {
        let mut world = curious();
        let (room, event) = world.play(async |stage: &Stage| {
            let swarm = stage.swarm().await;
            let event = stage.alice().say(&swarm, &paste());
            stage.until("she is shown a part", || stage.thoughts("eir") == 1).await;
            (swarm, event)
        });
        if taken_back {
            world.deed(world.elapsed(), move |home| drop(home.user("alice").redact(&room, &event)));
        }
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
        });
        world.words("eir").contains("middle")
    };
    assert!(shown(false));
    assert!(!shown(true));
}

#[test]
fn only_what_was_shown_in_part_in_the_turn_can_be_asked_for() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, words| match words {
        words if words.contains("could not be used") => usual(),
        _ => replies(&json!({"say": [], "react": [], "show": ["m1"]})),
    });
    world.play(async |stage| {
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "short");
        stage.calm().await;
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "Eir, show m1");
        stage.calm().await;
    });
    let refused = "is not the label of a message that you were shown in part here";
    counts(&[world.words("eir")], &[(refused, 2)]);
}

#[test]
fn the_whole_of_a_passing_line_calls_upon_her_no_more_than_the_turn_that_asked_for_it() {
    let mut world = curious();
    let curious = world.script.clone();
    world.script = Arc::new(move |who, words| {
        if who != "eir" {
            return replies(&json!({"say": [], "react": []}));
        }
        if words.contains("in whole") {
            return replies(&json!({"say": [{"text": "read"}], "react": []}));
        }
        curious(who, words)
    });
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, &format!("a log: {}", "line ".repeat(4_000)));
        stage.pass(61 * 60_000).await;
        swarm
    });
    let fed = world.fed("eir");
    assert_eq!(fed.len(), 2);
    assert!(fed[1].words.contains("(in whole): a log: "), "it is not to her: {}", fed[1].words);
    let said = world.home.timeline(&swarm).into_iter().find(|event| event.content["body"] == "read");
    let hops = said.expect("it was said").content["dev.persona_bridge.cause"]["hops"].clone();
    assert_eq!(hops, 1, "nobody has asked her for it");
}
