//! What she remembers: kept with the turn, before her in the next generation, and never where it does not belong.

use std::sync::{Arc, Mutex};

use persona_bridge::bridge::RoomKind;
use persona_bridge::conversation::{Level, Register, RegisterName};
use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use persona_bridge::persona::memory::DmMemories;
use serde_json::{Value, json};

use super::stage::{BOT, EIR, Stage, counts};
use super::taken_back::newest;
use super::world::{Fed, World, usual};
use crate::fake::homeserver::Flavour;

/// The registers that are shipped for rooms.
const REGISTERS: [&str; 3] = ["swarm", "minds", "burn"];

fn replies(reply: &Value) -> Scripted {
    Scripted { outcome: Outcome::Ends(Ending::Answered { reply: reply.to_string() }), ..usual() }
}

/// The lines about memories before the mail.
fn reminded(words: &str) -> &str {
    let Some(begin) = words.find("# you remember\n") else { return "" };
    words[begin..].find("\n#").map_or("", |end| &words[begin..=begin + end])
}

#[test]
fn what_she_was_told_to_remember_stands_before_her_in_the_next_generation() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, remember that my cat is Tom");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().say(&swarm, "Eir, what do you remember?");
        assert!(stage.said(&swarm, EIR, 2).await[1].contains("my cat is Tom"));
    });
    world.delete_minds();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, what do you remember?");
        assert!(stage.said(&swarm, EIR, 3).await[2].contains("\"my cat is Tom\""));
        stage.alice().say(&swarm, "Eir, and now?");
        stage.said(&swarm, EIR, 4).await;
    });
    let lines: Vec<String> = world.fed("eir").iter().map(|fed| reminded(&fed.words).to_owned()).collect();
    let expect = "(in register swarm; about <@alice:hs.test>): my cat is Tom\n";
    assert!(lines.iter().any(|line| line.ends_with(expect)), "{lines:?}");
    counts(&lines, &[("# you remember", 1), ("my cat is Tom", 1)]);
}

#[test]
fn what_a_crash_made_her_answer_again_is_remembered_once() {
    let mut world = World::new(Flavour::Synapse);
    world.stumbles([Outcome::DiesAnswered]);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, remember that my cat is Tom");
        stage.said(&swarm, EIR, 1).await;
        stage.calm().await;
    });
    let eir = &world.config.personas[0].persona.id;
    assert_eq!(world.store().memories(eir, |memories| memories.all().count()), 1);
}

#[test]
fn somebody_who_appears_in_a_session_brings_what_is_remembered_of_them() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        for number in 0..6 {
            stage.alice().say(&swarm, &format!("Eir, remember that nothing-{number} happened"));
            stage.said(&swarm, EIR, number + 1).await;
        }
        stage.bob().say(&swarm, "Eir, remember that I am afraid of geese");
        stage.said(&swarm, EIR, 7).await;
        for number in 7..12 {
            stage.alice().say(&swarm, &format!("Eir, remember that nothing-{number} happened"));
            stage.said(&swarm, EIR, number + 1).await;
        }
    });
    world.delete_minds();
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        stage.alice().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 13).await;
        stage.bob().say(&swarm, "Eir, hello");
        stage.said(&swarm, EIR, 14).await;
        stage.bob().say(&swarm, "Eir, again");
        stage.said(&swarm, EIR, 15).await;
    });
    let fed = world.fed("eir");
    let last: Vec<bool> =
        fed[fed.len() - 3..].iter().map(|fed| reminded(&fed.words).contains("geese")).collect();
    assert_eq!(last, [false, true, false]);
}

#[test]
fn what_was_learned_from_a_message_that_is_taken_back_does_not_come_back() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let slip = stage.alice().say(&swarm, "Eir, remember that I dyed my hair");
        stage.said(&swarm, EIR, 1).await;
        stage.alice().redact(&swarm, &slip);
        stage.calm().await;
    });
    let eir = &world.config.personas[0].persona.id;
    assert_eq!(world.store().memories(eir, |memories| memories.all().count()), 0);
}

