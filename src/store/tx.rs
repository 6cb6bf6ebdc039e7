//! Reads, and the transaction in which writes are gathered before they are committed as one.
//!
//! There is one writer at a time, so a transaction is an overlay over what is committed: what a job reads back is what
//! it, or a job before it in the same group, has written.

use std::cell::RefCell;
use std::collections::BTreeMap;

use sled::IVec;

use super::base::{self, Base};
use super::index::Change;
use super::overlay::{Overlay, Row};
use super::record::{self, HeadForm, MailForm, NumberForm, Record};
use super::table::Table;
use super::{Result, chunk};
use crate::conversation::PersonaId;

/// A transaction is passed on once it holds this much, so that no commit is much larger.
const ENOUGH: usize = 1024 * 1024;

/// Rows as they are found: key and value.
pub(super) type Rows = Vec<(Vec<u8>, IVec)>;

/// Reading, of what is committed or through a transaction.
pub(super) trait Read {
    /// The row as it lies there.
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<IVec>>;

    /// The rows whose keys begin so, as they lie there, in order.
    fn rows(&self, table: Table, prefix: &[u8]) -> Result<Rows>;

    /// The value, put together where it is in chunks.
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<IVec>> {
        let Some(row) = self.row(table, key)? else { return Ok(None) };
        chunk::join(self, table, key, row).map(Some)
    }

    /// A record.
    fn record<R: Record>(&self, table: Table, key: &[u8]) -> Result<Option<R>> {
        self.value(table, key)?.map(|bytes| record::decode(table, key, &bytes)).transpose()
    }

    /// The records whose keys begin so.
    fn records<R: Record>(&self, table: Table, prefix: &[u8]) -> Result<Vec<(Vec<u8>, R)>> {
        let rows = self.rows(table, prefix)?.into_iter();
        rows.map(|(key, row)| {
            let bytes = chunk::join(self, table, &key, row)?;
            let record = record::decode(table, &key, &bytes)?;
            Ok((key, record))
        })
        .collect()
    }

    /// A plain text of the meta table.
    fn meta(&self, name: &str) -> Result<Option<String>> {
        let Some(row) = self.row(Table::Meta, name.as_bytes())? else { return Ok(None) };
        let text = String::from_utf8(row.to_vec());
        text.map(Some).map_err(|_| record::corrupt(Table::Meta, name.as_bytes(), "not a text"))
    }
}

/// Writes that are committed as one.
pub(super) struct Tx<'a> {
    base: &'a Base,
    /// What this job has written.
    writes: Overlay,
    /// What the jobs before it have written.
    kept: Overlay,
    /// What was read of the base since the last commit; nobody else writes.
    reads: RefCell<Overlay>,
    /// What new mail means to the index, by key.
    heads: BTreeMap<Vec<u8>, Change>,
    changes: Vec<Change>,
    /// The last numbers that were given out since the last commit, and those by this job.
    numbers: BTreeMap<PersonaId, u64>,
    given: BTreeMap<PersonaId, u64>,
}

impl<'a> Tx<'a> {
    pub(super) fn new(base: &'a Base) -> Self {
        Self {
            base,
            writes: Overlay::default(),
            kept: Overlay::default(),
            reads: RefCell::default(),
            heads: BTreeMap::new(),
            changes: Vec::new(),
            numbers: BTreeMap::new(),
            given: BTreeMap::new(),
        }
    }

    /// Writes a record.
    pub(super) fn put<R: Record>(&mut self, table: Table, key: &[u8], record: &R) -> Result<()> {
        self.put_value(table, key, &record::encode(record))
    }

    /// Writes a record where there is none.
    pub(super) fn put_new<R: Record>(&mut self, table: Table, key: &[u8], record: &R) {
        let row = chunk::cut(self, table, key, &record::encode(record));
        self.write(table, key, Some(row));
    }

    /// Writes mail where there is none, and keeps its head in mind, so that the index need not read the row.
    pub(super) fn put_mail(&mut self, key: &[u8], mail: &MailForm) -> Result<()> {
        self.put_new(Table::Mail, key, mail);
        self.heads.insert(key.to_vec(), Change::mail(key, Some(HeadForm::from(mail)))?);
        Ok(())
    }

    /// Writes a value, in chunks where it is large.
    pub(super) fn put_value(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        chunk::remove(self, table, key)?;
        let row = chunk::cut(self, table, key, value);
        self.write(table, key, Some(row));
        Ok(())
    }

