//! How many memories a Persona keeps, and which of them make way.

use std::collections::BTreeSet;

use super::recall::{is_open, standing};
use crate::conversation::{Memory, MemoryNumber, Millis};

/// The most memories of a Persona; open tasks alone may be more.
pub const MOST: usize = 2_000;

/// Those that make way so that no more than `most` are left: what counts least by itself, of equals the oldest; never an
/// open task.
pub fn surplus<'a>(
    memories: impl Iterator<Item = &'a Memory>,
    most: usize,
    now: Millis,
) -> BTreeSet<MemoryNumber> {
    let all: Vec<&Memory> = memories.collect();
    let over = all.len().saturating_sub(most);
    if over == 0 {
        return BTreeSet::new();
    }
    let mut least: Vec<(f64, MemoryNumber)> = all
        .into_iter()
        .filter(|memory| !is_open(memory))
        .map(|memory| (standing(memory, now), memory.number))
        .collect();
    least.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    least.into_iter().take(over).map(|(_, number)| number).collect()
}
