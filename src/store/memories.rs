//! What Personas remember: written with the turn it was worded in, gone with the event it was learned from.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::record::{KindForm, LearnedForm, MailForm, MemoryForm, QuestionForm, SeenForm};
use super::table::{Table, key, number, parts};
use super::tx::{Read, Tx};
use super::{Answer, Remembering, Result, Store, inbox, outbox, record, sessions};
use crate::conversation::about_me::Question;
use crate::conversation::memory::Confided;
use crate::conversation::{Kept, Lane, Memory, MemoryNumber, Millis, Origin, PersonaId};
use crate::persona::memory::{Memories, Seen};

impl Store {
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
        self.write(move |tx| forget(tx, &persona, numbers)).await
    }
    /// What the bot is asked and has not answered.
    pub fn questions(&self) -> Result<Vec<Question>> {
        self.read(|view| questions(view))
    }
    /// The store for what a question orders: whatever is written through it marks the question as carried out, in the same
    /// transaction.
    #[must_use]
    pub fn for_question(&self, event: &OwnedEventId) -> Self {
        self.heeding(event.clone())
    }
    /// Whether what a question orders was carried out.
    pub fn is_heeded(&self, event: &OwnedEventId) -> Result<bool> {
        self.read(|view| is_heeded(view, event))
    }
    /// Answers a question, unless that was done.
    pub async fn answer(&self, event: OwnedEventId, answer: Answer, now: Millis) -> Result<()> {
        self.write(move |tx| self::answer(tx, &event, answer, now)).await
    }
    /// What the Persona's session was shown of her memories, if anything.
    pub fn seen(&self, persona: &PersonaId) -> Result<Option<Seen>> {
        self.read(|view| seen(view, persona))
    }
}

/// The turn in which something was worded.
pub(super) struct Worded {
    pub(super) lane: Lane,
    /// Who spoke in it.
    pub(super) told_by: BTreeSet<OwnedUserId>,
    /// The events that it was about, with their rooms.
    pub(super) sources: BTreeMap<OwnedEventId, OwnedRoomId>,
    /// Whether nothing of it was taken back meanwhile.
    pub(super) is_intact: bool,
    pub(super) generation: u32,
    pub(super) now: Millis,
}

impl Worded {
    /// In a turn with mail.
    pub(super) fn of(lane: Lane, mail: &[MailForm], generation: u32, now: Millis) -> Self {
        let told_by = mail.iter().map(|mail| mail.sender.clone()).collect();
        Self { lane, told_by, sources: sources(mail), is_intact: !was_taken_back(mail), generation, now }
    }
}

/// What her session's generation was shown, if anything.
pub(super) fn seen<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<Seen>> {
    let form = from.record::<SeenForm>(Table::Seen, persona.as_str().as_bytes())?;
    Ok(form.map(Seen::from))
}

/// Whose session was shown an event as said in a room before its mail.
pub(super) fn shown<R: Read>(from: &R, event: &OwnedEventId, room: &OwnedRoomId) -> Result<Vec<PersonaId>> {
    let mut personas = Vec::new();
    for (key, seen) in from.records::<SeenForm>(Table::Seen, b"")? {
        let seen = Seen::from(seen);
        let persona = PersonaId(String::from_utf8_lossy(&key).into_owned());
        if !seen.earlier.get(room).is_some_and(|events| events.contains(event)) {
            continue;
        }
        if sessions::session(from, &persona)?.is_some_and(|one| one.generation == seen.generation) {
            personas.push(persona);
        }
    }
    Ok(personas)
}

