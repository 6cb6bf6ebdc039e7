//! What a Persona wanted to remember, in her own words, with where and from whom she learned it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::ids::{Lane, Millis};

/// The longest text of a memory, in bytes.
pub const TEXT_BYTES: usize = 1000;

/// One memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Her own running number for it.
    pub number: MemoryNumber,
    /// What she worded.
    pub kept: Kept,
    /// Where and from whom she learned it.
    pub origin: Origin,
    /// How often it was recalled because it fitted.
    pub uses: u32,
    /// When that was last; the time it was learned where it never was.
    pub used: Millis,
}

impl Memory {
    /// Without whom and what it is about.
    pub fn bare(self) -> Self {
        let kept = Kept { people: BTreeSet::new(), topics: BTreeSet::new(), ..self.kept };
        Self { kept, ..self }
    }
}

/// What she worded: the part of a memory that comes from her reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The words, at most [`TEXT_BYTES`].
    pub text: String,
    /// Whom it is about, by their exact ids.
    pub people: BTreeSet<OwnedUserId>,
    /// What it is about.
    pub topics: BTreeSet<String>,
    /// How much it matters to her.
    pub salience: Salience,
    /// Whether it is a task, and how it stands.
    pub task: Option<Task>,
}

/// Where a memory comes from: the part that the bridge adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The lane of the turn.
    pub lane: Lane,
    /// The direct rooms of which it may hold words, and who spoke there: the turn's own, and those of the memories that
    /// were recalled in it.
    pub confided: Confided,
    /// The events of the turn's mail.
    pub events: BTreeSet<OwnedEventId>,
    /// When it was learned.
    pub at: Millis,
    /// In which generation of her session.
    pub generation: u32,
}

/// Direct rooms, and who spoke in each.
pub type Confided = BTreeMap<OwnedRoomId, BTreeSet<OwnedUserId>>;

/// The number behind a memory's label `n<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryNumber(pub u64);

impl MemoryNumber {
    /// The number of a label in its plain form.
    pub fn of_label(label: &str) -> Option<Self> {
        let digits =
            label.strip_prefix('n').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits?.parse().ok().map(Self)
    }
}

impl fmt::Display for MemoryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// How much a memory matters, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Salience(u8);

impl Salience {
    /// From a share of one; what lies outside is taken as the nearest end, what is no number as the middle.
    pub fn of_share(share: f64) -> Self {
        if share.is_nan() {
            return Self::default();
        }
        Self::of_hundredths((share.clamp(0.0, 1.0) * 100.0).round() as u64)
    }

    /// From hundredths, at most 100.
    pub fn of_hundredths(hundredths: u64) -> Self {
        Self(u8::try_from(hundredths.min(100)).unwrap_or(100))
    }

    /// In hundredths.
    pub fn hundredths(self) -> u8 {
        self.0
    }
}

impl Default for Salience {
    fn default() -> Self {
        Self(50)
    }
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// It is to be done.
    Open,
    /// It is done.
    Done,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_lead_back_to_their_numbers() {
        assert_eq!(MemoryNumber::of_label("n12"), Some(MemoryNumber(12)));
        for none in ["", "n", "m12", "12", "n+1", "n-1", "n 1", "N1", "n99999999999999999999"] {
            assert_eq!(MemoryNumber::of_label(none), None, "{none}");
        }
    }

    #[test]
    fn salience_is_a_share_whatever_is_written() {
        for (given, expect) in [(0.0, 0), (1.0, 100), (0.314, 31), (-3.0, 0), (7.0, 100), (f64::NAN, 50)] {
            assert_eq!(Salience::of_share(given).hundredths(), expect, "{given}");
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_back(number in any::<u64>()) {
            let number = MemoryNumber(number);
            prop_assert_eq!(MemoryNumber::of_label(&number.to_string()), Some(number));
        }
    }
}
