//! One line in flight: written, heard, thought about, ended.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{Receiver, Sender};

use super::classify::{Seen, classify, spoilt};
use super::live::poison;
use super::measure::Measured;
use super::process::Process;
use super::wire::{self, Outcome, Output};
use crate::conversation::LineId;
use crate::mind::{MindCommand, MindEvent};
use crate::persona::decide::Stop;
use crate::persona::{Ending, Usage};

/// How long a turn may take to begin once the CLI says that it is done with the line, which it had heard before.
const BEGINS: Duration = Duration::from_secs(5);

/// How following a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TurnEnd {
    /// By the line's result.
    Classified(Ending),
    /// The session must not be used any more.
    Poisoned(&'static str),
    /// The CLI is of another version than the one that begun the session.
    AnotherVersion,
    /// The CLI does not know the session.
    Unknown,
    /// We were told to stop, or nobody listens any more.
    Stopped(Stop),
    /// There was no line of output for too long.
    Silent,
    /// The output cannot be read.
    Unreadable,
    /// The process closed its output.
    Ended {
        /// Whether it had heard the line.
        heard: bool,
    },
}

/// Writes the line and follows the output until the turn ends, and tells what it used; the process is left as it is.
pub(super) async fn turn(
    process: &mut Process,
    line: LineId,
    bytes: &[u8],
    silence: Duration,
    commands: &mut Receiver<MindCommand>,
    events: &Sender<MindEvent>,
) -> (TurnEnd, Usage) {
    let session = process.session;
    let (seen, measured) = (Seen::default(), Measured::default());
    let progress = Progress::default();
    let mut turn = Turn { line, session, progress, resident: None, seen, measured, strange: 0 };
    let (end, by_result) = follow(process, &mut turn, bytes, silence, commands, events).await;
    let usage = by_result.unwrap_or_else(|| turn.measured.usage());
    (end, Usage { resident: turn.resident, ..usage })
}

async fn follow(
    process: &mut Process,
    turn: &mut Turn,
    bytes: &[u8],
    silence: Duration,
    commands: &mut Receiver<MindCommand>,
    events: &Sender<MindEvent>,
) -> (TurnEnd, Option<Usage>) {
    let mut unwritten = bytes;
    let line = turn.line;
    loop {
        let read = tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(MindCommand::Stop(_) | MindCommand::Quarantine { .. }) | None => return (TurnEnd::Stopped(Stop::Busy), None),
                // It is weighed with the turn.
                Some(MindCommand::Weigh) => continue,
                Some(MindCommand::Feed(feed) | MindCommand::Ping(feed) | MindCommand::Probe(feed)) => {
                    turned_away(feed.line, events).await;
                    continue;
                }
            },
            written = write(process.input.as_mut(), unwritten), if !unwritten.is_empty() => {
                // Why it cannot be written to, its output tells.
                unwritten = written.map_or(&[], |count| &unwritten[count..]);
                continue;
            }
            read = process.output.next() => read,
            () = tokio::time::sleep(turn.progress.patience(silence)) => return (turn.progress.silent(), None),
        };
        let output = match read {
            Ok(Some(bytes)) => wire::read(&bytes),
            Ok(None) => return (TurnEnd::Ended { heard: turn.progress.heard }, None),
            Err(_) => return (TurnEnd::Unreadable, None),
        };
        turn.measured.note(&output);
        if let Some(version) = process.another_version(&output) {
            let (session, begun) = (process.session, !process.resumed);
            let _ = events.send(MindEvent::Version { session, version, begun }).await;
            if !begun {
                return (TurnEnd::AnotherVersion, None);
            }
        }
        let usage = if let Output::Result(outcome) = &output {
            Some(turn.measured.clone().ended(outcome, process.spend(outcome)))
        } else {
            None
        };
        let heard = turn.hears(&output);
        if heard || matches!(output, Output::Began(_)) {
            // While the model speaks, since nobody waits then; with the result, all would.
            turn.resident = process.resident();
        }
        if heard {
            // A closed channel shows with the next command.
            let _ = events.send(MindEvent::Heard { line }).await;
        }
        if let Some(end) = turn.take(&output) {
            return (looked_at(end, &output, process.resumed, usage.as_ref()), usage);
        }
    }
}

