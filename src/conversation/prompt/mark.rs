//! The marks in a message's brackets: to whom it is, how late, and what it refers to.

use std::collections::BTreeMap;

use ruma::{EventId, OwnedEventId};

use super::{OWN, time};
use crate::conversation::batch::{Batch, Delivery, DeliveryKind};

/// The mark of what a Persona says.
const PERSONA: &str = "persona";

/// What events are called in a batch.
pub(super) struct Labels<'a> {
    heard: &'a BTreeMap<OwnedEventId, String>,
    here: BTreeMap<&'a EventId, String>,
}

impl<'a> Labels<'a> {
    /// Labels of what she heard before and of the batch itself.
    pub(super) fn new(batch: &'a Batch, heard: &'a BTreeMap<OwnedEventId, String>) -> Self {
        let here = batch.shown().map(|delivery| (&*delivery.event, format!("m{}", delivery.seq))).collect();
        Self { heard, here }
    }

    fn of(&self, event: &EventId) -> Option<&str> {
        let label = self.here.get(event).or_else(|| self.heard.get(event))?;
        is_label(label).then_some(label)
    }

    /// The event as `m7`, or in words where she has no label for it.
    fn called(&self, event: &EventId) -> &str {
        match self.of(event) {
            Some(OWN) => "your message",
            Some(label) => label,
            None => "an earlier message",
        }
    }
}

/// The marks of a delivery in their fixed order.
pub(super) fn marks(delivery: &Delivery, labels: &Labels<'_>) -> Vec<String> {
    let mut marks = Vec::new();
    if delivery.addressed {
        marks.push("to you".to_owned());
    }
    marks.extend(delivery.hops.map(|_| PERSONA.to_owned()));
    marks.extend(lateness(delivery));
    marks.extend(delivery.reply_to.as_ref().map(|event| format!("reply to {}", labels.called(event))));
    marks.extend(delivery.thread.as_ref().map(|event| thread(labels.called(event))));
    marks.extend(kind(&delivery.kind, labels));
    marks
}

fn thread(called: &str) -> String {
    if called.starts_with('m') { format!("thread {called}") } else { format!("thread of {called}") }
}

fn lateness(delivery: &Delivery) -> Option<String> {
    if !delivery.late {
        return None;
    }
    if !time::known(delivery.said) {
        return Some("late".to_owned());
    }
    let minutes = delivery.heard.since(delivery.said).as_secs() / 60;
    (minutes > 0).then(|| format!("late by {minutes} min"))
}

fn kind(kind: &DeliveryKind, labels: &Labels<'_>) -> Option<String> {
    match kind {
        DeliveryKind::Text | DeliveryKind::Withdrawn => None,
        DeliveryKind::Emote => Some("emote".to_owned()),
        DeliveryKind::Notice => Some("notice".to_owned()),
        DeliveryKind::Media => Some("media".to_owned()),
        DeliveryKind::Edit(event) => Some(format!("edit of {}", labels.called(event))),
        DeliveryKind::Redaction(event) => Some(format!("took back {}", labels.called(event))),
    }
}

/// Whether it has the form of a label: `m` and a number, or [`OWN`].
fn is_label(label: &str) -> bool {
    let number = label.strip_prefix('m').unwrap_or_default();
    label == OWN || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
