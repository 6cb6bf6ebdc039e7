//! Live minds in bounds, and leaving in peace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use persona_bridge::bridge::BridgeError;
use persona_bridge::bridge::orders::{Lever, Order};
use persona_bridge::cli::CliError;
use persona_bridge::conversation::{Persona, PersonaId};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::operate::ExitCode;
use persona_bridge::persona::{Ending, Places, Usage};
use serde_json::json;

use super::stage::{BRAGE, EIR, Stage, counts, on_both, swarm};
use super::world::{World, usual};
use crate::fake::homeserver::{Fault, Flavour};

#[test]
fn with_one_place_both_are_answered_in_turn() {
    let mut world = World::new(Flavour::Synapse);
    world.config.places.most = 1;
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_millis(300), ..usual() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for n in 0..3 {
            stage.alice().say(&swarm, &format!("Eir and Brage, number-{n}."));
            stage.said(&swarm, EIR, n + 1).await;
            stage.said(&swarm, BRAGE, n + 1).await;
        }
    });
    let mut times: Vec<u64> =
        ["eir", "brage"].iter().flat_map(|who| world.fed(who)).map(|fed| fed.at).collect();
    times.sort_unstable();
    assert_eq!(times.len(), 6);
    assert!(times.windows(2).all(|two| two[1] - two[0] >= 300), "never two at once: {times:?}");
}

/// A third Persona, whose loop is woken last.
const ZOE: &str = "@persona_zoe:hs.test";

fn with_zoe(places: Places) -> World {
    let mut world = World::new(Flavour::Synapse);
    let mut zoe = world.config.personas[0].clone();
    zoe.persona =
        Persona { id: PersonaId("zoe".into()), user: ZOE.parse().expect("a user id"), name: "Zoe".into() };
    world.config.personas.push(zoe);
    world.config.places = places;
    world
}

/// Whose mail was fed, in order.
fn order(world: &World) -> Vec<&'static str> {
    let mut fed: Vec<(u64, &str)> = ["brage", "eir", "zoe"]
        .into_iter()
        .flat_map(|who| world.fed(who).into_iter().map(move |fed| (fed.at, who)))
        .collect();
    fed.sort_unstable();
    fed.into_iter().map(|(_, who)| who).collect()
}

#[test]
fn the_next_place_goes_to_the_oldest_mail() {
    let mut world = with_zoe(Places { most: 1, thinking: 1, resident: None });
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(5), ..usual() });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let [zoes, brages] = [stage.dm(&stage.alice(), ZOE).await, stage.dm(&stage.bob(), BRAGE).await];
        stage.alice().say(&swarm, "Eir, first");
        stage.until("she thinks", || stage.thoughts("eir") == 1).await;
        stage.alice().say(&zoes, "second");
        stage.pass(200).await;
        stage.bob().say(&brages, "third");
        stage.pass(200).await;
        stage.alice().say(&swarm, "Eir, fourth");
        stage.said(&swarm, EIR, 2).await;
    });
    assert_eq!(order(&world), ["eir", "zoe", "brage", "eir"]);
}

#[test]
fn so_many_think_at_once_and_what_is_addressed_goes_before_the_beat() {
    let mut world = with_zoe(Places { most: 8, thinking: 1, resident: None });
    world.script = Arc::new(|_, _| {
        let reply = json!({ "say": [], "react": [] }).to_string();
        let outcome = Outcome::Ends(Ending::Answered { reply });
        Scripted { outcome, thinking: Duration::from_secs(40), ..usual() }
    });
    world.config.heart.beat = Duration::from_secs(600);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let thoughts = || ["brage", "eir", "zoe"].map(|who| stage.thoughts(who));
        stage.alice().say(&swarm, "Eir, Brage and Zoe, begin");
        stage.pass(180_000).await;
        assert_eq!(thoughts(), [1, 1, 1]);
        assert_eq!(stage.stats().await["minds"].as_object().map(serde_json::Map::len), Some(3), "all live");
        stage.bob().say(&swarm, "a word for the beat");
        let beat = stage.stats().await["next_beat"].as_u64().expect("one will fall");
        stage.pass(beat - stage.now() - 20_000).await;
        stage.alice().say(&swarm, "Eir, now");
        stage.pass(25_000).await;
        assert_eq!(thoughts(), [1, 2, 1], "the beat has fallen, and she thinks");
        stage.alice().say(&swarm, "Zoe, now");
        stage.pass(180_000).await;
        assert_eq!(thoughts(), [2, 2, 2]);
    });
    let fed: Vec<(String, u64)> = ["brage", "eir", "zoe"]
        .into_iter()
        .flat_map(|who| world.fed(who).into_iter().map(move |fed| (who.to_owned(), fed.at)))
        .collect();
    let mut times: Vec<u64> = fed.iter().map(|(_, at)| *at).collect();
    times.sort_unstable();
    assert!(times.windows(2).all(|two| two[1] - two[0] >= 40_000), "never two at once: {fed:?}");
    assert_eq!(order(&world)[3..], ["eir", "zoe", "brage"], "the beat was before Zoe was asked: {fed:?}");
}

