//! Gathers what the pure conversation needs from store and homeserver, and freezes what she says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ruma::{OwnedEventId, OwnedRoomId};

use super::context;
use super::shared::{SayTarget, Shared};
use super::turn::labels_of;
use super::{BridgeError, Config, Mind, PersonaConfig, memories, reminders};
use crate::conversation::past::{PastLine, told};
use crate::conversation::prompt::{self, Surroundings, SystemPrompt};
use crate::conversation::reply::{self, Act, Allowance, Fault, Keeps, SCHEMA, Target};
use crate::conversation::{Batch, Cause, Lane, Memory, Millis, PersonaId, Room, hops};
use crate::homeserver::content::{self, Speech};
use crate::mind::{claude, scripted};
use crate::persona::session::{Fingerprint, Session};
use crate::persona::{OpenTurn, State, Wake};
use crate::store::{Guarding, NewSay};

/// A Persona's system prompt, with her state as the store has it.
pub(crate) fn system_prompt(shared: &Shared, persona: &PersonaConfig) -> Result<String, BridgeError> {
    let state = shared.store.state(&persona.persona.id)?;
    Ok(prompt::system(&SystemPrompt {
        name: persona.persona.name.clone(),
        user: persona.persona.user.to_string(),
        doctrine: persona.doctrine.clone(),
        state: state.as_ref().map(State::text),
        registers: shared.config.registers.clone(),
    }))
}

/// What a session begun now would be begun with.
pub(crate) fn fingerprint(config: &Config, persona: &PersonaId, prompt: &str) -> Fingerprint {
    match &config.mind {
        Mind::Claude(claude) => claude::fingerprint(claude, persona, &config.mind_version, prompt, SCHEMA),
        Mind::Scripted(_) => scripted::fingerprint(&config.mind_version, prompt),
    }
}

/// What the words of a batch need beside it, as of a time.
pub(crate) async fn surroundings(
    shared: &Arc<Shared>,
    persona: &PersonaConfig,
    batch: &Batch,
    session: &Session,
    memories: Vec<Memory>,
    turn: &OpenTurn,
) -> Result<Surroundings, BridgeError> {
    let id = &persona.persona.id;
    let mut labels = labels_of(batch);
    for event in batch.deliveries.iter().flat_map(referred) {
        if labels.contains_key(&event) {
            continue;
        }
        if shared.store.sent_by(&event)?.as_ref() == Some(&persona.persona.user) {
            labels.insert(event, prompt::OWN.to_owned());
        } else if let Some(seq) = shared.store.number_of(id, &event)?
            && shared.store.heard(id, seq)?.is_some_and(|heard| heard.lane == batch.lane)
        {
            labels.insert(event, format!("m{seq}"));
        }
    }
    let hands: BTreeSet<OwnedRoomId> = batch.deliveries.iter().map(|d| d.room.clone()).collect();
    let past = past(shared, id, (batch, turn.as_of), session)?;
    let (told, agenda) = reminders::told(shared, id, turn, session)?;
    let of_reminders = told.iter().filter_map(|reminder| reminder.remind.room.as_ref());
    let named = hands.iter().chain(past.iter().map(|line| &line.room)).chain(of_reminders);
    let rooms = room_labels(shared, persona, batch, named);
    let mut context = BTreeMap::new();
    let first = session.last_committed.is_none();
    if first {
        for room in hands {
            let lines = context::lines(shared, &persona.persona, &room, batch).await?;
            context.insert(room, lines);
        }
    }
    let begins_anew = first && session.generation > 1;
    let (trim_over, whole) = trimming(shared, id, batch)?;
    Ok(Surroundings {
        rooms,
        labels,
        context,
        memories,
        past,
        notices: turn.news.as_ref().map(|news| news.notices.clone()).unwrap_or_default(),
        reminders: told,
        agenda,
        trim_over,
        whole,
        tight: turn.troubles.tight,
        begins_anew,
        scheduled: turn.wake == Wake::Silence,
        now: turn.as_of,
    })
}

/// What was heard and said in the batch's lane before, for a session that is to be told so.
fn past(
    shared: &Shared,
    persona: &PersonaId,
    (batch, as_of): (&Batch, Millis),
    session: &Session,
) -> Result<Vec<PastLine>, BridgeError> {
    if !session.seeded {
        return Ok(Vec::new());
    }
    let since = as_of.minus(shared.config.transcript_keep);
    Ok(told(shared.store.past(persona, &batch.lane, since)?, session.generation))
}

