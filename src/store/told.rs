//! What a Persona's session was told beside her mail: a row for each lane, and one for what is the same in all of them.

use super::record::{self, ToldForm, rooms_form};
use super::table::{Table, key};
use super::tx::{Read, Tx};
use super::{Result, reactions, transcript};
use crate::conversation::notices::{Facts, News, Told};
use crate::conversation::{Lane, PersonaId};

/// What a session was told in a lane; what another was told counts for nothing.
pub(super) fn told<R: Read>(from: &R, persona: &PersonaId, lane: &Lane, generation: u32) -> Result<Told> {
    let row = |place: &[u8]| -> Result<Option<ToldForm>> {
        let row = from.record::<ToldForm>(Table::Told, place)?;
        Ok(row.filter(|row| row.generation == generation))
    };
    let rooms = row(&transcript::place(persona, lane))?.and_then(|row| row.rooms).map(record::rooms);
    let common = row(&common_key(persona))?.and_then(|row| row.common).map(Into::into);
    Ok(Told { rooms, common })
}

/// A turn of the lane has told her this.
pub(super) fn put(tx: &mut Tx<'_>, persona: &PersonaId, lane: &Lane, news: News) -> Result<()> {
    let before = told(tx, persona, lane, news.generation)?;
    let News { generation, notices: _, facts: Facts { rooms, common }, reactions: share } = news;
    reactions::told(tx, persona, lane, share)?;
    if before.rooms.as_ref() != Some(&rooms) {
        let form = ToldForm { generation, rooms: Some(rooms_form(rooms)), common: None };
        tx.put(Table::Told, &transcript::place(persona, lane), &form)?;
    }
    if before.common.as_ref() != Some(&common) {
        let form = ToldForm { generation, rooms: None, common: Some(common.into()) };
        tx.put(Table::Told, &common_key(persona), &form)?;
    }
    Ok(())
}

fn common_key(persona: &PersonaId) -> Vec<u8> {
    key(persona.as_str(), &[])
}
