//! What a turn comes to when it ends.

use std::collections::BTreeSet;

use ruma::OwnedRoomId;

use super::NewSay;
use crate::conversation::reply::Pulse;
use crate::conversation::{Kept, MemoryNumber, Millis, PersonaId, Remind, ReminderNumber, TurnId};
use crate::persona::Limit;
use crate::persona::memory::{Recalled, Seen};
use crate::persona::session::{Entry, Session};

/// A turn's end with a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Whose.
    pub persona: PersonaId,
    /// Which turn.
    pub turn: TurnId,
    /// How far it is from a person's word.
    pub hops: u32,
    /// What she says.
    pub says: Vec<NewSay>,
    /// What keeps Personas among themselves from running away.
    pub guard: Guarding,
    /// The session row after it.
    pub session: Session,
    /// What is written into the ledger with it.
    pub ledger: Vec<Entry>,
    /// What it does to her memories.
    pub memory: Remembering,
    /// Her pulse, where she gives one.
    pub pulse: Option<Pulse>,
    /// What it does to her reminders.
    pub reminders: Reminding,
    /// The mail of it that she wants to be shown in whole: it becomes mail again.
    pub show: BTreeSet<u64>,
    /// What she says, as it is taken down with what she heard; none where nothing is taken down.
    pub said: Option<Vec<(OwnedRoomId, String)>>,
    /// The time.
    pub now: Millis,
}

/// What a turn means to what keeps Personas among themselves from running away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarding {
    /// Who woke her in it.
    pub mutual: Vec<Mutual>,
    /// How many such turns two Personas may have in a room.
    pub pair: Option<Limit>,
    /// How many events of Personas a room bears.
    pub room: Option<Limit>,
}

/// Another Persona woke her in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutual {
    /// The room.
    pub room: OwnedRoomId,
    /// The other.
    pub other: PersonaId,
    /// What operators are told if that was once too often, and its key.
    pub notice: Option<(String, Vec<NewSay>)>,
}

/// What a room has borne of Personas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// When the newest of their events were sent, oldest first.
    pub sent: Vec<Millis>,
    /// How many says wait to be sent there by those who may speak.
    pub waiting: usize,
    /// Whether it is told that it is full.
    pub full: bool,
}

/// What a turn does to a Persona's reminders, beside those that it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reminding {
    /// What she wants to be reminded of in its lane.
    pub remind: Vec<Remind>,
    /// What she wants to be reminded of no more.
    pub unremind: BTreeSet<ReminderNumber>,
    /// The generation of her session that was told which are open in its lane, if it was.
    pub listed: Option<u32>,
}

/// What a turn does to a Persona's memories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembering {
    /// What she wants to remember; the store adds where it comes from.
    pub remember: Vec<Kept>,
    /// What she forgets.
    pub forget: Vec<MemoryNumber>,
    /// What was recalled in the turn.
    pub recalled: Recalled,
    /// What her generation has seen after it, if that is new.
    pub seen: Option<Seen>,
}
