//! From the heads of waiting mail to a row for each lane.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedRoomId, OwnedUserId};

use super::decide::{LaneMail, RoomMail};
use crate::conversation::{Lane, Millis};

/// The head of one waiting delivery.
#[derive(Clone, Copy, Debug)]
pub struct Mail<'a> {
    /// Its lane.
    pub lane: &'a Lane,
    /// Its room.
    pub room: &'a OwnedRoomId,
    /// Who said it.
    pub sender: &'a OwnedUserId,
    /// Whether it wakes her.
    pub wakes: bool,
    /// Whether it is worth a turn at a beat, if it has not come too far.
    pub unheard: bool,
    /// How far a Persona's line is from the last word of a person; none where no Persona said it.
    pub hops: Option<u32>,
    /// When it was heard.
    pub heard: Millis,
}

/// One row for each lane with mail, in lane order; in it one for each room with mail that wakes her, in room order.
pub fn lane_mail<'a>(waiting: impl IntoIterator<Item = Mail<'a>>, max_hops: u32) -> Vec<LaneMail> {
    let mut lanes = Lanes::default();
    waiting.into_iter().for_each(|mail| lanes.add(mail));
    lanes.rows(max_hops, |_| true)
}

/// What [`lane_mail`] tells of mail that is added bit by bit.
#[derive(Clone, Debug, Default)]
pub struct Lanes(BTreeMap<Lane, BTreeMap<OwnedRoomId, Times>>);

impl Lanes {
    /// Takes one delivery in.
    pub fn add(&mut self, mail: Mail<'_>) {
        if !self.0.contains_key(mail.lane) {
            self.0.insert(mail.lane.clone(), BTreeMap::new());
        }
        let Some(rooms) = self.0.get_mut(mail.lane) else { return };
        match rooms.get_mut(mail.room) {
            Some(times) => times.add(mail),
            None => drop(rooms.insert(mail.room.clone(), Times::of(mail))),
        }
    }

    /// The rows, made of the mail of rooms that are ready. A Persona's line that has come so far is no cause for a turn at a
    /// beat: else Personas who are left alone would talk on at it for ever.
    pub fn rows(&self, max_hops: u32, ready: impl Fn(&OwnedRoomId) -> bool) -> Vec<LaneMail> {
        self.0
            .iter()
            .filter_map(|(lane, rooms)| row(lane, rooms.iter().filter(|(room, _)| ready(room)), max_hops))
            .collect()
    }
}

/// The times of one room's mail.
#[derive(Clone, Debug)]
struct Times {
    oldest: Millis,
    newest: Millis,
    /// The oldest that is worth a turn at a beat, by its hops.
    unheard: BTreeMap<Option<u32>, Millis>,
    first: Option<Millis>,
    senders: BTreeSet<OwnedUserId>,
}

impl Times {
    fn of(mail: Mail<'_>) -> Self {
        let mut times = Self {
            oldest: mail.heard,
            newest: mail.heard,
            unheard: BTreeMap::new(),
            first: None,
            senders: BTreeSet::new(),
        };
        times.add(mail);
        times
    }

    fn add(&mut self, mail: Mail<'_>) {
        self.oldest = self.oldest.min(mail.heard);
        self.newest = self.newest.max(mail.heard);
        if mail.unheard {
            let oldest = self.unheard.entry(mail.hops).or_insert(mail.heard);
            *oldest = mail.heard.min(*oldest);
        }
        if mail.wakes {
            self.first = Some(self.first.map_or(mail.heard, |first| first.min(mail.heard)));
            if !self.senders.contains(mail.sender) {
                self.senders.insert(mail.sender.clone());
            }
        }
    }

    /// The oldest that is worth a turn at a beat.
    fn cause(&self, max_hops: u32) -> Option<Millis> {
        let near = self.unheard.iter().filter(|(hops, _)| hops.is_none_or(|hops| hops < max_hops));
        near.map(|(_, heard)| *heard).min()
    }
}

fn row<'a>(
    lane: &Lane,
    rooms: impl Iterator<Item = (&'a OwnedRoomId, &'a Times)>,
    max_hops: u32,
) -> Option<LaneMail> {
    let rooms: Vec<_> = rooms.collect();
    let oldest = rooms.iter().map(|(_, times)| times.oldest).min()?;
    let unheard = rooms.iter().filter_map(|(_, times)| times.cause(max_hops)).min();
    let waking = rooms.into_iter().filter_map(|(room, times)| {
        let first = times.first?;
        let (newest, senders) = (times.newest, times.senders.clone());
        Some(RoomMail { room: room.clone(), first, newest, senders, typing: None, full: None })
    });
    Some(LaneMail { lane: lane.clone(), oldest, unheard, waking: waking.collect() })
}

