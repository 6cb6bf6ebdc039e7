//! Events on their way in, and the mail they become.
//!
//! An event's id decides once and for all whether it takes effect. A delivery is one row, written with its event's row,
//! so that the ear writes little; the label it leaves behind is written when the mail goes.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedUserId};
use sled::IVec;

use super::base::View;
use super::record::{self, EventForm, HeardForm, HeldForm, MailForm, OursForm, QuarantineForm, RequestForm};
use super::table::{Table, key};
use super::tx::{Read, Tx};
use super::{
    Arrival, Effect, Mark, Result, Unreadable, brake, edits, guard, index, memories, outbox, reactions,
    redact, rooms,
};
use crate::conversation::{Delivery, Millis, PersonaId};

/// Words up to this length stand in the row they belong to, so that heads are read without the words of long ones.
const INLINE: usize = 1_024;
/// The longest unreadable text that is kept.
const RAW: usize = 64 * 1_024;
/// How many rows one step of forgetting looks at.
const STEP: usize = 1_000;

/// Takes events in. The mark comes last: should a crash cut this short, what is missing comes again.
pub(super) fn accept(
    tx: &mut Tx<'_>,
    arrivals: Vec<Arrival>,
    unreadable: Vec<Unreadable>,
    mark: Option<Mark>,
    now: Millis,
) -> Result<Vec<bool>> {
    let mut new = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        new.push(arrive(tx, arrival, now)?);
        tx.breathe()?;
    }
    for unreadable in unreadable {
        quarantine(tx, unreadable, now)?;
        tx.breathe()?;
    }
    if let Some(mark) = mark {
        rooms::mark(tx, mark)?;
    }
    Ok(new)
}

/// What is known of an event.
pub(super) fn event<R: Read>(from: &R, event: &OwnedEventId) -> Result<EventForm> {
    Ok(from.record(Table::Events, event.as_bytes())?.unwrap_or_default())
}

fn arrive(tx: &mut Tx<'_>, arrival: Arrival, now: Millis) -> Result<bool> {
    let Arrival { event: id, effects } = arrival;
    let found: Option<EventForm> = tx.record(Table::Events, id.as_bytes())?;
    let mut is_row = found.is_some();
    let mut known = found.unwrap_or_default();
    if known.at.is_some() {
        return Ok(false);
    }
    known.at = Some(now.0);
    for effect in effects {
        match effect {
            // However many hear it, its row is written once.
            Effect::Deliver(persona, delivery) if delivery.event == id => {
                number(tx, &mut known, &persona, delivery)?;
            }
            Effect::Passed(room, sender) => known.passed = Some((room, sender)),
            Effect::Asks(root, personas) if root == id => known.asked = Some(names(personas)),
            effect @ (Effect::Deliver(..)
            | Effect::Asks(..)
            | Effect::Redact { .. }
            | Effect::DeliverEdit(..)
            | Effect::Reworded(..)
            | Effect::Member { .. }
            | Effect::Described { .. }
            | Effect::Upgraded { .. }
            | Effect::Encrypted(_)
            | Effect::Echo(_)
            | Effect::React(_)
            | Effect::Seat(_)
            | Effect::Unseat { .. }
            | Effect::Ask(_)
            | Effect::Steer { .. }
            | Effect::Once { .. }) => {
                tx.put(Table::Events, id.as_bytes(), &known)?;
                is_row = true;
                take_effect(tx, &id, effect, now)?;
                known = event(tx, &id)?;
            }
        }
    }
    if is_row {
        tx.put(Table::Events, id.as_bytes(), &known)?;
    } else {
        tx.put_new(Table::Events, id.as_bytes(), &known);
    }
    Ok(true)
}

fn take_effect(tx: &mut Tx<'_>, event: &OwnedEventId, effect: Effect, now: Millis) -> Result<()> {
    match effect {
        Effect::Deliver(persona, delivery) => deliver(tx, &persona, delivery),
        Effect::Asks(root, personas) => asks(tx, &root, personas),
        Effect::Redact { redacts, notice } => redact::redact(tx, &redacts, &notice, now),
        Effect::DeliverEdit(persona, edits, delivery) => edits::deliver(tx, &persona, &edits, delivery),
        Effect::Reworded(persona, delivery) => edits::reword(tx, event, &persona, delivery),
        // It is written with the row of the event itself.
        Effect::Passed(..) => Ok(()),
        Effect::Member { room, user, name, joined, at } => rooms::member(tx, &room, &user, name, joined, at),
        Effect::Described { room, is, at } => rooms::describe(tx, &room, is, Some(at)),
        Effect::Upgraded { room, to } => rooms::succeed(tx, &room, Some(to)),
        Effect::Encrypted(room) => rooms::encrypted(tx, &room),
        Effect::Echo(request) => outbox::echo(tx, &request, event, now),
        Effect::React(reacted) => reactions::gather(tx, event, reacted),
        Effect::Seat(seat) => rooms::seat(tx, seat, None),
        Effect::Unseat { persona, user, room } => rooms::unseat(tx, &persona, &user, &room).map(drop),
        Effect::Ask(question) => memories::ask(tx, &question),
        Effect::Steer { steer, telling } => brake::steer(tx, &steer, telling, now),
        Effect::Once { key, says } => outbox::once(tx, &key, says, now).map(drop),
    }
}

