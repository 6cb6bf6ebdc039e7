//! What is asked for often, kept in memory: the heads of waiting mail, the order of the outbox, and what is remembered.
//!
//! It mirrors rows of the database and nothing else: it is built from them at open and fed with every committed write
//! once that is durable, so what it shows is never lost again.

use std::collections::{BTreeMap, BTreeSet};

use ruma::{OwnedRoomId, OwnedUserId, RoomId, UserId};
use sled::IVec;

use super::base::View;
use super::record::{self, HeadForm, KindForm, PaceForm, PairsForm, Record, SayForm, TurnForm};
use super::table::{self, Table};
use super::tx::Read;
use super::{Counts, Pace, Result, Waiting, chunk, memories, rooms};
use crate::conversation::{Memory, MemoryNumber, Millis, PersonaId};
use crate::persona::LaneMail;
use crate::persona::lanes::{Lanes, Mail};
use crate::persona::memory::Memories;

/// How many rows are looked at in one go.
const PAGE: usize = 1_000;
/// How many unreadable texts are kept.
pub(super) const QUARANTINE: u64 = 1_000;
/// The counter of unreadable texts in the meta table.
pub(super) const QUARANTINED: &str = "quarantined";

/// Whether a say is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is.
    Waits,
    /// It is parked until an operator releases it.
    Parked,
    /// It is parked until it is tried again.
    Failed,
}

/// A say as far as its order goes.
#[derive(Clone, Debug)]
pub(super) struct Line {
    room: OwnedRoomId,
    sender: OwnedUserId,
    fate: Fate,
}

/// A change of a row that is mirrored.
#[derive(Debug)]
pub(super) enum Change {
    /// Mail: its head while it waits, none while it is withdrawn or gone.
    Mail { persona: PersonaId, seq: u64, head: Option<Box<Waiting>>, withdrawn: bool },
    /// The numbers in a Persona's open turn.
    Turn { persona: PersonaId, seqs: Vec<u64> },
    /// Mail put aside.
    Held { persona: PersonaId, seq: u64, held: bool },
    /// A say: where it goes and whether it is to be sent.
    Say { seq: u64, say: Option<Line> },
    /// How many unreadable texts there ever were.
    Quarantined(u64),
    /// A memory, none where it is forgotten.
    Memory { persona: PersonaId, number: MemoryNumber, memory: Option<Box<Memory>> },
    /// Those who are held in a room because they have woken each other too often.
    Pairs { room: OwnedRoomId, held: BTreeSet<PersonaId> },
    /// What a room has borne of Personas.
    Pace { room: OwnedRoomId, pace: Option<PaceForm> },
}

impl Change {
    /// The tables whose rows are mirrored.
    pub(super) const TABLES: &[Table] = &[
        Table::Mail,
        Table::Turns,
        Table::Outbox,
        Table::Held,
        Table::Meta,
        Table::Memories,
        Table::Pairs,
        Table::Paces,
    ];

    /// Reads what a row of such a table means to the index, if anything.
    pub(super) fn read<R: Read>(
        from: &R,
        table: Table,
        key: &[u8],
        row: Option<&IVec>,
    ) -> Result<Option<Self>> {
        if table == Table::Mail {
            Self::mail(key, form(from, table, key, row)?).map(Some)
        } else if table == Table::Turns {
            Self::turn(key, form(from, table, key, row)?).map(Some)
        } else if table == Table::Outbox {
            Self::say(key, form(from, table, key, row)?).map(Some)
        } else if table == Table::Held {
            let (persona, seq) = persona_key(table, key)?;
            Ok(Some(Self::Held { persona, seq, held: row.is_some() }))
        } else if table == Table::Memories {
            let (persona, number) = persona_key(table, key)?;
            let memory = match row {
                Some(row) => Some(memories::memory(key, &chunk::join(from, table, key, row.clone())?)?),
                None => None,
            };
            Ok(Some(Self::Memory { persona, number: MemoryNumber(number), memory: memory.map(Box::new) }))
        } else if table == Table::Pairs {
            let form: Option<PairsForm> = form(from, table, key, row)?;
            let held = form.unwrap_or_default().0.into_iter().filter(|pair| pair.held.is_some());
            let held = held.flat_map(|pair| pair.of).map(PersonaId).collect();
            Ok(Some(Self::Pairs { room: rooms::id(table, key, key)?, held }))
        } else if table == Table::Paces {
            let pace = form(from, table, key, row)?;
            Ok(Some(Self::Pace { room: rooms::id(table, key, key)?, pace }))
        } else {
            let counter = row.filter(|_| key == QUARANTINED.as_bytes());
            let total = counter.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            Ok(total.map(Self::Quarantined))
        }
    }

