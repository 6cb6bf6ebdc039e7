//! The form in which a commit's rows stand in the journal: one entry, compressed, in parts that fit into rows.
//!
//! sled writes a page several times over while rows are put into it, and the rows of a commit repeat each other's ids.

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use sled::IVec;

use super::chunk::LIMIT;
use super::overlay::Overlay;
use super::record;
use super::table::Table;
use super::{Result, StoreError};

/// The version of the form.
const VERSION: u8 = 1;

/// The bytes around a key and its row.
const FRAME: usize = 10;

/// An entry in parts, each with its place in it and how many come after it.
pub(super) fn parts(writes: &Overlay) -> Vec<Vec<u8>> {
    let mut entry = Vec::with_capacity(writes.size() + writes.iter().count() * FRAME);
    for (table, key, row) in writes.iter() {
        entry.push(table as u8);
        push(&mut entry, key);
        match row {
            Some(row) => {
                entry.push(1);
                push(&mut entry, row);
            }
            None => entry.push(0),
        }
    }
    let entry = compress_prepend_size(&entry);
    let chunks = entry.chunks(LIMIT);
    let count = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
    let head = |place: u32| [place.to_be_bytes(), (count - place - 1).to_be_bytes()].concat();
    (0..count)
        .zip(chunks)
        .map(|(place, chunk)| [&[VERSION], head(place).as_slice(), chunk].concat())
        .collect()
}

fn push(entry: &mut Vec<u8>, bytes: &[u8]) {
    entry.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    entry.extend(bytes);
}

/// What a part means to who reads the journal back.
#[derive(Debug)]
pub(super) enum Part {
    /// More of its entry is to come.
    GoesOn,
    /// The last one of its entry.
    Ends(Overlay),
    /// Its entry has lost its beginning: its rows had sunk, and it was being removed.
    Leftover,
}

/// Reads parts back, in order, until entries are whole.
#[derive(Debug, Default)]
pub(super) struct Reader {
    entry: Vec<u8>,
    /// The place of the part that comes next.
    next: u32,
}

impl Reader {
    /// Takes the next part.
    pub(super) fn take(&mut self, number: u64, part: &[u8]) -> Result<Part> {
        let key = number.to_be_bytes();
        let (version, rest) = part.split_first().ok_or_else(|| broken(&key))?;
        if *version != VERSION {
            return Err(record::corrupt(Table::Journal, &key, &format!("its form has version {version}")));
        }
        let (place, rest) = number_of(rest).ok_or_else(|| broken(&key))?;
        let (after, rest) = number_of(rest).ok_or_else(|| broken(&key))?;
        if place != self.next {
            return if self.is_within() { Err(broken(&key)) } else { Ok(Part::Leftover) };
        }
        self.entry.extend(rest);
        self.next += 1;
        if after > 0 {
            return Ok(Part::GoesOn);
        }
        self.next = 0;
        let entry = std::mem::take(&mut self.entry);
        let entry = decompress_size_prepended(&entry).map_err(|_| broken(&key))?;
        rows(&entry).map(Part::Ends).ok_or_else(|| broken(&key))
    }

    /// Whether the last entry lacks its end yet.
    pub(super) fn is_within(&self) -> bool {
        self.next > 0
    }
}

fn number_of(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn broken(key: &[u8]) -> StoreError {
    record::corrupt(Table::Journal, key, "it does not fit the part before it")
}

fn rows(mut entry: &[u8]) -> Option<Overlay> {
    let mut rows = Overlay::default();
    while let Some((table, rest)) = entry.split_first() {
        let table = *Table::ALL.get(usize::from(*table))?;
        let (key, rest) = pull(rest)?;
        let (there, rest) = rest.split_first()?;
        let (row, rest) = match there {
            0 => (None, rest),
            _ => pull(rest).map(|(row, rest)| (Some(IVec::from(row)), rest))?,
        };
        rows.insert(table, key.to_vec(), row);
        entry = rest;
    }
    Some(rows)
}

fn pull(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number_of(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// Bytes that cannot be compressed: small letters without a pattern.
#[cfg(test)]
pub(super) fn noise(length: usize) -> Vec<u8> {
    let next = |x: &u32| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 17);
        Some(x ^ (x << 5))
    };
    let numbers = std::iter::successors(Some(1_u32), next);
    numbers.map(|x| b'a' + (x % 26) as u8).take(length).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn overlay(rows: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>) -> Overlay {
        let mut overlay = Overlay::default();
        for (table, key, row) in rows {
            overlay.insert(Table::ALL[table % Table::ALL.len()], key, row.map(IVec::from));
        }
        overlay
    }

    fn texts(overlay: &Overlay) -> Vec<String> {
        overlay.iter().map(|row| format!("{row:?}")).collect()
    }

    #[test]
    fn the_form_stays_as_it_is() {
        let writes = overlay(vec![(0, b"k".to_vec(), Some(b"row".to_vec())), (2, b"gone".to_vec(), None)]);
        let golden =
            b"\x01\0\0\0\0\0\0\0\0\x18\0\0\0\xf0\x09\0\0\0\0\x01k\x01\0\0\0\x03row\x02\0\0\0\x04gone\0";
        assert_eq!(parts(&writes), [golden.to_vec()]);
    }

    #[test]
    fn an_entry_without_its_end_or_its_beginning_counts_for_nothing() {
        let writes = overlay(vec![(0, b"k".to_vec(), Some(noise(3 * LIMIT)))]);
        let all = parts(&writes);
        assert_eq!(all.len(), 4);
        let mut reader = Reader::default();
        for part in &all[1..] {
            assert!(matches!(reader.take(1, part), Ok(Part::Leftover)));
        }
        for part in &all[..3] {
            assert!(matches!(reader.take(1, part), Ok(Part::GoesOn)));
        }
        assert!(reader.is_within());
        assert!(reader.take(4, &all[1]).is_err(), "a part is missing");
    }

    #[test]
    fn another_version_is_refused() {
        let told = Reader::default().take(1, b"\x02\0\0\0\0\0\0\0\0").unwrap_err().to_string();
        assert!(told.contains("in journal cannot be read: its form has version 2"), "{told}");
    }

    proptest! {
        #[test]
        fn entries_come_back_as_they_went(
            entries in prop::collection::vec(
                prop::collection::vec(
                    (any::<usize>(), prop::collection::vec(any::<u8>(), 0..40), any::<Option<u16>>()), 1..8,
                ),
                1..4,
            )
        ) {
            let mut reader = Reader::default();
            for rows in entries {
                let rows = rows.into_iter();
                let rows = rows.map(|(table, key, row)| (table, key, row.map(|length| noise(usize::from(length)))));
                let writes = overlay(rows.collect());
                let all = parts(&writes);
                prop_assert!(all.iter().all(|part| part.len() <= LIMIT + 9));
                let (last, before) = all.split_last().unwrap();
                for part in before {
                    prop_assert!(matches!(reader.take(0, part), Ok(Part::GoesOn)));
                }
                let Ok(Part::Ends(read)) = reader.take(0, last) else { panic!("it does not end") };
                prop_assert_eq!(texts(&read), texts(&writes));
            }
        }
    }
}
