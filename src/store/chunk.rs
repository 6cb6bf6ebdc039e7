//! Values of any length in rows of at most [`LIMIT`] bytes.
//!
//! sled splits a leaf at 16 rows whatever their size, and a page above 128 KiB goes into a blob file: 20 rows of this
//! size stay below that, so that large values never leave the log.

use sled::IVec;

use super::record;
use super::table::Table;
use super::tx::{Read, Tx};
use super::{Result, StoreError};

/// The longest row.
pub(super) const LIMIT: usize = 6_000;
/// The first byte of a row whose value lies in chunks; records begin with their version, which is never this.
const MARK: u8 = 0;

fn place(table: Table, key: &[u8], part: u32) -> Vec<u8> {
    [table.name().as_bytes(), &[0], key, &part.to_be_bytes()].concat()
}

fn count(row: &[u8]) -> Option<u32> {
    let (mark, rest) = row.split_first()?;
    (*mark == MARK).then(|| Some(u32::from_be_bytes(rest.try_into().ok()?)))?
}

/// Puts a value together that was cut.
pub(super) fn join<R: Read + ?Sized>(from: &R, table: Table, key: &[u8], row: IVec) -> Result<IVec> {
    let Some(parts) = count(&row) else { return Ok(row) };
    let mut value = Vec::new();
    for part in 0..parts {
        let chunk = from.row(Table::Chunks, &place(table, key, part))?;
        value.extend_from_slice(&chunk.ok_or_else(|| missing(table, key))?);
    }
    Ok(value.into())
}

fn missing(table: Table, key: &[u8]) -> StoreError {
    record::corrupt(table, key, "a chunk of it is missing")
}

/// Writes the chunks of a large value, and answers the row that stands for it. The chunks of one before are removed first.
pub(super) fn cut(tx: &mut Tx<'_>, table: Table, key: &[u8], value: &[u8]) -> IVec {
    if value.len() <= LIMIT {
        return value.into();
    }
    let mut parts = 0_u32;
    for chunk in value.chunks(LIMIT) {
        tx.write(Table::Chunks, &place(table, key, parts), Some(chunk.into()));
        parts += 1;
    }
    [&[MARK], parts.to_be_bytes().as_slice()].concat().into()
}

/// Removes the chunks of a value, if it has any.
pub(super) fn remove(tx: &mut Tx<'_>, table: Table, key: &[u8]) -> Result<()> {
    for part in 0..tx.row(table, key)?.as_deref().and_then(count).unwrap_or(0) {
        tx.write(Table::Chunks, &place(table, key, part), None);
    }
    Ok(())
}