#[test]
fn the_idle_longest_makes_room_where_the_memory_is_spent() {
    let mut world = with_zoe(Places { most: 8, thinking: 8, resident: Some(250) });
    world.script = Arc::new(|_, _| {
        let usage = Usage { resident: Some(100), ..Usage::default() };
        Scripted { usage, ..usual() }
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let live = async || {
            stage.calm().await;
            stage.stats().await["minds"].clone()
        };
        stage.alice().say(&swarm, "Eir, one");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().say(&swarm, "Brage, two");
        stage.said(&swarm, BRAGE, 1).await;
        assert_eq!(live().await, json!({"brage": 100, "eir": 100}));
        stage.alice().say(&swarm, "Zoe, three");
        stage.said(&swarm, ZOE, 1).await;
        assert_eq!(live().await, json!({"brage": 100, "zoe": 100}));
        stage.alice().say(&swarm, "Eir, four");
        stage.said(&swarm, EIR, 2).await;
        assert_eq!(live().await, json!({"eir": 100, "zoe": 100}));
    });
}

#[test]
fn a_mind_that_takes_too_much_memory_is_closed_after_its_turn_and_her_session_goes_on() {
    let mut world = World::new(Flavour::Synapse);
    world.config.care.recycle_rss = Some(100);
    let weight = AtomicU64::new(100);
    world.script = Arc::new(move |_, _| {
        let usage = Usage { resident: Some(weight.fetch_add(1, Ordering::Relaxed)), ..Usage::default() };
        Scripted { usage, ..usual() }
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for (number, live) in [(1, json!({"eir": 100})), (2, json!({})), (3, json!({}))] {
            stage.alice().say(&swarm, &format!("Eir, number-{number}"));
            stage.said(&swarm, EIR, number).await;
            stage.calm().await;
            assert_eq!(stage.stats().await["minds"], live, "after turn {number}");
        }
    });
    assert_eq!(world.records("eir"), (1, 0), "one session all the time");
}

/// Eir and Brage share one place, and the first of them to think ends so.
fn one_place(first: Outcome) -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.places.most = 1;
    world.stumbles([first]);
    world
}

/// Eir is asked, and then Brage answers in her place.
async fn makes_room(stage: &Stage) -> String {
    let swarm = stage.swarm().await;
    stage.alice().say(&swarm, "Eir, first");
    stage.until("she was asked", || stage.thoughts("eir") == 1).await;
    stage.pass(100).await;
    stage.alice().say(&swarm, "Brage, second");
    stage.said(&swarm, BRAGE, 1).await;
    swarm
}

#[test]
fn a_turn_that_waits_holds_no_place() {
    let (reason, retry_after) = ("plan limit".into(), Some(Duration::from_secs(3_600)));
    let mut world = one_place(Outcome::Ends(Ending::Transient { reason, retry_after }));
    world.play(async |stage| {
        let swarm = makes_room(stage).await;
        stage.pass(3_700_000).await;
        counts(&stage.home.bodies(&swarm, EIR), &[("first", 1)]);
    });
}

#[test]
fn a_turn_that_is_held_holds_no_place() {
    let mut world = one_place(Outcome::Ends(Ending::Refused { reason: "401".into() }));
    world.play(async |stage| drop(makes_room(stage).await));
}

