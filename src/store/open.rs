//! Opening: the folder, its lock, the engine, whose it is.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::process::geteuid;
use uuid::Uuid;

use super::base::Base;
use super::compact;
use super::flush::{Disk, Durability};
use super::group::Group;
use super::index::Index;
use super::record;
use super::table::Table;
use super::tx::{Read, Tx};
use super::{Config, Opening, Owner, Result, StoreError};
use crate::conversation::Millis;

/// The format of what this version writes.
const FORMAT: u32 = 2;
/// The version that writes it.
const WRITER: &str = env!("CARGO_PKG_VERSION");
/// Bytes of pages that sled keeps in memory.
const CACHE: u64 = 16 * 1024 * 1024;
/// How often a lock is tried that a process just ending may still hold.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// An open store. The order of the fields is the order in which they are let go: the lock last.
pub(super) struct Shared {
    pub(super) base: Base,
    pub(super) index: RwLock<Index>,
    pub(super) disk: Disk,
    pub(super) group: Group,
    pub(super) epoch: Uuid,
    pub(super) made: Millis,
    config: Config,
    full: AtomicBool,
    _lock: File,
}

impl Shared {
    /// Opens the store, making it where there is none.
    pub(super) fn open(config: &Config, opening: &Opening, durability: Durability) -> Result<Self> {
        let path = &config.path;
        refuse_foreign(path)?;
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| at(path, &error))?;
        let lock = lock(path)?;
        let folder = path.join(compact::FOLDER);
        compact::mend(path)?;
        let db = engine(&folder)?;
        let (base, new) = check(db, path, &opening.owner)?;
        let base = compact::if_wanted(base, path, engine)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(|error| at(path, &error))?;
        base.mend()?;
        begin(&base, opening, new)?;
        let disk = Disk::settle(&base.db, &folder, durability)?;
        Ok(Self {
            index: RwLock::new(base.look(Index::build)?),
            disk,
            group: Group::default(),
            epoch: parsed(&base, "epoch")?,
            made: Millis(parsed(&base, "made")?),
            config: config.clone(),
            full: AtomicBool::new(false),
            _lock: lock,
            base,
        })
    }

    /// Whether there is room to accept.
    pub(super) fn accepts(&self) -> Result<bool> {
        let stat = statvfs(&self.config.path).map_err(|error| at(&self.config.path, &error.into()))?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let full = is_full(self.full.load(Ordering::Relaxed), free, self.config.min_free);
        self.full.store(full, Ordering::Relaxed);
        Ok(!full)
    }
}

/// Full below `min`, and once full until there is twice that.
fn is_full(before: bool, free: u64, min: u64) -> bool {
    free < if before { min.saturating_mul(2) } else { min }
}

/// Refuses a folder that exists and is not of the user whom this process runs as.
fn refuse_foreign(path: &Path) -> Result<()> {
    let ours = geteuid().as_raw();
    match std::fs::metadata(path) {
        Ok(folder) if folder.uid() != ours => Err(StoreError::Foreign { path: path.to_owned() }),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn at(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()))
}

fn lock(path: &Path) -> Result<File> {
    let name = path.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&name);
    let file = file.map_err(|error| at(&name, &error))?;
    for _ in 0..TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(error) => return Err(at(&name, &error.into())),
        }
    }
    Err(StoreError::Locked { path: path.to_owned() })
}

/// Opens sled, which panics at some kinds of damage. A thread of its own may hold its lock for a moment after a store
/// that this process just let go of.
pub(super) fn engine(folder: &Path) -> Result<sled::Db> {
    let closed = |reason: &str, remedy: &str| {
        StoreError::Io(format!("{} cannot be opened ({reason}); {remedy}", folder.display()))
    };
    let damaged = |reason: &str| closed(reason, "restore it from a backup or move it away");
    let mut tries = TRIES;
    loop {
        let path: PathBuf = folder.to_owned();
        let open = move || sled::Config::new().path(path).cache_capacity(CACHE).flush_every_ms(None).open();
        match catch_unwind(open) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(error)) if tries > 0 && is_lock(&error) => std::thread::sleep(PAUSE),
            Ok(Err(sled::Error::Io(error))) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(closed(&error.to_string(), "let all of it be its bridge's user's again"));
            }
            Ok(Err(error)) => return Err(damaged(&error.to_string())),
            Err(_) => return Err(damaged("its engine panicked")),
        }
        tries -= 1;
    }
}

fn is_lock(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

/// Checks whose the database is, and opens it; answers also whether it is new. Nothing is written where it is not ours.
fn check(db: sled::Db, path: &Path, owner: &Owner) -> Result<(Base, bool)> {
    if !Base::is_in(&db) && !is_empty(&db)? {
        return Err(foreign(path, owner, "another program".to_owned()));
    }
    let new = is_empty(&db)?;
    let base = Base::open(db)?;
    if new {
        return Ok((base, new));
    }
    let text = |name: &str| base.look(|view| view.meta(name))?.ok_or_else(|| missing(name));
    let found = text("format")?.parse().map_err(|_| missing("format"))?;
    if found != FORMAT {
        let (path, writer) = (path.to_owned(), text("writer")?);
        return Err(StoreError::Version { path, found, wanted: FORMAT, writer });
    }
    let found = Owner { server_name: text("server_name")?, appservice: text("appservice")? };
    if found == *owner { Ok((base, new)) } else { Err(foreign(path, owner, name(&found))) }
}

fn is_empty(db: &sled::Db) -> Result<bool> {
    for name in db.tree_names() {
        if !db.open_tree(name)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn name(owner: &Owner) -> String {
    format!("appservice {} of {}", owner.appservice, owner.server_name)
}

fn foreign(path: &Path, owner: &Owner, found: String) -> StoreError {
    StoreError::Owner { path: path.to_owned(), found, wanted: name(owner) }
}

fn missing(row: &str) -> StoreError {
    record::corrupt(Table::Meta, row.as_bytes(), "it is missing or unreadable")
}

fn begin(base: &Base, opening: &Opening, new: bool) -> Result<()> {
    let mut tx = Tx::new(base);
    if new {
        tx.put_meta("format", &FORMAT.to_string());
        tx.put_meta("server_name", &opening.owner.server_name);
        tx.put_meta("appservice", &opening.owner.appservice);
        tx.put_meta("epoch", &opening.epoch.to_string());
        tx.put_meta("made", &opening.now.0.to_string());
    }
    if tx.meta("writer")?.as_deref() != Some(WRITER) {
        tx.put_meta("writer", WRITER);
    }
    tx.commit()
}

fn parsed<T: std::str::FromStr>(base: &Base, name: &str) -> Result<T> {
    let text = base.look(|view| view.meta(name))?.ok_or_else(|| missing(name))?;
    text.parse().map_err(|_| missing(name))
}

#[cfg(test)]
mod tests {
    use super::is_full;

    #[test]
    fn acceptance_resumes_above_twice_the_minimum() {
        let check = |before, free, full| assert_eq!(is_full(before, free, 100), full, "{before} {free}");
        check(false, 100, false);
        check(false, 99, true);
        check(true, 199, true);
        check(true, 200, false);
    }
}
