//! What may be spent: pure decisions of what was spent already, by the time that is given.
//!
//! A day is a day of UTC. The turn that crosses a limit is answered; from then on nothing is asked until the next day.

use crate::conversation::Millis;
use crate::persona::session::Usd;

/// A day in milliseconds.
const DAY: u64 = 86_400_000;

/// The operator's limits, each none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// What all Personas may spend a day.
    pub per_day: Option<Usd>,
    /// What each Persona may spend a day.
    pub per_persona_per_day: Option<Usd>,
    /// What the attempts at one turn may spend before its mail is held.
    pub per_turn: Option<Usd>,
    /// Whether people are told in their direct rooms that their mail waits.
    pub courtesy: bool,
}

/// What was spent on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// By all Personas.
    pub all: Usd,
    /// By the one in question.
    pub own: Usd,
}

/// Which limit of a day is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// That of all Personas.
    Day(Usd),
    /// That of each.
    PersonaDay(Usd),
}

impl Budget {
    /// The limit that keeps a Persona from being asked today, if one does.
    pub fn reached(&self, spent: Spent) -> Option<Limit> {
        let day = self.per_day.filter(|limit| spent.all >= *limit).map(Limit::Day);
        let own = self.per_persona_per_day.filter(|limit| spent.own >= *limit);
        day.or(own.map(Limit::PersonaDay))
    }

    /// How many whole quarters of the limits of a day are spent, four at most: of that of all, and of hers; zero without one.
    pub fn quarters(&self, spent: Spent) -> (u8, u8) {
        let of = |limit: Option<Usd>, spent: Usd| match limit {
            None => 0,
            Some(limit) => {
                let quarters = u128::from(spent.0) * 4 / u128::from(limit.0).max(1);
                u8::try_from(quarters.min(4)).unwrap_or(4)
            }
        };
        (of(self.per_day, spent.all), of(self.per_persona_per_day, spent.own))
    }

    /// Whether there is a limit of a day at all.
    pub fn limits_days(&self) -> bool {
        self.per_day.is_some() || self.per_persona_per_day.is_some()
    }

    /// Whether a turn that has cost so much may be tried once more.
    pub fn allows_another_try(&self, turn: Usd) -> bool {
        self.per_turn.is_none_or(|limit| turn < limit)
    }
}

/// When the day of a time began.
pub fn day_of(at: Millis) -> Millis {
    Millis(at.0 - at.0 % DAY)
}

/// Which day a time lies in, counted from the epoch.
pub fn day_number(at: Millis) -> u64 {
    at.0 / DAY
}

/// When a day of that number begins.
pub fn begin_of(day: u64) -> Millis {
    Millis(day.saturating_mul(DAY))
}

/// When the day after it begins.
pub fn next_day(at: Millis) -> Millis {
    Millis(day_of(at).0.saturating_add(DAY))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BUDGET: Budget = Budget {
        per_day: Some(Usd(100)),
        per_persona_per_day: Some(Usd(60)),
        per_turn: Some(Usd(10)),
        courtesy: false,
    };

    #[track_caller]
    fn check(budget: Budget, all: u64, own: u64, limit: Option<Limit>) {
        assert_eq!(budget.reached(Spent { all: Usd(all), own: Usd(own) }), limit);
    }

    #[test]
    fn a_limit_is_reached_once_as_much_is_spent() {
        check(BUDGET, 99, 59, None);
        check(BUDGET, 99, 60, Some(Limit::PersonaDay(Usd(60))));
        check(BUDGET, 100, 10, Some(Limit::Day(Usd(100))));
        check(Budget { per_day: None, ..BUDGET }, 1_000, 59, None);
        check(Budget::default(), u64::MAX, u64::MAX, None);
        check(Budget { per_day: Some(Usd(0)), ..Budget::default() }, 0, 0, Some(Limit::Day(Usd(0))));
    }

    #[test]
    fn what_is_spent_is_counted_in_whole_quarters() {
        let quarters = |all, own| BUDGET.quarters(Spent { all: Usd(all), own: Usd(own) });
        assert_eq!([quarters(0, 0), quarters(24, 14), quarters(25, 15)], [(0, 0), (0, 0), (1, 1)]);
        assert_eq!([quarters(99, 45), quarters(100, 60), quarters(u64::MAX, 999)], [(3, 3), (4, 4), (4, 4)]);
        assert_eq!(Budget::default().quarters(Spent { all: Usd(9), own: Usd(9) }), (0, 0));
    }

    #[test]
    fn a_turn_is_tried_until_its_limit() {
        assert!(BUDGET.allows_another_try(Usd(9)) && !BUDGET.allows_another_try(Usd(10)));
        assert!(Budget::default().allows_another_try(Usd(u64::MAX)));
    }

    #[test]
    fn days_are_days_of_utc() {
        let noon = Millis(1_800_014_400_000 + 12 * 3_600_000);
        assert_eq!(next_day(noon).0 - day_of(noon).0, DAY);
        assert_eq!(day_of(next_day(noon)), next_day(noon));
    }

    proptest! {
        #[test]
        fn more_spent_never_lets_more_be_asked(all in 0..300_u64, own in 0..300_u64, more in 0..100_u64) {
            let spent = |all, own| BUDGET.reached(Spent { all: Usd(all), own: Usd(own) });
            prop_assert!(spent(all, own).is_none() || spent(all + more, own + more).is_some());
        }

        #[test]
        fn the_next_day_is_ahead_within_a_day(at in 0..u64::MAX / 2) {
            let next = next_day(Millis(at)).0;
            prop_assert!(next > at && next - at <= DAY);
        }
    }
}
