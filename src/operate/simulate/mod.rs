//! `simulate`: what a Persona's session would cost, by arrivals that were recorded or are drawn.
//!
//! It replays them through `persona::session`, which decides, and holds no rule and no price of its own. Beside it stand what
//! it replaces (a process a turn), what it is without refreshes, and the exact optimum of one who knows the future. Time is
//! counted, never read; what is drawn is drawn from a seed.

pub mod arrivals;
mod baselines;
mod optimum;
mod ours;
pub mod report;
#[cfg(test)]
mod tests;

pub use arrivals::{Arrival, TraceError, draw, read};
pub use report::Report;

use std::time::Duration;

use crate::persona::session::care::{KeepWarm, Policy};
use crate::persona::session::price::{Price, Ttl};
use crate::persona::session::terms::{Added, Terms};

/// What is assumed of a Persona's turns, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// The static prefix: system prompt and tools (S).
    pub fixed: u64,
    /// The prefix right after a rehydration, the static one in it (R).
    pub rehydrated: u64,
    /// One delivery.
    pub delivery: u64,
    /// One reply.
    pub reply: u64,
    /// One line of context, as a process a turn is given them.
    pub line: u64,
    /// Lines of context that a process a turn is given for each delivery.
    pub lines: u64,
    /// Whether sessions share the static prefix in the cache.
    pub sharing: Sharing,
}

/// Whether a new session finds the static prefix in the cache while another session of the Persona is warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It reads it.
    Shared,
    /// It writes it anew.
    Rewritten,
}

/// The defaults: measured prompt sizes, and short chat lines.
pub const ASSUMED: Assumptions = Assumptions {
    fixed: 12_000,
    rehydrated: 15_900,
    delivery: 80,
    reply: 250,
    line: 45,
    lines: 20,
    sharing: Sharing::Shared,
};

/// One turn as it is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    /// When it is.
    at: Duration,
    /// What it adds.
    added: Added,
    /// How many deliveries it answers.
    deliveries: u64,
}

/// What is replayed, and by what it is priced.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The model's price.
    pub price: &'a Price,
    /// How long the cache keeps what was not used.
    pub ttl: Ttl,
    /// What is assumed.
    pub assumed: Assumptions,
}

/// Replays arrivals in every way.
pub fn simulate(arrivals: &[Arrival], scene: &Scene<'_>) -> Report {
    let turns = scene.turns(arrivals);
    let policy = Policy::default();
    let warm = Policy { keep_warm: KeepWarm::Auto, ..policy };
    let ours = ours::replay(&turns, scene, &policy);
    let ours_warm = ours::replay(&turns, scene, &warm);
    Report {
        fresh: baselines::fresh(&turns, scene),
        append: baselines::append(&turns, scene, &policy),
        optimum: optimum::optimum(&turns, scene, &policy),
        optimum_warm: optimum::optimum(&turns, scene, &warm),
        ours,
        ours_warm,
        turns: turns.len(),
        deliveries: turns.iter().map(|turn| turn.deliveries).sum(),
        span: arrivals.last().map_or(Duration::ZERO, |last| last.at),
    }
}

impl Scene<'_> {
    fn terms(&self) -> Terms<'_> {
        let shared = match self.assumed.sharing {
            Sharing::Shared => self.assumed.fixed,
            Sharing::Rewritten => 0,
        };
        Terms { price: self.price, ttl: self.ttl, rehydrated: self.assumed.rehydrated, shared }
    }

    fn turns(&self, arrivals: &[Arrival]) -> Vec<Turn> {
        let turn = |arrival: &Arrival| Turn {
            at: arrival.at,
            added: Added { mail: arrival.deliveries * self.assumed.delivery, reply: self.assumed.reply },
            deliveries: arrival.deliveries,
        };
        arrivals.iter().map(turn).collect()
    }
}
