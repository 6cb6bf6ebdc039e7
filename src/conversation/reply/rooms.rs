//! The rooms that a turn may speak in.

use std::collections::{BTreeMap, BTreeSet};

use ruma::OwnedRoomId;

use crate::conversation::batch::Batch;
use crate::conversation::ids::{Lane, PersonaId, RegisterName};
use crate::conversation::register::{Register, ReplyIn};
use crate::conversation::room::{Room, Seat};

/// The rooms that a lane's turn may speak in: those that she hears in it, and those of registers that list it in their
/// `speak_from`. It can only be made from what registers say, so that no other room ever gets in,
/// but for those that its mail came from, where nothing is sent ([`Rooms::take_closed`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rooms(BTreeMap<OwnedRoomId, Open>);

/// A room that is open to a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Open {
    /// Every name she may use for it beside its id (label, alias).
    pub(super) names: Vec<String>,
    /// Where an answer stands there.
    pub(super) reply: ReplyIn,
}

impl Rooms {
    /// The rooms of a Persona that a lane may speak in, of all that are given: encrypted ones are never among them.
    ///
    /// `label` gives the label shown to her ([`Surroundings::rooms`](crate::conversation::prompt::Surroundings)).
    pub fn new<'a>(
        lane: &Lane,
        persona: &PersonaId,
        rooms: impl IntoIterator<Item = &'a Room>,
        registers: &BTreeMap<RegisterName, Register>,
        label: impl Fn(&Room) -> Option<String>,
    ) -> Self {
        let open = rooms.into_iter().filter(|room| !room.encrypted).filter_map(|room| {
            let seat = room.seats.get(persona)?;
            let register = registers.get(&seat.lane.register());
            let is_open = is_own(lane, room, seat)
                || (seat.lane != *lane && register.is_some_and(|register| register.speak_from.lists(lane)));
            let names = || label(room).into_iter().chain(room.alias.clone()).collect();
            let reply = register.map(|register| register.reply).unwrap_or_default();
            is_open.then(|| (room.id.clone(), Open { names: names(), reply }))
        });
        Self(open.collect())
    }

    /// Takes the rooms in that a batch's mail came from, although she cannot be heard there any more; answers which those
    /// are. What she says there is to be left out.
    pub fn take_closed(
        &mut self,
        batch: &Batch,
        label: impl Fn(&OwnedRoomId) -> Option<String>,
    ) -> BTreeSet<OwnedRoomId> {
        let of_mail = batch.deliveries.iter().map(|delivery| &delivery.room);
        let closed: BTreeSet<OwnedRoomId> =
            of_mail.filter(|room| !self.0.contains_key(*room)).cloned().collect();
        for room in &closed {
            let names = label(room).into_iter().collect();
            self.0.insert(room.clone(), Open { names, reply: ReplyIn::default() });
        }
        closed
    }

    pub(super) fn get(&self, room: &OwnedRoomId) -> Option<&Open> {
        self.0.get(room)
    }

    /// The room, where there is only one.
    pub(super) fn only(&self) -> Option<&OwnedRoomId> {
        self.0.keys().next().filter(|_| self.0.len() == 1)
    }

    pub(super) fn contains(&self, room: &OwnedRoomId) -> bool {
        self.0.contains_key(room)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&OwnedRoomId, &Open)> {
        self.0.iter()
    }
}

/// Whether she hears a room in the lane; a direct lane has its own room alone.
fn is_own(lane: &Lane, room: &Room, seat: &Seat) -> bool {
    seat.lane == *lane
        && match lane {
            Lane::Register(_) => true,
            Lane::Direct(own) => room.id == *own,
        }
}

#[cfg(test)]
impl<const N: usize> From<[(OwnedRoomId, Vec<String>, ReplyIn); N]> for Rooms {
    fn from(rooms: [(OwnedRoomId, Vec<String>, ReplyIn); N]) -> Self {
        Self(rooms.into_iter().map(|(room, names, reply)| (room, Open { names, reply })).collect())
    }
}
