//! What is counted of Personas among themselves: their mutual turns, room by room, and what of theirs a room has borne.

use std::collections::BTreeSet;

use ruma::{OwnedRoomId, RoomId, UserId};

use super::record::{MailForm, PaceForm, PairForm, PairsForm, SayForm};
use super::table::{Table, key};
use super::tx::{Read, Tx};
use super::{Guarding, Mutual, NewSay, Pace, Result, Store, outbox};
use crate::conversation::{Millis, PersonaId};
use crate::persona::guard::Pair;

impl Store {
    /// The rooms in which a Persona is held because she and another have woken each other too often.
    pub fn held_in(&self, persona: &PersonaId) -> BTreeSet<OwnedRoomId> {
        self.index().held_in(persona)
    }
    /// What a room has borne of Personas, and how much waits there of those who may speak; none where that is not counted.
    pub fn pace(&self, room: &OwnedRoomId, may_speak: impl Fn(&UserId, &RoomId) -> bool) -> Option<Pace> {
        self.index().pace(room, may_speak)
    }
    /// Each room that is counted, or in which a Persona has something to say yet, bears so many events from now on; any number
    /// where that is none.
    pub async fn bear(&self, most: Option<u32>) -> Result<()> {
        self.write(move |tx| bear(tx, most.unwrap_or(0))).await
    }
    /// The rooms of which it is told that they are full.
    pub fn full_rooms(&self) -> Vec<OwnedRoomId> {
        self.index().full()
    }
    /// A room is full: tells so unless that is told already.
    pub async fn tell_full(
        &self,
        room: OwnedRoomId,
        notice: Option<(String, Vec<NewSay>)>,
        now: Millis,
    ) -> Result<()> {
        self.write(move |tx| is_full(tx, &room, notice, now)).await
    }
    /// A room that was full is calm, and nothing waits for it.
    pub async fn is_calm(&self, room: OwnedRoomId) -> Result<()> {
        self.write(move |tx| is_calm(tx, &room)).await
    }
}

/// Counts a turn with what woke her in it, and sets how much the rooms bear of which she speaks.
pub(super) fn ends_turn(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    guarding: Guarding,
    says: &[NewSay],
    now: Millis,
) -> Result<()> {
    let Guarding { mutual, pair, room: limit } = guarding;
    for Mutual { room, other, notice } in mutual {
        let Some(limit) = pair else { break };
        let mut of_room = pairs(tx, &room)?;
        let is_one_too_many = of_room.pair(persona, &other, |pair| pair.ends_turn(limit, now));
        if is_one_too_many && (is_asked(tx, persona, &room)? || is_asked(tx, &other, &room)?) {
            of_room.pair(persona, &other, |pair| *pair = Pair::default());
        } else if is_one_too_many {
            tracing::warn!(%room, "{persona} and {other} have woken each other too often and are held there");
            if let Some((key, says)) = notice {
                outbox::once(tx, &key, says, now)?;
            }
        }
        tx.put(Table::Pairs, room.as_bytes(), &of_room)?;
    }
    let most = limit.map_or(0, |limit| limit.most);
    says.iter().try_for_each(|say| bears(tx, say.room.as_bytes(), most))
}

/// The rooms that are counted, and those of what waits to be said, bear so many events from now on.
fn bear(tx: &mut Tx<'_>, most: u32) -> Result<()> {
    let counted = tx.rows(Table::Paces, &[])?.into_iter().map(|(room, _)| room.to_vec());
    let waiting = tx.records::<SayForm>(Table::Outbox, &[])?.into_iter();
    let waiting =
        waiting.filter(|(_, say)| say.spoken.is_some()).map(|(_, say)| say.room.as_bytes().to_vec());
    let rooms: BTreeSet<Vec<u8>> = counted.chain(waiting).collect();
    rooms.iter().try_for_each(|room| bears(tx, room, most))
}

