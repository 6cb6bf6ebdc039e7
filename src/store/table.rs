//! The kinds of rows, and their keys.

use super::Result;
use super::record;

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal,)*) => {
        /// The kinds of rows; each stands in the database under the kind's number, then its key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Table {
            $($(#[$doc])* $table,)*
        }

        impl Table {
            /// All of them, in the order of their discriminants.
            pub(super) const ALL: &[Self] = &[$(Self::$table,)*];

            /// The name, for errors.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $name,)*
                }
            }
        }
    };
}

tables! {
    /// Plain texts: owner, format, writer, epoch, made, control room, counters.
    Meta = "meta",
    /// Event → when it was heard, by whom under which number, its edits, whether taken back.
    Events = "events",
    /// Persona, number → mail that waits or stands in her open turn.
    Mail = "mail",
    /// Words too long to stand in the row that they belong to.
    Words = "words",
    /// Persona, number → what the number stands for once its mail is gone.
    Heard = "heard",
    /// Persona, number → mail put aside, with the reason.
    Held = "held",
    /// Persona → her last number.
    Numbers = "numbers",
    /// Persona → session.
    Sessions = "sessions",
    /// Persona → open turn.
    Turns = "turns",
    /// Place → say.
    Outbox = "outbox",
    /// Request → the place where it waits, or the event it became.
    Requests = "requests",
    /// Event of ours → when.
    Ours = "ours",
    /// Key → when its says were put in.
    Once = "once",
    /// Room → alias, encryption, mark.
    Rooms = "rooms",
    /// Room, Persona → seat.
    Seats = "seats",
    /// Room, user → membership.
    Members = "members",
    /// Number → unreadable text.
    Quarantine = "quarantine",
    /// User → how she is authenticated.
    Identities = "identities",
    /// Parts of values that are too large for one row.
    Chunks = "chunks",
    /// Time, number → what a session used.
    Ledger = "ledger",
    /// Number → part of what a commit wrote.
    Journal = "journal",
    /// Persona, number → memory.
    Memories = "memories",
    /// Event, then Persona and number → the memory that was learned from it, and in which room.
    Learned = "learned",
    /// Persona → what her session's generation was shown of them.
    Seen = "seen",
    /// Event → what the bot is asked by it, until that is answered.
    Questions = "questions",
    /// Persona → the document of her state.
    States = "states",
    /// Persona, lane, number → a turn that is over, as it is taken down.
    Transcript = "transcript",
    /// Slug → open campaign.
    Campaigns = "campaigns",
    /// Persona, lane → what her session was told of its rooms; without a lane, of what is the same in all.
    Told = "told",
    /// Room → the pairs of Personas who have woken each other there.
    Pairs = "pairs",
    /// Room → how many events of Personas it bears, and when the newest were sent.
    Paces = "paces",
    /// Persona → what she votes for the beat, and when her last turn ended.
    Rhythms = "rhythms",
    /// Persona, lane, number → a reaction to what she said that she was not told yet; behind them, how many more there are.
    Reactions = "reactions",
    /// Persona, number → what she wants to be reminded of.
    Reminders = "reminders",
}

/// A key whose first part may be scanned for: the part with its length before it, then the rest.
pub(super) fn key(first: &str, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(first.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), first.as_bytes(), rest].concat()
}

/// The parts of such a key.
pub(super) fn parts(table: Table, key: &[u8]) -> Result<(String, &[u8])> {
    let read = || {
        let (length, rest) = key.split_first_chunk::<2>()?;
        let (first, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some((std::str::from_utf8(first).ok()?.to_owned(), rest))
    };
    read().ok_or_else(|| record::corrupt(table, key, "not a key of two parts"))
}

/// A number as the rest of a key or as a key: big-endian, so that order is kept.
pub(super) fn number(table: Table, rest: &[u8]) -> Result<u64> {
    let bytes = rest.try_into().map_err(|_| record::corrupt(table, rest, "not a number of 8 bytes"))?;
    Ok(u64::from_be_bytes(bytes))
}
