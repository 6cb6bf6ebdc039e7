//! What keeps Personas among themselves from running away: how far they wake each other, how often, and how much a room
//! bears.
//!
//! It counts what is kept in the store and reads no clock, so that a crash changes no count.

use std::fmt;
use std::time::Duration;

use crate::conversation::Millis;

/// How far Personas go on among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Among {
    /// From how many hops on a Persona's line wakes nobody.
    pub max_hops: u32,
    /// How many mutual turns two Personas may have in a room; none for any number.
    pub pair: Option<Limit>,
    /// How many events of Personas a room bears; none for any number.
    pub room: Option<Limit>,
}

impl Default for Among {
    fn default() -> Self {
        let limit = |most| Some(Limit { most, within: Duration::from_secs(600) });
        Self { max_hops: 3, pair: limit(20), room: limit(30) }
    }
}

/// So many within any span of so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub most: u32,
    /// How long the span is.
    pub within: Duration,
}

impl Limit {
    /// What is borne where it is calm: half of it.
    #[must_use]
    pub fn calm(self) -> Self {
        Self { most: self.most / 2 + 1, ..self }
    }

    fn most(self) -> usize {
        usize::try_from(self.most).unwrap_or(usize::MAX)
    }

    /// Whether a time counts: not where it is ahead, as when the clock was set back.
    fn counts(self, at: Millis, now: Millis) -> bool {
        at <= now && now.since(at) < self.within
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {}", self.most, humantime::format_duration(self.within))
    }
}

/// Two Personas in a room, and the turns there in which what one said woke the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// When the last of these turns ended, oldest first.
    pub turns: Vec<Millis>,
    /// Since when both are held there, if they are.
    pub held: Option<Millis>,
}

impl Pair {
    /// One more of these turns has ended; answers whether both are held from now on.
    pub fn ends_turn(&mut self, limit: Limit, now: Millis) -> bool {
        self.turns.retain(|at| limit.counts(*at, now));
        self.turns.push(now);
        let is_new = self.turns.len() > limit.most() && self.held.is_none();
        if is_new {
            self.held = Some(now);
        }
        let surplus = self.turns.len().saturating_sub(limit.most().saturating_add(1));
        self.turns.drain(..surplus);
        is_new
    }
}

/// When a room bears one more event of Personas, after those that wait to be sent there; none if it does so now.
///
/// `sent` are the times of those that stand there, oldest first.
pub fn bears_again(sent: &[Millis], waiting: usize, limit: Limit, now: Millis) -> Option<Millis> {
    let recent: Vec<Millis> = sent.iter().copied().filter(|at| limit.counts(*at, now)).collect();
    let surplus = (recent.len() + waiting).checked_sub(limit.most())?;
    // Those are left behind one by one; where more waits than it ever bears, all of them must be.
    let last = recent.get(surplus).or(recent.last()).copied().unwrap_or(now);
    Some(last.plus(limit.within))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TWO: Limit = Limit { most: 2, within: Duration::from_millis(100) };

    fn any_limit() -> impl Strategy<Value = Limit> {
        (1..6_u32, 1..300_u64)
            .prop_map(|(most, within)| Limit { most, within: Duration::from_millis(within) })
    }

    /// Times that never fall.
    fn any_times() -> impl Strategy<Value = Vec<Millis>> {
        prop::collection::vec(0..80_u64, 0..30).prop_map(|gaps| {
            let times = gaps.into_iter().scan(1_000, |at, gap| {
                *at += gap;
                Some(Millis(*at))
            });
            times.collect()
        })
    }

    fn ended(times: &[u64]) -> (Pair, Vec<bool>) {
        let mut pair = Pair::default();
        let held = times.iter().map(|at| pair.ends_turn(TWO, Millis(*at))).collect();
        (pair, held)
    }

    #[test]
    fn more_turns_than_the_limit_hold_both_and_that_is_new_once() {
        assert_eq!(ended(&[0, 99]).0.held, None);
        let (pair, held) = ended(&[0, 50, 99, 100]);
        assert_eq!((pair.held, held), (Some(Millis(99)), vec![false, false, true, false]));
        assert_eq!(ended(&[0, 50, 100]).0.held, None, "the first has left the window");
        assert_eq!(ended(&[500, 501, 0, 50]).0.held, None, "the clock was set back");
    }

    #[test]
    fn a_room_bears_again_as_soon_as_enough_of_its_events_are_old() {
        let again = |sent: &[u64], waiting| {
            let sent: Vec<Millis> = sent.iter().map(|at| Millis(*at)).collect();
            bears_again(&sent, waiting, TWO, Millis(200)).map(|at| at.0)
        };
        assert_eq!(again(&[], 0), None);
        assert_eq!(again(&[50, 90, 150], 0), None, "two have left the window");
        assert_eq!(again(&[110, 150], 0), Some(210));
        assert_eq!(again(&[110, 150, 160], 0), Some(250));
        assert_eq!(again(&[150], 1), Some(250), "what waits comes first");
        assert_eq!(again(&[110, 150], 1), Some(250));
        assert_eq!(again(&[110, 150], 7), Some(250), "to be looked at again");
        assert_eq!(again(&[], 2), Some(300));
        assert_eq!(again(&[300, 400], 0), None, "the clock was set back");
    }

    proptest! {
        #[test]
        fn both_are_held_exactly_from_the_first_window_with_too_many(times in any_times(), limit in any_limit()) {
            let mut pair = Pair::default();
            let first = times.iter().find(|now| {
                let within = times.iter().filter(|at| at <= now && now.since(**at) < limit.within);
                // Of turns that end at once the last one is it.
                within.count() > limit.most()
            });
            for now in &times {
                pair.ends_turn(limit, *now);
            }
            prop_assert_eq!(pair.held.is_some(), first.is_some());
            prop_assert!(pair.held.is_none_or(|held| Some(&held) == first));
            prop_assert!(pair.turns.len() <= limit.most() + 1);
        }

        #[test]
        fn whoever_waits_for_the_room_never_lets_it_bear_more_than_its_limit(
            wishes in any_times(),
            limit in any_limit(),
        ) {
            let mut sent: Vec<Millis> = Vec::new();
            let mut now = Millis(0);
            for wish in wishes {
                now = now.max(wish);
                while let Some(again) = bears_again(&sent, 0, limit, now) {
                    prop_assert!(again > now, "it is never waited for a time that is not ahead");
                    now = again;
                }
                sent.push(now);
            }
            for at in &sent {
                let within = sent.iter().filter(|other| *other <= at && at.since(**other) < limit.within);
                prop_assert!(within.count() <= limit.most());
            }
        }
    }
}
