//! What is to be sent, in order, and what became of it.

use std::collections::BTreeSet;

use ruma::{EventId, OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};

use super::inbox::{put_words, remove_words, words};
use super::record::{self, OursForm, RequestForm, SayForm, SinceForm, SpokenForm};
use super::table::{self, Table};
use super::tx::{Read, Tx};
use super::{NewSay, Parking, Result, Say, Store, guard, inbox, redact};
use crate::conversation::{Millis, RequestId};

/// Each say gets this many places, so that the parts of a split one find room before the next.
const PLACES: u64 = 1 << 32;
/// How much of a key tells apart says that were put in as one.
const SLOT: usize = 4;

impl Store {
    /// The oldest unparked say of each room, in order of their places.
    pub fn outbox_heads(&self) -> Result<Vec<Say>> {
        self.heads_of(|_, _| true)
    }
    /// The same, of those who may speak there.
    pub fn heads_of(&self, may_speak: impl Fn(&UserId, &RoomId) -> bool) -> Result<Vec<Say>> {
        let heads = self.index().heads(may_speak);
        self.says(&heads)
    }
    /// The says at these places.
    pub fn says(&self, seqs: &[u64]) -> Result<Vec<Say>> {
        self.read(|view| seqs.iter().filter_map(|seq| at(view, *seq).transpose()).collect())
    }
    /// Puts says into the outbox unless `key` is done; answers whether it did.
    pub async fn say_once(&self, key: String, says: Vec<NewSay>, now: Millis) -> Result<bool> {
        self.write(move |tx| once(tx, &key, says, now)).await
    }
    /// A say is taken: its row is forgotten, its event id kept.
    pub async fn sent(&self, seq: u64, event: OwnedEventId, now: Millis) -> Result<()> {
        self.write(move |tx| sent(tx, seq, &event, now)).await
    }
    /// The event of a request that was sent.
    pub fn sent_event(&self, request: &RequestId) -> Result<Option<OwnedEventId>> {
        self.read(|view| sent_event(view, request))
    }
    /// Who of us sent an event, if one of us did.
    pub fn sent_by(&self, event: &OwnedEventId) -> Result<Option<OwnedUserId>> {
        self.read(|view| sent_by(view, event))
    }
    /// Replaces a say by smaller ones at the same place.
    pub async fn split(&self, seq: u64, parts: Vec<NewSay>, now: Millis) -> Result<()> {
        self.write(move |tx| split(tx, seq, parts, now)).await
    }
    /// Parks a say with its reason: kept, not sent, and not in the way of others.
    pub async fn park(&self, seq: u64, parking: Parking) -> Result<()> {
        self.write(move |tx| park(tx, seq, parking)).await
    }
    /// The places of the oldest say of each room that is parked because the homeserver failed on it.
    pub fn failed_heads(&self) -> Vec<u64> {
        self.index().failed_heads()
    }
    /// Lets parked says go again.
    pub async fn unpark(&self, seqs: Vec<u64>) -> Result<()> {
        self.write(move |tx| seqs.into_iter().try_for_each(|seq| unpark(tx, seq).map(drop))).await
    }
    /// Lets all parked says go again, or those of one user; answers how many.
    pub async fn release_says(&self, user: Option<OwnedUserId>) -> Result<u64> {
        self.write(move |tx| release(tx, user.as_deref())).await
    }
}

/// Puts a say in at the end, unless its request waits or was sent already.
pub(super) fn say(tx: &mut Tx<'_>, say: NewSay, now: Millis) -> Result<()> {
    put_last(tx, say, None, now)
}

/// Puts in what a Persona says in a turn.
pub(super) fn speak(tx: &mut Tx<'_>, say: NewSay, spoken: SpokenForm, now: Millis) -> Result<()> {
    put_last(tx, say, Some(spoken), now)
}

fn put_last(tx: &mut Tx<'_>, say: NewSay, spoken: Option<SpokenForm>, now: Millis) -> Result<()> {
    if !is_known(tx, &say.request)? {
        let seq = tx.count("says")?.saturating_mul(PLACES);
        put(tx, seq, (say, spoken), now)?;
    }
    Ok(())
}

