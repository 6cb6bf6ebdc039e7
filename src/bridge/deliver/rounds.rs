//! When what is parked because the homeserver failed on it is tried again: at each start, then now and then, sooner once
//! something else was taken.

use std::time::Duration;

use crate::conversation::Millis;

/// How often a round is made, one say a room.
const USUAL: Duration = Duration::from_secs(600);
/// How soon after a round the next one may be made because something else was taken.
const SOON: Duration = Duration::from_secs(60);

/// The rounds of one process; the first is due at once.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    last: Option<Millis>,
    taken: bool,
}

impl Rounds {
    /// When the next one is due; none stands for at once.
    pub(super) fn next(&self) -> Option<Millis> {
        self.last.map(|last| last.plus(if self.taken { SOON } else { USUAL }))
    }

    /// One is made.
    pub(super) fn made(&mut self, now: Millis) {
        *self = Self { last: Some(now), taken: false };
    }

    /// The homeserver took something that was never parked.
    pub(super) fn taken(&mut self) {
        self.taken = true;
    }

    /// It took what was tried again: what is left may follow at once.
    pub(super) fn over(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_come_at_once_then_now_and_then_and_sooner_once_something_was_taken() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.next(), None);
        rounds.made(Millis(5_000));
        assert_eq!(rounds.next(), Some(Millis(605_000)));
        rounds.taken();
        assert_eq!(rounds.next(), Some(Millis(65_000)));
        rounds.made(Millis(65_000));
        assert_eq!(rounds.next(), Some(Millis(665_000)));
        rounds.over();
        assert_eq!(rounds.next(), None);
    }
}
