//! What admins are shown in chat.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::bridge::heart::Outlook;
use crate::bridge::shared::Shared;
use crate::bridge::{BridgeError, PersonaConfig, heart, spend};
use crate::conversation::prompt::moment;
use crate::conversation::{Lane, Millis, PersonaId};
use crate::mind::claude::PINNED_VERSION;
use crate::persona::budget::day_of;
use crate::persona::session::{Session, Usd, sums};
use crate::persona::{LaneMail, OpenTurn};

/// How everybody is. Direct chats are named only where nobody else reads along.
pub(super) fn status(shared: &Shared, is_alone: bool) -> Result<String, BridgeError> {
    let now = shared.clock.now();
    let entries = shared.store.ledger(day_of(now))?;
    let today = sums::sum(&entries, day_of(now));
    let mut text = String::new();
    for PersonaConfig { persona, .. } in &shared.config.personas {
        let id = &persona.id;
        let (open, session) = shared.store.standing(id)?;
        let spent = shared.spend().today(id, now).own;
        let _ = writeln!(text, "{id}: {}", state(shared, id, open.as_ref())?);
        let _ = writeln!(text, "  session {}", session.as_ref().map_or("none yet".to_owned(), of_session));
        let verdicts = today.personas.get(id).into_iter().flat_map(|sum| &sum.verdicts);
        let verdicts: Vec<String> =
            verdicts.map(|(verdict, count)| format!("{count} {}", verdict.name())).collect();
        let verdicts = if verdicts.is_empty() { "nothing asked".to_owned() } else { verdicts.join(", ") };
        let _ = writeln!(text, "  today   {spent}, cache: {verdicts}");
        let full = full(shared, id)?;
        for (lane, (count, oldest)) in waiting(shared, id)? {
            let full = full.get(&lane).map_or_else(String::new, |until| {
                format!("; a room of it has reached room_limit and wakes nobody until {}", moment(*until))
            });
            let lane = lane_name(&lane, is_alone);
            let _ = writeln!(text, "  waiting {count} in {lane}, the oldest for {}{full}", age(now, oldest));
        }
    }
    let _ = writeln!(text, "{}", beat(&heart::outlook(shared)?));
    let _ = match held(shared, is_alone) {
        Some(held) => writeln!(text, "the brake holds {held}"),
        None => writeln!(text, "the brake holds nobody"),
    };
    for reason in shared.readiness.reasons() {
        let _ = writeln!(text, "not ready: {reason}");
    }
    Ok(text.trim_end().to_owned())
}

fn beat(outlook: &Outlook) -> String {
    match outlook {
        Outlook::Falls(at) => format!("the next beat falls {} at the earliest", moment(*at)),
        Outlook::Cools(at) => format!(
            "the next beat is due and falls {} at the earliest: whoever has mail for it cools down",
            moment(*at)
        ),
        Outlook::Thinks => "the next beat is due and waits: whoever has mail for it thinks".to_owned(),
        Outlook::Nobody => "no beat grants anybody a turn as things stand: nobody may be asked".to_owned(),
    }
}

/// Whom the brake holds, and who is stopped where. Direct chats are named only where nobody else reads along.
pub(super) fn held(shared: &Shared, is_alone: bool) -> Option<String> {
    let brake = shared.brake().clone();
    if is_alone {
        return brake.told();
    }
    let directory = shared.directory();
    brake.told_with(|id| {
        let mut seats = directory.room(id).into_iter().flat_map(|room| room.seats.values()).peekable();
        if seats.peek().is_none() {
            "a room that is left".to_owned()
        } else if seats.any(|seat| matches!(seat.lane, Lane::Direct(_))) {
            "a direct chat".to_owned()
        } else {
            id.to_string()
        }
    })
}

