//! What is counted of Personas among themselves.

use serde::{Deserialize, Serialize};

/// The pairs of Personas of a room who have woken each other there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct PairsForm(pub(in crate::store) Vec<PairForm>);

/// [`crate::persona::guard::Pair`], with whom it is of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct PairForm {
    /// Both, in order.
    pub(in crate::store) of: [String; 2],
    pub(in crate::store) turns: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) held: Option<u64>,
}

/// What a room bears of Personas.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct PaceForm {
    /// How many of their events count at most; so many times are kept.
    pub(in crate::store) most: u32,
    /// When the newest of them were sent, oldest first.
    pub(in crate::store) sent: Vec<u64>,
    /// Whether it is told that it is full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::store) full: bool,
}
