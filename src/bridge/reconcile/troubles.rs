//! What could not be read back, and when it is tried again.

use std::collections::BTreeMap;
use std::fmt;

use ruma::{OwnedRoomId, OwnedUserId};

use crate::bridge::calls::backoff;
use crate::conversation::{Millis, PersonaId};
use crate::homeserver::client::CallErrorKind;

/// A part of a pass that fails by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Where a Persona is.
    Seats(PersonaId),
    /// Which invites wait for a user of ours.
    Invites(OwnedUserId),
    /// A room.
    Room(OwnedRoomId),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seats(persona) => write!(f, "the rooms of {persona}"),
            Self::Invites(user) => write!(f, "the invites of {user}"),
            Self::Room(room) => write!(f, "{room}"),
        }
    }
}

struct Trouble {
    tries: u32,
    since: Millis,
    not_before: Millis,
    unreached: bool,
}

/// The parts that failed last.
#[derive(Default)]
pub(super) struct Troubles(BTreeMap<Part, Trouble>);

impl Troubles {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a part has to wait.
    pub(super) fn waits(&self, part: &Part, now: Millis) -> bool {
        self.0.get(part).is_some_and(|trouble| trouble.not_before > now)
    }

    /// When the next part is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.0.values().map(|trouble| trouble.not_before).min()
    }

    /// The parts that are due.
    pub(super) fn due(&self, now: Millis) -> Vec<Part> {
        let due = self.0.iter().filter(|(_, trouble)| trouble.not_before <= now);
        due.map(|(part, _)| part.clone()).collect()
    }

    /// A part failed: how often in a row by now, and since when.
    pub(super) fn failed(&mut self, part: Part, now: Millis, kind: CallErrorKind) -> (u32, Millis) {
        let fresh = || Trouble { tries: 0, since: now, not_before: now, unreached: false };
        let trouble = self.0.entry(part).or_insert_with(fresh);
        let delay = if let CallErrorKind::Limited(after) = kind { after } else { backoff(trouble.tries) };
        trouble.tries = trouble.tries.saturating_add(1);
        trouble.not_before = now.plus(delay);
        trouble.unreached = kind == CallErrorKind::NotSent;
        (trouble.tries, trouble.since)
    }

    /// A part succeeded: how often it had failed, if it had.
    pub(super) fn well(&mut self, part: &Part) -> Option<u32> {
        self.0.remove(part).map(|trouble| trouble.tries)
    }

    /// The homeserver may be back: what only could not reach it waits no longer.
    pub(super) fn reach_again(&mut self) {
        self.0.retain(|_, trouble| !trouble.unreached);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ruma::room_id;

    use super::*;

    fn room() -> Part {
        Part::Room(room_id!("!r:x").to_owned())
    }

    #[test]
    fn a_part_that_fails_waits_longer_each_time_up_to_a_minute() {
        let mut troubles = Troubles::default();
        let mut now = Millis(0);
        let mut waits = Vec::new();
        for tries in 1..10 {
            assert_eq!(troubles.failed(room(), now, CallErrorKind::Server), (tries, Millis(0)));
            let next = troubles.next().unwrap();
            assert!(troubles.waits(&room(), now) && !troubles.waits(&room(), next));
            assert_eq!((troubles.due(now), troubles.due(next)), (vec![], vec![room()]));
            waits.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(troubles.well(&room()), Some(9));
        assert!(troubles.is_empty() && troubles.well(&room()).is_none());
    }

    #[test]
    fn a_limit_waits_the_delay_it_gave_whatever_else_is_poked() {
        let mut troubles = Troubles::default();
        troubles.failed(room(), Millis(0), CallErrorKind::Limited(Duration::from_secs(100)));
        troubles.reach_again();
        assert!(troubles.waits(&room(), Millis(99_999)) && !troubles.waits(&room(), Millis(100_000)));
    }

    #[test]
    fn what_only_was_not_reached_is_tried_at_once_when_the_homeserver_is_back() {
        let mut troubles = Troubles::default();
        troubles.failed(room(), Millis(0), CallErrorKind::Uncertain);
        troubles.failed(Part::Seats(PersonaId("eir".into())), Millis(0), CallErrorKind::NotSent);
        troubles.reach_again();
        assert_eq!(troubles.due(Millis(60_000)), [room()]);
    }
}
