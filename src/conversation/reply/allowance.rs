//! What a turn may speak to, gathered from its own lane.

use std::collections::BTreeMap;

use ruma::{OwnedEventId, OwnedRoomId};

use super::{Allowance, Rooms, Target};
use crate::conversation::batch::{Batch, Delivery, DeliveryKind};
use crate::conversation::ids::Lane;

/// The allowance of a batch's turn: its rooms, its labels, and those of `heard` that were heard in the same lane.
pub fn allowance(
    batch: &Batch,
    rooms: Rooms,
    heard: impl IntoIterator<Item = (String, Lane, Target)>,
) -> Allowance {
    let earlier = heard
        .into_iter()
        .filter(|(_, lane, _)| *lane == batch.lane)
        .map(|(label, _, target)| (label, target));
    let here = batch.shown().filter_map(|delivery| Some((format!("m{}", delivery.seq), target(delivery)?)));
    let labels = earlier.chain(here).filter(|(_, target)| rooms.contains(&target.room)).collect();
    let (default, asked) = (default_place(batch, &rooms), asked(batch, &rooms));
    let newest = newest_in_threads(batch);
    let home = rooms.only().cloned();
    Allowance { rooms, labels, default, home, asked, newest, ..Allowance::default() }
}

/// What a delivery's label stands for: an edit stands for the message it edits, a redaction for nothing.
fn target(delivery: &Delivery) -> Option<Target> {
    let event = match &delivery.kind {
        DeliveryKind::Edit(edited) => edited,
        DeliveryKind::Redaction(_) | DeliveryKind::Withdrawn => return None,
        DeliveryKind::Text | DeliveryKind::Emote | DeliveryKind::Notice | DeliveryKind::Media => {
            &delivery.event
        }
    };
    let (room, thread) = (delivery.room.clone(), delivery.thread.clone());
    Some(Target { room, event: event.clone(), thread })
}

/// The newest message that asks her, or the newest of any kind.
fn default_place(batch: &Batch, rooms: &Rooms) -> Option<Target> {
    let said = batch.shown().filter_map(|delivery| Some((delivery.is_asked(), target(delivery)?)));
    let newest = said.enumerate().max_by_key(|(place, (asked, _))| (*asked, *place));
    newest.map(|(_, (_, newest))| newest).filter(|newest| rooms.contains(&newest.room))
}

fn newest_in_threads(batch: &Batch) -> BTreeMap<OwnedEventId, OwnedEventId> {
    let in_thread = |delivery: &Delivery| Some((delivery.thread.clone()?, target(delivery)?.event));
    batch.shown().filter_map(in_thread).collect()
}

fn asked(batch: &Batch, rooms: &Rooms) -> BTreeMap<OwnedRoomId, Target> {
    let addressed = batch.shown().filter(|delivery| delivery.is_asked() && rooms.contains(&delivery.room));
    addressed.filter_map(|delivery| Some((delivery.room.clone(), target(delivery)?))).collect()
}

#[cfg(test)]
mod tests;