fn is_known<R: Read>(from: &R, request: &RequestId) -> Result<bool> {
    Ok(from.row(Table::Requests, request.as_str().as_bytes())?.is_some())
}

fn put(tx: &mut Tx<'_>, seq: u64, (say, spoken): (NewSay, Option<SpokenForm>), now: Millis) -> Result<()> {
    tx.put(Table::Requests, say.request.as_str().as_bytes(), &RequestForm::Waits(seq))?;
    let (mut form, body) = SayForm::new(say, spoken, now);
    let place = seq.to_be_bytes();
    form.body = put_words(tx, "o", &place, body)?;
    tx.put(Table::Outbox, &place, &form)
}

/// Puts says in unless the key is done; answers whether it did.
pub(super) fn once(tx: &mut Tx<'_>, key: &str, says: Vec<NewSay>, now: Millis) -> Result<bool> {
    if tx.row(Table::Once, key.as_bytes())?.is_some() {
        return Ok(false);
    }
    tx.put(Table::Once, key.as_bytes(), &SinceForm { at: now.0 })?;
    for new in says {
        say(tx, new, now)?;
    }
    Ok(true)
}

fn remove(tx: &mut Tx<'_>, seq: u64) -> Result<Option<SayForm>> {
    let place = seq.to_be_bytes();
    let Some(form) = tx.record::<SayForm>(Table::Outbox, &place)? else { return Ok(None) };
    remove_words(tx, "o", &place, form.body.as_deref())?;
    tx.remove(Table::Outbox, &place)?;
    tx.remove(Table::Requests, form.request.as_bytes())?;
    Ok(Some(form))
}

/// A say is taken.
pub(super) fn sent(tx: &mut Tx<'_>, seq: u64, event: &OwnedEventId, now: Millis) -> Result<()> {
    if let Some(form) = remove(tx, seq)? {
        let sent = RequestForm::Sent(event.clone(), now.0);
        tx.put(Table::Requests, form.request.as_bytes(), &sent)?;
        ours(tx, event, form, now)?;
    }
    Ok(())
}

/// The echo of a request: whatever waits for it is taken.
pub(super) fn echo(tx: &mut Tx<'_>, request: &RequestId, event: &OwnedEventId, now: Millis) -> Result<()> {
    let place = request.as_str().as_bytes();
    let known = tx.record::<RequestForm>(Table::Requests, place)?;
    if let Some(RequestForm::Waits(seq)) = known
        && let Some(form) = remove(tx, seq)?
    {
        ours(tx, event, form, now)?;
    }
    if !matches!(known, Some(RequestForm::Sent(..))) {
        tx.put(Table::Requests, place, &RequestForm::Sent(event.clone(), now.0))?;
    }
    Ok(())
}

fn ours(tx: &mut Tx<'_>, event: &OwnedEventId, form: SayForm, now: Millis) -> Result<()> {
    let of = |spoken| SpokenForm { owed_to: BTreeSet::new(), ..spoken };
    let spoken = form.spoken.map(|spoken| (form.room, of(spoken)));
    if let Some((room, _)) = &spoken {
        guard::sent(tx, room, now)?;
    }
    // That it was taken back may be heard of before it is known to be ours.
    if let Some((room, spoken)) = &spoken
        && inbox::event(tx, event)?.redacted.contains_key(room)
    {
        redact::own(tx, room, spoken)?;
    }
    tx.put(Table::Ours, event.as_bytes(), &OursForm { sender: form.sender, at: now.0, spoken })
}

/// In which room and turn a Persona said an event, if one did.
pub(super) fn spoken<R: Read>(from: &R, event: &EventId) -> Result<Option<(OwnedRoomId, SpokenForm)>> {
    Ok(from.record::<OursForm>(Table::Ours, event.as_bytes())?.and_then(|ours| ours.spoken))
}

/// Who of us sent an event, if one of us did.
pub(super) fn sent_by<R: Read>(from: &R, event: &EventId) -> Result<Option<OwnedUserId>> {
    Ok(from.record::<OursForm>(Table::Ours, event.as_bytes())?.map(|ours| ours.sender))
}

