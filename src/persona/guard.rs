//! What keeps Personas among themselves from running away: how far they wake each other, how often, and how much a room
//! bears.

use std::time::Duration;

/// How far Personas go on among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Among {
    /// From how many hops on a Persona's line wakes nobody.
    pub max_hops: u32,
    /// How many mutual turns two Personas may have in a room; none for any number.
    pub pair: Option<Limit>,
    /// How many events of Personas a room bears; none for any number.
    pub room: Option<Limit>,
}

impl Default for Among {
    fn default() -> Self {
        let limit = |most| Some(Limit { most, within: Duration::from_secs(600) });
        Self { max_hops: 3, pair: limit(20), room: limit(30) }
    }
}

/// So many within any span of so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub most: u32,
    /// How long the span is.
    pub within: Duration,
}
