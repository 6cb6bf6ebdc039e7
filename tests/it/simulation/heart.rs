//! The shared beat: what nobody is woken for is heard at it, by one Persona at a time.

use std::sync::Arc;
use std::time::Duration;

use persona_bridge::conversation::{Level, RegisterName, Wakes};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::{Ending, Heart, Limit};
use serde_json::{Value, json};

use super::stage::{BRAGE, EIR, Stage, counts};
use super::world::{World, usual};
use crate::fake::homeserver::Flavour;

const MINUTE: u64 = 60_000;

/// A world in which a beat falls every ten minutes while nobody votes, and all say nothing.
fn world() -> World {
    let mut world = World::new(Flavour::Synapse);
    world.config.heart.beat = Duration::from_secs(600);
    world.script = Arc::new(|_, _| replies(&json!({})));
    world
}

/// A reply with these keys that says nothing, or what is among them.
fn replies(keys: &Value) -> Scripted {
    let mut reply = json!({ "say": [], "react": [] });
    reply.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
}

fn thoughts(stage: &Stage) -> [usize; 2] {
    ["eir", "brage"].map(|who| stage.thoughts(who))
}

/// When each line was fed, in minutes, and to whom.
fn beats(world: &World) -> Vec<(String, u64)> {
    let mut fed: Vec<_> = ["eir", "brage"].into_iter().flat_map(|who| world.fed(who)).collect();
    fed.sort_by_key(|fed| fed.at);
    fed.into_iter().map(|fed| (fed.who, fed.at / MINUTE)).collect()
}

#[test]
fn unaddressed_mail_is_heard_at_the_beat_by_one_and_a_beat_without_mail_asks_nobody() {
    let mut world = world();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.pass(35 * MINUTE).await;
        assert_eq!(thoughts(stage), [0, 0], "beats without mail");
        stage.bob().say(&swarm, "nice weather");
        stage.pass(4 * MINUTE).await;
        assert_eq!(thoughts(stage), [0, 0], "it waits for the beat");
        stage.pass(2 * MINUTE).await;
        assert_eq!(thoughts(stage), [0, 1], "one turn a beat, ties by id");
        stage.pass(10 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1], "the other one at the next");
        stage.pass(60 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1]);
    });
    counts(&[world.words("eir")], &[("nice weather", 1)]);
    assert_eq!(beats(&world), [("brage".to_owned(), 40), ("eir".to_owned(), 50)]);
}

#[test]
fn who_waits_for_long_or_thinks_for_long_keeps_the_beat_from_nobody() {
    let retry_after = Some(Duration::from_secs(24 * 3600));
    let limit = Outcome::Ends(Ending::Transient { reason: "the plan's limit".into(), retry_after });
    let limited = Scripted { outcome: limit, ..usual() };
    let slow = Scripted { thinking: Duration::from_secs(24 * 3600), ..usual() };
    for thought in [limited, slow] {
        let mut world = world();
        world.script =
            Arc::new(move |who, _| if who == "eir" { thought.clone() } else { replies(&json!({})) });
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.alice().say(&swarm, "Eir, hello");
            stage.pass(25 * MINUTE).await;
            for n in 2..5 {
                stage.bob().say(&swarm, "chat");
                stage.pass(25 * MINUTE).await;
                assert_eq!(thoughts(stage), [1, n]);
            }
        });
    }
}

#[test]
fn a_beat_hears_nothing_of_a_room_that_is_full() {
    let mut world = world();
    world.config.heart.beat = Duration::from_secs(60);
    world.config.among.room = Some(Limit { most: 2, within: Duration::from_secs(600) });
    world.script = Arc::new(|_, _| replies(&json!({ "say": [{ "text": "hm" }] })));
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for _ in 0..60 {
            stage.bob().say(&swarm, "chat");
            stage.pass(MINUTE).await;
        }
        let [eir, brage] = thoughts(stage);
        assert!((10..=14).contains(&(eir + brage)), "{eir} and {brage} turns in an hour");
        assert_eq!(stage.stats().await["outbox"], 0);
    });
}

#[test]
fn two_personas_alternate_while_people_chat() {
    let mut world = world();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for n in 0..80 {
            stage.bob().say(&swarm, &format!("chat-{n};"));
            stage.pass(MINUTE).await;
        }
    });
    let who: Vec<String> = beats(&world).into_iter().map(|(who, _)| who).collect();
    assert_eq!(who.len(), 8, "one turn a beat");
    assert!(who.windows(2).all(|two| two[0] != two[1]), "{who:?}");
    counts(&[world.words("eir")], &[("chat-0;", 1), ("chat-50;", 1)]);
}

#[test]
fn votes_shorten_and_lengthen_the_beat() {
    let mut world = world();
    world.script = Arc::new(|_, words| {
        let tempo = if words.contains("hurry") { "2m" } else { "1h" };
        replies(&json!({ "pulse": { "tempo": tempo, "urgency": 0 } }))
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, hurry");
        stage.pass(5 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1], "addressed, and one at the beat");
        stage.bob().say(&swarm, "chat");
        stage.pass(4 * MINUTE).await;
        assert_eq!(thoughts(stage), [2, 2], "the lower of both votes");
        stage.bob().say(&swarm, "more chat");
        stage.pass(55 * MINUTE).await;
        assert_eq!(thoughts(stage), [2, 2], "both have voted for an hour by now");
        stage.pass(10 * MINUTE).await;
        assert_eq!(thoughts(stage), [2, 3]);
    });
}