/// What a result says of a session that was taken up again.
fn looked_at(end: TurnEnd, output: &Output, resumed: bool, usage: Option<&Usage>) -> TurnEnd {
    let (TurnEnd::Classified(ending), Output::Result(outcome), Some(usage), true) =
        (&end, output, usage, resumed)
    else {
        return end;
    };
    spoilt(outcome, ending, usage).map_or(end, TurnEnd::Poisoned)
}

async fn write(input: Option<&mut ChildStdin>, bytes: &[u8]) -> std::io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Err(std::io::ErrorKind::BrokenPipe.into()),
    }
}

async fn turned_away(line: LineId, events: &Sender<MindEvent>) {
    let ending = Ending::Lost { reason: "another line was in flight".to_owned() };
    let ended =
        MindEvent::TurnEnded { line, ending, usage: Usage::default(), from_record: false, closed: false };
    let _ = events.send(ended).await;
}

/// What the CLI has said of the line so far.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// That it has entered the session.
    heard: bool,
    /// That a turn begins.
    begun: bool,
    /// That it is done with it.
    done: bool,
}

impl Progress {
    /// Whether the CLI knew the line already and does not run it again.
    fn is_stranded(self) -> bool {
        self.done && !self.begun
    }

    fn patience(self, silence: Duration) -> Duration {
        if self.is_stranded() { silence.min(BEGINS) } else { silence }
    }

    fn silent(self) -> TurnEnd {
        if self.is_stranded() { TurnEnd::Classified(Ending::Stranded) } else { TurnEnd::Silent }
    }
}

struct Turn {
    line: LineId,
    session: uuid::Uuid,
    progress: Progress,
    resident: Option<u64>,
    seen: Seen,
    measured: Measured,
    strange: u64,
}

impl Turn {
    /// Tells whether this shows for the first time that the line has entered the session.
    fn hears(&mut self, output: &Output) -> bool {
        let shown = match output {
            Output::Echo { line } => *line == self.line.0,
            Output::Init { lines, .. } => lines.contains(&self.line.0),
            Output::Assistant(_)
            | Output::Began(_)
            | Output::Done { .. }
            | Output::Counted(_)
            | Output::Retry(_)
            | Output::LimitReached { .. }
            | Output::Compacted
            | Output::Result(_)
            | Output::Other => false,
        };
        shown && !std::mem::replace(&mut self.progress.heard, true)
    }

    fn take(&mut self, output: &Output) -> Option<TurnEnd> {
        if let Some(reason) = poison(output, self.session) {
            return Some(TurnEnd::Poisoned(reason));
        }
        self.seen.note(output);
        match output {
            Output::Result(outcome) => self.result(outcome),
            Output::Other => {
                self.strange += 1;
                None
            }
            Output::Init { .. } => {
                self.progress.begun = true;
                None
            }
            Output::Done { line } => {
                self.progress.done |= *line == self.line.0;
                None
            }
            Output::Echo { .. }
            | Output::Assistant(_)
            | Output::Began(_)
            | Output::Counted(_)
            | Output::Retry(_)
            | Output::LimitReached { .. }
            | Output::Compacted => None,
        }
    }

    /// Takes a result for ours only if it names our line; an error of a turn that began with our line may do without.
    fn result(&self, outcome: &Outcome) -> Option<TurnEnd> {
        if outcome.errors.iter().any(|error| error.starts_with("No conversation found")) {
            return Some(TurnEnd::Unknown);
        }
        let unnamed_error = outcome.lines.is_empty() && outcome.is_error && self.progress.heard;
        if outcome.lines.contains(&self.line.0) || unnamed_error {
            tracing::debug!(line = %self.line, other_lines = self.strange, "a turn has ended");
            return Some(TurnEnd::Classified(classify(outcome, &self.seen)));
        }
        tracing::debug!(line = %self.line, "a result of another line was dropped");
        None
    }
}
