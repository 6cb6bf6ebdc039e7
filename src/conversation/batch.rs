//! Deliveries and the batches they are fed in.

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::ids::{Lane, Millis};

/// One message for one Persona, numbered by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Her own running number; her label for it is `m<seq>`.
    pub seq: u64,
    /// The lane it is heard in.
    pub lane: Lane,
    /// The room it stands in.
    pub room: OwnedRoomId,
    /// Who said it.
    pub sender: OwnedUserId,
    /// The sender's display name when it was heard.
    pub sender_name: Option<String>,
    /// The event.
    pub event: OwnedEventId,
    /// What kind of mail it is.
    pub kind: DeliveryKind,
    /// Its words; empty once redacted.
    pub text: String,
    /// The root of the thread it stands in.
    pub thread: Option<OwnedEventId>,
    /// The event it answers.
    pub reply_to: Option<OwnedEventId>,
    /// Whether it is addressed to her.
    pub addressed: bool,
    /// Whether it wakes her.
    pub wakes: bool,
    /// How far a Persona's line is from the last word of a person; none where a person (or a machine of theirs) said it.
    pub hops: Option<u32>,
    /// How far from a person's word the turn was in which she asked to be shown it in whole, if she did.
    pub again: Option<u32>,
    /// Whether it came late: found by reading back, or pushed long after it was said.
    pub late: bool,
    /// `origin_server_ts`.
    pub said: Millis,
    /// When the bridge heard it.
    pub heard: Millis,
}

/// The kinds of mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryKind {
    /// Words.
    Text,
    /// `m.emote`.
    Emote,
    /// `m.notice`.
    Notice,
    /// A media placeholder, with its caption.
    Media,
    /// New words for an earlier message.
    Edit(OwnedEventId),
    /// An earlier message was taken back.
    Redaction(OwnedEventId),
    /// The message itself was taken back before it was fed; it is never rendered.
    Withdrawn,
}

impl Delivery {
    /// Whether an answer is asked of her: it is addressed to her, by a person or so that it wakes her.
    pub fn is_asked(&self) -> bool {
        self.addressed && (self.hops.is_none() || self.wakes)
    }
}

/// Everything that is fed in one turn: deliveries of one lane, in order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The lane all of them belong to.
    pub lane: Lane,
    /// The deliveries, oldest first.
    pub deliveries: Vec<Delivery>,
}

/// A delivery was put into a batch of another lane.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("delivery {seq} belongs to another lane than the batch")]
pub struct WrongLane {
    /// The delivery's number.
    pub seq: u64,
}

impl Batch {
    /// Gathers deliveries of one lane, in order of their numbers.
    ///
    /// # Errors
    /// A delivery of another lane, or of another room than a direct lane's own.
    pub fn new(lane: Lane, mut deliveries: Vec<Delivery>) -> Result<Self, WrongLane> {
        if let Some(stray) = deliveries.iter().find(|delivery| !belongs(delivery, &lane)) {
            return Err(WrongLane { seq: stray.seq });
        }
        deliveries.sort_by_key(|delivery| delivery.seq);
        Ok(Self { lane, deliveries })
    }

    /// What is fed of it: new words for a message that stands in it take the place of the old ones, of which she never hears.
    #[must_use]
    pub fn settled(self) -> Self {
        let mut deliveries: Vec<Delivery> = Vec::with_capacity(self.deliveries.len());
        for delivery in self.deliveries {
            let of = match &delivery.kind {
                DeliveryKind::Edit(of) => deliveries.iter_mut().find(|other| {
                    other.event == *of && other.room == delivery.room && other.kind != DeliveryKind::Withdrawn
                }),
                DeliveryKind::Text
                | DeliveryKind::Emote
                | DeliveryKind::Notice
                | DeliveryKind::Media
                | DeliveryKind::Redaction(_)
                | DeliveryKind::Withdrawn => None,
            };
            match of {
                Some(edited) => {
                    edited.text = delivery.text;
                    edited.addressed = delivery.addressed;
                    edited.wakes |= delivery.wakes;
                }
                None => deliveries.push(delivery),
            }
        }
        Self { lane: self.lane, deliveries }
    }

    /// The deliveries that are shown: all but those taken back before they were fed.
    pub fn shown(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().filter(|delivery| delivery.kind != DeliveryKind::Withdrawn)
    }
}

