//! Reminders as they come due, and what operators do with them.

use ruma::OwnedRoomId;
use serde_json::{Value, json};

use super::BridgeError;
use super::shared::Shared;
use crate::conversation::prompt::reminder_line;
use crate::conversation::reply::Agenda;
use crate::conversation::{Lane, Millis, PersonaId, Reminder, ReminderNumber};
use crate::persona::OpenTurn;
use crate::persona::session::Session;
use crate::store::{Store, StoreError};

/// The names of the orders.
const LIST: &str = "list-reminders";
const CANCEL: &str = "cancel-reminder";

/// What is asked of a Persona's reminders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reminders {
    /// All that are open.
    List,
    /// That this one is told no more.
    Cancel(ReminderNumber),
}

impl Reminders {
    /// As an order about a Persona.
    pub(crate) fn to_json(&self, persona: &PersonaId) -> Value {
        match self {
            Self::List => json!({ "order": LIST, "persona": persona.as_str() }),
            Self::Cancel(number) => {
                json!({ "order": CANCEL, "persona": persona.as_str(), "reminder": number.0 })
            }
        }
    }

    /// Reads what [`Reminders::to_json`] made; none where it is something else.
    pub(crate) fn from_json(order: &str, json: &Value) -> Option<Self> {
        match order {
            LIST => Some(Self::List),
            CANCEL => json["reminder"].as_u64().map(|number| Self::Cancel(ReminderNumber(number))),
            _ => None,
        }
    }
}

/// Does what is asked; answers in words, which are hers where reminders are listed.
pub(crate) async fn carry_out(
    store: &Store,
    persona: &PersonaId,
    asked: &Reminders,
) -> Result<String, StoreError> {
    Ok(match asked {
        Reminders::List => {
            let lines: Vec<String> = store.reminders(persona)?.iter().map(reminder_line).collect();
            if lines.is_empty() { format!("{persona} has no reminder open") } else { lines.join("\n") }
        }
        Reminders::Cancel(number) => {
            if store.cancel_reminder(persona, *number).await? {
                format!("{persona} is not reminded of {number} any more")
            } else {
                format!("{persona} has no reminder {number} open")
            }
        }
    })
}

/// Where her next reminder is told and when, of those that are not held up for good. One that is due and has no room of its lane
/// left is dropped, and operators are told.
pub(crate) async fn next(
    shared: &Shared,
    persona: &PersonaId,
) -> Result<Option<(Lane, Millis)>, BridgeError> {
    let now = shared.clock.now();
    let mut next: Option<(Lane, Millis)> = None;
    for reminder in shared.store.reminders(persona)? {
        if reminder.remind.due <= now && rooms(shared, persona, &reminder.lane).is_empty() {
            drop_one(shared, persona, reminder.number).await?;
        } else if let Some(at) = told_at(shared, persona, &reminder)
            && next.as_ref().is_none_or(|(_, first)| at < *first)
        {
            next = Some((reminder.lane, at));
        }
    }
    Ok(next)
}

/// Since when the first is due of those that her open turn tells or that may be told now, if one is.
pub(crate) fn due_since(
    shared: &Shared,
    persona: &PersonaId,
    turn: Option<&OpenTurn>,
) -> Result<Option<Millis>, BridgeError> {
    let is_told = |one: &Reminder| turn.is_some_and(|turn| turn.reminders.contains(&one.number.0));
    let open = shared.store.reminders(persona)?.into_iter();
    let is_due = |one: &Reminder| is_told(one) || may_be_told(shared, persona, one);
    Ok(open.filter(is_due).map(|reminder| reminder.remind.due).min())
}

async fn drop_one(shared: &Shared, persona: &PersonaId, number: ReminderNumber) -> Result<(), BridgeError> {
    let text = format!(
        "{persona} is in none of the rooms any more where she set the reminder {number}; it was dropped"
    );
    shared.tell(&format!("reminder:{persona}:{number}"), &text).await?;
    shared.store.cancel_reminder(persona, number).await?;
    Ok(())
}

/// Whether she is stopped where a reminder is told.
pub(crate) fn is_stopped(shared: &Shared, persona: &PersonaId, reminder: &Reminder) -> bool {
    let rooms = rooms_of(shared, persona, reminder);
    !rooms.is_empty() && rooms.iter().all(|room| shared.stops(persona, room))
}

