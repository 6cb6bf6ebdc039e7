//! What must survive a crash; the only user of sled.
//!
//! Every verb that writes is one transaction and returns only after a *durable* flush, grouped across callers.
//! No sled type stands in a signature. Reads are answered from memory or the page cache and do not block for long.

mod arrival;
mod base;
mod brake;
mod campaigns;
mod chunk;
mod commit;
mod compact;
mod db;
mod edits;
mod error;
mod flush;
mod group;
mod guard;
mod heart;
mod inbox;
mod index;
mod journal;
mod known;
mod ledger;
mod memories;
mod open;
mod outbox;
mod overlay;
mod reactions;
mod record;
mod redact;
mod reminders;
mod rooms;
mod sessions;
mod states;
mod succession;
mod table;
mod told;
mod transcript;
mod turns;
mod tx;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use uuid::Uuid;

use crate::conversation::{Delivery, Lane, MemoryNumber, Millis, PersonaId, RequestId, TurnId};
use crate::persona::OpenTurn;
use crate::persona::session::{Entry, Session};

pub use arrival::{Arrival, Effect, Steered, Unreadable};
pub use commit::{Commit, Guarding, Mutual, Pace, Remembering, Reminding};
pub use db::Store;
pub use edits::Place;
pub use error::StoreError;
#[doc(hidden)]
pub use flush::Durability;
pub use ledger::{entries_from_json, entries_to_json};
pub use reactions::Reacted;

type Result<T> = std::result::Result<T, StoreError>;

/// Where the store lies and when it must stop accepting.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder.
    pub path: PathBuf,
    /// Acceptance stops below this many free bytes and resumes above twice that.
    pub min_free: u64,
}

/// Whose store it is; refused where it does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The homeserver's name.
    pub server_name: String,
    /// The appservice's id.
    pub appservice: String,
}

/// A Persona's place in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatRow {
    /// Which Persona.
    pub persona: PersonaId,
    /// The room.
    pub room: OwnedRoomId,
    /// The lane she hears it in.
    pub lane: Lane,
    /// The invite that brought her, if one did.
    pub invite: Option<OwnedEventId>,
    /// Her start line; none as long as it is to be looked for.
    pub line: Option<StartLine>,
}

/// Where a Persona's hearing begins in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartLine {
    /// When that was: what was said earlier is context, never mail.
    pub at: Millis,
    /// Whether the room's checked mark lies at it or behind it.
    pub passed: bool,
}

/// Where a room's checked mark moves, and with it the start lines that it passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The room.
    pub room: OwnedRoomId,
    /// The last event up to which the server's order was read without a gap.
    pub event: OwnedEventId,
    /// The start lines as they are there.
    pub lines: Vec<(PersonaId, StartLine)>,
}

/// A room as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRow {
    /// Its id.
    pub room: OwnedRoomId,
    /// Its alias from the config.
    pub alias: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// What it is about.
    pub topic: Option<String>,
    /// Whether encrypted.
    pub encrypted: bool,
    /// The room that takes its place, where it is over.
    pub successor: Option<OwnedRoomId>,
    /// The checked mark: the last event up to which the server's order was read without a gap.
    pub mark: Option<OwnedEventId>,
    /// The seats in it.
    pub seats: Vec<SeatRow>,
    /// Those who had a seat there and lost it.
    pub out: BTreeSet<PersonaId>,
    /// Joined members and names.
    pub members: Vec<(OwnedUserId, Option<String>)>,
}

/// The head of a waiting delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its number.
    pub seq: u64,
    /// Its lane.
    pub lane: Lane,
    /// Its room.
    pub room: OwnedRoomId,
    /// Who said it.
    pub sender: OwnedUserId,
    /// Whether it wakes her.
    pub wakes: bool,
    /// Whether it is worth a turn at a beat: all but redactions.
    pub unheard: bool,
    /// How far a Persona's line is from the last word of a person; none where no Persona said it.
    pub hops: Option<u32>,
    /// Whether she was shown a part of it and asked for the whole.
    pub whole: bool,
    /// When it was heard.
    pub heard: Millis,
}

/// What a label (`m<seq>`) stands for; kept after the mail is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The number.
    pub seq: u64,
    /// The lane it was heard in.
    pub lane: Lane,
    /// The room.
    pub room: OwnedRoomId,
    /// The event.
    pub event: OwnedEventId,
    /// Its sender.
    pub sender: OwnedUserId,
    /// Its thread's root.
    pub thread: Option<OwnedEventId>,
}

/// Something to be sent, its body frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSay {
    /// As whom.
    pub sender: OwnedUserId,
    /// Where.
    pub room: OwnedRoomId,
    /// Its transaction id.
    pub request: RequestId,
    /// The event type.
    pub kind: String,
    /// The content as JSON text, with the request id in it.
    pub body: String,
    /// The turn or fact behind it.
    pub cause: String,
    /// Its part number within the cause.
    pub part: String,
}

/// Why a say is parked: kept, not sent, and not in the way of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parking {
    /// The homeserver will not take it as things are; it goes again when an operator releases it.
    Refused(String),
    /// The homeserver failed on it again and again; it is tried again by itself.
    Failed(String),
}

/// A say in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Say {
    /// Its place in the order; a split puts its parts at the same place.
    pub seq: u64,
    /// What is sent.
    pub say: NewSay,
    /// When it was put in.
    pub since: Millis,
    /// The people who woke the Persona who says it; where none or not they alone did, all whom she heard. Nobody where it is no
    /// Persona's.
    pub owed_to: BTreeSet<OwnedUserId>,
}

/// The bot's answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub says: Vec<NewSay>,
    /// What is forgotten with it.
    pub forget: BTreeMap<PersonaId, BTreeSet<MemoryNumber>>,
}

/// What is written down about a session beside its turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Books {
    /// The session row, if it is new.
    pub session: Option<Session>,
    /// Entries of the ledger.
    pub ledger: Vec<Entry>,
}

/// How a user is authenticated; the mode is chosen once and never switched while something is pending.
#[derive(Clone, PartialEq, Eq)]
pub struct IdentityRow {
    /// The user.
    pub user: OwnedUserId,
    /// Her one device.
    pub device: String,
    /// Her own token where the server cannot masquerade devices.
    pub token: Option<String>,
    /// Display name and avatar as last set.
    pub profile: (Option<String>, Option<String>),
}

impl std::fmt::Debug for IdentityRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityRow")
            .field("user", &self.user)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Whose it must be.
    pub owner: Owner,
    /// The epoch if it is made now.
    pub epoch: Uuid,
    /// The time now.
    pub now: Millis,
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries that wait, those in open turns included.
    pub waiting: u64,
    /// Deliveries put aside.
    pub held: u64,
    /// Says to be sent, parked ones included.
    pub outbox: u64,
    /// Says that are parked.
    pub parked: u64,
    /// Unreadable events that are kept.
    pub quarantined: u64,
}

/// How much room the store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The bytes of all keys and rows that there are.
    pub live: u64,
    /// The bytes of its files.
    pub disk: u64,
}

/// A delivery that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// The delivery.
    pub delivery: Delivery,
    /// Its turn.
    pub turn: TurnId,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Millis,
}

/// The open turn with its Persona's session row, as they are read at start.
pub type Standing = (Option<OpenTurn>, Option<Session>);

#[cfg(test)]
mod tests;
