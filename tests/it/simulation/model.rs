//! Random scenes with random faults and crashes, held against a model of who must be answered how often.
//!
//! A scene is a function of its seed alone. One that fails names it; put it into [`REMEMBERED`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use persona_bridge::mind::scripted::{Outcome, Scripted};
use persona_bridge::persona::Ending;
use serde_json::json;

use super::stage::{BRAGE, EIR, is_joined, swarm};
use super::world::{World, usual};
use crate::company::Dice;
use crate::fake::homeserver::{FakeHomeserver, Fault, Flavour, Seen};

/// Seeds that once showed something, kept for ever.
const REMEMBERED: &[u64] = &[1_072];
/// How many further scenes are played on each homeserver at scale 1.
const SCENES: u64 = 30;
/// Everything random happens before this time, in ms.
const NOISE: u64 = 4_000;

/// The rooms of a scene.
#[derive(Clone)]
struct Rooms {
    swarm: String,
    alices: String,
    bobs: String,
}

/// What the model says of a word: where, whose answer, how often at least and at most.
struct Expected {
    room: String,
    who: &'static str,
    word: String,
    least: usize,
    most: usize,
    said: u64,
}

impl Expected {
    /// How often it is answered so far.
    fn times(&self, home: &FakeHomeserver) -> usize {
        home.bodies(&self.room, self.who).join("\n").matches(&self.word).count()
    }
}

/// A scene in the making.
struct Scene {
    dice: Dice,
    world: World,
    rooms: Rooms,
    expected: Vec<Expected>,
    /// New words for a message, which may stand in its place or behind it.
    edited: std::collections::BTreeSet<String>,
    words: u64,
    /// Whether the homeserver loses what it holds: mail that is found later may then be overtaken.
    loses: bool,
}

impl Scene {
    fn new(flavour: Flavour, seed: u64) -> Self {
        let mut world = World::new(flavour);
        world.config.reconcile = Duration::from_secs(2);
        let (alices, bobs) = world.play(async |stage| {
            stage.swarm().await;
            (stage.dm(&stage.alice(), EIR).await, stage.dm(&stage.bob(), BRAGE).await)
        });
        let rooms = Rooms { swarm: swarm(&world.home).expect("it was made"), alices, bobs };
        let (expected, edited) = (Vec::new(), std::collections::BTreeSet::new());
        let mut scene = Self { dice: Dice(seed), world, rooms, expected, edited, words: 0, loses: false };
        scene.stumble();
        scene
    }

    /// Minds think for a random time and sometimes fail in a way that is not the message's fault.
    fn stumble(&mut self) {
        let dice = Mutex::new(Dice(self.dice.roll(u64::MAX)));
        self.world.script = Arc::new(move |_, _| {
            let mut dice = dice.lock().expect("not poisoned");
            let outcome = match dice.roll(12) {
                0 => Outcome::Dies,
                1 => Outcome::DiesAnswered,
                2 => Outcome::Ends(Ending::Transient { reason: "529".into(), retry_after: None }),
                _ => Outcome::Usual,
            };
            Scripted { thinking: Duration::from_millis(dice.roll(120)), outcome, ..usual() }
        });
    }

    fn time(&mut self) -> u64 {
        self.world.elapsed() + self.dice.roll(NOISE)
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("word-{}.", self.words)
    }

    fn expect(&mut self, room: &str, who: &'static str, word: &str, times: (usize, usize), said: u64) {
        let (room, word) = (room.to_owned(), word.to_owned());
        self.expected.push(Expected { room, who, word, least: times.0, most: times.1, said });
    }

