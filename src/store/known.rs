//! Which events the store may know, told without a look at its rows: most ids that come are new, and the look that shows
//! it costs more than any other step of taking an event in.
//!
//! A Bloom filter: it denies no event that was committed. It learns what was there at open behind the answer, and denies
//! nothing before it knows all. With a million events in the store it takes one new id in 400 for one that may be known,
//! with four millions one in six; those are looked up.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many words of 64 bits: 2 MiB.
const WORDS: usize = 1 << 18;
/// How many words hold all bits of an event, so that a look touches a line of the processor's cache or two.
const BLOCK: usize = 8;
/// How many bits stand for an event.
const BITS: usize = 4;

/// The events that the store may know.
#[derive(Debug)]
pub(super) struct Known {
    words: Vec<AtomicU64>,
    complete: AtomicBool,
}

impl Default for Known {
    fn default() -> Self {
        let words = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { words, complete: AtomicBool::new(false) }
    }
}

impl Known {
    /// An event is about to be committed, or was.
    pub(super) fn add(&self, event: &[u8]) {
        for (word, bit) in places(event) {
            self.words[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// All that was there at open was added.
    pub(super) fn complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// Whether an event may have been committed.
    pub(super) fn may_hold(&self, event: &[u8]) -> bool {
        let is_set = |(word, bit): (usize, u64)| self.words[word].load(Ordering::Relaxed) & bit != 0;
        !self.complete.load(Ordering::Acquire) || places(event).all(is_set)
    }
}

/// The bits of an event, each in its word: the low bits of a hash tell the block, nine high ones each a place in it.
fn places(event: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(event);
    let block = hash as usize % (WORDS / BLOCK) * BLOCK;
    (1..=BITS).map(move |number| {
        let place = hash >> (64 - 9 * number) & 0x1ff;
        (block + place as usize / 64, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_denies_nothing_before_it_knows_all() {
        let known = Known::default();
        assert!(known.may_hold(b"$a"));
        known.complete();
        assert!(!known.may_hold(b"$a"));
        known.add(b"$a");
        assert!(known.may_hold(b"$a"));
    }

    #[test]
    fn it_takes_few_new_ids_for_known_ones() {
        let known = Known::default();
        known.complete();
        (0..200_000_u32).for_each(|number| known.add(&number.to_be_bytes()));
        let wrong = (200_000..300_000_u32).filter(|number| known.may_hold(&number.to_be_bytes())).count();
        assert!(wrong < 100, "{wrong} of 100,000");
    }

    proptest! {
        #[test]
        fn it_denies_nothing_that_was_added(events in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..50)) {
            let known = Known::default();
            known.complete();
            events.iter().for_each(|event| known.add(event));
            prop_assert!(events.iter().all(|event| known.may_hold(event)));
        }
    }
}
