//! What a session may hold that is not remembered: all that the bridge can know of that without reading her mind.
//!
//! A task is a memory that she worded. Where one is open and she has answered in its lane since she last noted something there,
//! what has become of it stands in the session alone.

use super::care::Tasks;
use crate::conversation::Lane;

/// Lanes in which she has answered since she last noted or forgot something there; the one that she answered in last is last.
/// Kept with the session, and emptied when she is asked to note what matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unnoted(pub Vec<Lane>);

impl Unnoted {
    /// A turn of a lane was answered, with or without a note.
    pub fn answered(&mut self, lane: &Lane, noted: bool) {
        self.0.retain(|known| known != lane);
        if !noted {
            self.0.push(lane.clone());
        }
    }

    /// How her tasks stand, given in which lanes she holds an open one, and of which lane she is to be asked if she is: the last
    /// of those, else the last of all.
    pub fn asked(&self, holds_task: impl Fn(&Lane) -> bool) -> (Tasks, Option<&Lane>) {
        match self.0.iter().rfind(|lane| holds_task(lane)) {
            Some(lane) => (Tasks::Unremembered, Some(lane)),
            None => (Tasks::Safe, self.0.last()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::RegisterName;

    fn lane(name: &str) -> Lane {
        Lane::Register(RegisterName(name.to_owned()))
    }

    /// After turns in the lanes of these names, something noted where the letter is a capital.
    fn after(turns: &str) -> Unnoted {
        let mut unnoted = Unnoted::default();
        for turn in turns.chars() {
            unnoted.answered(&lane(&turn.to_ascii_lowercase().to_string()), turn.is_ascii_uppercase());
        }
        unnoted
    }

    #[track_caller]
    fn check(turns: &str, tasks: &str, expected: Tasks, of: Option<&str>) {
        let unnoted = after(turns);
        let holds_task = |lane: &Lane| matches!(lane, Lane::Register(name) if tasks.contains(name.as_str()));
        let expected = (expected, of.map(lane));
        let (found, asked) = unnoted.asked(holds_task);
        assert_eq!((found, asked.cloned()), expected, "{turns}, tasks in {tasks}");
    }

    #[test]
    fn an_open_task_is_not_remembered_where_she_has_answered_since_her_last_note() {
        check("", "a", Tasks::Safe, None);
        check("A", "a", Tasks::Safe, None);
        check("Aa", "a", Tasks::Unremembered, Some("a"));
        check("AaA", "a", Tasks::Safe, None);
        check("Ab", "a", Tasks::Safe, Some("b"));
    }

    #[test]
    fn she_is_asked_where_a_task_is_open_and_of_what_she_heard_last() {
        check("abc", "ab", Tasks::Unremembered, Some("b"));
        check("abca", "ab", Tasks::Unremembered, Some("a"));
        check("abc", "", Tasks::Safe, Some("c"));
    }

    proptest! {
        #[test]
        fn who_holds_no_open_task_is_never_asked_by_itself(turns in "[abcABC]{0,40}") {
            prop_assert_eq!(after(&turns).asked(|_| false).0, Tasks::Safe);
        }
    }
}