/// Writes down what a turn did to her memories. Nothing is learned from mail of which some was taken back meanwhile, and
/// then nothing makes way for it.
pub(super) fn commit(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    worded: &Worded,
    work: Remembering,
    makes_way: BTreeSet<MemoryNumber>,
) -> Result<()> {
    let Remembering { remember, forget, recalled, seen } = work;
    let mut confided = own(worded);
    for shown in recalled.shown {
        let Some(memory) = find(tx, persona, shown)? else { continue };
        for (room, told_by) in &memory.origin.confided {
            confided.entry(room.clone()).or_default().extend(told_by.iter().cloned());
        }
        if recalled.used.contains(&shown) {
            let used = Memory { uses: memory.uses.saturating_add(1), used: worded.now, ..memory };
            tx.put(Table::Memories, &place(persona, shown), &MemoryForm::from(&used))?;
        }
    }
    for number in forget {
        remove(tx, persona, number)?;
    }
    if worded.is_intact {
        let gone = self::forget(tx, persona, makes_way)?;
        if gone > 0 {
            tracing::debug!(%persona, gone, "memories made way for new ones");
        }
        for kept in remember {
            learn(tx, persona, worded, kept, confided.clone())?;
        }
    }
    match seen {
        Some(seen) => {
            taint_if_taken_back(tx, persona, &seen)?;
            tx.put(Table::Seen, persona.as_str().as_bytes(), &SeenForm::from(seen))
        }
        None => Ok(()),
    }
}

/// An earlier message that she was shown may have been taken back while she thought.
fn taint_if_taken_back(tx: &mut Tx<'_>, persona: &PersonaId, seen: &Seen) -> Result<()> {
    for (room, events) in &seen.earlier {
        for event in events {
            if inbox::event(tx, event)?.redacted.contains_key(room) {
                return sessions::taint(tx, persona);
            }
        }
    }
    Ok(())
}

/// Whether some of a turn's mail was taken back while she thought.
pub(super) fn was_taken_back(mail: &[MailForm]) -> bool {
    mail.iter().any(|mail| matches!(mail.kind, KindForm::Withdrawn))
}

/// What the turn's own lane confides.
fn own(worded: &Worded) -> Confided {
    let Lane::Direct(room) = &worded.lane else { return Confided::new() };
    Confided::from([(room.clone(), worded.told_by.clone())])
}

fn learn(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    worded: &Worded,
    kept: Kept,
    confided: Confided,
) -> Result<()> {
    let number = MemoryNumber(tx.count(&format!("memories:{persona}"))?);
    for (event, room) in &worded.sources {
        let form = LearnedForm { room: room.clone() };
        tx.put_new(Table::Learned, &learned(event, persona, number), &form);
    }
    let origin = Origin {
        lane: worded.lane.clone(),
        confided,
        events: worded.sources.keys().cloned().collect(),
        at: worded.now,
        generation: worded.generation,
    };
    let memory = Memory { number, kept, origin, uses: 0, used: worded.now };
    tx.put_new(Table::Memories, &place(persona, number), &MemoryForm::from(&memory));
    Ok(())
}

/// What a Persona noted in a direct room is of the one that takes its place from now on.
pub(super) fn carry_over(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    from: &OwnedRoomId,
    to: &OwnedRoomId,
) -> Result<()> {
    for (place, form) in tx.records::<MemoryForm>(Table::Memories, &key(persona.as_str(), &[]))? {
        if let Some(carried) = form.carried_over(from, to) {
            tx.put(Table::Memories, &place, &carried)?;
        }
    }
    Ok(())
}

/// The events of mail with their rooms; of an edit also what it edits.
fn sources(mail: &[MailForm]) -> BTreeMap<OwnedEventId, OwnedRoomId> {
    let mut sources = BTreeMap::new();
    for mail in mail {
        if let KindForm::Edit(edited) = &mail.kind {
            sources.insert(edited.clone(), mail.room.clone());
        }
        sources.insert(mail.event.clone(), mail.room.clone());
    }
    sources
}

/// Forgets memories; answers how many there were.
pub(super) fn forget(tx: &mut Tx<'_>, persona: &PersonaId, numbers: BTreeSet<MemoryNumber>) -> Result<u64> {
    let mut gone = 0;
    for number in numbers {
        gone += u64::from(remove(tx, persona, number)?);
    }
    Ok(gone)
}

