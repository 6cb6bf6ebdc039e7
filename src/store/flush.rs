//! The durable flush.
//!
//! sled's `flush()` is `sync_file_range` on Linux: it starts the writing of data and waits for it, but neither the
//! drive's cache nor the file's metadata is made safe, and blob files are not synced at all. So it is followed by a
//! real sync of new blob files and their folder and then of the database file; the order matters, since the database
//! file points to the blobs. No thread of sled's own flushes in between (`flush_every_ms` is off). Snapshots and the
//! configuration are written while sled opens and synced once after that.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::Result;

/// How far a flush goes. Anything but [`Durability::Synced`] loses acknowledged records when the power fails and exists
/// to show just that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// To the medium.
    #[default]
    Synced,
    /// As far as sled's own flush goes.
    FlushOnly,
}

/// A folder that was changed this long before it was listed has no newer files: its time of change has a grain.
const GRAIN: Duration = Duration::from_secs(1);

/// Of how many flushes it is kept how long they took.
const TIMES: usize = 256;

/// The blob files that are synced.
#[derive(Debug, Default)]
struct Blobs {
    names: BTreeSet<OsString>,
    /// When the folder had last been changed, if it was listed so long after that no change is missed.
    settled: Option<SystemTime>,
}

/// The files of a database as far as syncing goes.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    file: File,
    blobs: Mutex<Blobs>,
    durability: Durability,
    count: AtomicU64,
    times: Mutex<VecDeque<Duration>>,
}

impl Disk {
    /// Takes hold of the files of an open database and syncs all of them, and the folders up to the store's parent:
    /// what was recovered is durable from here on.
    pub(super) fn settle(db: &sled::Db, folder: &Path, durability: Durability) -> Result<Self> {
        let file = File::open(folder.join("db"))?;
        let disk = Self {
            folder: folder.to_owned(),
            file,
            blobs: Mutex::default(),
            durability,
            count: AtomicU64::new(0),
            times: Mutex::default(),
        };
        disk.sync(db)?;
        for entry in folder.read_dir()? {
            File::open(entry?.path())?.sync_all()?;
        }
        File::open(folder)?.sync_all()?;
        for above in folder.ancestors().skip(1).take(2) {
            sync_if_there(above)?;
        }
        Ok(disk)
    }

    /// How many flushes were asked for since the store was opened.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// How long the newest of them took, oldest first.
    pub(super) fn times(&self) -> Vec<Duration> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Makes everything written so far durable.
    #[expect(clippy::disallowed_methods, reason = "nothing is decided by how long the disk takes")]
    pub(super) fn flush(&self, db: &sled::Db) -> Result<()> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let done = match self.durability {
            Durability::Synced => self.sync(db),
            Durability::FlushOnly => Ok(db.flush().map(drop)?),
        };
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push_back(begun.elapsed());
        if times.len() > TIMES {
            times.pop_front();
        }
        done
    }

    fn sync(&self, db: &sled::Db) -> Result<()> {
        db.flush()?;
        self.sync_blobs()?;
        Ok(self.file.sync_all()?)
    }

    fn sync_blobs(&self) -> Result<()> {
        let folder = self.folder.join("blobs");
        let changed = folder.metadata()?.modified()?;
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        if blobs.settled == Some(changed) {
            return Ok(());
        }
        let there =
            folder.read_dir()?.map(|entry| Ok(entry?.file_name())).collect::<Result<BTreeSet<_>>>()?;
        let new: Vec<&OsString> = there.difference(&blobs.names).collect();
        for name in &new {
            sync_if_there(&folder.join(name))?;
        }
        if !new.is_empty() {
            File::open(&folder)?.sync_all()?;
        }
        // Both times are the file system's own.
        let now = self.file.metadata()?.modified()?;
        *blobs = Blobs { names: there, settled: (now > changed + GRAIN).then_some(changed) };
        Ok(())
    }
}

/// Syncs what may be gone already, or may be a folder above that is not ours to open.
fn sync_if_there(path: &Path) -> Result<()> {
    match File::open(path) {
        Ok(file) => Ok(file.sync_all()?),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
impl Disk {
    /// Moves the blobs, so that a flush does not find them.
    pub(super) fn move_blobs(&self, from: &str, to: &str) {
        std::fs::rename(self.folder.join(from), self.folder.join(to)).unwrap();
    }
}
