//! The durable flush.
//!
//! sled's `flush()` is `sync_file_range` on Linux: it starts the writing of data and waits for it, but neither the
//! drive's cache nor the file's metadata is made safe, and blob files are not synced at all. So it is followed by a
//! real sync of new blob files and their folder and then of the database file; the order matters, since the database
//! file points to the blobs. No thread of sled's own flushes in between (`flush_every_ms` is off). Snapshots and the
//! configuration are written while sled opens and synced once after that.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

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

/// The files of a database as far as syncing goes.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    file: File,
    blobs: Mutex<BTreeSet<OsString>>,
    durability: Durability,
    count: AtomicU64,
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

    /// Makes everything written so far durable.
    pub(super) fn flush(&self, db: &sled::Db) -> Result<()> {
        self.count.fetch_add(1, Ordering::Relaxed);
        match self.durability {
            Durability::Synced => self.sync(db),
            Durability::FlushOnly => Ok(db.flush().map(drop)?),
        }
    }

    fn sync(&self, db: &sled::Db) -> Result<()> {
        db.flush()?;
        self.sync_blobs()?;
        Ok(self.file.sync_all()?)
    }

    fn sync_blobs(&self) -> Result<()> {
        let folder = self.folder.join("blobs");
        let there =
            folder.read_dir()?.map(|entry| Ok(entry?.file_name())).collect::<Result<BTreeSet<_>>>()?;
        let mut synced = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<&OsString> = there.difference(&synced).collect();
        for name in &new {
            sync_if_there(&folder.join(name))?;
        }
        if !new.is_empty() {
            File::open(&folder)?.sync_all()?;
        }
        *synced = there;
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
