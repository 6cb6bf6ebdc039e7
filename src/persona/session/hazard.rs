//! How long a Persona is left alone: a histogram of the gaps between her mails, and what it says about the next.

use std::time::Duration;

/// Buckets an octave of seconds; 22 octaves are 48 days.
const PARTS: u64 = 4;
const BUCKETS: usize = 84;
/// When it holds so many gaps all counts are halved, so that it follows a change of habits.
const FULL: u64 = 4096;
/// Fewer gaps than this say nothing.
const FEWEST: u64 = 4;
/// A whole gap, in the parts that a bucket is divided into.
const WHOLE: u64 = 1 << 20;

/// Gaps between mails, counted by length. Plain values, kept with the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps(Vec<u32>);

/// How often a return was seen in time, of how often it could have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds {
    /// Gaps that ended in time.
    pub returned: u64,
    /// Gaps that had lasted so long.
    pub at_risk: u64,
}

impl Default for Gaps {
    fn default() -> Self {
        Self(vec![0; BUCKETS])
    }
}

impl Gaps {
    /// Takes counts as they were kept; what does not fit is dropped.
    pub fn of(counts: &[u32]) -> Self {
        let mut gaps = Self::default();
        for (to, from) in gaps.0.iter_mut().zip(counts) {
            *to = *from;
        }
        gaps
    }

    /// The counts, to be kept.
    pub fn counts(&self) -> &[u32] {
        &self.0
    }

    /// Counts a gap.
    pub fn record(&mut self, gap: Duration) {
        if self.0.iter().map(|count| u64::from(*count)).sum::<u64>() >= FULL {
            self.0.iter_mut().for_each(|count| *count /= 2);
        }
        self.0[bucket(gap.as_secs())] += 1;
    }

    /// The odds of a return within `ahead`, idle for `idle` so far; none where too little was seen.
    pub fn odds(&self, idle: Duration, ahead: Duration) -> Option<Odds> {
        let at_risk = self.longer_than(idle.as_secs());
        let later = self.longer_than(idle.saturating_add(ahead).as_secs());
        (at_risk >= FEWEST * WHOLE).then_some(Odds { returned: at_risk - later, at_risk })
    }

    /// How many gaps were longer, a bucket's gaps lying evenly in it; in parts of a gap.
    fn longer_than(&self, seconds: u64) -> u64 {
        let at = bucket(seconds);
        let (from, to) = (lower(at), lower(at + 1));
        let inside = to.saturating_sub(seconds.max(from)) * WHOLE / (to - from);
        let above: u64 = self.0[at + 1..].iter().map(|count| u64::from(*count)).sum();
        above * WHOLE + u64::from(self.0[at]) * inside
    }
}

/// The bucket of a gap: four for each octave, the last one for all that is longer.
fn bucket(seconds: u64) -> usize {
    let index = match seconds.checked_ilog2() {
        None | Some(0 | 1) => seconds,
        Some(octave) => PARTS * (u64::from(octave) - 1) + ((seconds >> (octave - 2)) & (PARTS - 1)),
    };
    usize::try_from(index).map_or(BUCKETS - 1, |index| index.min(BUCKETS - 1))
}

/// The shortest gap of a bucket, in seconds.
fn lower(bucket: usize) -> u64 {
    let index = bucket as u64;
    if index < PARTS { index } else { (PARTS + index % PARTS) << (index / PARTS - 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn seen(gaps: &[u64]) -> Gaps {
        let mut seen = Gaps::default();
        gaps.iter().for_each(|gap| seen.record(Duration::from_secs(*gap)));
        seen
    }

    #[track_caller]
    fn check(gaps: &[u64], idle: Duration, percent: Option<u64>) {
        let odds = seen(gaps).odds(idle, HOUR);
        assert_eq!(odds.map(|odds| odds.returned * 100 / odds.at_risk), percent, "{gaps:?}");
    }

    #[test]
    fn the_odds_are_what_was_seen_of_those_that_lasted_so_long() {
        check(&[], HOUR, None);
        check(&[90_000; 3], HOUR, None);
        check(&[90_000; 4], HOUR, Some(0));
        check(&[6_000; 4], HOUR, Some(100));
        check(&[60; 100], HOUR, None);
        let mixed = [&[6_000; 4][..], &[90_000; 12], &[60; 50]].concat();
        check(&mixed, HOUR, Some(25));
        check(&mixed, 2 * HOUR, Some(0));
    }

    #[test]
    fn a_bucket_is_divided_evenly() {
        // 3584 to 4096 seconds are one bucket.
        let gaps = seen(&[3_600; 16]);
        let odds = gaps.odds(Duration::from_secs(3_840), HOUR).expect("enough");
        assert_eq!((odds.returned, odds.at_risk), (8 * WHOLE, 8 * WHOLE));
    }

    #[test]
    fn old_gaps_fade() {
        let mut gaps = seen(&vec![60; 4096]);
        for _ in 0..20_000 {
            gaps.record(Duration::from_secs(7_000));
        }
        assert!(gaps.counts().iter().map(|count| u64::from(*count)).sum::<u64>() <= FULL);
        assert!(gaps.counts()[bucket(60)] <= 64);
    }

    #[test]
    fn what_was_kept_is_taken_again() {
        let gaps = seen(&[1, 2, 3, 5_000_000_000]);
        assert_eq!(Gaps::of(gaps.counts()), gaps);
        assert_eq!(Gaps::of(&[]), Gaps::default());
        assert_eq!(Gaps::of(&[1; 1000]).counts().len(), BUCKETS);
    }

    proptest! {
        #[test]
        fn every_gap_lies_in_its_bucket(seconds in 0_u64..(1 << 22)) {
            let at = bucket(seconds);
            prop_assert!(lower(at) <= seconds);
            prop_assert!(seconds < lower(at + 1) || at == BUCKETS - 1);
        }

        #[test]
        fn odds_are_odds(gaps in prop::collection::vec(0_u64..10_000_000, 0..60), idle in 0_u64..10_000_000, ahead in 0_u64..10_000_000) {
            let (idle, ahead) = (Duration::from_secs(idle), Duration::from_secs(ahead));
            if let Some(odds) = seen(&gaps).odds(idle, ahead) {
                prop_assert!(odds.returned <= odds.at_risk);
                prop_assert!(seen(&gaps).odds(idle, ahead * 2).expect("as many").returned >= odds.returned);
            }
        }
    }
}
