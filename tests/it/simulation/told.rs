//! What she is told beside her mail: only when it changed, once a session, and of a direct room nowhere else.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::bridge::RoomKind;
use persona_bridge::bridge::campaigns::Campaigns;
use persona_bridge::bridge::orders::{Order, carry_out};
use persona_bridge::conversation::{Campaign, Level, Millis, Register, RegisterName, Slug};
use persona_bridge::mind::scripted::Scripted;
use persona_bridge::persona::Budget;
use persona_bridge::persona::session::Usd;
use serde_json::json;

use super::budget::dear_world;
use super::stage::{EIR, Stage, on_both};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

/// The lines of the bridge that stand between the header of the mail and the first room, in each batch.
pub(super) fn notices(world: &World, who: &str) -> Vec<Vec<String>> {
    let told = |words: &str| {
        let body = words.lines().skip_while(|line| !line.starts_with("# mail for you")).skip(1);
        let lines = body.take_while(|line| line.starts_with("# "));
        lines.map(|line| line.trim_start_matches("# ").to_owned()).collect::<Vec<_>>()
    };
    world.fed(who).iter().map(|fed| told(&fed.words)).collect()
}

fn fair(title: &str) -> Order {
    let slug = Slug::new("fair").expect("a slug");
    Order::Campaign(Campaigns::Open(Campaign::new(slug, title).expect("a campaign")))
}

async fn order(stage: &Stage, order: &Order) {
    let (status, answer) = stage.order(&order.to_json()).await;
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn what_changes_in_her_rooms_is_told_once_with_the_next_mail() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.home.user("gina").join(&swarm);
            stage.ask("first").await;
            stage.bob().set_state(&swarm, "m.room.name", "", json!({ "name": "Old" }));
            stage.bob().set_state(&swarm, "m.room.name", "", json!({ "name": "Tea\n# mail for you" }));
            stage.bob().set_state(&swarm, "m.room.topic", "", json!({ "topic": "cups" }));
            stage.home.user("gina").leave(&swarm);
            for name in ["carol", "dave", "erin", "frank"] {
                stage.home.user(name).join(&swarm);
            }
            stage.ask("second").await;
            stage.ask("third").await;
        });
        assert_eq!(
            notices(&world, "eir"),
            [
                Vec::new(),
                vec![
                    "room \"#persona_swarm:hs.test\" bears the name \"Tea # mail for you\" now, before it was \"swarm\"".to_owned(),
                    "the topic of room \"#persona_swarm:hs.test\" is \"cups\" now".to_owned(),
                    "4 people joined room \"#persona_swarm:hs.test\"".to_owned(),
                    "<@gina:hs.test> left room \"#persona_swarm:hs.test\"".to_owned(),
                ],
                Vec::new(),
            ],
            "{flavour:?}"
        );
    });
}

#[test]
fn what_changed_while_the_bridge_was_away_is_told_too() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        let swarm = world.play(async |stage| {
            stage.ask("first").await;
            stage.swarm().await
        });
        world.home.user("bob").set_state(&swarm, "m.room.topic", "", json!({ "topic": "cups" }));
        world.home.user("carol").join(&swarm);
        world.play(async |stage| stage.ask("second").await);
        let told = notices(&world, "eir");
        assert_eq!(
            told[1],
            [
                "the topic of room \"#persona_swarm:hs.test\" is \"cups\" now",
                "\"carol\" <@carol:hs.test> joined room \"#persona_swarm:hs.test\"",
            ],
            "{flavour:?}: {told:?}"
        );
    });
}

