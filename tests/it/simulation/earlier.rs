//! What a session that begins is shown as said before its mail.

use persona_bridge::bridge::orders::Order;
use persona_bridge::conversation::{Level, PersonaId};
use persona_bridge::persona::session::care::Word;

use super::stage::{BOT, EIR, Stage, counts, on_both};
use super::world::World;
use crate::fake::homeserver::Flavour;

/// The next mail begins the next session.
async fn refresh(stage: &Stage) {
    let order = Order::Session { persona: PersonaId("eir".into()), word: Word::Refresh };
    let (status, answer) = stage.order(&order.to_json()).await;
    assert_eq!(status, 200, "{answer}");
}

/// The earlier lines of a Persona's newest mail.
fn earlier(world: &World, who: &str) -> String {
    let fed = world.fed(who);
    let lines = fed.last().expect("she was fed").words.lines();
    lines.filter(|line| line.starts_with("earlier")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn of_a_room_that_listens_to_what_is_addressed_nothing_else_is_shown() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.config.addressed_only = world.config.rooms.keys().cloned().collect();
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "private chatter;");
            stage.ask("first;").await;
            let answer = stage.home.timeline(&swarm).into_iter().rfind(|event| event.sender == EIR);
            stage.bob().reply(&swarm, &answer.expect("she spoke").id, "thanks for that;");
            stage.said(&swarm, EIR, 2).await;
            stage.bob().say(&swarm, "Brage, yours;");
            stage.bob().say(&swarm, "more chatter;");
            stage.calm().await;
            counts(&[stage.words("eir")], &[("chatter;", 0), ("yours;", 0)]);
            refresh(stage).await;
            stage.ask("second;").await;
        });
        let shown = [
            ("chatter;", 0),
            ("yours;", 0),
            (">: Eir, first;", 1),
            (">: thanks for that;", 1),
            ("<@persona_eir", 2),
        ];
        counts(&[earlier(&world, "eir")], &shown);
    });
}

#[test]
fn what_is_said_to_the_bridge_and_its_answers_are_not_shown() {
    let mut world = World::new(Flavour::Synapse);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.home.user("persona-bridge").join(&swarm);
        stage.ask("first;").await;
        stage.alice().say(&swarm, "!persona version");
        stage.said(&swarm, BOT, 1).await;
        stage.bob().say(&swarm, "!persona budget");
        stage.alice().say(&swarm, "Brage stop");
        stage.alice().say(&swarm, "!persona go");
        stage.calm().await;
        refresh(stage).await;
        stage.ask("second;").await;
    });
    counts(&[earlier(&world, "eir")], &[("!persona", 0), ("stop", 0), (BOT, 0), (">: Eir, first;", 1)]);
}

#[test]
fn the_newest_words_are_shown_and_nothing_of_what_was_taken_back() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            let year = stage.alice().say(&swarm, "the year is 1812;");
            let slip = stage.alice().say(&swarm, "the key is 4711;");
            stage.ask("first;").await;
            stage.alice().edit(&swarm, &year, "the year is 1813;");
            stage.bob().edit(&swarm, &year, "the year is 1815;");
            let last = stage.alice().edit(&swarm, &year, "the year is 1814;");
            let undone = stage.alice().edit(&swarm, &year, "the year is 1816;");
            stage.alice().edit(&swarm, &slip, "the key is 4712;");
            stage.ask("second;").await;
            stage.alice().redact(&swarm, &slip);
            stage.alice().redact(&swarm, &undone);
            stage.calm().await;
            assert_ne!(last, undone);
            refresh(stage).await;
            stage.ask("third;").await;
        });
        counts(&[earlier(&world, "eir")], &[("the year is 1814;", 1), ("the year", 1), ("the key", 0)]);
    });
}
