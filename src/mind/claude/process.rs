//! One claude process: started through the guard, read line by line, ended by a ladder.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use uuid::Uuid;

use super::launch::{self, Folders, Opening};
use super::manner::Manner;
use super::measure::cost;
use super::owner::Owner;
use super::transcript::SessionFile;
use super::wire::{Outcome, Output};
use super::{Config, guard, proc, spawner};
use crate::conversation::LineId;
use crate::persona::decide::Stop;
use crate::persona::session::Session;
use crate::persona::session::identity::VERSION;

/// A longer line of stdout ends the process.
const LINE_LIMIT: usize = 128 * 1024 * 1024;

/// A living process and the session it belongs to.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    /// Its session.
    pub(super) session: Uuid,
    /// Whether it took up a session that was there.
    pub(super) resumed: bool,
    /// The version of the CLI that its session was begun with, as far as that is known, until it says its own.
    version: Option<String>,
    /// The lines that were written to it.
    pub(super) fed: Vec<LineId>,
    /// Its session's file as it was when its last turn ended.
    pub(super) file: Option<SessionFile>,
    /// The length of its stderr file when it was started.
    pub(super) logged: u64,
    spent: f64,
    /// Its stdin until it is closed.
    pub(super) input: Option<ChildStdin>,
    /// Its stdout.
    pub(super) output: Lines,
}

/// What a process is started for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    /// The session.
    pub(super) session: &'a Session,
    /// How the CLI is run.
    pub(super) manner: &'a Manner,
    /// How it is taken up.
    pub(super) opening: Opening,
    /// The reply schema.
    pub(super) schema: &'a str,
}

/// One step of a ladder: what is done, and how long its effect is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rung {
    Close(Duration),
    Terminate(Duration),
    Kill(Duration),
}

/// Why a process is ended, which decides how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ladder {
    /// We were asked to.
    Asked(Stop),
    /// It was silent for too long.
    Silent,
    /// Its session must not be used any more, or its output cannot be read.
    Unusable,
}

impl Ladder {
    fn rungs(self) -> Vec<Rung> {
        let seconds = Duration::from_secs;
        let kill = Rung::Kill(seconds(5));
        match self {
            Self::Asked(Stop::Idle) => vec![Rung::Close(seconds(5)), Rung::Terminate(seconds(2)), kill],
            Self::Asked(Stop::Busy) => vec![Rung::Terminate(seconds(2)), kill],
            Self::Silent => vec![Rung::Terminate(seconds(5)), kill],
            Self::Unusable => vec![kill],
        }
    }
}

impl Process {
    /// Starts the CLI; what the session needs must be in place.
    pub(super) async fn start(
        config: &Config,
        folders: &Folders,
        owner: &Owner,
        start: Start<'_>,
    ) -> io::Result<Self> {
        let logged = owner.bound_log()?;
        let mut child = spawner::spawn(command(config, folders, owner, start)?).await?;
        let gone = || io::Error::other("the process ended while it was started");
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = id.ok_or_else(gone)?;
        owner.started(group)?;
        let (input, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or_else(gone)?;
        let output = Lines { stdout: BufReader::with_capacity(64 * 1024, stdout), partial: Vec::new() };
        let session = if let Opening::Fork(id) = start.opening { id } else { start.session.id };
        Ok(Self {
            child,
            group,
            session,
            resumed: start.opening != Opening::Begin,
            version: start.session.fingerprint.0.get(VERSION).cloned(),
            fed: Vec::new(),
            file: None,
            logged,
            spent: 0.0,
            input: Some(input),
            output,
        })
    }

    /// Its version, where it says so for the first time and its session was begun with another.
    pub(super) fn another_version(&mut self, output: &Output) -> Option<String> {
        let Output::Init { version: Some(found), .. } = output else { return None };
        let is_another = self.version.as_ref().is_some_and(|begun_with| begun_with != found);
        is_another.then(|| self.version.insert(found.clone()).clone())
    }

    /// What a result has cost, in USD.
    pub(super) fn spend(&mut self, outcome: &Outcome) -> f64 {
        let before = std::mem::replace(&mut self.spent, outcome.total_cost_usd);
        cost(outcome, before)
    }

    /// Its group.
    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Resident memory of the guard, the CLI and whatever that has started, in bytes.
    pub(super) fn resident(&self) -> Option<u64> {
        proc::resident(self.group)
    }

    /// Ends the process with its whole group, and tells how it ended.
    pub(super) async fn end(mut self, ladder: Ladder) -> String {
        for rung in ladder.rungs() {
            let patience = self.climb(rung);
            if let Ok(report) = tokio::time::timeout(patience, self.ended()).await {
                return report;
            }
        }
        "it could not be ended".to_owned()
    }

    /// Waits until the process has ended by itself, and tells how.
    pub(super) async fn ended(&mut self) -> String {
        let mut rest = [0; 4096];
        loop {
            tokio::select! {
                status = self.child.wait() => return report(status),
                read = self.output.stdout.read(&mut rest) => if !matches!(read, Ok(1..)) {
                    return report(self.child.wait().await);
                }
            }
        }
    }

    /// Does what the rung says, and tells how long its effect is to be waited for.
    fn climb(&mut self, rung: Rung) -> Duration {
        match rung {
            Rung::Close(patience) => {
                self.input = None;
                patience
            }
            Rung::Terminate(patience) => {
                self.signal(Signal::TERM);
                patience
            }
            Rung::Kill(patience) => {
                self.signal(Signal::KILL);
                patience
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // As long as the leader is not reaped, its group's number belongs to no one else.
        if self.child.id().is_some() {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

fn report(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}")),
        Err(error) => format!("its end cannot be told: {error}"),
    }
}

fn command(config: &Config, folders: &Folders, owner: &Owner, start: Start<'_>) -> io::Result<Command> {
    let mut command = Command::new(&config.guard);
    command.args(guard::arguments(std::process::id())).arg(absolute(&config.program));
    command.args(launch::arguments(start.manner, folders, start.schema, start.session, start.opening));
    command.env_clear().envs(launch::environment(start.manner, config, folders));
    command.envs(launch::start_environment(config, start.opening));
    command.current_dir(&folders.cwd).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(owner.stderr()?);
    Ok(command)
}

/// A relative path to the program would be looked up from the child's folder.
fn absolute(program: &Path) -> std::path::PathBuf {
    let named = program.components().count() > 1;
    if named {
        std::path::absolute(program).unwrap_or_else(|_| program.to_owned())
    } else {
        program.to_owned()
    }
}

/// The lines of a process's stdout.
#[derive(Debug)]
pub(super) struct Lines {
    stdout: BufReader<ChildStdout>,
    partial: Vec<u8>,
}

impl Lines {
    /// The next line without its end, none at the end of the output. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// The output cannot be read, or a line is longer than any that the CLI writes.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let bytes = self.stdout.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            self.partial.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            let used = end.map_or(bytes.len(), |end| end + 1);
            self.stdout.consume(used);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
            if self.partial.len() > LINE_LIMIT {
                return Err(io::Error::other("a line is too long"));
            }
        }
    }
}
