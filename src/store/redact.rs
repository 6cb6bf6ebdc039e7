//! Events that are taken back, and what was learned from them.

use ruma::{OwnedEventId, RoomId};

use super::inbox::{self, mail_key};
use super::record::{HeldForm, KindForm, LaneForm, MailForm, SpokenForm};
use super::table::Table;
use super::tx::{Read, Tx};
use super::{Result, memories, outbox, reactions, sessions, transcript, turns};
use crate::conversation::{Delivery, Millis, PersonaId};

/// Takes an event back: a reaction, or one to it, is not told any more; mail of it, and of its edits, loses its words; who may
/// have been fed it is told, and her session is tainted; so is that of who was shown it as said before her mail. What was
/// learned from it, and what is taken down of it, is forgotten; of an edit that she heard as the message itself, under that
/// message's id. Where she said it herself, it leaves what is taken down of the turn and her session is tainted; what she
/// learned in that turn stays.
///
/// Only in the room that the event stands in, whatever other rooms say. An event that comes later than its redaction
/// never becomes mail.
pub(super) fn redact(tx: &mut Tx<'_>, redacts: &OwnedEventId, notice: &Delivery, now: Millis) -> Result<()> {
    let mut event = inbox::event(tx, redacts)?;
    if event.redacted.contains_key(&notice.room) {
        return Ok(());
    }
    event.redacted.insert(notice.room.clone(), now.0);
    for event in std::iter::once(redacts).chain(&event.edits) {
        memories::unlearn(tx, event, &notice.room)?;
    }
    tx.put(Table::Events, redacts.as_bytes(), &event)?;
    if let Some(reacted) = event.reacted {
        reactions::withdraw(tx, reacted, &notice.room)?;
    }
    for (persona, seq) in event.heard {
        let persona = PersonaId(persona);
        let Some(label) = inbox::label(tx, &persona, seq)? else { continue };
        if label.room != notice.room {
            continue;
        }
        let mut fed = withdraw(tx, &persona, seq)?;
        for edit in &event.edits {
            if let Some(seq) = inbox::event(tx, edit)?.heard.get(persona.as_str()) {
                fed |= withdraw(tx, &persona, *seq)?;
            }
        }
        let mut events = [std::slice::from_ref(redacts), &event.edits].concat();
        if label.event != *redacts {
            memories::unlearn(tx, &label.event, &notice.room)?;
            events.push(label.event);
        }
        transcript::withdraw(tx, &persona, &events)?;
        if fed {
            sessions::taint(tx, &persona)?;
            inbox::deliver(tx, &persona, addressed(notice, label.lane))?;
        }
    }
    for persona in memories::shown(tx, redacts, &notice.room)? {
        sessions::taint(tx, &persona)?;
    }
    match outbox::spoken(tx, redacts)? {
        Some((room, spoken)) if room == notice.room => {
            own(tx, &room, &spoken)?;
            reactions::withdraw_to(tx, &PersonaId(spoken.persona.clone()), redacts)?;
            inbox::deliver(tx, &PersonaId(spoken.persona), addressed(notice, spoken.lane))
        }
        _ => Ok(()),
    }
}

/// What a Persona said in a room was taken back: it leaves what is taken down of the turn, and her session is tainted.
pub(super) fn own(tx: &mut Tx<'_>, room: &RoomId, spoken: &SpokenForm) -> Result<()> {
    let persona = PersonaId(spoken.persona.clone());
    transcript::withdraw_said(tx, &persona, room, spoken)?;
    sessions::taint(tx, &persona)
}

fn addressed(notice: &Delivery, lane: LaneForm) -> Delivery {
    Delivery { lane: lane.into(), ..notice.clone() }
}

/// Takes the words out of mail; answers whether she may have been fed them.
pub(super) fn withdraw(tx: &mut Tx<'_>, persona: &PersonaId, seq: u64) -> Result<bool> {
    let place = mail_key(persona, seq);
    if let Some(mut mail) = tx.record::<MailForm>(Table::Mail, &place)? {
        let before = silence(tx, &place, &mut mail)?;
        tx.put(Table::Mail, &place, &mail)?;
        return Ok(before && (mail.fed || turns::is_open(tx, persona, seq)?));
    }
    if let Some(mut held) = tx.record::<HeldForm>(Table::Held, &place)? {
        let before = silence(tx, &place, &mut held.mail)?;
        tx.put(Table::Held, &place, &held)?;
        return Ok(before);
    }
    Ok(true)
}

/// Takes the words out of a row; answers whether it had any before.
fn silence(tx: &mut Tx<'_>, place: &[u8], mail: &mut MailForm) -> Result<bool> {
    let had = !matches!(mail.kind, KindForm::Withdrawn);
    inbox::remove_words(tx, "m", place, mail.text.as_deref())?;
    mail.kind = KindForm::Withdrawn;
    mail.text = Some(String::new());
    Ok(had)
}
