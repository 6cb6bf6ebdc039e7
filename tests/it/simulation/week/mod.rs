//! A week of five Personas who talk too much and three people, with a config that says nothing but who is where.
//!
//! Tests hold it to the laws; the bench of the week prints what it costs.

mod house;
mod people;

use std::time::Duration;

use persona_bridge::bridge::Config;
use persona_bridge::conversation::Millis;
use persona_bridge::persona::Among;
use persona_bridge::persona::session::{EntryKind, Usd};
use persona_bridge::store::Counts;

use crate::company::{Account, Cause, Limits, Manner};
pub(crate) use house::House;
pub(crate) use people::{Book, say_in};

/// How long it is.
pub(crate) const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
/// After the last word, until everything is at rest.
const REST: Duration = Duration::from_secs(900);
/// What the way to a mind and back may take, in virtual ms.
const WAY: u64 = 500;

/// The shortest beat that anybody votes for, in ms; the shipped one is longer.
const LEAST_BEAT: u64 = 600_000;

/// How it went.
pub(crate) struct Week {
    pub(crate) account: Account,
    pub(crate) money: Usd,
    /// How many sessions began.
    pub(crate) sessions: usize,
    /// What is left in the store.
    pub(crate) counts: Counts,
    /// What operators were told but of sessions.
    pub(crate) told: Vec<String>,
    /// The longest that addressed mail settles.
    settle_max: Duration,
}

/// Plays people and Personas of a manner for a time, with a change of the shipped config.
pub(crate) fn play(manner: Manner, time: Duration, change: impl FnOnce(&mut Config)) -> Week {
    let mut house = House::open(manner, change);
    people::talk(&mut house, time);
    house
        .world
        .play(async |stage| stage.pass(u64::try_from((time + REST).as_millis()).expect("short")).await);
    house.week()
}

impl House {
    /// How it went so far, once no bridge runs.
    pub(crate) fn week(&self) -> Week {
        let (mut money, mut sessions) = (Usd::default(), 0);
        let store = self.world.store();
        for entry in store.ledger(Millis(0)).expect("a ledger") {
            match entry.kind {
                EntryKind::Request(request) => money += request.money.unwrap_or_default(),
                EntryKind::Begun { .. } => sessions += 1,
                EntryKind::Ping { .. } | EntryKind::Warmth { .. } | EntryKind::Probe { .. } => {}
            }
        }
        let told = self.world.told().into_iter().filter(|text| !text.contains("begins session")).collect();
        let (counts, settle_max) = (store.counts(), self.world.config.settle.cap);
        Week { money, sessions, counts, told, settle_max, account: self.account() }
    }
}

impl Week {
    /// What the shipped config allows.
    pub(crate) fn limits(&self) -> Limits {
        let ms = |time: Duration| u64::try_from(time.as_millis()).expect("short");
        let Among { max_hops, room, pair } = Among::default();
        let [room, pair] = [room, pair].map(|limit| {
            let limit = limit.expect("it is shipped");
            (limit.most as usize, ms(limit.within))
        });
        Limits { settle_max: ms(self.settle_max), way: WAY, max_hops, room, pair, beat: LEAST_BEAT }
    }

    /// All that breaks a law, and what is left.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.account.faults(&self.limits());
        let Counts { held, outbox, parked, quarantined, .. } = self.counts;
        if (held, outbox, parked, quarantined) != (0, 0, 0, 0) {
            faults.push(format!("left: {:?}", self.counts));
        }
        faults
    }

    /// Turns by what they were for, wakes and money, in words.
    pub(crate) fn report(&self) -> String {
        let causes = self.account.causes(self.limits().max_hops);
        let of = |cause| causes.get(&cause).copied().unwrap_or_default();
        let spoke =
            self.account.asked.iter().filter(|asked| asked.reply["say"] != serde_json::json!([])).count();
        let addressed: usize = self.account.said.iter().map(|said| said.to.len()).sum();
        format!(
            "{} lines of people, {addressed} of them to a Persona; {} turns: woken by people {}, by Personas {}, at a beat {}, \
             without mail {}; {spoke} of them spoke; {} sessions, {}",
            self.account.said.len(),
            self.account.asked.len(),
            of(Cause::Person),
            of(Cause::Persona),
            of(Cause::Beat),
            of(Cause::NoMail),
            self.sessions,
            self.money,
        )
    }
}