    /// What mail in hand means to the index.
    pub(super) fn mail(key: &[u8], form: Option<HeadForm>) -> Result<Self> {
        let (persona, seq) = persona_key(Table::Mail, key)?;
        let withdrawn = form.as_ref().is_some_and(|mail| matches!(mail.kind, KindForm::Withdrawn));
        let head = form.filter(|_| !withdrawn).map(|mail| {
            let can_wake = mail.whole || !matches!(mail.kind, KindForm::Notice | KindForm::Redaction(_));
            Box::new(Waiting {
                seq,
                lane: mail.lane.into(),
                room: mail.room,
                sender: mail.sender,
                wakes: mail.wakes.unwrap_or(mail.addressed) && can_wake,
                unheard: !matches!(mail.kind, KindForm::Redaction(_)),
                hops: mail.hops,
                whole: mail.whole,
                heard: Millis(mail.heard),
            })
        });
        Ok(Self::Mail { persona, seq, head, withdrawn })
    }

    fn turn(key: &[u8], form: Option<TurnForm>) -> Result<Self> {
        let (persona, _) = table::parts(Table::Turns, key)?;
        let seqs = form.map(|turn| turn.seqs).unwrap_or_default();
        Ok(Self::Turn { persona: PersonaId(persona), seqs })
    }

    fn say(key: &[u8], form: Option<SayForm>) -> Result<Self> {
        let seq = table::number(Table::Outbox, key)?;
        let fate = |say: &SayForm| match (&say.parked, say.failed) {
            (None, _) => Fate::Waits,
            (Some(_), false) => Fate::Parked,
            (Some(_), true) => Fate::Failed,
        };
        let line = |say: SayForm| Line { fate: fate(&say), room: say.room, sender: say.sender };
        Ok(Self::Say { seq, say: form.map(line) })
    }
}

fn form<R: Read, F: Record>(from: &R, table: Table, key: &[u8], row: Option<&IVec>) -> Result<Option<F>> {
    let Some(row) = row else { return Ok(None) };
    let value = chunk::join(from, table, key, row.clone())?;
    record::decode(table, key, &value).map(Some)
}

fn persona_key(table: Table, key: &[u8]) -> Result<(PersonaId, u64)> {
    let (persona, rest) = table::parts(table, key)?;
    Ok((PersonaId(persona), table::number(table, rest)?))
}

#[derive(Debug, Default)]
struct Pile {
    waiting: BTreeMap<u64, Box<Waiting>>,
    withdrawn: BTreeSet<u64>,
    open: BTreeSet<u64>,
    held: BTreeSet<u64>,
    memories: Memories,
    /// Of the mail that waits outside the open turn.
    lanes: Lanes,
    /// Whether something went, so that the lanes are to be gathered anew.
    stale: bool,
}

impl Pile {
    fn outside(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().filter(|(seq, _)| !self.open.contains(seq)).map(|(_, head)| &**head)
    }

    fn put(&mut self, seq: u64, head: Option<Box<Waiting>>) {
        self.stale |= self.waiting.contains_key(&seq);
        match head {
            Some(head) => {
                if !self.open.contains(&seq) {
                    self.lanes.add(mail(&head));
                }
                self.waiting.insert(seq, head);
            }
            None => drop(self.waiting.remove(&seq)),
        }
    }

