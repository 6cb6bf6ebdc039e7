//! Turns: written down before they are fed, ended by a reply or put aside.

use std::collections::BTreeSet;

use ruma::OwnedUserId;

use super::inbox::{self, mail_key};
use super::memories::{self, Worded};
use super::record::{HeldForm, Id, KindForm, MailForm, PastForm, SpokenForm, TurnForm};
use super::table::{Table, parts};
use super::tx::{Read, Tx};
use super::{Books, Commit, Result, guard, heart, ledger, outbox, reminders, sessions, told, transcript};
use crate::conversation::{MemoryNumber, Millis, PersonaId};
use crate::persona::OpenTurn;

/// The open turn of a Persona.
pub(super) fn open<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<OpenTurn>> {
    let form = from.record::<TurnForm>(Table::Turns, turn_key(persona).as_slice())?;
    Ok(form.map(OpenTurn::from))
}

/// The key of a Persona's turn: her name with its length, like every key that begins with a Persona.
fn turn_key(persona: &PersonaId) -> Vec<u8> {
    super::table::key(persona.as_str(), &[])
}

/// Whether a number stands in the open turn.
pub(super) fn is_open<R: Read>(from: &R, persona: &PersonaId, seq: u64) -> Result<bool> {
    Ok(open(from, persona)?.is_some_and(|turn| turn.seqs.contains(&seq)))
}

/// Writes down the open turn. Mail withdrawn before it could stand in any turn goes for good; an operator's word for a flush is
/// heeded with it.
pub(super) fn write(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    turn: OpenTurn,
    books: Books,
    withdrawn: Vec<u64>,
) -> Result<()> {
    for seq in withdrawn.into_iter().filter(|seq| !turn.seqs.contains(seq)) {
        let place = mail_key(persona, seq);
        let mail = tx.record::<MailForm>(Table::Mail, &place)?;
        if mail.is_some_and(|mail| matches!(mail.kind, KindForm::Withdrawn)) {
            take(tx, persona, seq)?;
        }
    }
    if turn.flush.is_some() {
        sessions::drop_flush(tx, persona)?;
    }
    heart::begun(tx, persona, &turn)?;
    book(tx, persona, books)?;
    tx.put(Table::Turns, &turn_key(persona), &TurnForm::from(turn))
}

/// Ends a turn with its reply. A turn that is not open (any more) is left alone, as is all else.
pub(super) fn commit(tx: &mut Tx<'_>, commit: Commit, makes_way: BTreeSet<MemoryNumber>) -> Result<()> {
    let Commit { persona, turn, says, guard, session, ledger, memory, pulse, show, said, hops, now, .. } =
        commit;
    let Some(open) = open(tx, &persona)?.filter(|open| open.id == turn) else {
        tracing::warn!(%persona, %turn, "a turn that is not open was to be committed");
        return Ok(());
    };
    reminders::ended(tx, &persona, &open, commit.reminders, now)?;
    has_told(tx, &persona, &open)?;
    let (mut taken, mut heard) = (Vec::new(), Vec::new());
    for seq in open.seqs {
        let again = show.contains(&seq).then(|| again(tx, &persona, seq, hops, now)).transpose()?.flatten();
        if again.is_some() {
            taken.extend(again);
        } else if let Some((place, mail)) = take(tx, &persona, seq)? {
            if said.is_some() {
                let text = inbox::words(tx, "m", &place, mail.text.clone())?;
                heard.extend(transcript::heard(&mail, &text));
            }
            inbox::remove_words(tx, "m", &place, mail.text.as_deref())?;
            taken.push(mail);
        }
    }
    if let Some(said) = said {
        let is_whole = !memories::was_taken_back(&taken);
        let said = said.into_iter().filter(|_| is_whole).map(transcript::said).collect();
        let past = PastForm {
            turn: Some(Id(turn.0)),
            generation: session.generation,
            at: now.0,
            heard,
            beside: Vec::new(),
            said,
        };
        transcript::put(tx, &persona, &open.lane, past)?;
    }
    let spoken = SpokenForm::new(&persona, &open.lane, turn, owed_to(&taken));
    if open.flush.is_none() {
        heart::ended(tx, &persona, pulse, now)?;
    }
    let worded = match open.flush {
        Some(_) => transcript::worded(tx, &persona, open.lane, session.generation, now)?,
        None => Worded::of(open.lane, &taken, session.generation, now),
    };
    memories::commit(tx, &persona, &worded, memory, makes_way)?;
    guard::ends_turn(tx, &persona, guard, &says, now)?;
    for say in says {
        outbox::speak(tx, say, spoken.clone(), now)?;
    }
    book(tx, &persona, Books { session: Some(session), ledger })?;
    tx.remove(Table::Turns, &turn_key(&persona))
}

