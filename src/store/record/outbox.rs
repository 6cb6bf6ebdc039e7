//! What is to be sent, by whom, and what became of it.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::{Deserialize, Serialize};

use super::mail::LaneForm;
use super::turn::Id;
use crate::conversation::{Lane, Millis, PersonaId, RequestId, TurnId};
use crate::store::{IdentityRow, NewSay, Say};

/// [`Say`] without its place, which is the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SayForm {
    pub(in crate::store) sender: OwnedUserId,
    pub(in crate::store) room: OwnedRoomId,
    pub(in crate::store) request: String,
    pub(in crate::store) kind: String,
    pub(in crate::store) cause: String,
    pub(in crate::store) part: String,
    pub(in crate::store) since: u64,
    /// Why it is parked, if it is.
    pub(in crate::store) parked: Option<String>,
    /// Whether it is parked because the homeserver failed on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) failed: bool,
    /// None where the body stands in a row of its own.
    pub(in crate::store) body: Option<String>,
    /// The turn in which a Persona said it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) spoken: Option<SpokenForm>,
}

/// In which turn a Persona said something.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SpokenForm {
    pub(in crate::store) persona: String,
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) turn: Id,
    /// Whose mail it is about, as long as it is not sent.
    #[serde(rename = "woken_by", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(in crate::store) owed_to: BTreeSet<OwnedUserId>,
}

impl SpokenForm {
    /// The form of it.
    pub(in crate::store) fn new(
        persona: &PersonaId,
        lane: &Lane,
        turn: TurnId,
        owed_to: BTreeSet<OwnedUserId>,
    ) -> Self {
        Self { persona: persona.0.clone(), lane: LaneForm::from(lane), turn: Id(turn.0), owed_to }
    }
}

impl SayForm {
    /// The form of a say, its body apart.
    pub(in crate::store) fn new(say: NewSay, spoken: Option<SpokenForm>, now: Millis) -> (Self, String) {
        let form = Self {
            sender: say.sender,
            room: say.room,
            request: say.request.0,
            kind: say.kind,
            cause: say.cause,
            part: say.part,
            since: now.0,
            parked: None,
            failed: false,
            body: None,
            spoken,
        };
        (form, say.body)
    }

    /// The say with its place and body.
    pub(in crate::store) fn say(self, seq: u64, body: String) -> Say {
        let say = NewSay {
            sender: self.sender,
            room: self.room,
            request: RequestId(self.request),
            kind: self.kind,
            body,
            cause: self.cause,
            part: self.part,
        };
        let owed_to = self.spoken.map(|spoken| spoken.owed_to).unwrap_or_default();
        Say { seq, say, since: Millis(self.since), owed_to }
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum RequestForm {
    /// It waits at this place.
    Waits(u64),
    /// It is this event since that time.
    Sent(OwnedEventId, u64),
}

/// An event of ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct OursForm {
    pub(in crate::store) sender: OwnedUserId,
    pub(in crate::store) at: u64,
    /// Where a Persona said it in a turn, and in which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) spoken: Option<(OwnedRoomId, SpokenForm)>,
}

/// Since when something is so.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SinceForm {
    pub(in crate::store) at: u64,
}

/// [`IdentityRow`] without its user, who is the key. No `Debug`: it holds a token.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::store) struct IdentityForm {
    pub(in crate::store) device: String,
    pub(in crate::store) token: Option<String>,
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) avatar: Option<String>,
}

impl IdentityForm {
    /// The form and its key.
    pub(in crate::store) fn new(row: IdentityRow) -> (OwnedUserId, Self) {
        let (name, avatar) = row.profile;
        (row.user, Self { device: row.device, token: row.token, name, avatar })
    }

    /// With its user.
    pub(in crate::store) fn row(self, user: OwnedUserId) -> IdentityRow {
        let profile = (self.name, self.avatar);
        IdentityRow { user, device: self.device, token: self.token, profile }
    }
}
