//! From her typed reply to acts.
//!
//! A reply is data of a fixed shape, never text to be searched. Where it may go is an [`Allowance`], made from the
//! turn's lane and the registers alone, so that no reply reaches a room that is not open to the lane.

mod acts;
mod allowance;
mod decode;
mod heart;
mod keeps;
mod rooms;

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedEventId, OwnedRoomId};

use super::memory::MemoryNumber;

pub use acts::acts;
pub use allowance::allowance;
pub use decode::labels_in;
pub use heart::{Agenda, Pulse, Reminds};
pub use keeps::{Keeps, keeps};
pub use rooms::Rooms;

/// The version of the reply schema.
pub const SCHEMA_VERSION: u32 = 3;

/// The reply schema, byte-constant for a version.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"say":{"type":"array","maxItems":16,"items":{"type":"object","properties":{"text":{"type":"string","description":"Markdown"},"room":{"type":"string","description":"label, alias or id of a room; absent: the room of the newest message addressed to you"},"reply_to":{"type":"string","description":"label of the message this answers, such as m12"}},"required":["text"],"additionalProperties":false}},"react":{"type":"array","maxItems":16,"items":{"type":"object","properties":{"message":{"type":"string","description":"label of the message, such as m12"},"key":{"type":"string","description":"an emoji","minLength":1,"maxLength":64}},"required":["message","key"],"additionalProperties":false}},"remember":{"type":"array","maxItems":8,"items":{"type":"object","properties":{"text":{"type":"string","description":"one thing worth knowing later, at most 1000 bytes","minLength":1,"maxLength":1000},"about":{"type":"array","maxItems":16,"description":"user ids and topics","items":{"type":"string","maxLength":255}},"salience":{"type":"number","minimum":0,"maximum":1},"task":{"type":"string","enum":["open","done"]}},"required":["text","about","salience"],"additionalProperties":false}},"forget":{"type":"array","maxItems":16,"items":{"type":"string","description":"label of a memory, such as n3"}},"show":{"type":"array","maxItems":4,"items":{"type":"string","description":"label of a message that was shown in part"}},"pulse":{"type":"object","properties":{"tempo":{"type":"string","description":"duration, such as 20m"},"urgency":{"type":"integer","minimum":0,"maximum":1000}},"required":["urgency"],"additionalProperties":false},"remind":{"type":"array","maxItems":5,"items":{"type":"object","properties":{"in":{"type":"string","description":"duration, such as 2h; instead of at"},"at":{"type":"string","description":"UTC, such as 2026-10-31 09:20"},"text":{"type":"string","description":"one line, at most 500 bytes","minLength":1,"maxLength":500},"room":{"type":"string","description":"the room that it is about"}},"required":["text"],"additionalProperties":false}},"unremind":{"type":"array","maxItems":5,"items":{"type":"string","description":"label of a reminder, such as r3"}}},"required":["say","react"],"additionalProperties":false}"#;

/// The most says, the most reactions, and the most that is forgotten, of one reply.
const MAX_ITEMS: usize = 16;
/// The most memories of one reply.
const MAX_MEMORIES: usize = 8;
/// The most messages of one reply that are to be shown in whole.
const MAX_SHOWN: usize = 4;

/// The most reminders that one reply sets, and the most that it cancels.
const MAX_REMINDERS: usize = 5;

/// Where a turn may speak and what its labels stand for; it can only be made by [`allowance()`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The rooms that are open to it.
    rooms: Rooms,
    /// Labels (`m12`) within the lane.
    labels: BTreeMap<String, Target>,
    /// The message that a say without a room answers.
    default: Option<Target>,
    /// Where a say without a room stands that answers no message.
    home: Option<OwnedRoomId>,
    /// For each room, its newest addressed message.
    asked: BTreeMap<OwnedRoomId, Target>,
    /// For each thread of the batch (by its root), its newest message.
    newest: BTreeMap<OwnedEventId, OwnedEventId>,
    /// The memories that were worded in the lane.
    memories: BTreeSet<MemoryNumber>,
    /// The messages of the turn that were shown in part.
    parts: BTreeSet<String>,
    /// The time, and her open reminders.
    agenda: Agenda,
}

impl Allowance {
    /// With the memories that were worded in the lane, and the messages of the turn that were shown in part.
    pub fn with(self, memories: BTreeSet<MemoryNumber>, parts: BTreeSet<String>) -> Self {
        Self { memories, parts, ..self }
    }

    /// With the room where a say stands that names none and answers no message, if that room is open to the turn.
    pub fn at_home(self, room: Option<&OwnedRoomId>) -> Self {
        match room.filter(|room| self.rooms.contains(room)) {
            Some(room) => Self { home: Some(room.clone()), ..self },
            None => self,
        }
    }

    /// With the time, and her open reminders.
    pub fn timed(self, agenda: Agenda) -> Self {
        Self { agenda, ..self }
    }

    /// How far from a person's word the turn is.
    pub fn hops(&self) -> u32 {
        self.agenda.hops
    }
}

/// A message that a label stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its room.
    pub room: OwnedRoomId,
    /// The event.
    pub event: OwnedEventId,
    /// Its thread's root.
    pub thread: Option<OwnedEventId>,
}

/// One thing that she does; it can only be made by [`acts()`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// She says something.
    Say {
        /// Where.
        room: OwnedRoomId,
        /// Markdown, not empty.
        text: String,
        /// In which thread.
        thread: Option<OwnedEventId>,
        /// The newest message of that thread that was heard.
        newest: Option<OwnedEventId>,
        /// The event it answers.
        reply_to: Option<OwnedEventId>,
    },
    /// She reacts.
    React {
        /// Where.
        room: OwnedRoomId,
        /// To what.
        event: OwnedEventId,
        /// With what (at most 64 bytes, one line).
        key: String,
    },
}

/// A reply that cannot be used; its text is told to her.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

#[cfg(test)]
mod tests;