#[test]
fn who_is_urgent_goes_first() {
    let mut world = world();
    world.script = Arc::new(|who, _| {
        let urgency = if who == "eir" { 500 } else { 0 };
        replies(&json!({ "pulse": { "urgency": urgency } }))
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir and Brage, hello");
        stage.pass(2 * MINUTE).await;
        stage.bob().say(&swarm, "chat");
        stage.pass(9 * MINUTE).await;
        assert_eq!(thoughts(stage), [2, 1]);
    });
}

#[test]
fn silence_wakes_so_often_a_day_and_says_that_it_is_a_scheduled_wake() {
    let mut world = world();
    world.config.heart = Heart { wake_on_silence: true, wakes_per_day: 3, ..world.config.heart };
    world.script = Arc::new(|_, words| {
        let says =
            if words.starts_with("# a scheduled wake") { json!([{ "text": "so quiet" }]) } else { json!([]) };
        replies(&json!({ "say": says }))
    });
    let wakes = |world: &World| [world.words("eir"), world.words("brage")].join("");
    let line = "# a scheduled wake: nothing new was said in register swarm";
    let swarm = world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.pass(10 * 60 * MINUTE).await;
        swarm
    });
    counts(&[wakes(&world)], &[(line, 3)]);
    let said = [EIR, BRAGE].map(|who| world.home.bodies(&swarm, who)).concat();
    assert_eq!(said, ["so quiet"; 3], "in the only room of the lane");
    world.play(async |stage| stage.pass(9 * 60 * MINUTE).await);
    counts(&[wakes(&world)], &[(line, 6)]);
}

#[test]
fn no_silence_wakes_her_for_a_room_in_which_she_is_stopped_or_that_is_full() {
    let mut world = world();
    world.config.heart = Heart { wake_on_silence: true, wakes_per_day: 3, ..world.config.heart };
    world.config.among.room = Some(Limit { most: 1, within: Duration::from_secs(5 * 3600) });
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    world.script = Arc::new(|_, _| replies(&json!({ "say": [{ "text": "so quiet" }] })));
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "stop");
        stage.pass(120 * MINUTE).await;
        assert_eq!(thoughts(stage), [0, 0], "it is stopped");
        stage.alice().say(&swarm, "!persona go");
        stage.pass(30 * MINUTE).await;
        assert_eq!(thoughts(stage).iter().sum::<usize>(), 1, "and full from then on");
        stage.pass(120 * MINUTE).await;
        assert_eq!(thoughts(stage).iter().sum::<usize>(), 1);
        stage.pass(180 * MINUTE).await;
        assert_eq!(thoughts(stage).iter().sum::<usize>(), 2, "it bears more");
    });
}

#[test]
fn a_room_where_nothing_wakes_is_heard_at_the_beat() {
    let mut world = world();
    let swarm = RegisterName("swarm".into());
    world.config.registers.get_mut(&swarm).unwrap().heed.wakes = Wakes::Nobody;
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, hello");
        stage.pass(5 * MINUTE).await;
        assert_eq!(thoughts(stage), [0, 0]);
        stage.pass(16 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1]);
    });
}

#[test]
fn an_admin_who_names_her_wakes_her_off_the_beat_whatever_the_register_says() {
    let mut world = world();
    world.config.permissions.0.insert("@alice:hs.test".to_owned(), Level::Admin);
    let heed = &mut world.config.registers.get_mut(&RegisterName("swarm".into())).unwrap().heed;
    (heed.wakes, heed.names_address) = (Wakes::Nobody, false);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "Eir, hello");
        stage.alice().say(&swarm, "their weather");
        stage.pass(MINUTE).await;
        assert_eq!(thoughts(stage), [0, 0]);
        stage.alice().say(&swarm, "what does eir think?");
        stage.pass(MINUTE).await;
        assert_eq!(thoughts(stage), [1, 0]);
    });
    counts(&[world.words("eir")], &[("(to you): what does eir think?", 1), ("(to you)", 1)]);
}

#[test]
fn what_waits_for_the_beat_comes_along_with_an_addressed_turn_and_is_not_heard_again() {
    let mut world = world();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "nice weather");
        stage.pass(MINUTE).await;
        stage.alice().say(&swarm, "Eir and Brage, hello");
        stage.pass(30 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1]);
    });
    counts(&[world.words("eir")], &[("nice weather", 1)]);
}

#[test]
fn nobody_is_picked_before_she_has_cooled_down() {
    let mut world = world();
    world.config.heart =
        Heart { beat: Duration::from_secs(120), cooldown: Duration::from_secs(300), ..world.config.heart };
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir and Brage, hello");
        stage.pass(MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1]);
        stage.bob().say(&swarm, "chat");
        stage.pass(3 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1], "two beats are due by now");
        stage.pass(2 * MINUTE).await;
        let [eir, brage] = thoughts(stage);
        assert_eq!(eir + brage, 3, "as soon as she has cooled down");
    });
}

