//! The one task of a Persona's mind: it owns at most one process and takes one command after the other.

mod beside;

use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender};
use uuid::Uuid;

use super::launch::{Folders, Opening, Texts, outside_git};
use super::manner::{self, Manner};
use super::owner::Owner;
use super::process::{Ladder, Process, Start};
use super::recover::{Recovery, recover, words};
use super::transcript::{self, SessionFile, Standing, Transcript};
use super::turn::{TurnEnd, turn};
use super::{Config, Resuming, archive, wire};
use crate::conversation::{LineId, Millis, PersonaId};
use crate::mind::{Feed, MindCommand, MindEvent, Purpose};
use crate::persona::decide::Stop;
use crate::persona::session::{Reason, Session};
use crate::persona::{Ending, Usage};

/// A Persona's mind.
pub(super) struct Mind {
    config: Config,
    folders: Folders,
    schema: &'static str,
    commands: Receiver<MindCommand>,
    events: Sender<MindEvent>,
    owner: Option<Owner>,
    process: Option<Process>,
    poisoned: Option<(Uuid, &'static str)>,
}

/// How a feed goes on.
enum TakenUp {
    /// The reply was in the session's file.
    Answered(Ending, Usage),
    /// These words are to be written to the living process.
    Write(String),
}

impl Mind {
    pub(super) fn new(
        config: Config,
        persona: PersonaId,
        schema: &'static str,
        commands: Receiver<MindCommand>,
        events: Sender<MindEvent>,
    ) -> Self {
        let folders = Folders::of(&config, &persona);
        Self { config, folders, schema, commands, events, owner: None, process: None, poisoned: None }
    }

    /// Takes commands until there can be no more, then ends the process.
    pub(super) async fn run(mut self) {
        while let Some(command) = self.next_command().await {
            match command {
                MindCommand::Feed(feed) => self.feed(*feed).await,
                MindCommand::Ping(feed) => self.ping(&feed).await,
                MindCommand::Probe(feed) => self.probe(&feed).await,
                MindCommand::Weigh => self.weigh().await,
                MindCommand::Quarantine { session, now } => self.quarantine(session, now).await,
                MindCommand::Stop(how) => {
                    self.end(Ladder::Asked(how)).await;
                }
            }
        }
        self.end(Ladder::Asked(Stop::Idle)).await;
    }

    /// Waits for a command while it looks after the idle process.
    async fn next_command(&mut self) -> Option<MindCommand> {
        while let Some(process) = &mut self.process {
            let line = tokio::select! {
                biased;
                command = self.commands.recv() => return command,
                line = process.output.next() => line,
            };
            match line {
                Ok(Some(line)) => {
                    let session = process.session;
                    if let Some(reason) = poison(&wire::read(&line), session) {
                        self.end(Ladder::Unusable).await;
                        self.poison(session, reason).await;
                    }
                }
                Ok(None) | Err(_) => self.end(Ladder::Unusable).await,
            }
        }
        self.commands.recv().await
    }

    async fn feed(&mut self, feed: Feed) {
        let (mut ending, mut usage, mut from_record) = self.attempt(&feed).await;
        if self.process.is_none() && matches!(&ending, Ending::Lost { reason } if reason == IN_USE) {
            // The file was not there a moment ago and is there now.
            (ending, usage, from_record) = self.attempt(&feed).await;
            if matches!(&ending, Ending::Lost { reason } if reason == IN_USE) {
                ending = gone(IN_USE);
            }
        }
        let ending = self.make_durable(&feed.session, ending).await;
        if let Ending::SessionGone { .. } | Ending::Poisoned { .. } = &ending {
            self.end_quietly(Ladder::Unusable).await;
        }
        let closed = self.process.is_none();
        self.tell(MindEvent::TurnEnded { line: feed.line, ending, usage, from_record, closed }).await;
        if closed {
            self.tell(MindEvent::Exited { report: "no process is left after the turn".to_owned() }).await;
        }
    }

    /// Feeds the line once; tells how it ended, what it used, and whether that was read from the session's file.
    async fn attempt(&mut self, feed: &Feed) -> (Ending, Usage, bool) {
        match self.take_up(feed).await {
            Ok(TakenUp::Answered(ending, usage)) => (ending, usage, true),
            Ok(TakenUp::Write(words)) => {
                let (ending, usage) = self.think(feed.line, &words).await;
                match self.salvaged(feed, &ending).await {
                    Some(answered) => (answered, usage, true),
                    None => (ending, usage, false),
                }
            }
            Err(ending) => (ending, Usage::default(), false),
        }
    }