fn may_be_told(shared: &Shared, persona: &PersonaId, reminder: &Reminder) -> bool {
    told_at(shared, persona, reminder).is_some_and(|at| at <= shared.clock.now())
}

/// When a reminder is told: once it is due and one of its rooms bears more of Personas; none while she is stopped or held in all of
/// them.
fn told_at(shared: &Shared, persona: &PersonaId, reminder: &Reminder) -> Option<Millis> {
    let (rooms, due) = (rooms_of(shared, persona, reminder), reminder.remind.due);
    if rooms.is_empty() {
        return Some(due);
    }
    let held = shared.held_in(persona);
    let free = rooms.iter().filter(|room| !held.contains(*room) && !shared.stops(persona, room));
    free.map(|room| shared.is_full_until(room, true).unwrap_or(due)).min().map(|opens| opens.max(due))
}

/// The rooms that a reminder is for: the one that it is about, else all of its lane.
fn rooms_of(shared: &Shared, persona: &PersonaId, reminder: &Reminder) -> Vec<OwnedRoomId> {
    let mut rooms = rooms(shared, persona, &reminder.lane);
    if let Some(about) = reminder.remind.room.as_ref().filter(|room| rooms.contains(room)) {
        rooms.retain(|room| room == about);
    }
    rooms
}

/// The rooms in which she can speak in a lane.
fn rooms(shared: &Shared, persona: &PersonaId, lane: &Lane) -> Vec<OwnedRoomId> {
    let directory = shared.directory();
    let open = directory.rooms_in(persona, lane).filter(|room| !room.encrypted);
    open.map(|room| room.id.clone()).collect()
}

/// The numbers of those that a turn of the lane tells which begins now.
pub(crate) fn due_in(shared: &Shared, persona: &PersonaId, lane: &Lane) -> Result<Vec<u64>, BridgeError> {
    let is_due = |one: &Reminder| one.lane == *lane && may_be_told(shared, persona, one);
    let open = shared.store.reminders(persona)?.into_iter();
    Ok(open.filter(is_due).map(|reminder| reminder.number.0).collect())
}

/// Those that an open turn tells; not those that were cancelled meanwhile.
pub(crate) fn of_turn(
    shared: &Shared,
    persona: &PersonaId,
    turn: &OpenTurn,
) -> Result<Vec<Reminder>, BridgeError> {
    if turn.reminders.is_empty() {
        return Ok(Vec::new());
    }
    let mut open = shared.store.reminders(persona)?;
    open.retain(|reminder| turn.reminders.contains(&reminder.number.0) && reminder.lane == turn.lane);
    Ok(open)
}

/// Those that a turn tells, and the others that are open in its lane, where she is to be told which those are: with one that is
/// due, in a session that has not been told, and after she has set one.
pub(crate) fn told(
    shared: &Shared,
    persona: &PersonaId,
    turn: &OpenTurn,
    session: &Session,
) -> Result<(Vec<Reminder>, Vec<Reminder>), BridgeError> {
    let mut open = shared.store.reminders(persona)?;
    open.retain(|reminder| reminder.lane == turn.lane);
    let (told, mut agenda): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|reminder| turn.reminders.contains(&reminder.number.0));
    let is_known = |reminder: &Reminder| reminder.listed == Some(session.generation);
    if told.is_empty() && agenda.iter().all(is_known) {
        agenda.clear();
    }
    Ok((told, agenda))
}

/// What a reply of the turn, so far from a person's word, may do with them.
pub(crate) fn agenda(
    shared: &Shared,
    persona: &PersonaId,
    turn: &OpenTurn,
    hops: u32,
) -> Result<Agenda, BridgeError> {
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        shared.store.reminders(persona)?.into_iter().partition(|reminder| reminder.lane == turn.lane);
    let here = here.into_iter().map(|reminder| reminder.number);
    let open = here.filter(|number| !turn.reminders.contains(&number.0)).collect();
    let told = turn.reminders.iter().copied().map(ReminderNumber).collect();
    // What no person asked for follows itself no faster than the beat.
    let heart = shared.config.heart;
    let soonest = if hops == 0 { heart.beat_min } else { heart.beat };
    Ok(Agenda { now: turn.as_of, hops, soonest, open, told, elsewhere: elsewhere.len() })
}
