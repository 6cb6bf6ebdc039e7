//! Whom a message is addressed to, what waits, and what comes late.

use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{Flavour, TestUser};

/// Somebody says something in a thread, as clients do.
fn say_in_thread(user: &TestUser, room: &str, root: &str, words: &str) {
    let relation = json!({
        "rel_type": "m.thread", "event_id": root, "is_falling_back": true,
        "m.in_reply_to": { "event_id": root },
    });
    let content = json!({ "msgtype": "m.text", "body": words, "m.relates_to": relation });
    user.say_content(room, "m.room.message", content);
}

#[test]
fn a_thread_goes_on_with_whom_it_asked_also_after_a_restart() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let (swarm, root) = world.play(async |stage: &Stage| {
            let swarm = stage.swarm().await;
            let root = stage.alice().say(&swarm, "Eir, what is a bridge?");
            say_in_thread(&stage.alice(), &swarm, &root, "at once: take your time");
            stage.said(&swarm, EIR, 1).await;
            stage.calm().await;
            (swarm, root)
        });
        world.play(async |stage| {
            stage.swarm().await;
            stage.calm().await;
            let before = stage.thoughts("eir");
            say_in_thread(&stage.bob(), &swarm, &root, "and after a restart?");
            stage.until("she is asked", || stage.thoughts("eir") > before).await;
            stage.calm().await;
            assert_eq!(stage.thoughts("brage"), 0, "it is not for him");
            say_in_thread(&stage.alice(), &swarm, &root, "Brage, and you?");
            stage.said(&swarm, BRAGE, 1).await;
            stage.calm().await;
            let before = stage.thoughts("eir");
            say_in_thread(&stage.alice(), &swarm, &root, "go on");
            stage.said(&swarm, BRAGE, 2).await;
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), before, "the thread asks somebody else by now");
        });
        let words = world.words("eir");
        for line in ["take your time", "and after a restart?"] {
            let line = words.lines().find(|words| words.ends_with(line)).expect("heard");
            assert!(line.contains("(to you; thread m1)"), "{line}");
        }
    });
}

#[test]
fn a_mention_of_the_room_wakes_everybody_where_it_addresses() {
    let mut world = World::new(Flavour::Synapse);
    let everybody =
        json!({ "msgtype": "m.text", "body": "@room: all hands", "m.mentions": { "room": true } });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say_content(&swarm, "m.room.message", everybody.clone());
        stage.calm().await;
        assert_eq!(stage.thoughts("eir") + stage.thoughts("brage"), 0);
    });
    world.config.registers.values_mut().for_each(|register| register.heed.room_mention = true);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say_content(&swarm, "m.room.message", everybody);
        stage.said(&swarm, EIR, 1).await;
        stage.said(&swarm, BRAGE, 1).await;
    });
}

#[test]
fn a_room_that_listens_to_what_is_addressed_keeps_nothing_else() {
    let mut world = World::new(Flavour::Synapse);
    world.config.addressed_only = world.config.rooms.keys().cloned().collect();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "good morning all");
        stage.calm().await;
        assert_eq!(stage.stats().await["waiting"], 0);
        stage.bob().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 1).await;
    });
    counts(&[world.words("eir")], &[("(to you): Eir, hello", 1), ("1 new in 1 room", 1)]);
    counts(&[world.words("brage")], &[("hello", 0)]);
}
