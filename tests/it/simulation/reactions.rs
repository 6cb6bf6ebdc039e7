//! How people take what she said: told once, as a line with counts, and never a reason to wake.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::conversation::Level;
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::json;

use super::stage::{EIR, Stage, on_both};
use super::taken_back::newest;
use super::told::notices;
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// What each batch tells of reactions.
fn told(world: &World) -> Vec<String> {
    let of_reactions = |lines: Vec<String>| {
        let lines = lines
            .into_iter()
            .filter_map(|line| line.strip_prefix("reactions to your words: ").map(str::to_owned));
        lines.collect::<Vec<_>>().join("; ")
    };
    notices(world, "eir").into_iter().map(of_reactions).collect()
}

/// Alice and Bob react to the newest that Eir said in a room.
async fn like(stage: &Stage, room: &str) {
    let said = newest(stage, room);
    stage.alice().react(room, &said, "👍");
    stage.bob().react(room, &said, "👍");
    stage.bob().react(room, &said, "❤");
    stage.calm().await;
}

#[test]
fn they_are_told_once_with_the_next_mail_and_wake_nobody() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.permissions.0.insert("@mallory:hs.test".to_owned(), Level::Block);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let mallory = stage.home.user("mallory");
            mallory.join(&swarm);
            let question = stage.bob().say(&swarm, "Brage, are you there?");
            stage.ask("first").await;
            mallory.react(&swarm, &newest(stage, &swarm), "👎");
            stage.alice().react(&swarm, &question, "🎉");
            stage.home.user("persona_brage").react(&swarm, &newest(stage, &swarm), "🐟");
            stage.home.user("persona_eir").react(&swarm, &newest(stage, &swarm), "🪞");
            like(stage, &swarm).await;
            stage.pass(3_600_000).await;
            assert_eq!(stage.thoughts("eir"), 1, "nobody asked her");
            stage.ask("second").await;
            stage.ask("third").await;
        });
        assert_eq!(told(&world), ["", "\"👍\" 2, \"❤\" 1, \"🐟\" 1", ""], "{flavour:?}");
        assert!(!world.words("brage").contains("reactions to"), "{}", world.words("brage"));
    });
}

#[test]
fn one_that_comes_twice_is_one_and_one_that_is_taken_back_is_none() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        stage.ask("first").await;
        let swarm = stage.swarm().await;
        let relation = json!({ "rel_type": "m.annotation", "event_id": newest(stage, &swarm), "key": "🎉" });
        let reaction = json!({
            "event_id": "$twice", "room_id": swarm, "sender": "@alice:hs.test", "type": "m.reaction",
            "origin_server_ts": 1_800_000_100_000_u64, "content": { "m.relates_to": relation },
        });
        for txn in ["900", "901"] {
            assert_eq!(stage.push(txn, &json!({ "events": [reaction] })).await, 200);
        }
        let slip = stage.alice().react(&swarm, &newest(stage, &swarm), "👎");
        stage.calm().await;
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
        stage.ask("second").await;
        like(stage, &swarm).await;
        stage.bob().redact(&swarm, &newest(stage, &swarm));
        stage.calm().await;
        stage.ask("third").await;
    });
    assert_eq!(told(&world), ["", "\"🎉\" 1", ""]);
}

#[test]
fn those_in_a_direct_room_are_told_there_alone() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.ask("first").await;
            let dm = stage.dm(&stage.alice(), EIR).await;
            stage.alice().say(&dm, "hello");
            stage.said(&dm, EIR, 1).await;
            stage.calm().await;
            stage.alice().react(&dm, &newest(stage, &dm), "🤫");
            stage.calm().await;
            like(stage, &stage.swarm().await).await;
            stage.ask("second").await;
            stage.alice().say(&dm, "again");
            stage.said(&dm, EIR, 2).await;
            stage.calm().await;
        });
        assert_eq!(told(&world), ["", "", "\"👍\" 2, \"❤\" 1", "\"🤫\" 1"], "{flavour:?}");
    });
}

#[test]
fn a_turn_that_is_fed_again_after_a_crash_tells_the_same_and_the_next_one_what_came_meanwhile() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    let swarm = world.play(async |stage| {
        stage.ask("first").await;
        let swarm = stage.swarm().await;
        like(stage, &swarm).await;
        stage.alice().say(&swarm, "Eir, second");
        stage.until("she thinks", || stage.thoughts("eir") == 2).await;
        stage.home.user("carol").join(&swarm);
        stage.home.user("carol").react(&swarm, &newest(stage, &swarm), "👍");
        stage.pass(1_000).await;
        swarm
    });
    world.play(async |stage| {
        stage.said(&swarm, EIR, 2).await;
        stage.calm().await;
        stage.ask("third").await;
    });
    let fed = world.fed("eir");
    assert_eq!(fed[1].words, fed[2].words, "the same line again");
    assert_eq!(told(&world)[2..], ["\"👍\" 2, \"❤\" 1", "\"👍\" 1"]);
}

#[test]
fn what_a_turn_was_to_tell_that_is_closed_without_an_answer_is_told_by_the_next() {
    let mut world = World::new(Flavour::Synapse);
    let wait = Some(Duration::from_secs(60));
    let busy = Ending::Transient { reason: "busy".into(), retry_after: wait };
    world.stumbles([Outcome::Usual, Outcome::Ends(busy)]);
    world.play(async |stage| {
        stage.ask("first").await;
        let swarm = stage.swarm().await;
        like(stage, &swarm).await;
        let slip = stage.alice().say(&swarm, "Eir, second");
        stage.until("she thinks", || stage.thoughts("eir") == 2).await;
        stage.pass(1_000).await;
        stage.alice().redact(&swarm, &slip);
        stage.pass(120_000).await;
        assert_eq!(stage.thoughts("eir"), 2, "nothing is left to be fed");
        stage.ask("third").await;
    });
    assert_eq!(told(&world)[1..], ["\"👍\" 2, \"❤\" 1", "\"👍\" 2, \"❤\" 1"]);
}
