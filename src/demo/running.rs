//! One demo a folder: a lock says whether one runs, and `running.json` how to talk through it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::homeserver::{HomeserverError, write_private};
use super::matrix::Login;

/// How to talk through a running demo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    /// The homeserver.
    pub(super) url: String,
    /// The user.
    pub(super) user_id: String,
    /// The user's token.
    pub(super) access_token: String,
    /// The process that runs it.
    pub(super) pid: u32,
}

/// The lock of a folder; the demo is over when it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: PathBuf,
    _lock: File,
}

impl Running {
    /// That this process runs a demo.
    pub(super) fn here(url: &str, login: &Login) -> Self {
        Self {
            url: url.to_owned(),
            user_id: login.user_id.clone(),
            access_token: login.access_token.clone(),
            pid: std::process::id(),
        }
    }

    /// Its user.
    pub(super) fn login(&self) -> Login {
        Login { user_id: self.user_id.clone(), access_token: self.access_token.clone() }
    }

    /// How to talk through the demo that runs in the folder, once it can be talked through.
    pub(super) fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(dir.join("running.json")).ok()?).ok()
    }
}

impl Lock {
    /// Takes the folder; `None` if a demo runs in it.
    pub(super) fn take(dir: &Path) -> Result<Option<Self>, HomeserverError> {
        let path = dir.join("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&path).map_err(HomeserverError::io(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(HomeserverError::io(&path)(source)),
        }
        let taken = Self { file: dir.join("running.json"), _lock: lock };
        // One that was killed has left its own.
        taken.remove();
        Ok(Some(taken))
    }

    /// Says how to talk through this demo.
    pub(super) fn announce(&self, running: &Running) -> Result<(), HomeserverError> {
        let part = self.file.with_extension("part");
        write_private(&part, &serde_json::json!(running).to_string())?;
        std::fs::rename(&part, &self.file).map_err(HomeserverError::io(&self.file))
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_demo_and_what_a_killed_one_left_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let login = Login { user_id: "@you:demo.test".to_owned(), access_token: "t".to_owned() };
        let running = Running::here("http://127.0.0.1:1/", &login);
        let lock = Lock::take(dir.path()).unwrap().unwrap();
        assert!(Lock::take(dir.path()).unwrap().is_none());
        assert_eq!(Running::read(dir.path()), None);
        lock.announce(&running).unwrap();
        assert_eq!(Running::read(dir.path()).map(|found| found.login()), Some(login));
        drop(lock);
        assert_eq!(Running::read(dir.path()), None);
        std::fs::write(dir.path().join("running.json"), serde_json::json!(running).to_string()).unwrap();
        let _again = Lock::take(dir.path()).unwrap().unwrap();
        assert_eq!(Running::read(dir.path()), None);
    }
}