    /// The reply that stands in the file of a session which was spoilt in the middle of the turn, if one does.
    async fn salvaged(&mut self, feed: &Feed, ending: &Ending) -> Option<Ending> {
        let Ending::Poisoned { .. } = ending else { return None };
        self.end_quietly(Ladder::Unusable).await;
        let transcript = self.transcript(&feed.session).await.ok()??;
        match transcript.standing(feed.line, &self.begun_with(&feed.session).1) {
            Standing::Answered { reply, .. } => Some(Ending::Answered { reply: reply.to_string() }),
            Standing::Unknown | Standing::Unanswered { .. } => None,
        }
    }

    /// The reply schema that a session was begun with, as text and as a value.
    fn begun_with(&self, session: &Session) -> (String, Value) {
        let recorded = self.folders.schema(session).filter(|_| self.config.resuming == Resuming::AsBegun);
        let text = recorded.unwrap_or_else(|| self.schema.to_owned());
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        (text, value)
    }

    async fn weigh(&self) {
        let resident = self.process.as_ref().and_then(Process::resident);
        self.tell(MindEvent::Weighed { resident }).await;
    }

    /// Ends the process and renames the session's file.
    async fn quarantine(&mut self, session: Uuid, now: Millis) {
        self.end_quietly(Ladder::Unusable).await;
        if let Some(path) = transcript::find(&self.folders.config, session)
            && let Err(error) = archive::quarantine(&path, now)
        {
            tracing::warn!(%error, "the file of a spoilt session could not be put aside");
        }
        self.tell(MindEvent::Exited { report: "its session is spoilt".to_owned() }).await;
    }

    async fn take_up(&mut self, feed: &Feed) -> Result<TakenUp, Ending> {
        let usable = |process: &Process| {
            let is_asked = feed.purpose == Purpose::Answer;
            is_asked && process.session == feed.session.id && !process.fed.contains(&feed.line)
        };
        if self.process.as_ref().is_some_and(usable) {
            let transcript = match feed.earlier.as_slice() {
                [] => None,
                _ => self.transcript(&feed.session).await?,
            };
            return Ok(TakenUp::Write(words(feed, transcript.as_ref()).to_owned()));
        }
        self.end_quietly(Ladder::Asked(Stop::Idle)).await;
        self.prepare().await?;
        let transcript = self.transcript(&feed.session).await?;
        let (begun_with, wanted) = self.begun_with(&feed.session);
        let spoilt = self.spoilt(&feed.session, transcript.as_ref());
        if let Some(reason) = spoilt {
            self.poison(feed.session.id, reason).await;
        }
        match (recover(feed, transcript.as_ref(), &wanted), spoilt) {
            (Recovery::Gone { reason }, _) => Err(gone(&reason)),
            (Recovery::Unsettled { why }, _) => Err(Ending::Unsettled { why }),
            (Recovery::Start { .. }, Some(reason)) => Err(poisoned(reason)),
            (Recovery::Answered { reply, usage }, _) => {
                let usage = Usage { requests: vec![usage], ..Usage::default() };
                Ok(TakenUp::Answered(Ending::Answered { reply }, usage))
            }
            (Recovery::Start { opening, put_aside }, None) => {
                if put_aside {
                    self.put_aside(feed)?;
                }
                let schema = if opening == Opening::Begin { self.schema } else { &begun_with };
                self.open(feed, opening, schema).await?;
                Ok(TakenUp::Write(words(feed, transcript.as_ref()).to_owned()))
            }
        }
    }

    /// Why a session must not be asked any more, if so.
    fn spoilt(&self, session: &Session, transcript: Option<&Transcript>) -> Option<&'static str> {
        let known = self.poisoned.filter(|(spoilt, _)| *spoilt == session.id).map(|(_, reason)| reason);
        let compacted = transcript.is_some_and(|transcript| transcript.compacted);
        known.or_else(|| compacted.then_some("the session was compacted"))
    }

    /// Starts the process of a session, with all other sessions' files out of the way.
    async fn open(&mut self, feed: &Feed, opening: Opening, schema: &str) -> Result<(), Ending> {
        let session = &feed.session;
        if let Err(error) = archive::put_aside_others(&self.folders, session, feed.now) {
            tracing::warn!(%error, "an earlier session's file could not be put aside");
        }
        let texts = Texts { prompt: &feed.prompt, schema };
        self.folders.write_texts(session, texts, opening).map_err(lost("the prompt's file"))?;
        let manner = Manner::of(&session.fingerprint, &self.config);
        self.start(Start { session, manner: &manner, opening, schema }).await
    }

    /// Makes the folders and becomes the owner of the Persona's sessions.
    async fn prepare(&mut self) -> Result<(), Ending> {
        self.folders.make().map_err(lost("the Persona's folder"))?;
        outside_git(&self.folders.cwd).map_err(|reason| Ending::Refused { reason })?;
        if self.owner.is_some() {
            return Ok(());
        }
        let owned = Owner::acquire(&self.folders.root).await;
        let (owner, ended) = owned.map_err(|error| Ending::Lost { reason: error.to_string() })?;
        self.owner = Some(owner);
        if ended {
            let text = "ended a claude process that an earlier run had left behind".to_owned();
            self.tell(MindEvent::Notice { text }).await;
        }
        Ok(())
    }

