//! When an account that was refused is asked again, and what shows that it is taken.

use std::time::Duration;

use super::Ending;
use crate::conversation::Millis;

/// In whose name the account is asked; no Persona can have this id.
pub const ACCOUNT: &str = "ACCOUNT";
/// How long an account that was refused is left alone, at least.
pub const PERIOD: Duration = Duration::from_secs(15 * 60);

/// What is known of the account that all Personas share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// When it was last refused, or asked about; none while it is taken.
    refused: Option<Millis>,
}

impl Access {
    /// The API has refused it.
    pub fn refused(&mut self, now: Millis) {
        self.refused = self.refused.max(Some(now));
    }

    /// The API has taken it; answers whether it was refused before.
    pub fn taken(&mut self) -> bool {
        self.refused.take().is_some()
    }

    /// When it is to be asked about; none while it is taken.
    pub fn due(self) -> Option<Millis> {
        self.refused.map(|last| last.plus(PERIOD))
    }
}

/// Whether an ending shows that the API takes the account, whatever it says of the question.
pub fn shows_access(ending: &Ending) -> bool {
    match ending {
        Ending::Answered { .. }
        | Ending::Final { .. }
        | Ending::Rejected { .. }
        | Ending::Invalid { .. }
        | Ending::TooLong => true,
        Ending::Transient { .. }
        | Ending::Lost { .. }
        | Ending::Died { .. }
        | Ending::Stranded
        | Ending::Refused { .. }
        | Ending::Poisoned { .. }
        | Ending::SessionGone { .. }
        | Ending::Unsettled { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_the_api_said_of_the_question_shows_access() {
        let reason = || "a reason".to_owned();
        for (ending, shown) in [
            (Ending::Answered { reply: reason() }, true),
            (Ending::Final { reason: reason() }, true),
            (Ending::Rejected { reason: reason() }, true),
            (Ending::Invalid { fault: reason() }, true),
            (Ending::TooLong, true),
            (Ending::Transient { reason: reason(), retry_after: None }, false),
            (Ending::Lost { reason: reason() }, false),
            (Ending::Died { reason: reason() }, false),
            (Ending::Stranded, false),
            (Ending::Refused { reason: reason() }, false),
            (Ending::Poisoned { reason: reason() }, false),
            (Ending::SessionGone { reason: reason() }, false),
        ] {
            assert_eq!(shows_access(&ending), shown, "{ending:?}");
        }
    }

    #[test]
    fn what_is_taken_is_not_asked_about() {
        let mut access = Access::default();
        assert_eq!((access.due(), access.taken()), (None, false));
        access.refused(Millis(7));
        assert_eq!(access.due(), Some(Millis(900_007)));
        assert!(access.taken());
        assert_eq!((access.due(), access.taken()), (None, false));
    }

    proptest! {
        #[test]
        fn it_is_left_alone_for_a_period_after_whatever_refused_it(times in prop::collection::vec(0_u64..9_000_000, 1..9)) {
            let mut access = Access::default();
            times.iter().for_each(|time| access.refused(Millis(*time)));
            let last = times.iter().max().copied().unwrap_or_default();
            prop_assert_eq!(access.due(), Some(Millis(last).plus(PERIOD)));
        }
    }
}
