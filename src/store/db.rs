//! The store as others see it: each verb is one job of a group, each read one look behind the gate. The verbs of one concept stand
//! with it (rooms, outbox, ledger and others); here are those of mail and turns, and what all of them go through.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLockReadGuard};
use std::time::Duration;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use uuid::Uuid;

use super::base::View;
use super::flush::Durability;
use super::index::Index;
use super::open::Shared;
use super::table::Table;
use super::tx::{Read, Tx};
use super::{
    Arrival, Books, Commit, Config, Counts, Heard, HeldRow, Mark, Opening, Place, Remembering, Result, Size,
    Standing, StoreError, Unreadable, Waiting,
};
use super::{compact, edits, group, inbox, memories, record, redact, sessions, told, turns};
use crate::conversation::notices::Told;
use crate::conversation::{Delivery, Lane, MemoryNumber, Millis, PersonaId, TurnId};
use crate::persona::memory::{MOST, surplus};
use crate::persona::{LaneMail, OpenTurn};

/// The row of the control room.
const CONTROL_ROOM: &str = "control_room";
/// The row of the brake.
pub(super) const BRAKE: &str = "brake";

/// The store; clones share it. Where the engine failed once, every later write fails too.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    /// The question that what is written carries out.
    heeds: Option<OwnedEventId>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("epoch", &self.shared.epoch).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store, making it where there is none. Blocks; call before the runtime or in `spawn_blocking`.
    pub fn open(config: &Config, opening: Opening) -> Result<Self> {
        Self::open_with(config, opening, Durability::Synced)
    }
    /// Opens the store with less than a durable flush, to show that it would lose records.
    #[doc(hidden)]
    pub fn open_with(config: &Config, opening: Opening, durability: Durability) -> Result<Self> {
        let shared = Arc::new(Shared::open(config, &opening, durability)?);
        learn(&shared)?;
        Ok(Self { shared, heeds: None })
    }
    /// The epoch drawn when the store was made.
    pub fn epoch(&self) -> Uuid {
        self.shared.epoch
    }
    /// When the store was made.
    pub fn made(&self) -> Millis {
        self.shared.made
    }
    /// Whether there is room to accept (hysteresis of `min_free`); asks the file system.
    pub fn accepts(&self) -> Result<bool> {
        self.shared.accepts()
    }
    /// The bot's control room.
    pub fn control_room(&self) -> Result<Option<OwnedRoomId>> {
        let room = self.read(|view| view.meta(CONTROL_ROOM))?.map(OwnedRoomId::try_from);
        room.transpose().map_err(|_| record::corrupt(Table::Meta, CONTROL_ROOM.as_bytes(), "not a room id"))
    }
    /// Ties the store to its control room.
    pub async fn set_control_room(&self, room: OwnedRoomId) -> Result<()> {
        self.write(move |tx| {
            tx.put_meta(CONTROL_ROOM, room.as_str());
            Ok(())
        })
        .await
    }

    /// Takes events in: those seen before are dropped, the rest take effect; with `mark`, the room's checked mark moves in
    /// the same transaction. Answers which arrivals were new.
    pub async fn accept(
        &self,
        arrivals: Vec<Arrival>,
        unreadable: Vec<Unreadable>,
        mark: Option<Mark>,
        now: Millis,
    ) -> Result<Vec<bool>> {
        self.write(move |tx| inbox::accept(tx, arrivals, unreadable, mark, now)).await
    }
    /// Whether an event was seen.
    pub fn knows(&self, event: &OwnedEventId) -> Result<bool> {
        self.read(|view| Ok(inbox::event(view, event)?.at.is_some()))
    }
    /// How many unreadable events are kept.
    pub fn quarantined(&self) -> u64 {
        self.index().quarantined()
    }
    /// Forgets event ids older than the time; answers how many.
    pub async fn prune(&self, before: Millis) -> Result<u64> {
        let forgotten = self.forget(Table::Events, before).await?;
        self.forget(Table::Requests, before).await?;
        Ok(forgotten)
    }

    /// Forgets who of us sent what is older than the time; answers how many events.
    pub async fn prune_ours(&self, before: Millis) -> Result<u64> {
        self.forget(Table::Ours, before).await
    }

    /// What a session of a Persona was told in a lane beside her mail.
    pub fn told(&self, persona: &PersonaId, lane: &Lane, generation: u32) -> Result<Told> {
        self.read(|view| told::told(view, persona, lane, generation))
    }

    /// The heads of the mail waiting for a Persona outside her open turn, by number.
    pub fn waiting(&self, persona: &PersonaId) -> Result<Vec<Waiting>> {
        Ok(self.index().waiting(persona))
    }
    /// The lanes of that mail, as far as its rooms are ready, where a Persona's line that has come so far is no cause; kept up to date as mail comes, however much waits.
    pub fn lanes(
        &self,
        persona: &PersonaId,
        max_hops: u32,
        ready: impl Fn(&OwnedRoomId) -> bool,
    ) -> Result<Vec<LaneMail>> {
        Ok(self.index().lanes(persona, max_hops, ready))
    }
    /// Which of these numbers are mail that is to be shown in whole.
    pub fn whole(&self, persona: &PersonaId, seqs: &[u64]) -> Result<BTreeSet<u64>> {
        self.read(|view| inbox::whole(view, persona, seqs))
    }
    /// Deliveries in full, by number; withdrawn ones are marked so.
    pub fn deliveries(&self, persona: &PersonaId, seqs: &[u64]) -> Result<Vec<Delivery>> {
        self.read(|view| {
            let found = seqs.iter().filter_map(|seq| inbox::delivery(view, persona, *seq).transpose());
            found.collect()
        })
    }
    /// What a number stands for, also after its mail is gone.
    pub fn heard(&self, persona: &PersonaId, seq: u64) -> Result<Option<Heard>> {
        self.read(|view| Ok(inbox::label(view, persona, seq)?.map(|label| label.heard(seq))))
    }
    /// The Persona's number for an event she heard.
    pub fn number_of(&self, persona: &PersonaId, event: &OwnedEventId) -> Result<Option<u64>> {
        self.read(|view| Ok(inbox::event(view, event)?.heard.get(persona.as_str()).copied()))
    }
    /// Who said an event that some Persona heard.
    pub fn said_by(&self, event: &OwnedEventId) -> Result<Option<OwnedUserId>> {
        self.read(|view| inbox::said_by(view, event))
    }
    /// The thread that a message which some Persona heard stands in, and what it answers, as far as that is kept.
    pub fn place_of(&self, event: &OwnedEventId) -> Result<Place> {
        self.read(|view| edits::place(view, event))
    }
    /// Whom the thread with that root asked last; none where it has turned to nobody yet.
    pub fn asked(&self, root: &OwnedEventId) -> Result<Option<BTreeSet<PersonaId>>> {
        let of = |names: BTreeSet<String>| names.into_iter().map(PersonaId).collect();
        self.read(|view| Ok(inbox::event(view, root)?.asked.map(of)))
    }
    /// The open turn and session of a Persona.
    pub fn standing(&self, persona: &PersonaId) -> Result<Standing> {
        self.read(|view| Ok((turns::open(view, persona)?, sessions::session(view, persona)?)))
    }
    /// Writes the open turn (and with it what is new about the session), before anything is fed.
    pub async fn write_turn(&self, persona: &PersonaId, turn: OpenTurn, books: Books) -> Result<()> {
        let withdrawn = self.index().withdrawn(persona);
        let persona = persona.clone();
        self.write(move |tx| turns::write(tx, &persona, turn, books, withdrawn)).await
    }
    /// Writes down what is new about a session, beside any turn.
    pub async fn book(&self, persona: &PersonaId, books: Books) -> Result<()> {
        let persona = persona.clone();
        self.write(move |tx| turns::book(tx, &persona, books)).await
    }
    /// Ends a turn with its reply: says into the outbox, mail out of the inbox, session row, turn closed, in one transaction.
    pub async fn commit(&self, commit: Commit) -> Result<()> {
        let makes_way = self.makes_way(&commit);
        self.write(move |tx| turns::commit(tx, commit, makes_way)).await
    }
    /// Which of a Persona's memories make way for those that a turn worded.
    fn makes_way(&self, commit: &Commit) -> BTreeSet<MemoryNumber> {
        let Remembering { remember, forget, .. } = &commit.memory;
        if remember.is_empty() {
            return BTreeSet::new();
        }
        let most = MOST.saturating_sub(remember.len());
        self.memories(&commit.persona, |memories| {
            surplus(memories.all().filter(|memory| !forget.contains(&memory.number)), most, commit.now)
        })
    }
    /// Ends a turn without a reply: its mail is put aside with the reason.
    pub async fn hold(
        &self,
        persona: &PersonaId,
        turn: OpenTurn,
        reason: String,
        now: Millis,
        books: Books,
    ) -> Result<()> {
        let persona = persona.clone();
        self.write(move |tx| turns::hold(tx, &persona, &turn, &reason, now, books)).await
    }
    /// Takes the words out of a Persona's mail, so that it is not fed any more.
    pub async fn withdraw(&self, persona: &PersonaId, seqs: Vec<u64>) -> Result<()> {
        let persona = persona.clone();
        self.write(move |tx| {
            seqs.into_iter().try_for_each(|seq| redact::withdraw(tx, &persona, seq).map(drop))
        })
        .await
    }
    /// Ends a turn without a reply; its mail waits again, to be shown as mail that may have been fed.
    pub async fn put_back(&self, persona: &PersonaId, turn: OpenTurn, books: Books) -> Result<()> {
        let persona = persona.clone();
        self.write(move |tx| turns::put_back(tx, &persona, &turn, books)).await
    }
    /// How many deliveries of a Persona are held.
    pub fn held(&self, persona: &PersonaId) -> Result<u64> {
        Ok(self.index().held(persona))
    }

    /// What was put aside for a Persona, by number.
    pub fn held_mail(&self, persona: &PersonaId) -> Result<Vec<HeldRow>> {
        let rows = self.read(|view| inbox::held(view, persona))?.into_iter();
        Ok(rows
            .map(|(seq, held, text)| HeldRow {
                delivery: held.mail.delivery(seq, text),
                turn: TurnId(held.turn.0),
                reason: held.reason,
                at: Millis(held.at),
            })
            .collect())
    }

    /// Puts held mail back to where mail waits, a Persona's or everybody's; answers how much.
    pub async fn release_mail(&self, persona: Option<PersonaId>) -> Result<u64> {
        self.write(move |tx| turns::release(tx, persona.as_ref())).await
    }

    /// Does something between the next transaction and its flush, for tests of a crash there.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn before_next_flush(&self, act: impl FnOnce() + Send + 'static) {
        let mut before = self.shared.group.before_flush.lock().unwrap_or_else(PoisonError::into_inner);
        *before = Some(Box::new(act));
    }
    /// Makes the row of the brake unreadable, as a fault of the disk would.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub async fn spoil_brake(&self) -> Result<()> {
        self.write(|tx| {
            tx.put_meta(BRAKE, "{");
            Ok(())
        })
        .await
    }
    /// Durably flushes what is pending, and has the next opening write files anew that have become too large; for the end of the
    /// service.
    pub async fn close(&self) -> Result<()> {
        let store = self.clone();
        let is_large = tokio::task::spawn_blocking(move || store.shared.base.is_large()).await;
        let is_large = is_large.map_err(|error| StoreError::Io(error.to_string()))??;
        self.write(move |tx| {
            if is_large {
                tx.put_meta(compact::WANTED, "");
            }
            Ok(())
        })
        .await
    }
    /// How many durable flushes were made since it was opened: each verb that writes waits for one.
    pub fn flushes(&self) -> u64 {
        self.shared.disk.count()
    }
    /// How long the newest of them took, at most 256, oldest first.
    pub fn flush_times(&self) -> Vec<Duration> {
        self.shared.disk.times()
    }
    /// How many bytes there are of everything, and how many its files take; reads all of it.
    pub fn size(&self) -> Result<Size> {
        self.shared.base.size()
    }
    /// How much there is of everything.
    pub fn counts(&self) -> Counts {
        self.index().counts()
    }

    pub(super) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.shared.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&View<'_>) -> Result<T>) -> Result<T> {
        self.shared.base.look(read)
    }

    /// It, for what a question orders.
    pub(super) fn heeding(&self, question: OwnedEventId) -> Self {
        Self { shared: self.shared.clone(), heeds: Some(question) }
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let heeds = self.heeds.clone();
        let heeding = move |tx: &mut Tx<'_>| {
            if let Some(event) = heeds {
                memories::heed(tx, &event)?;
            }
            job(tx)
        };
        group::write(&self.shared, heeding).await
    }

    async fn forget(&self, table: Table, before: Millis) -> Result<u64> {
        let mut from = Some(Vec::new());
        let mut forgotten = 0;
        while let Some(key) = from {
            let shared = self.shared.clone();
            let look = move || shared.base.look(|view| inbox::stale(view, table, &key, before));
            let looked = tokio::task::spawn_blocking(look).await;
            let (keys, next) = looked.map_err(|error| StoreError::Io(error.to_string()))??;
            forgotten += self.write(move |tx| inbox::forget(tx, table, &keys, before)).await?;
            from = next;
        }
        Ok(forgotten)
    }
}

/// Lets the store learn which events it has: the first of them now, many of them behind the answer.
fn learn(shared: &Arc<Shared>) -> Result<()> {
    let mut next = shared.base.learn(&[])?;
    let weak = Arc::downgrade(shared);
    if next.is_none() {
        return Ok(());
    }
    let rest = move || {
        while let (Some(from), Some(shared)) = (next.take(), weak.upgrade()) {
            // What cannot be read is looked up, and told then.
            next = shared.base.learn(&from).unwrap_or_default();
        }
    };
    std::thread::Builder::new().name("events".to_owned()).spawn(rest)?;
    Ok(())
}

#[cfg(test)]
mod hooks;
