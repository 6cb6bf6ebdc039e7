//! How people took what Personas said, until it is told: gathered lane by lane, the first ones one by one, more of them counted.

use ruma::{OwnedEventId, OwnedRoomId, RoomId};

use super::record::{GatheredForm, LaneForm, ReactedForm};
use super::table::{Table, key, number};
use super::tx::{Read, Tx};
use super::{Result, Store, inbox, outbox, transcript};
use crate::conversation::reactions::{Reaction, Reactions, Share};
use crate::conversation::{Lane, PersonaId};

/// How many of a lane are gathered; more are counted.
const MOST: usize = 200;
/// Where those are counted that are not gathered.
const REST: u64 = u64::MAX;

/// A reaction on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reacted {
    /// The room.
    pub room: OwnedRoomId,
    /// To which event.
    pub to: OwnedEventId,
    /// What stands in it.
    pub key: String,
    /// The Personas who sit in the room, and in which lane they hear it; who reacts herself is left out.
    pub seats: Vec<(PersonaId, Lane)>,
}

impl Store {
    /// The reactions to what a Persona said in a lane that she was not told yet.
    pub fn reactions(&self, persona: &PersonaId, lane: &Lane) -> Result<Reactions> {
        self.read(|view| untold(view, persona, lane))
    }
}

fn untold<R: Read>(from: &R, persona: &PersonaId, lane: &Lane) -> Result<Reactions> {
    let mut found = Reactions::default();
    for (number, form) in rows(from, &transcript::place(persona, lane))? {
        match form {
            GatheredForm::One { event, key, .. } => {
                found.share.last = number;
                found.gathered.push(Reaction { event, key });
            }
            GatheredForm::More(more) => found.share.more = more,
        }
    }
    Ok(found)
}

/// What is gathered at a place, in order, the count of the rest behind it.
fn rows<R: Read>(from: &R, place: &[u8]) -> Result<Vec<(u64, GatheredForm)>> {
    let rows = from.records::<GatheredForm>(Table::Reactions, place)?.into_iter();
    rows.map(|(key, form)| Ok((number(Table::Reactions, &key[place.len()..])?, form))).collect()
}

/// Gathers a reaction, where it is to what a Persona who sits in the room said there, and neither was taken back.
pub(super) fn gather(tx: &mut Tx<'_>, event: &OwnedEventId, reacted: Reacted) -> Result<()> {
    let Reacted { room, to, key, seats } = reacted;
    let Some((said_in, spoken)) = outbox::spoken(tx, &to)? else { return Ok(()) };
    let Some((persona, lane)) = seats.into_iter().find(|(who, _)| who.as_str() == spoken.persona) else {
        return Ok(());
    };
    let mut known = inbox::event(tx, event)?;
    let is_back = known.redacted.contains_key(&room) || inbox::event(tx, &to)?.redacted.contains_key(&room);
    if said_in != room || is_back {
        return Ok(());
    }
    let place = transcript::place(&persona, &lane);
    let rows = rows(tx, &place)?;
    let more = rows
        .iter()
        .find_map(|(_, form)| if let GatheredForm::More(more) = form { Some(*more) } else { None });
    if rows.len() - usize::from(more.is_some()) >= MOST {
        let more = GatheredForm::More(more.unwrap_or_default() + 1);
        return tx.put(Table::Reactions, &row(&place, REST), &more);
    }
    let number = tx.count(&format!("reactions:{persona}"))?;
    tx.put(
        Table::Reactions,
        &row(&place, number),
        &GatheredForm::One { event: event.clone(), room, to, key },
    )?;
    known.reacted = Some(ReactedForm { persona: persona.0, lane: LaneForm::from(&lane), number });
    tx.put(Table::Events, event.as_bytes(), &known)
}

/// A turn of the lane has told her so much.
pub(super) fn told(tx: &mut Tx<'_>, persona: &PersonaId, lane: &Lane, share: Share) -> Result<()> {
    if share == Share::default() {
        return Ok(());
    }
    let place = transcript::place(persona, lane);
    for (number, form) in rows(tx, &place)? {
        let key = row(&place, number);
        match form {
            GatheredForm::One { .. } if number <= share.last => tx.remove(Table::Reactions, &key)?,
            GatheredForm::One { .. } => {}
            GatheredForm::More(more) if more <= share.more => tx.remove(Table::Reactions, &key)?,
            GatheredForm::More(more) => {
                tx.put(Table::Reactions, &key, &GatheredForm::More(more - share.more))?;
            }
        }
    }
    Ok(())
}

/// Takes out a reaction that was taken back in its room.
pub(super) fn withdraw(tx: &mut Tx<'_>, reacted: ReactedForm, from: &RoomId) -> Result<()> {
    let ReactedForm { persona, lane, number } = reacted;
    let key = row(&transcript::place(&PersonaId(persona), &lane.into()), number);
    let form = tx.record::<GatheredForm>(Table::Reactions, &key)?;
    match form {
        Some(GatheredForm::One { room, .. }) if room == from => tx.remove(Table::Reactions, &key),
        _ => Ok(()),
    }
}

/// Takes out the reactions to what a Persona said, which was taken back.
pub(super) fn withdraw_to(tx: &mut Tx<'_>, persona: &PersonaId, said: &OwnedEventId) -> Result<()> {
    for (place, form) in tx.records::<GatheredForm>(Table::Reactions, &key(persona.as_str(), &[]))? {
        if matches!(form, GatheredForm::One { to, .. } if to == *said) {
            tx.remove(Table::Reactions, &place)?;
        }
    }
    Ok(())
}

fn row(place: &[u8], number: u64) -> Vec<u8> {
    [place, &number.to_be_bytes()].concat()
}
