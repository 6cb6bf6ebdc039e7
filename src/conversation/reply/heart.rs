//! How fast she wants the beat, and of what she wants to be reminded.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use super::acts::room;
use super::decode::{PulseWord, RemindWord, Reply, label};
use super::keeps::{cut, line};
use super::{Allowance, Fault};
use crate::conversation::ids::Millis;
use crate::conversation::reminder::{HORIZON, MOST, Remind, ReminderNumber, TEXT_BYTES};

/// The greatest urgency.
const URGENCY: f64 = 1000.0;
/// How long ago a time may lie that she names by its minute.
const MINUTE: Duration = Duration::from_secs(60);

/// How fast she wants the shared beat, and how much it matters to her to be heard at the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// The time between two beats that she votes for; none where she has no wish.
    pub tempo: Option<Duration>,
    /// From 0 to 1000.
    pub urgency: u16,
}

/// What a reply does to her reminders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reminds {
    /// What she wants to be reminded of.
    pub remind: Vec<Remind>,
    /// What she wants to be reminded of no more.
    pub unremind: BTreeSet<ReminderNumber>,
}

/// What is known of the time, and of her open reminders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// The time now.
    pub now: Millis,
    /// How far from a person's word the turn is.
    pub hops: u32,
    /// How far ahead a reminder lies at least.
    pub soonest: Duration,
    /// Those that are open in the lane.
    pub open: BTreeSet<ReminderNumber>,
    /// Those that the turn tells, which are done with.
    pub told: BTreeSet<ReminderNumber>,
    /// How many are open in her other lanes.
    pub elsewhere: usize,
}