    /// Somebody says something somewhere.
    fn speak(&mut self) {
        let at = self.time();
        let word = self.word();
        let Rooms { swarm, alices, bobs } = self.rooms.clone();
        match self.dice.roll(8) {
            0..=2 => {
                let (names, hearers): (&str, &[&'static str]) =
                    [("Eir", &[EIR][..]), ("Brage", &[BRAGE]), ("Eir and Brage", &[EIR, BRAGE])]
                        [usize::try_from(self.dice.roll(3)).expect("small")];
                hearers.iter().for_each(|who| self.expect(&swarm, who, &word, (1, 1), at));
                let words = format!("{names}, {word}");
                self.world.deed(at, move |home| drop(home.user("alice").say(&swarm, &words)));
            }
            3 => {
                self.expect(&swarm, EIR, &word, (0, 0), at);
                self.expect(&swarm, BRAGE, &word, (0, 0), at);
                self.world
                    .deed(at, move |home| drop(home.user("bob").say(&swarm, &format!("chatter {word}"))));
            }
            4 => {
                self.expect(&swarm, EIR, &word, (0, 0), at);
                let content = json!({ "msgtype": "m.notice", "body": format!("Eir, {word}") });
                self.world.deed(at, move |home| {
                    home.user("bob").say_content(&swarm, "m.room.message", content);
                });
            }
            5 => {
                self.expect(&bobs, BRAGE, &word, (1, 1), at);
                self.world.deed(at, move |home| drop(home.user("bob").say(&bobs, &word)));
            }
            6 => self.change_ones_mind(at, &word, &alices),
            _ => {
                self.expect(&alices, EIR, &word, (1, 1), at);
                self.world.deed(at, move |home| drop(home.user("alice").say(&alices, &word)));
            }
        }
    }

    /// Alice edits or takes back what she said.
    fn change_ones_mind(&mut self, at: u64, word: &str, room: &str) {
        let later = at + self.dice.roll(400);
        let said = Arc::new(Mutex::new(String::new()));
        let (first, room_of_first, words) = (said.clone(), room.to_owned(), word.to_owned());
        self.world.deed(at, move |home| {
            *first.lock().expect("not poisoned") = home.user("alice").say(&room_of_first, &words);
        });
        let room_of_second = room.to_owned();
        if self.dice.roll(2) == 0 {
            self.expect(room, EIR, word, (0, 1), at);
            self.world.deed(later, move |home| {
                home.user("alice").redact(&room_of_second, &said.lock().expect("not poisoned"));
            });
        } else {
            let better = self.word();
            // What she was not fed yet is fed as it reads by then, where it stood.
            self.expect(room, EIR, word, (0, 1), at);
            self.expect(room, EIR, &better, (1, 1), later);
            self.edited.insert(better.clone());
            self.world.deed(later, move |home| {
                home.user("alice").edit(&room_of_second, &said.lock().expect("not poisoned"), &better);
            });
        }
    }

    /// Something goes wrong.
    fn trouble(&mut self) {
        let at = self.time();
        let span = Duration::from_millis(self.dice.roll(800));
        let until = at + u64::try_from(span.as_millis()).expect("short");
        let sends = |seen: &Seen<'_>| seen.method == "PUT" && seen.path.contains("/send/");
        let times = 1 + u32::try_from(self.dice.roll(3)).expect("small");
        let fault = |fault: Fault| move |home: &FakeHomeserver| home.fail_when(times, fault, sends);
        let kind = self.dice.roll(9);
        self.loses |= kind >= 7 && self.world.home.setup().flavour == Flavour::Synapse;
        match kind {
            0 => self.world.deed(at, fault(Fault::CutAfter)),
            1 => self.world.deed(at, fault(Fault::CutBefore)),
            2 => self.world.deed(at, fault(Fault::CutAfterForgetting)),
            3 => self.world.deed(at, fault(Fault::Limited(span))),
            4 => self.world.deed(at, fault(Fault::Answer(503, String::new()))),
            5 => self.world.deed(at, move |home| home.fail_next(times * 3, Fault::CutAfter)),
            6 => {
                self.world.deed(at, |home| home.set_down(true));
                self.world.deed(until, |home| home.set_down(false));
            }
            7 => {
                self.world.deed(at, |home| home.set_silent(true));
                self.world.deed(until, |home| {
                    home.restart();
                    home.set_silent(false);
                });
            }
            _ => self.world.deed(at, FakeHomeserver::restart),
        }
    }

    /// Plays it with some crashes, then in peace until all is said.
    fn play(&mut self) {
        for _ in 0..3 + self.dice.roll(12) {
            self.speak();
        }
        for _ in 0..self.dice.roll(6) {
            self.trouble();
        }
        for _ in 0..self.dice.roll(4) {
            let life = Duration::from_millis(1 + self.dice.roll(NOISE / 3));
            self.world.live(life);
        }
        self.world.live(Duration::from_millis(NOISE * 2));
        self.world.home.clear_faults();
        self.world.home.set_silent(false);
        let expected = &self.expected;
        self.world.play(async |stage| {
            for _ in 0..36 {
                stage.pass(5_000).await;
                if expected.iter().all(|expected| expected.times(&stage.home) >= expected.least) {
                    break;
                }
            }
            stage.pass(10_000).await;
        });
    }

    fn check(&mut self, when: &str) {
        self.expected.sort_by_key(|expected| expected.said);
        let home = &self.world.home;
        assert!(is_joined(home, &self.rooms.alices, EIR) && is_joined(home, &self.rooms.bobs, BRAGE));
        let mut last = std::collections::BTreeMap::new();
        for expected in &self.expected {
            let Expected { room, who, word, least, most, .. } = expected;
            let answers = home.bodies(room, who).join("\n");
            let times = expected.times(home);
            let told = super::stage::told(home);
            assert!(
                (*least..=*most).contains(&times),
                "{when}: {who} answers {word} {least} to {most} times, not {times}:\n{answers}\ntold: {told:#?}"
            );
            if self.edited.contains(word) {
                continue;
            }
            if let Some(place) = answers.find(word.as_str()) {
                let before = last.insert((room, who), (place, word));
                let in_order = self.loses || before.is_none_or(|(before, _)| before <= place);
                assert!(in_order, "{when}: {who} answers {word} after {before:?}:\n{answers}");
            }
        }
        self.check_lanes(when);
        let counts = self.world.store().counts();
        assert_eq!((counts.outbox, counts.held), (0, 0), "{when}");
    }

    /// What was said in a direct room was never fed beside anything else.
    fn check_lanes(&self, when: &str) {
        for who in ["eir", "brage"] {
            for fed in self.world.fed(who) {
                let rooms = fed.words.lines().filter(|line| line.starts_with("room ")).count();
                let mut lines = fed.words.lines();
                let direct = lines.any(|line| line.starts_with("# mail for you in a direct room"));
                let mut words = self.expected.iter().filter(|expected| fed.words.contains(&expected.word));
                let mixed = words.any(|expected| (expected.room != self.rooms.swarm) != direct);
                assert!(rooms <= 1 && !mixed, "{when}: lanes mix in\n{}", fed.words);
            }
        }
    }
}

fn play_all(flavour: Flavour) {
    let remembered = REMEMBERED.iter().copied();
    for seed in remembered.chain(1_000..1_000 + SCENES * u64::from(crate::tools::scale())) {
        let mut scene = Scene::new(flavour, seed);
        scene.play();
        scene.check(&format!("seed {seed} on {flavour:?}"));
    }
}

#[test]
fn random_scenes_are_answered_once_each_and_lanes_never_mix_on_synapse() {
    play_all(Flavour::Synapse);
}

#[test]
fn random_scenes_are_answered_once_each_and_lanes_never_mix_on_conduit() {
    play_all(Flavour::Conduit);
}