#[test]
fn she_forgets_by_label_only_where_she_learned_it() {
    let mut world = World::new(Flavour::Synapse);
    world.script = Arc::new(|_, words| {
        let (say, react) = (json!([{"text": "ok"}]), json!([]));
        if words.contains("forget n") {
            let label = &words[words.rfind("forget n").unwrap_or(0) + "forget ".len()..];
            return replies(&json!({"say": say, "react": react, "forget": [label.trim()]}));
        }
        if words.contains("could not be used") {
            replies(&json!({"say": say, "react": react}))
        } else {
            usual()
        }
    });
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "remember that I am ill");
        stage.said(&dm, EIR, 1).await;
        stage.bob().say(&swarm, "Eir, forget n1");
        stage.said(&swarm, EIR, 1).await;
        let refused = "\"n1\" is not the label of a memory that you can forget here";
        assert!(stage.words("eir").contains(refused), "{}", stage.words("eir"));
        stage.bob().say(&swarm, "Eir, forget n77");
        stage.said(&swarm, EIR, 2).await;
        assert!(stage.words("eir").contains("\"n77\" is not the label of a memory that you can forget here"));
        assert!(stage.alice().say(&dm, "what do you remember?").starts_with('$'));
        assert!(stage.said(&dm, EIR, 2).await[1].contains("I am ill"), "nobody else has made her forget it");
        stage.alice().say(&dm, "forget n1");
        stage.said(&dm, EIR, 3).await;
    });
    let eir = &world.config.personas[0].persona.id;
    assert_eq!(world.store().memories(eir, |memories| memories.all().count()), 0);
}

const ASK: &str = "what do you remember about me?";
const FORGET: &str = "forget what you remember about me";
const NOTHING: &str = "Nothing is remembered about you that can be said here.";

#[test]
fn the_bot_tells_people_what_is_remembered_about_them_alone_and_forgets_it() {
    let mut world = World::new(Flavour::Synapse);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let dm = stage.dm(&stage.alice(), EIR).await;
        stage.alice().say(&dm, "remember that I am ill");
        stage.said(&dm, EIR, 1).await;
        stage.alice().say(&swarm, "Eir, remember that my cat is Tom");
        stage.said(&swarm, EIR, 1).await;
        stage.bob().say(&swarm, "Eir, remember that I fear geese");
        stage.said(&swarm, EIR, 2).await;

        let desk = stage.dm(&stage.alice(), BOT).await;
        stage.alice().say(&desk, ASK);
        let told = stage.said(&desk, BOT, 1).await.remove(0);
        counts(&[told], &[("- Eir: I am ill", 1), ("- Eir: my cat is Tom", 1), ("geese", 0), ("Brage", 0)]);
        stage.alice().say_to(&swarm, BOT, ASK);
        let told = stage.said(&swarm, BOT, 1).await.remove(0);
        counts(&[told], &[("I am ill", 0), ("my cat is Tom", 1), ("geese", 0)]);

        stage.bob().say_to(&swarm, BOT, FORGET);
        assert!(stage.said(&swarm, BOT, 2).await[1].contains("is forgotten"));
        stage.bob().say_to(&swarm, BOT, ASK);
        assert_eq!(stage.said(&swarm, BOT, 3).await[2], NOTHING);
        stage.alice().say(&desk, FORGET);
        stage.said(&desk, BOT, 2).await;
        stage.alice().say(&desk, ASK);
        assert_eq!(stage.said(&desk, BOT, 3).await[2], NOTHING);
    });
    let eir = &world.config.personas[0].persona.id;
    assert_eq!(world.store().memories(eir, |memories| memories.all().count()), 0);
}

