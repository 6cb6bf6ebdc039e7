//! Reads, and the transaction in which writes are gathered before sled sees them as one.
//!
//! There is one writer at a time, so a transaction is an overlay over what is committed: what a job reads back is what
//! it, or a job before it in the same group, has written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::RwLock;

use sled::transaction::{ConflictableTransactionError, TransactionError, Transactional};

use super::index::Change;
use super::record::{self, Record};
use super::{Result, StoreError, chunk};

/// A transaction is passed on once it holds this much; more would pin that much memory several times over inside sled.
const ENOUGH: usize = 1024 * 1024;

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal,)*) => {
        /// The trees of the database.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Table {
            $($(#[$doc])* $table,)*
        }

        impl Table {
            /// All of them, in the order of their discriminants.
            pub(super) const ALL: &[Self] = &[$(Self::$table,)*];

            /// The name on disk.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $name,)*
                }
            }
        }
    };
}

tables! {
    /// Plain texts: owner, format, writer, epoch, made, control room, counters.
    Meta = "meta",
    /// Event → when it was heard, by whom under which number, its edits, whether taken back.
    Events = "events",
    /// Persona, number → mail that waits or stands in her open turn.
    Mail = "mail",
    /// Words too long to stand in the row that they belong to.
    Words = "words",
    /// Persona, number → what the number stands for once its mail is gone.
    Heard = "heard",
    /// Persona, number → mail put aside, with the reason.
    Held = "held",
    /// Persona → her last number.
    Numbers = "numbers",
    /// Persona → session.
    Sessions = "sessions",
    /// Persona → open turn.
    Turns = "turns",
    /// Place → say.
    Outbox = "outbox",
    /// Request → the place where it waits, or the event it became.
    Requests = "requests",
    /// Event of ours → when.
    Ours = "ours",
    /// Key → when its says were put in.
    Once = "once",
    /// Room → alias, encryption, mark.
    Rooms = "rooms",
    /// Room, Persona → seat.
    Seats = "seats",
    /// Room, user → membership.
    Members = "members",
    /// Number → unreadable text.
    Quarantine = "quarantine",
    /// User → how she is authenticated.
    Identities = "identities",
    /// Parts of values that are too large for one row.
    Chunks = "chunks",
}

/// A key whose first part may be scanned for: the part with its length before it, then the rest.
pub(super) fn key(first: &str, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(first.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), first.as_bytes(), rest].concat()
}

