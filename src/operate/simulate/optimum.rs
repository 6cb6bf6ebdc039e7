//! The exact optimum of one who knows all arrivals: a dynamic program over the turns at which a generation begins.
//!
//! It may do what ours may: begin the next generation at any turn, resume a cold session, and, where keep-warm is on, ping. It
//! is bound by the same hard stops (window, price step). It pings as late and as seldom as can be.
//!
//! `begun[j]` is the least cost of all turns up to `j` if a generation begins at turn `j`. From there the generation is followed
//! turn by turn; at each the next one may begin. What is left out is left out for a proof: where going on costs no less than
//! beginning anew, beginning anew is as good now and leaves a shorter prefix, with which every later turn costs no more.

use std::time::Duration;

use super::{Scene, Turn};
use crate::persona::session::care::{KeepWarm, Policy, must_end};
use crate::persona::session::price::Usd;
use crate::persona::session::terms::{Added, PING, Terms};

/// What the optimum is bound by.
struct Rules<'a> {
    terms: Terms<'a>,
    window: u64,
    policy: &'a Policy,
}

/// The cost of a turn, in the two ways to take it; going on may be impossible.
struct Ways {
    go_on: Option<Usd>,
    begin: Usd,
}

pub(super) fn optimum(turns: &[Turn], scene: &Scene<'_>, policy: &Policy) -> Usd {
    let rules = Rules { terms: scene.terms(), window: scene.price.window, policy };
    let Some(first) = turns.first() else { return Usd::default() };
    let mut begun: Vec<Option<Usd>> = vec![None; turns.len()];
    begun[0] = Some(rules.terms.refresh_cold(first.added));
    let mut best: Option<Usd> = None;
    for start in 0..turns.len() {
        let Some(mut cost) = begun[start] else { continue };
        let mut prefix = rules.terms.rehydrated + turns[start].added.tokens();
        let mut at_end = true;
        for next in start + 1..turns.len() {
            let gap = turns[next].at - turns[next - 1].at;
            let ways = rules.ways(prefix, gap, turns[next].added);
            let begin = cost + ways.begin;
            begun[next] = Some(begun[next].map_or(begin, |other| other.min(begin)));
            let Some(go_on) = ways.go_on.filter(|go_on| *go_on < ways.begin) else {
                at_end = false;
                break;
            };
            cost += go_on;
            prefix += turns[next].added.tokens();
        }
        if at_end {
            best = Some(best.map_or(cost, |other| other.min(cost)));
        }
    }
    best.unwrap_or_default()
}

impl Rules<'_> {
    fn ways(&self, prefix: u64, gap: Duration, added: Added) -> Ways {
        let terms = &self.terms;
        let (mut go_on, mut begin) = (terms.cold(prefix, added), terms.refresh_cold(added));
        if let Some(warmth) = self.warmth(prefix, gap) {
            go_on = go_on.min(warmth + terms.warm(prefix, added));
            begin = begin.min(warmth + terms.refresh_warm(added));
        }
        let ends = must_end(terms, self.window, self.policy.watermark, prefix, added.tokens()).is_some();
        Ways { go_on: (!ends).then_some(go_on), begin }
    }

    /// What it costs to be warm after a gap, if it can be.
    fn warmth(&self, prefix: u64, gap: Duration) -> Option<Usd> {
        let ttl = self.terms.ttl.duration();
        if gap < ttl {
            return Some(Usd::default());
        }
        let pings = pings(gap, ttl);
        let cost = self.terms.warm(prefix, PING);
        (self.policy.keep_warm == KeepWarm::Auto).then(|| Usd(cost.0.saturating_mul(pings)))
    }
}

/// The fewest pings that bridge a gap: each in the last millisecond of the warmth that the one before gave.
fn pings(gap: Duration, ttl: Duration) -> u64 {
    let (gap, reach) = (gap.as_millis() as u64, ttl.as_millis() as u64 - 1);
    gap.saturating_sub(1) / reach
}