/// From which length on a message of a batch is shown in part, and which in whole nevertheless.
fn trimming(
    shared: &Shared,
    persona: &PersonaId,
    batch: &Batch,
) -> Result<(Option<usize>, BTreeSet<u64>), BridgeError> {
    let seqs: Vec<u64> = batch.deliveries.iter().map(|delivery| delivery.seq).collect();
    Ok((Some(shared.config.trim_over), shared.store.whole(persona, &seqs)?))
}

fn referred(delivery: &crate::conversation::Delivery) -> impl Iterator<Item = OwnedEventId> {
    use crate::conversation::DeliveryKind as Kind;
    let of = match &delivery.kind {
        Kind::Edit(of) | Kind::Redaction(of) => Some(of.clone()),
        Kind::Text | Kind::Emote | Kind::Notice | Kind::Media | Kind::Withdrawn => None,
    };
    of.into_iter().chain(delivery.thread.clone()).chain(delivery.reply_to.clone())
}

fn room_labels<'a>(
    shared: &Shared,
    persona: &PersonaConfig,
    batch: &Batch,
    rooms: impl Iterator<Item = &'a OwnedRoomId>,
) -> BTreeMap<OwnedRoomId, String> {
    let directory = shared.directory();
    let label = |room: &OwnedRoomId| match directory.room(room) {
        Some(known) => label(known, persona, &batch.lane),
        None => room.to_string(),
    };
    rooms.map(|room| (room.clone(), label(room))).collect()
}

/// The name of a direct lane's room to her.
pub(crate) fn lane_label(shared: &Shared, persona: &PersonaConfig, lane: &Lane) -> String {
    let Lane::Direct(room) = lane else { return String::new() };
    shared.directory().room(room).map_or_else(|| room.to_string(), |known| label(known, persona, lane))
}

/// A room's name to her: its alias, for a direct room the people in it, else its id.
pub(crate) fn label(room: &Room, persona: &PersonaConfig, lane: &Lane) -> String {
    if let Some(alias) = &room.alias {
        return alias.clone();
    }
    if matches!(lane, Lane::Direct(_)) {
        let others = room.members.keys().filter(|user| **user != persona.persona.user);
        let others: Vec<&str> = others.take(3).map(|user| user.as_str()).collect();
        if !others.is_empty() {
            return format!("dm with {}", others.join(", "));
        }
    }
    room.id.to_string()
}

/// What a reply comes to.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    /// What is sent.
    pub(crate) says: Vec<NewSay>,
    /// Rooms of the mail that have no ear for her any more: what she said there is dropped.
    pub(crate) lost: BTreeSet<OwnedRoomId>,
    /// Her words in them, for what is taken down.
    pub(crate) words: Vec<(OwnedRoomId, String)>,
    /// What she remembers and forgets.
    pub(crate) keeps: Keeps,
    /// What the turn means to what holds Personas.
    pub(crate) guard: Guarding,
    /// How far the turn is from a person's word.
    pub(crate) hops: u32,
}

/// Turns a reply into frozen says, or names the fault that she is told.
///
/// A room that her mail came from stays a place she may name even when she was put out of it, or it was encrypted,
/// meanwhile: that is no fault of hers. What she says there is left out, or said in the room that has taken its place.
pub(crate) fn says(
    shared: &Shared,
    persona: &PersonaConfig,
    turn: &OpenTurn,
    reply: &str,
) -> Result<Result<Spoken, Fault>, BridgeError> {
    let batch = mail_of(shared, persona, turn)?;
    let (allowance, closed) = allowance(shared, persona, (turn, &batch), reply)?;
    let read = reply::acts(reply, &allowance).and_then(|acts| Ok((acts, reply::keeps(reply, &allowance)?)));
    let (acts, keeps) = match read {
        Ok(read) => read,
        Err(fault) => return Ok(Err(fault)),
    };
    let hops = allowance.hops();
    let origin = Cause { turn: turn.id, hops };
    let cause = turn.id.to_string();
    let (mut says, mut lost, mut words) = (Vec::new(), BTreeSet::new(), Vec::new());
    for act in acts {
        let (Act::Say { room, .. } | Act::React { room, .. }) = &act;
        let (room, is_closed) = (room.clone(), closed.contains(room));
        let act = if is_closed { gone_on(shared, persona, &turn.lane, act) } else { Some(act) };
        let Some(act) = &act else {
            lost.insert(room);
            continue;
        };
        if let Act::Say { room, text, .. } = act {
            words.push((room.clone(), text.clone()));
        }
        for (room, kind, content) in contents(shared, act) {
            let part = says.len().to_string();
            let target = SayTarget { room, kind, cause: &cause, part: &part };
            says.push(shared.say_of(&persona.persona.user, target, &content, Some(&origin)));
        }
    }
    let guard = shared.guarding(&persona.persona.id, turn.id, &batch.deliveries)?;
    Ok(Ok(Spoken { says, lost, words, keeps, guard, hops }))
}