    fn refresh(&mut self) {
        if std::mem::take(&mut self.stale) {
            let mut lanes = Lanes::default();
            self.outside().for_each(|head| lanes.add(mail(head)));
            self.lanes = lanes;
        }
    }
}

fn mail(head: &Waiting) -> Mail<'_> {
    let Waiting { lane, room, sender, wakes, unheard, hops, heard, .. } = head;
    Mail { lane, room, sender, wakes: *wakes, unheard: *unheard, hops: *hops, heard: *heard }
}

/// The index.
#[derive(Debug, Default)]
pub(super) struct Index {
    personas: BTreeMap<PersonaId, Pile>,
    says: BTreeMap<u64, Line>,
    lines: BTreeMap<OwnedRoomId, BTreeSet<u64>>,
    failed: BTreeSet<u64>,
    quarantined: u64,
    /// Those who are held in a room because they have woken each other too often.
    pairs: BTreeMap<OwnedRoomId, BTreeSet<PersonaId>>,
    paces: BTreeMap<OwnedRoomId, PaceForm>,
}

impl Index {
    /// Reads the index out of the database.
    pub(super) fn build(view: &View<'_>) -> Result<Self> {
        let mut index = Self::default();
        for table in Change::TABLES {
            let mut from = Some(Vec::new());
            while let Some(key) = from {
                let (rows, next) = view.page(*table, &key, PAGE)?;
                for (key, row) in rows {
                    let change = Change::read(view, *table, &key, Some(&row))?;
                    change.into_iter().for_each(|change| index.apply(change));
                }
                from = next;
            }
        }
        index.refresh();
        Ok(index)
    }

    /// Takes the changes of a group in.
    pub(super) fn take(&mut self, changes: Vec<Change>) {
        changes.into_iter().for_each(|change| self.apply(change));
        self.refresh();
    }

