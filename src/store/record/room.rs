//! Rooms, who is in them, and what was unreadable.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId};
use serde::{Deserialize, Serialize};

use super::mail::LaneForm;
use crate::conversation::Millis;
use crate::store::StartLine;

/// A room.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct RoomForm {
    pub(in crate::store) alias: Option<String>,
    pub(in crate::store) encrypted: bool,
    pub(in crate::store) mark: Option<OwnedEventId>,
    /// The Personas who had a seat and lost it.
    #[serde(default)]
    pub(in crate::store) out: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "TextForm::is_unknown")]
    pub(in crate::store) name: TextForm,
    #[serde(default, skip_serializing_if = "TextForm::is_unknown")]
    pub(in crate::store) topic: TextForm,
    /// The room that takes its place, where it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) successor: Option<OwnedRoomId>,
}

/// What people wrote of a room last, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct TextForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) text: Option<String>,
    pub(in crate::store) at: u64,
}

impl TextForm {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// A seat.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SeatForm {
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) invite: Option<OwnedEventId>,
    #[serde(default = "LineForm::long_passed")]
    pub(in crate::store) line: Option<LineForm>,
}

/// A start line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct LineForm {
    at: u64,
    passed: bool,
}

impl LineForm {
    /// Of a seat from before lines were kept.
    #[expect(clippy::unnecessary_wraps, reason = "it stands for a field that may be none")]
    fn long_passed() -> Option<Self> {
        Some(Self { at: 0, passed: true })
    }
}

impl From<StartLine> for LineForm {
    fn from(line: StartLine) -> Self {
        Self { at: line.at.0, passed: line.passed }
    }
}

impl From<LineForm> for StartLine {
    fn from(line: LineForm) -> Self {
        Self { at: Millis(line.at), passed: line.passed }
    }
}

/// A membership; those who left are kept, so that an older join does not bring them back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct MemberForm {
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) joined: bool,
    pub(in crate::store) at: u64,
}

/// Something unreadable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct QuarantineForm {
    pub(in crate::store) raw: String,
    pub(in crate::store) reason: String,
    pub(in crate::store) at: u64,
}