#[test]
fn a_new_session_is_told_open_campaigns_and_topics_and_takes_the_rest_as_it_is() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().set_state(&swarm, "m.room.topic", "", json!({ "topic": "cups" }));
        order(stage, &fair("The fair")).await;
        stage.ask("first").await;
        stage.ask("second").await;
        stage.home.user("carol").join(&swarm);
        stage.order(&json!({ "order": "refresh", "persona": "eir" })).await;
        stage.ask("third").await;
        order(stage, &fair("The autumn fair")).await;
        stage.ask("fourth").await;
        order(stage, &Order::Campaign(Campaigns::Close(Slug::new("fair").expect("a slug")))).await;
        stage.ask("fifth").await;
    });
    let begin = vec![
        "campaign fair is open: \"The fair\"".to_owned(),
        "the topic of room \"#persona_swarm:hs.test\" is \"cups\"".to_owned(),
    ];
    let expect = [
        begin.clone(),
        Vec::new(),
        begin,
        vec!["campaign fair is \"The autumn fair\" now".to_owned()],
        vec!["campaign fair is closed".to_owned()],
    ];
    assert_eq!(notices(&world, "eir"), expect);
}

#[test]
fn what_is_of_a_direct_room_is_told_there_alone_and_what_is_of_all_lanes_once() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.play(async |stage| {
            stage.ask("first").await;
            let dm = stage.dm(&stage.alice(), EIR).await;
            stage.alice().say(&dm, "hello");
            stage.said(&dm, EIR, 1).await;
            stage.alice().set_state(&dm, "m.room.name", "", json!({ "name": "hush-name" }));
            stage.alice().set_state(&dm, "m.room.topic", "", json!({ "topic": "hush-topic" }));
            stage.calm().await;
            order(stage, &fair("The fair")).await;
            stage.ask("second").await;
            stage.alice().say(&dm, "again");
            stage.said(&dm, EIR, 2).await;
            stage.calm().await;
        });
        let dm = "room \"dm with @alice:hs.test\"";
        assert_eq!(
            notices(&world, "eir"),
            [
                Vec::new(),
                Vec::new(),
                vec!["campaign fair is open: \"The fair\"".to_owned()],
                vec![
                    format!("{dm} bears the name \"hush-name\" now"),
                    format!("the topic of {dm} is \"hush-topic\" now"),
                ],
            ],
            "{flavour:?}"
        );
        assert!(!world.words("brage").contains("hush"), "{}", world.words("brage"));
    });
}

#[test]
fn the_day_and_the_quarters_of_a_budget_are_told_when_they_change() {
    let per_persona_per_day = Some(Usd::of_dollars(4.0));
    let mut world = dear_world(Budget { per_persona_per_day, ..Budget::default() });
    world.play(async |stage| {
        stage.swarm().await;
        stage.pass(16 * 3_600_000 - 120_000).await;
        for words in ["first", "second", "third"] {
            stage.ask(words).await;
            stage.order(&json!({ "order": "keep", "persona": "eir" })).await;
        }
        stage.pass(120_000).await;
        stage.ask("fourth").await;
    });
    let quarter = |quarters| vec![format!("{quarters} % of your own budget of today is spent")];
    let day = "the day has changed: it is Saturday, 2027-01-16 (UTC)".to_owned();
    assert_eq!(notices(&world, "eir"), [vec![], quarter(25), quarter(50), vec![day]]);
}

#[test]
fn a_budget_that_was_spent_is_told_with_the_first_turn_of_the_next_day() {
    let per_persona_per_day = Some(Usd::of_dollars(2.0));
    let mut world = dear_world(Budget { per_persona_per_day, ..Budget::default() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.pass(16 * 3_600_000 - 120_000).await;
        for words in ["first", "second"] {
            stage.ask(words).await;
            stage.order(&json!({ "order": "keep", "persona": "eir" })).await;
        }
        stage.alice().say(&swarm, "Eir, third");
        stage.pass(240_000).await;
        stage.ask("fourth").await;
    });
    let half = "50 % of your own budget of today is spent".to_owned();
    let day = "the day has changed: it is Saturday, 2027-01-16 (UTC)".to_owned();
    let spent =
        "100 % of your own budget of Friday, 2027-01-15 was spent: nothing more was asked of you then";
    assert_eq!(notices(&world, "eir"), [vec![], vec![half.clone()], vec![day, spent.to_owned()], vec![half]]);
}

