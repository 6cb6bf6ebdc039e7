//! What moves along when a room takes the place of another one: whatever names the old one, and is still to have effect.

use ruma::{OwnedRoomId, OwnedUserId, UserId};

use super::record::{GatheredForm, LaneForm, PairForm, PairsForm, ReactedForm, ReminderForm};
use super::table::{Table, key};
use super::tx::{Read, Tx};
use super::{Result, SeatRow, Store, brake, chunk, inbox, memories, rooms, transcript};
use crate::conversation::{Lane, PersonaId};

/// The rooms of a step: the one that is over, and the one that takes its place.
type Step<'a> = (&'a OwnedRoomId, &'a OwnedRoomId);

impl Store {
    /// Moves a Persona from a room to the one that takes its place; answers how many says are dropped.
    pub async fn carry_over(
        &self,
        row: SeatRow,
        alias: Option<String>,
        user: OwnedUserId,
        from: OwnedRoomId,
    ) -> Result<u64> {
        self.write(move |tx| carry_over(tx, row, alias, (&user, &from))).await
    }
}

/// Moves a Persona from a room to the one that takes its place: her seat, what she wants to be reminded of, who is held there
/// with her, what admins said there, and from direct room to direct room all that belongs to its lane. What waits to be said by
/// her in the old one is dropped; answers how many says that were.
pub(super) fn carry_over(
    tx: &mut Tx<'_>,
    row: SeatRow,
    alias: Option<String>,
    (user, from): (&UserId, &OwnedRoomId),
) -> Result<u64> {
    let (persona, to) = (row.persona.clone(), row.room.clone());
    let step = (from, &to);
    if matches!(row.lane, Lane::Direct(_)) {
        memories::carry_over(tx, &persona, from, &to)?;
        reactions(tx, &persona, step)?;
        for table in [Table::Transcript, Table::Told] {
            lane_rows(tx, table, &persona, step)?;
        }
    }
    reminders(tx, &persona, step)?;
    pairs(tx, &persona, step)?;
    brake::follow(tx, from, &to)?;
    rooms::seat(tx, row, alias)?;
    rooms::unseat(tx, &persona, user, from)
}

fn places(persona: &PersonaId, (from, to): Step<'_>) -> [Vec<u8>; 2] {
    [from, to].map(|room| transcript::place(persona, &Lane::Direct(room.clone())))
}

/// What stands under the old direct room's lane stands under the new one's, as it is.
fn lane_rows(tx: &mut Tx<'_>, table: Table, persona: &PersonaId, step: Step<'_>) -> Result<()> {
    let [before, after] = places(persona, step);
    for (place, row) in tx.rows(table, &before)? {
        let value = chunk::join(tx, table, &place, row)?;
        tx.put_value(table, &[&after, &place[before.len()..]].concat(), &value)?;
        tx.remove(table, &place)?;
    }
    Ok(())
}

/// Reactions that she was not told yet; those know where they are gathered.
fn reactions(tx: &mut Tx<'_>, persona: &PersonaId, step: Step<'_>) -> Result<()> {
    let [before, _] = places(persona, step);
    for (_, form) in tx.records::<GatheredForm>(Table::Reactions, &before)? {
        let GatheredForm::One { event, .. } = form else { continue };
        let mut known = inbox::event(tx, &event)?;
        if let Some(reacted) = known.reacted.take() {
            let lane = LaneForm::from(&Lane::Direct(step.1.clone()));
            known.reacted = Some(ReactedForm { lane, ..reacted });
            tx.put(Table::Events, event.as_bytes(), &known)?;
        }
    }
    lane_rows(tx, Table::Reactions, persona, step)
}

fn reminders(tx: &mut Tx<'_>, persona: &PersonaId, (from, to): Step<'_>) -> Result<()> {
    for (place, form) in tx.records::<ReminderForm>(Table::Reminders, &key(persona.as_str(), &[]))? {
        if let Some(moved) = form.carried_over(from, to) {
            tx.put(Table::Reminders, &place, &moved)?;
        }
    }
    Ok(())
}

/// Whom she has woken too often there, and how often the others. That goes with the first of both, so that a person's word in
/// the new room lets both go for good.
fn pairs(tx: &mut Tx<'_>, persona: &PersonaId, (from, to): Step<'_>) -> Result<()> {
    let Some(PairsForm(old)) = tx.record(Table::Pairs, from.as_bytes())? else { return Ok(()) };
    let is_hers = |pair: &PairForm| pair.of.iter().any(|of| of == persona.as_str());
    let (hers, left): (Vec<_>, Vec<_>) = old.into_iter().partition(is_hers);
    if hers.is_empty() {
        return Ok(());
    }
    let PairsForm(mut new) = tx.record(Table::Pairs, to.as_bytes())?.unwrap_or_default();
    for pair in hers {
        match new.iter_mut().find(|known| known.of == pair.of) {
            Some(known) => {
                known.turns.extend(pair.turns);
                known.turns.sort_unstable();
                known.held = known.held.or(pair.held);
            }
            None => new.push(pair),
        }
    }
    tx.put(Table::Pairs, to.as_bytes(), &PairsForm(new))?;
    if left.is_empty() {
        return tx.remove(Table::Pairs, from.as_bytes());
    }
    tx.put(Table::Pairs, from.as_bytes(), &PairsForm(left))
}
