//! Mail, what stays of it, and what is known of events.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::{Deserialize, Serialize};

use super::reaction::ReactedForm;
use super::turn::Id;
use crate::conversation::{Delivery, DeliveryKind, Lane, Millis, RegisterName};
use crate::store::Heard;

/// [`Lane`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum LaneForm {
    /// Of a register.
    Register(String),
    /// Of a direct room.
    Direct(OwnedRoomId),
}

impl From<&Lane> for LaneForm {
    fn from(lane: &Lane) -> Self {
        match lane {
            Lane::Register(name) => Self::Register(name.0.clone()),
            Lane::Direct(room) => Self::Direct(room.clone()),
        }
    }
}

impl From<LaneForm> for Lane {
    fn from(form: LaneForm) -> Self {
        match form {
            LaneForm::Register(name) => Self::Register(RegisterName(name)),
            LaneForm::Direct(room) => Self::Direct(room),
        }
    }
}

/// What is known of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct EventForm {
    /// When it came in; none where only others spoke of it, or where it is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) at: Option<u64>,
    /// Who heard it, under which number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::store) heard: BTreeMap<String, u64>,
    /// The edits of it that were heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) edits: Vec<OwnedEventId>,
    /// Whom the thread that begins at it asked last; none where it has turned to nobody yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) asked: Option<BTreeSet<String>>,
    /// In which room it was said and by whom, if nobody heard it since it was addressed to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) passed: Option<(OwnedRoomId, OwnedUserId)>,
    /// The rooms in which it was taken back, and when; it counts in its own only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::store) redacted: BTreeMap<OwnedRoomId, u64>,
    /// Where it was gathered, if it is a reaction to what a Persona said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) reacted: Option<ReactedForm>,
}

/// [`DeliveryKind`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum KindForm {
    /// Words.
    Text,
    /// `m.emote`.
    Emote,
    /// `m.notice`.
    Notice,
    /// Media.
    Media,
    /// New words for an earlier message.
    Edit(OwnedEventId),
    /// An earlier message was taken back.
    Redaction(OwnedEventId),
    /// Taken back before it was fed.
    Withdrawn,
}

impl From<&DeliveryKind> for KindForm {
    fn from(kind: &DeliveryKind) -> Self {
        match kind {
            DeliveryKind::Text => Self::Text,
            DeliveryKind::Emote => Self::Emote,
            DeliveryKind::Notice => Self::Notice,
            DeliveryKind::Media => Self::Media,
            DeliveryKind::Edit(event) => Self::Edit(event.clone()),
            DeliveryKind::Redaction(event) => Self::Redaction(event.clone()),
            DeliveryKind::Withdrawn => Self::Withdrawn,
        }
    }
}

impl From<KindForm> for DeliveryKind {
    fn from(form: KindForm) -> Self {
        match form {
            KindForm::Text => Self::Text,
            KindForm::Emote => Self::Emote,
            KindForm::Notice => Self::Notice,
            KindForm::Media => Self::Media,
            KindForm::Edit(event) => Self::Edit(event),
            KindForm::Redaction(event) => Self::Redaction(event),
            KindForm::Withdrawn => Self::Withdrawn,
        }
    }
}

/// [`Delivery`] without its number, which is in the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct MailForm {
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) room: OwnedRoomId,
    pub(in crate::store) sender: OwnedUserId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) event: OwnedEventId,
    pub(in crate::store) kind: KindForm,
    /// None where the words stand in a row of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) thread: Option<OwnedEventId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) reply_to: Option<OwnedEventId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) addressed: bool,
    /// Whether it wakes her; none where it does if it is addressed to her.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) wakes: Option<bool>,
    /// How far a Persona's line is from the last word of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) hops: Option<u32>,
    /// How far from a person's word the turn was in which she asked for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) again: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) late: bool,
    /// Whether an earlier turn may have fed it: it was held, and released.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) fed: bool,
    /// Whether she was shown a part of it and asked for the whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) whole: bool,
    pub(in crate::store) said: u64,
    pub(in crate::store) heard: u64,
}

