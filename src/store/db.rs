//! The store as others see it: each verb is one job of a group, each read one look behind the gate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLockReadGuard};
use std::time::Duration;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId, RoomId, UserId};
use uuid::Uuid;

use super::base::View;
use super::flush::Durability;
use super::index::Index;
use super::open::Shared;
use super::table::Table;
use super::tx::{Read, Tx};
use super::{
    Answer, Arrival, Books, Commit, Config, Counts, Heard, HeldRow, IdentityRow, Mark, NewSay, Opening,
    Parking, Remembering, Result, RoomRow, Say, SeatRow, Size, Standing, StartLine, StoreError, Unreadable,
    Waiting,
};
use super::{
    brake, campaigns, compact, group, heart, inbox, ledger, memories, outbox, record, redact, reminders,
    rooms, sessions, states, told, transcript, turns,
};
use crate::conversation::about_me::Question;
use crate::conversation::notices::Told;
use crate::conversation::past::PastTurn;
use crate::conversation::{
    Campaign, Delivery, Described, Lane, MemoryNumber, Millis, PersonaId, Reminder, ReminderNumber,
    RequestId, Slug, TurnId,
};
use crate::persona::heart::{Beats, Rhythm};
use crate::persona::memory::{MOST, Memories, Seen, surplus};
use crate::persona::session::Entry;
use crate::persona::session::care::Word;
use crate::persona::state::Refusal;
use crate::persona::{Brake, LaneMail, OpenTurn, State};

/// The row of the control room.
const CONTROL_ROOM: &str = "control_room";
/// The row of the brake.
pub(super) const BRAKE: &str = "brake";

