//! What is committed: one tree of sled's, and over it what was written last.
//!
//! A commit goes into the journal as one entry and from there into memory; its rows themselves sink into the tree only
//! once much has gathered. So a commit writes a few long rows instead of many short ones, and what comes and goes between
//! two sinkings (mail, open turns, says) is never sorted in at all. The journal is read back at open. An entry goes only
//! after a durable flush has taken the rows that sank, and to let an entry's rows sink twice does no harm.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use sled::IVec;

use super::journal::{self, Part};
use super::known::Known;
use super::overlay::{Overlay, Row};
use super::table::Table;
use super::tx::{Read, Rows};
use super::{Result, Size, compact, table};

/// The tree's name.
const TREE: &str = "rows";
/// How many bytes gather before they sink: of rows, or of the journal, which holds every state of a row that changes often.
const MUCH: usize = 1024 * 1024;
/// How many events are learnt in one go.
const LESSON: usize = 500;
/// How many rows are gone through in one go.
const PAGE: usize = 100;

/// What was written last.
#[derive(Debug, Default)]
struct Recent {
    rows: Overlay,
    /// The numbers of its parts in the journal.
    journal: Range<u64>,
    /// The bytes of those.
    written: usize,
    /// The numbers of the parts before, whose rows have sunk.
    sunk: Range<u64>,
}

/// What is committed.
pub(super) struct Base {
    pub(super) db: sled::Db,
    tree: sled::Tree,
    recent: RwLock<Recent>,
    known: Known,
}

impl Base {
    /// Opens the tree, making it where it is not there, and reads the journal back.
    pub(super) fn open(db: sled::Db) -> Result<Self> {
        let tree = db.open_tree(TREE)?;
        let recent = RwLock::new(read_back(&tree)?);
        Ok(Self { db, tree, recent, known: Known::default() })
    }

    /// Whether a database has the tree.
    pub(super) fn is_in(db: &sled::Db) -> bool {
        db.tree_names().iter().any(|name| name == TREE.as_bytes())
    }