/// Writes down whom a thread asks, where its root came in: what is kept of it is forgotten with that.
fn asks(tx: &mut Tx<'_>, root: &OwnedEventId, personas: BTreeSet<PersonaId>) -> Result<()> {
    let mut known = event(tx, root)?;
    if known.at.is_none() {
        return Ok(());
    }
    known.asked = Some(names(personas));
    tx.put(Table::Events, root.as_bytes(), &known)
}

fn names(personas: BTreeSet<PersonaId>) -> BTreeSet<String> {
    personas.into_iter().map(|persona| persona.0).collect()
}

/// Numbers a delivery and writes it down, unless she heard the event before or it was taken back before it came.
pub(super) fn deliver(tx: &mut Tx<'_>, persona: &PersonaId, delivery: Delivery) -> Result<()> {
    let id = delivery.event.clone();
    let mut known = event(tx, &id)?;
    if number(tx, &mut known, persona, delivery)? {
        tx.put(Table::Events, id.as_bytes(), &known)?;
    }
    Ok(())
}

/// Like [`deliver`], with what is known of the event in hand; answers whether that has changed.
pub(super) fn number(
    tx: &mut Tx<'_>,
    known: &mut EventForm,
    persona: &PersonaId,
    delivery: Delivery,
) -> Result<bool> {
    if known.heard.contains_key(persona.as_str()) || known.redacted.contains_key(&delivery.room) {
        return Ok(false);
    }
    let seq = tx.next_number(persona)?;
    known.heard.insert(persona.as_str().to_owned(), seq);
    let (mut mail, text) = MailForm::new(delivery);
    if mail.is_of_person_who_asks() {
        guard::addressed(tx, &mail.room, persona)?;
    }
    let place = mail_key(persona, seq);
    mail.text = put_words(tx, "m", &place, text)?;
    tx.put_mail(&place, &mail)?;
    Ok(true)
}

/// The key of a Persona's mail.
pub(super) fn mail_key(persona: &PersonaId, seq: u64) -> Vec<u8> {
    key(persona.as_str(), &seq.to_be_bytes())
}

/// What a number stands for.
pub(super) fn label<R: Read>(from: &R, persona: &PersonaId, seq: u64) -> Result<Option<HeardForm>> {
    let place = mail_key(persona, seq);
    if let Some(mail) = from.record::<MailForm>(Table::Mail, &place)? {
        return Ok(Some(mail.label()));
    }
    from.record(Table::Heard, &place)
}

/// Who said an event that some Persona heard.
pub(super) fn said_by<R: Read>(from: &R, id: &OwnedEventId) -> Result<Option<OwnedUserId>> {
    let Some((persona, seq)) = event(from, id)?.heard.into_iter().next() else { return Ok(None) };
    Ok(label(from, &PersonaId(persona), seq)?.map(|label| label.sender))
}

/// A delivery in full.
pub(super) fn delivery<R: Read>(from: &R, persona: &PersonaId, seq: u64) -> Result<Option<Delivery>> {
    let place = mail_key(persona, seq);
    let Some(mut mail) = from.record::<MailForm>(Table::Mail, &place)? else { return Ok(None) };
    let text = words(from, "m", &place, mail.text.take())?;
    Ok(Some(mail.delivery(seq, text)))
}

/// Which of these numbers are mail that is to be shown in whole.
pub(super) fn whole<R: Read>(from: &R, persona: &PersonaId, seqs: &[u64]) -> Result<BTreeSet<u64>> {
    let mut whole = BTreeSet::new();
    for seq in seqs {
        let mail = from.record::<MailForm>(Table::Mail, &mail_key(persona, *seq))?;
        whole.extend(mail.filter(|mail| mail.whole).map(|_| *seq));
    }
    Ok(whole)
}

