//! What is spent today, and what follows once the budget or the plan allows no more: mail waits, operators are told once,
//! and people where that is wanted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::BridgeError;
use super::shared::{SayTarget, Shared, notice};
use crate::conversation::notices::Past;
use crate::conversation::prompt::moment;
use crate::conversation::{Lane, Millis, PersonaId};
use crate::persona::budget::{Limit, Spent, begin_of, day_number, day_of, next_day};
use crate::persona::session::{Entry, EntryKind, Usd};
use crate::persona::{LaneMail, OpenTurn};

/// A wait that the API asked for and that is at least so long is told as a limit.
const LONG: Duration = Duration::from_secs(60);

/// Of how many days that are over it is told what was spent, at most.
const WEEK: u64 = 7;

/// What was spent on one day of UTC.
#[derive(Debug, Default)]
pub(crate) struct Spend {
    day: Millis,
    by_persona: BTreeMap<PersonaId, Usd>,
}

impl Spend {
    /// What the ledger's entries of today come to.
    pub(crate) fn of_ledger<'a>(entries: impl IntoIterator<Item = &'a Entry>, now: Millis) -> Self {
        let mut spend = Self { day: day_of(now), by_persona: BTreeMap::new() };
        for entry in entries {
            let money = match &entry.kind {
                EntryKind::Request(request) => request.money,
                EntryKind::Ping { money, .. } | EntryKind::Probe { money, .. } => *money,
                EntryKind::Warmth { .. } | EntryKind::Begun { .. } => None,
            };
            spend.add(&entry.persona, money.unwrap_or_default(), entry.at);
        }
        spend
    }

    /// A request was paid for.
    pub(crate) fn add(&mut self, persona: &PersonaId, money: Usd, at: Millis) {
        if day_of(at) > self.day {
            *self = Self { day: day_of(at), by_persona: BTreeMap::new() };
        }
        if day_of(at) == self.day {
            *self.by_persona.entry(persona.clone()).or_default() += money;
        }
    }

    /// What was spent today, by all and by her.
    pub(crate) fn today(&self, persona: &PersonaId, now: Millis) -> Spent {
        if day_of(now) > self.day {
            return Spent::default();
        }
        let own = self.by_persona.get(persona).copied().unwrap_or_default();
        Spent { all: self.by_persona.values().copied().sum(), own }
    }
}

/// What was spent of the budgets on each day that is over since the day of which her session was told last, at most a week of them.
/// Where it was told of none that is yesterday, unless she was asked since.
pub(crate) fn past(
    shared: &Shared,
    persona: &PersonaId,
    told: Option<u64>,
    now: Millis,
) -> Result<Vec<Past>, BridgeError> {
    let (budget, today) = (shared.config.budget, day_number(now));
    let first = told.unwrap_or(today.saturating_sub(1)).max(today.saturating_sub(WEEK));
    if first >= today || !budget.limits_days() {
        return Ok(Vec::new());
    }
    let entries = shared.store.ledger(begin_of(first))?;
    let is_hers_of_today = |entry: &Entry| {
        entry.persona == *persona
            && day_number(entry.at) >= today
            && matches!(entry.kind, EntryKind::Request(_))
    };
    if told.is_none() && entries.iter().any(is_hers_of_today) {
        return Ok(Vec::new());
    }
    let of_day = |day: u64| {
        let on_it = entries.iter().filter(|entry| day_number(entry.at) == day);
        let spent = Spend::of_ledger(on_it, begin_of(day)).today(persona, begin_of(day));
        Past { day, spent: budget.quarters(spent) }
    };
    Ok((first..today).map(of_day).collect())
}

/// Until when a limit of a day keeps a Persona from being asked, if one does.
pub(crate) fn spent_until(shared: &Shared, persona: &PersonaId) -> Option<Millis> {
    let now = shared.clock.now();
    let reached = shared.config.budget.reached(shared.spend().today(persona, now));
    reached.map(|_| next_day(now))
}

