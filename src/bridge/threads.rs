//! What was heard so lately that the store may not tell it yet: whom threads asked last, and where messages stand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ruma::OwnedEventId;

use crate::conversation::PersonaId;
use crate::store::Place;

/// How many are kept: far more than are ever on their way into the store.
const KEPT: usize = 2_000;

/// The newest that was heard of threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Whom the thread with that root asked last.
    pub(crate) asked: Lately<BTreeSet<PersonaId>>,
    /// Where a message stands.
    pub(crate) places: Lately<Place>,
}

/// What was heard lately of events.
#[derive(Debug)]
pub(crate) struct Lately<T> {
    known: BTreeMap<OwnedEventId, T>,
    order: VecDeque<OwnedEventId>,
}

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone> Lately<T> {
    /// What was heard, if it was lately.
    pub(crate) fn of(&self, event: &OwnedEventId) -> Option<T> {
        self.known.get(event).cloned()
    }

    /// It is so from now on.
    pub(crate) fn put(&mut self, event: OwnedEventId, is: T) {
        if self.known.insert(event.clone(), is).is_some() {
            self.order.retain(|known| *known != event);
        }
        self.order.push_back(event);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(number: usize) -> OwnedEventId {
        format!("$e{number}").try_into().unwrap()
    }

    #[test]
    fn the_newest_are_kept_also_where_one_is_put_again_and_again() {
        let mut lately = Lately::default();
        lately.put(root(0), "eir");
        for number in 1..2 * KEPT {
            lately.put(root(number), "eir");
            lately.put(root(0), "brage");
        }
        assert_eq!(lately.of(&root(0)), Some("brage"));
        assert_eq!(lately.of(&root(2 * KEPT - 1)), Some("eir"));
        assert_eq!(lately.of(&root(1)), None);
        assert_eq!(lately.order.len(), KEPT);
    }
}