/// The event that a request became.
pub(super) fn sent_event<R: Read>(from: &R, request: &RequestId) -> Result<Option<OwnedEventId>> {
    let known = from.record(Table::Requests, request.as_str().as_bytes())?;
    Ok(known.and_then(|known| match known {
        RequestForm::Sent(event, _) => Some(event),
        RequestForm::Waits(_) => None,
    }))
}

/// Replaces a say by its parts, between it and the next one. One that is not there any more is left so.
pub(super) fn split(tx: &mut Tx<'_>, seq: u64, parts: Vec<NewSay>, now: Millis) -> Result<()> {
    let place = seq.to_be_bytes();
    let in_slot = tx.rows(Table::Outbox, place.get(..SLOT).unwrap_or_default())?;
    let next = in_slot.iter().map(|(key, _)| table::number(Table::Outbox, key));
    let next = next.collect::<Result<Vec<u64>>>()?.into_iter().find(|other| *other > seq);
    let next = next.unwrap_or_else(|| (seq - seq % PLACES).saturating_add(PLACES));
    let step = (next - seq) / (parts.len() as u64 + 1);
    if step == 0 {
        return Err(record::corrupt(Table::Outbox, &place, "it was split too often"));
    }
    let Some(whole) = remove(tx, seq)? else { return Ok(()) };
    for (part, place) in parts.into_iter().zip((seq + step..next).step_by(usize::try_from(step).unwrap_or(1)))
    {
        if !is_known(tx, &part.request)? {
            put(tx, place, (part, whole.spoken.clone()), now)?;
        }
    }
    Ok(())
}

/// Parks a say.
pub(super) fn park(tx: &mut Tx<'_>, seq: u64, parking: Parking) -> Result<()> {
    let place = seq.to_be_bytes();
    let Some(mut form) = tx.record::<SayForm>(Table::Outbox, &place)? else { return Ok(()) };
    let (reason, failed) = match parking {
        Parking::Refused(reason) => (reason, false),
        Parking::Failed(reason) => (reason, true),
    };
    (form.parked, form.failed) = (Some(reason), failed);
    tx.put(Table::Outbox, &place, &form)
}

/// Lets a parked say go again; answers whether there was one.
pub(super) fn unpark(tx: &mut Tx<'_>, seq: u64) -> Result<bool> {
    let place = seq.to_be_bytes();
    let form = tx.record::<SayForm>(Table::Outbox, &place)?.filter(|form| form.parked.is_some());
    let Some(mut form) = form else { return Ok(false) };
    (form.parked, form.failed) = (None, false);
    tx.put(Table::Outbox, &place, &form)?;
    Ok(true)
}

/// Lets all parked says go again, or those of one user; answers how many.
pub(super) fn release(tx: &mut Tx<'_>, user: Option<&UserId>) -> Result<u64> {
    let mut released = 0;
    for (place, form) in tx.records::<SayForm>(Table::Outbox, &[])? {
        if user.is_none_or(|user| form.sender == user) {
            released += u64::from(unpark(tx, table::number(Table::Outbox, &place)?)?);
        }
    }
    Ok(released)
}

/// Drops what waits to be sent by a user in a room; answers how many says.
pub(super) fn drop_says(tx: &mut Tx<'_>, user: &UserId, room: &RoomId) -> Result<u64> {
    let mut dropped = 0;
    for (place, form) in tx.records::<SayForm>(Table::Outbox, &[])? {
        if form.sender == user && form.room == room {
            remove(tx, table::number(Table::Outbox, &place)?)?;
            dropped += 1;
        }
    }
    Ok(dropped)
}

/// The say at a place.
pub(super) fn at<R: Read>(from: &R, seq: u64) -> Result<Option<Say>> {
    let place = seq.to_be_bytes();
    let Some(mut form) = from.record::<SayForm>(Table::Outbox, &place)? else { return Ok(None) };
    let body = words(from, "o", &place, form.body.take())?;
    Ok(Some(form.say(seq, body)))
}
