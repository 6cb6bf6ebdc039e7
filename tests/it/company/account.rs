//! What was said and asked, from wherever it is gathered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::batch::{self, Batch, DM};
use super::talker::Who;

/// Something that a person said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The word by which it is known.
    pub(crate) token: String,
    /// When, in ms.
    pub(crate) at: u64,
    /// The ids of the Personas to whom it is addressed.
    pub(crate) to: Vec<String>,
}

/// A turn as a mind saw it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The Persona's id.
    pub(crate) who: String,
    /// What she was fed.
    pub(crate) words: String,
    /// When, in ms.
    pub(crate) at: u64,
    /// How long she thought, in ms.
    pub(crate) took: u64,
    /// What she replied.
    pub(crate) reply: Value,
}

/// A message as it stands in a room.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) room: String,
    pub(crate) sender: String,
    pub(crate) body: String,
    /// When, in ms.
    pub(crate) at: u64,
    /// How many Personas' lines led to it, where it tells.
    pub(crate) hops: Option<u32>,
}

/// The key that tells of which turn an event comes, and how many hops it has.
const CAUSE: &str = "dev.persona_bridge.cause";

impl Line {
    /// A message from its content.
    pub(crate) fn new(content: &Value, room: &str, sender: &str, at: u64) -> Self {
        let hops = content[CAUSE]["hops"].as_u64().and_then(|hops| u32::try_from(hops).ok());
        let body = content["body"].as_str().unwrap_or_default().to_owned();
        Self { room: room.to_owned(), sender: sender.to_owned(), body, at, hops }
    }
}

/// Why a turn began, as far as its words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A person's line addressed to her.
    Person,
    /// A Persona's line addressed to her.
    Persona,
    /// Mail that wakes nobody.
    Beat,
    /// No mail at all: a fault to mend, or the bridge's own question.
    NoMail,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) personas: Vec<Who>,
    /// Each room's register, or its own id where it is direct.
    pub(crate) lanes: BTreeMap<String, String>,
    /// The registers in which Personas wake each other.
    pub(crate) waking: BTreeSet<String>,
    pub(crate) said: Vec<Said>,
    /// In order of time.
    pub(crate) asked: Vec<Asked>,
    /// In order of time.
    pub(crate) lines: Vec<Line>,
}

/// The words in a text by which messages are known.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_token = |word: &&str| word.len() == 15 && word.starts_with("tok");
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_token)
}

impl Asked {
    pub(crate) fn batch(&self) -> Option<Batch<'_>> {
        batch::read(&self.words)
    }

    /// Whether it only tells her that her last reply could not be used.
    pub(crate) fn mends(&self) -> bool {
        self.words.starts_with("# your last reply could not be used")
    }

    /// When she had thought.
    pub(crate) fn end(&self) -> u64 {
        self.at + self.took
    }

    /// Whether her mail holds a message.
    pub(crate) fn hears(&self, token: &str) -> bool {
        self.batch().is_some_and(|batch| batch.mail.iter().any(|mail| mail.text.contains(token)))
    }
}

impl Account {
    /// The line that is known by each word.
    pub(crate) fn known(&self) -> BTreeMap<&str, &Line> {
        self.lines.iter().flat_map(|line| tokens(&line.body).map(move |token| (token, line))).collect()
    }

    /// The turn in which each word was said.
    pub(crate) fn origins(&self) -> BTreeMap<String, &Asked> {
        let words = |asked: &Asked| tokens(&asked.reply.to_string()).map(str::to_owned).collect::<Vec<_>>();
        self.asked
            .iter()
            .flat_map(|asked| words(asked).into_iter().map(move |token| (token, asked)))
            .collect()
    }

    /// The Persona whose user it is.
    pub(crate) fn persona(&self, user: &str) -> Option<&Who> {
        self.personas.iter().find(|who| who.user.trim_start_matches('@') == user.trim_start_matches('@'))
    }

    /// Whether nothing of her reply was sent.
    pub(crate) fn is_refused(&self, asked: &Asked) -> bool {
        let next = self.asked.iter().filter(|other| other.who == asked.who && other.at > asked.at);
        next.min_by_key(|other| other.at).is_some_and(Asked::mends)
    }

    /// The lane in which she was asked: that of the turn before, where only a fault was to be mended.
    pub(crate) fn lane<'a>(&'a self, asked: &'a Asked, known: &BTreeMap<&str, &Line>) -> Option<String> {
        let Some(batch) = asked.batch() else {
            let before =
                self.asked.iter().rev().filter(|other| other.who == asked.who && other.at < asked.at);
            return before.filter(|other| other.batch().is_some()).find_map(|other| self.lane(other, known));
        };
        if batch.lane != DM {
            return Some(batch.lane.to_owned());
        }
        let first = batch.mail.iter().flat_map(|mail| tokens(mail.text)).find_map(|token| known.get(token));
        first.and_then(|line| self.lanes.get(&line.room)).cloned()
    }

    /// How many Personas' lines led to this one: none of a person's.
    fn hops(&self, line: &Line) -> u32 {
        if self.persona(&line.sender).is_some() { line.hops.unwrap_or(u32::MAX) } else { 0 }
    }

    /// The Personas' lines in her mail that may wake her, where lines with at least `max_hops` hops wake nobody.
    pub(crate) fn waking<'a>(
        &self,
        asked: &Asked,
        known: &BTreeMap<&str, &'a Line>,
        max_hops: u32,
    ) -> Vec<&'a Line> {
        let Some(batch) = asked.batch().filter(|batch| self.waking.contains(batch.lane)) else {
            return Vec::new();
        };
        let to_her = batch.mail.iter().filter(|mail| mail.to_you);
        let lines = to_her.filter_map(|mail| tokens(mail.text).find_map(|token| known.get(token).copied()));
        lines.filter(|line| self.persona(&line.sender).is_some() && self.hops(line) < max_hops).collect()
    }

    /// Why a turn began, where lines with at least `max_hops` hops wake nobody; and the hops that its lines should have.
    pub(crate) fn cause(&self, asked: &Asked, known: &BTreeMap<&str, &Line>, max_hops: u32) -> (Cause, u32) {
        let Some(batch) = asked.batch() else { return (Cause::NoMail, 0) };
        if batch.mail.iter().any(|mail| mail.to_you && self.persona(mail.sender).is_none()) {
            return (Cause::Person, 0);
        }
        if let Some(hops) = self.waking(asked, known, max_hops).into_iter().map(|line| self.hops(line)).max()
        {
            return (Cause::Persona, hops + 1);
        }
        let lines = batch.mail.iter().filter_map(|mail| tokens(mail.text).find_map(|token| known.get(token)));
        let greatest = lines.map(|line| self.hops(line)).max().unwrap_or_default();
        (Cause::Beat, greatest.saturating_add(1).min(max_hops))
    }

    /// How many turns began for each cause.
    pub(crate) fn causes(&self, max_hops: u32) -> BTreeMap<Cause, usize> {
        let known = self.known();
        let mut causes = BTreeMap::new();
        for asked in &self.asked {
            *causes.entry(self.cause(asked, &known, max_hops).0).or_default() += 1;
        }
        causes
    }
}
