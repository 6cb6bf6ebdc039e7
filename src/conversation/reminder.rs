//! What a Persona wants to be reminded of, in her own words: delivered once, in the lane where she asked for it.

use std::fmt;
use std::time::Duration;

use ruma::OwnedRoomId;

use super::ids::{Lane, Millis};

/// The longest text of a reminder, in bytes.
pub const TEXT_BYTES: usize = 500;
/// The most reminders of one Persona that are open at once.
pub const MOST: usize = 5;
/// The farthest that one may lie ahead.
pub const HORIZON: Duration = Duration::from_secs(366 * 24 * 3600);

/// The number behind a reminder's label `r<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReminderNumber(pub u64);

impl ReminderNumber {
    /// The number of a label in its plain form.
    pub fn of_label(label: &str) -> Option<Self> {
        let digits =
            label.strip_prefix('r').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits?.parse().ok().map(Self)
    }
}

impl fmt::Display for ReminderNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// What she asks to be reminded of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remind {
    /// When it is due.
    pub due: Millis,
    /// The words, one line of at most [`TEXT_BYTES`].
    pub text: String,
    /// The room that it is about.
    pub room: Option<OwnedRoomId>,
    /// How far from a person's word the turn was in which she asked it.
    pub hops: u32,
}

/// A reminder that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Her own running number for it.
    pub number: ReminderNumber,
    /// The lane where she asked for it, and alone is told it.
    pub lane: Lane,
    /// What she asked.
    pub remind: Remind,
    /// When she did.
    pub set: Millis,
    /// In which generation of her session it was listed to her last.
    pub listed: Option<u32>,
}
