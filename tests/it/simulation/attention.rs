//! Whom a message is addressed to, what waits, and what comes late.

use std::time::Duration;

use persona_bridge::conversation::{RegisterName, Wakes};
use persona_bridge::persona::decide::Settle;
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{Flavour, TestUser};

/// Somebody says something in a thread, as clients do: the event.
pub(super) fn say_in_thread(user: &TestUser, room: &str, root: &str, words: &str) -> String {
    let relation = json!({
        "rel_type": "m.thread", "event_id": root, "is_falling_back": true,
        "m.in_reply_to": { "event_id": root },
    });
    let content = json!({ "msgtype": "m.text", "body": words, "m.relates_to": relation });
    user.say_content(room, "m.room.message", content)
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
    let words = [("(to you): Eir, hello", 1), ("1 new in 1 room", 1), ("good morning", 0)];
    counts(&[world.words("eir")], &words);
    counts(&[world.words("brage")], &[("hello", 0)]);
}

#[test]
fn what_was_said_in_a_day_of_absence_is_one_batch_a_lane_marked_late() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let (swarm, dm) = world.play(async |stage| {
            let swarm = stage.swarm().await;
            let dm = stage.dm(&stage.alice(), EIR).await;
            stage.calm().await;
            (swarm, dm)
        });
        for hour in 0..24 {
            world.away(Duration::from_secs(3_600));
            world.home.user("alice").say(&swarm, &format!("Eir, ask-{hour};"));
            world.home.user("bob").say(&swarm, &format!("chat-{hour};"));
            world.home.user("alice").say(&dm, &format!("dm-{hour};"));
        }
        world.away(Duration::from_secs(3_600));
        world.play(async |stage| {
            stage.until("both lanes are answered", || stage.thoughts("eir") == 2).await;
            stage.pass(60_000).await;
        });
        let fed = world.fed("eir");
        assert_eq!(fed.len(), 2, "one turn a lane, not one a message");
        for lane in &fed {
            assert!(lane.words.contains("was said long ago"), "{}", lane.words);
            let asked = lane.words.lines().filter(|line| line.contains("(to you; late by "));
            assert_eq!(asked.count(), 24, "{}", lane.words);
        }
        counts(&[world.words("eir")], &[("ask-0;", 1), ("ask-23;", 1), ("dm-0;", 1), ("chat-7;", 1)]);
    });
}

#[test]
fn a_backlog_of_many_batches_says_what_waits_behind_each_and_answers_nobody_twice() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        // Whichever line comes in first, each batch wakes her.
        let register = RegisterName("swarm".into());
        world.config.registers.get_mut(&register).expect("it is there").heed.wakes = Wakes::Anyone;
        let swarm = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.calm().await;
            swarm
        });
        let [alice, bob] = ["alice", "bob"].map(|who| world.home.user(who));
        alice.say(&swarm, "Eir, ask-first;");
        (1..1_199).for_each(|line| drop(bob.say(&swarm, &format!("chat-{line};"))));
        alice.say(&swarm, "Eir, ask-last;");
        world.away(Duration::from_secs(3_600));
        world.play(async |stage| {
            stage.until("all of it is heard", || stage.thoughts("eir") == 3).await;
            stage.pass(60_000).await;
        });
        let fed = world.fed("eir");
        let waits: Vec<&str> = fed
            .iter()
            .map(|fed| fed.words.lines().find(|line| line.contains(" behind these")).unwrap_or_default())
            .collect();
        assert_eq!(waits.len(), 3, "{waits:?}");
        assert!(waits[0].starts_with("# 700 more messages wait behind these"), "{waits:?}");
        assert!(waits[1].starts_with("# 200 more messages wait behind these"), "{waits:?}");
        assert_eq!(waits[2], "");
        counts(&[world.words("eir")], &[("chat-1;", 1), ("chat-600;", 1), ("chat-1198;", 1)]);
        let said = world.home.bodies(&swarm, EIR).join("\n");
        for asked in ["ask-first;", "ask-last;"] {
            assert!(said.matches(asked).count() <= 1, "{asked}: {said}");
        }
    });
}

/// The homeserver tells who types in a room.
async fn type_in(stage: &Stage, room: &str, users: &[&str]) {
    let typing = json!({ "type": "m.typing", "room_id": room, "content": { "user_ids": users } });
    assert_eq!(stage.push("typing", &json!({ "events": [], "ephemeral": [typing] })).await, 200);
}

#[test]
fn she_waits_within_the_cap_while_a_sender_types() {
    let mut world = World::new(Flavour::Synapse);
    world.config.typing_waits = true;
    world.config.settle = Settle { quiet: Duration::from_secs(2), cap: Duration::from_secs(10) };
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, first");
        type_in(stage, &swarm, &["@alice:hs.test"]).await;
        stage.pass(6_000).await;
        assert_eq!(stage.thoughts("eir"), 0, "she goes on typing");
        stage.alice().say(&swarm, "and second");
        type_in(stage, &swarm, &[]).await;
        stage.pass(1_500).await;
        assert_eq!(stage.thoughts("eir"), 0, "it is not quiet yet");
        stage.pass(1_000).await;
        assert_eq!(stage.thoughts("eir"), 1);

        stage.alice().say(&swarm, "Eir, third");
        type_in(stage, &swarm, &["@alice:hs.test"]).await;
        stage.pass(9_500).await;
        assert_eq!(stage.thoughts("eir"), 1);
        stage.pass(1_000).await;
        assert_eq!(stage.thoughts("eir"), 2, "not beyond the cap");

        type_in(stage, &swarm, &["@bob:hs.test"]).await;
        stage.alice().say(&swarm, "Eir, fourth");
        stage.pass(3_000).await;
        assert_eq!(stage.thoughts("eir"), 3, "nothing of Bob's waits for her");
    });
    let fed = world.fed("eir");
    counts(&[fed[0].words.clone()], &[("first", 1), ("and second", 1)]);
}
