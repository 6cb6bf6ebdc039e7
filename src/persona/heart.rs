//! The shared beat: when it falls, and who hears at it what nobody woke her for.
//!
//! It keeps no memory and reads no clock, so that the same votes and the same mail give the same beat. It never grants more
//! than one turn a beat, none without a cause, and whoever waits is picked in the end, however urgent others say they are.

use std::cmp::Reverse;
use std::time::Duration;

use super::decide::{OpenTurn, Wake};
use crate::conversation::reply::Pulse;
use crate::conversation::{Lane, Millis, PersonaId};

/// The operator's bounds of the beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heart {
    /// The time between two beats while nobody votes.
    pub beat: Duration,
    /// The shortest that votes come to.
    pub beat_min: Duration,
    /// The longest that votes come to.
    pub beat_max: Duration,
    /// How long after the end of her last turn she is not picked.
    pub cooldown: Duration,
    /// Whether somebody is picked where no mail waits anywhere.
    pub wake_on_silence: bool,
    /// How often that is on one day of UTC at most, over all Personas.
    pub wakes_per_day: u32,
}

impl Default for Heart {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(30 * 60),
            beat_min: Duration::from_secs(60),
            beat_max: Duration::from_secs(6 * 3600),
            cooldown: Duration::from_secs(60),
            wake_on_silence: false,
            wakes_per_day: 4,
        }
    }
}

/// What a Persona has voted, and when her last turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rhythm {
    /// How far apart she wants the beats, as she said last.
    pub tempo: Option<Duration>,
    /// How urgent the next one is to her, as she said last: 0 to 1000.
    pub urgency: u16,
    /// When she said so.
    pub voted: Option<Millis>,
    /// When her last turn ended.
    pub ended: Option<Millis>,
}

/// The beat as it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beats {
    /// When the last beat fell.
    pub last: Millis,
    /// The turn that it granted, until that is begun.
    pub grant: Option<Grant>,
    /// The day of the last turn without mail, and how many there were on it.
    pub silences: (Millis, u32),
}

/// A turn that a beat grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose.
    pub persona: PersonaId,
    /// In which lane.
    pub lane: Lane,
    /// [`Wake::Beat`] or [`Wake::Silence`].
    pub wake: Wake,
}

/// A Persona as a beat finds her.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Who.
    pub persona: PersonaId,
    /// What she is doing.
    pub state: State,
    /// The lane with her oldest mail that nobody wakes her for, and when that was heard.
    pub unheard: Option<(Millis, Lane)>,
    /// Where she is woken when all is silent.
    pub home: Option<Lane>,
    /// What she voted, and when her last turn ended.
    pub rhythm: Rhythm,
}

/// What a Persona is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing: she may be picked.
    Idle,
    /// She has a turn in hand.
    Thinks,
    /// She is not asked: by the brake, the budget or the account, or before she has begun.
    #[default]
    Held,
}

/// What a beat comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fall {
    /// A turn.
    Grant(Grant),
    /// Who has mail thinks or cools down: it falls once she does not, or at that time.
    Later(Option<Millis>),
    /// Nothing: there is no cause.
    Nothing,
}

impl Rhythm {
    /// With what she votes now: a pulse without a tempo leaves the earlier one.
    pub fn voting(self, pulse: Option<Pulse>, now: Millis) -> Self {
        match pulse {
            Some(Pulse { tempo, urgency }) => {
                Self { tempo: tempo.or(self.tempo), urgency, voted: Some(now), ..self }
            }
            None => self,
        }
    }
}

impl Grant {
    /// Whether a turn that begins is the one that is granted, or takes its mail.
    pub fn is_used_by(&self, persona: &PersonaId, turn: &OpenTurn) -> bool {
        self.persona == *persona && self.lane == turn.lane && turn.flush.is_none()
    }
}

impl Heart {
    /// The time between two beats: the lower median of the tempos that are voted for, within the bounds.
    pub fn beat(&self, votes: impl IntoIterator<Item = Rhythm>) -> Duration {
        let mut tempos: Vec<Duration> = votes.into_iter().filter_map(|vote| vote.tempo).collect();
        tempos.sort();
        match tempos.get(tempos.len().saturating_sub(1) / 2) {
            Some(median) => (*median).clamp(self.beat_min, self.beat_max),
            None => self.beat,
        }
    }

