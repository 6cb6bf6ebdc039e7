//! The memories of one Persona as they are searched, by BM25; made anew at each start, and in any order.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedUserId, UserId};

use super::words;
use crate::conversation::{Memory, MemoryNumber, Millis, Task};

/// How soon a word that is repeated counts no more.
const SATURATION: f64 = 1.2;
/// How much a long memory is held against its words.
const LENGTH: f64 = 0.75;
/// A word is telling if at most this many memories have it, or one in [`TELLING_PART`].
const TELLING: usize = 2;
const TELLING_PART: usize = 8;

/// All memories of one Persona, with the index of their words.
#[derive(Clone, Debug, Default)]
pub struct Memories {
    all: BTreeMap<MemoryNumber, Memory>,
    words: BTreeMap<String, BTreeMap<MemoryNumber, u32>>,
    lengths: BTreeMap<MemoryNumber, usize>,
    length: usize,
    about: BTreeMap<OwnedUserId, BTreeSet<MemoryNumber>>,
    open: BTreeSet<MemoryNumber>,
}

/// How well a memory fits what is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// By BM25 over all its words, the telling ones and the others.
    pub(super) score: f64,
    /// How many telling words it has.
    pub(super) telling: usize,
    /// Whether one of them is in hardly any other memory.
    pub(super) rare: bool,
}

impl Fit {
    /// Whether it is enough to bring a memory into a session that goes on: one word that is rare, or two telling ones.
    pub(super) fn is_clear(self) -> bool {
        self.rare || self.telling > 1
    }
}

impl FromIterator<Memory> for Memories {
    fn from_iter<I: IntoIterator<Item = Memory>>(memories: I) -> Self {
        let mut all = Self::default();
        for memory in memories {
            all.insert(memory);
        }
        all
    }
}

impl Memories {
    /// Takes a memory in, in place of one of the same number.
    pub fn insert(&mut self, memory: Memory) {
        let number = memory.number;
        self.remove(number);
        let found = searched(&memory);
        self.length += found.len();
        self.lengths.insert(number, found.len());
        for word in found {
            *self.words.entry(word).or_default().entry(number).or_default() += 1;
        }
        for person in &memory.kept.people {
            self.about.entry(person.clone()).or_default().insert(number);
        }
        if memory.kept.task == Some(Task::Open) {
            self.open.insert(number);
        }
        self.all.insert(number, memory);
    }

    /// Takes a memory out.
    pub fn remove(&mut self, number: MemoryNumber) -> Option<Memory> {
        let memory = self.all.remove(&number)?;
        for word in searched(&memory) {
            forget(&mut self.words, &word, |memories| {
                memories.remove(&number);
                memories.is_empty()
            });
        }
        for person in &memory.kept.people {
            forget(&mut self.about, person, |memories| {
                memories.remove(&number);
                memories.is_empty()
            });
        }
        self.length -= self.lengths.remove(&number).unwrap_or_default();
        self.open.remove(&number);
        Some(memory)
    }

    /// Counts that a memory was recalled because it fitted.
    pub fn use_now(&mut self, number: MemoryNumber, now: Millis) {
        if let Some(memory) = self.all.get_mut(&number) {
            memory.uses = memory.uses.saturating_add(1);
            memory.used = memory.used.max(now);
        }
    }

    /// One memory.
    pub fn get(&self, number: MemoryNumber) -> Option<&Memory> {
        self.all.get(&number)
    }

    /// All of them, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Memory> {
        self.all.values()
    }

    /// Those about somebody, oldest first.
    pub fn about(&self, person: &UserId) -> impl Iterator<Item = &Memory> {
        self.about.get(person).into_iter().flatten().filter_map(|number| self.all.get(number))
    }

    /// The tasks that are to be done, oldest first.
    pub fn open_tasks(&self) -> impl DoubleEndedIterator<Item = &Memory> {
        self.open.iter().filter_map(|number| self.all.get(number))
    }

    /// Those that have a word of a text, and how well each fits.
    pub(super) fn fitting(&self, text: &str) -> BTreeMap<MemoryNumber, Fit> {
        let telling = TELLING.max(self.all.len() / TELLING_PART);
        let mut fits: BTreeMap<MemoryNumber, Fit> = BTreeMap::new();
        for word in words::of_mail(text).into_iter().collect::<BTreeSet<_>>() {
            let Some(memories) = self.words.get(&word) else { continue };
            for (number, times) in memories {
                let fit = fits.entry(*number).or_default();
                fit.score += self.score(*number, *times, memories.len());
                fit.telling += usize::from(memories.len() <= telling);
                fit.rare |= memories.len() <= TELLING;
            }
        }
        fits
    }

    /// BM25 of one word in one memory.
    fn score(&self, number: MemoryNumber, times: u32, having: usize) -> f64 {
        let (all, having) = (self.all.len() as f64, having as f64);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let mean = self.length as f64 / all;
        let length = self.lengths.get(&number).copied().unwrap_or_default() as f64 / mean;
        let times = f64::from(times);
        rarity * times * (SATURATION + 1.0) / (times + SATURATION * (1.0 - LENGTH + LENGTH * length))
    }
}

/// The words of a memory: its text's and its topics'.
fn searched(memory: &Memory) -> Vec<String> {
    let topics = memory.kept.topics.iter().flat_map(|topic| words::of_memory(topic));
    words::of_memory(&memory.kept.text).into_iter().chain(topics).collect()
}

/// Takes something out of a list under a key, and the key with the last of it.
fn forget<K: Ord, V>(lists: &mut BTreeMap<K, V>, key: &K, remove: impl FnOnce(&mut V) -> bool) {
    if lists.get_mut(key).is_some_and(remove) {
        lists.remove(key);
    }
}
