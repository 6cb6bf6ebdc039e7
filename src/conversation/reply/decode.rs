//! The reply's JSON, read strictly.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Fault, MAX_ITEMS, MAX_MEMORIES, MAX_REMINDERS, MAX_SHOWN};

/// A reply of the schema's shape, or of an earlier version's, which lacks some lists.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    pub(super) say: Vec<Say>,
    pub(super) react: Vec<React>,
    #[serde(default)]
    pub(super) remember: Vec<Remember>,
    #[serde(default)]
    pub(super) forget: Vec<String>,
    #[serde(default)]
    pub(super) show: Vec<String>,
    #[serde(default)]
    pub(super) pulse: Option<PulseWord>,
    #[serde(default)]
    pub(super) remind: Vec<RemindWord>,
    #[serde(default)]
    pub(super) unremind: Vec<String>,
}

/// Something to be said, as she wrote it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Say {
    pub(super) text: String,
    #[serde(default)]
    room: Option<String>,
    #[serde(default)]
    reply_to: Option<String>,
}

/// A reaction, as she wrote it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct React {
    pub(super) message: String,
    pub(super) key: String,
}

/// Something to be remembered, as she wrote it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remember {
    pub(super) text: String,
    #[serde(default)]
    pub(super) about: Vec<String>,
    #[serde(default)]
    pub(super) salience: Option<f64>,
    #[serde(default)]
    pub(super) task: Option<TaskWord>,
}

/// Her pulse, as she wrote it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PulseWord {
    #[serde(default)]
    pub(super) tempo: Option<String>,
    #[serde(default)]
    pub(super) urgency: Option<f64>,
}

/// What she wants to be reminded of, as she wrote it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemindWord {
    #[serde(default, rename = "in")]
    pub(super) after: Option<String>,
    #[serde(default)]
    pub(super) at: Option<String>,
    pub(super) text: String,
    #[serde(default)]
    pub(super) room: Option<String>,
}

/// How a task stands, as she wrote it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TaskWord {
    Open,
    Done,
}

impl Say {
    /// The room she named; an empty name is none.
    pub(super) fn room(&self) -> Option<&str> {
        self.room.as_deref().map(str::trim).filter(|room| !room.is_empty())
    }

    /// The label she answers, in its plain form; an empty one is none.
    pub(super) fn reply_to(&self) -> Option<String> {
        self.reply_to.as_deref().map(label).filter(|label| !label.is_empty())
    }
}

/// Reads a reply.
///
/// # Errors
/// Anything that is not of the schema's shape.
pub(super) fn decode(reply: &str) -> Result<Reply, Fault> {
    let read: Reply =
        serde_json::from_str(reply).map_err(|error| Fault(format!("not of the schema: {error}")))?;
    for (list, items, most) in [
        ("say", read.say.len(), MAX_ITEMS),
        ("react", read.react.len(), MAX_ITEMS),
        ("remember", read.remember.len(), MAX_MEMORIES),
        ("forget", read.forget.len(), MAX_ITEMS),
        ("show", read.show.len(), MAX_SHOWN),
        ("remind", read.remind.len(), MAX_REMINDERS),
        ("unremind", read.unremind.len(), MAX_REMINDERS),
    ] {
        if items > most {
            return Err(Fault(format!("{list} has {items} items; at most {most} are taken")));
        }
    }
    Ok(read)
}

/// The plain form of a label: `m12` for ` M12 `.
pub(super) fn label(given: &str) -> String {
    given.trim().to_lowercase()
}

/// The labels of messages and memories that a reply names, each once, so that older ones can be looked up before the reply is
/// used.
///
/// A reply that cannot be read names none.
pub fn labels_in(reply: &str) -> Vec<String> {
    let Ok(reply) = decode(reply) else { return Vec::new() };
    let answered = reply.say.iter().filter_map(Say::reply_to);
    let reacted = reply.react.iter().map(|react| label(&react.message));
    let forgotten = reply.forget.iter().map(|given| label(given));
    answered
        .chain(reacted)
        .chain(forgotten)
        .filter(|label| is_label(label))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn is_label(label: &str) -> bool {
    label.strip_prefix(['m', 'n']).is_some_and(|number| number.parse::<u64>().is_ok())
}