/// What was put aside for a Persona.
pub(super) fn held<R: Read>(from: &R, persona: &PersonaId) -> Result<Vec<(u64, HeldForm, String)>> {
    let rows = from.records::<HeldForm>(Table::Held, &key(persona.as_str(), &[]))?.into_iter();
    rows.map(|(place, mut held)| {
        let seq = super::table::number(Table::Held, super::table::parts(Table::Held, &place)?.1)?;
        let text = words(from, "m", &place, held.mail.text.take())?;
        Ok((seq, held, text))
    })
    .collect()
}

fn words_key(kind: &str, place: &[u8]) -> Vec<u8> {
    [kind.as_bytes(), place].concat()
}

/// Puts words down: short ones are handed back for the row itself, long ones get a row of their own.
pub(super) fn put_words(tx: &mut Tx<'_>, kind: &str, place: &[u8], text: String) -> Result<Option<String>> {
    if text.len() <= INLINE {
        return Ok(Some(text));
    }
    let value = [&[1], text.as_bytes()].concat();
    tx.put_value(Table::Words, &words_key(kind, place), &value)?;
    Ok(None)
}

/// Removes the words that stand in a row of their own.
pub(super) fn remove_words(tx: &mut Tx<'_>, kind: &str, place: &[u8], inline: Option<&str>) -> Result<()> {
    if inline.is_some() { Ok(()) } else { tx.remove(Table::Words, &words_key(kind, place)) }
}

/// The words of a row, wherever they stand.
pub(super) fn words<R: Read>(from: &R, kind: &str, place: &[u8], inline: Option<String>) -> Result<String> {
    if let Some(text) = inline {
        return Ok(text);
    }
    let place = words_key(kind, place);
    let wrong = || record::corrupt(Table::Words, &place, "it is missing or not a text");
    let value = from.value(Table::Words, &place)?.ok_or_else(wrong)?;
    let text = value.get(1..).ok_or_else(wrong)?;
    String::from_utf8(text.to_vec()).map_err(|_| wrong())
}

fn quarantine(tx: &mut Tx<'_>, unreadable: Unreadable, now: Millis) -> Result<()> {
    let Unreadable { mut raw, reason } = unreadable;
    raw.truncate(raw.floor_char_boundary(RAW));
    let number = tx.count(index::QUARANTINED)?;
    tx.put(Table::Quarantine, &number.to_be_bytes(), &QuarantineForm { raw, reason, at: now.0 })?;
    match number.checked_sub(index::QUARANTINE) {
        Some(oldest) => tx.remove(Table::Quarantine, &oldest.to_be_bytes()),
        None => Ok(()),
    }
}

/// Rows that can be forgotten, and where to go on looking.
pub(super) type Stale = (Vec<Vec<u8>>, Option<Vec<u8>>);

/// Looks for rows of events, of requests or of events of ours that are older than `before`, from a key on.
pub(super) fn stale(view: &View<'_>, table: Table, from: &[u8], before: Millis) -> Result<Stale> {
    let mut found = Vec::new();
    let (rows, next) = view.page(table, from, STEP)?;
    for (key, row) in rows {
        if is_stale(view, table, &key, row, before)? {
            found.push(key);
        }
    }
    Ok((found, next))
}

fn is_stale(view: &View<'_>, table: Table, key: &[u8], row: IVec, before: Millis) -> Result<bool> {
    let value = super::chunk::join(view, table, key, row)?;
    if table == Table::Requests {
        let request = record::decode(table, key, &value)?;
        return Ok(matches!(request, RequestForm::Sent(_, at) if at < before.0));
    }
    if table == Table::Ours {
        return Ok(record::decode::<OursForm>(table, key, &value)?.at < before.0);
    }
    let event: EventForm = record::decode(table, key, &value)?;
    Ok(event.at.iter().chain(event.redacted.values()).any(|at| *at < before.0))
}

/// Forgets what is older than `before`: when events came in or were taken back, and those that nobody heard altogether;
/// answers how many that were.
///
/// The marks of rooms are kept, however old: reading goes on from them.
pub(super) fn forget(tx: &mut Tx<'_>, table: Table, keys: &[Vec<u8>], before: Millis) -> Result<u64> {
    let marks = rooms::marks(tx)?;
    let mut forgotten = 0;
    for key in keys.iter().filter(|key| !marks.contains(*key)) {
        tx.breathe()?;
        if table != Table::Events {
            tx.remove(table, key)?;
            forgotten += 1;
            continue;
        }
        let Some(mut event) = tx.record::<EventForm>(table, key)? else { continue };
        if event.at.take_if(|at| *at < before.0).is_some() {
            forgotten += 1;
            event.asked = None;
            event.passed = None;
            event.reacted = None;
        }
        event.redacted.retain(|_, at| *at >= before.0);
        if event == EventForm::default() { tx.remove(table, key)? } else { tx.put(table, key, &event)? }
    }
    Ok(forgotten)
}
