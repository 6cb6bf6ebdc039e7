//! Which memories come before her with the mail at hand.

use std::collections::BTreeSet;

use ruma::OwnedUserId;

use super::index::Memories;
use super::{DmMemories, Seen};
use crate::conversation::{Lane, Memory, MemoryNumber, Millis};

/// The most that are relevant to the mail at hand.
const RELEVANT: usize = 8;
/// The most about the people at hand.
const ABOUT: usize = 6;
/// The most that are merely new.
const NEWEST: usize = 4;
/// The most of all, open tasks among them.
const ITEMS: usize = 16;
/// The most bytes of all their words.
const BYTES: usize = 16 * 1024;
/// After so many days without use a memory counts half.
const HALF_DAYS: f64 = 60.0;
const DAY: f64 = 24.0 * 60.0 * 60.0 * 1000.0;

/// What she has in hand.
#[derive(Clone, Copy, Debug)]
pub struct Hand<'a> {
    /// The lane of the mail.
    pub lane: &'a Lane,
    /// Who speaks in it.
    pub people: &'a BTreeSet<OwnedUserId>,
    /// Its words.
    pub words: &'a str,
    /// The time now.
    pub now: Millis,
}

/// What comes before her.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recalled {
    /// The memories in the order in which they are shown: by age, open tasks last.
    pub shown: Vec<MemoryNumber>,
    /// Those of them that have telling words of the mail, or are about the people: they were of use.
    pub used: Vec<MemoryNumber>,
    /// Those of them that are shown without whom and what they are about, for want of room.
    pub bare: Vec<MemoryNumber>,
}

/// Recalls what a generation needs that has `seen` so much: at its begin, where that is nothing, all kinds; later only
/// what it has not, of people whom it had not met in the lane, of mail that has telling words of a memory, and of open
/// tasks.
///
/// Open tasks come first of all, then what is relevant, what is about the people, what is new; 16 memories and 16 KiB at
/// most.
pub fn recall(memories: &Memories, hand: &Hand<'_>, dm: DmMemories, seen: Option<&Seen>) -> Recalled {
    let may = |memory: &&Memory| dm.allows(memory, hand) && !seen.is_some_and(|seen| seen.has(memory));
    let fits = memories.fitting(hand.words);
    let tasks: Vec<&Memory> = memories.open_tasks().rev().filter(may).take(ITEMS).collect();
    let fit = |memory: &Memory| fits.get(&memory.number).map_or(0.0, |fit| fit.score);
    let clear = fits.iter().filter(|(_, fit)| seen.is_none() || fit.is_clear());
    let mut relevant: Vec<&Memory> =
        clear.filter_map(|(number, _)| memories.get(*number)).filter(may).collect();
    order(&mut relevant, |memory| fit(memory) * standing(memory, hand.now));
    relevant.truncate(RELEVANT);
    let strangers = hand.people.iter().filter(|person| !seen.is_some_and(|seen| seen.met(hand.lane, person)));
    let mut about: Vec<&Memory> = strangers.flat_map(|person| memories.about(person)).filter(may).collect();
    order(&mut about, |memory| standing(memory, hand.now));
    about.dedup_by_key(|memory| memory.number);
    about.truncate(ABOUT);
    let newest = memories.all().rev().filter(may).take(if seen.is_some() { 0 } else { NEWEST });

    let useful = relevant.iter().filter(|memory| fits.get(&memory.number).is_some_and(|fit| fit.telling > 0));
    let useful: BTreeSet<MemoryNumber> = useful.chain(&about).map(|memory| memory.number).collect();
    let chosen = within(tasks.into_iter().chain(relevant).chain(about).chain(newest));
    let bare = bare(&chosen);
    let mut shown: Vec<&Memory> = chosen;
    shown.sort_by_key(|memory| (is_open(memory), memory.number));
    let shown: Vec<MemoryNumber> = shown.into_iter().map(|memory| memory.number).collect();
    let used = shown.iter().copied().filter(|number| useful.contains(number)).collect();
    Recalled { shown, used, bare }
}

/// Best first; of equals the newest.
fn order(memories: &mut [&Memory], value: impl Fn(&Memory) -> f64) {
    memories.sort_by(|a, b| value(b).total_cmp(&value(a)).then(b.number.cmp(&a.number)));
}

/// How much a memory counts by itself: what matters and was of use counts more, what was long of none less.
pub(super) fn standing(memory: &Memory, now: Millis) -> f64 {
    let idle_days = now.0.saturating_sub(memory.used.0) as f64 / DAY;
    let matters = 0.25 + f64::from(memory.kept.salience.hundredths()) / 100.0;
    let lift = 1.0 + f64::from(memory.uses).ln_1p() / 2.0;
    matters * lift / (1.0 + idle_days / HALF_DAYS)
}

pub(super) fn is_open(memory: &Memory) -> bool {
    memory.kept.task == Some(crate::conversation::Task::Open)
}

/// The first of them, each once, within the limits by their texts; one that is too long makes way for a shorter one.
fn within<'a>(memories: impl Iterator<Item = &'a Memory>) -> Vec<&'a Memory> {
    let mut left = BYTES;
    let mut taken: Vec<&Memory> = Vec::new();
    for memory in memories {
        if taken.len() == ITEMS {
            break;
        }
        if taken.iter().any(|other| other.number == memory.number) {
            continue;
        }
        if let Some(rest) = left.checked_sub(memory.kept.text.len()) {
            left = rest;
            taken.push(memory);
        }
    }
    taken
}

/// Those of the chosen for whose people and topics the texts of all leave no room.
fn bare(chosen: &[&Memory]) -> Vec<MemoryNumber> {
    let mut left = BYTES - chosen.iter().map(|memory| memory.kept.text.len()).sum::<usize>();
    let has_none = |memory: &&&Memory| {
        let rest = left.checked_sub(size_of_about(memory));
        left = rest.unwrap_or(left);
        rest.is_none()
    };
    chosen.iter().filter(has_none).map(|memory| memory.number).collect()
}

/// The bytes of whom and what a memory is about.
pub(super) fn size_of_about(memory: &Memory) -> usize {
    let kept = &memory.kept;
    let people = kept.people.iter().map(|person| person.as_str().len());
    people.chain(kept.topics.iter().map(String::len)).sum()
}