/// The parts of such a key.
pub(super) fn parts(table: Table, key: &[u8]) -> Result<(String, &[u8])> {
    let read = || {
        let (length, rest) = key.split_first_chunk::<2>()?;
        let (first, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some((std::str::from_utf8(first).ok()?.to_owned(), rest))
    };
    read().ok_or_else(|| record::corrupt(table, key, "not a key of two parts"))
}

/// A number as the rest of a key or as a key: big-endian, so that order is kept.
pub(super) fn number(table: Table, rest: &[u8]) -> Result<u64> {
    let bytes = rest.try_into().map_err(|_| record::corrupt(table, rest, "not a number of 8 bytes"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// Rows as they are found: key and value.
pub(super) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Reading, of what is committed or through a transaction.
pub(super) trait Read {
    /// The row as it lies there.
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The rows whose keys begin so, as they lie there, in order.
    fn rows(&self, table: Table, prefix: &[u8]) -> Result<Rows>;

    /// The value, put together where it is in chunks.
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(row) = self.row(table, key)? else { return Ok(None) };
        Ok(Some(chunk::join(self, table, key, row.into())?.into_owned()))
    }

    /// A record.
    fn record<R: Record>(&self, table: Table, key: &[u8]) -> Result<Option<R>> {
        self.value(table, key)?.map(|bytes| record::decode(table, key, &bytes)).transpose()
    }

    /// The records whose keys begin so.
    fn records<R: Record>(&self, table: Table, prefix: &[u8]) -> Result<Vec<(Vec<u8>, R)>> {
        let rows = self.rows(table, prefix)?.into_iter();
        rows.map(|(key, row)| {
            let bytes = chunk::join(self, table, &key, row.into())?;
            let record = record::decode(table, &key, &bytes)?;
            Ok((key, record))
        })
        .collect()
    }

    /// A plain text of the meta table.
    fn meta(&self, name: &str) -> Result<Option<String>> {
        let Some(row) = self.row(Table::Meta, name.as_bytes())? else { return Ok(None) };
        let text = String::from_utf8(row);
        text.map(Some).map_err(|_| record::corrupt(Table::Meta, name.as_bytes(), "not a text"))
    }
}

/// What is committed. Readers of several rows take the gate, so that no commit comes between.
pub(super) struct Trees {
    trees: Vec<sled::Tree>,
    pub(super) db: sled::Db,
    pub(super) gate: RwLock<()>,
}

impl Trees {
    /// Opens all trees, making those that are not there.
    pub(super) fn open(db: sled::Db) -> Result<Self> {
        let trees = Table::ALL.iter().map(|table| db.open_tree(table.name())).collect::<sled::Result<_>>()?;
        Ok(Self { trees, db, gate: RwLock::new(()) })
    }

    fn tree(&self, table: Table) -> &sled::Tree {
        &self.trees[table as usize]
    }

    /// The rows of a table from a key on.
    pub(super) fn from(
        &self,
        table: Table,
        key: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + use<> {
        let rows = self.tree(table).range(key.to_vec()..);
        rows.map(|row| row.map(|(key, row)| (key.to_vec(), row.to_vec())).map_err(StoreError::from))
    }

    fn commit(&self, writes: &Overlay) -> Result<()> {
        let _gate = self.gate.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let done = self.trees.as_slice().transaction(|trees| {
            for (table, key, row) in writes.iter() {
                let tree = &trees[table];
                match row {
                    Some(row) => tree.insert(key.as_slice(), row.as_slice())?,
                    None => tree.remove(key.as_slice())?,
                };
            }
            Ok::<(), ConflictableTransactionError<()>>(())
        });
        done.map_err(|error| match error {
            TransactionError::Storage(error) => StoreError::from(error),
            TransactionError::Abort(()) => StoreError::Io("a transaction was given up".to_owned()),
        })
    }
}

impl Read for Trees {
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.tree(table).get(key)?.map(|row| row.to_vec()))
    }

    fn rows(&self, table: Table, prefix: &[u8]) -> Result<Rows> {
        let rows = self.tree(table).scan_prefix(prefix);
        rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(StoreError::from))
            .collect()
    }
}

/// A row; none where there is none.
type Row = Option<Vec<u8>>;

/// Rows of every table, by key.
struct Overlay(Vec<BTreeMap<Vec<u8>, Row>>);

impl Overlay {
    fn new() -> Self {
        Self(Table::ALL.iter().map(|_| BTreeMap::new()).collect())
    }

    fn get(&self, table: Table, key: &[u8]) -> Option<&Row> {
        self.0[table as usize].get(key)
    }

    fn insert(&mut self, table: Table, key: Vec<u8>, row: Row) -> Option<Row> {
        self.0[table as usize].insert(key, row)
    }

    /// The rows whose keys begin so.
    fn range<'a>(&'a self, table: Table, prefix: &'a [u8]) -> impl Iterator<Item = (&'a Vec<u8>, &'a Row)> {
        let rows = self.0[table as usize].range(prefix.to_vec()..);
        rows.take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// All of them, with the place of their table.
    fn iter(&self) -> impl Iterator<Item = (usize, &Vec<u8>, &Row)> {
        let tables = self.0.iter().enumerate();
        tables.flat_map(|(table, rows)| rows.iter().map(move |(key, row)| (table, key, row)))
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(BTreeMap::is_empty)
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(BTreeMap::clear);
    }
}

/// Writes that become one sled transaction.
pub(super) struct Tx<'a> {
    trees: &'a Trees,
    writes: Overlay,
    /// What was read of the database since the last commit; nobody else writes.
    reads: RefCell<Overlay>,
    size: usize,
    undo: Vec<(Table, Vec<u8>, Option<Row>)>,
    changes: Vec<Change>,
}

