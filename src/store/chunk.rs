//! Values of any length in rows of at most [`LIMIT`] bytes.
//!
//! sled splits a leaf at 16 rows whatever their size, and a page above 128 KiB goes into a blob file: 20 rows of this
//! size stay below that, so that large values never leave the log.

use std::borrow::Cow;

use super::record;
use super::tx::{Read, Table, Tx};
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
pub(super) fn join<'a, R>(from: &R, table: Table, key: &[u8], row: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>>
where
    R: Read + ?Sized,
{
    let Some(parts) = count(&row) else { return Ok(row) };
    let mut value = Vec::new();
    for part in 0..parts {
        let chunk = from.row(Table::Chunks, &place(table, key, part))?;
        value.extend(chunk.ok_or_else(|| missing(table, key))?);
    }
    Ok(value.into())
}

fn missing(table: Table, key: &[u8]) -> StoreError {
    record::corrupt(table, key, "a chunk of it is missing")
}

/// Writes the chunks of a large value in place of those of the one before, and answers the row that stands for it.
pub(super) fn cut(tx: &mut Tx<'_>, table: Table, key: &[u8], value: Vec<u8>) -> Result<Vec<u8>> {
    remove(tx, table, key)?;
    if value.len() <= LIMIT {
        return Ok(value);
    }
    let mut parts = 0_u32;
    for chunk in value.chunks(LIMIT) {
        tx.write(Table::Chunks, &place(table, key, parts), Some(chunk.to_vec()));
        parts += 1;
    }
    Ok([&[MARK], parts.to_be_bytes().as_slice()].concat())
}

/// Removes the chunks of a value, if it has any.
pub(super) fn remove(tx: &mut Tx<'_>, table: Table, key: &[u8]) -> Result<()> {
    for part in 0..tx.row(table, key)?.as_deref().and_then(count).unwrap_or(0) {
        tx.write(Table::Chunks, &place(table, key, part), None);
    }
    Ok(())
}
