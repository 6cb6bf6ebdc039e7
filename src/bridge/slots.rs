//! Who has a live mind and who waits for one; who is served and who makes room is decided by `persona::places`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::conversation::{Millis, PersonaId};
use crate::persona::places::{Living, Places, Plan, Wish, heaviest, plan};

/// The places for live minds.
#[derive(Debug)]
pub(crate) struct Slots {
    places: Places,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    living: BTreeMap<PersonaId, Living>,
    wishes: BTreeMap<PersonaId, Wish>,
}

/// Who else is to be told of what has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// Whose minds are to be asked to close.
    pub(crate) close: BTreeSet<PersonaId>,
    /// Whose wish comes true, if she asks again.
    pub(crate) served: BTreeSet<PersonaId>,
}

impl Slots {
    pub(crate) fn new(places: Places) -> Self {
        Self { places, taken: Mutex::default() }
    }

    /// Has her idle mind think where nobody waits and one more may: whether it does.
    pub(crate) fn goes_on(&self, persona: &PersonaId) -> bool {
        let mut taken = self.lock();
        let others = taken.living.iter().filter(|(who, mind)| *who != persona && mind.idle.is_none());
        let may = taken.wishes.is_empty() && others.count() < self.places.thinking;
        if may {
            taken.thinks(persona, None);
        }
        may
    }

    /// Wishes to think, with the mind that she has or with a new one: whether she may now, and who else is concerned.
    pub(crate) fn take(&self, persona: &PersonaId, wish: Wish, now: Millis) -> (bool, Others) {
        let mut taken = self.lock();
        taken.wishes.insert(persona.clone(), wish);
        if let Some(mind) = taken.living.get_mut(persona) {
            mind.idle.get_or_insert(now);
        }
        let plan = taken.plan(&self.places);
        let granted = plan.granted.contains(persona);
        if granted {
            taken.thinks(persona, wish.resident);
        }
        let mut others = taken.follows(plan);
        others.served.remove(persona);
        (granted, others)
    }

    /// Takes a place to think, with the idle mind that she has or with a new one, if one is free that nobody waits for.
    pub(crate) fn take_free(&self, persona: &PersonaId, resident: Option<u64>) -> bool {
        let mut taken = self.lock();
        taken.wishes.insert(persona.clone(), Wish::woken(Millis(u64::MAX), resident));
        let granted = taken.plan(&self.places).granted.contains(persona);
        if granted {
            taken.thinks(persona, resident);
        }
        taken.wishes.remove(persona);
        granted
    }

    /// She wants no place any more; answers whether she did.
    pub(crate) fn withdraw(&self, persona: &PersonaId) -> bool {
        self.lock().wishes.remove(persona).is_some()
    }

    /// Her mind thinks.
    pub(crate) fn thinks(&self, persona: &PersonaId) {
        self.lock().thinks(persona, None);
    }

    /// The resident memory of her mind was seen, in bytes.
    pub(crate) fn weighs(&self, persona: &PersonaId, resident: u64) {
        if let Some(mind) = self.lock().living.get_mut(persona) {
            mind.resident = resident;
        }
    }

    /// Her mind has nothing to do from now on, if it lives: who else is concerned.
    pub(crate) fn rests(&self, persona: &PersonaId, now: Millis) -> Others {
        let mut taken = self.lock();
        match taken.living.get_mut(persona) {
            Some(mind) if mind.idle.is_none() => mind.idle = Some(now),
            Some(_) | None => return Others::default(),
        }
        let plan = taken.plan(&self.places);
        taken.follows(plan)
    }

    /// Who has a live mind, and its resident memory as it was last seen, in bytes.
    pub(crate) fn living(&self) -> BTreeMap<PersonaId, u64> {
        self.lock().living.iter().map(|(who, mind)| (who.clone(), mind.resident)).collect()
    }

    /// Her mind was told to close.
    pub(crate) fn closes(&self, persona: &PersonaId) {
        self.lock().closes(persona);
    }

