//! Points at which a build for tests kills itself, as a crash there would; a production build never does.

use rustix::process::{Signal, getpid, kill_process};

/// Where the process is to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A transaction (or a page that was read back) with mail is read, and nothing of it is written.
    EarBeforeFlush,
    /// Its rows are written and not flushed.
    EarInsideFlush,
    /// It is durable, and the homeserver has no answer yet.
    EarAfterFlush,
    /// The homeserver has its answer, and nothing is written: what an ear must never do.
    EarAnswersFirst,
    /// A reply has just come from a mind (not from its record), and nothing of it is written.
    BeforeCommit,
    /// A reply with words in it is committed, and nothing of it is sent.
    AfterCommit,
    /// The homeserver has taken a Persona's words, and that is not written.
    AfterPut,
}

impl Halt {
    const NAMES: [(&str, Self); 7] = [
        ("ear-before-flush", Self::EarBeforeFlush),
        ("ear-inside-flush", Self::EarInsideFlush),
        ("ear-after-flush", Self::EarAfterFlush),
        ("ear-answers-first", Self::EarAnswersFirst),
        ("before-commit", Self::BeforeCommit),
        ("after-commit", Self::AfterCommit),
        ("after-put", Self::AfterPut),
    ];

    /// The point of a name; none in a production build.
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(known, _)| cfg!(debug_assertions) && *known == name);
        known.map(|(_, halt)| *halt)
    }

    /// Ends the process by SIGKILL if `wanted` is this point.
    pub(crate) fn reached(self, wanted: Option<Self>) {
        if cfg!(debug_assertions) && wanted == Some(self) {
            let _never_returns = kill_process(getpid(), Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_has_one_name() {
        for (name, halt) in Halt::NAMES {
            assert_eq!(Halt::named(name), cfg!(debug_assertions).then_some(halt));
        }
        assert_eq!(Halt::named("nowhere"), None);
        Halt::AfterPut.reached(Some(Halt::AfterCommit));
        Halt::AfterPut.reached(None);
    }
}
