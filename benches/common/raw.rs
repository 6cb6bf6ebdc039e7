//! The least that durable appending costs: sled alone with the store's durable flush.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A database with a log of records and nothing else.
pub(crate) struct Raw {
    db: sled::Db,
    file: File,
    next: AtomicU64,
}

impl Raw {
    pub(crate) fn open(folder: &Path) -> Self {
        let config = sled::Config::new().path(folder).cache_capacity(16 << 20).flush_every_ms(None);
        let db = config.open().expect("sled opens a new folder");
        let file = File::open(folder.join("db")).expect("sled's file");
        Self { db, file, next: AtomicU64::new(0) }
    }

    /// Appends records and flushes them durably, as the store does: sled's flush, then a sync of its file.
    pub(crate) fn append(&self, records: &[String]) {
        for record in records {
            let key = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            self.db.insert(key, record.as_bytes()).expect("sled inserts");
        }
        self.db.flush().expect("sled flushes");
        self.file.sync_all().expect("the file is synced");
    }
}