/// The store; clones share it. Where the engine failed once, every later write fails too.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
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
        Ok(Self { shared })
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
    /// Whom the operator's brake holds.
    pub fn brake(&self) -> Result<Brake> {
        self.read(|view| brake::kept(view))
    }
    /// Changes whom it holds; answers whom it holds then. One that cannot be read held everyone.
    pub async fn change_brake(&self, change: impl FnOnce(&mut Brake) + Send + 'static) -> Result<Brake> {
        self.write(move |tx| brake::change(tx, change)).await
    }

    /// How the shared beat goes on; none where none has fallen yet.
    pub fn beats(&self) -> Result<Option<Beats>> {
        self.read(|view| heart::pace(view))
    }
    /// Writes down how it goes on.
    pub async fn set_beats(&self, pace: Beats) -> Result<()> {
        self.write(move |tx| {
            heart::put_pace(tx, &pace);
            Ok(())
        })
        .await
    }
    /// What Personas have voted for it, and when their last turns ended.
    pub fn rhythms(&self) -> Result<BTreeMap<PersonaId, Rhythm>> {
        self.read(|view| heart::rhythms(view))
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

    /// All rooms.
    pub fn rooms(&self) -> Result<Vec<RoomRow>> {
        self.read(|view| rooms::all(view))
    }
    /// One room.
    pub fn room(&self, room: &OwnedRoomId) -> Result<Option<RoomRow>> {
        self.read(|view| rooms::room(view, room))
    }
    /// The checked mark of a room: the last event up to which the server's order was read without a gap.
    pub fn mark(&self, room: &OwnedRoomId) -> Result<Option<OwnedEventId>> {
        self.read(|view| rooms::mark_of(view, room))
    }
    /// Puts a Persona into a room (idempotent; an invite and a start line recorded before are kept).
    pub async fn seat(&self, seat: SeatRow, alias: Option<String>) -> Result<()> {
        self.write(move |tx| rooms::seat(tx, seat, alias)).await
    }
    /// Writes down start lines that were found.
    pub async fn set_lines(&self, room: OwnedRoomId, lines: Vec<(PersonaId, StartLine)>) -> Result<()> {
        self.write(move |tx| rooms::set_lines(tx, &room, lines)).await
    }
    /// Replaces the members of a room by what the server says.
    pub async fn set_members(
        &self,
        room: OwnedRoomId,
        members: Vec<(OwnedUserId, Option<String>)>,
        now: Millis,
    ) -> Result<()> {
        self.write(move |tx| rooms::set_members(tx, &room, members, now)).await
    }

    /// Writes down what a room is called or about, by the server's word.
    pub async fn describe(&self, room: OwnedRoomId, is: Described) -> Result<()> {
        self.write(move |tx| rooms::describe(tx, &room, is, None)).await
    }
    /// Another room takes the place of one, or none does after all.
    pub async fn succeed(&self, room: OwnedRoomId, to: Option<OwnedRoomId>) -> Result<()> {
        self.write(move |tx| rooms::succeed(tx, &room, to)).await
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
    /// Whom the thread with that root asked last.
    pub fn asked(&self, root: &OwnedEventId) -> Result<BTreeSet<PersonaId>> {
        self.read(|view| Ok(inbox::event(view, root)?.asked.into_iter().map(PersonaId).collect()))
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
    /// What an operator said of a session, with the generation that it was said of.
    pub fn word(&self, persona: &PersonaId) -> Result<Option<(u32, Word)>> {
        self.read(|view| sessions::word(view, persona))
    }
    /// Which generation of a Persona's session has last heard what was taken back since.
    pub fn tainted(&self, persona: &PersonaId) -> Result<Option<u32>> {
        self.read(|view| sessions::tainted(view, persona))
    }
    /// Writes down what an operator says of a Persona's session; answers of which generation, if there is one.
    pub async fn set_word(&self, persona: &PersonaId, word: Word) -> Result<Option<u32>> {
        let persona = persona.clone();
        self.write(move |tx| sessions::put_word(tx, &persona, word)).await
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
    /// The ledger from a time on, oldest first.
    pub fn ledger(&self, since: Millis) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut from = Some(since.0.to_be_bytes().to_vec());
        while let Some(key) = from {
            from = self.read(|view| ledger::page(view, &key, &mut entries))?;
        }
        Ok(entries)
    }
    /// Forgets what the ledger holds of before a time; answers how many entries.
    pub async fn prune_ledger(&self, before: Millis) -> Result<u64> {
        let mut forgotten = 0;
        loop {
            let keys = self.read(|view| ledger::before(view, before))?;
            if keys.is_empty() {
                return Ok(forgotten);
            }
            forgotten += self.write(move |tx| ledger::forget(tx, &keys)).await?;
        }
    }
    /// Looks at a Persona's memories, as they are indexed.
    pub fn memories<T>(&self, persona: &PersonaId, look: impl FnOnce(&Memories) -> T) -> T {
        match self.index().memories(persona) {
            Some(memories) => look(memories),
            None => look(&Memories::default()),
        }
    }
    /// Forgets memories of a Persona; answers how many there were.
    pub async fn forget_memories(&self, persona: &PersonaId, numbers: BTreeSet<MemoryNumber>) -> Result<u64> {
        let persona = persona.clone();
        self.write(move |tx| memories::forget(tx, &persona, numbers)).await
    }
    /// What the bot is asked and has not answered.
    pub fn questions(&self) -> Result<Vec<Question>> {
        self.read(|view| memories::questions(view))
    }
    /// Answers a question, unless that was done.
    pub async fn answer(&self, event: OwnedEventId, answer: Answer, now: Millis) -> Result<()> {
        self.write(move |tx| memories::answer(tx, &event, answer, now)).await
    }
    /// What the Persona's session was shown of her memories, if anything.
    pub fn seen(&self, persona: &PersonaId) -> Result<Option<Seen>> {
        self.read(|view| memories::seen(view, persona))
    }
    /// What a Persona heard and said in a lane last, since a time, oldest first.
    pub fn past(&self, persona: &PersonaId, lane: &Lane, since: Millis) -> Result<Vec<PastTurn>> {
        self.read(|view| transcript::turns(view, persona, lane, since))
    }
    /// Forgets what was heard and said before a time; answers how many turns.
    pub async fn prune_past(&self, before: Millis) -> Result<u64> {
        let (mut from, mut forgotten) = (Some(Vec::new()), 0);
        while let Some(key) = from {
            let (stale, next) = self.read(|view| transcript::stale(view, &key, before))?;
            if !stale.is_empty() {
                forgotten += self.write(move |tx| transcript::forget(tx, &stale)).await?;
            }
            from = next;
        }
        Ok(forgotten)
    }
    /// A Persona's state, if she has one.
    pub fn state(&self, persona: &PersonaId) -> Result<Option<State>> {
        self.read(|view| Ok(states::kept(view, persona)?.map(|kept| kept.state)))
    }
    /// Writes down a Persona's first state, unless she has one; answers which she has.
    pub async fn begin_state(&self, persona: &PersonaId, first: State, now: Millis) -> Result<State> {
        let persona = persona.clone();
        self.write(move |tx| states::begin(tx, &persona, first, now)).await
    }
    /// Puts a document in the place of the state that it was made from; answers which she has then, and whether it is new.
    pub async fn put_state(
        &self,
        persona: &PersonaId,
        given: State,
        now: Millis,
    ) -> Result<std::result::Result<(State, bool), Refusal>> {
        let persona = persona.clone();
        self.write(move |tx| states::put(tx, &persona, given, now)).await
    }
    /// The open campaigns, by slug.
    pub fn campaigns(&self) -> Result<Vec<Campaign>> {
        self.read(|view| campaigns::open(view))
    }
    /// Opens a campaign, or gives an open one another title; answers whether that changed anything.
    pub async fn open_campaign(&self, campaign: Campaign) -> Result<bool> {
        self.write(move |tx| campaigns::put(tx, &campaign)).await
    }
    /// Closes a campaign; answers whether it was open.
    pub async fn close_campaign(&self, slug: Slug) -> Result<bool> {
        self.write(move |tx| campaigns::close(tx, &slug)).await
    }
    /// What a Persona wants to be reminded of, by number.
    pub fn reminders(&self, persona: &PersonaId) -> Result<Vec<Reminder>> {
        self.read(|view| reminders::of(view, persona))
    }
    /// Cancels one of them; answers whether it was open.
    pub async fn cancel_reminder(&self, persona: &PersonaId, number: ReminderNumber) -> Result<bool> {
        let persona = persona.clone();
        self.write(move |tx| reminders::cancel(tx, &persona, number)).await
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
        self.read(|view| seqs.iter().filter_map(|seq| outbox::at(view, *seq).transpose()).collect())
    }
    /// Puts says into the outbox unless `key` is done; answers whether it did.
    pub async fn say_once(&self, key: String, says: Vec<NewSay>, now: Millis) -> Result<bool> {
        self.write(move |tx| outbox::once(tx, &key, says, now)).await
    }
    /// A say is taken: its row is forgotten, its event id kept.
    pub async fn sent(&self, seq: u64, event: OwnedEventId, now: Millis) -> Result<()> {
        self.write(move |tx| outbox::sent(tx, seq, &event, now)).await
    }
    /// The event of a request that was sent.
    pub fn sent_event(&self, request: &RequestId) -> Result<Option<OwnedEventId>> {
        self.read(|view| outbox::sent_event(view, request))
    }
    /// Who of us sent an event, if one of us did.
    pub fn sent_by(&self, event: &OwnedEventId) -> Result<Option<OwnedUserId>> {
        self.read(|view| outbox::sent_by(view, event))
    }
    /// A room is found to be encrypted.
    pub async fn note_encrypted(&self, room: OwnedRoomId) -> Result<()> {
        self.write(move |tx| rooms::encrypted(tx, &room)).await
    }
    /// Replaces a say by smaller ones at the same place.
    pub async fn split(&self, seq: u64, parts: Vec<NewSay>, now: Millis) -> Result<()> {
        self.write(move |tx| outbox::split(tx, seq, parts, now)).await
    }
    /// Parks a say with its reason: kept, not sent, and not in the way of others.
    pub async fn park(&self, seq: u64, parking: Parking) -> Result<()> {
        self.write(move |tx| outbox::park(tx, seq, parking)).await
    }
    /// The places of the oldest say of each room that is parked because the homeserver failed on it.
    pub fn failed_heads(&self) -> Vec<u64> {
        self.index().failed_heads()
    }
    /// Lets parked says go again.
    pub async fn unpark(&self, seqs: Vec<u64>) -> Result<()> {
        self.write(move |tx| seqs.into_iter().try_for_each(|seq| outbox::unpark(tx, seq).map(drop))).await
    }
    /// Lets all parked says go again, or those of one user; answers how many.
    pub async fn release_says(&self, user: Option<OwnedUserId>) -> Result<u64> {
        self.write(move |tx| outbox::release(tx, user.as_deref())).await
    }
    /// Puts held mail back to where mail waits, a Persona's or everybody's; answers how much.
    pub async fn release_mail(&self, persona: Option<PersonaId>) -> Result<u64> {
        self.write(move |tx| turns::release(tx, persona.as_ref())).await
    }
    /// Takes a Persona out of a room and drops what waits to be sent by her user there; answers how many says.
    pub async fn unseat(&self, persona: &PersonaId, user: OwnedUserId, room: OwnedRoomId) -> Result<u64> {
        let persona = persona.clone();
        self.write(move |tx| rooms::unseat(tx, &persona, &user, &room)).await
    }

    /// How a user is authenticated.
    pub fn identity(&self, user: &OwnedUserId) -> Result<Option<IdentityRow>> {
        self.read(|view| sessions::identity(view, user))
    }
    /// Writes how a user is authenticated.
    pub async fn set_identity(&self, identity: IdentityRow) -> Result<()> {
        self.write(move |tx| sessions::put_identity(tx, identity)).await
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

    pub(super) async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        group::write(&self.shared, job).await
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