fn state(shared: &Shared, id: &PersonaId, open: Option<&OpenTurn>) -> Result<String, BridgeError> {
    let now = shared.clock.now();
    let thinks = shared.bells.get(id).is_some_and(|bell| bell.thinks.load(Ordering::Relaxed));
    let spent = spent(shared, id);
    Ok(match open {
        _ if shared.brake().holds(id) => "held".to_owned(),
        Some(turn) if thinks => format!("thinking, attempt {}", turn.attempt),
        _ if spent.is_some() => spent.unwrap_or_default(),
        Some(turn) if turn.not_before > now => {
            format!("waits to be asked again until {}", moment(turn.not_before))
        }
        Some(_) => "about to be asked".to_owned(),
        None if shared.store.waiting(id)?.iter().any(|mail| mail.wakes) => "waiting".to_owned(),
        None => "idle".to_owned(),
    })
}

/// Until when a Persona's budget holds her, if it does.
pub(super) fn spent(shared: &Shared, id: &PersonaId) -> Option<String> {
    let until = spend::spent_until(shared, id)?;
    Some(format!("her budget of the day is spent: nothing is asked of her until {}", moment(until)))
}

fn of_session(session: &Session) -> String {
    let prefix = session.account.prefix;
    let fill = match session.account.window {
        Some(window) if window > 0 => {
            format!("{} % of its window ({prefix} of {window} tokens)", prefix * 100 / window)
        }
        Some(_) | None => format!("{prefix} tokens"),
    };
    format!("{}, {fill}", session.generation)
}

/// The mail that waits outside an open turn, by lane: how much, and since when.
fn waiting(shared: &Shared, id: &PersonaId) -> Result<BTreeMap<Lane, (usize, Millis)>, BridgeError> {
    let mut lanes: BTreeMap<Lane, (usize, Millis)> = BTreeMap::new();
    for mail in shared.store.waiting(id)? {
        let (count, oldest) = lanes.entry(mail.lane).or_insert((0, mail.heard));
        (*count, *oldest) = (*count + 1, (*oldest).min(mail.heard));
    }
    Ok(lanes)
}

/// The lanes with mail that would wake her but for rooms that bear nothing more, and until when.
fn full(shared: &Shared, id: &PersonaId) -> Result<BTreeMap<Lane, Millis>, BridgeError> {
    let until = |mail: &LaneMail| mail.waking.iter().filter_map(|room| room.full).min();
    let lanes = shared.ready_lanes(id)?.into_iter();
    Ok(lanes.filter_map(|mail| until(&mail).map(|until| (mail.lane, until))).collect())
}

fn lane_name(lane: &Lane, is_alone: bool) -> String {
    match lane {
        Lane::Register(name) => name.0.clone(),
        Lane::Direct(room) if is_alone => format!("the direct chat {room}"),
        Lane::Direct(_) => "a direct chat".to_owned(),
    }
}

fn age(now: Millis, since: Millis) -> String {
    humantime::format_duration(Duration::from_secs(now.since(since).as_secs())).to_string()
}

/// Who there is.
pub(super) fn personas(shared: &Shared) -> String {
    let line = |known: &PersonaConfig| {
        let persona = &known.persona;
        let rooms: Vec<&str> = known.rooms.iter().map(|alias| alias.as_str()).collect();
        format!("{}: {}, {}; {}", persona.id, persona.name, persona.user, rooms.join(", "))
    };
    shared.config.personas.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What may be spent, and what is spent today.
pub(super) fn budget(shared: &Shared) -> String {
    let (budget, now) = (&shared.config.budget, shared.clock.now());
    let of = |limit: Option<Usd>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    let mut lines = Vec::new();
    for PersonaConfig { persona, .. } in &shared.config.personas {
        let spent = shared.spend().today(&persona.id, now);
        if lines.is_empty() {
            lines.push(format!("today {}, per_day {}", spent.all, of(budget.per_day)));
        }
        lines.push(format!(
            "{}: {}, per_persona_per_day {}",
            persona.id,
            spent.own,
            of(budget.per_persona_per_day)
        ));
    }
    lines.push(format!("per_turn {}", of(budget.per_turn)));
    lines.join("\n")
}

/// Which bridge this is.
pub(super) fn version(shared: &Shared) -> String {
    let (version, mind) = (env!("CARGO_PKG_VERSION"), &shared.config.mind_version);
    format!("persona-bridge {version}, its mind {mind}; measured on claude {PINNED_VERSION}")
}
