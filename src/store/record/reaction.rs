//! Reactions to what Personas said that are not told yet.

use ruma::{OwnedEventId, OwnedRoomId};
use serde::{Deserialize, Serialize};

use super::mail::LaneForm;

/// What is gathered in a lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum GatheredForm {
    /// A reaction.
    One {
        /// Its event.
        event: OwnedEventId,
        /// The room.
        room: OwnedRoomId,
        /// To which event.
        to: OwnedEventId,
        /// What stands in it.
        key: String,
    },
    /// How many more there are.
    More(u64),
}

/// Where a reaction is gathered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct ReactedForm {
    pub(in crate::store) persona: String,
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) number: u64,
}