    async fn start(&mut self, start: Start<'_>) -> Result<(), Ending> {
        let owner = self.owner.as_ref().ok_or_else(|| Ending::Lost { reason: "no owner".to_owned() })?;
        let process = Process::start(&self.config, &self.folders, owner, start).await;
        self.process = Some(process.map_err(lost("the guard's start"))?);
        Ok(())
    }

    /// Writes the line and follows the turn to its end.
    async fn think(&mut self, line: LineId, words: &str) -> (Ending, Usage) {
        let Some(process) = &mut self.process else {
            return (Ending::Lost { reason: "no process".to_owned() }, Usage::default());
        };
        process.fed.push(line);
        let bytes = wire::user_line(line, words);
        let (end, usage) =
            turn(process, line, &bytes, self.config.silence, &mut self.commands, &self.events).await;
        (self.after(end).await, usage)
    }

    /// What the end of a turn means; a process that is of no further use is ended.
    async fn after(&mut self, end: TurnEnd) -> Ending {
        let (ladder, reason) = match end {
            TurnEnd::Classified(ending) => return ending,
            TurnEnd::Poisoned(reason) => {
                if let Some(session) = self.process.as_ref().map(|process| process.session) {
                    self.poison(session, reason).await;
                }
                return poisoned(reason);
            }
            TurnEnd::AnotherVersion => {
                self.end_quietly(Ladder::Unusable).await;
                return Ending::Unsettled { why: Reason::CliVersion };
            }
            TurnEnd::Unknown => return gone("the CLI does not know the session"),
            TurnEnd::Stopped(how) => (Ladder::Asked(how), "it was stopped".to_owned()),
            TurnEnd::Silent => (Ladder::Silent, "it was silent".to_owned()),
            TurnEnd::Unreadable => (Ladder::Unusable, "its output could not be read".to_owned()),
            TurnEnd::Ended { .. } if self.logged().contains("is already in use") => {
                (Ladder::Unusable, IN_USE.to_owned())
            }
            TurnEnd::Ended { heard } => return self.died(heard).await,
        };
        self.end_quietly(ladder).await;
        Ending::Lost { reason }
    }

    /// Forbids the session any further use, and raises the alarm.
    async fn poison(&mut self, session: Uuid, reason: &'static str) {
        self.poisoned = Some((session, reason));
        self.tell(MindEvent::Poisoned { session, reason }).await;
    }

    /// The process closed its output in the middle of a turn.
    async fn died(&mut self, heard: bool) -> Ending {
        let report = self.end_quietly(Ladder::Unusable).await.unwrap_or_default();
        let reason = format!("the process ended in the middle: {report}");
        if heard { Ending::Died { reason } } else { Ending::Lost { reason } }
    }

    /// What the process has written to its stderr.
    fn logged(&self) -> String {
        let from = self.process.as_ref().map_or(0, |process| process.logged);
        self.owner.as_ref().and_then(|owner| owner.logged_since(from).ok()).unwrap_or_default()
    }

    /// Makes the session's file durable before an ending is told.
    async fn make_durable(&mut self, session: &Session, ending: Ending) -> Ending {
        let (config, id) = (self.folders.config.clone(), session.id);
        let known = self.process.as_ref().and_then(|process| process.file.clone());
        let sync = move || transcript::sync(&config, id, known.as_ref());
        let synced = tokio::task::spawn_blocking(sync).await;
        let synced = synced.unwrap_or_else(|error| Some(Err(std::io::Error::other(error))));
        match &synced {
            Some(Ok(file)) if self.is_another(file) => gone("the session's file was replaced"),
            _ => once_synced(ending, synced.map(|file| file.map(drop))),
        }
    }

    /// Tells whether the living process writes to another file than at the end of its last turn, so that what was
    /// said before would be missing after it.
    fn is_another(&mut self, file: &SessionFile) -> bool {
        let Some(process) = &mut self.process else { return false };
        let another = process.file.as_ref().is_some_and(|before| !file.continues(before));
        process.file = Some(file.clone());
        another
    }

    async fn transcript(&self, session: &Session) -> Result<Option<Transcript>, Ending> {
        let (here, id) = (self.folders.config.clone(), session.id);
        let there = manner::config_folder(&session.fingerprint).filter(|there| *there != here);
        let read = move || {
            let path =
                [Some(here), there].into_iter().flatten().find_map(|folder| transcript::find(&folder, id));
            path.map(|path| Transcript::read(&path)).transpose()
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other);
        read.and_then(|read| read).map_err(lost("the session's file"))
    }