    fn recent(&self) -> RwLockReadGuard<'_, Recent> {
        self.recent.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent_mut(&self) -> RwLockWriteGuard<'_, Recent> {
        self.recent.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is committed; no commit comes between.
    pub(super) fn look<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View { tree: &self.tree, recent: &self.recent(), known: &self.known })
    }

    /// Learns some of the events that are there, from a key on; answers where to go on, if there are more.
    pub(super) fn learn(&self, from: &[u8]) -> Result<Option<Vec<u8>>> {
        let (events, next) = self.look(|view| view.page(Table::Events, from, LESSON))?;
        events.iter().for_each(|(event, _)| self.known.add(event));
        if next.is_none() {
            self.known.complete();
        }
        Ok(next)
    }

    /// How much there is, and how much room its files take.
    pub(super) fn size(&self) -> Result<Size> {
        let mut live = 0;
        self.pages(|_, rows| {
            live += rows.iter().map(|(key, row)| (key.len() + row.len()) as u64).sum::<u64>();
            Ok(())
        })?;
        Ok(Size { live, disk: self.db.size_on_disk()? })
    }

    /// Whether the files are worth to be written anew; reads all of it only where they are of some size.
    pub(super) fn is_large(&self) -> Result<bool> {
        Ok(self.db.size_on_disk()? > compact::SMALL && self.size()?.is_large())
    }

    /// Writes all that there is into another database, but for one row of the meta table.
    pub(super) fn copy(&self, to: &sled::Db, without: &str) -> Result<()> {
        let tree = to.open_tree(TREE)?;
        self.pages(|table, rows| {
            let mut batch = sled::Batch::default();
            for (key, row) in rows {
                if table != Table::Meta || *key != without.as_bytes() {
                    batch.insert(place(table, key), row);
                }
            }
            tree.apply_batch(batch)?;
            // Flushed often, sled uses its segments again while it writes; else the files are up to four times as large.
            to.flush()?;
            Ok(())
        })
    }

    /// Goes through all rows, some at a time. The journal is none of them: what it says is in them.
    fn pages(&self, mut look: impl FnMut(Table, &Rows) -> Result<()>) -> Result<()> {
        for table in Table::ALL.iter().filter(|table| **table != Table::Journal) {
            let mut from = Some(Vec::new());
            while let Some(key) = from {
                let (rows, next) = self.look(|view| view.page(*table, &key, PAGE))?;
                look(*table, &rows)?;
                from = next;
            }
        }
        Ok(())
    }

    /// Forgets what a commit that was never flushed has left of itself.
    pub(super) fn mend(&self) -> Result<()> {
        let end = self.recent().journal.end;
        let left = rows_of(&self.tree, Table::Journal, &end.to_be_bytes());
        for row in left {
            self.tree.remove(row?.0)?;
        }
        Ok(())
    }

    /// Commits rows as one.
    pub(super) fn commit(&self, writes: Overlay) -> Result<()> {
        let end = self.recent().journal.end;
        let parts = journal::parts(&writes);
        let numbers = end..end + parts.len() as u64;
        let written: usize = parts.iter().map(Vec::len).sum();
        for (number, part) in numbers.clone().zip(parts) {
            self.tree.insert(place(Table::Journal, &number.to_be_bytes()), part)?;
        }
        writes.from(Table::Events, &[]).for_each(|(event, _)| self.known.add(event));
        let mut recent = self.recent_mut();
        recent.rows.append(writes);
        recent.journal.end = numbers.end;
        recent.written += written;
        Ok(())
    }

    /// Lets what is recent sink into the tree if it is much; only after a durable flush, by the writer.
    pub(super) fn sink_if_much(&self) -> Result<()> {
        let (rows, journal) = {
            let recent = self.recent();
            (recent.rows.size(), recent.written)
        };
        if rows.max(journal) >= MUCH { self.sink() } else { Ok(()) }
    }

    /// Lets what is recent sink into the tree. Readers find the same above it and in it.
    pub(super) fn sink(&self) -> Result<()> {
        let recent = self.recent();
        for number in recent.sunk.clone() {
            self.tree.remove(place(Table::Journal, &number.to_be_bytes()))?;
        }
        for (table, key, row) in recent.rows.iter() {
            match row {
                Some(row) => self.tree.insert(place(table, key), row)?,
                None => self.tree.remove(place(table, key))?,
            };
        }
        drop(recent);
        let mut recent = self.recent_mut();
        recent.rows = Overlay::default();
        recent.sunk = recent.journal.clone();
        recent.journal.start = recent.journal.end;
        recent.written = 0;
        Ok(())
    }
}

/// The key of a row in the tree.
fn place(table: Table, key: &[u8]) -> Vec<u8> {
    [&[table as u8], key].concat()
}

/// The rows of a table in the tree from a key on, with their places.
fn rows_of(
    tree: &sled::Tree,
    table: Table,
    key: &[u8],
) -> impl Iterator<Item = sled::Result<(IVec, IVec)>> + use<> {
    tree.range(place(table, key)..vec![table as u8 + 1])
}

fn read_back(tree: &sled::Tree) -> Result<Recent> {
    let mut rows = Overlay::default();
    let mut reader = journal::Reader::default();
    let mut first = None;
    let (mut begin, mut end) = (0, 0);
    let mut written = 0;
    for row in rows_of(tree, Table::Journal, &[]) {
        let (place, part) = row?;
        let number = table::number(Table::Journal, &place[1..])?;
        if first.is_none() {
            (first, begin, end) = (Some(number), number, number);
        }
        written += part.len();
        match reader.take(number, &part)? {
            Part::GoesOn => {}
            Part::Leftover => (begin, end) = (number + 1, number + 1),
            Part::Ends(entry) => {
                rows.append(entry);
                end = number + 1;
            }
        }
    }
    let sunk = first.unwrap_or_default()..begin;
    Ok(Recent { rows, journal: begin..end, written, sunk })
}

