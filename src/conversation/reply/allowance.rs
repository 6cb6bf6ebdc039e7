//! What a turn may speak to, gathered from its own lane.

use std::collections::BTreeMap;

use ruma::{OwnedEventId, OwnedRoomId};

use super::{Allowance, Target};
use crate::conversation::batch::{Batch, Delivery, DeliveryKind};
use crate::conversation::ids::{Lane, PersonaId};
use crate::conversation::room::Room;

/// The rooms that a lane's turn may speak in, with all their names: those she hears in this lane and can be heard in.
///
/// `labels` are the labels shown to her ([`Surroundings::rooms`](crate::conversation::prompt::Surroundings)).
pub fn rooms_of<'a>(
    lane: &Lane,
    persona: &PersonaId,
    rooms: impl IntoIterator<Item = &'a Room>,
    labels: &BTreeMap<OwnedRoomId, String>,
) -> BTreeMap<OwnedRoomId, Vec<String>> {
    let heard_here = |room: &&Room| room.seats.get(persona).is_some_and(|seat| seat.lane == *lane);
    rooms
        .into_iter()
        .filter(heard_here)
        .filter(|room| !room.encrypted)
        .map(|room| {
            let names = labels.get(&room.id).cloned().into_iter().chain(room.alias.clone());
            (room.id.clone(), names.collect())
        })
        .collect()
}

/// The allowance of a batch's turn: its rooms, its labels, and those of `heard` that were heard in the same lane.
pub fn allowance(
    batch: &Batch,
    mut rooms: BTreeMap<OwnedRoomId, Vec<String>>,
    heard: impl IntoIterator<Item = (String, Lane, Target)>,
) -> Allowance {
    if let Lane::Direct(own) = &batch.lane {
        rooms.retain(|room, _| room == own);
    }
    let earlier = heard
        .into_iter()
        .filter(|(_, lane, _)| *lane == batch.lane)
        .map(|(label, _, target)| (label, target));
    let here = batch.shown().filter_map(|delivery| Some((format!("m{}", delivery.seq), target(delivery)?)));
    let labels = earlier.chain(here).filter(|(_, target)| rooms.contains_key(&target.room)).collect();
    let (default, threads) = (default_place(batch, &rooms), threads(batch, &rooms));
    let newest = newest_in_threads(batch);
    Allowance { rooms, labels, default, threads, newest, ..Allowance::default() }
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

/// Where the newest addressed message stands, or the newest of any kind.
fn default_place(
    batch: &Batch,
    rooms: &BTreeMap<OwnedRoomId, Vec<String>>,
) -> Option<(OwnedRoomId, Option<OwnedEventId>)> {
    let newest = batch.shown().enumerate().max_by_key(|(place, delivery)| (delivery.addressed, *place))?.1;
    rooms.contains_key(&newest.room).then(|| (newest.room.clone(), newest.thread.clone()))
}

fn newest_in_threads(batch: &Batch) -> BTreeMap<OwnedEventId, OwnedEventId> {
    let in_thread = |delivery: &Delivery| Some((delivery.thread.clone()?, target(delivery)?.event));
    batch.shown().filter_map(in_thread).collect()
}

fn threads(
    batch: &Batch,
    rooms: &BTreeMap<OwnedRoomId, Vec<String>>,
) -> BTreeMap<OwnedRoomId, Option<OwnedEventId>> {
    batch
        .shown()
        .filter(|delivery| delivery.addressed)
        .filter(|delivery| rooms.contains_key(&delivery.room))
        .map(|delivery| (delivery.room.clone(), delivery.thread.clone()))
        .collect()
}
