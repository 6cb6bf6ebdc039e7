//! Who types where, as the homeserver tells it; nothing of it outlives the process.

use std::collections::BTreeMap;
use std::time::Duration;

use ruma::{OwnedRoomId, OwnedUserId};

use super::shared::Shared;
use crate::conversation::{Millis, Typing};
use crate::persona::LaneMail;

/// For how long somebody is believed to type of whom nothing more is heard: a homeserver tells the begin and the end alone,
/// and the end may be lost.
const BELIEVED: Duration = Duration::from_secs(120);

/// Until when who is believed to type, by room.
#[derive(Debug, Default)]
pub(crate) struct Typists(BTreeMap<OwnedRoomId, BTreeMap<OwnedUserId, Millis>>);

impl Typists {
    /// Whoever has stopped has just been there: what she typed may come a moment after that is told.
    fn note(&mut self, typing: Typing, now: Millis, quiet: Duration) {
        let known = self.0.entry(typing.room.clone()).or_default();
        known.retain(|_, until| *until > now);
        known.values_mut().for_each(|until| *until = now.plus(quiet).min(*until));
        known.extend(typing.users.into_iter().map(|user| (user, now.plus(BELIEVED))));
        if known.is_empty() {
            self.0.remove(&typing.room);
        }
    }

    /// Writes down where a sender of waiting mail goes on typing.
    fn look_at(&self, lanes: &mut [LaneMail]) {
        for room in lanes.iter_mut().flat_map(|mail| &mut mail.waking) {
            let known = self.0.get(&room.room).into_iter().flatten();
            let senders = known.filter(|(user, _)| room.senders.contains(*user));
            room.typing = senders.map(|(_, until)| *until).max();
        }
    }
}

impl Shared {
    /// Takes in who types, and wakes those whom that may concern.
    pub(crate) fn note_typing(&self, typing: Vec<Typing>) {
        if !self.config.typing_waits {
            return;
        }
        for typing in typing {
            let room = typing.room.clone();
            self.typists().note(typing, self.clock.now(), self.config.settle.quiet);
            self.wake_seated(&room);
        }
    }

    /// Has waiting mail wait for those who type.
    pub(crate) fn look_at_typing(&self, lanes: &mut [LaneMail]) {
        if self.config.typing_waits {
            self.typists().look_at(lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ruma::{owned_room_id, owned_user_id};

    use super::*;
    use crate::conversation::{Lane, RegisterName};
    use crate::persona::decide::RoomMail;

    #[test]
    fn a_room_waits_for_senders_of_its_mail_alone_and_not_for_ever() {
        let (alice, bob) = (owned_user_id!("@alice:x"), owned_user_id!("@bob:x"));
        let (here, there) = (owned_room_id!("!here:x"), owned_room_id!("!there:x"));
        let mut typists = Typists::default();
        let mut until = |now: u64, room: &OwnedRoomId, users: &[&OwnedUserId]| {
            let users = users.iter().map(|user| (*user).clone()).collect();
            let quiet = Duration::from_millis(500);
            typists.note(Typing { room: room.clone(), users }, Millis(now), quiet);
            let senders = BTreeSet::from([alice.clone()]);
            let (first, newest) = (Millis(0), Millis(0));
            let waking =
                vec![RoomMail { room: here.clone(), first, newest, senders, typing: None, full: None }];
            let lane = Lane::Register(RegisterName("swarm".into()));
            let mut lanes = [LaneMail { lane, oldest: Millis(0), unheard: None, waking }];
            typists.look_at(&mut lanes);
            lanes[0].waking[0].typing
        };
        assert_eq!(until(1_000, &there, &[&alice]), None);
        assert_eq!(until(1_000, &here, &[&bob]), None);
        assert_eq!(until(2_000, &here, &[&bob, &alice]), Some(Millis(122_000)));
        assert_eq!(until(3_000, &here, &[&bob]), Some(Millis(3_500)), "she has just stopped");
        assert_eq!(until(3_200, &here, &[]), Some(Millis(3_500)), "and not once more");
        assert_eq!(until(3_500, &here, &[]), None);
        assert_eq!(until(4_000, &here, &[&alice]), Some(Millis(124_000)));
    }
}
