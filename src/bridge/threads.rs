//! Whom threads asked last, as far as it was heard so lately that the store may not tell it yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ruma::OwnedEventId;

use crate::conversation::PersonaId;

/// How many are kept: far more than are ever on their way into the store.
const KEPT: usize = 2_000;

/// The newest that was heard of whom threads ask.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    asked: BTreeMap<OwnedEventId, BTreeSet<PersonaId>>,
    order: VecDeque<OwnedEventId>,
}

impl Threads {
    /// Whom the thread with that root asked last, if that was heard lately.
    pub(crate) fn asked(&self, root: &OwnedEventId) -> Option<BTreeSet<PersonaId>> {
        self.asked.get(root).cloned()
    }

    /// The thread asks these from now on.
    pub(crate) fn ask(&mut self, root: OwnedEventId, personas: BTreeSet<PersonaId>) {
        if self.asked.insert(root.clone(), personas).is_some() {
            self.order.retain(|known| *known != root);
        }
        self.order.push_back(root);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.asked.remove(&oldest);
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
    fn the_newest_are_kept_also_where_one_is_asked_again_and_again() {
        let mut threads = Threads::default();
        let of = |name: &str| BTreeSet::from([PersonaId(name.to_owned())]);
        threads.ask(root(0), of("eir"));
        for number in 1..2 * KEPT {
            threads.ask(root(number), of("eir"));
            threads.ask(root(0), of("brage"));
        }
        assert_eq!(threads.asked(&root(0)), Some(of("brage")));
        assert_eq!(threads.asked(&root(2 * KEPT - 1)), Some(of("eir")));
        assert_eq!(threads.asked(&root(1)), None);
        assert_eq!(threads.order.len(), KEPT);
    }
}
