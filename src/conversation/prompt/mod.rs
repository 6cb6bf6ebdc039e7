//! From deliveries to words, in a form that can be read back exactly.
//!
//! A batch is one text block of lines. Only the bridge writes lines that begin with `#`, `room`, `earlier`, `heard`, `said`, `reminder`, or the label
//! of a message or memory; whatever somebody else wrote is cleaned or stands behind a prefix, so that no text can form such a line. A new
//! mark is a line in `mark` and one in [`system()`].

pub(super) mod clean;
#[cfg(test)]
mod law;
mod mark;
mod memories;
mod past;
#[cfg(test)]
mod read;
mod reminders;
mod render;
mod system;
mod time;
mod trim;

use std::collections::{BTreeMap, BTreeSet};

use ruma::OwnedRoomId;

use super::batch::{Batch, Delivery};
use super::ids::{Lane, Millis};
use super::memory::Memory;
use super::past::PastLine;
use super::reminder::Reminder;

pub use memories::memory_line;
#[cfg(test)]
pub(crate) use read::read_back;
pub use reminders::reminder_line;
pub use render::render;
pub(super) use render::sender;
pub use system::{SystemPrompt, system};
pub(super) use time::day;

/// Fed instead of the batch where her session already holds it.
pub const RETRY: &str = "(retry)";

/// Tells her, before all else, that a session begins which is not her first.
pub const SEAM: &str =
    "# your next session begins here: what you heard and said in the one before it is out of your sight";

/// Stands behind the header where something that is asked was said long ago.
pub const OVERTAKEN: &str = "# some of what is asked here was said long ago and may be done or overtaken by now: take in all of it first, then answer once";

/// After so long what is asked may be overtaken.
const OLD: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// Asked in a throw-away copy of her session, for the cache's sake.
pub const PING: &str = "# nothing was said; the bridge keeps your session warm. Answer with empty lists.";

/// Asked before her session may end, where what has become of her tasks may not be remembered. `label` is the name to her of a
/// direct lane's room.
pub fn flush(lane: &Lane, label: &str) -> String {
    let place = match lane {
        Lane::Register(name) => render::register(name),
        Lane::Direct(_) => format!("the direct room {}", clean::quoted(&clean::one_line(label))),
    };
    format!(
        "# nothing was said; your session may end soon. Of what you heard in {place}, `remember` now what must not be lost, open \
         tasks above all; nothing that you `say` now is sent."
    )
}

/// The label in [`Surroundings::labels`] of an event that she sent herself.
pub const OWN: &str = "yours";

/// How many bytes are shown of a message that is too long for a fresh session.
pub const TIGHT: usize = 2 * 1024;

/// The longest fault line, in characters.
const FAULT_LINE: usize = 400;

/// What the words need beside the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Each room at hand: its label as shown to her (alias or `dm with …`).
    pub rooms: BTreeMap<OwnedRoomId, String>,
    /// Labels of events she heard before, for reply, edit and thread marks; [`OWN`] for events she sent.
    pub labels: BTreeMap<ruma::OwnedEventId, String>,
    /// Earlier lines of each room, oldest first, for the first turn of a session.
    pub context: BTreeMap<OwnedRoomId, Vec<ContextLine>>,
    /// What she is reminded of, in this order.
    pub memories: Vec<Memory>,
    /// What was heard and said in the lane before her session was lost, oldest first.
    pub past: Vec<PastLine>,
    /// What is told beside the mail, a line each.
    pub notices: Vec<String>,
    /// The reminders of hers that are due, in this order.
    pub reminders: Vec<Reminder>,
    /// Her other reminders of the lane that are open, where she is told which those are.
    pub agenda: Vec<Reminder>,
    /// The longest text of a message that is shown in whole, in bytes; none for any.
    pub trim_over: Option<usize>,
    /// The numbers of messages that are shown in whole however long they are, since she asked for that.
    pub whole: BTreeSet<u64>,
    /// Whether the message is too long for her, so that only a little of it is shown and no more can be.
    pub tight: bool,
    /// Whether a session begins with it that is not her first.
    pub begins_anew: bool,
    /// Whether she is woken though nothing was said.
    pub scheduled: bool,
    /// The time now.
    pub now: Millis,
}

/// A line of what was said before she was there, never mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextLine {
    /// The edit whose words they are, if they are.
    pub edit: Option<ruma::OwnedEventId>,
    /// The event.
    pub event: ruma::OwnedEventId,
    /// Who.
    pub sender: ruma::OwnedUserId,
    /// Display name.
    pub sender_name: Option<String>,
    /// Words.
    pub text: String,
    /// When.
    pub said: Millis,
}

/// A time as people read it.
pub fn moment(at: Millis) -> String {
    format!("{} UTC", time::full(at))
}

/// A time as programs write it, to the millisecond.
pub fn stamp(at: Millis) -> String {
    time::stamp(at)
}

/// The labels of the messages of a batch that are shown in part, and may be shown in whole.
pub fn parts(batch: &Batch, surroundings: &Surroundings) -> BTreeSet<String> {
    if surroundings.tight {
        return BTreeSet::new();
    }
    let in_part = batch.shown().filter(|delivery| surroundings.trims(delivery).is_some());
    in_part.map(|delivery| format!("m{}", delivery.seq)).collect()
}

impl Surroundings {
    /// Over how many bytes a message is trimmed that is longer than that.
    fn trims(&self, delivery: &Delivery) -> Option<usize> {
        if self.tight {
            return Some(TIGHT).filter(|over| trim::is_part(&delivery.text, *over));
        }
        self.trim_over
            .filter(|over| !self.whole.contains(&delivery.seq) && trim::is_part(&delivery.text, *over))
    }
}

/// The line that tells her why her last reply could not be used: one line of at most 400 characters.
pub fn fault_line(fault: &str) -> String {
    const BEFORE: &str = "# your last reply could not be used and nothing of it was sent: ";
    const AFTER: &str = " (reply again to the same mail)";
    let room = FAULT_LINE - BEFORE.chars().count() - AFTER.chars().count();
    let fault: String = clean::one_line(fault).chars().take(room).collect();
    format!("{BEFORE}{fault}{AFTER}")
}

#[cfg(test)]
mod tests;
