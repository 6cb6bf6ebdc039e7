//! Rooms, who is in them, and what was unreadable.

use ruma::OwnedEventId;
use serde::{Deserialize, Serialize};

use super::mail::LaneForm;

/// A room.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct RoomForm {
    pub(in crate::store) alias: Option<String>,
    pub(in crate::store) encrypted: bool,
    pub(in crate::store) mark: Option<OwnedEventId>,
}

/// A seat.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SeatForm {
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) invite: Option<OwnedEventId>,
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