impl MailForm {
    /// Whether a person addresses her in it, and it wakes her.
    pub(in crate::store) fn is_of_person_who_asks(&self) -> bool {
        self.addressed
            && self.hops.is_none()
            && self.wakes != Some(false)
            && !matches!(self.kind, KindForm::Withdrawn)
    }

    /// The form of a delivery, its words apart.
    pub(in crate::store) fn new(delivery: Delivery) -> (Self, String) {
        let (addressed, wakes) = (delivery.addressed, delivery.wakes);
        let mut form = Self {
            lane: LaneForm::from(&delivery.lane),
            room: delivery.room,
            sender: delivery.sender,
            name: delivery.sender_name,
            event: delivery.event,
            kind: KindForm::from(&delivery.kind),
            text: None,
            thread: delivery.thread,
            reply_to: delivery.reply_to,
            addressed,
            wakes: None,
            hops: delivery.hops,
            again: delivery.again,
            late: delivery.late,
            fed: false,
            whole: false,
            said: delivery.said.0,
            heard: delivery.heard.0,
        };
        form.address(addressed, wakes);
        (form, delivery.text)
    }

    /// Whether it is addressed to her, and whether it wakes her.
    pub(in crate::store) fn address(&mut self, addressed: bool, wakes: bool) {
        (self.addressed, self.wakes) = (addressed, Some(wakes).filter(|wakes| *wakes != addressed));
    }

    /// The delivery with its number and words.
    pub(in crate::store) fn delivery(self, seq: u64, text: String) -> Delivery {
        Delivery {
            seq,
            lane: self.lane.into(),
            room: self.room,
            sender: self.sender,
            sender_name: self.name,
            event: self.event,
            kind: self.kind.into(),
            text,
            thread: self.thread,
            reply_to: self.reply_to,
            addressed: self.addressed,
            wakes: self.wakes.unwrap_or(self.addressed),
            hops: self.hops,
            again: self.again,
            late: self.late,
            said: Millis(self.said),
            heard: Millis(self.heard),
        }
    }

    /// What stays when the mail is gone.
    pub(in crate::store) fn label(&self) -> HeardForm {
        HeardForm {
            lane: self.lane.clone(),
            room: self.room.clone(),
            event: self.event.clone(),
            sender: self.sender.clone(),
            thread: self.thread.clone(),
        }
    }
}

/// What the index keeps of a [`MailForm`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct HeadForm {
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) room: OwnedRoomId,
    pub(in crate::store) sender: OwnedUserId,
    pub(in crate::store) kind: KindForm,
    #[serde(default)]
    pub(in crate::store) addressed: bool,
    #[serde(default)]
    pub(in crate::store) wakes: Option<bool>,
    #[serde(default)]
    pub(in crate::store) hops: Option<u32>,
    #[serde(default)]
    pub(in crate::store) whole: bool,
    pub(in crate::store) heard: u64,
}

impl From<&MailForm> for HeadForm {
    fn from(mail: &MailForm) -> Self {
        Self {
            lane: mail.lane.clone(),
            room: mail.room.clone(),
            sender: mail.sender.clone(),
            kind: mail.kind.clone(),
            addressed: mail.addressed,
            wakes: mail.wakes,
            hops: mail.hops,
            whole: mail.whole,
            heard: mail.heard,
        }
    }
}

/// [`Heard`] without its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct HeardForm {
    pub(in crate::store) lane: LaneForm,
    pub(in crate::store) room: OwnedRoomId,
    pub(in crate::store) event: OwnedEventId,
    pub(in crate::store) sender: OwnedUserId,
    pub(in crate::store) thread: Option<OwnedEventId>,
}

impl HeardForm {
    /// With its number.
    pub(in crate::store) fn heard(self, seq: u64) -> Heard {
        Heard {
            seq,
            lane: self.lane.into(),
            room: self.room,
            event: self.event,
            sender: self.sender,
            thread: self.thread,
        }
    }
}

/// Mail put aside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct HeldForm {
    pub(in crate::store) reason: String,
    pub(in crate::store) turn: Id,
    pub(in crate::store) at: u64,
    pub(in crate::store) mail: MailForm,
}
