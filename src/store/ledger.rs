//! The ledger: what sessions used, in order of time.

use super::base::View;
use super::record::EntryForm;
use super::table::{Table, number};
use super::tx::Tx;
use super::{Result, Store, chunk, record};
use crate::conversation::Millis;
use crate::persona::session::Entry;

/// Rows that are read at a time.
const STEP: usize = 1_000;

impl Store {
    /// The ledger from a time on, oldest first.
    pub fn ledger(&self, since: Millis) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut from = Some(since.0.to_be_bytes().to_vec());
        while let Some(key) = from {
            from = self.read(|view| page(view, &key, &mut entries))?;
        }
        Ok(entries)
    }
    /// Forgets what the ledger holds of before a time; answers how many entries.
    pub async fn prune_ledger(&self, before: Millis) -> Result<u64> {
        let mut forgotten = 0;
        loop {
            let keys = self.read(|view| self::before(view, before))?;
            if keys.is_empty() {
                return Ok(forgotten);
            }
            forgotten += self.write(move |tx| forget(tx, &keys)).await?;
        }
    }
}

/// Writes entries down, behind those of the same time.
pub(super) fn put(tx: &mut Tx<'_>, entries: Vec<Entry>) -> Result<()> {
    for entry in entries {
        let count = tx.count("ledger")?;
        let key = [entry.at.0.to_be_bytes(), count.to_be_bytes()].concat();
        tx.put_new(Table::Ledger, &key, &EntryForm::from(entry));
    }
    Ok(())
}

/// Gathers entries from a key on; answers from which key it goes on.
pub(super) fn page(view: &View<'_>, from: &[u8], entries: &mut Vec<Entry>) -> Result<Option<Vec<u8>>> {
    let (rows, next) = view.page(Table::Ledger, from, STEP)?;
    for (key, row) in rows {
        let bytes = chunk::join(view, Table::Ledger, &key, row)?;
        entries.push(record::decode::<EntryForm>(Table::Ledger, &key, &bytes)?.into());
    }
    Ok(next)
}

/// The keys of the oldest entries before a time, some at once.
pub(super) fn before(view: &View<'_>, before: Millis) -> Result<Vec<Vec<u8>>> {
    let (rows, _) = view.page(Table::Ledger, &[], STEP)?;
    let mut keys = Vec::new();
    for (key, _) in rows {
        if number(Table::Ledger, &key[..key.len().min(8)])? >= before.0 {
            break;
        }
        keys.push(key);
    }
    Ok(keys)
}

/// Forgets entries.
pub(super) fn forget(tx: &mut Tx<'_>, keys: &[Vec<u8>]) -> Result<u64> {
    for key in keys {
        tx.remove(Table::Ledger, key)?;
    }
    Ok(keys.len() as u64)
}

/// Entries as JSON, for another process of ours.
pub fn entries_to_json(entries: Vec<Entry>) -> serde_json::Value {
    let forms: Vec<EntryForm> = entries.into_iter().map(EntryForm::from).collect();
    serde_json::to_value(forms).unwrap_or_default()
}

/// Entries out of what [`entries_to_json`] made; none where it is something else.
pub fn entries_from_json(json: serde_json::Value) -> Option<Vec<Entry>> {
    let forms: Vec<EntryForm> = serde_json::from_value(json).ok()?;
    Some(forms.into_iter().map(Entry::from).collect())
}