#[cfg(test)]
mod tests {
    use ruma::{owned_user_id, room_id};

    use super::*;
    use crate::conversation::RegisterName;

    #[test]
    fn rows_keep_the_oldest_of_a_lane_and_the_span_of_each_room_with_mail_that_wakes() {
        let swarm = Lane::Register(RegisterName("swarm".into()));
        let (a, b) = (room_id!("!a:hs.test").to_owned(), room_id!("!b:hs.test").to_owned());
        let direct = Lane::Direct(b.clone());
        let alice = owned_user_id!("@alice:hs.test");
        let mail = |lane, room, wakes, heard| Mail {
            lane,
            room,
            sender: &alice,
            wakes,
            unheard: heard > 1,
            hops: None,
            heard: Millis(heard),
        };
        let waiting = [
            mail(&swarm, &a, false, 1),
            mail(&swarm, &a, true, 5),
            mail(&swarm, &a, true, 7),
            mail(&swarm, &a, false, 9),
            mail(&swarm, &b, false, 3),
            mail(&direct, &b, true, 4),
        ];
        let rows = lane_mail(waiting, 0);
        let room = |room: &OwnedRoomId, first, newest| RoomMail {
            room: room.clone(),
            first: Millis(first),
            newest: Millis(newest),
            senders: BTreeSet::from([alice.clone()]),
            typing: None,
            full: None,
        };
        assert_eq!(
            rows,
            [
                LaneMail {
                    lane: swarm,
                    oldest: Millis(1),
                    unheard: Some(Millis(3)),
                    waking: vec![room(&a, 5, 9)]
                },
                LaneMail {
                    lane: direct,
                    oldest: Millis(4),
                    unheard: Some(Millis(4)),
                    waking: vec![room(&b, 4, 4)]
                },
            ]
        );
        assert!(lane_mail([], 3).is_empty());
    }

    #[test]
    fn a_line_of_a_persona_that_has_come_too_far_is_no_cause_and_hides_none() {
        let swarm = Lane::Register(RegisterName("swarm".into()));
        let (room, sender) = (room_id!("!a:hs.test").to_owned(), owned_user_id!("@p_eir:hs.test"));
        let mail = |(hops, heard)| Mail {
            lane: &swarm,
            room: &room,
            sender: &sender,
            wakes: false,
            unheard: true,
            hops,
            heard: Millis(heard),
        };
        let cause = |max_hops, lines: &[(Option<u32>, u64)]| {
            let rows = lane_mail(lines.iter().copied().map(mail), max_hops);
            assert_eq!(rows[0].oldest, Millis(1), "it still comes along");
            rows[0].unheard.map(|since| since.0)
        };
        assert_eq!(cause(3, &[(Some(3), 1)]), None);
        assert_eq!(cause(3, &[(Some(u32::MAX), 1)]), None);
        assert_eq!(cause(3, &[(Some(2), 1)]), Some(1));
        assert_eq!(cause(0, &[(Some(0), 1)]), None);
        assert_eq!(cause(0, &[(None, 1)]), Some(1), "people are always heard");
        assert_eq!(cause(3, &[(Some(4), 1), (Some(2), 7), (None, 5), (Some(3), 2)]), Some(5));
    }

    #[test]
    fn mail_of_rooms_that_are_not_ready_is_as_if_it_were_not_there() {
        let swarm = Lane::Register(RegisterName("swarm".into()));
        let (a, b) = (room_id!("!a:hs.test").to_owned(), room_id!("!b:hs.test").to_owned());
        let alice = owned_user_id!("@alice:hs.test");
        let mut lanes = Lanes::default();
        for (room, heard) in [(&a, 1), (&b, 2)] {
            let sender = &alice;
            lanes.add(Mail {
                lane: &swarm,
                room,
                sender,
                wakes: true,
                unheard: true,
                hops: None,
                heard: Millis(heard),
            });
        }
        let rows = lanes.rows(3, |room| *room == b);
        assert_eq!((rows.len(), rows[0].oldest, rows[0].waking.len()), (1, Millis(2), 1));
        assert!(lanes.rows(3, |_| false).is_empty());
    }
}
