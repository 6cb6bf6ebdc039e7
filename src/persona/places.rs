//! Whose mind may live, and think: so many processes at most, with so much memory in sum, of which so many think at once.
//!
//! What wakes somebody goes before a beat that is younger than the time between two, who has waited longest is served first,
//! and the mind that has been idle longest makes room. It never ends a thought, and it keeps no count of its own: whoever asks
//! again with the same situation gets the same plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::conversation::{Millis, PersonaId};

/// What the host bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Live minds at most; at least one may always live.
    pub most: usize,
    /// Minds that think at once at most; at least one may.
    pub thinking: usize,
    /// Resident memory of all of them together at most, in bytes. One alone may always live.
    pub resident: Option<u64>,
}

/// A live mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Living {
    /// Since when it has had no line to think about; none while it thinks.
    pub idle: Option<Millis>,
    /// Its resident memory as it was last seen, in bytes.
    pub resident: u64,
    /// Whether it was told to close.
    pub closing: bool,
}

/// A Persona with something to be fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Since when it counts: who wishes before others is served before them.
    pub since: Millis,
    /// The resident memory that her mind is expected to have, in bytes; none where it never lived.
    pub resident: Option<u64>,
}

/// What follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Whose wish comes true now.
    pub granted: BTreeSet<PersonaId>,
    /// Whose mind is to be closed now, besides those that are closing.
    pub close: BTreeSet<PersonaId>,
}

/// Minds counted and weighed.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: usize,
    resident: u64,
}

/// Decides who gets a place and who makes room.
///
/// 1. While the memory is more than is borne, the idle longest is closed.
/// 2. Wishes of those without a mind, the oldest first: a place is given while
///    there is one; no later wish overtakes one that must wait.
/// 3. For each that must wait the idle longest is closed, but none whose own wish goes before it.
/// 4. Who has a mind that is not to be closed keeps it.
/// 5. In the same order, of all of those: so many may think beside those who do that all of them together are no more than may.
///    Who still waits for a place is counted among them, so that nobody overtakes her.
pub fn plan(
    living: &BTreeMap<PersonaId, Living>,
    wishes: &BTreeMap<PersonaId, Wish>,
    places: &Places,
) -> Plan {
    let mut plan = Plan::default();
    let mut now = Sum::of(living.values());
    let mut later = Sum::of(living.values().filter(|mind| !mind.closing));
    let mut idle = idle_longest_first(living);
    while places.resident.is_some_and(|most| later.resident > most) && !idle.is_empty() {
        plan.closes(idle.remove(0), living, &mut later);
    }
    let order = in_order(wishes);
    let mut has_place = BTreeSet::new();
    let mut waits = false;
    for (who, wish) in order.iter().copied().filter(|(who, _)| !living.contains_key(*who)) {
        let resident = wish.resident.unwrap_or_else(|| heaviest(living));
        if !waits && places.bear(now, resident) {
            now.add(resident);
            has_place.insert(who);
        } else {
            waits = true;
            let goes_before = |who: &PersonaId| wishes.get(who).is_some_and(|own| own.since <= wish.since);
            while !places.bear(later, resident) {
                let Some(at) = idle.iter().position(|who| !goes_before(who)) else { break };
                plan.closes(idle.remove(at), living, &mut later);
            }
        }
        later.add(resident);
    }
    let thinking = living.values().filter(|mind| mind.idle.is_none()).count();
    let stays = |who: &PersonaId| !plan.lets_go(who, living);
    let next: Vec<_> = order.into_iter().map(|(who, _)| who).filter(|who| stays(who)).collect();
    let next = next.into_iter().take(places.thinking.saturating_sub(thinking));
    let granted = next.filter(|who| has_place.contains(who) || living.contains_key(*who));
    plan.granted = granted.cloned().collect();
    plan
}

impl Wish {
    /// Of mail that wakes her since then, or of a reminder that was due.
    pub fn woken(since: Millis, resident: Option<u64>) -> Self {
        Self { since, resident }
    }

    /// Of what a beat, which falls so often, lets her hear and which has waited since then: it lets go first what wakes
    /// somebody sooner than one beat later, so that it waits neither before that nor without end.
    pub fn at_the_beat(since: Millis, beat: Duration, resident: Option<u64>) -> Self {
        Self { since: since.plus(beat), resident }
    }
}

impl Plan {
    /// Whether a living mind goes.
    fn lets_go(&self, who: &PersonaId, living: &BTreeMap<PersonaId, Living>) -> bool {
        self.close.contains(who) || living.get(who).is_some_and(|mind| mind.closing)
    }

    fn closes(&mut self, who: &PersonaId, living: &BTreeMap<PersonaId, Living>, later: &mut Sum) {
        later.count = later.count.saturating_sub(1);
        later.resident = later.resident.saturating_sub(living.get(who).map_or(0, |mind| mind.resident));
        self.close.insert(who.clone());
    }
}

impl Places {
    /// Whether one more mind of that weight may live beside these.
    fn bear(&self, sum: Sum, resident: u64) -> bool {
        let fits = self.resident.is_none_or(|most| sum.resident.saturating_add(resident) <= most);
        sum.count == 0 || (sum.count < self.most && fits)
    }
}

impl Sum {
    fn of<'a>(minds: impl Iterator<Item = &'a Living>) -> Self {
        let mut sum = Self::default();
        minds.for_each(|mind| sum.add(mind.resident));
        sum
    }

    fn add(&mut self, resident: u64) {
        self.count += 1;
        self.resident = self.resident.saturating_add(resident);
    }
}

/// Those that may be closed, the idle longest first.
fn idle_longest_first(living: &BTreeMap<PersonaId, Living>) -> Vec<&PersonaId> {
    let idle = living.iter().filter(|(_, mind)| !mind.closing);
    let mut idle: Vec<(Millis, &PersonaId)> =
        idle.filter_map(|(who, mind)| Some((mind.idle?, who))).collect();
    idle.sort();
    idle.into_iter().map(|(_, who)| who).collect()
}

/// The wishes, who is served first first.
fn in_order(wishes: &BTreeMap<PersonaId, Wish>) -> Vec<(&PersonaId, &Wish)> {
    let mut order: Vec<_> = wishes.iter().collect();
    order.sort_by_key(|(who, wish)| (wish.since, *who));
    order
}

/// As much as a mind is believed to take of which nothing is known, in bytes.
pub fn heaviest(living: &BTreeMap<PersonaId, Living>) -> u64 {
    living.values().map(|mind| mind.resident).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