/// Forgets what was learned from an event of this room, whoever did.
pub(super) fn unlearn(tx: &mut Tx<'_>, event: &OwnedEventId, room: &OwnedRoomId) -> Result<()> {
    for (place, learned) in tx.records::<LearnedForm>(Table::Learned, &key(event.as_str(), &[]))? {
        if learned.room == *room {
            let (_, rest) = parts(Table::Learned, &place)?;
            let (persona, rest) = parts(Table::Learned, rest)?;
            remove(tx, &PersonaId(persona), MemoryNumber(number(Table::Learned, rest)?))?;
        }
    }
    Ok(())
}

fn remove(tx: &mut Tx<'_>, persona: &PersonaId, number: MemoryNumber) -> Result<bool> {
    let Some(memory) = find(tx, persona, number)? else { return Ok(false) };
    for event in &memory.origin.events {
        tx.remove(Table::Learned, &learned(event, persona, number))?;
    }
    tx.remove(Table::Memories, &place(persona, number))?;
    Ok(true)
}

/// Writes down a question, until it is answered.
pub(super) fn ask(tx: &mut Tx<'_>, question: &Question) -> Result<()> {
    tx.put(Table::Questions, question.event.as_bytes(), &QuestionForm::from(question))
}

/// What a question orders is carried out.
pub(super) fn heed(tx: &mut Tx<'_>, event: &OwnedEventId) -> Result<()> {
    let Some(form) = tx.record::<QuestionForm>(Table::Questions, event.as_bytes())? else { return Ok(()) };
    tx.put(Table::Questions, event.as_bytes(), &form.heeded())
}

/// Whether it is.
pub(super) fn is_heeded<R: Read>(from: &R, event: &OwnedEventId) -> Result<bool> {
    let form = from.record::<QuestionForm>(Table::Questions, event.as_bytes())?;
    Ok(form.is_some_and(|form| form.is_heeded()))
}

/// The questions that wait for their answers.
pub(super) fn questions<R: Read>(from: &R) -> Result<Vec<Question>> {
    let rows = from.records::<QuestionForm>(Table::Questions, &[])?.into_iter();
    rows.map(|(place, form)| {
        let event = std::str::from_utf8(&place).ok().and_then(|event| OwnedEventId::try_from(event).ok());
        let event = event.ok_or_else(|| record::corrupt(Table::Questions, &place, "not an event id"))?;
        Ok(form.question(event))
    })
    .collect()
}

/// Answers a question that still waits, and forgets what is to be forgotten with it.
pub(super) fn answer(tx: &mut Tx<'_>, event: &OwnedEventId, answer: Answer, now: Millis) -> Result<()> {
    if tx.row(Table::Questions, event.as_bytes())?.is_none() {
        return Ok(());
    }
    tx.remove(Table::Questions, event.as_bytes())?;
    for (persona, numbers) in answer.forget {
        forget(tx, &persona, numbers)?;
    }
    for say in answer.says {
        outbox::say(tx, say, now)?;
    }
    Ok(())
}

fn find<R: Read>(from: &R, persona: &PersonaId, number: MemoryNumber) -> Result<Option<Memory>> {
    let form = from.record::<MemoryForm>(Table::Memories, &place(persona, number))?;
    Ok(form.map(|form| form.memory(number)))
}

/// The memory of a row.
pub(super) fn memory(place: &[u8], value: &[u8]) -> Result<Memory> {
    let (_, rest) = parts(Table::Memories, place)?;
    let number = MemoryNumber(number(Table::Memories, rest)?);
    Ok(record::decode::<MemoryForm>(Table::Memories, place, value)?.memory(number))
}

fn place(persona: &PersonaId, number: MemoryNumber) -> Vec<u8> {
    key(persona.as_str(), &number.0.to_be_bytes())
}

fn learned(event: &OwnedEventId, persona: &PersonaId, number: MemoryNumber) -> Vec<u8> {
    key(event.as_str(), &place(persona, number))
}
