//! Personas' states: the config's files are the first ones, the store has them from then on, and operators get and put them.

use super::BridgeError;
use super::orders::OrderError;
use super::shared::Shared;
use crate::conversation::{Millis, PersonaId};
use crate::persona::State;
use crate::store::Store;

/// What is asked about a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum States {
    /// The whole document.
    Get,
    /// That this document takes the place of the one from which it was made.
    Put(String),
}

/// Writes down the first states of those who have none yet; tells where a file says something else than the store.
pub(crate) async fn begin(shared: &Shared) -> Result<(), BridgeError> {
    for persona in &shared.config.personas {
        let id = &persona.persona.id;
        let Some(first) = persona.state.clone() else { continue };
        let kept = shared.store.begin_state(id, first.clone(), shared.clock.now()).await?;
        if !kept.says_as(&first) {
            let kept = kept.updated_at().unwrap_or_default();
            tracing::warn!(
                persona = %id, kept,
                "the file of her state says something else than the store, which is right: see `persona get`"
            );
        }
    }
    Ok(())
}

/// Does what is asked; answers the document, or what follows in words.
pub(crate) async fn carry_out(
    store: &Store,
    persona: &PersonaId,
    asked: &States,
    now: Millis,
) -> Result<String, OrderError> {
    match asked {
        States::Get => {
            let kept = store.state(persona)?;
            let kept = kept.ok_or_else(|| OrderError::Stateless { persona: persona.clone() })?;
            Ok(kept.text())
        }
        States::Put(document) => {
            let document = State::read(document)?;
            document.fit()?;
            let (kept, is_new) = store.put_state(persona, document, now).await??;
            let stamp = kept.updated_at().unwrap_or_default();
            Ok(match is_new {
                true => format!("the state of {persona} is of {stamp} now; her next session begins with it"),
                false => format!("the state of {persona} is the same already, of {stamp}"),
            })
        }
    }
}
