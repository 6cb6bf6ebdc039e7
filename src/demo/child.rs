//! A child process that cannot outlive us: own process group, a thread that waits for it, and a guard that sets the
//! parent-death signal.
//!
//! The parent-death signal follows the *thread* that spawned, so each child has a thread that lives as long as it does.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};
use tokio::sync::{mpsc, oneshot, watch};

/// How a child is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What it finds in its environment besides (or, if `clear`, instead of) ours.
    pub env: Vec<(OsString, OsString)>,
    /// Whether our environment is kept from it.
    pub environment: Environment,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The file (0600) that its output is appended to.
    pub log: PathBuf,
    /// Our own binary, if it can guard the child (`persona-bridge guard --parent PID …`).
    pub guard: Option<PathBuf>,
}

/// Which environment a child has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Ours and what the launch adds.
    Inherited,
    /// Only what the launch names.
    Cleared,
}

/// A running (or ended) child; dropping it kills its process group.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl Launch {
    /// A program with our environment, run in `cwd`, its output appended to `log`.
    pub fn new(program: impl Into<PathBuf>, cwd: &Path, log: &Path) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            environment: Environment::Inherited,
            cwd: cwd.to_owned(),
            log: log.to_owned(),
            guard: None,
        }
    }

    /// With these arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item: Into<OsString>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With our environment kept from it, except for these.
    #[must_use]
    pub fn only_env<K: Into<OsString>, V: Into<OsString>>(
        mut self,
        env: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.environment = Environment::Cleared;
        self.env = env.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self
    }

    /// Guarded by our own binary, where there is one.
    #[must_use]
    pub fn guarded(mut self, guard: Option<&Path>) -> Self {
        self.guard = guard.map(Path::to_owned);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started, or the log file cannot be opened.
    pub async fn spawn(self) -> std::io::Result<Child> {
        self.spawn_with(None).await
    }

    /// Starts it, its lines on stdout going to `lines` instead of the log.
    ///
    /// # Errors
    /// As [`Launch::spawn`].
    pub async fn spawn_lines(self, lines: mpsc::Sender<String>) -> std::io::Result<Child> {
        self.spawn_with(Some(lines)).await
    }

    async fn spawn_with(self, lines: Option<mpsc::Sender<String>>) -> std::io::Result<Child> {
        let command = self.command(lines.is_some())?;
        let (started, pid) = oneshot::channel();
        let (ended, exit) = watch::channel(None);
        std::thread::Builder::new()
            .name("child".to_owned())
            .spawn(move || live_with(command, lines, started, &ended))?;
        let pid = pid.await.map_err(|_| std::io::Error::other("the child's thread ended"))??;
        Ok(Child { pid, exit })
    }

    fn command(&self, piped: bool) -> std::io::Result<Command> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.log)?;
        let mut command = match &self.guard {
            Some(guard) => {
                let mut command = Command::new(guard);
                // `--last`: the guard itself becomes the program, so that its process id is the program's.
                let parent = std::process::id().to_string();
                command.args(["guard", "--parent", &parent, "--last", "--"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        if self.environment == Environment::Cleared {
            command.env_clear();
        }
        command.args(&self.args).envs(self.env.iter().map(|(key, value)| (key, value)));
        command.current_dir(&self.cwd).stdin(Stdio::null()).stderr(log.try_clone()?).process_group(0);
        command.stdout(if piped { Stdio::piped() } else { Stdio::from(log) });
        Ok(command)
    }
}

/// The life of a child's thread: start it, read it, wait for it.
fn live_with(
    mut command: Command,
    lines: Option<mpsc::Sender<String>>,
    started: oneshot::Sender<std::io::Result<Pid>>,
    ended: &watch::Sender<Option<ExitStatus>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(Pid::from_child(&child)));
    if let (Some(lines), Some(stdout)) = (lines, child.stdout.take()) {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                break;
            }
        }
    }
    if let Ok(status) = child.wait() {
        ended.send_replace(Some(status));
    }
}

impl Child {
    /// Its process id, which is also that of its group.
    pub fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Signals its whole group; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        if self.ended().is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Waits until it has ended.
    pub async fn wait(&self) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        exit.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Signals it and waits until it has ended.
    pub async fn kill(&self, signal: Signal) -> Option<ExitStatus> {
        self.signal(signal);
        self.wait().await
    }

    /// Asks it to end (SIGTERM) and kills it if it has not within `grace`.
    pub async fn stop(&self, grace: Duration) -> Option<ExitStatus> {
        match tokio::time::timeout(grace, self.kill(Signal::TERM)).await {
            Ok(status) => status,
            Err(_) => self.kill(Signal::KILL).await,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(dir: &Path, script: &str) -> Launch {
        Launch::new("/bin/sh", dir, &dir.join("log")).args(["-c", script])
    }

    #[tokio::test]
    async fn output_goes_to_a_private_log() {
        let dir = tempfile::tempdir().unwrap();
        let child = shell(dir.path(), "echo out; echo err >&2; exit 3").spawn().await.unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(3));
        let mut log: Vec<String> =
            std::fs::read_to_string(dir.path().join("log")).unwrap().lines().map(str::to_owned).collect();
        log.sort();
        assert_eq!(log, ["err", "out"]);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(dir.path().join("log")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_child_that_ignores_the_asking_is_killed_with_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let (lines, mut read) = mpsc::channel(8);
        let script =
            "trap '' TERM; sh -c 'trap \"\" TERM; sleep 1000' & echo $!; while :; do sleep 1000; done";
        let child = shell(dir.path(), script).spawn_lines(lines).await.unwrap();
        let grandchild: i32 = read.recv().await.unwrap().parse().unwrap();
        child.stop(Duration::from_millis(50)).await.unwrap();
        // The pipe closes only when the last of the group is gone.
        assert_eq!(read.recv().await, None);
        // It closes it a moment before it is gone.
        let state = || std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        let gone = async {
            while !(state().is_empty() || state().contains(") Z ")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(5), gone).await.is_ok(), "{}", state());
    }

    #[tokio::test]
    async fn the_environment_can_be_kept_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let (lines, mut read) = mpsc::channel(64);
        let child = Launch::new("/usr/bin/env", dir.path(), &dir.path().join("log"))
            .only_env([("ONE", "1")])
            .spawn_lines(lines)
            .await
            .unwrap();
        assert_eq!(read.recv().await.as_deref(), Some("ONE=1"));
        assert_eq!(read.recv().await, None);
        assert!(child.wait().await.unwrap().success());
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error =
            Launch::new("/no/such/program", dir.path(), &dir.path().join("log")).spawn().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