    /// Renames a file that the CLI can neither resume nor begin anew.
    fn put_aside(&self, feed: &Feed) -> Result<(), Ending> {
        let Some(path) = transcript::find(&self.folders.config, feed.session.id) else { return Ok(()) };
        archive::put_aside(&path, feed.now).map_err(lost("the session's file"))
    }

    /// Ends the process and says so.
    async fn end(&mut self, ladder: Ladder) {
        let report = self.end_quietly(ladder).await.unwrap_or_else(|| "no process was running".to_owned());
        self.tell(MindEvent::Exited { report }).await;
    }

    async fn end_quietly(&mut self, ladder: Ladder) -> Option<String> {
        let report = self.process.take()?.end(ladder).await;
        if let Some(owner) = &self.owner {
            let _ = owner.bound_log();
        }
        Some(report)
    }

    async fn tell(&self, event: MindEvent) {
        // Who does not listen any more has closed the commands as well, which ends us.
        let _ = self.events.send(event).await;
    }
}

/// The reason of a process that found its session id taken.
const IN_USE: &str = "the session id is already in use";

/// Why a line of output forbids the session any further use.
pub(super) fn poison(output: &wire::Output, session: Uuid) -> Option<&'static str> {
    match output {
        wire::Output::Compacted => Some("the CLI has compacted the session"),
        wire::Output::Init { session: Some(other), .. } if *other != session => {
            Some("the CLI has changed to another session")
        }
        wire::Output::Init { .. }
        | wire::Output::Echo { .. }
        | wire::Output::Done { .. }
        | wire::Output::Assistant(_)
        | wire::Output::Began(_)
        | wire::Output::Counted(_)
        | wire::Output::Retry(_)
        | wire::Output::LimitReached { .. }
        | wire::Output::Result(_)
        | wire::Output::Other => None,
    }
}

/// What an ending counts once the session's file was synced, or could not be, or is not there.
///
/// What the bridge builds on must not be lost by a power cut: a reply before it is committed, an attempt before another
/// one is fed behind it.
fn once_synced(ending: Ending, synced: Option<std::io::Result<()>>) -> Ending {
    let (answered, built_on) = match &ending {
        Ending::Answered { .. } => (true, true),
        Ending::Transient { .. }
        | Ending::Final { .. }
        | Ending::Rejected { .. }
        | Ending::Invalid { .. }
        | Ending::Stranded => (false, true),
        Ending::Lost { .. }
        | Ending::Died { .. }
        | Ending::Refused { .. }
        | Ending::TooLong
        | Ending::Poisoned { .. }
        | Ending::SessionGone { .. }
        | Ending::Unsettled { .. } => (false, false),
    };
    match synced {
        None if answered => gone("the session's file is gone"),
        Some(Err(error)) if built_on => lost("the session's file could not be made durable")(error),
        None | Some(_) => ending,
    }
}

fn poisoned(reason: &str) -> Ending {
    Ending::Poisoned { reason: reason.to_owned() }
}

fn gone(reason: &str) -> Ending {
    Ending::SessionGone { reason: reason.to_owned() }
}

fn lost(what: &'static str) -> impl Fn(std::io::Error) -> Ending {
    move |error| Ending::Lost { reason: format!("{what}: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Option<std::io::Result<()>> {
        Some(Err(std::io::Error::other("no space")))
    }

    #[test]
    fn what_is_built_on_counts_only_once_it_is_synced() {
        let reason = || "overloaded".to_owned();
        for ending in [
            Ending::Answered { reply: "{}".to_owned() },
            Ending::Transient { reason: reason(), retry_after: None },
            Ending::Final { reason: reason() },
            Ending::Invalid { fault: reason() },
        ] {
            assert_eq!(once_synced(ending.clone(), Some(Ok(()))), ending);
            let told = once_synced(ending, failed());
            assert!(matches!(&told, Ending::Lost { reason } if reason.contains("no space")), "{told:?}");
        }
    }

    #[test]
    fn what_leaves_the_session_or_feeds_the_same_line_needs_no_sync() {
        let reason = || "it was silent".to_owned();
        for ending in [
            Ending::Lost { reason: reason() },
            Ending::Refused { reason: reason() },
            Ending::TooLong,
            Ending::SessionGone { reason: reason() },
        ] {
            assert_eq!(once_synced(ending.clone(), failed()), ending);
            assert_eq!(once_synced(ending.clone(), None), ending);
        }
    }

    #[test]
    fn an_answer_without_its_file_is_gone() {
        let told = once_synced(Ending::Answered { reply: "{}".to_owned() }, None);
        assert!(matches!(told, Ending::SessionGone { .. }), "{told:?}");
    }
}