fn belongs(delivery: &Delivery, lane: &Lane) -> bool {
    match lane {
        Lane::Register(_) => delivery.lane == *lane,
        Lane::Direct(room) => delivery.lane == *lane && delivery.room == *room,
    }
}

#[cfg(test)]
pub(in crate::conversation) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::ids::RegisterName;

    fn lane(number: u8) -> Lane {
        match number {
            0..2 => Lane::Register(RegisterName(format!("r{number}"))),
            _ => Lane::Direct(room(number)),
        }
    }

    fn room(number: u8) -> OwnedRoomId {
        OwnedRoomId::try_from(format!("!{number}:hs.test")).unwrap()
    }

    /// A plain delivery of this number.
    pub(in crate::conversation) fn delivery(seq: u64, lane: Lane, room: OwnedRoomId) -> Delivery {
        Delivery {
            seq,
            lane,
            room,
            sender: ruma::user_id!("@alice:hs.test").to_owned(),
            sender_name: None,
            event: ruma::owned_event_id!("$e"),
            kind: DeliveryKind::Text,
            text: String::new(),
            thread: None,
            reply_to: None,
            addressed: false,
            wakes: false,
            hops: None,
            again: None,
            late: false,
            said: Millis(0),
            heard: Millis(0),
        }
    }

    #[test]
    fn deliveries_stand_in_order_of_their_numbers() {
        let of = |seqs: &[u64]| seqs.iter().map(|seq| delivery(*seq, lane(0), room(1))).collect::<Vec<_>>();
        assert_eq!(Batch::new(lane(0), of(&[7, 2, 5])).unwrap().deliveries, of(&[2, 5, 7]));
    }

    #[test]
    fn a_direct_lane_takes_its_own_room_only() {
        assert!(Batch::new(lane(2), vec![delivery(1, lane(2), room(2))]).is_ok());
        assert_eq!(Batch::new(lane(2), vec![delivery(1, lane(2), room(3))]), Err(WrongLane { seq: 1 }));
    }

    #[test]
    fn withdrawn_mail_is_not_shown() {
        let withdrawn = Delivery { kind: DeliveryKind::Withdrawn, ..delivery(1, lane(0), room(1)) };
        let batch = Batch::new(lane(0), vec![withdrawn, delivery(2, lane(0), room(1))]).unwrap();
        assert_eq!(batch.shown().map(|shown| shown.seq).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn new_words_take_the_place_of_those_that_were_not_fed_yet() {
        let said = |seq: u64, name: &str, kind: DeliveryKind, text: &str| Delivery {
            event: OwnedEventId::try_from(format!("${name}")).unwrap(),
            kind,
            text: text.into(),
            ..delivery(seq, lane(0), room(1))
        };
        let edit = |of: &str| DeliveryKind::Edit(OwnedEventId::try_from(format!("${of}")).unwrap());
        let second = Delivery { addressed: true, ..said(4, "d", edit("a"), "newest") };
        let elsewhere = Delivery { room: room(2), ..said(5, "e", edit("a"), "forged") };
        let withdrawn = said(6, "f", DeliveryKind::Withdrawn, "");
        let before = vec![
            said(1, "a", DeliveryKind::Text, "old"),
            said(2, "b", edit("heard-before"), "b"),
            said(3, "c", edit("a"), "new"),
            second,
            elsewhere.clone(),
            withdrawn.clone(),
            said(7, "g", edit("f"), "of nothing"),
        ];
        let settled = Batch::new(lane(0), before.clone()).unwrap().settled().deliveries;
        let newest = Delivery { addressed: true, ..said(1, "a", DeliveryKind::Text, "newest") };
        assert_eq!(settled, [newest, before[1].clone(), elsewhere, withdrawn, before[6].clone()]);
    }

    proptest! {
        #[test]
        fn lanes_never_mix(own in 0..4_u8, others in prop::collection::vec((0..4_u8, 0..4_u8), 0..6)) {
            let deliveries: Vec<_> =
                (0..).zip(&others).map(|(seq, (of, at))| delivery(seq, lane(*of), room(*at))).collect();
            let fits = others.iter().all(|(of, at)| *of == own && (own < 2 || *at == own));
            let batch = Batch::new(lane(own), deliveries);
            prop_assert_eq!(batch.is_ok(), fits);
            for delivery in batch.map(|batch| batch.deliveries).unwrap_or_default() {
                prop_assert_eq!(delivery.lane, lane(own));
            }
        }
    }
}
