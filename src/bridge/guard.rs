//! What keeps Personas among themselves from running away, as far as it meets store and rooms.

use std::collections::BTreeSet;

use ruma::OwnedRoomId;

use super::BridgeError;
use super::shared::Shared;
use crate::conversation::{Delivery, DeliveryKind, Millis, PersonaId, TurnId};
use crate::persona::LaneMail;
use crate::persona::guard::bears_again;
use crate::store::{Guarding, Mutual, NewSay, Pace, Say};

impl Shared {
    /// The rooms in which a Persona is held because she and another have woken each other too often.
    pub(crate) fn held_in(&self, persona: &PersonaId) -> BTreeSet<OwnedRoomId> {
        if self.config.among.pair.is_none() { BTreeSet::new() } else { self.store.held_in(persona) }
    }

    /// Who is held where.
    pub(crate) fn all_held(&self) -> BTreeSet<(PersonaId, OwnedRoomId)> {
        let personas = self.bells.keys();
        personas.flat_map(|who| self.held_in(who).into_iter().map(|room| (who.clone(), room))).collect()
    }

    /// The rooms of a Persona that bear nothing more of Personas now.
    pub(crate) fn full_rooms_of(&self, persona: &PersonaId) -> BTreeSet<OwnedRoomId> {
        if self.config.among.room.is_none() {
            return BTreeSet::new();
        }
        let mut rooms: BTreeSet<OwnedRoomId> =
            self.directory().rooms_of(persona).map(|room| room.id.clone()).collect();
        rooms.retain(|room| self.is_full_until(room, true).is_some());
        rooms
    }

    /// Writes down until when the rooms of waiting mail bear nothing more of Personas.
    pub(crate) fn look_at_paces(&self, lanes: &mut [LaneMail]) {
        for room in lanes.iter_mut().flat_map(|mail| &mut mail.waking) {
            room.full = self.is_full_until(&room.room, true);
        }
    }

    /// Until when a room bears nothing more of Personas, with what waits to be said there or before that; none if it bears more
    /// now. What is held or stopped does not wait for the room.
    pub(crate) fn is_full_until(&self, room: &OwnedRoomId, with_waiting: bool) -> Option<Millis> {
        let (limit, pace) = (self.config.among.room?, self.pace(room)?);
        let waiting = if with_waiting { pace.waiting } else { 0 };
        bears_again(&pace.sent, waiting, limit, self.clock.now())
    }

    fn pace(&self, room: &OwnedRoomId) -> Option<Pace> {
        self.store.pace(room, |user, room| self.may_speak(user, room))
    }

    /// Until when what a Persona is to say is too much for its room, if it is.
    pub(crate) fn waits_until(&self, say: &NewSay) -> Option<Millis> {
        if say.sender == self.config.bot { None } else { self.is_full_until(&say.room, false) }
    }

    /// Tells of rooms that are full with something waiting for them, and forgets that of those that are calm again with nothing
    /// left; answers when there will be one of these. `heads` are the first says that may be sent, one a room.
    pub(crate) async fn look_at_full_rooms(&self, heads: &[Say]) -> Result<Option<Millis>, BridgeError> {
        if self.config.among.room.is_none() {
            return Ok(None);
        }
        for say in heads.iter().filter(|say| self.waits_until(&say.say).is_some()) {
            self.tell_full(&say.say.room).await?;
        }
        let waits = |room: &OwnedRoomId| heads.iter().any(|say| say.say.room == *room);
        let mut next = None;
        for room in self.store.full_rooms().into_iter().filter(|room| !waits(room)) {
            match self.stirs_until(&room) {
                Some(until) => next = Some(next.map_or(until, |next: Millis| next.min(until))),
                None => self.store.is_calm(room).await?,
            }
        }
        Ok(next)
    }

    /// Until when a room that was full is not calm, if it is not by now.
    fn stirs_until(&self, room: &OwnedRoomId) -> Option<Millis> {
        let (limit, pace) = (self.config.among.room?, self.pace(room)?);
        bears_again(&pace.sent, 0, limit.calm(), self.clock.now())
    }

    /// Tells of rooms that are full with mail of a person waiting for them that wakes a Persona.
    pub(crate) async fn look_at_waiting(&self, lanes: &[LaneMail]) -> Result<(), BridgeError> {
        for mail in lanes.iter().flat_map(|lane| &lane.waking).filter(|mail| mail.full.is_some()) {
            let is_of_person = mail.senders.iter().any(|user| self.directory().persona(user).is_none());
            if is_of_person {
                self.tell_full(&mail.room).await?;
            }
        }
        Ok(())
    }

    /// Tells operators once that a room is full.
    async fn tell_full(&self, room: &OwnedRoomId) -> Result<(), BridgeError> {
        let (Some(limit), Some(pace)) = (self.config.among.room, self.pace(room)) else {
            return Ok(());
        };
        if pace.full {
            return Ok(());
        }
        let text = format!(
            "{room} has as many messages of Personas as [talk] room_limit allows ({limit}): what else they say there waits until \
             it bears more, and so does mail that would wake them there"
        );
        let now = self.clock.now();
        let notice = self.telling(&format!("full:{room}:{}", now.0), &text)?;
        self.store.tell_full(room.clone(), notice, now).await?;
        self.outbox.notify_one();
        Ok(())
    }

    /// What a turn with this mail means to what holds Personas.
    pub(crate) fn guarding(
        &self,
        persona: &PersonaId,
        turn: TurnId,
        mail: &[Delivery],
    ) -> Result<Guarding, BridgeError> {
        let among = self.config.among;
        let woke = mail.iter().filter(|delivery| delivery.wakes && delivery.kind != DeliveryKind::Withdrawn);
        let pairs: BTreeSet<(OwnedRoomId, PersonaId)> = {
            let directory = self.directory();
            let other = |line: &Delivery| directory.persona(&line.sender).map(|other| other.id.clone());
            woke.filter_map(|line| Some((line.room.clone(), other(line)?))).collect()
        };
        let mutual = pairs.into_iter().map(|(room, other)| {
            let notice = self.pair_notice((persona, &other), &room, turn)?;
            Ok(Mutual { room, other, notice })
        });
        let mutual = mutual.collect::<Result<_, BridgeError>>()?;
        Ok(Guarding { mutual, pair: among.pair, room: among.room })
    }

    /// What operators are told if a turn of two Personas is one too many.
    fn pair_notice(
        &self,
        (one, other): (&PersonaId, &PersonaId),
        room: &OwnedRoomId,
        turn: TurnId,
    ) -> Result<Option<(String, Vec<NewSay>)>, BridgeError> {
        let Some(limit) = self.config.among.pair else { return Ok(None) };
        let text = format!(
            "{one} and {other} have woken each other in {room} more often than [talk] pair_limit allows ({limit}): nothing \
             there wakes them until a person addresses one of them"
        );
        self.control_notice(&format!("pair:{room}:{other}:{turn}"), &text)
    }
}