    /// Writes a plain text into the meta table.
    pub(super) fn put_meta(&mut self, name: &str, text: &str) {
        self.write(Table::Meta, name.as_bytes(), Some(text.into()));
    }

    /// Removes a row and what hangs on it.
    pub(super) fn remove(&mut self, table: Table, key: &[u8]) -> Result<()> {
        chunk::remove(self, table, key)?;
        self.write(table, key, None);
        Ok(())
    }

    /// Writes a row as it is.
    pub(super) fn write(&mut self, table: Table, key: &[u8], row: Row) {
        if table == Table::Mail {
            self.heads.remove(key);
        }
        self.writes.insert(table, key.to_vec(), row);
    }

    /// Counts up a number that is kept in the meta table, answering the new one.
    pub(super) fn count(&mut self, name: &str) -> Result<u64> {
        let last = self.meta(name)?.map_or(Ok(0), |text| {
            text.parse::<u64>().map_err(|_| record::corrupt(Table::Meta, name.as_bytes(), "not a number"))
        })?;
        self.put_meta(name, &(last + 1).to_string());
        Ok(last + 1)
    }

    /// Counts up a Persona's number, answering the new one. It is written down with the commit.
    pub(super) fn next_number(&mut self, persona: &PersonaId) -> Result<u64> {
        if let Some(last) = self.given.get_mut(persona) {
            *last += 1;
            return Ok(*last);
        }
        let last = match self.numbers.get(persona) {
            Some(last) => *last,
            None => {
                let place = persona.as_str().as_bytes();
                self.record::<NumberForm>(Table::Numbers, place)?.unwrap_or_default().last
            }
        };
        self.given.insert(persona.clone(), last + 1);
        Ok(last + 1)
    }

    /// Keeps what the job wrote.
    pub(super) fn keep(&mut self) {
        self.kept.append(std::mem::take(&mut self.writes));
        self.numbers.append(&mut self.given);
    }

    /// Takes back what the job wrote.
    pub(super) fn undo(&mut self) {
        self.given.clear();
        for (key, _) in self.writes.from(Table::Mail, &[]) {
            self.heads.remove(key);
        }
        self.writes = Overlay::default();
    }

    /// Commits what there is if it is much already: for the borders between things that need not be atomic together.
    pub(super) fn breathe(&mut self) -> Result<()> {
        if self.kept.size() + self.writes.size() >= ENOUGH { self.commit() } else { Ok(()) }
    }

    /// Commits what there is as one.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.keep();
        for (persona, last) in std::mem::take(&mut self.numbers) {
            self.put(Table::Numbers, persona.as_str().as_bytes(), &NumberForm { last })?;
        }
        self.keep();
        if self.kept.is_empty() {
            return Ok(());
        }
        let (mut changes, mut heads) = (Vec::new(), std::mem::take(&mut self.heads));
        for table in Change::TABLES {
            for (key, row) in self.kept.from(*table, &[]) {
                let head = (*table == Table::Mail).then(|| heads.remove(key)).flatten();
                match head {
                    Some(change) => changes.push(change),
                    None => changes.extend(Change::read(self, *table, key, row.as_ref())?),
                }
            }
        }
        self.reads.take();
        self.base.commit(std::mem::take(&mut self.kept))?;
        self.changes.append(&mut changes);
        Ok(())
    }

    /// What was committed, for the index.
    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

impl Read for Tx<'_> {
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<IVec>> {
        if let Some(row) = self.writes.get(table, key).or_else(|| self.kept.get(table, key)) {
            return Ok(row.clone());
        }
        if let Some(row) = self.reads.borrow().get(table, key) {
            return Ok(row.clone());
        }
        let row = self.base.look(|view| view.row(table, key))?;
        // That an event is new is told below as fast.
        if row.is_some() || table != Table::Events {
            self.reads.borrow_mut().insert(table, key.to_vec(), row.clone());
        }
        Ok(row)
    }

    fn rows(&self, table: Table, prefix: &[u8]) -> Result<Rows> {
        let rows = self.base.look(|view| view.rows(table, prefix))?;
        let rows = base::lay_over(rows, self.kept.range(table, prefix));
        Ok(base::lay_over(rows, self.writes.range(table, prefix)))
    }
}