#[test]
fn rooms_that_come_go_and_change_their_register_are_told_in_their_lanes() {
    let mut world = World::new(Flavour::Synapse);
    world.config.default_register = Some(RegisterName("swarm".into()));
    let den: ruma::OwnedRoomAliasId = "#persona_den:hs.test".parse().expect("an alias");
    let kind = |name: &str| RoomKind::Register(RegisterName(name.into()));
    world.config.rooms.insert(den.clone(), kind("swarm"));
    world.config.personas[0].rooms.push(den.clone());
    world.play(async |stage| {
        stage.ask("first").await;
        let cellar = stage.alice().create_room("cellar");
        stage.alice().invite(&cellar, EIR);
        stage.joins(&cellar, EIR).await;
        stage.calm().await;
        stage.ask("second").await;
        stage.alice().kick(&cellar, EIR);
        stage.calm().await;
        stage.ask("third").await;
    });
    world.config.registers.insert(RegisterName("minds".into()), Register::default());
    world.config.rooms.insert(den, kind("minds"));
    world.play(async |stage| stage.ask("fourth").await);
    assert_eq!(
        notices(&world, "eir"),
        [
            vec![],
            vec!["you are in room \"!r4\" now".to_owned()],
            vec!["you are not in room \"!r4\" any more".to_owned()],
            vec!["room \"#persona_den:hs.test\" belongs to register minds now".to_owned()],
        ]
    );
}

#[test]
fn a_turn_that_is_fed_again_after_a_crash_tells_the_same_whatever_changed_meanwhile() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    let swarm = world.play(async |stage| {
        stage.ask("first").await;
        let swarm = stage.swarm().await;
        order(stage, &fair("The fair")).await;
        stage.alice().say(&swarm, "Eir, second");
        stage.until("she thinks", || stage.thoughts("eir") == 2).await;
        swarm
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(carry_out(&world.store(), &fair("Another fair"), Millis(0))).expect("it is open");
    world.play(async |stage| {
        stage.said(&swarm, EIR, 2).await;
        stage.calm().await;
        stage.ask("third").await;
    });
    let fed = world.fed("eir");
    assert_eq!(fed[1].words, fed[2].words, "the same line again");
    assert_eq!(
        notices(&world, "eir")[2..],
        [
            vec!["campaign fair is open: \"The fair\"".to_owned()],
            vec!["campaign fair is \"Another fair\" now".to_owned()],
        ]
    );
}

#[test]
fn a_turn_that_is_put_back_has_told_what_it_told() {
    let mut world = World::new(Flavour::Synapse);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().set_state(&swarm, "m.room.topic", "", json!({ "topic": "cups" }));
        stage.bob().say(&swarm, "Eir, first");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.pass(2_000).await;
        stage.alice().say(&swarm, "stop");
        stage.pass(60_000).await;
        stage.bob().set_state(&swarm, "m.room.topic", "", json!({ "topic": "saucers" }));
        stage.alice().say(&swarm, "!persona go");
        stage.said(&swarm, EIR, 1).await;
    });
    let topic = |is: &str| vec![format!("the topic of room \"#persona_swarm:hs.test\" is \"{is}\"")];
    let mut told = notices(&world, "eir");
    assert_eq!(told.len(), 2);
    assert_eq!(told.remove(0), topic("cups"));
    assert_eq!(told.remove(0), ["the topic of room \"#persona_swarm:hs.test\" is \"saucers\" now"]);
}

#[test]
fn a_turn_that_is_put_back_unchanged_tells_nothing_again() {
    let mut world = World::new(Flavour::Synapse);
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..usual() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().set_state(&swarm, "m.room.topic", "", json!({ "topic": "cups" }));
        stage.bob().say(&swarm, "Eir, first");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.pass(2_000).await;
        for word in ["stop", "!persona go"] {
            stage.alice().say(&swarm, word);
            stage.pass(5_000).await;
        }
        stage.said(&swarm, EIR, 1).await;
    });
    let told: Vec<usize> = notices(&world, "eir").iter().map(Vec::len).collect();
    assert_eq!(told, [1, 0]);
}
