//! Files made small again: what there is, written into a new database that takes the place of the old one.
//!
//! sled gives little of its files back. So a store that is closed looks whether they have become far larger than what stands
//! in them, and has the next opening copy that. The old database stays whole until the new one is safe on the disk: whenever a
//! crash comes, [`mend`] finds one of them whole, under its own name or put aside.

use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::base::Base;
use super::tx::Read as _;
use super::{Result, Size, StoreError};

/// The folder of the database.
pub(super) const FOLDER: &str = "sled";
/// That of a new one until it is whole.
const NEW: &str = "sled.new";
/// That of the old one until the new one has its place.
const OLD: &str = "sled.old";
/// The row that asks the next opening for it.
pub(super) const WANTED: &str = "copy_wanted";

/// Files of this size are never too large: sled takes them by half a MiB.
pub(super) const SMALL: u64 = 4 * 1024 * 1024;
/// Files are too large from so many times what stands in them; newly written ones are twice and a half of it.
const MANY: u64 = 3;

/// The steps by which a whole new database takes the place of the old one.
const STEPS: [fn(&Path) -> Result<()>; 3] = [put_old_aside, put_new_in_place, remove_old];

impl Size {
    /// Whether the files are worth to be written anew.
    pub(super) fn is_large(self) -> bool {
        self.disk > SMALL && self.disk > self.live.saturating_mul(MANY)
    }
}

/// Ends what a crash has cut short, before the database is opened.
pub(super) fn mend(path: &Path) -> Result<()> {
    if !path.join(FOLDER).try_exists()? && path.join(OLD).try_exists()? {
        std::fs::rename(path.join(OLD), path.join(FOLDER))?;
        sync(path)?;
    }
    remove(&path.join(NEW))?;
    remove_old(path)
}

/// Copies the database if that was asked for; where it cannot be copied, it is gone on with as it is.
pub(super) fn if_wanted(base: Base, path: &Path, engine: impl Fn(&Path) -> Result<sled::Db>) -> Result<Base> {
    if base.look(|view| view.meta(WANTED))?.is_none() {
        return Ok(base);
    }
    let copied = catch_unwind(AssertUnwindSafe(|| copy(&base, &path.join(NEW), &engine)));
    let copied = copied.unwrap_or_else(|_| Err(StoreError::Io("its engine has panicked".to_owned())));
    if let Err(error) = copied {
        tracing::warn!(%error, "the store's files are larger than need be, and could not be written anew");
        remove(&path.join(NEW))?;
        return Ok(base);
    }
    drop(base);
    STEPS.iter().try_for_each(|step| step(path))?;
    Base::open(engine(&path.join(FOLDER))?)
}

/// Writes all of it into a new database, durably.
fn copy(base: &Base, new: &Path, engine: impl Fn(&Path) -> Result<sled::Db>) -> Result<()> {
    let db = engine(new)?;
    base.copy(&db, WANTED)?;
    drop(db);
    sync_all(new)
}

fn put_old_aside(path: &Path) -> Result<()> {
    std::fs::rename(path.join(FOLDER), path.join(OLD))?;
    sync(path)
}

fn put_new_in_place(path: &Path) -> Result<()> {
    std::fs::rename(path.join(NEW), path.join(FOLDER))?;
    sync(path)
}

fn remove_old(path: &Path) -> Result<()> {
    remove(&path.join(OLD))
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Syncs a folder with all that is in it.
fn sync_all(folder: &Path) -> Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { sync_all(&entry.path())? } else { sync(&entry.path())? }
    }
    sync(folder)
}

fn sync(path: &Path) -> Result<()> {
    Ok(File::open(path)?.sync_all()?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// How far a copying came before a crash: into the copy, or so many steps behind it.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::store) enum Cut {
        /// The new database is not whole.
        Copying,
        /// So many steps were taken.
        Steps(usize),
    }

    /// All of them.
    pub(in crate::store) const CUTS: [Cut; 5] =
        [Cut::Copying, Cut::Steps(0), Cut::Steps(1), Cut::Steps(2), Cut::Steps(3)];

    /// Copies a database as far as a crash let it.
    pub(in crate::store) fn cut_short(path: &Path, cut: Cut, engine: impl Fn(&Path) -> Result<sled::Db>) {
        let base = Base::open(engine(&path.join(FOLDER)).unwrap()).unwrap();
        copy(&base, &path.join(NEW), &engine).unwrap();
        drop(base);
        match cut {
            Cut::Copying => std::fs::write(path.join(NEW).join("db"), "cut").unwrap(),
            Cut::Steps(count) => STEPS[..count].iter().for_each(|step| step(path).unwrap()),
        }
    }

    #[test]
    fn files_are_large_from_three_times_what_is_in_them_but_never_small_ones() {
        let check = |live, disk, large| assert_eq!(Size { live, disk }.is_large(), large, "{live} {disk}");
        check(0, SMALL, false);
        check(0, SMALL + 1, true);
        check(SMALL, 3 * SMALL, false);
        check(SMALL, 3 * SMALL + 1, true);
    }
}
