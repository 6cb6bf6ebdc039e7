//! A stand-in that needs no account and no process, for the demo and for tests; it says plainly what it is.
//!
//! It keeps the contract of a real mind: a line enters the session's record before it is thought about, a line that
//! is fed again is answered from the record and never thought twice, and a record that lacks what was committed is a
//! session that is gone. It never reads a clock but tokio's, so it runs on virtual time. A test bends one thought at
//! a time with [`mind_with`]; a new way to fail is one variant of [`Outcome`].

mod mail;
mod record;
mod stand_in;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use uuid::Uuid;

use super::{Feed, MindCommand, MindEvent, MindHandle, Purpose};
use crate::conversation::{LineId, PersonaId};
use crate::persona::session::Reason;
use crate::persona::session::identity::{Fingerprint, VERSION};
use crate::persona::{Ending, Usage};
use record::Record;

/// How long the stand-in thinks: long enough that people see her type.
pub const THINKING: Duration = Duration::from_millis(300);

/// What a script is asked when the mind is weighed: what its thought used tells the memory.
pub const WEIGHED: &str = "(weighed)";

/// Where its sessions live, one file a session, so that they survive a restart.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder.
    pub state: PathBuf,
}

/// What a session begun now would be begun with: the kind of mind, its version, and its prompt as a digest.
pub fn fingerprint(version: &str, prompt: &str) -> Fingerprint {
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, prompt.as_bytes()).to_string();
    let parts = [("mind", "scripted".to_owned()), ("prompt", digest), (VERSION, version.to_owned())];
    Fingerprint(parts.map(|(name, value)| (name.to_owned(), value)).into())
}

/// How one thought goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scripted {
    /// How long it takes, on tokio's clock.
    pub thinking: Duration,
    /// What comes of it.
    pub outcome: Outcome,
    /// What it used, unless it is stopped.
    pub usage: Usage,
}

/// What comes of a thought.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The stand-in's own reply.
    Usual,
    /// This ending; an answer is recorded.
    Ends(Ending),
    /// Nothing: it thinks until it is stopped.
    Stalls,
    /// It dies before it has an answer.
    Dies,
    /// It dies with its answer recorded but not told.
    DiesAnswered,
    /// It turns out to be of this version, which did not begin the session.
    OfVersion(String),
}

impl Scripted {
    /// The stand-in's own reply after [`THINKING`].
    pub fn usual() -> Self {
        Self { thinking: THINKING, outcome: Outcome::Usual, usage: Usage::default() }
    }
}

/// Makes a Persona's mind: the handle, and the future to be spawned by the bridge.
pub fn mind(config: Config, persona: PersonaId) -> (MindHandle, impl Future<Output = ()> + Send + 'static) {
    mind_with(config, persona, |_, _| Scripted::usual())
}

/// Like [`mind`], with a script that says how each thought goes, from the words fed and their count in this mind's
/// life (from 1; lines that are answered from the record do not count).
pub fn mind_with(
    config: Config,
    persona: PersonaId,
    script: impl FnMut(&str, u32) -> Scripted + Send + 'static,
) -> (MindHandle, impl Future<Output = ()> + Send + 'static) {
    let (commands, told) = mpsc::channel(4);
    let (tell, events) = mpsc::channel(64);
    let folder = config.state.join(persona.as_str());
    let mind = Mind { folder, script, thoughts: 0, commands: told, events: tell };
    (MindHandle { commands, events }, async move {
        // It ends when its handle is gone; there is nobody left to tell.
        let _ = mind.run().await;
    })
}

/// The handle is gone.
struct Abandoned;

struct Mind<S> {
    folder: PathBuf,
    script: S,
    thoughts: u32,
    commands: Receiver<MindCommand>,
    events: Sender<MindEvent>,
}

/// The report of a mind that was told to stop.
const STOPPED: &str = "stopped";

/// What is to be done with a line that was taken in.
enum Taken {
    /// It was answered before.
    Answered(String),
    /// It is to be thought about.
    Open { record: Record, words: String },
}