#[test]
fn the_bot_is_asked_by_mention_or_alone_and_by_nobody_who_is_blocked() {
    let mut world = World::new(Flavour::Synapse);
    world.config.permissions.0.insert("@mallory:hs.test".to_owned(), Level::Block);
    world.play(async |stage| {
        let swarm = stage.swarm().await;
        let mallory = stage.home.user("mallory");
        mallory.join(&swarm);
        mallory.say_to(&swarm, BOT, FORGET);
        stage.alice().say(&swarm, ASK);
        let desk = stage.dm(&stage.alice(), BOT).await;
        stage.alice().invite(&desk, &stage.bob().id);
        stage.bob().join(&desk);
        stage.bob().say(&desk, ASK);
        stage.alice().say(&desk, "hello");
        stage.calm().await;
        assert_eq!(stage.home.bodies(&swarm, BOT), [""; 0]);
        assert_eq!(stage.home.bodies(&desk, BOT), [""; 0]);
        stage.bob().say_to(&desk, BOT, ASK);
        assert_eq!(stage.said(&desk, BOT, 1).await, [NOTHING]);
    });
}

#[test]
fn a_question_is_answered_once_whenever_the_power_was_cut() {
    for life in (1..40).step_by(3) {
        let mut world = World::new(Flavour::Synapse);
        let desk = world.play(async |stage| {
            stage.swarm().await;
            let desk = stage.dm(&stage.alice(), BOT).await;
            stage.alice().say(&desk, ASK);
            stage.pass(life).await;
            desk
        });
        world.play(async |stage| {
            stage.said(&desk, BOT, 1).await;
            stage.calm().await;
        });
        assert_eq!(world.home.bodies(&desk, BOT), [NOTHING], "cut after {life} ms");
    }
}

#[test]
fn what_was_told_in_a_direct_room_is_known_in_a_room_after_a_restart_only_where_everywhere_is_allowed() {
    for (dm, knows) in [(DmMemories::Everywhere, true), (DmMemories::DmOnly, false)] {
        let mut world = World::new(Flavour::Synapse);
        world.config.dm_memories = dm;
        world.play(async |stage| {
            let room = stage.dm(&stage.alice(), EIR).await;
            stage.alice().say(&room, "remember that my cat is Tom");
            stage.said(&room, EIR, 1).await;
        });
        world.delete_minds();
        world.play(async |stage| {
            let swarm = stage.swarm().await;
            stage.bob().say(&swarm, "Eir, what do you remember?");
            assert_eq!(stage.said(&swarm, EIR, 1).await[0].contains("my cat is Tom"), knows, "{dm:?}");
        });
    }
}

/// A model that quotes its whole request into every room it can name, and remembers it; a fault of that it mends by quoting
/// only where it may. Each say bears the lane that woke it.
struct Parrot {
    rooms: Vec<String>,
    last: String,
    thoughts: usize,
    answered: usize,
    ends: Vec<usize>,
}

/// How often the parrot's session ends.
const ENDS: [usize; 3] = [91, 182, 273];

impl Parrot {
    fn think(&mut self, words: &str) -> Scripted {
        self.thoughts += 1;
        if self.ends.first() == Some(&self.thoughts) {
            self.ends.remove(0);
            let ending = Ending::SessionGone { reason: "a test".into() };
            return Scripted { outcome: Outcome::Ends(ending), ..usual() };
        }
        let fault = words.starts_with("# your last reply");
        self.answered += usize::from(fault);
        if !fault {
            self.last = words.to_owned();
        }
        let text = format!("woken by {}: {}", lane(&self.last), self.last);
        let everywhere = self.rooms.iter().map(|room| json!({"text": text, "room": room}));
        let say: Vec<Value> = if fault { vec![json!({"text": text})] } else { everywhere.collect() };
        let chars: Vec<char> = self.last.chars().collect();
        let chunks = chars.chunks(900).take(8).map(|chunk| chunk.iter().collect::<String>());
        let remember: Vec<Value> = chunks
            .map(|text| json!({"text": text, "about": ["@alice:hs.test", "@bob:hs.test"], "salience": 1}))
            .collect();
        let mut reply = json!({"say": say, "react": [], "remember": remember});
        if fault && lane(&self.last) != "room" && self.answered.is_multiple_of(7) {
            let text = format!("canary-of-{} in a reminder", lane(&self.last));
            reply["remind"] = json!([{ "in": "1m", "text": text }]);
        }
        replies(&reply)
    }
}