/// Whether mail of a room waits for a Persona in which a person addresses her.
fn is_asked(tx: &Tx<'_>, persona: &PersonaId, room: &RoomId) -> Result<bool> {
    let waiting = tx.records::<MailForm>(Table::Mail, &key(persona.as_str(), &[]))?;
    Ok(waiting.iter().any(|(_, mail)| mail.room == room && mail.is_of_person_who_asks()))
}

/// A room bears so many events from now on, any number where that is none.
fn bears(tx: &mut Tx<'_>, room: &[u8], most: u32) -> Result<()> {
    let pace: Option<PaceForm> = tx.record(Table::Paces, room)?;
    if pace.as_ref().map_or(0, |pace| pace.most) == most {
        return Ok(());
    }
    if most == 0 {
        return tx.remove(Table::Paces, room);
    }
    tx.put(Table::Paces, room, &PaceForm { most, ..pace.unwrap_or_default() })
}

/// What a Persona said in a turn stands in its room.
pub(super) fn sent(tx: &mut Tx<'_>, room: &RoomId, now: Millis) -> Result<()> {
    let Some(mut pace) = tx.record::<PaceForm>(Table::Paces, room.as_bytes())? else { return Ok(()) };
    pace.sent.push(now.0);
    let most = usize::try_from(pace.most).unwrap_or(usize::MAX);
    pace.sent.drain(..pace.sent.len().saturating_sub(most));
    tx.put(Table::Paces, room.as_bytes(), &pace)
}

/// A room is full: tells so unless that is told already.
pub(super) fn is_full(
    tx: &mut Tx<'_>,
    room: &RoomId,
    notice: Option<(String, Vec<NewSay>)>,
    now: Millis,
) -> Result<()> {
    let Some(pace) = tx.record::<PaceForm>(Table::Paces, room.as_bytes())? else { return Ok(()) };
    if pace.full {
        return Ok(());
    }
    if let Some((key, says)) = notice {
        outbox::once(tx, &key, says, now)?;
    }
    tx.put(Table::Paces, room.as_bytes(), &PaceForm { full: true, ..pace })
}

/// A room that was full is calm, and nothing waits for it.
pub(super) fn is_calm(tx: &mut Tx<'_>, room: &RoomId) -> Result<()> {
    let Some(pace) = tx.record::<PaceForm>(Table::Paces, room.as_bytes())? else { return Ok(()) };
    tx.put(Table::Paces, room.as_bytes(), &PaceForm { full: false, ..pace })
}

/// A person has addressed a Persona in a room: whoever is held there with her goes on, and is counted from nothing.
pub(super) fn addressed(tx: &mut Tx<'_>, room: &OwnedRoomId, persona: &PersonaId) -> Result<()> {
    let mut of_room = pairs(tx, room)?;
    let before = of_room.0.len();
    of_room.0.retain(|pair| pair.held.is_none() || !pair.of.iter().any(|of| of == persona.as_str()));
    if of_room.0.len() == before {
        return Ok(());
    }
    if of_room.0.is_empty() {
        return tx.remove(Table::Pairs, room.as_bytes());
    }
    tx.put(Table::Pairs, room.as_bytes(), &of_room)
}

fn pairs(tx: &Tx<'_>, room: &RoomId) -> Result<PairsForm> {
    Ok(tx.record(Table::Pairs, room.as_bytes())?.unwrap_or_default())
}

impl PairsForm {
    /// Changes what is kept of two.
    fn pair<T>(&mut self, one: &PersonaId, other: &PersonaId, change: impl FnOnce(&mut Pair) -> T) -> T {
        let mut of = [one.as_str().to_owned(), other.as_str().to_owned()];
        of.sort_unstable();
        let place = self.0.iter().position(|pair| pair.of == of);
        let form = place.map(|place| self.0.swap_remove(place)).unwrap_or(PairForm {
            of: of.clone(),
            turns: Vec::new(),
            held: None,
        });
        let mut pair =
            Pair { turns: form.turns.into_iter().map(Millis).collect(), held: form.held.map(Millis) };
        let answer = change(&mut pair);
        let turns = pair.turns.iter().map(|at| at.0).collect();
        self.0.push(PairForm { of, turns, held: pair.held.map(|at| at.0) });
        answer
    }
}
