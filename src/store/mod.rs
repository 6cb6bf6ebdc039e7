//! What must survive a crash; the only user of sled.
//!
//! Every verb that writes is one transaction and returns only after a *durable* flush, grouped across callers.
//! No sled type stands in a signature. Reads are answered from memory or the page cache and do not block for long.

mod base;
mod brake;
mod campaigns;
mod chunk;
mod compact;
mod db;
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

use crate::conversation::about_me::Question;
use crate::conversation::reply::Pulse;
use crate::conversation::steer::Steer;
use crate::conversation::{
    Delivery, Described, Kept, Lane, MemoryNumber, Millis, PersonaId, Remind, ReminderNumber, RequestId,
    TurnId,
};
use crate::persona::memory::{Recalled, Seen};
use crate::persona::session::{Entry, Session};
use crate::persona::{Limit, OpenTurn};

pub use db::Store;
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

/// An event on its way in, with what it does here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its id: an event seen before has no effect at all.
    pub event: OwnedEventId,
    /// What it does, in order.
    pub effects: Vec<Effect>,
}

/// What an event does to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Mail for a Persona; the store puts in the number (`delivery.seq` is ignored).
    Deliver(PersonaId, Delivery),
    /// An event was taken back. Mail of it that waits, fed or not, loses its words (`DeliveryKind::Withdrawn`); for each
    /// Persona who heard it and may have been fed it, `notice` (with lane, room and labels of her copy) becomes mail.
    Redact {
        /// The event taken back.
        redacts: OwnedEventId,
        /// The delivery that tells of it; `lane` and `seq` are filled in for each Persona.
        notice: Delivery,
    },
    /// Mail for those who heard `edits`: like [`Effect::Deliver`] but dropped where the Persona never heard that event.
    DeliverEdit(PersonaId, OwnedEventId, Delivery),
    /// A member's state; an older `at` than the recorded one changes nothing.
    Member {
        /// The room.
        room: OwnedRoomId,
        /// The member.
        user: OwnedUserId,
        /// Display name.
        name: Option<String>,
        /// Whether joined.
        joined: bool,
        /// `origin_server_ts` of the change.
        at: Millis,
    },
    /// What a room is called or about; what was said of that earlier changes nothing.
    Described {
        /// The room.
        room: OwnedRoomId,
        /// What it is now.
        is: Described,
        /// `origin_server_ts` of the change.
        at: Millis,
    },
    /// A room is over, and another one takes its place.
    Upgraded {
        /// The room that is over.
        room: OwnedRoomId,
        /// The one that takes its place.
        to: OwnedRoomId,
    },
    /// Whom the thread with that root asks from now on.
    Asks(OwnedEventId, BTreeSet<PersonaId>),
    /// The room is encrypted from now on.
    Encrypted(OwnedRoomId),
    /// The echo of something we sent: the outbox row is settled, the event id kept.
    Echo(RequestId),
    /// Somebody reacts, perhaps to what a Persona said: it is gathered for her.
    React(Reacted),
    /// A Persona takes her place in a room.
    Seat(SeatRow),
    /// A Persona lost her place: what waits to be sent by her there is dropped.
    Unseat {
        /// Which Persona.
        persona: PersonaId,
        /// Her user.
        user: OwnedUserId,
        /// The room.
        room: OwnedRoomId,
    },
    /// An admin stops Personas in a room, or lets them go on; where that changes anything it is told.
    Steer {
        /// What was said.
        steer: Steer,
        /// What is sent to tell it.
        says: Vec<NewSay>,
    },
    /// The bot is asked something, which it answers by [`Store::answer`].
    Ask(Question),
    /// Says that are owed once for `key`, put into the outbox unless the key is done.
    Once {
        /// The fact behind it, e.g. `encrypted:!room`.
        key: String,
        /// What to send.
        says: Vec<NewSay>,
    },
}

/// Something unreadable that came in, kept for inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The raw JSON, cut at 64 KiB.
    pub raw: String,
    /// Why, as a fixed phrase.
    pub reason: String,
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
    /// Whose mail woke the Persona who says it; nobody where nobody's did, or where it is no Persona's.
    pub woken_by: BTreeSet<OwnedUserId>,
}

/// A turn's end with a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Whose.
    pub persona: PersonaId,
    /// Which turn.
    pub turn: TurnId,
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

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("the store at {path} is in use by another persona-bridge; stop that one first")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Its folder is another user's: what is made by opening it would be ours, and closed to that user's bridge.
    #[error("the store at {path} is another user's; do this as that user")]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// It belongs to somebody else.
    #[error("the store at {path} belongs to {found}, not to {wanted}; set [store] path to another folder")]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// Another format version.
    #[error(
        "the store at {path} has format {found}, written by persona-bridge {writer}; this one reads format {wanted}"
    )]
    Version {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        wanted: u32,
        /// The version that wrote it.
        writer: String,
    },
    /// A record cannot be read back.
    #[error("the record {key} in {tree} cannot be read: {reason}")]
    Corrupt {
        /// The tree.
        tree: &'static str,
        /// The key, printable.
        key: String,
        /// Why.
        reason: String,
    },
    /// The disk says no.
    #[error("the store failed: {0}")]
    Io(String),
}

#[doc(hidden)]
impl From<sled::Error> for StoreError {
    fn from(error: sled::Error) -> Self {
        Self::Io(error.to_string())
    }
}

#[doc(hidden)]
impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
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
