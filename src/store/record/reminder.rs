//! What Personas want to be reminded of.

use ruma::OwnedRoomId;
use serde::{Deserialize, Serialize};

use super::mail::LaneForm;
use crate::conversation::hops::UNKNOWN;
use crate::conversation::{Millis, Remind, Reminder, ReminderNumber};

/// [`Reminder`] without its number, which is in the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct ReminderForm {
    lane: LaneForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    room: Option<OwnedRoomId>,
    text: String,
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    hops: u32,
    at: u64,
    set: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listed: Option<u32>,
}

fn unknown() -> u32 {
    UNKNOWN
}

fn is_unknown(hops: &u32) -> bool {
    *hops == UNKNOWN
}

impl From<Reminder> for ReminderForm {
    fn from(reminder: Reminder) -> Self {
        let Reminder { number: _, lane, remind: Remind { due, text, room, hops }, set, listed } = reminder;
        Self { lane: LaneForm::from(&lane), room, text, hops, at: due.0, set: set.0, listed }
    }
}

impl ReminderForm {
    /// The reminder as it is where another room takes the place of one; none where it has nothing to do with that one.
    pub(in crate::store) fn carried_over(mut self, from: &OwnedRoomId, to: &OwnedRoomId) -> Option<Self> {
        let is_of_lane = matches!(&self.lane, LaneForm::Direct(room) if room == from);
        let is_about = self.room.as_ref() == Some(from);
        if is_of_lane {
            self.lane = LaneForm::Direct(to.clone());
        }
        if is_about {
            self.room = Some(to.clone());
        }
        (is_of_lane || is_about).then_some(self)
    }

    /// The reminder of that number.
    pub(in crate::store) fn numbered(self, number: ReminderNumber) -> Reminder {
        let Self { lane, room, text, hops, at, set, listed } = self;
        let remind = Remind { due: Millis(at), text, room, hops };
        Reminder { number, lane: lane.into(), remind, set: Millis(set), listed }
    }
}