impl<S: FnMut(&str, u32) -> Scripted> Mind<S> {
    async fn run(mut self) -> Result<(), Abandoned> {
        loop {
            match self.commands.recv().await.ok_or(Abandoned)? {
                MindCommand::Feed(feed) => self.turn(*feed).await?,
                MindCommand::Ping(feed) => {
                    let Scripted { thinking, usage, .. } = (self.script)(&feed.whole, self.thoughts);
                    tokio::time::sleep(thinking).await;
                    self.tell(MindEvent::Pinged { usage }).await?;
                }
                MindCommand::Probe(feed) => {
                    let Scripted { thinking, usage, outcome } = (self.script)(&feed.whole, self.thoughts);
                    tokio::time::sleep(thinking).await;
                    let ending = match outcome {
                        Outcome::Ends(ending) => ending,
                        Outcome::Usual => answered("{}".to_owned()),
                        Outcome::Stalls | Outcome::Dies | Outcome::DiesAnswered | Outcome::OfVersion(_) => {
                            Ending::Lost { reason: "died".to_owned() }
                        }
                    };
                    self.tell(MindEvent::Probed { ending, usage }).await?;
                }
                MindCommand::Weigh => {
                    let Scripted { usage, .. } = (self.script)(WEIGHED, self.thoughts);
                    self.tell(MindEvent::Weighed { resident: usage.resident }).await?;
                }
                MindCommand::Quarantine { session, now: _ } => {
                    if let Err(error) = record::quarantine(&self.folder.join(format!("{session}.jsonl"))) {
                        tracing::warn!(%error, "a spoilt record could not be put aside");
                    }
                    self.exited("spoilt").await?;
                }
                MindCommand::Stop(_) => self.exited(STOPPED).await?,
            }
        }
    }

    async fn turn(&mut self, feed: Feed) -> Result<(), Abandoned> {
        let line = feed.line;
        match self.take_in(&feed) {
            Err(ending) => self.ended(line, ending, false).await,
            Ok(Taken::Answered(reply)) => {
                self.tell(MindEvent::Heard { line }).await?;
                self.ended(line, answered(reply), true).await
            }
            Ok(Taken::Open { record, words }) => {
                self.tell(MindEvent::Heard { line }).await?;
                self.think(&feed, record, &words).await
            }
        }
    }

    /// Puts the line into the session's record, unless it is there.
    fn take_in(&self, feed: &Feed) -> Result<Taken, Ending> {
        let path = self.folder.join(format!("{}.jsonl", feed.session.id));
        let gone = |reason: &str| Ending::SessionGone { reason: reason.to_owned() };
        let opened = Record::open(&path);
        if let Purpose::Settle(why) = feed.purpose {
            let reply = opened.ok().flatten().and_then(|record| record.reply(feed.line).map(str::to_owned));
            return reply.map(Taken::Answered).ok_or(Ending::Unsettled { why });
        }
        let mut record = match opened {
            Ok(Some(record)) => record,
            Ok(None) if feed.must_exist => return Err(gone("the session's record is missing")),
            Ok(None) => {
                record::put_aside_others(&path).map_err(unwritable)?;
                Record::create(&path).map_err(unwritable)?
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(gone("the session's record is broken"));
            }
            Err(error) => return Err(unwritable(error)),
        };
        if feed.session.last_committed.is_some_and(|line| record.reply(line).is_none()) {
            return Err(gone("the session's record lacks the last reply"));
        }
        if let Some(reply) = record.reply(feed.line) {
            return Ok(Taken::Answered(reply.to_owned()));
        }
        let words = match record.words(feed.line) {
            Some(words) => words.to_owned(),
            None => {
                let known = feed.earlier.iter().any(|line| record.words(*line).is_some());
                let words = if known { &feed.again } else { &feed.whole };
                record.heard(feed.line, words).map_err(unwritable)?;
                words.clone()
            }
        };
        Ok(Taken::Open { record, words })
    }

