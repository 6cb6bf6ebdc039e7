//! What a generation of her session has before it already.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId, UserId};

use super::recall::{Hand, Recalled};
use crate::conversation::{Lane, Memory, MemoryNumber};

/// The memories and earlier messages that a generation was shown, and the people it met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Which generation; what was learned in it was worded there.
    pub generation: u32,
    /// The memories it was shown.
    pub memories: BTreeSet<MemoryNumber>,
    /// Whose mail it has had in each lane; what may be recalled of somebody is another thing in another lane.
    pub people: BTreeMap<Lane, BTreeSet<OwnedUserId>>,
    /// The messages of each room that it was shown as said before its mail.
    pub earlier: BTreeMap<OwnedRoomId, BTreeSet<OwnedEventId>>,
}

impl Seen {
    /// Whether it has a memory before it.
    pub fn has(&self, memory: &Memory) -> bool {
        memory.origin.generation == self.generation || self.memories.contains(&memory.number)
    }

    /// Whether it has had mail of somebody in a lane.
    pub fn met(&self, lane: &Lane, person: &UserId) -> bool {
        self.people.get(lane).is_some_and(|people| people.contains(person))
    }

    /// With what a turn brought.
    pub fn with(mut self, hand: &Hand<'_>, recalled: &Recalled) -> Self {
        self.memories.extend(&recalled.shown);
        self.people.entry(hand.lane.clone()).or_default().extend(hand.people.iter().cloned());
        self
    }
}