#[test]
fn a_turn_that_the_brake_has_ended_holds_no_place() {
    let mut world = one_place(Outcome::Stalls);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, first");
        stage.until("she was asked", || stage.thoughts("eir") == 1).await;
        let brake = Order::Brake { lever: Lever::Hold, persona: Some(PersonaId("eir".into())) };
        assert_eq!(stage.order(&brake.to_json()).await.0, 200);
        stage.alice().say(&swarm, "Brage, second");
        stage.said(&swarm, BRAGE, 1).await;
        assert!(stage.home.bodies(&swarm, EIR).is_empty());
    });
}

#[test]
fn told_to_leave_she_finishes_her_turn_and_the_outbox_drains() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_millis(150), ..usual() });
        let (swarm, left) = world.play_and_leave(async |stage| {
            let swarm = stage.swarm().await;
            stage.home.fail_when(1, Fault::Limited(Duration::from_millis(600)), |seen| {
                seen.path.contains("/send/")
            });
            stage.alice().say(&swarm, "Eir, one last thing");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            swarm
        });
        counts(&world.home.bodies(&swarm, EIR), &[("one last thing", 1)]);
        assert!(left < Duration::from_secs(6), "{left:?}");
        assert_eq!(world.store().counts().outbox, 0);
        let typing: Vec<bool> = world.home.typing().into_iter().map(|shown| shown.2).collect();
        assert_eq!(typing.last(), Some(&false), "typing ends");
    });
}

#[test]
fn told_to_leave_nothing_new_is_begun() {
    let mut world = World::new(Flavour::Synapse);
    world.config.settle.quiet = Duration::from_millis(500);
    world.config.settle.cap = Duration::from_millis(500);
    let (swarm, _) = world.play_and_leave(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, too late");
        stage.pass(100).await;
        swarm
    });
    assert_eq!(world.fed("eir"), []);
    world.play(async |stage| drop(stage.said(&swarm, EIR, 1).await));
    counts(&world.home.bodies(&swarm, EIR), &[("too late", 1)]);
}

#[test]
fn a_stuck_turn_is_left_after_the_grace_and_fed_again_with_the_same_words() {
    on_both(|flavour| {
        let mut world = World::new(flavour);
        world.stumbles([Outcome::Stalls]);
        let (swarm, left) = world.play_and_leave(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, are you stuck?");
            stage.until("she thinks", || stage.thoughts("eir") == 1).await;
            swarm
        });
        assert!((Duration::from_millis(200)..Duration::from_secs(6)).contains(&left), "{left:?}");
        assert!(world.home.bodies(&swarm, EIR).is_empty());
        world.play(async |stage| {
            stage.said(&swarm, EIR, 1).await;
            stage.calm().await;
        });
        counts(&world.home.bodies(&swarm, EIR), &[("are you stuck?", 1)]);
        let fed = world.fed("eir");
        assert_eq!(fed.len(), 2);
        assert_eq!(fed[0].words, fed[1].words, "the same line again, not a new attempt");
    });
}

#[test]
fn what_the_outbox_cannot_send_in_its_moment_is_sent_by_the_next_life() {
    let mut world = World::new(Flavour::Synapse);
    let (swarm, left) = world.play_and_leave(async |stage| {
        let swarm = stage.swarm().await;
        stage.home.fail_when(1, Fault::Limited(Duration::from_secs(60)), |seen| seen.path.contains("/send/"));
        stage.alice().say(&swarm, "Eir, hurry");
        stage.calm().await;
        swarm
    });
    assert!(left < Duration::from_secs(10), "{left:?}");
    assert_eq!(world.store().counts().outbox, 1);
    world.play(async |stage| drop(stage.said(&swarm, EIR, 1).await));
    counts(&world.home.bodies(&swarm, EIR), &[("hurry", 1)]);
}

#[test]
fn a_task_that_panics_ends_the_service_with_a_failing_code() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, _| panic!("a fault of the program"));
    world.deed(300, |home| {
        let alice = home.user("alice");
        let room = swarm(home).expect("it was made");
        alice.join(&room);
        alice.say(&room, "Eir, hello");
    });
    let error = world.refuses();
    assert!(matches!(&error, BridgeError::Task { .. }), "{error:?}");
    assert_eq!(CliError::Bridge(error).code(), ExitCode::Failed);
}