#[test]
fn after_a_time_away_one_beat_falls() {
    let mut world = world();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "good night");
        stage.calm().await;
    });
    world.away(Duration::from_secs(24 * 3_600));
    world.play(async |stage| {
        stage.pass(5 * MINUTE).await;
        let [eir, brage] = thoughts(stage);
        assert_eq!(eir + brage, 1);
        stage.pass(10 * MINUTE).await;
        assert_eq!(thoughts(stage), [1, 1]);
    });
}

/// The power is cut around the beat, a little later each time: the turn is neither lost nor thought twice.
#[test]
fn a_power_cut_around_the_beat_neither_loses_nor_doubles_the_turn() {
    for cut in 0..45 {
        let mut world = world();
        world.script = Arc::new(|_, _| replies(&json!({ "say": [{ "text": "heard" }] })));
        world.config.personas.truncate(1);
        world.play(async |stage| {
            let swarm = stage.home.alias("#persona_swarm:hs.test");
            stage
                .until("she joins", || {
                    swarm.is_some() || stage.home.alias("#persona_swarm:hs.test").is_some()
                })
                .await;
            let swarm = stage.home.alias("#persona_swarm:hs.test").unwrap();
            stage.joins(&swarm, EIR).await;
            stage.bob().join(&swarm);
            stage.pass(50).await;
            stage.bob().say(&swarm, "nice weather");
            let left = 10 * MINUTE - (stage.now() - 1_800_000_000_000);
            stage.pass(left - 5 + cut).await;
        });
        world.play(async |stage| stage.pass(25 * MINUTE).await);
        let swarm = world.home.alias("#persona_swarm:hs.test").unwrap();
        assert_eq!(world.home.bodies(&swarm, EIR), ["heard"], "cut {cut}");
        let mut words: Vec<String> = world.fed("eir").into_iter().map(|fed| fed.words).collect();
        words.dedup();
        assert_eq!(words.len(), 1, "cut {cut}: one turn, however often it is fed: {words:?}");
        assert!(words[0].contains("nice weather"), "cut {cut}: {}", words[0]);
    }
}

/// Somebody asks Brage every five seconds for so many minutes, and he is never done, with one place to think.
async fn asks_brage_without_end(stage: &Stage, swarm: &str, minutes: u64) {
    for line in 0..minutes * 12 {
        stage.alice().say(swarm, &format!("Brage, {line}?"));
        stage.pass(5_000).await;
    }
}

#[test]
fn a_beat_does_not_wait_without_end_for_a_place_to_think() {
    let mut world = world();
    world.config.places.thinking = 1;
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..replies(&json!({})) });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.bob().say(&swarm, "nice weather");
        asks_brage_without_end(stage, &swarm, 9).await;
        assert_eq!(stage.thoughts("eir"), 0, "what is addressed goes first");
        asks_brage_without_end(stage, &swarm, 6).await;
        assert_eq!(stage.thoughts("eir"), 1, "it has waited for longer than a beat");
    });
    counts(&[world.words("eir")], &[("nice weather", 1)]);
}

#[test]
fn a_wake_of_silence_does_not_wait_without_end_for_a_place_to_think() {
    let mut world = world();
    world.config.places.thinking = 1;
    world.config.heart.wake_on_silence = true;
    world.script = Arc::new(|_, _| Scripted { thinking: Duration::from_secs(10), ..replies(&json!({})) });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let dm = stage.dm(&stage.bob(), BRAGE).await;
        for line in 0..22 * 12 {
            stage.bob().say(&dm, &format!("{line}?"));
            if line == 15 * 12 {
                stage.alice().say(&swarm, "nice weather");
            }
            stage.pass(5_000).await;
            if line == 19 * 12 {
                assert_eq!(stage.thoughts("eir"), 0, "what is addressed goes first");
            }
        }
        assert_eq!(stage.thoughts("eir"), 1, "it has waited for longer than a beat");
    });
    counts(&[world.words("eir")], &[("# a scheduled wake", 1)]);
}

#[test]
fn a_due_reminder_thinks_in_its_turn_with_what_is_addressed() {
    let mut world = world();
    world.config.places.thinking = 1;
    world.script = Arc::new(|who, words| {
        let sets = who == "eir" && words.contains("Eir, begin");
        let remind = if sets { json!([{ "in": "3m", "text": "tea" }]) } else { json!([]) };
        Scripted { thinking: Duration::from_secs(10), ..replies(&json!({ "remind": remind })) }
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, begin");
        stage.until("she is asked", || stage.thoughts("eir") == 1).await;
        asks_brage_without_end(stage, &swarm, 5).await;
        assert_eq!(stage.thoughts("eir"), 2);
    });
    counts(&[world.words("eir")], &[("# a reminder of yours", 0), ("reminder r1 ", 1)]);
}
