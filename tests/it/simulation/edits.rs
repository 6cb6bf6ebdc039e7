//! Edits that address somebody whom the message before them did not, or no longer do; and threads on what she said.

use persona_bridge::conversation::RegisterName;
use persona_bridge::persona::session::care::OnRedaction;
use serde_json::{Value, json};

use super::attention::say_in_thread;
use super::stage::{BRAGE, EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::{Flavour, TestUser};

/// Somebody replaces the words of a message by such that mention somebody.
fn edit_to(user: &TestUser, room: &str, event: &str, whom: &str, body: &str) -> String {
    let mentions = json!({ "user_ids": [whom] });
    let new = json!({ "msgtype": "m.text", "body": body, "m.mentions": mentions });
    let content = json!({
        "msgtype": "m.text", "body": format!("* {body}"), "m.new_content": new, "m.mentions": mentions,
        "m.relates_to": { "rel_type": "m.replace", "event_id": event },
    });
    user.say_content(room, "m.room.message", content)
}

/// Whether some words of Alice stand there, whatever others repeat of them.
fn shows(words: &str, said: &str) -> bool {
    words.lines().any(|line| line.contains("<@alice:") && line.contains(said))
}

/// A world in whose rooms only what is addressed is kept.
fn quiet(flavour: Flavour) -> World {
    let mut world = World::new(flavour);
    world.config.addressed_only = world.config.rooms.keys().cloned().collect();
    world
}

/// The message that somebody said last in a room, in full.
fn last(stage: &Stage, room: &str, who: &str) -> Value {
    let said = stage.home.timeline(room).into_iter().rfind(|event| event.sender == who).expect("said");
    json!({ "id": said.id, "content": said.content })
}

#[test]
fn an_edit_that_addresses_her_is_heard_as_the_message_that_was_passed_over() {
    on_both(|flavour| {
        let mut world = quiet(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let asked = stage.alice().say(&swarm, "can you help me?");
            stage.bob().say(&swarm, "what a day");
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), 0);
            edit_to(&stage.alice(), &swarm, &asked, EIR, "Eir, can you help me?");
            stage.said(&swarm, EIR, 1).await;
            edit_to(&stage.alice(), &swarm, &asked, EIR, "Eir, can you help me, please?");
            stage.said(&swarm, EIR, 2).await;
            stage.calm().await;
            assert_eq!(stage.thoughts("brage"), 0);
        });
        let fed = world.fed("eir");
        counts(&[fed[0].words.clone()], &[("(to you): Eir, can you help me?", 1), ("edit of", 0)]);
        counts(&[fed[1].words.clone()], &[("(to you; edit of m1): Eir, can you help me, please?", 1)]);
        assert_eq!(fed.len(), 2);
    });
}

#[test]
fn what_an_edit_made_hers_is_taken_back_with_its_message_or_with_the_edit() {
    for takes_back_the_edit in [false, true] {
        let mut world = quiet(Flavour::Synapse);
        world.config.care.on_redaction = OnRedaction::Note;
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let asked = stage.alice().say(&swarm, "my slip");
            let edit = edit_to(&stage.alice(), &swarm, &asked, EIR, "Eir, my slip");
            stage.said(&swarm, EIR, 1).await;
            stage.alice().redact(&swarm, if takes_back_the_edit { &edit } else { &asked });
            stage.calm().await;
            stage.ask("go on").await;
        });
        counts(&[world.words("eir")], &[("my slip", 1), ("(took back m1)", 1)]);
    }
}

#[test]
fn what_an_edit_told_her_is_in_no_record_and_no_memory_once_it_is_taken_back() {
    for takes_back_the_edit in [false, true] {
        let mut world = quiet(Flavour::Synapse);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let asked = stage.alice().say(&swarm, "well");
            let edit = edit_to(&stage.alice(), &swarm, &asked, EIR, "Eir, remember that I dyed my hair");
            stage.said(&swarm, EIR, 1).await;
            stage.alice().redact(&swarm, if takes_back_the_edit { &edit } else { &asked });
            stage.calm().await;
            stage.ask("go on").await;
        });
        let eir = &world.config.personas[0].persona.id;
        assert_eq!(world.store().memories(eir, |memories| memories.all().count()), 0);
        let fed = world.fed("eir");
        assert_eq!(fed.len(), 2);
        assert!(shows(&fed[0].words, "dyed") && !shows(&fed[1].words, "dyed"), "{}", fed[1].words);
    }
}

#[test]
fn who_was_shown_an_edits_words_as_said_earlier_begins_anew_when_that_is_taken_back() {
    let mut world = World::new(Flavour::Synapse);
    world.config.default_register = Some(RegisterName("swarm".into()));
    world.play(async |stage| {
        let (_, old) = (stage.swarm().await, stage.alice().create_room("old"));
        let said = stage.alice().say(&old, "well");
        let edit = edit_to(&stage.alice(), &old, &said, "@bob:hs.test", "my key is 4711");
        stage.alice().invite(&old, EIR);
        stage.joins(&old, EIR).await;
        stage.pass(50).await;
        stage.alice().say(&old, "Eir, hello");
        stage.said(&old, EIR, 1).await;
        stage.alice().redact(&old, &edit);
        stage.calm().await;
        stage.ask("go on").await;
    });
    let fed = world.fed("eir");
    assert!(shows(&fed[0].words, "4711") && !shows(&fed[1].words, "4711"), "{}", fed[1].words);
    counts(&world.told(), &[("Eir begins session 2", 1)]);
}

