//! What of her memories comes before a Persona with a turn, what the turn does to them, and what is not in them yet.

use std::collections::{BTreeMap, BTreeSet};

use ruma::OwnedRoomId;

use super::BridgeError;
use super::shared::Shared;
use crate::conversation::prompt::ContextLine;
use crate::conversation::reply::Keeps;
use crate::conversation::{Batch, Lane, Memory, MemoryNumber, Millis, PersonaId};
use crate::persona::memory::{Hand, Memories, Recalled, Seen, recall};
use crate::persona::session::Session;
use crate::persona::session::care::Tasks;
use crate::store::Remembering;

/// What was recalled for a turn.
#[derive(Debug, Default)]
pub(crate) struct Reminded {
    /// As it is shown.
    pub(crate) memories: Vec<Memory>,
    /// The generation that is told which of her reminders are open, if it is.
    pub(crate) listed: Option<u32>,
    recalled: Recalled,
    /// What her generation has seen then, if that is new.
    seen: Option<Seen>,
}

impl Reminded {
    /// Earlier lines of rooms stand before her, too.
    pub(crate) fn shows(&mut self, context: &BTreeMap<OwnedRoomId, Vec<ContextLine>>) {
        let Some(seen) = &mut self.seen else { return };
        for (room, lines) in context.iter().filter(|(_, lines)| !lines.is_empty()) {
            let events =
                lines.iter().flat_map(|line| std::iter::once(&line.event).chain(&line.edit)).cloned();
            seen.earlier.entry(room.clone()).or_default().extend(events);
        }
    }

    /// What the turn does to her memories, with what its reply keeps.
    pub(crate) fn with(self, keeps: Keeps) -> Remembering {
        let Keeps { remember, forget, .. } = keeps;
        Remembering { remember, forget, recalled: self.recalled, seen: self.seen }
    }
}

/// Recalls what belongs to the mail at hand: at the begin of a generation all kinds, later what it has not seen.
pub(crate) fn remind(
    shared: &Shared,
    persona: &PersonaId,
    session: &Session,
    batch: &Batch,
    now: Millis,
) -> Result<Reminded, BridgeError> {
    let people = batch.shown().map(|delivery| delivery.sender.clone()).collect();
    let words = batch.shown().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>().join("\n");
    let hand = Hand { lane: &batch.lane, people: &people, words: &words, now };
    let generation = session.generation;
    let known = shared.store.seen(persona)?.filter(|seen| seen.generation == generation);
    let goes_on = session.last_committed.is_some();
    let before = known.clone().filter(|_| goes_on).unwrap_or(Seen { generation, ..Seen::default() });
    let dm = shared.config.dm_memories;
    let (recalled, memories) = shared.store.memories(persona, |all| {
        let recalled = recall(all, &hand, dm, goes_on.then_some(&before));
        let shown = recalled.shown.iter().filter_map(|number| all.get(*number).cloned());
        let is_bare = |memory: &Memory| recalled.bare.contains(&memory.number);
        let memories = shown.map(|memory| if is_bare(&memory) { memory.bare() } else { memory }).collect();
        (recalled, memories)
    });
    let seen = Some(before.with(&hand, &recalled)).filter(|seen| known.as_ref() != Some(seen));
    Ok(Reminded { memories, listed: None, recalled, seen })
}

/// Which of the labels are those of memories that were worded in the lane.
pub(crate) fn worded_in(
    shared: &Shared,
    persona: &PersonaId,
    lane: &Lane,
    labels: &[String],
) -> BTreeSet<MemoryNumber> {
    let numbers = labels.iter().filter_map(|label| MemoryNumber::of_label(label));
    shared.store.memories(persona, |all| {
        numbers.filter(|number| all.get(*number).is_some_and(|memory| memory.origin.lane == *lane)).collect()
    })
}

/// How her tasks stand, and of which lane she may be asked to note something.
///
/// Of none where that would not go with what is taken back: without a record of what was said, or where some of it was.
pub(crate) fn to_note(
    shared: &Shared,
    id: &PersonaId,
    session: &Session,
) -> Result<(Tasks, Option<Lane>), BridgeError> {
    let unnoted = &session.account.unnoted;
    if unnoted.0.is_empty()
        || shared.config.transcript_keep.is_zero()
        || shared.store.tainted(id)? == Some(session.generation)
    {
        return Ok((Tasks::Safe, None));
    }
    let holds_task = |all: &Memories, lane: &Lane| all.open_tasks().any(|memory| memory.origin.lane == *lane);
    let (tasks, lane) = shared.store.memories(id, |all| unnoted.asked(|lane| holds_task(all, lane)));
    Ok((tasks, lane.cloned()))
}