    async fn think(&mut self, feed: &Feed, record: Record, words: &str) -> Result<(), Abandoned> {
        self.thoughts = self.thoughts.saturating_add(1);
        let scripted = (self.script)(words, self.thoughts);
        let thought = async {
            tokio::time::sleep(scripted.thinking).await;
            if scripted.outcome == Outcome::Stalls {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            stopped = stop(&mut self.commands) => {
                stopped?;
                self.died(feed.line, STOPPED, Usage::default()).await
            }
            () = thought => self.conclude(feed, record, scripted.outcome, scripted.usage).await,
        }
    }

    async fn conclude(
        &mut self,
        feed: &Feed,
        mut record: Record,
        outcome: Outcome,
        usage: Usage,
    ) -> Result<(), Abandoned> {
        let line = feed.line;
        let usual = |record: &Record| stand_in::reply(record, &feed.earlier, line);
        let ending = match outcome {
            Outcome::Usual => write_down(&mut record, line, |record| answered(usual(record))),
            Outcome::Ends(ending) => write_down(&mut record, line, |_| ending),
            Outcome::DiesAnswered => {
                write_down(&mut record, line, |record| answered(usual(record)));
                return self.died(line, "died", usage).await;
            }
            Outcome::OfVersion(version) => {
                let session = feed.session.id;
                self.tell(MindEvent::Version { session, version, begun: false }).await?;
                Ending::Unsettled { why: Reason::CliVersion }
            }
            Outcome::Dies | Outcome::Stalls => return self.died(line, "died", usage).await,
        };
        self.told(line, ending, usage, false).await
    }

    async fn died(&mut self, line: LineId, report: &str, usage: Usage) -> Result<(), Abandoned> {
        let reason = report.to_owned();
        let ending = if report == STOPPED { Ending::Lost { reason } } else { Ending::Died { reason } };
        self.tell(MindEvent::TurnEnded { line, ending, usage, from_record: false, closed: true }).await?;
        self.exited(report).await
    }

    async fn ended(&mut self, line: LineId, ending: Ending, from_record: bool) -> Result<(), Abandoned> {
        self.told(line, ending, Usage::default(), from_record).await
    }

    async fn told(
        &mut self,
        line: LineId,
        ending: Ending,
        usage: Usage,
        from_record: bool,
    ) -> Result<(), Abandoned> {
        self.tell(MindEvent::TurnEnded { line, ending, usage, from_record, closed: false }).await
    }

    async fn exited(&mut self, report: &str) -> Result<(), Abandoned> {
        self.tell(MindEvent::Exited { report: report.to_owned() }).await
    }

    async fn tell(&mut self, event: MindEvent) -> Result<(), Abandoned> {
        self.events.send(event).await.map_err(|_| Abandoned)
    }
}

/// Waits for a stop; a line fed beside another is against the contract and is dropped.
async fn stop(commands: &mut Receiver<MindCommand>) -> Result<(), Abandoned> {
    loop {
        match commands.recv().await.ok_or(Abandoned)? {
            MindCommand::Stop(_) | MindCommand::Quarantine { .. } => return Ok(()),
            MindCommand::Weigh => {}
            MindCommand::Feed(feed) | MindCommand::Ping(feed) | MindCommand::Probe(feed) => {
                tracing::error!(line = %feed.line, "a line was fed beside another")
            }
        }
    }
}

fn answered(reply: String) -> Ending {
    Ending::Answered { reply }
}

/// Records an answer before it is told.
fn write_down(record: &mut Record, line: LineId, ending: impl FnOnce(&Record) -> Ending) -> Ending {
    let ending = ending(record);
    let Ending::Answered { reply, .. } = &ending else { return ending };
    match record.answered(line, reply) {
        Ok(()) => ending,
        Err(error) => unwritable(error),
    }
}

fn unwritable(error: std::io::Error) -> Ending {
    tracing::warn!(%error, "the session's record cannot be read or written");
    Ending::Transient {
        reason: "the session's record cannot be read or written".to_owned(),
        retry_after: None,
    }
}

#[cfg(test)]
mod tests;