#[test]
fn nobody_makes_the_words_of_another_hers_by_an_edit() {
    let mut world = quiet(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let asked = stage.alice().say(&swarm, "can you help me?");
        let gone = stage.alice().say(&swarm, "and me?");
        stage.alice().redact(&swarm, &gone);
        stage.calm().await;
        edit_to(&stage.bob(), &swarm, &asked, EIR, "Eir, forged");
        edit_to(&stage.alice(), &swarm, &gone, EIR, "Eir, gone");
        edit_to(&stage.alice(), &swarm, "$never-heard", EIR, "Eir, unheard");
        stage.calm().await;
    });
    assert_eq!(world.fed("eir"), []);
}

#[test]
fn an_edit_that_addresses_her_wakes_her_whether_the_message_waits_or_was_fed() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let waits = stage.alice().say(&swarm, "who brings tea?");
        stage.calm().await;
        assert_eq!(stage.thoughts("eir"), 0);
        edit_to(&stage.alice(), &swarm, &waits, EIR, "Eir, who brings tea?");
        stage.said(&swarm, EIR, 1).await;
        let fed = stage.alice().say(&swarm, "who brings milk?");
        stage.ask("hello").await;
        edit_to(&stage.alice(), &swarm, &fed, EIR, "Eir, who brings milk?");
        stage.said(&swarm, EIR, 3).await;
    });
    let words = [("(to you): Eir, who brings tea?", 1), ("(to you; edit of m3): Eir, who brings milk?", 1)];
    counts(&[world.words("eir")], &words);
}

#[test]
fn a_message_that_was_edited_away_from_her_before_it_was_fed_wakes_nobody() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let asked = stage.alice().say(&swarm, "Eir, who brings tea?");
            stage.alice().edit(&swarm, &asked, "Bob, who brings tea?");
            stage.calm().await;
            assert_eq!(stage.thoughts("eir"), 0, "{}", stage.words("eir"));
            stage.ask("hello").await;
        });
        let words =
            [("(to you)", 1), ("(to you): Eir, hello", 1), (": Bob, who brings tea?", 1), ("Eir, who", 0)];
        counts(&[world.words("eir")], &words);
    });
}

#[test]
fn a_reply_to_her_or_what_is_said_in_her_thread_stays_hers_when_it_is_reworded() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let root = stage.alice().say(&swarm, "Eir, what is a bridge?");
        stage.said(&swarm, EIR, 1).await;
        let hers = last(stage, &swarm, EIR)["id"].as_str().expect("an id").to_owned();
        let answer = stage.bob().reply(&swarm, &hers, "thnaks");
        stage.bob().edit(&swarm, &answer, "thanks");
        stage.said(&swarm, EIR, 2).await;
        let more = say_in_thread(&stage.bob(), &swarm, &root, "adn then?");
        stage.bob().edit(&swarm, &more, "and then?");
        stage.said(&swarm, EIR, 3).await;
    });
    let words =
        [("reply to your message): thanks", 1), ("thread m1): and then?", 1), ("thnaks", 0), ("adn", 0)];
    counts(&[world.words("eir")], &words);
}

#[test]
fn a_thread_on_what_she_said_asks_her_until_somebody_else_is_asked() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let (swarm, root) = world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.ask("what is a bridge?").await;
            let root = last(stage, &swarm, EIR)["id"].as_str().expect("an id").to_owned();
            say_in_thread(&stage.bob(), &swarm, &root, "and a ford?");
            stage.said(&swarm, EIR, 2).await;
            stage.calm().await;
            assert_eq!(stage.thoughts("brage"), 0);
            (swarm, root)
        });
        world.play(async |stage| {
            stage.swarm().await;
            say_in_thread(&stage.bob(), &swarm, &root, "and a ferry?");
            stage.said(&swarm, EIR, 3).await;
            stage.calm().await;
            stage.alice().say_content(&swarm, "m.room.message", mentioning_in_thread(&root, "@bob:hs.test"));
            say_in_thread(&stage.alice(), &swarm, &root, "go on");
            stage.calm().await;
        });
        world.play(async |stage| {
            stage.swarm().await;
            say_in_thread(&stage.alice(), &swarm, &root, "still for Bob");
            stage.calm().await;
            assert_eq!(stage.home.bodies(&swarm, EIR).len(), 3, "{}", stage.words("eir"));
            assert!(stage.home.bodies(&swarm, BRAGE).is_empty());
        });
        counts(
            &[world.words("eir")],
            &[("(to you; thread of your message): and a f", 2), ("still for Bob", 0)],
        );
    });
}

/// What turns to somebody in a thread.
fn mentioning_in_thread(root: &str, whom: &str) -> Value {
    json!({
        "msgtype": "m.text", "body": "what do you say?", "m.mentions": { "user_ids": [whom] },
        "m.relates_to": {
            "rel_type": "m.thread", "event_id": root, "is_falling_back": true,
            "m.in_reply_to": { "event_id": root },
        },
    })
}
