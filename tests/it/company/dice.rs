//! Chance from a seed.

use uuid::Uuid;

/// A small generator of its own, so that a seed means the same for ever (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Dice that hang on a seed and a text alone.
    pub(crate) fn of(seed: u64, text: &str) -> Self {
        let (high, low) = Uuid::new_v5(&Uuid::from_u128(seed.into()), text.as_bytes()).as_u64_pair();
        Self(high ^ low)
    }

    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    /// A number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.roll(most - least + 1)
    }

    /// Whether something happens that happens in so many of a hundred cases.
    pub(crate) fn happens(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    /// One of some things.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.roll(from.len() as u64);
        &from[usize::try_from(at).expect("an index")]
    }
}
