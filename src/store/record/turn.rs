//! Turns, sessions and numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::ledger::AccountForm;
use super::mail::LaneForm;
use super::told::NewsForm;
use crate::conversation::notices::News;
use crate::conversation::{LineId, Millis, TurnId};
use crate::persona::session::{Fingerprint, Session, Usd};
use crate::persona::{OpenTurn, Troubles, Wake};

/// A uuid as text.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Id(pub(in crate::store) Uuid);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A Persona's last number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct NumberForm {
    pub(in crate::store) last: u64,
}

/// [`Troubles`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct TroublesForm {
    pub(in crate::store) transient: u32,
    pub(in crate::store) lost: u32,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(in crate::store) deaths: u32,
    pub(in crate::store) finals: u32,
    pub(in crate::store) invalid: u32,
    pub(in crate::store) generations: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) tight: bool,
    pub(in crate::store) fault: Option<String>,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

fn is_nothing(amount: &u64) -> bool {
    *amount == 0
}

/// [`Wake`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum WakeForm {
    #[default]
    Mail,
    Beat,
    Silence,
    Reminder,
}

impl WakeForm {
    fn is_mail(&self) -> bool {
        *self == Self::Mail
    }
}

impl From<Wake> for WakeForm {
    fn from(wake: Wake) -> Self {
        match wake {
            Wake::Mail => Self::Mail,
            Wake::Beat => Self::Beat,
            Wake::Silence => Self::Silence,
            Wake::Reminder => Self::Reminder,
        }
    }
}

impl From<WakeForm> for Wake {
    fn from(form: WakeForm) -> Self {
        match form {
            WakeForm::Mail => Self::Mail,
            WakeForm::Beat => Self::Beat,
            WakeForm::Silence => Self::Silence,
            WakeForm::Reminder => Self::Reminder,
        }
    }
}

/// [`OpenTurn`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct TurnForm {
    pub(in crate::store) id: Id,
    pub(in crate::store) lane: LaneForm,
    #[serde(default, skip_serializing_if = "WakeForm::is_mail")]
    pub(in crate::store) wake: WakeForm,
    pub(in crate::store) seqs: Vec<u64>,
    pub(in crate::store) attempt: u32,
    pub(in crate::store) not_before: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(in crate::store) as_of: u64,
    /// In billionths of a dollar.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(in crate::store) spent: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) flush: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) reminders: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) news: Option<NewsForm>,
    pub(in crate::store) troubles: TroublesForm,
}

impl From<OpenTurn> for TurnForm {
    fn from(turn: OpenTurn) -> Self {
        let Troubles { transient, lost, deaths, finals, invalid, generations, tight, fault } = turn.troubles;
        Self {
            id: Id(turn.id.0),
            lane: LaneForm::from(&turn.lane),
            wake: turn.wake.into(),
            seqs: turn.seqs,
            attempt: turn.attempt,
            not_before: turn.not_before.0,
            as_of: turn.as_of.0,
            spent: turn.spent.0,
            flush: turn.flush,
            reminders: turn.reminders,
            news: turn.news.map(NewsForm::from),
            troubles: TroublesForm { transient, lost, deaths, finals, invalid, generations, tight, fault },
        }
    }
}

impl From<TurnForm> for OpenTurn {
    fn from(form: TurnForm) -> Self {
        let TroublesForm { transient, lost, deaths, finals, invalid, generations, tight, fault } =
            form.troubles;
        Self {
            id: TurnId(form.id.0),
            lane: form.lane.into(),
            wake: form.wake.into(),
            seqs: form.seqs,
            attempt: form.attempt,
            not_before: Millis(form.not_before),
            as_of: Millis(form.as_of),
            spent: Usd(form.spent),
            flush: form.flush,
            reminders: form.reminders,
            news: form.news.map(News::from),
            troubles: Troubles { transient, lost, deaths, finals, invalid, generations, tight, fault },
        }
    }
}

/// [`Session`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct SessionForm {
    pub(in crate::store) generation: u32,
    pub(in crate::store) id: Id,
    pub(in crate::store) fingerprint: BTreeMap<String, String>,
    pub(in crate::store) begun: u64,
    pub(in crate::store) last_committed: Option<Id>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) seeded: bool,
    #[serde(default)]
    pub(in crate::store) account: AccountForm,
}

impl From<Session> for SessionForm {
    fn from(session: Session) -> Self {
        Self {
            generation: session.generation,
            id: Id(session.id),
            fingerprint: session.fingerprint.0,
            begun: session.begun.0,
            last_committed: session.last_committed.map(|line| Id(line.0)),
            seeded: session.seeded,
            account: session.account.into(),
        }
    }
}

impl From<SessionForm> for Session {
    fn from(form: SessionForm) -> Self {
        Self {
            generation: form.generation,
            id: form.id.0,
            fingerprint: Fingerprint(form.fingerprint),
            begun: Millis(form.begun),
            last_committed: form.last_committed.map(|line| LineId(line.0)),
            seeded: form.seeded,
            account: form.account.into(),
        }
    }
}