impl<'a> Tx<'a> {
    pub(super) fn new(trees: &'a Trees) -> Self {
        let (writes, reads) = (Overlay::new(), RefCell::new(Overlay::new()));
        Self { trees, writes, reads, size: 0, undo: Vec::new(), changes: Vec::new() }
    }

    /// Writes a record.
    pub(super) fn put<R: Record>(&mut self, table: Table, key: &[u8], record: &R) -> Result<()> {
        self.put_value(table, key, record::encode(record))
    }

    /// Writes a value, in chunks where it is large.
    pub(super) fn put_value(&mut self, table: Table, key: &[u8], value: Vec<u8>) -> Result<()> {
        let row = chunk::cut(self, table, key, value)?;
        self.write(table, key, Some(row));
        Ok(())
    }

    /// Writes a plain text into the meta table.
    pub(super) fn put_meta(&mut self, name: &str, text: &str) {
        self.write(Table::Meta, name.as_bytes(), Some(text.as_bytes().to_vec()));
    }

    /// Removes a row and what hangs on it.
    pub(super) fn remove(&mut self, table: Table, key: &[u8]) -> Result<()> {
        chunk::remove(self, table, key)?;
        self.write(table, key, None);
        Ok(())
    }

    /// Writes a row as it is.
    pub(super) fn write(&mut self, table: Table, key: &[u8], row: Option<Vec<u8>>) {
        self.size += key.len() + row.as_ref().map_or(0, Vec::len);
        let before = self.writes.insert(table, key.to_vec(), row);
        self.undo.push((table, key.to_vec(), before));
    }

    /// Counts up a number that is kept in the meta table, answering the new one.
    pub(super) fn count(&mut self, name: &str) -> Result<u64> {
        let last = self.meta(name)?.map_or(Ok(0), |text| {
            text.parse::<u64>().map_err(|_| record::corrupt(Table::Meta, name.as_bytes(), "not a number"))
        })?;
        self.put_meta(name, &(last + 1).to_string());
        Ok(last + 1)
    }

    /// Keeps what the job wrote.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// Takes back what the job wrote.
    pub(super) fn undo(&mut self) {
        while let Some((table, key, before)) = self.undo.pop() {
            let rows = &mut self.writes.0[table as usize];
            match before {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
    }

    /// Commits what there is if it is much already: for the borders between things that need not be atomic together.
    pub(super) fn breathe(&mut self) -> Result<()> {
        if self.size >= ENOUGH { self.commit() } else { Ok(()) }
    }

    /// Commits what there is in one sled transaction.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.keep();
        self.size = 0;
        if self.writes.is_empty() {
            return Ok(());
        }
        let mut changes = Vec::new();
        for table in Change::TABLES {
            for (key, row) in &self.writes.0[*table as usize] {
                changes.extend(Change::read(self, *table, key, row.as_deref())?);
            }
        }
        self.trees.commit(&self.writes)?;
        self.changes.append(&mut changes);
        self.writes.clear();
        self.reads.get_mut().clear();
        Ok(())
    }

    /// What was committed, for the index.
    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

impl Read for Tx<'_> {
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(row) = self.writes.get(table, key) {
            return Ok(row.clone());
        }
        if let Some(row) = self.reads.borrow().get(table, key) {
            return Ok(row.clone());
        }
        let row = self.trees.row(table, key)?;
        self.reads.borrow_mut().insert(table, key.to_vec(), row.clone());
        Ok(row)
    }

    fn rows(&self, table: Table, prefix: &[u8]) -> Result<Rows> {
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = self.trees.rows(table, prefix)?.into_iter().collect();
        for (key, row) in self.writes.range(table, prefix) {
            match row {
                Some(row) => rows.insert(key.clone(), row.clone()),
                None => rows.remove(key),
            };
        }
        Ok(rows.into_iter().collect())
    }
}
