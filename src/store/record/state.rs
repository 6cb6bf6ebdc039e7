//! Personas' states.

use serde::{Deserialize, Serialize};

use crate::conversation::Millis;
use crate::persona::state::{Kept, Malformed, State};

/// [`Kept`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct StateForm {
    document: String,
    at: u64,
}

impl From<&Kept> for StateForm {
    fn from(kept: &Kept) -> Self {
        Self { document: kept.state.text(), at: kept.at.0 }
    }
}

impl StateForm {
    /// The state of this row.
    pub(in crate::store) fn kept(&self) -> Result<Kept, Malformed> {
        Ok(Kept { state: State::read(&self.document)?, at: Millis(self.at) })
    }
}