    /// Her mind is closed.
    pub(crate) fn give_back(&self, persona: &PersonaId) {
        self.lock().living.remove(persona);
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn plan(&self, places: &Places) -> Plan {
        plan(&self.living, &self.wishes, places)
    }

    /// A mind thinks; a new one is expected to weigh so much.
    fn thinks(&mut self, persona: &PersonaId, expected: Option<u64>) {
        self.wishes.remove(persona);
        let known = self.living.get(persona).map(|mind| mind.resident);
        let resident = known.or(expected).unwrap_or_else(|| heaviest(&self.living));
        self.living.insert(persona.clone(), Living { idle: None, resident, closing: false });
    }

    fn follows(&mut self, plan: Plan) -> Others {
        plan.close.iter().for_each(|who| self.closes(who));
        Others { close: plan.close, served: plan.granted }
    }

    fn closes(&mut self, persona: &PersonaId) {
        if let Some(mind) = self.living.get_mut(persona) {
            mind.closing = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> PersonaId {
        PersonaId(name.to_owned())
    }

    fn wish(since: u64) -> Wish {
        Wish::woken(Millis(since), None)
    }

    fn closes(names: &[&str]) -> BTreeSet<PersonaId> {
        names.iter().map(|name| id(name)).collect()
    }

    #[test]
    fn a_place_is_taken_given_back_and_taken_by_the_next() {
        let slots = Slots::new(Places { most: 2, thinking: 9, resident: None });
        let take = |name: &str, since| {
            let (granted, others) = slots.take(&id(name), wish(since), Millis(5));
            (granted, others.close)
        };
        assert_eq!(take("a", 1), (true, closes(&[])));
        assert_eq!(take("b", 2), (true, closes(&[])));
        assert_eq!(take("c", 3), (false, closes(&[])), "both think");
        assert!(!slots.goes_on(&id("a")), "somebody waits");
        assert_eq!(slots.rests(&id("b"), Millis(20)).close, closes(&["b"]));
        assert_eq!(slots.rests(&id("a"), Millis(30)).close, closes(&[]), "one makes room for one");
        slots.give_back(&id("b"));
        assert!(!slots.take_free(&id("d"), None), "that place is waited for");
        assert_eq!(take("c", 3), (true, closes(&[])));
        assert!(slots.goes_on(&id("a")));
    }

    #[test]
    fn who_goes_on_with_her_own_mind_yields_to_older_mail() {
        let slots = Slots::new(Places { most: 1, thinking: 9, resident: None });
        let take = |name: &str, since| {
            let (granted, others) = slots.take(&id(name), wish(since), Millis(5));
            (granted, others.close)
        };
        assert_eq!(take("a", 1), (true, closes(&[])));
        assert_eq!(take("b", 7), (false, closes(&[])));
        assert_eq!(take("a", 6), (true, closes(&[])), "her mail is older");
        assert_eq!(take("a", 8), (false, closes(&["a"])));
        slots.give_back(&id("a"));
        assert_eq!(take("a", 8), (false, closes(&[])));
        assert!(slots.withdraw(&id("b")) && !slots.withdraw(&id("b")));
        assert_eq!(take("a", 8), (true, closes(&[])));
    }

    #[test]
    fn a_ping_takes_only_what_is_free() {
        let slots = Slots::new(Places { most: 2, thinking: 9, resident: Some(100) });
        assert!(slots.take_free(&id("a"), Some(60)));
        assert!(!slots.take_free(&id("b"), Some(41)));
        slots.weighs(&id("a"), 59);
        assert!(slots.take_free(&id("b"), Some(41)));
        slots.weighs(&id("b"), 42);
        assert_eq!(slots.rests(&id("a"), Millis(1)).close, closes(&["a"]), "too much in sum");
        slots.thinks(&id("a"));
        assert_eq!(
            slots.rests(&id("a"), Millis(2)).close,
            closes(&["a"]),
            "it thought meanwhile, so it is asked again"
        );
    }

    #[test]
    fn who_stops_thinking_lets_the_next_one_think_with_her_own_mind() {
        let slots = Slots::new(Places { most: 9, thinking: 1, resident: None });
        let take = |name: &str, since| slots.take(&id(name), wish(since), Millis(5));
        let served = |names: &[&str]| Others { close: closes(&[]), served: closes(names) };
        assert_eq!(take("a", 1), (true, served(&[])));
        assert_eq!(take("b", 2), (false, served(&[])));
        assert_eq!(slots.rests(&id("a"), Millis(9)), served(&["b"]));
        assert_eq!(take("b", 2), (true, served(&[])));
        assert!(!slots.goes_on(&id("a")), "one thinks");
        assert!(!slots.take_free(&id("a"), None));
        assert_eq!(take("a", 3), (false, served(&[])));
        assert_eq!(take("b", 4), (false, served(&["a"])), "her next is younger");
        assert_eq!(take("a", 3), (true, served(&[])));
    }
}
