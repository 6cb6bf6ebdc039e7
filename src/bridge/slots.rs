//! The bounded number of live minds: the one that has been idle longest goes first.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::conversation::{Millis, PersonaId};

/// Who has a live mind, and since when it has been idle.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    live: Mutex<BTreeMap<PersonaId, Option<Millis>>>,
}

/// The answer to a wish for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// It is hers (or was already).
    Granted,
    /// All are taken; this Persona's mind is idle and is to be asked to close.
    Ask(PersonaId),
    /// All are taken by thinking minds.
    Wait,
}

impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), live: Mutex::default() }
    }

    /// Wishes for a slot.
    pub(crate) fn take(&self, persona: &PersonaId) -> Grant {
        let mut live = self.lock();
        if live.contains_key(persona) || live.len() < self.most {
            live.insert(persona.clone(), None);
            return Grant::Granted;
        }
        let idle = live.iter().filter_map(|(who, since)| since.map(|since| (since, who)));
        idle.min().map_or(Grant::Wait, |(_, who)| Grant::Ask(who.clone()))
    }

    /// Her mind is idle from now on; without a live one this changes nothing.
    pub(crate) fn idle(&self, persona: &PersonaId, now: Millis) {
        if let Some(since) = self.lock().get_mut(persona) {
            *since = Some(now);
        }
    }

    /// Her mind thinks.
    pub(crate) fn busy(&self, persona: &PersonaId) {
        if let Some(since) = self.lock().get_mut(persona) {
            *since = None;
        }
    }

    /// Her mind is closed.
    pub(crate) fn give_back(&self, persona: &PersonaId) {
        self.lock().remove(persona);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PersonaId, Option<Millis>>> {
        self.live.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> PersonaId {
        PersonaId(name.to_owned())
    }

    #[test]
    fn the_longest_idle_is_asked_first_and_a_thinking_one_never() {
        let slots = Slots::new(2);
        assert_eq!(slots.take(&id("a")), Grant::Granted);
        assert_eq!(slots.take(&id("b")), Grant::Granted);
        assert_eq!(slots.take(&id("a")), Grant::Granted, "her own slot is hers");
        assert_eq!(slots.take(&id("c")), Grant::Wait);
        slots.idle(&id("b"), Millis(20));
        assert_eq!(slots.take(&id("c")), Grant::Ask(id("b")));
        slots.idle(&id("a"), Millis(10));
        assert_eq!(slots.take(&id("c")), Grant::Ask(id("a")));
        slots.busy(&id("a"));
        assert_eq!(slots.take(&id("c")), Grant::Ask(id("b")));
        slots.give_back(&id("b"));
        assert_eq!(slots.take(&id("c")), Grant::Granted);
    }
}
