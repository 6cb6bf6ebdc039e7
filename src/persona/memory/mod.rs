//! What of her memories a Persona has before her, as a pure ranking that is never stored.
//!
//! It never decides what is remembered (she does, in her replies), only what makes way where that is too much. What may be
//! seen where is [`DmMemories`]; a further way to find memories is one more step in `recall`.

mod cap;
mod index;
mod recall;
mod seen;
mod words;

use ruma::OwnedRoomId;

use crate::conversation::{Lane, Memory};

pub use cap::{MOST, surplus};
pub use index::Memories;
pub use recall::{Hand, Recalled, recall};
pub use seen::Seen;

/// Where memories that were learned in a direct room may be recalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DmMemories {
    /// In that direct room alone.
    #[default]
    DmOnly,
    /// Also elsewhere, while everybody who told it has mail at hand there.
    SamePerson,
    /// Everywhere.
    Everywhere,
}

impl DmMemories {
    /// Whether a memory may enter what is written for a hand.
    pub fn allows(self, memory: &Memory, hand: &Hand<'_>) -> bool {
        let here = |room: &OwnedRoomId| matches!(hand.lane, Lane::Direct(own) if own == room);
        memory.origin.confided.iter().all(|(room, told_by)| match self {
            Self::Everywhere => true,
            Self::DmOnly => here(room),
            Self::SamePerson => here(room) || (!told_by.is_empty() && told_by.is_subset(hand.people)),
        })
    }
}

#[cfg(test)]
mod tests;
