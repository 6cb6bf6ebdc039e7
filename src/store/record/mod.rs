//! What lies on disk: one form for each kind of row, a version byte and JSON after it.
//!
//! The core's types know nothing of this. A form changes only together with its version; to add a field, give it a
//! default, and look at the snapshots below.

mod brake;
mod campaign;
mod guard;
mod heart;
mod ledger;
mod mail;
mod memory;
mod outbox;
mod reaction;
mod reminder;
mod room;
mod state;
mod told;
mod transcript;
mod turn;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::table::Table;
use super::{Result, StoreError};

pub(super) use brake::{brake, brake_text};
pub(super) use campaign::CampaignForm;
pub(super) use guard::{PaceForm, PairForm, PairsForm};
pub(super) use heart::{RhythmForm, pace, pace_text};
pub(super) use ledger::EntryForm;
pub(super) use mail::{EventForm, HeadForm, HeardForm, HeldForm, KindForm, LaneForm, MailForm};
pub(super) use memory::{LearnedForm, MemoryForm, QuestionForm, SeenForm};
pub(super) use outbox::{IdentityForm, OursForm, RequestForm, SayForm, SinceForm, SpokenForm};
pub(super) use reaction::{GatheredForm, ReactedForm};
pub(super) use reminder::ReminderForm;
pub(super) use room::{LineForm, MemberForm, QuarantineForm, RoomForm, SeatForm, TextForm};
pub(super) use state::StateForm;
pub(super) use told::{ToldForm, rooms, rooms_form};
pub(super) use transcript::{HeardLineForm, PastForm, SaidLineForm};
pub(super) use turn::{Id, NumberForm, SessionForm, TurnForm};

/// About as long as most records are.
const USUAL: usize = 512;

/// A form of row.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// The version of the form, never 0.
    const VERSION: u8 = 1;
}

/// Whether a time is none.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(at: &u64) -> bool {
    *at == 0
}

/// The bytes of a record.
pub(super) fn encode<R: Record>(record: &R) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.push(R::VERSION);
    serde_json::to_writer(&mut bytes, record).expect("forms are plain data with text keys");
    bytes
}

/// The record in some bytes. What is wrong is said without a word of what they hold.
pub(super) fn decode<R: Record>(table: Table, key: &[u8], bytes: &[u8]) -> Result<R> {
    match bytes.split_first() {
        Some((version, json)) if *version == R::VERSION => serde_json::from_slice(json).map_err(|error| {
            let reason = format!("{:?} error at byte {}", error.classify(), error.column());
            corrupt(table, key, &reason)
        }),
        Some((version, _)) => corrupt_err(table, key, &format!("its form has version {version}")),
        None => corrupt_err(table, key, "it is empty"),
    }
}

fn corrupt_err<T>(table: Table, key: &[u8], reason: &str) -> Result<T> {
    Err(corrupt(table, key, reason))
}

/// The error of a row that cannot be read back.
pub(super) fn corrupt(table: Table, key: &[u8], reason: &str) -> StoreError {
    StoreError::Corrupt { tree: table.name(), key: key.escape_ascii().to_string(), reason: reason.to_owned() }
}

macro_rules! records {
    ($($form:ty),*) => {
        $(impl Record for $form {})*
    };
}

records!(
    CampaignForm,
    EntryForm,
    EventForm,
    MailForm,
    MemoryForm,
    LearnedForm,
    SeenForm,
    QuestionForm,
    HeadForm,
    HeardForm,
    HeldForm,
    NumberForm,
    ToldForm,
    TurnForm,
    SessionForm,
    SayForm,
    RequestForm,
    SinceForm,
    OursForm,
    RoomForm,
    SeatForm,
    MemberForm,
    QuarantineForm,
    StateForm,
    RhythmForm,
    ReminderForm,
    PastForm,
    PairsForm,
    PaceForm,
    GatheredForm,
    IdentityForm
);

#[cfg(test)]
mod tests;