    fn refresh(&mut self) {
        self.personas.values_mut().for_each(Pile::refresh);
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Mail { persona, seq, head, withdrawn } => {
                let pile = self.personas.entry(persona).or_default();
                pile.put(seq, head);
                set(&mut pile.withdrawn, seq, withdrawn);
            }
            Change::Turn { persona, seqs } => {
                let pile = self.personas.entry(persona).or_default();
                pile.open = seqs.into_iter().collect();
                pile.stale = true;
            }
            Change::Held { persona, seq, held } => {
                set(&mut self.personas.entry(persona).or_default().held, seq, held);
            }
            Change::Say { seq, say } => self.apply_say(seq, say),
            Change::Quarantined(total) => self.quarantined = total,
            Change::Pairs { room, held } if held.is_empty() => drop(self.pairs.remove(&room)),
            Change::Pairs { room, held } => drop(self.pairs.insert(room, held)),
            Change::Pace { room, pace: None } => drop(self.paces.remove(&room)),
            Change::Pace { room, pace: Some(pace) } => drop(self.paces.insert(room, pace)),
            Change::Memory { persona, number, memory } => {
                let memories = &mut self.personas.entry(persona).or_default().memories;
                match memory {
                    Some(memory) => memories.insert(*memory),
                    None => drop(memories.remove(number)),
                }
            }
        }
    }

    fn apply_say(&mut self, seq: u64, say: Option<Line>) {
        if let Some(Line { room, .. }) = self.says.remove(&seq)
            && let Some(line) = self.lines.get_mut(&room)
        {
            line.remove(&seq);
            if line.is_empty() {
                self.lines.remove(&room);
            }
        }
        set(&mut self.failed, seq, say.as_ref().is_some_and(|say| say.fate == Fate::Failed));
        let Some(say) = say else { return };
        if say.fate == Fate::Waits {
            self.lines.entry(say.room.clone()).or_default().insert(seq);
        }
        self.says.insert(seq, say);
    }

    /// The heads of the mail that waits outside the open turn.
    pub(super) fn waiting(&self, persona: &PersonaId) -> Vec<Waiting> {
        let Some(pile) = self.personas.get(persona) else { return Vec::new() };
        pile.outside().cloned().collect()
    }

    /// The lanes of that mail.
    pub(super) fn lanes(
        &self,
        persona: &PersonaId,
        max_hops: u32,
        ready: impl Fn(&OwnedRoomId) -> bool,
    ) -> Vec<LaneMail> {
        self.personas.get(persona).map(|pile| pile.lanes.rows(max_hops, ready)).unwrap_or_default()
    }

    /// The mail that was withdrawn and whose row is still there.
    pub(super) fn withdrawn(&self, persona: &PersonaId) -> Vec<u64> {
        self.personas.get(persona).map(|pile| pile.withdrawn.iter().copied().collect()).unwrap_or_default()
    }

    /// The memories of a Persona.
    pub(super) fn memories(&self, persona: &PersonaId) -> Option<&Memories> {
        self.personas.get(persona).map(|pile| &pile.memories)
    }

    /// How many deliveries of a Persona are held.
    pub(super) fn held(&self, persona: &PersonaId) -> u64 {
        self.personas.get(persona).map_or(0, |pile| pile.held.len() as u64)
    }

    /// The places of the first say of each room by somebody who may speak there, in order.
    pub(super) fn heads(&self, may_speak: impl Fn(&UserId, &RoomId) -> bool) -> Vec<u64> {
        let speaks = |seq: &u64| self.says.get(seq).is_some_and(|say| may_speak(&say.sender, &say.room));
        let first = |line: &BTreeSet<u64>| line.iter().copied().find(speaks);
        let firsts: BTreeSet<u64> = self.lines.values().filter_map(first).collect();
        firsts.into_iter().collect()
    }

    /// The places of the first say of each room that is parked until it is tried again, in order.
    pub(super) fn failed_heads(&self) -> Vec<u64> {
        let mut rooms = BTreeSet::new();
        let failed = self.failed.iter().filter_map(|seq| Some((*seq, &self.says.get(seq)?.room)));
        failed.filter(|(_, room)| rooms.insert(*room)).map(|(seq, _)| seq).collect()
    }

    /// The rooms in which a Persona is held because she and another have woken each other too often.
    pub(super) fn held_in(&self, persona: &PersonaId) -> BTreeSet<OwnedRoomId> {
        let rooms = self.pairs.iter().filter(|(_, held)| held.contains(persona));
        rooms.map(|(room, _)| room.clone()).collect()
    }

    /// What a room has borne of Personas, and how much waits there of those who may speak; none where that is not counted.
    pub(super) fn pace(
        &self,
        room: &OwnedRoomId,
        may_speak: impl Fn(&UserId, &RoomId) -> bool,
    ) -> Option<Pace> {
        let pace = self.paces.get(room)?;
        let senders = self.lines.get(room).into_iter().flatten().filter_map(|seq| self.says.get(seq));
        let waiting = senders.filter(|say| may_speak(&say.sender, room)).count();
        Some(Pace { sent: pace.sent.iter().copied().map(Millis).collect(), waiting, full: pace.full })
    }

    /// The rooms of which it is told that they are full.
    pub(super) fn full(&self) -> Vec<OwnedRoomId> {
        self.paces.iter().filter(|(_, pace)| pace.full).map(|(room, _)| room.clone()).collect()
    }

    /// How many unreadable texts are kept.
    pub(super) fn quarantined(&self) -> u64 {
        self.quarantined.min(QUARANTINE)
    }

    /// How much there is of everything.
    pub(super) fn counts(&self) -> Counts {
        let piles = self.personas.values();
        Counts {
            waiting: piles.clone().map(|pile| pile.waiting.len() as u64).sum(),
            held: piles.map(|pile| pile.held.len() as u64).sum(),
            outbox: self.says.len() as u64,
            parked: self.says.values().filter(|say| say.fate != Fate::Waits).count() as u64,
            quarantined: self.quarantined(),
        }
    }
}

fn set(numbers: &mut BTreeSet<u64>, seq: u64, present: bool) {
    if present {
        numbers.insert(seq);
    } else {
        numbers.remove(&seq);
    }
}
