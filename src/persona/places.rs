//! Whose mind may live: so many processes at most, with so much memory in sum.
//!
//! Who has waited longest is served first, and the mind that has been idle longest makes room. It never ends a thought, and
//! it keeps no count of its own: whoever asks again with the same situation gets the same plan.

use std::collections::{BTreeMap, BTreeSet};

use crate::conversation::{Millis, PersonaId};

/// What the host bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Live minds at most; at least one may always live.
    pub most: usize,
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
    /// When the oldest mail to her that waits was heard.
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
/// 2. Wishes of those without a mind, the one with the oldest mail first: a place is given while there is one; no later
///    wish overtakes one that must wait.
/// 3. For each that must wait the idle longest is closed, but none that has older mail waiting itself.
/// 4. Who has a mind that is not to be closed keeps it.
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
    let mut waits = false;
    for (who, wish) in waiting(living, wishes) {
        let resident = wish.resident.unwrap_or_else(|| heaviest(living));
        if !waits && places.bear(now, resident) {
            now.add(resident);
            plan.granted.insert(who.clone());
        } else {
            waits = true;
            let older = |who: &PersonaId| wishes.get(who).is_some_and(|own| own.since <= wish.since);
            while !places.bear(later, resident) {
                let Some(at) = idle.iter().position(|who| !older(who)) else { break };
                plan.closes(idle.remove(at), living, &mut later);
            }
        }
        later.add(resident);
    }
    let keeps =
        |who: &&PersonaId| living.get(*who).is_some_and(|mind| !mind.closing) && !plan.close.contains(*who);
    let keep: Vec<PersonaId> = wishes.keys().filter(keeps).cloned().collect();
    plan.granted.extend(keep);
    plan
}

impl Plan {
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

/// The wishes of those without a mind, the longest waiting first.
fn waiting<'a>(
    living: &BTreeMap<PersonaId, Living>,
    wishes: &'a BTreeMap<PersonaId, Wish>,
) -> Vec<(&'a PersonaId, &'a Wish)> {
    let mut waiting: Vec<_> = wishes.iter().filter(|(who, _)| !living.contains_key(*who)).collect();
    waiting.sort_by_key(|(who, wish)| (wish.since, *who));
    waiting
}

/// As much as a mind is believed to take of which nothing is known, in bytes.
pub fn heaviest(living: &BTreeMap<PersonaId, Living>) -> u64 {
    living.values().map(|mind| mind.resident).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
