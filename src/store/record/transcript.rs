//! Turns as they are taken down.

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::{Deserialize, Serialize};

use super::turn::Id;
use crate::conversation::Millis;
use crate::conversation::past::{PastLine, PastTurn};

/// [`PastTurn`], with the events of what was heard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct PastForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) turn: Option<Id>,
    pub(in crate::store) generation: u32,
    pub(in crate::store) at: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) heard: Vec<HeardLineForm>,
    /// The events of lines that are not taken down, with their rooms; she may have answered them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) beside: Vec<(OwnedEventId, OwnedRoomId)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) said: Vec<SaidLineForm>,
}

/// What was heard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct HeardLineForm {
    pub(in crate::store) event: OwnedEventId,
    pub(in crate::store) room: OwnedRoomId,
    pub(in crate::store) sender: OwnedUserId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) text: String,
    pub(in crate::store) said: u64,
}

/// What she said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SaidLineForm {
    pub(in crate::store) room: OwnedRoomId,
    pub(in crate::store) text: String,
}

impl From<PastForm> for PastTurn {
    fn from(form: PastForm) -> Self {
        let at = Millis(form.at);
        let heard = form.heard.into_iter().map(|line| PastLine {
            room: line.room,
            sender: Some((line.sender, line.name)),
            text: line.text,
            said: Millis(line.said),
        });
        let said = form.said.into_iter();
        let said = said.map(|line| PastLine { room: line.room, sender: None, text: line.text, said: at });
        Self { generation: form.generation, lines: heard.chain(said).collect() }
    }
}
