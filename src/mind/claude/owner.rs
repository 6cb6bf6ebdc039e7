//! One owner of a Persona's sessions at a time: a lock on her `stderr.log`, which the child inherits as its stderr.
//!
//! Two processes on one session lose turns silently. Since the lock belongs to the open file, it is held as long as the
//! bridge or any process that it started lives; a file beside it tells who that is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::proc;

/// The log is emptied when it has grown beyond this many bytes.
const LOG_LIMIT: u64 = 1024 * 1024;

/// How long another owner is waited for, in steps of [`STEP`].
const PATIENCE: u32 = 250;

/// The pause between two looks at the lock.
const STEP: Duration = Duration::from_millis(20);

/// The lock, held.
#[derive(Debug)]
pub(super) struct Owner {
    log: File,
    record: PathBuf,
}

/// Who holds the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    bridge: i32,
    bridge_started: u64,
    /// The process group of the child, once there is one; for people who look.
    group: Option<i32>,
}

/// Why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// Another bridge lives and holds it.
    #[error("another bridge (process {0}) owns this Persona's session; stop one of the two")]
    Other(i32),
    /// Processes that cannot be ended hold it.
    #[error("a process of an earlier run holds this Persona's session and could not be ended")]
    Stuck,
    /// The files cannot be used.
    #[error("the Persona's stderr.log cannot be locked: {0}")]
    Io(#[from] io::Error),
}

impl Owner {
    /// Takes the lock, ending what an earlier run has left; tells whether there was something to end.
    pub(super) async fn acquire(root: &Path) -> Result<(Self, bool), Error> {
        let mut options = OpenOptions::new();
        let log = options.read(true).append(true).create(true).mode(0o600).open(root.join("stderr.log"))?;
        let owner = Self { log, record: root.join("owner.json") };
        let mut ended = false;
        for _ in 0..PATIENCE {
            if flock(&owner.log, FlockOperation::NonBlockingLockExclusive).is_ok() {
                owner.write(None)?;
                return Ok((owner, ended));
            }
            ended |= owner.end_leftover();
            tokio::time::sleep(STEP).await;
        }
        match owner.other_bridge() {
            Some(bridge) => Err(Error::Other(bridge)),
            None => Err(Error::Stuck),
        }
    }

    /// The child's stderr, which holds the lock as well.
    pub(super) fn stderr(&self) -> io::Result<Stdio> {
        Ok(self.log.try_clone()?.into())
    }

    /// Writes down the child's group.
    pub(super) fn started(&self, group: Pid) -> io::Result<()> {
        self.write(Some(group.as_raw_nonzero().get()))
    }

    /// Empties the log if it has grown too large, and tells its length.
    pub(super) fn bound_log(&self) -> io::Result<u64> {
        let length = self.log.metadata()?.len();
        if length <= LOG_LIMIT {
            return Ok(length);
        }
        self.log.set_len(0)?;
        Ok(0)
    }

    /// What was written to the log after its first `from` bytes, at most 4 KiB.
    pub(super) fn logged_since(&self, from: u64) -> io::Result<String> {
        let mut log = &self.log;
        log.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        log.take(4096).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn write(&self, group: Option<i32>) -> io::Result<()> {
        let us = getpid();
        let bridge_started = proc::look(us).map_or(0, |us| us.started);
        let holder = Holder { bridge: us.as_raw_nonzero().get(), bridge_started, group };
        let fresh = self.record.with_extension("new");
        std::fs::write(&fresh, serde_json::to_vec(&holder)?)?;
        std::fs::rename(&fresh, &self.record)
    }

    fn holder(&self) -> Option<Holder> {
        serde_json::from_slice(&std::fs::read(&self.record).ok()?).ok()
    }

    /// The living bridge that holds the lock, if it is not us.
    fn other_bridge(&self) -> Option<i32> {
        let holder = self.holder()?;
        let bridge = proc::look(Pid::from_raw(holder.bridge)?)?;
        (bridge.started == holder.bridge_started && bridge.id != getpid()).then_some(holder.bridge)
    }

    /// Kills what has this log for its stderr, unless another bridge lives; tells whether there was any.
    fn end_leftover(&self) -> bool {
        if self.other_bridge().is_some() {
            return false;
        }
        let others = proc::all().into_iter().map(|process| process.id).filter(|id| *id != getpid());
        let leftover = others.filter(|id| proc::has_for_stderr(*id, &self.log));
        leftover.filter(|id| kill_process(*id, Signal::KILL).is_ok()).count() > 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    fn child_with(owner: &Owner) -> Child {
        let mut command = Command::new("sleep");
        command.arg("60").stderr(owner.stderr().unwrap()).process_group(0);
        command.spawn().unwrap()
    }

    #[tokio::test]
    async fn what_an_earlier_run_left_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let (owner, ended) = Owner::acquire(root.path()).await.unwrap();
        assert!(!ended);
        let mut child = child_with(&owner);
        owner.started(Pid::from_child(&child)).unwrap();
        drop(owner);
        let (_owner, ended) = Owner::acquire(root.path()).await.unwrap();
        assert!(ended);
        assert!(!child.wait().unwrap().success());
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_have_the_log_for_its_stderr_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let (owner, _) = Owner::acquire(root.path()).await.unwrap();
        let reading = File::open(root.path().join("stderr.log")).unwrap();
        let mut bystander = Command::new("sleep").arg("60").stdin(reading).spawn().unwrap();
        owner.started(Pid::from_child(&bystander)).unwrap();
        assert!(matches!(Owner::acquire(root.path()).await, Err(Error::Stuck)));
        assert_eq!(bystander.try_wait().unwrap(), None);
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_living_other_bridge_is_respected() {
        let root = tempfile::tempdir().unwrap();
        let (owner, _) = Owner::acquire(root.path()).await.unwrap();
        let mut child = child_with(&owner);
        let parent = rustix::process::getppid().unwrap();
        let holder = Holder {
            bridge: parent.as_raw_nonzero().get(),
            bridge_started: proc::look(parent).unwrap().started,
            group: Some(i32::try_from(child.id()).unwrap()),
        };
        std::fs::write(&owner.record, serde_json::to_vec(&holder).unwrap()).unwrap();
        drop(owner);
        assert!(matches!(Owner::acquire(root.path()).await, Err(Error::Other(_))));
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn the_log_is_emptied_beyond_its_limit() {
        let root = tempfile::tempdir().unwrap();
        let (owner, _) = Owner::acquire(root.path()).await.unwrap();
        let log = root.path().join("stderr.log");
        std::fs::write(&log, "before, after").unwrap();
        assert_eq!(owner.bound_log().unwrap(), 13);
        assert_eq!(owner.logged_since(8).unwrap(), "after");
        std::fs::write(&log, vec![b'x'; 1024 * 1024 + 1]).unwrap();
        assert_eq!(owner.bound_log().unwrap(), 0);
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    }
}