/// The people whose mail woke her; where none or not they alone did, all people whom she heard.
fn owed_to(mail: &[MailForm]) -> BTreeSet<OwnedUserId> {
    let is_person = |mail: &&MailForm| mail.hops.is_none();
    let waking = || mail.iter().filter(|mail| mail.wakes.unwrap_or(mail.addressed));
    if waking().next().is_some() && waking().all(|mail| is_person(&mail)) {
        return waking().map(|mail| mail.sender.clone()).collect();
    }
    let is_heard = |mail: &&MailForm| !matches!(mail.kind, KindForm::Redaction(_) | KindForm::Withdrawn);
    mail.iter().filter(is_person).filter(is_heard).map(|mail| mail.sender.clone()).collect()
}

/// Lets mail of a turn with these hops wait once more, to be shown in whole, which wakes her; none where it was taken back
/// meanwhile.
fn again(tx: &mut Tx<'_>, persona: &PersonaId, seq: u64, hops: u32, now: Millis) -> Result<Option<MailForm>> {
    let place = mail_key(persona, seq);
    let mail = tx.record::<MailForm>(Table::Mail, &place)?;
    let Some(mail) = mail.filter(|mail| !matches!(mail.kind, KindForm::Withdrawn)) else { return Ok(None) };
    let mail =
        MailForm { whole: true, fed: true, wakes: Some(true), again: Some(hops), heard: now.0, ..mail };
    tx.put(Table::Mail, &place, &mail)?;
    Ok(Some(mail))
}

/// Ends a turn by putting its mail aside; what it told stays told.
pub(super) fn hold(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    turn: &OpenTurn,
    reason: &str,
    now: Millis,
    books: Books,
) -> Result<()> {
    book(tx, persona, books)?;
    has_told(tx, persona, turn)?;
    for seq in &turn.seqs {
        if let Some((place, mail)) = take(tx, persona, *seq)?
            && !matches!(mail.kind, KindForm::Withdrawn)
        {
            let held = HeldForm { reason: reason.to_owned(), turn: Id(turn.id.0), at: now.0, mail };
            tx.put(Table::Held, &place, &held)?;
        }
    }
    if turn.flush.is_none() {
        heart::ended(tx, persona, None, now)?;
    }
    reminders::put_off(tx, persona, turn, now)?;
    if open(tx, persona)?.is_some_and(|open| open.id == turn.id) {
        tx.remove(Table::Turns, &turn_key(persona))?;
    }
    Ok(())
}

/// Writes down what a turn told beside its mail.
fn has_told(tx: &mut Tx<'_>, persona: &PersonaId, turn: &OpenTurn) -> Result<()> {
    match turn.news.clone() {
        Some(news) => told::put(tx, persona, &turn.lane, news),
        None => Ok(()),
    }
}

/// Ends a turn whose mail waits again: it may have been fed. What it told stays told.
pub(super) fn put_back(tx: &mut Tx<'_>, persona: &PersonaId, turn: &OpenTurn, books: Books) -> Result<()> {
    book(tx, persona, books)?;
    has_told(tx, persona, turn)?;
    for seq in &turn.seqs {
        let place = mail_key(persona, *seq);
        if let Some(mail) = tx.record::<MailForm>(Table::Mail, &place)? {
            tx.put(Table::Mail, &place, &MailForm { fed: true, ..mail })?;
        }
    }
    if open(tx, persona)?.is_some_and(|open| open.id == turn.id) {
        tx.remove(Table::Turns, &turn_key(persona))?;
    }
    Ok(())
}

/// Puts held mail back to where mail waits, a Persona's or everybody's; answers how much.
pub(super) fn release(tx: &mut Tx<'_>, persona: Option<&PersonaId>) -> Result<u64> {
    let mut released = 0;
    let whose = persona.map(turn_key).unwrap_or_default();
    for (place, held) in tx.records::<HeldForm>(Table::Held, &whose)? {
        tx.remove(Table::Held, &place)?;
        if matches!(held.mail.kind, KindForm::Withdrawn) {
            continue;
        }
        tx.remove(Table::Heard, &place)?;
        if held.mail.is_of_person_who_asks() {
            let (of, _) = parts(Table::Held, &place)?;
            guard::addressed(tx, &held.mail.room, &PersonaId(of))?;
        }
        tx.put_mail(&place, &MailForm { fed: true, ..held.mail })?;
        released += 1;
        tx.breathe()?;
    }
    Ok(released)
}

/// Writes down what is new about a session.
pub(super) fn book(tx: &mut Tx<'_>, persona: &PersonaId, books: Books) -> Result<()> {
    if let Some(session) = books.session {
        sessions::put(tx, persona, session)?;
    }
    ledger::put(tx, books.ledger)
}

/// Takes mail out of the inbox, leaving its label; the words in a row of their own stay for who wants them.
fn take(tx: &mut Tx<'_>, persona: &PersonaId, seq: u64) -> Result<Option<(Vec<u8>, MailForm)>> {
    let place = mail_key(persona, seq);
    let Some(mail) = tx.record::<MailForm>(Table::Mail, &place)? else { return Ok(None) };
    tx.put(Table::Heard, &place, &mail.label())?;
    tx.remove(Table::Mail, &place)?;
    Ok(Some((place, mail)))
}
