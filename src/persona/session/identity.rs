//! Which session a Persona's words go to. Pure: it derives ids and compares, and never looks for a session's file.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::account::Account;
use super::care::Mark;
use crate::conversation::{LineId, Millis, PersonaId};

/// A Persona's current session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Counted from 1; each generation is a session of its own.
    pub generation: u32,
    /// The CLI's session id.
    pub id: Uuid,
    /// What it was begun with.
    pub fingerprint: Fingerprint,
    /// When it was begun.
    pub begun: Millis,
    /// The last line whose reply was committed from it.
    pub last_committed: Option<LineId>,
    /// Whether the one before was lost, so that it is told from our own record what was said before.
    pub seeded: bool,
    /// What its requests were.
    pub account: Account,
}

/// Everything a session is begun with and must be resumed with: name and digest (or value) of each part, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(pub BTreeMap<String, String>);

/// The part that tells the version of the claude CLI.
pub const VERSION: &str = "version";
/// The part that tells the folder.
pub const CWD: &str = "cwd";

impl Fingerprint {
    /// The names of the parts that differ, sorted.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name)).cloned().collect()
    }
}

impl Session {
    /// One that nothing was fed to or committed from yet; as it stands it is nobody's, to be asked and thrown away.
    pub fn fresh(id: Uuid, now: Millis) -> Self {
        Self {
            generation: 1,
            id,
            fingerprint: Fingerprint::default(),
            begun: now,
            last_committed: None,
            seeded: false,
            account: Account::default(),
        }
    }

    /// Whether the one after it is to be told what was said before, now that this one is lost: not where this one was told
    /// that and nothing ever came of it, for that may be why.
    pub fn seeds_the_next(&self) -> bool {
        !self.seeded || self.last_committed.is_some()
    }
}

/// Derives the session id of a generation from the store's epoch.
pub fn session_id(epoch: Uuid, persona: &PersonaId, generation: u32) -> Uuid {
    Uuid::new_v5(&epoch, format!("session\u{1f}{persona}\u{1f}{generation}").as_bytes())
}

/// What speaks against a session, by what it was begun with and what would be begun with now.
pub fn marks(begun_with: &Fingerprint, now: &Fingerprint) -> BTreeSet<Mark> {
    let mark = |name: &String| match name.as_str() {
        VERSION => Mark::CliVersion,
        CWD => Mark::Cwd,
        _ => Mark::Stale,
    };
    begun_with.differences(now).iter().map(mark).collect()
}

/// Begins the session after `previous`, or the first: nothing has been fed into it or committed from it. Of the account only
/// what is hers, and no session's, goes on.
pub fn next_session(
    epoch: Uuid,
    persona: &PersonaId,
    previous: Option<&Session>,
    fingerprint: Fingerprint,
    now: Millis,
) -> Session {
    let generation = previous.map_or(0, |session| session.generation) + 1;
    let id = session_id(epoch, persona, generation);
    let account = previous.map(|session| session.account.carried()).unwrap_or_default();
    Session { generation, fingerprint, account, ..Session::fresh(id, now) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EPOCH: Uuid = Uuid::from_u128(1);

    fn eir() -> PersonaId {
        PersonaId("eir".to_owned())
    }

    fn print(parts: &[(&str, &str)]) -> Fingerprint {
        Fingerprint(parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn used() -> Session {
        Session {
            last_committed: Some(LineId(Uuid::from_u128(2))),
            ..next_session(EPOCH, &eir(), None, print(&[("model", "a")]), Millis(5))
        }
    }

    #[track_caller]
    fn check(before: &[(&str, &str)], now: &[(&str, &str)], expected: &[Mark]) {
        assert_eq!(marks(&print(before), &print(now)), expected.iter().copied().collect());
    }

    #[test]
    fn the_first_session_is_of_generation_1() {
        let first = next_session(EPOCH, &eir(), None, print(&[("model", "a")]), Millis(5));
        assert_eq!((first.generation, first.begun), (1, Millis(5)));
        assert_eq!(first.id, session_id(EPOCH, &eir(), 1));
    }

    #[test]
    fn what_differs_speaks_against_a_session() {
        let begun = [("cwd", "/a"), ("model", "a"), ("version", "2.1.332")];
        check(&begun, &begun, &[]);
        check(&begun, &[("cwd", "/a"), ("model", "a"), ("version", "2.1.333")], &[Mark::CliVersion]);
        check(&begun, &[("cwd", "/b"), ("model", "a"), ("version", "2.1.332")], &[Mark::Cwd]);
        check(&begun, &[("cwd", "/a"), ("model", "b"), ("version", "2.1.332")], &[Mark::Stale]);
        check(&begun, &[("cwd", "/b"), ("effort", "low")], &[Mark::CliVersion, Mark::Cwd, Mark::Stale]);
    }

    #[test]
    fn the_next_session_carries_nothing_over_but_her_habits() {
        let mut before = used();
        before.account.woken(Millis(1_000));
        before.account.woken(Millis(9_000));
        let next = next_session(EPOCH, &eir(), Some(&before), print(&[("model", "b")]), Millis(9));
        let expected = Session {
            generation: 2,
            id: session_id(EPOCH, &eir(), 2),
            fingerprint: print(&[("model", "b")]),
            begun: Millis(9),
            last_committed: None,
            seeded: false,
            account: before.account.carried(),
        };
        assert_eq!(next, expected);
        assert_ne!(next.account, Account::default());
    }

    #[test]
    fn a_record_that_may_have_cost_a_session_is_not_told_to_the_next() {
        let check = |seeded, last_committed, seeds| {
            assert_eq!(Session { seeded, last_committed, ..used() }.seeds_the_next(), seeds);
        };
        check(false, None, true);
        check(true, used().last_committed, true);
        check(true, None, false);
    }

    #[test]
    fn the_id_hangs_on_epoch_persona_and_generation_alone() {
        let var = PersonaId("var".to_owned());
        let ids = [
            session_id(EPOCH, &eir(), 1),
            session_id(EPOCH, &eir(), 2),
            session_id(EPOCH, &var, 1),
            session_id(Uuid::from_u128(9), &eir(), 1),
        ];
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        let renewed = next_session(EPOCH, &eir(), None, print(&[("model", "b")]), Millis(77));
        assert_eq!(renewed.id, ids[0]);
    }

    proptest! {
        #[test]
        fn nothing_speaks_against_what_is_the_same_and_something_against_what_is_not(now in prop::collection::btree_map("[a-c]", "[a-b]", 0..4), old in prop::collection::btree_map("[a-c]", "[a-b]", 0..4)) {
            let (now, old) = (Fingerprint(now), Fingerprint(old));
            prop_assert_eq!(marks(&old, &now).is_empty(), now == old);
        }
    }
}