/// What is committed, at one moment.
pub(super) struct View<'a> {
    tree: &'a sled::Tree,
    recent: &'a Recent,
    known: &'a Known,
}

impl View<'_> {
    /// About `count` rows of a table from a key on, and where to go on.
    pub(super) fn page(&self, table: Table, from: &[u8], count: usize) -> Result<(Rows, Option<Vec<u8>>)> {
        let mut rows = Rows::new();
        let mut next = None;
        for row in rows_of(self.tree, table, from) {
            let (place, row) = row?;
            let key = place[1..].to_vec();
            if rows.len() == count {
                next = Some(key);
                break;
            }
            rows.push((key, row));
        }
        let above = self.recent.rows.from(table, from);
        let above = above.take_while(|(key, _)| next.as_ref().is_none_or(|next| *key < next));
        Ok((lay_over(rows, above), next))
    }
}

/// Lays rows over others; both are in order.
pub(super) fn lay_over<'a>(rows: Rows, above: impl Iterator<Item = (&'a Vec<u8>, &'a Row)>) -> Rows {
    let mut above = above.peekable();
    if above.peek().is_none() {
        return rows;
    }
    let mut all: BTreeMap<Vec<u8>, IVec> = rows.into_iter().collect();
    for (key, row) in above {
        match row {
            Some(row) => all.insert(key.clone(), row.clone()),
            None => all.remove(key),
        };
    }
    all.into_iter().collect()
}

impl Read for View<'_> {
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<IVec>> {
        if table == Table::Events && !self.known.may_hold(key) {
            return Ok(None);
        }
        match self.recent.rows.get(table, key) {
            Some(row) => Ok(row.clone()),
            None => Ok(self.tree.get(place(table, key))?),
        }
    }

    fn rows(&self, table: Table, prefix: &[u8]) -> Result<Rows> {
        let rows = self.tree.scan_prefix(place(table, prefix));
        let rows = rows.map(|row| row.map(|(place, row)| (place[1..].to_vec(), row)));
        let rows = rows.collect::<sled::Result<_>>()?;
        Ok(lay_over(rows, self.recent.rows.range(table, prefix)))
    }
}

#[cfg(test)]
impl Base {
    /// Writes a row as it is, behind the journal's back.
    pub(super) fn put_raw(&self, table: Table, key: &[u8], row: &[u8]) {
        self.sink().unwrap();
        self.known.add(key);
        self.tree.insert(place(table, key), row).unwrap();
    }

    /// The length of the longest row.
    pub(super) fn longest_row(&self) -> usize {
        self.sink().unwrap();
        self.tree.range(..[Table::Journal as u8]).values().map(|row| row.unwrap().len()).max().unwrap_or(0)
    }

    /// How many rows of the journal are on disk.
    pub(super) fn journal_on_disk(&self) -> usize {
        rows_of(&self.tree, Table::Journal, &[]).count()
    }

    /// Removes the first rows of the journal, as a crash in the middle of a sinking does.
    pub(super) fn cut_journal(&self, count: usize) {
        for row in rows_of(&self.tree, Table::Journal, &[]).take(count) {
            self.tree.remove(row.unwrap().0).unwrap();
        }
    }

    /// Leaves the beginning of an entry in the journal, as a crash in the middle of a commit does.
    pub(super) fn tear_journal(&self) {
        let mut writes = Overlay::default();
        writes.insert(Table::Meta, b"torn".to_vec(), Some(journal::noise(20_000).into()));
        let end = self.recent().journal.end;
        for (number, part) in (end..).zip(journal::parts(&writes)).take(2) {
            self.tree.insert(place(Table::Journal, &number.to_be_bytes()), part).unwrap();
        }
    }
}
