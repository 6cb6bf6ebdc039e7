//! What of her memories a Persona has before her, as a pure ranking that is never stored.
//!
//! It never decides what is remembered (she does, in her replies) and never drops a memory. What may be seen where is
//! [`DmMemories`]; a further way to find memories is one more step in `recall`.

mod index;
mod recall;
mod seen;
mod words;

use crate::conversation::{Lane, Memory};

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
        match (&memory.origin.lane, self) {
            (Lane::Register(_), _) | (Lane::Direct(_), Self::Everywhere) => true,
            (Lane::Direct(_), Self::DmOnly) => memory.origin.lane == *hand.lane,
            (Lane::Direct(_), Self::SamePerson) => {
                let told_by = &memory.origin.told_by;
                memory.origin.lane == *hand.lane || (!told_by.is_empty() && told_by.is_subset(hand.people))
            }
        }
    }
}

#[cfg(test)]
mod tests;