    /// What a beat comes to that falls now, after so many turns without mail on this day.
    pub fn fall(&self, standings: &[Standing], now: Millis, silences: u32) -> Fall {
        let waiting = standings.iter().filter(|one| one.state != State::Held && one.unheard.is_some());
        let free = waiting.clone().filter(|one| self.is_free(one, now));
        if let Some(grant) = free.max_by_key(|one| rank(one, now)).and_then(by_mail) {
            return Fall::Grant(grant);
        }
        if waiting.clone().next().is_some() {
            let cooling = waiting.filter(|one| one.state == State::Idle);
            return Fall::Later(cooling.filter_map(|one| self.cooled(one)).min());
        }
        if !self.wake_on_silence || silences >= self.wakes_per_day {
            return Fall::Nothing;
        }
        let free = standings.iter().filter(|one| one.home.is_some() && self.is_free(one, now));
        let longest = free.min_by_key(|one| (one.rhythm.ended, &one.persona));
        longest.and_then(in_silence).map_or(Fall::Nothing, Fall::Grant)
    }

    fn is_free(&self, one: &Standing, now: Millis) -> bool {
        one.state == State::Idle && self.cooled(one).is_none_or(|cooled| cooled <= now)
    }

    /// When she has cooled down from her last turn.
    fn cooled(&self, one: &Standing) -> Option<Millis> {
        one.rhythm.ended.map(|ended| ended.plus(self.cooldown))
    }
}

impl Beats {
    /// When the next beat falls, of beats so far apart. A clock that was set back makes nobody wait for the old time.
    pub fn next(&self, beat: Duration, now: Millis) -> Millis {
        self.last.min(now).plus(beat)
    }

    /// How many turns without mail there were on a day.
    pub fn silences_on(&self, day: Millis) -> u32 {
        if self.silences.0 == day { self.silences.1 } else { 0 }
    }

    /// After a beat that fell on a day of UTC.
    pub fn fallen(&self, now: Millis, day: Millis, grant: Option<Grant>) -> Self {
        let silent = grant.as_ref().is_some_and(|grant| grant.wake == Wake::Silence);
        Self { last: now, grant, silences: (day, self.silences_on(day) + u32::from(silent)) }
    }
}

/// Who comes first: by how long she has waited, times 10 to the power of her urgency in thousandths; of those that tie the one
/// who has waited longest, then the first by id. The beat, which all waits are measured by, changes no order.
fn rank(one: &Standing, now: Millis) -> (u128, Duration, Reverse<&PersonaId>) {
    let waited = one.unheard.as_ref().map_or(Duration::ZERO, |(since, _)| now.since(*since));
    (waited.as_millis().saturating_mul(weight(one.rhythm.urgency)), waited, Reverse(&one.persona))
}

/// 10 to the power of the urgency in thousandths, in parts of 2^32, by whole numbers: the same on every machine.
fn weight(urgency: u16) -> u128 {
    /// 10 to the power of 1, 2, 4, … 512 thousandths, in parts of 2^32.
    const POWERS: [u128; 10] = [
        4_304_868_218,
        4_314_791_964,
        4_334_708_139,
        4_374_816_699,
        4_456_150_614,
        4_623_382_887,
        4_976_910_848,
        5_767_131_594,
        7_743_902_231,
        13_962_393_106,
    ];
    let bits = POWERS.iter().enumerate().filter(|(bit, _)| (urgency.min(1000) >> bit) & 1 == 1);
    bits.fold(1 << 32, |weight, (_, power)| (weight * power) >> 32)
}

fn by_mail(one: &Standing) -> Option<Grant> {
    let (_, lane) = one.unheard.clone()?;
    Some(Grant { persona: one.persona.clone(), lane, wake: Wake::Beat })
}

fn in_silence(one: &Standing) -> Option<Grant> {
    Some(Grant { persona: one.persona.clone(), lane: one.home.clone()?, wake: Wake::Silence })
}

#[cfg(test)]
mod tests;