/// Whose lane words belong to: a person's direct room, or a register. Where nothing but a reminder stands it is that in which
/// it was set.
fn lane(words: &str) -> &str {
    let room = words.lines().find_map(|line| line.strip_prefix("room \"dm with @"));
    let set = || {
        let reminder = words.strip_prefix("# a reminder of yours: ")?.split_once("canary-of-")?;
        reminder.1.split_once(' ').map(|(name, _)| name)
    };
    room.and_then(|room| room.split_once(':')).map(|(name, _)| name).or_else(set).unwrap_or("room")
}

/// The mail, the room's earlier lines and what is told of a lost session, without what she herself had said there.
fn without_her_own(words: &str) -> String {
    let mut own = false;
    let mail = words.replacen(reminded(words), "", 1);
    let kept = mail.lines().filter(|line| {
        own = if line.starts_with('|') {
            own
        } else {
            line.starts_with("said ") || line.starts_with("earlier") && line.contains("<@persona_eir:")
        };
        !own
    });
    kept.map(|line| format!("{line}\n")).collect()
}

fn speaks(words: &str, who: &str) -> bool {
    let sender = format!("<@{who}:hs.test>");
    words.lines().any(|line| {
        line.starts_with('m') && line.split("> ").next().unwrap_or(line).contains(&sender[..sender.len() - 1])
    })
}

/// No word of a direct room stands in a line that was written for another lane, but where the value allows.
fn check_line(dm: DmMemories, fed: &Fed) {
    let words = fed.words.as_str();
    for (who, canary) in [("alice", "canary-of-alice"), ("bob", "canary-of-bob")] {
        if lane(words) == who {
            continue;
        }
        match dm {
            DmMemories::DmOnly => assert!(!words.contains(canary), "{words}"),
            DmMemories::SamePerson | DmMemories::Everywhere => {
                assert!(!without_her_own(words).contains(canary), "{words}");
                let allowed = dm == DmMemories::Everywhere || speaks(words, who);
                assert!(allowed || !reminded(words).contains(canary), "{words}");
            }
        }
    }
}

/// The alias of a register's room.
fn alias(register: &str) -> String {
    format!("#persona_{register}:hs.test")
}

/// A world in which Eir has a room of each register, all as they are shipped.
fn with_all_registers() -> World {
    let mut world = World::new(Flavour::Synapse);
    let shipped = |name: &str| Some((RegisterName(name.to_owned()), Register::shipped(name)?));
    world.config.registers = Register::SHIPPED.iter().filter_map(|name| shipped(name)).collect();
    let room = |register: &str| alias(register).try_into().expect("an alias");
    let kind = |register: &str| RoomKind::Register(RegisterName(register.to_owned()));
    world.config.rooms = REGISTERS.map(|register| (room(register), kind(register))).into();
    world.config.personas[0].rooms = REGISTERS.map(room).into();
    // So much is said within moments that a limit would hold most of it.
    world.config.among.room = None;
    world
}

/// What somebody says in one of many turns: in her direct rooms, and in the rooms of the registers in turn.
fn say_in_turn(stage: &Stage, turn: usize, dms: &[String; 2]) {
    let (person, who) = if turn.is_multiple_of(2) { (stage.alice(), "alice") } else { (stage.bob(), "bob") };
    let dm = &dms[turn % 2];
    match turn % 5 {
        0 | 3 => person.say(dm, &format!("canary-of-{who}-{turn}")),
        _ => {
            let room = stage.home.alias(&alias(REGISTERS[turn % 3])).expect("it is made");
            person.say(&room, &format!("Eir, word-{turn} of {who}"))
        }
    };
    if turn % 20 == 10 || turn % 20 == 11 {
        person.react(dm, &newest(stage, dm), &format!("canary-of-{who}"));
    }
    if turn % 20 < 2 {
        let topic = json!({"topic": format!("canary-of-{who}-topic-{turn}")});
        person.set_state(dm, "m.room.topic", "", topic);
    }
}

