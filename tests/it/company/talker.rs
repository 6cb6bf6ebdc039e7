//! Models that talk too much, each by a rule: a reply is a function of the seed, of who thinks and of the words alone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::batch::{self, Batch, DM};
use super::dice::Dice;

/// What people and Personas talk of; none of it is anybody's name.
const FILLER: [&str; 24] = [
    "the", "boat", "is", "late", "again", "and", "we", "should", "paint", "it", "before", "snow", "comes",
    "while", "bread", "rises", "in", "a", "warm", "kitchen", "so", "they", "sing", "on",
];

/// What they vote for.
const TEMPI: [&str; 5] = ["10m", "20m", "30m", "1h", "2h"];

/// A Persona as others see her.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) name: String,
}

/// Who is there.
#[derive(Clone, Debug)]
pub(crate) struct Company {
    pub(crate) personas: Vec<Who>,
    /// User ids of people.
    pub(crate) people: Vec<String>,
    /// All rooms by id, for a model that tries them all.
    pub(crate) rooms: Vec<String>,
}

/// How a model talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It says something in 80 % of its turns and mentions somebody in 50 %, mostly another Persona; now and then it votes.
    Talkative,
    /// It always answers, and always asks the next Persona.
    Answering,
    /// It says something in every room that there is, and where it must not, in the one that it was asked in.
    Everywhere,
    /// It says nothing any more.
    Silent,
}

/// Models of all Personas; clones share their manner.
#[derive(Clone)]
pub(crate) struct Talker {
    seed: u64,
    company: Arc<Company>,
    manner: Arc<Mutex<Manner>>,
}

/// A word that stands in one message alone.
pub(crate) fn token(seed: u64, of: &str) -> String {
    let id = Uuid::new_v5(&Uuid::from_u128(seed.into()), of.as_bytes()).simple().to_string();
    format!("tok{}", &id[..12])
}

/// Some words of talk.
pub(crate) fn filler(dice: &mut Dice, least: u64, most: u64) -> String {
    let count = dice.between(least, most);
    let words: Vec<&str> = (0..count).map(|_| *dice.pick(&FILLER)).collect();
    words.join(" ")
}

impl Talker {
    pub(crate) fn new(seed: u64, manner: Manner, company: Company) -> Self {
        Self { seed, company: Arc::new(company), manner: Arc::new(Mutex::new(manner)) }
    }

    /// They talk so from now on.
    pub(crate) fn becomes(&self, manner: Manner) {
        *self.manner.lock().expect("not poisoned") = manner;
    }

    /// How long a thought takes: some seconds.
    pub(crate) fn thinking(&self, who: &str, words: &str) -> Duration {
        Duration::from_millis(Dice::of(self.seed, &format!("thinking {who} {words}")).between(2_000, 9_000))
    }

    /// What she replies.
    pub(crate) fn reply(&self, who: &str, words: &str) -> Value {
        let manner = *self.manner.lock().expect("not poisoned");
        let batch = batch::read(words);
        let mut dice = Dice::of(self.seed, &format!("{who} {words}"));
        let say = match (manner, &batch) {
            (Manner::Silent, _) => Vec::new(),
            (Manner::Everywhere, None) if !words.contains("say in which room") => {
                vec![json!({ "text": self.text(&mut dice, who, words, "") })]
            }
            (Manner::Everywhere, Some(_)) => self.everywhere(&mut dice, who, words),
            (Manner::Answering | Manner::Talkative | Manner::Everywhere, None) => Vec::new(),
            (Manner::Answering, Some(batch)) => {
                let whom = self.next(who).user.clone();
                vec![self.say(&mut dice, who, words, batch, &whom)]
            }
            (Manner::Talkative, Some(batch)) => self.talk(&mut dice, who, words, batch),
        };
        let mut reply = json!({ "say": say, "react": [] });
        if manner == Manner::Talkative && dice.happens(20) {
            reply["pulse"] = json!({ "tempo": dice.pick(&TEMPI), "urgency": dice.roll(1_001) });
        }
        reply
    }

    fn talk(&self, dice: &mut Dice, who: &str, words: &str, batch: &Batch<'_>) -> Vec<Value> {
        if !dice.happens(80) {
            return Vec::new();
        }
        let whom = if dice.happens(50) { self.someone(dice, who, batch) } else { String::new() };
        vec![self.say(dice, who, words, batch, &whom)]
    }

    /// Somebody in the room, as she is called there.
    fn someone(&self, dice: &mut Dice, who: &str, batch: &Batch<'_>) -> String {
        let others: Vec<&Who> = self.company.personas.iter().filter(|other| other.id != who).collect();
        if batch.lane == DM || others.is_empty() || dice.happens(25) {
            return dice.pick(&self.company.people).clone();
        }
        let other = dice.pick(&others);
        if dice.happens(50) { other.user.clone() } else { other.name.clone() }
    }

    /// The Persona after this one.
    fn next(&self, who: &str) -> &Who {
        let personas = &self.company.personas;
        let at = personas.iter().position(|other| other.id == who).unwrap_or_default();
        &personas[(at + 1) % personas.len()]
    }

    /// Something said where she was asked last, or else where something was said last.
    fn say(&self, dice: &mut Dice, who: &str, words: &str, batch: &Batch<'_>, whom: &str) -> Value {
        let text = self.text(dice, who, words, whom);
        let newest = batch.mail.iter().rfind(|mail| mail.to_you).or(batch.mail.last());
        match newest {
            Some(mail) if batch.lane != DM => json!({ "text": text, "room": mail.room }),
            Some(_) | None => json!({ "text": text }),
        }
    }

    fn everywhere(&self, dice: &mut Dice, who: &str, words: &str) -> Vec<Value> {
        let rooms = self.company.rooms.iter();
        rooms
            .map(|room| json!({ "text": self.text(dice, who, &format!("{room} {words}"), ""), "room": room }))
            .collect()
    }

    fn text(&self, dice: &mut Dice, who: &str, words: &str, whom: &str) -> String {
        let token = token(self.seed, &format!("{who} {words}"));
        let called = if whom.is_empty() { String::new() } else { format!("{whom}, ") };
        format!("{called}{token} {}", filler(dice, 12, 50))
    }
}