/// Until when the budget holds a Persona, if it does; told once a day to operators, and shown in /ready.
pub(crate) async fn held_until(shared: &Shared, persona: &PersonaId) -> Result<Option<Millis>, BridgeError> {
    if !shared.config.budget.limits_days() {
        return Ok(None);
    }
    let now = shared.clock.now();
    let reached = shared.config.budget.reached(shared.spend().today(persona, now));
    let own_key = format!("budget:{persona}");
    let Some(limit) = reached else {
        shared.readiness.clear(&own_key);
        return Ok(None);
    };
    let (until, day) = (next_day(now), day_of(now).0);
    let (key, text) = match limit {
        Limit::Day(limit) => (
            format!("budget:{day}"),
            format!("[budget] per_day ({limit}) is spent: nobody is asked until {}", moment(until)),
        ),
        Limit::PersonaDay(limit) => (
            format!("budget:{persona}:{day}"),
            format!(
                "[budget] per_persona_per_day ({limit}) of {persona} is spent: she is not asked until {}",
                moment(until)
            ),
        ),
    };
    if shared.readiness.say(&own_key, &text) {
        shared.tell(&key, &text).await?;
    }
    Ok(Some(until))
}

/// The API asked her to wait: a limit of the plan is told to operators once, however many Personas meet it.
pub(crate) async fn limited(
    shared: &Shared,
    persona: &PersonaId,
    reason: &str,
    wait: Duration,
) -> Result<(), BridgeError> {
    if wait < LONG {
        return Ok(());
    }
    let now = shared.clock.now();
    let until = now.plus(wait);
    if !shared.note_limit(now, until) {
        return Ok(());
    }
    let text = format!("{persona} waits until {}: {reason}; her mail waits with her", moment(until));
    shared.tell(&format!("limit:{}", until.0), &text).await
}

/// Tells people in their direct rooms once that their mail waits until then, where the operator wants it.
pub(crate) async fn courtesy(
    shared: &Shared,
    persona: &PersonaId,
    until: Millis,
    waiting: (&[LaneMail], Option<&OpenTurn>),
) -> Result<(), BridgeError> {
    if !shared.config.budget.courtesy || until.since(shared.clock.now()) < LONG {
        return Ok(());
    }
    let Some(user) = shared.user_of(persona) else { return Ok(()) };
    let (lanes, open) = waiting;
    let lanes = lanes.iter().filter(|mail| !mail.waking.is_empty()).map(|mail| &mail.lane);
    let open = open.filter(|turn| turn.flush.is_none()).map(|turn| &turn.lane);
    for lane in lanes.chain(open) {
        let Lane::Direct(room) = lane else { continue };
        let cause = format!("courtesy:{room}:{}", until.0);
        let target = SayTarget { room, kind: "m.room.message", cause: &cause, part: "0" };
        let text = format!("I cannot answer before {}; your message waits for me.", moment(until));
        let say = shared.say(&user, target, &notice(&text));
        if shared.store.say_once(cause, vec![say], shared.clock.now()).await? {
            shared.outbox.notify_one();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    fn id(name: &str) -> PersonaId {
        PersonaId(name.to_owned())
    }

    #[test]
    fn each_day_is_summed_by_itself() {
        let mut spend = Spend::of_ledger(&[], Millis(5 * DAY + 1));
        spend.add(&id("eir"), Usd(3), Millis(5 * DAY + 1));
        spend.add(&id("eir"), Usd(4), Millis(6 * DAY - 1));
        spend.add(&id("bil"), Usd(2), Millis(6 * DAY - 1));
        let today = |spend: &Spend, at| spend.today(&id("eir"), Millis(at));
        assert_eq!(today(&spend, 6 * DAY - 1), Spent { all: Usd(9), own: Usd(7) });
        assert_eq!(today(&spend, 6 * DAY), Spent::default());
        spend.add(&id("bil"), Usd(1), Millis(6 * DAY));
        assert_eq!(today(&spend, 6 * DAY), Spent { all: Usd(1), own: Usd(0) });
        spend.add(&id("eir"), Usd(9), Millis(5 * DAY));
        assert_eq!(
            today(&spend, 6 * DAY),
            Spent { all: Usd(1), own: Usd(0) },
            "what is late is of its own day"
        );
    }
}
