//! What Personas want to be reminded of: set and cancelled with the turn that says so, gone with the turn that tells it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::record::ReminderForm;
use super::table::{Table, key, number, parts};
use super::tx::{Read, Tx};
use super::{Reminding, Result, Store};
use crate::conversation::reminder::MOST;
use crate::conversation::{Millis, PersonaId, Reminder, ReminderNumber};
use crate::persona::OpenTurn;

/// How long a reminder waits whose turn was put aside, so that it is not asked again and again.
const LATER: Duration = Duration::from_secs(3600);

impl Store {
    /// What a Persona wants to be reminded of, by number.
    pub fn reminders(&self, persona: &PersonaId) -> Result<Vec<Reminder>> {
        self.read(|view| of(view, persona))
    }
    /// Cancels one of them; answers whether it was open.
    pub async fn cancel_reminder(&self, persona: &PersonaId, number: ReminderNumber) -> Result<bool> {
        let persona = persona.clone();
        self.write(move |tx| cancel(tx, &persona, number)).await
    }
}

/// Her open reminders, by number.
pub(super) fn of<R: Read>(from: &R, persona: &PersonaId) -> Result<Vec<Reminder>> {
    let rows = from.records::<ReminderForm>(Table::Reminders, &key(persona.as_str(), &[]))?.into_iter();
    rows.map(|(place, form)| {
        let (_, rest) = parts(Table::Reminders, &place)?;
        Ok(form.numbered(ReminderNumber(number(Table::Reminders, rest)?)))
    })
    .collect()
}

/// Cancels one; answers whether it was open.
pub(super) fn cancel(tx: &mut Tx<'_>, persona: &PersonaId, number: ReminderNumber) -> Result<bool> {
    let place = place(persona, number);
    let was_open = tx.row(Table::Reminders, &place)?.is_some();
    if was_open {
        tx.remove(Table::Reminders, &place)?;
    }
    Ok(was_open)
}

/// Writes down what a turn that is over did: what it told is done with, and what its reply says of others counts from now on.
pub(super) fn ended(
    tx: &mut Tx<'_>,
    persona: &PersonaId,
    turn: &OpenTurn,
    Reminding { remind, unremind, listed }: Reminding,
    now: Millis,
) -> Result<()> {
    let told = turn.reminders.iter().copied().map(ReminderNumber);
    for number in told.chain(unremind).collect::<BTreeSet<_>>() {
        cancel(tx, persona, number)?;
    }
    let left = of(tx, persona)?;
    let room_for = MOST.saturating_sub(left.len());
    for reminder in left.into_iter().filter(|reminder| reminder.lane == turn.lane) {
        if listed.is_some() && reminder.listed != listed {
            put(tx, persona, Reminder { listed, ..reminder })?;
        }
    }
    for remind in remind.into_iter().take(room_for) {
        let number = ReminderNumber(tx.count(&format!("reminders:{persona}"))?);
        put(tx, persona, Reminder { number, lane: turn.lane.clone(), remind, set: now, listed: None })?;
    }
    Ok(())
}

/// A turn was put aside: what it was to tell stays open, and comes later.
pub(super) fn put_off(tx: &mut Tx<'_>, persona: &PersonaId, turn: &OpenTurn, now: Millis) -> Result<()> {
    for reminder in of(tx, persona)?.into_iter().filter(|one| turn.reminders.contains(&one.number.0)) {
        let mut later = reminder;
        later.remind.due = later.remind.due.max(now.plus(LATER));
        put(tx, persona, later)?;
    }
    Ok(())
}

fn put(tx: &mut Tx<'_>, persona: &PersonaId, reminder: Reminder) -> Result<()> {
    let place = place(persona, reminder.number);
    tx.put(Table::Reminders, &place, &ReminderForm::from(reminder))
}

fn place(persona: &PersonaId, number: ReminderNumber) -> Vec<u8> {
    key(persona.as_str(), &number.0.to_be_bytes())
}
