//! What Personas heard and said last, by lane: for a session that may lose its file.
//!
//! Nothing of a lane is ever read for another one, and what is taken back goes at once.

use std::collections::BTreeMap;

use ruma::{OwnedEventId, OwnedRoomId, RoomId};

use super::base::View;
use super::memories::Worded;
use super::record::{self, HeardLineForm, KindForm, MailForm, PastForm, SaidLineForm, SpokenForm};
use super::table::{Table, key};
use super::tx::{Read, Tx};
use super::{Result, Store, chunk, inbox, sessions};
use crate::conversation::past::PastTurn;
use crate::conversation::{Lane, Millis, PersonaId};

/// How many turns of a lane are kept.
const TURNS: usize = 20;
/// How many lines of a turn are, and how many bytes of each.
const LINES: usize = 20;
const BYTES: usize = 2 * 1024;
/// How many rows one step of forgetting looks at.
const STEP: usize = 1_000;

impl Store {
    /// What a Persona heard and said in a lane last, since a time, oldest first.
    pub fn past(&self, persona: &PersonaId, lane: &Lane, since: Millis) -> Result<Vec<PastTurn>> {
        self.read(|view| turns(view, persona, lane, since))
    }
    /// Forgets what was heard and said before a time; answers how many turns.
    pub async fn prune_past(&self, before: Millis) -> Result<u64> {
        let (mut from, mut forgotten) = (Some(Vec::new()), 0);
        while let Some(key) = from {
            let (stale, next) = self.read(|view| stale(view, &key, before))?;
            if !stale.is_empty() {
                forgotten += self.write(move |tx| forget(tx, &stale)).await?;
            }
            from = next;
        }
        Ok(forgotten)
    }
}

/// A line that was heard; none where nothing was said by it.
pub(super) fn heard(mail: &MailForm, text: &str) -> Option<HeardLineForm> {
    let is_said = !matches!(mail.kind, KindForm::Redaction(_) | KindForm::Withdrawn);
    is_said.then(|| HeardLineForm {
        event: mail.event.clone(),
        room: mail.room.clone(),
        sender: mail.sender.clone(),
        name: mail.name.clone(),
        text: cut(text),
        said: mail.said,
    })
}

/// A line that she said.
pub(super) fn said((room, text): (OwnedRoomId, String)) -> SaidLineForm {
    SaidLineForm { room, text: cut(&text) }
}

fn cut(text: &str) -> String {
    // What is cut keeps a character more than is shown, by which it is told.
    text[..text.ceil_char_boundary(BYTES + 1)].to_owned()
}

/// Takes a turn down as the lane's newest; the oldest goes.
pub(super) fn put(tx: &mut Tx<'_>, persona: &PersonaId, lane: &Lane, mut turn: PastForm) -> Result<()> {
    let older = turn.heard.drain(..turn.heard.len().saturating_sub(LINES));
    turn.beside = older.map(|line| (line.event, line.room)).collect();
    turn.said.truncate(LINES);
    let place = place(persona, lane);
    let before = tx.rows(Table::Transcript, &place)?;
    for (old, _) in &before[..(before.len() + 1).saturating_sub(TURNS)] {
        tx.remove(Table::Transcript, old)?;
    }
    let number = tx.count(&format!("transcript:{persona}"))?;
    tx.put_new(Table::Transcript, &[place.as_slice(), &number.to_be_bytes()].concat(), &turn);
    Ok(())
}

/// The turns of a lane since a time, oldest first.
pub(super) fn turns<R: Read>(
    from: &R,
    persona: &PersonaId,
    lane: &Lane,
    since: Millis,
) -> Result<Vec<PastTurn>> {
    let turns = from.records::<PastForm>(Table::Transcript, &place(persona, lane))?.into_iter();
    Ok(turns.filter(|(_, turn)| turn.at >= since.0).map(|(_, turn)| turn.into()).collect())
}

/// A turn without mail, in which she words what she has heard in the lane in this generation, as far as it is taken down.
pub(super) fn worded(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    lane: Lane,
    generation: u32,
    now: Millis,
) -> Result<Worded> {
    let turns = tx.records::<PastForm>(Table::Transcript, &place(persona, &lane))?;
    let turns = turns.into_iter().map(|(_, turn)| turn).filter(|turn| turn.generation == generation);
    let (mut heard, mut sources) = (Vec::new(), BTreeMap::new());
    for turn in turns {
        sources.extend(turn.beside);
        sources.extend(turn.heard.iter().map(|line| (line.event.clone(), line.room.clone())));
        heard.extend(turn.heard);
    }
    let is_intact = sessions::tainted(tx, persona)? != Some(generation);
    Ok(Worded {
        lane,
        told_by: heard.into_iter().map(|line: HeardLineForm| line.sender).collect(),
        sources,
        is_intact,
        generation,
        now,
    })
}

/// Forgets the words of events that were taken back, and what she said to them, in whichever lane they stand by now.
pub(super) fn withdraw(tx: &mut Tx<'_>, persona: &PersonaId, events: &[OwnedEventId]) -> Result<()> {
    for (place, mut turn) in tx.records::<PastForm>(Table::Transcript, &key(persona.as_str(), &[]))? {
        let before = (turn.heard.len(), turn.beside.len());
        turn.heard.retain(|line| !events.contains(&line.event));
        turn.beside.retain(|(event, _)| !events.contains(event));
        if (turn.heard.len(), turn.beside.len()) != before {
            turn.said.clear();
            tx.put(Table::Transcript, &place, &turn)?;
        }
    }
    Ok(())
}

/// Forgets what she said in a room in a turn.
pub(super) fn withdraw_said(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    room: &RoomId,
    spoken: &SpokenForm,
) -> Result<()> {
    for (place, mut past) in tx.records::<PastForm>(Table::Transcript, &key(persona.as_str(), &[]))? {
        let before = past.said.len();
        if past.turn.is_some_and(|turn| turn.0 == spoken.turn.0) {
            past.said.retain(|line| line.room != room);
        }
        if past.said.len() < before {
            tx.put(Table::Transcript, &place, &past)?;
        }
    }
    Ok(())
}

/// Turns of before a time, from a key on, and where to go on looking.
pub(super) fn stale(view: &View<'_>, from: &[u8], before: Millis) -> Result<inbox::Stale> {
    let (rows, next) = view.page(Table::Transcript, from, STEP)?;
    let mut found = Vec::new();
    for (key, row) in rows {
        let bytes = chunk::join(view, Table::Transcript, &key, row)?;
        let turn: PastForm = record::decode(Table::Transcript, &key, &bytes)?;
        if turn.at < before.0 {
            found.push(key);
        }
    }
    Ok((found, next))
}

/// Forgets turns; answers how many.
pub(super) fn forget(tx: &mut Tx<'_>, places: &[Vec<u8>]) -> Result<u64> {
    for place in places {
        tx.remove(Table::Transcript, place)?;
        tx.breathe()?;
    }
    Ok(places.len() as u64)
}

/// The key of what belongs to a Persona's lane.
pub(super) fn place(persona: &PersonaId, lane: &Lane) -> Vec<u8> {
    let lane = match lane {
        Lane::Register(name) => format!("r{name}"),
        Lane::Direct(room) => format!("d{room}"),
    };
    key(persona.as_str(), &key(&lane, &[]))
}
