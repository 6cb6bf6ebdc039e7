//! Which mail goes into a turn, and in which order.

use std::collections::BTreeMap;

use super::Turns;
use crate::bridge::BridgeError;
use crate::bridge::translate::level;
use crate::conversation::{Batch, Delivery, DeliveryKind, Lane, Level};
use crate::persona::OpenTurn;

/// The most text one batch carries, in bytes (its first delivery always goes in).
const BATCH_BYTES: usize = 256 * 1024;
/// The most deliveries one batch carries.
const BATCH_DELIVERIES: usize = 500;

impl Turns {
    /// The mail that goes into the next turn of a lane, in the order in which it was said; what she asked to be shown in whole
    /// comes by itself.
    pub(super) fn batch(&self, lane: &Lane) -> Result<Vec<Delivery>, BridgeError> {
        let id = &self.persona.persona.id;
        let waiting = self.shared.ready_mail(id)?;
        let of_lane = || waiting.iter().filter(|mail| mail.lane == *lane);
        let asked_for = of_lane().any(|mail| mail.whole);
        let seqs = of_lane().filter(|mail| mail.whole == asked_for).map(|mail| mail.seq);
        let seqs: Vec<u64> = seqs.take(2 * BATCH_DELIVERIES).collect();
        let deliveries = as_said(self.shared.store.deliveries(id, &seqs)?);
        let mut bytes = 0;
        let fitting = deliveries.into_iter().take(BATCH_DELIVERIES).take_while(|delivery| {
            let first = bytes == 0;
            bytes += delivery.text.len().max(1);
            first || bytes <= BATCH_BYTES
        });
        Ok(fitting.collect())
    }

    /// How much mail of its lane waits behind a turn that was too much for it.
    pub(super) fn behind(&self, turn: &OpenTurn) -> Result<usize, BridgeError> {
        let waiting = self.shared.ready_mail(&self.persona.persona.id)?.into_iter();
        let left = waiting.filter(|mail| mail.lane == turn.lane && mail.heard <= turn.as_of);
        Ok(left.filter(|mail| !turn.seqs.contains(&mail.seq)).count())
    }
}

impl Turns {
    /// Takes out of the mail what people said who are not to be heard any more; answers whether there was any. That something
    /// was taken back is heard from anybody.
    pub(super) async fn withdraw_unheard(&self, mail: &[Delivery]) -> Result<bool, BridgeError> {
        let unheard: Vec<u64> = {
            let directory = self.shared.directory();
            let counts =
                |kind: &DeliveryKind| !matches!(kind, DeliveryKind::Redaction(_) | DeliveryKind::Withdrawn);
            let blocked =
                |mail: &&Delivery| counts(&mail.kind) && level(&directory, &mail.sender) == Level::Block;
            mail.iter().filter(blocked).map(|mail| mail.seq).collect()
        };
        if unheard.is_empty() {
            return Ok(false);
        }
        let id = &self.persona.persona.id;
        tracing::info!(persona = %id, mail = unheard.len(), "mail of people who are blocked by now is withdrawn");
        self.shared.store.withdraw(id, unheard).await?;
        Ok(true)
    }
}

/// Puts what was read back, numbered behind what was pushed before it, where it was said; what came one way keeps the
/// server's order.
fn as_said(deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let (late, pushed): (Vec<_>, Vec<_>) = deliveries.into_iter().partition(|delivery| delivery.late);
    let mut late = late.into_iter().peekable();
    let mut ordered = Vec::new();
    for delivery in pushed {
        while let Some(earlier) = late.next_if(|late| late.said <= delivery.said) {
            ordered.push(earlier);
        }
        ordered.push(delivery);
    }
    ordered.extend(late);
    ordered
}

/// The labels of events a batch refers to, by event.
pub(crate) fn labels_of(batch: &Batch) -> BTreeMap<ruma::OwnedEventId, String> {
    batch.deliveries.iter().map(|d| (d.event.clone(), format!("m{}", d.seq))).collect()
}

#[cfg(test)]
mod tests {
    use ruma::{event_id, room_id, user_id};

    use super::*;
    use crate::conversation::Millis;

    fn mail(seq: u64, said: u64, late: bool) -> Delivery {
        let room = room_id!("!a:hs.test").to_owned();
        Delivery {
            seq,
            lane: Lane::Direct(room.clone()),
            room,
            sender: user_id!("@a:hs.test").to_owned(),
            sender_name: None,
            event: event_id!("$e").to_owned(),
            kind: DeliveryKind::Text,
            text: "x".into(),
            thread: None,
            reply_to: None,
            addressed: true,
            wakes: true,
            hops: None,
            again: None,
            late,
            said: Millis(said),
            heard: Millis(said),
        }
    }

    #[test]
    fn late_mail_goes_where_it_was_said_and_what_came_one_way_keeps_its_order() {
        let pushed = [mail(1, 30, false), mail(2, 29, false), mail(3, 50, false)];
        let late = [mail(4, 10, true), mail(5, 9, true), mail(6, 60, true)];
        let order = as_said(pushed.into_iter().chain(late).collect());
        assert_eq!(order.iter().map(|mail| mail.seq).collect::<Vec<_>>(), [4, 5, 1, 2, 3, 6]);
    }
}
