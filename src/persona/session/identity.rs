//! Which session a Persona's words go to. Pure: it derives ids and compares, and never looks for a session's file.

use uuid::Uuid;

use super::account::Account;
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
    /// What its requests were.
    pub account: Account,
}

/// Everything a session is begun with and must be resumed with: name and digest (or value) of each part, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(pub std::collections::BTreeMap<String, String>);

impl Fingerprint {
    /// The names of the parts that differ, sorted.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name)).cloned().collect()
    }
}

/// Derives the session id of a generation from the store's epoch.
pub fn session_id(epoch: Uuid, persona: &PersonaId, generation: u32) -> Uuid {
    Uuid::new_v5(&epoch, format!("session\u{1f}{persona}\u{1f}{generation}").as_bytes())
}

/// What becomes of a Persona's session at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// She never had one.
    First,
    /// It goes on.
    Resume,
    /// It was begun with something else: the next generation begins; the names of what differs, for operators.
    Renew(Vec<String>),
}

/// Decides whether the session goes on: only if everything it was begun with is still the same.
pub fn resume_or_renew(previous: Option<&Session>, fingerprint: &Fingerprint) -> Continuation {
    let Some(session) = previous else { return Continuation::First };
    let differences = session.fingerprint.differences(fingerprint);
    if differences.is_empty() { Continuation::Resume } else { Continuation::Renew(differences) }
}

/// Begins the session after `previous`, or the first: nothing has been fed into it or committed from it.
pub fn next_session(
    epoch: Uuid,
    persona: &PersonaId,
    previous: Option<&Session>,
    fingerprint: Fingerprint,
    now: Millis,
) -> Session {
    let generation = previous.map_or(0, |session| session.generation) + 1;
    let id = session_id(epoch, persona, generation);
    Session { generation, id, fingerprint, begun: now, last_committed: None, account: Account::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
    fn check(before: &[(&str, &str)], now: &[(&str, &str)], expected: Continuation) {
        let session = Session { fingerprint: print(before), ..used() };
        assert_eq!(resume_or_renew(Some(&session), &print(now)), expected);
    }

    fn renew(names: &[&str]) -> Continuation {
        Continuation::Renew(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_persona_without_a_session_begins_her_first() {
        assert_eq!(resume_or_renew(None, &print(&[])), Continuation::First);
        let first = next_session(EPOCH, &eir(), None, print(&[("model", "a")]), Millis(5));
        assert_eq!((first.generation, first.begun), (1, Millis(5)));
        assert_eq!(first.id, session_id(EPOCH, &eir(), 1));
    }

    #[test]
    fn a_session_goes_on_only_with_what_it_was_begun_with() {
        let begun = [("cli", "2.1.332"), ("model", "a")];
        check(&begun, &begun, Continuation::Resume);
        check(&begun, &[("cli", "2.1.333"), ("model", "a")], renew(&["cli"]));
        check(&begun, &[("cli", "2.1.332")], renew(&["model"]));
        check(&begun, &[("cli", "2.1.332"), ("effort", "low"), ("model", "b")], renew(&["effort", "model"]));
    }

    #[test]
    fn the_next_session_carries_nothing_over() {
        let next = next_session(EPOCH, &eir(), Some(&used()), print(&[("model", "b")]), Millis(9));
        let expected = Session {
            generation: 2,
            id: session_id(EPOCH, &eir(), 2),
            fingerprint: print(&[("model", "b")]),
            begun: Millis(9),
            last_committed: None,
            account: Account::default(),
        };
        assert_eq!(next, expected);
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
        fn a_renewed_session_goes_on(parts in prop::collection::btree_map("[a-c]", "[a-b]", 0..4), old in prop::collection::btree_map("[a-c]", "[a-b]", 0..4)) {
            let (now, old) = (Fingerprint(parts), Fingerprint(old));
            let before = Session { fingerprint: old.clone(), ..used() };
            let goes_on = resume_or_renew(Some(&before), &now) == Continuation::Resume;
            prop_assert_eq!(goes_on, now == old);
            let next = next_session(EPOCH, &eir(), Some(&before), now.clone(), Millis(1));
            prop_assert_eq!(resume_or_renew(Some(&next), &now), Continuation::Resume);
        }
    }
}
