//! The shared beat, and what each Persona votes for it.

use std::collections::BTreeMap;

use super::record::{self, RhythmForm};
use super::table::{self, Table};
use super::tx::{Read, Tx};
use super::{Result, Store};
use crate::conversation::reply::Pulse;
use crate::conversation::{Millis, PersonaId};
use crate::persona::OpenTurn;
use crate::persona::heart::{Beats, Rhythm};

/// The row of the beat.
pub(super) const PACE: &str = "pace";

impl Store {
    /// How the shared beat goes on; none where none has fallen yet.
    pub fn beats(&self) -> Result<Option<Beats>> {
        self.read(|view| pace(view))
    }
    /// Writes down how it goes on.
    pub async fn set_beats(&self, pace: Beats) -> Result<()> {
        self.write(move |tx| {
            put_pace(tx, &pace);
            Ok(())
        })
        .await
    }
    /// What Personas have voted for it, and when their last turns ended.
    pub fn rhythms(&self) -> Result<BTreeMap<PersonaId, Rhythm>> {
        self.read(|view| rhythms(view))
    }
}

/// How the beat goes on; none where none has fallen yet.
pub(super) fn pace<R: Read>(from: &R) -> Result<Option<Beats>> {
    from.meta(PACE)?.map(|text| record::pace(&text)).transpose()
}

/// Writes down how it goes on.
pub(super) fn put_pace(tx: &mut Tx<'_>, pace: &Beats) {
    tx.put_meta(PACE, &record::pace_text(pace));
}

/// What everybody has voted, and when their last turns ended.
pub(super) fn rhythms<R: Read>(from: &R) -> Result<BTreeMap<PersonaId, Rhythm>> {
    let rows = from.records::<RhythmForm>(Table::Rhythms, &[])?.into_iter();
    rows.map(|(key, form)| Ok((PersonaId(table::parts(Table::Rhythms, &key)?.0), form.into()))).collect()
}

/// A turn is written down: what a beat granted is used up by it.
pub(super) fn begun(tx: &mut Tx<'_>, persona: &PersonaId, turn: &OpenTurn) -> Result<()> {
    let Some(pace) = pace(tx)? else { return Ok(()) };
    if pace.grant.as_ref().is_some_and(|grant| grant.is_used_by(persona, turn)) {
        put_pace(tx, &Beats { grant: None, ..pace });
    }
    Ok(())
}

/// A turn is over, with her pulse if she gave one.
pub(super) fn ended(tx: &mut Tx<'_>, persona: &PersonaId, pulse: Option<Pulse>, now: Millis) -> Result<()> {
    let key = table::key(persona.as_str(), &[]);
    let before = tx.record::<RhythmForm>(Table::Rhythms, &key)?.map(Rhythm::from).unwrap_or_default();
    let after = Rhythm { ended: Some(now), ..before.voting(pulse, now) };
    tx.put(Table::Rhythms, &key, &RhythmForm::from(after))
}
