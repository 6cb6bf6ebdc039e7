//! Which room takes the place of which.

use ruma::OwnedRoomId;

use super::Directory;
use crate::conversation::{Lane, PersonaId};

impl Directory {
    /// Another room takes the place of one, or none does after all.
    pub(crate) fn succeed(&mut self, room: &OwnedRoomId, to: Option<OwnedRoomId>) {
        self.known(room).successor = to;
    }

    /// The room that takes the place of one.
    pub(crate) fn successor(&self, room: &OwnedRoomId) -> Option<&OwnedRoomId> {
        self.rooms.get(room)?.successor.as_ref()
    }

    /// The room in which a Persona still sits although, by its own word, this one takes its place.
    pub(crate) fn awaited(&self, persona: &PersonaId, room: &OwnedRoomId) -> Option<&OwnedRoomId> {
        let before = self.rooms.values().filter(|known| known.successor.as_ref() == Some(room));
        before.map(|known| &known.room).find(|old| old.seats.contains_key(persona)).map(|old| &old.id)
    }

    /// Where a Persona has gone on from a room: the one that takes its place, if she hears it in the lane that goes on from
    /// this one, and may speak there.
    pub(crate) fn gone_on(
        &self,
        persona: &PersonaId,
        lane: &Lane,
        room: &OwnedRoomId,
    ) -> Option<OwnedRoomId> {
        let next = self.room(self.successor(room)?)?;
        let hears = next.seats.get(persona)?.lane == carried(lane, &next.id);
        (hears && !next.encrypted).then(|| next.id.clone())
    }

    /// A room is what the one before it was, to whom heard that in a lane: configured alike, and known by its alias. Answers
    /// both.
    pub(crate) fn inherit(
        &mut self,
        from: &OwnedRoomId,
        to: &OwnedRoomId,
        lane: &Lane,
    ) -> (Lane, Option<String>) {
        let configured = self.configured.get(from).map(|lane| carried(lane, to));
        if let Some(configured) = configured {
            self.configured.entry(to.clone()).or_insert(configured);
        }
        let lane = self.configured(to).cloned().unwrap_or_else(|| carried(lane, to));
        let named = |room| self.room(room).and_then(|room| room.alias.clone());
        let alias = named(to).or_else(|| named(from));
        self.name(to, alias.clone());
        (lane, alias)
    }
}

/// The lane of a room that takes the place of one of that lane.
fn carried(lane: &Lane, to: &OwnedRoomId) -> Lane {
    match lane {
        Lane::Direct(_) => Lane::Direct(to.clone()),
        Lane::Register(register) => Lane::Register(register.clone()),
    }
}
