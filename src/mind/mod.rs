//! The session that thinks. A backend is a [`MindHandle`] (two channels) plus a future; a second backend is one file.
//!
//! It never touches the store or the homeserver, and no other module starts a process.

pub mod claude;
pub mod scripted;

use tokio::sync::mpsc;
use uuid::Uuid;

use crate::conversation::{LineId, Millis};
use crate::persona::decide::Stop;
use crate::persona::session::{Reason, Session};
use crate::persona::{Ending, Usage};

/// The two channels of a running mind.
#[derive(Debug)]
pub struct MindHandle {
    /// Commands to it.
    pub commands: mpsc::Sender<MindCommand>,
    /// Events from it; ends when the mind's future has ended.
    pub events: mpsc::Receiver<MindEvent>,
}

/// What a mind is told.
#[derive(Clone, Debug, PartialEq)]
pub enum MindCommand {
    /// Feed one line; a process is started or resumed if none lives. One line is in flight at a time.
    Feed(Box<Feed>),
    /// Read the session's prefix once, in a fork of it that is thrown away, so that the cache keeps it; the session and its
    /// process, if one lives, stay as they are. Answered by [`MindEvent::Pinged`].
    Ping(Box<Feed>),
    /// Ask once in a session of its own, which is thrown away with its folder: without doctrine, tools and reply schema, and
    /// with one request at most. Only for a mind that has no session else. Answered by [`MindEvent::Probed`].
    Probe(Box<Feed>),
    /// Weigh the process, if one lives, while nothing is asked of it; answered by [`MindEvent::Weighed`].
    Weigh,
    /// End the process, if one lives, and put the session's file aside as one that is not to be trusted; answered by
    /// [`MindEvent::Exited`] in any case.
    Quarantine {
        /// The session.
        session: Uuid,
        /// The time, which the file bears from then on.
        now: Millis,
    },
    /// Stop the process, if one lives; answered by [`MindEvent::Exited`] in any case.
    Stop(Stop),
}

/// One line to be fed.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    /// Its uuid: the idempotency key.
    pub line: LineId,
    /// The session it goes to.
    pub session: Session,
    /// Whether the session must already exist (a reply was committed from it).
    pub must_exist: bool,
    /// The system prompt; written to the session's prompt file where the session is new.
    pub prompt: String,
    /// The whole batch as text.
    pub whole: String,
    /// The short line (`(retry)` or a fault) that is fed instead if the session's file holds one of `earlier`.
    pub again: String,
    /// Lines of earlier attempts at the same turn.
    pub earlier: Vec<LineId>,
    /// Whether the session may still be asked.
    pub purpose: Purpose,
    /// The time, which files that are put aside bear.
    pub now: Millis,
}

impl Feed {
    /// A line that stands for itself: no attempt came before it, and its session need not exist yet.
    pub fn single(session: Session, line: LineId, prompt: &str, words: &str, now: Millis) -> Self {
        Self {
            line,
            session,
            must_exist: false,
            prompt: prompt.to_owned(),
            whole: words.to_owned(),
            again: String::new(),
            earlier: Vec::new(),
            purpose: Purpose::Answer,
            now,
        }
    }
}

/// What a line is fed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be answered.
    Answer,
    /// To be settled: a reply that stands in the session's file is taken; else it ends as [`Ending::Unsettled`] with this
    /// reason, and nobody is asked.
    Settle(Reason),
}

/// What a mind tells.
#[derive(Clone, Debug, PartialEq)]
pub enum MindEvent {
    /// The line has entered her session.
    Heard {
        /// The line.
        line: LineId,
    },
    /// The attempt ended. `from_record` tells that the reply was read from the session's file, not thought anew.
    TurnEnded {
        /// The line.
        line: LineId,
        /// How.
        ending: Ending,
        /// What it used, as far as that was measured.
        usage: Usage,
        /// Whether it was taken from the session's file.
        from_record: bool,
        /// Whether no process lives any more: [`MindEvent::Exited`] follows, and nothing is to be fed before it.
        closed: bool,
    },
    /// A ping is over.
    Pinged {
        /// What it used; no request where it did not reach the API.
        usage: Usage,
    },
    /// A probe is over.
    Probed {
        /// How.
        ending: Ending,
        /// What it used.
        usage: Usage,
    },
    /// The process was weighed while nothing was asked of it.
    Weighed {
        /// Its resident memory, in bytes; none where no process lives.
        resident: Option<u64>,
    },
    /// No process lives any more.
    Exited {
        /// A fixed phrase with exit code or signal.
        report: String,
    },
    /// Her session must not be used any more, by what the CLI itself did to it; what is fed to it next ends as
    /// [`Ending::Poisoned`], unless its reply stands in the session's file.
    Poisoned {
        /// Which.
        session: Uuid,
        /// Why: a fixed phrase.
        reason: &'static str,
    },
    /// The mind's program says that it is of another version than the one that begun a session. Where that was there before, the
    /// line ends as [`Ending::Unsettled`] and nobody is asked.
    Version {
        /// The session.
        session: Uuid,
        /// The version.
        version: String,
        /// Whether it was just begun, by this one.
        begun: bool,
    },
    /// Something operators should know (a newer CLI, a new generation, an orphan ended).
    Notice {
        /// A plain sentence without user text or secrets.
        text: String,
    },
}
