//! Edits: new words for messages that were fed, that wait, or that were passed over.

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::inbox::{self, mail_key};
use super::record::{EventForm, KindForm, MailForm};
use super::table::Table;
use super::tx::{Read, Tx};
use super::{Result, turns};
use crate::conversation::{Delivery, PersonaId};

/// Where a message stands among others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The root of its thread.
    pub thread: Option<OwnedEventId>,
    /// The event it answers.
    pub reply_to: Option<OwnedEventId>,
}

/// Like [`inbox::deliver`], where she heard the message that is edited: in this room, of this sender, and not taken back.
pub(super) fn deliver(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    edits: &OwnedEventId,
    mail: Delivery,
) -> Result<()> {
    let mut edited = inbox::event(tx, edits)?;
    let Some(seq) = edited.heard.get(persona.as_str()) else { return Ok(()) };
    let Some(label) = inbox::label(tx, persona, *seq)? else { return Ok(()) };
    let fits = label.room == mail.room && label.sender == mail.sender;
    if !fits || edited.redacted.contains_key(&mail.room) {
        return Ok(());
    }
    if !edited.edits.contains(&mail.event) {
        edited.edits.push(mail.event.clone());
        tx.put(Table::Events, edits.as_bytes(), &edited)?;
    }
    inbox::deliver(tx, persona, mail)
}

/// Takes a message in as its edit words it, in the edit's name too: it is taken back with either.
pub(super) fn reword(
    tx: &mut Tx<'_>,
    edit: &OwnedEventId,
    persona: &PersonaId,
    mail: Delivery,
) -> Result<()> {
    let (of, room) = (mail.event.clone(), mail.room.clone());
    let mut known = inbox::event(tx, &of)?;
    let is_of_sender = said(tx, &known)?.is_some_and(|by| by == (room.clone(), mail.sender.clone()));
    if !is_of_sender {
        return Ok(());
    }
    if let Some(seq) = known.heard.get(persona.as_str()) {
        return address(tx, persona, *seq, &mail);
    }
    let mut edit_known = inbox::event(tx, edit)?;
    let is_hers = mail.addressed && !edit_known.redacted.contains_key(&room);
    if is_hers && inbox::number(tx, &mut known, persona, mail)? {
        edit_known.heard.extend(known.heard.get_key_value(persona.as_str()).map(|(k, v)| (k.clone(), *v)));
        tx.put(Table::Events, edit.as_bytes(), &edit_known)?;
        tx.put(Table::Events, of.as_bytes(), &known)?;
    }
    Ok(())
}

/// Mail that was never fed is addressed, and wakes, as its new words do.
fn address(tx: &mut Tx<'_>, persona: &PersonaId, seq: u64, anew: &Delivery) -> Result<()> {
    let place = mail_key(persona, seq);
    let Some(mut mail) = tx.record::<MailForm>(Table::Mail, &place)? else { return Ok(()) };
    if mail.fed || matches!(mail.kind, KindForm::Withdrawn) || turns::is_open(tx, persona, seq)? {
        return Ok(());
    }
    mail.address(anew.addressed, anew.wakes);
    tx.put(Table::Mail, &place, &mail)
}

/// Where a message was said and by whom, where that is known.
fn said<R: Read>(from: &R, event: &EventForm) -> Result<Option<(OwnedRoomId, OwnedUserId)>> {
    let Some((persona, seq)) = event.heard.iter().next() else { return Ok(event.passed.clone()) };
    let label = inbox::label(from, &PersonaId(persona.clone()), *seq)?;
    Ok(label.map(|label| (label.room, label.sender)))
}

/// The thread that a message stands in, and what it answers.
pub(super) fn place<R: Read>(from: &R, event: &OwnedEventId) -> Result<Place> {
    let Some((persona, seq)) = inbox::event(from, event)?.heard.into_iter().next() else {
        return Ok(Place::default());
    };
    let persona = PersonaId(persona);
    if let Some(mail) = from.record::<MailForm>(Table::Mail, &mail_key(&persona, seq))? {
        return Ok(Place { thread: mail.thread, reply_to: mail.reply_to });
    }
    let label = inbox::label(from, &persona, seq)?;
    Ok(Place { thread: label.and_then(|label| label.thread), reply_to: None })
}
