//! What tests of the store do behind its back.

use crate::store::Store;
use crate::store::table::Table;

impl Store {
    /// The length of the longest row.
    pub(in crate::store) fn longest_row(&self) -> usize {
        self.shared.base.longest_row()
    }

    /// Overwrites a row of the meta table.
    pub(in crate::store) fn set_meta(&self, name: &str, text: &str) {
        self.shared.base.put_raw(Table::Meta, name.as_bytes(), text.as_bytes());
    }

    /// Makes a row unreadable.
    pub(in crate::store) fn break_row(&self, table: Table, key: &str) {
        self.shared.base.put_raw(table, key.as_bytes(), b"\x01{");
    }

    /// Lets all that is recent sink, and learns which events the tree has to the end.
    pub(in crate::store) fn sink_and_learn(&self) {
        self.shared.base.sink().unwrap();
        let mut next = Some(Vec::new());
        while let Some(from) = next {
            next = self.shared.base.learn(&from).unwrap();
        }
    }

    /// How many rows of the journal are on disk.
    pub(in crate::store) fn journal(&self) -> usize {
        self.shared.base.journal_on_disk()
    }

    /// Lets what is recent sink, and removes the first rows of the journal, as a crash at the next sinking does.
    pub(in crate::store) fn sink_and_cut_journal(&self, count: usize) {
        self.shared.base.sink().unwrap();
        self.shared.base.cut_journal(count);
    }

    /// Leaves the beginning of an entry in the journal, as a crash in the middle of a commit does.
    pub(in crate::store) fn tear_journal(&self) {
        self.shared.base.tear_journal();
    }

    /// Makes flushes fail.
    pub(in crate::store) fn lose_blobs(&self) {
        self.shared.disk.move_blobs("blobs", "lost");
    }

    /// Makes flushes work again.
    pub(in crate::store) fn find_blobs(&self) {
        self.shared.disk.move_blobs("lost", "blobs");
    }
}
