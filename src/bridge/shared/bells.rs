//! Waking the Personas' loops, and the places to think that they share.

use std::sync::atomic::Ordering;

use ruma::OwnedRoomId;

use super::Shared;
use crate::bridge::slots::Others;
use crate::conversation::PersonaId;
use crate::persona::places::Wish;

impl Shared {
    /// Wakes a Persona's loop.
    pub(crate) fn wake(&self, persona: &PersonaId) {
        if let Some(bell) = self.bells.get(persona) {
            bell.wake.notify_one();
        }
    }

    /// Wakes the loops of those who sit in a room.
    pub(crate) fn wake_seated(&self, room: &OwnedRoomId) {
        let seated: Vec<PersonaId> = match self.directory().room(room) {
            Some(room) => room.seats.keys().cloned().collect(),
            None => Vec::new(),
        };
        seated.iter().for_each(|persona| self.wake(persona));
    }

    /// Wakes every Persona's loop.
    pub(crate) fn wake_all(&self) {
        for bell in self.bells.values() {
            bell.wake.notify_one();
        }
    }

    /// Takes a place to think for a Persona, or has others make room for her: whether she may now.
    pub(crate) fn takes_place(&self, persona: &PersonaId, wish: Wish) -> bool {
        let (granted, others) = self.slots.take(persona, wish, self.clock.now());
        self.tell_others(&others);
        granted
    }

    /// A Persona's mind, if it lives, has nothing to do from now on.
    pub(crate) fn rests(&self, persona: &PersonaId) {
        self.tell_others(&self.slots.rests(persona, self.clock.now()));
    }

    /// A Persona has nothing to think about: who waited behind her does so no longer.
    pub(crate) fn wants_no_place(&self, persona: &PersonaId) {
        if self.slots.withdraw(persona) {
            self.wake_all();
        }
    }

    /// Asks the loops of Personas to close their idle minds, and others to ask again.
    fn tell_others(&self, others: &Others) {
        for bell in others.close.iter().filter_map(|persona| self.bells.get(persona)) {
            bell.close.store(true, Ordering::Relaxed);
            bell.wake.notify_one();
        }
        others.served.iter().for_each(|persona| self.wake(persona));
    }
}
