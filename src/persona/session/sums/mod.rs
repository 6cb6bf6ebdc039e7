//! What the Personas' sessions used and cost, summed up.

mod show;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::conversation::{Millis, PersonaId};
use crate::persona::session::{CacheVerdict, Entry, EntryKind, Request, Tokens, Usd};

pub use show::{json, text};

/// What one Persona's session used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Turns that reached the API.
    pub turns: u64,
    /// Attempts at them that did.
    pub attempts: u64,
    /// API requests.
    pub requests: u64,
    /// Tokens of all requests.
    pub tokens: Tokens,
    /// Tokens that the cache should have held.
    pub expected: u64,
    /// Requests by what the cache held.
    pub verdicts: BTreeMap<CacheVerdict, u64>,
    /// What it cost, as far as that is known.
    pub money: Usd,
    /// Requests whose money is unknown.
    pub unpriced: u64,
    /// Pings that kept the cache warm; their tokens and money are in the sums.
    pub pings: u64,
    /// Flushes that reached the API, by why; their requests, tokens and money are in the sums, but they are no turns.
    pub flushes: BTreeMap<String, u64>,
    /// What flushes cost.
    pub flushed: Usd,
    /// Questions whether a refused account is taken again; their tokens and money are in the sums.
    pub probes: u64,
    /// What pings were worth beyond their price, over idle periods in which they were.
    pub saved: Usd,
    /// What pings cost beyond their worth, over the other idle periods.
    pub lost: Usd,
    /// The most resident memory that her mind had while it answered, in bytes.
    pub resident: u64,
    /// Generations that followed another, by why.
    pub refreshes: BTreeMap<String, u64>,
}

/// The whole ledger since a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// From when on.
    pub since: Millis,
    /// A sum a Persona.
    pub personas: BTreeMap<PersonaId, Sum>,
}

/// Sums up entries from `since` on, of one Persona or all.
pub fn sum(entries: &[Entry], since: Millis) -> Ledger {
    let mut personas: BTreeMap<PersonaId, Sum> = BTreeMap::new();
    let (mut turns, mut attempts) = (BTreeSet::new(), BTreeSet::new());
    for entry in entries.iter().filter(|entry| entry.at >= since) {
        let sum = personas.entry(entry.persona.clone()).or_default();
        match &entry.kind {
            EntryKind::Request(request) => {
                let turn = (&entry.persona, request.turn);
                sum.attempts += u64::from(attempts.insert((turn, request.attempt)));
                sum.request(request, turns.insert(turn));
            }
            EntryKind::Ping { tokens, money, .. } => {
                sum.pings += 1;
                sum.used(tokens, *money);
            }
            EntryKind::Probe { tokens, money, .. } => {
                sum.probes += 1;
                sum.used(tokens, *money);
            }
            EntryKind::Warmth { paid, saved, .. } => {
                sum.saved += saved.minus(*paid);
                sum.lost += paid.minus(*saved);
            }
            EntryKind::Begun { generation: ..=1, .. } => {}
            EntryKind::Begun { why, .. } => *sum.refreshes.entry(why.clone()).or_default() += 1,
        }
    }
    Ledger { since, personas }
}

impl Sum {
    fn request(&mut self, request: &Request, is_first: bool) {
        match &request.flush {
            None => self.turns += u64::from(is_first),
            Some(why) => {
                *self.flushes.entry(why.clone()).or_default() += u64::from(is_first);
                self.flushed += request.money.unwrap_or_default();
            }
        }
        self.requests += 1;
        self.expected += request.expected;
        self.resident = self.resident.max(request.rss.unwrap_or_default());
        *self.verdicts.entry(request.verdict).or_default() += 1;
        self.used(&request.tokens, request.money);
    }

    fn used(&mut self, one: &Tokens, money: Option<Usd>) {
        let all = &mut self.tokens;
        all.input += one.input;
        all.read += one.read;
        all.written_5m += one.written_5m;
        all.written_1h += one.written_1h;
        all.output += one.output;
        match money {
            Some(money) => self.money += money,
            None => self.unpriced += 1,
        }
    }

    /// The part of all prompts that was read from the cache, in thousandths.
    pub fn hit_ratio(&self) -> u64 {
        self.tokens.read * 1_000 / self.tokens.prompt().max(1)
    }
}