fn no_word_of_a_direct_room_comes_where_it_must_not(dm: DmMemories) {
    let mut world = with_all_registers();
    world.config.dm_memories = dm;
    let parrot = Parrot {
        rooms: REGISTERS.map(alias).into(),
        last: String::new(),
        thoughts: 0,
        answered: 0,
        ends: ENDS.to_vec(),
    };
    let parrot = Arc::new(Mutex::new(parrot));
    let thinks = parrot.clone();
    world.script = Arc::new(move |_, words| thinks.lock().expect("not poisoned").think(words));
    let rooms = world.play(async |stage| {
        stage.swarm().await;
        let mut rooms = Vec::new();
        for register in REGISTERS {
            stage.until("the room is made", || stage.home.alias(&alias(register)).is_some()).await;
            let room = stage.home.alias(&alias(register)).expect("it is made");
            stage.joins(&room, EIR).await;
            [stage.alice(), stage.bob()].iter().for_each(|person| drop(person.join(&room)));
            rooms.push(room);
        }
        let dms = [stage.dm(&stage.alice(), EIR).await, stage.dm(&stage.bob(), EIR).await];
        parrot.lock().expect("not poisoned").rooms.extend(dms.clone());
        for turn in 0..210 {
            say_in_turn(stage, turn, &dms);
            let answered = || parrot.lock().expect("not poisoned").answered;
            stage.rest("she answers", || answered() > turn).await;
            // Reminders come due in between.
            stage.pass(1_000).await;
        }
        (rooms, dms)
    });
    let fed = world.fed("eir");
    let firsts = fed.iter().filter(|fed| !fed.words.starts_with("# your last reply")).count();
    assert!(firsts >= 200 && parrot.lock().expect("not poisoned").ends.is_empty(), "{firsts}");
    fed.iter().for_each(|fed| check_line(dm, fed));
    for (line, canary) in [("reminder r", "in a reminder"), ("# reactions to your words: ", "\" 1")] {
        let told = |fed: &&Fed| {
            fed.words
                .lines()
                .any(|of| of.starts_with(line) && of.contains("canary-of") && of.contains(canary))
        };
        assert!(fed.iter().filter(told).count() > 1, "the test would see a {line}");
    }
    let recalled =
        fed.iter().filter(|fed| lane(&fed.words) == "room" && reminded(&fed.words).contains("canary-of"));
    assert_eq!(recalled.count() > 0, dm != DmMemories::DmOnly, "the test would see it");
    let (rooms, [alice, bob]) = rooms;
    let direct = [(alice, ["room", "bob"]), (bob, ["room", "alice"])];
    for (room, others) in rooms.into_iter().map(|room| (room, ["alice", "bob"])).chain(direct) {
        let said = world.home.bodies(&room, EIR);
        assert!(!said.is_empty());
        for text in said.iter().filter(|text| text.starts_with("woken by ")) {
            assert!(others.iter().all(|lane| !text.starts_with(&format!("woken by {lane}:"))), "{text}");
        }
    }
}

#[test]
fn no_word_of_a_direct_room_leaves_it() {
    no_word_of_a_direct_room_comes_where_it_must_not(DmMemories::DmOnly);
}

#[test]
fn what_a_person_confided_is_recalled_elsewhere_only_while_they_speak() {
    no_word_of_a_direct_room_comes_where_it_must_not(DmMemories::SamePerson);
}

#[test]
fn where_everywhere_is_allowed_direct_rooms_come_in_as_memories_alone() {
    no_word_of_a_direct_room_comes_where_it_must_not(DmMemories::Everywhere);
}
