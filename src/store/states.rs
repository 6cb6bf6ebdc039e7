//! Personas' states.

use super::record::{self, StateForm};
use super::table::Table;
use super::tx::{Read, Tx};
use super::{Result, Store};
use crate::conversation::{Millis, PersonaId};
use crate::persona::State;
use crate::persona::state::{Kept, Refusal};

impl Store {
    /// A Persona's state, if she has one.
    pub fn state(&self, persona: &PersonaId) -> Result<Option<State>> {
        self.read(|view| Ok(kept(view, persona)?.map(|kept| kept.state)))
    }
    /// Writes down a Persona's first state, unless she has one; answers which she has.
    pub async fn begin_state(&self, persona: &PersonaId, first: State, now: Millis) -> Result<State> {
        let persona = persona.clone();
        self.write(move |tx| begin(tx, &persona, first, now)).await
    }
    /// Puts a document in the place of the state that it was made from; answers which she has then, and whether it is new.
    pub async fn put_state(
        &self,
        persona: &PersonaId,
        given: State,
        now: Millis,
    ) -> Result<std::result::Result<(State, bool), Refusal>> {
        let persona = persona.clone();
        self.write(move |tx| put(tx, &persona, given, now)).await
    }
}

/// The state of a Persona, if she has one.
pub(super) fn kept<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<Kept>> {
    let place = persona.as_str().as_bytes();
    let Some(form) = from.record::<StateForm>(Table::States, place)? else { return Ok(None) };
    let kept =
        form.kept().map_err(|_| record::corrupt(Table::States, place, "not the document of a state"))?;
    Ok(Some(kept))
}

/// Writes down the first state of a Persona, unless she has one; answers which she has.
pub(super) fn begin(tx: &mut Tx<'_>, persona: &PersonaId, first: State, now: Millis) -> Result<State> {
    if let Some(kept) = kept(tx, persona)? {
        return Ok(kept.state);
    }
    put_kept(tx, persona, &first.first(now))
}

/// Puts a document in the place of the one that it was made from; answers which there is then, and whether it is new.
pub(super) fn put(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    given: State,
    now: Millis,
) -> Result<std::result::Result<(State, bool), Refusal>> {
    let next = match kept(tx, persona)? {
        None => given.first(now),
        Some(kept) => match kept.put(given, now) {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(Ok((kept.state, false))),
            Err(refusal) => return Ok(Err(refusal)),
        },
    };
    Ok(Ok((put_kept(tx, persona, &next)?, true)))
}

fn put_kept(tx: &mut Tx<'_>, persona: &PersonaId, kept: &Kept) -> Result<State> {
    tx.put(Table::States, persona.as_str().as_bytes(), &StateForm::from(kept))?;
    Ok(kept.state.clone())
}