/// What she says in a room that another one has taken the place of meanwhile, said there; none where nobody would hear it.
fn gone_on(shared: &Shared, persona: &PersonaConfig, lane: &Lane, act: Act) -> Option<Act> {
    let Act::Say { room, text, .. } = act else { return None };
    let room = shared.directory().gone_on(&persona.persona.id, lane, &room)?;
    Some(Act::Say { room, text, thread: None, newest: None, reply_to: None })
}

/// What a reply that says nothing keeps, or the fault in it.
pub(crate) fn keeps(
    shared: &Shared,
    persona: &PersonaConfig,
    turn: &OpenTurn,
    reply: &str,
) -> Result<Result<Keeps, Fault>, BridgeError> {
    let batch = mail_of(shared, persona, turn)?;
    let (allowance, _) = allowance(shared, persona, (turn, &batch), reply)?;
    Ok(reply::keeps(reply, &allowance))
}

/// The mail of a turn as it is by now.
fn mail_of(shared: &Shared, persona: &PersonaConfig, turn: &OpenTurn) -> Result<Batch, BridgeError> {
    let deliveries = shared.store.deliveries(&persona.persona.id, &turn.seqs)?;
    Ok(Batch { lane: turn.lane.clone(), deliveries }.settled())
}

fn contents<'a>(shared: &Shared, act: &'a Act) -> Vec<(&'a OwnedRoomId, &'static str, serde_json::Value)> {
    match act {
        Act::Say { room, text, thread, newest, reply_to } => {
            let members = shared.directory().room(room).map(|room| room.members.clone()).unwrap_or_default();
            let (thread, newest, reply_to) = (thread.as_deref(), newest.as_deref(), reply_to.as_deref());
            let speech = Speech { text, members: &members, thread, newest, reply_to };
            content::render(&speech).into_iter().map(|content| (room, "m.room.message", content)).collect()
        }
        Act::React { room, event, key } => vec![(room, "m.reaction", content::reaction(event, key))],
    }
}

/// Where this turn may speak: the rooms that are open to its lane, and the labels she heard in it; and which rooms of its
/// mail are closed to her by now.
fn allowance(
    shared: &Shared,
    persona: &PersonaConfig,
    (turn, batch): (&OpenTurn, &Batch),
    reply: &str,
) -> Result<(Allowance, BTreeSet<OwnedRoomId>), BridgeError> {
    let id = &persona.persona.id;
    let mut heard = Vec::new();
    let named = reply::labels_in(reply);
    let memories = memories::worded_in(shared, id, &turn.lane, &named);
    for name in named {
        let Some(seq) = name.strip_prefix('m').and_then(|seq| seq.parse().ok()) else { continue };
        if let Some(row) = shared.store.heard(id, seq)? {
            let target = Target { room: row.room, event: row.event, thread: row.thread };
            heard.push((name, row.lane, target));
        }
    }
    let directory = shared.directory();
    let named = |room: &Room| Some(label(room, persona, &turn.lane));
    let mut rooms =
        reply::Rooms::new(&turn.lane, id, directory.rooms_of(id), &shared.config.registers, named);
    let closed = rooms.take_closed(batch, |room| directory.room(room).and_then(named));
    let (trim_over, whole) = trimming(shared, id, batch)?;
    let tight = turn.troubles.tight;
    let parts = prompt::parts(batch, &Surroundings { trim_over, whole, tight, ..Surroundings::default() });
    let told = reminders::of_turn(shared, id, turn)?;
    let home = told.iter().find_map(|reminder| reminder.remind.room.as_ref());
    let hops = hops::of_turn(&batch.deliveries, &told, shared.config.among.max_hops);
    let agenda = reminders::agenda(shared, id, turn, hops)?;
    let allowance = reply::allowance(batch, rooms, heard).with(memories, parts);
    Ok((allowance.timed(agenda).at_home(home), closed))
}