/// Reads her pulse; an urgency beyond its bounds is the bound.
pub(super) fn pulse(word: &PulseWord) -> Result<Pulse, Fault> {
    let tempo = word.tempo.as_deref().map(str::trim).filter(|tempo| !tempo.is_empty());
    let tempo = tempo.map(|tempo| span("pulse.tempo", tempo)).transpose()?;
    let urgency = word.urgency.unwrap_or_default();
    let urgency = if urgency.is_nan() { 0.0 } else { urgency.clamp(0.0, URGENCY).round() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within 0 to 1000")]
    let urgency = urgency as u16;
    Ok(Pulse { tempo, urgency })
}

/// Reads what becomes of her reminders; one without a word is left out, one that is too long is cut.
pub(super) fn reminds(reply: &Reply, allowance: &Allowance) -> Result<Reminds, Fault> {
    let Agenda { open, told, elsewhere, .. } = &allowance.agenda;
    let cancelled = |given: &String| {
        let number = ReminderNumber::of_label(&label(given))
            .filter(|number| open.contains(number) || told.contains(number));
        number.ok_or_else(|| {
            Fault(format!("{given:?} is not the label of a reminder of yours that is open here"))
        })
    };
    let unremind = reply.unremind.iter().map(cancelled).collect::<Result<BTreeSet<_>, _>>()?;
    let remind = reply.remind.iter().filter_map(|word| remind(word, allowance).transpose());
    let remind = remind.collect::<Result<Vec<_>, _>>()?;
    let left: Vec<String> = open.difference(&unremind).map(ToString::to_string).collect();
    if !remind.is_empty() && left.len() + elsewhere + remind.len() > MOST {
        return Err(Fault(format!(
            "you may have {MOST} reminders open; here are: {}, and {elsewhere} elsewhere (unremind those that you need no more)",
            left.join(", ")
        )));
    }
    Ok(Reminds { remind, unremind })
}

fn remind(word: &RemindWord, allowance: &Allowance) -> Result<Option<Remind>, Fault> {
    let text = cut(&line(&word.text), TEXT_BYTES);
    if text.is_empty() {
        return Ok(None);
    }
    let given = |text: &Option<String>| text.as_deref().map(str::trim).unwrap_or_default().to_owned();
    let Agenda { now, hops, soonest, .. } = allowance.agenda;
    let due = match (given(&word.after).as_str(), given(&word.at).as_str()) {
        ("", "") => return Err(Fault("remind: say when, by `in` or `at`".to_owned())),
        (after, "") => now.plus(span("remind.in", after)?),
        ("", at) => moment(at).ok_or_else(|| {
            Fault(format!("remind.at: {at:?} is not a time such as \"2026-10-31 09:20\" (UTC)"))
        })?,
        (_, _) => return Err(Fault("remind: `in` and `at` exclude each other".to_owned())),
    };
    if due.plus(MINUTE) < now {
        return Err(Fault("remind.at: that time is past".to_owned()));
    }
    if due > now.plus(HORIZON) {
        return Err(Fault("remind: at most a year ahead".to_owned()));
    }
    let named = word.room.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let room = named.map(|name| room(name, allowance)).transpose()?;
    Ok(Some(Remind { due: due.max(now.plus(soonest)), text, room, hops }))
}

fn span(of: &str, text: &str) -> Result<Duration, Fault> {
    humantime::parse_duration(text)
        .map_err(|_| Fault(format!("{of}: {text:?} is not a duration such as \"20m\" or \"2h\"")))
}

/// A time of UTC as it stands in mail, or as RFC 3339 has it.
fn moment(text: &str) -> Option<Millis> {
    let text = text.trim_end_matches('Z').trim_end_matches("UTC").trim_end();
    let whole = if text.len() == "2026-10-31 09:20".len() { format!("{text}:00") } else { text.to_owned() };
    let time = humantime::parse_rfc3339_weak(&whole).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok().map(Millis)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::two_rooms;
    use super::super::{Keeps, keeps};
    use super::*;

    /// 2026-10-31 08:40 UTC.
    const NOW: Millis = Millis(1_793_436_000_000);

    fn read(keys: &Value) -> Result<Keeps, Fault> {
        let mut reply = json!({"say": [], "react": []});
        let keys = keys.as_object().unwrap().clone();
        reply.as_object_mut().unwrap().extend(keys);
        let agenda = Agenda {
            now: NOW,
            hops: 2,
            soonest: Duration::from_secs(60),
            open: [3, 7].map(ReminderNumber).into(),
            told: [5].map(ReminderNumber).into(),
            elsewhere: 1,
        };
        keeps(&reply.to_string(), &two_rooms().timed(agenda))
    }

    #[track_caller]
    fn check_pulse(pulse: Value, tempo: Option<u64>, urgency: u16) {
        let expect = Pulse { tempo: tempo.map(Duration::from_secs), urgency };
        assert_eq!(read(&json!({ "pulse": pulse })).unwrap().pulse, Some(expect), "{pulse}");
    }

    #[track_caller]
    fn check_due(remind: Value, due: u64) {
        let reminds = read(&json!({ "remind": [remind] })).unwrap().reminds;
        assert_eq!(reminds.remind.iter().map(|remind| remind.due.0).collect::<Vec<_>>(), [due], "{remind}");
    }

    #[track_caller]
    fn check_fault(keys: Value, fault: &str) {
        let read = read(&keys).unwrap_err().0;
        assert!(read.contains(fault), "{keys}: {read}");
    }

    #[test]
    fn a_pulse_is_a_tempo_and_an_urgency() {
        check_pulse(json!({"tempo": " 20m ", "urgency": 300}), Some(1_200), 300);
        check_pulse(json!({"urgency": 0}), None, 0);
        check_pulse(json!({"tempo": "", "urgency": 1e9}), None, 1000);
        check_pulse(json!({"tempo": "1h 30m", "urgency": -4.0}), Some(5_400), 0);
        check_pulse(json!({}), None, 0);
        assert_eq!(read(&json!({})).unwrap().pulse, None);
        check_fault(json!({"pulse": {"tempo": "soon", "urgency": 1}}), "pulse.tempo: \"soon\"");
        check_fault(json!({"pulse": {"pace": 1}}), "unknown field");
    }

    #[test]
    fn a_reminder_is_due_after_a_while_or_at_a_time() {
        let minute = 60_000;
        check_due(json!({"in": "20m", "text": "x"}), NOW.0 + 20 * minute);
        check_due(json!({"in": "0s", "text": "x"}), NOW.0 + minute);
        check_due(json!({"at": "2026-10-31 08:40", "in": "", "text": "x"}), NOW.0 + minute);
        for at in ["2026-10-31 09:40", "2026-10-31 09:40 UTC", "2026-10-31T09:40:00Z"] {
            check_due(json!({"at": at, "text": "x"}), NOW.0 + 60 * minute);
        }
        check_fault(json!({"remind": [{"text": "x"}]}), "say when");
        check_fault(json!({"remind": [{"text": "x", "in": "1h", "at": "2026-10-31 09:40"}]}), "exclude");
        check_fault(json!({"remind": [{"text": "x", "in": "later"}]}), "remind.in: \"later\"");
        check_fault(json!({"remind": [{"text": "x", "at": "2026-10-31T09:40:00+02:00"}]}), "remind.at");
        check_fault(json!({"remind": [{"text": "x", "at": "2026-10-31 08:38"}]}), "is past");
        check_fault(json!({"remind": [{"text": "x", "in": "400days"}]}), "at most a year");
        check_fault(json!({"remind": [{"text": "x", "in": "1h", "room": "elsewhere"}]}), "is not a room");
    }

    #[test]
    fn a_reminder_is_one_line_and_one_without_a_word_is_left_out() {
        let words = |text: &str| {
            let reminds = read(&json!({"remind": [{"in": "1h", "text": text}]})).unwrap().reminds;
            reminds.remind.into_iter().map(|remind| remind.text).collect::<Vec<_>>()
        };
        assert_eq!(words(" ask\n Bob\u{7} "), ["ask Bob"]);
        assert_eq!(words(&"é".repeat(600)), ["é".repeat(250)]);
        assert!(words(" \n").is_empty());
    }

    #[test]
    fn open_reminders_are_cancelled_by_label_and_no_more_are_open_than_may_be() {
        let unremind = |labels: &[&str]| json!({ "unremind": labels });
        assert_eq!(
            read(&unremind(&[" R3", "r7"])).unwrap().reminds.unremind,
            [3, 7].map(ReminderNumber).into()
        );
        assert!(read(&unremind(&["r5"])).is_ok(), "it is told by the turn");
        check_fault(unremind(&["r4"]), "\"r4\" is not the label of a reminder");
        check_fault(unremind(&["m3"]), "\"m3\" is not the label of a reminder");
        let three = vec![json!({"in": "1h", "text": "x"}); 3];
        check_fault(json!({ "remind": three }), "5 reminders open; here are: r3, r7, and 1 elsewhere");
        assert_eq!(read(&json!({ "remind": three[1..] })).unwrap().reminds.remind.len(), 2);
        assert_eq!(read(&json!({ "remind": three, "unremind": ["r7"] })).unwrap().reminds.remind.len(), 3);
        let six = vec![json!({"in": "1h", "text": "x"}); 6];
        check_fault(json!({ "remind": six }), "remind has 6 items; at most 5 are taken");
    }
}
