//! Rows in memory that lie over those of the database.

use std::collections::BTreeMap;

use sled::IVec;

use super::table::Table;

/// A row; none where there is none.
pub(super) type Row = Option<IVec>;

/// Rows of every table, by key.
#[derive(Debug)]
pub(super) struct Overlay {
    tables: Vec<BTreeMap<Vec<u8>, Row>>,
    size: usize,
}

impl Default for Overlay {
    fn default() -> Self {
        Self { tables: Table::ALL.iter().map(|_| BTreeMap::new()).collect(), size: 0 }
    }
}

impl Overlay {
    /// What lies over a row, if anything.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<&Row> {
        self.tables[table as usize].get(key)
    }

    /// Lays a row over.
    pub(super) fn insert(&mut self, table: Table, key: Vec<u8>, row: Row) {
        let keys = key.len();
        self.size += keys + length(&row);
        if let Some(before) = self.tables[table as usize].insert(key, row) {
            self.size -= keys + length(&before);
        }
    }

    /// The rows of a table from a key on.
    pub(super) fn from(&self, table: Table, key: &[u8]) -> impl Iterator<Item = (&Vec<u8>, &Row)> {
        self.tables[table as usize].range(key.to_vec()..)
    }

    /// The rows whose keys begin so.
    pub(super) fn range<'a>(
        &'a self,
        table: Table,
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a Vec<u8>, &'a Row)> {
        self.from(table, prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Table, &Vec<u8>, &Row)> {
        let tables = Table::ALL.iter().zip(&self.tables);
        tables.flat_map(|(table, rows)| rows.iter().map(move |(key, row)| (*table, key, row)))
    }

    /// Lays all of another one over this.
    pub(super) fn append(&mut self, above: Self) {
        if self.is_empty() {
            *self = above;
            return;
        }
        for (table, rows) in Table::ALL.iter().zip(above.tables) {
            for (key, row) in rows {
                self.insert(*table, key, row);
            }
        }
    }

    /// The bytes of all keys and rows.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.tables.iter().all(BTreeMap::is_empty)
    }
}

fn length(row: &Row) -> usize {
    row.as_ref().map_or(0, |row| row.len())
}
