//! What a generation of her session has before it already.

use std::collections::BTreeSet;

use ruma::OwnedUserId;

use super::recall::{Hand, Recalled};
use crate::conversation::{Memory, MemoryNumber};

/// The memories that a generation was shown, and the people it met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Which generation; what was learned in it was worded there.
    pub generation: u32,
    /// The memories it was shown.
    pub memories: BTreeSet<MemoryNumber>,
    /// Whose mail it has had.
    pub people: BTreeSet<OwnedUserId>,
}

impl Seen {
    /// Whether it has a memory before it.
    pub fn has(&self, memory: &Memory) -> bool {
        memory.origin.generation == self.generation || self.memories.contains(&memory.number)
    }

    /// With what a turn brought.
    pub fn with(mut self, hand: &Hand<'_>, recalled: &Recalled) -> Self {
        self.memories.extend(&recalled.shown);
        self.people.extend(hand.people.iter().cloned());
        self
    }
}
