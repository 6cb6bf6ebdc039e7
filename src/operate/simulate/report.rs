//! What `simulate` prints.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::ours::Replay;
use super::{Scene, Sharing};
use crate::persona::session::price::Usd;

/// What each way cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A process a turn.
    pub fresh: Usd,
    /// One session, never refreshed.
    pub append: Usd,
    /// Ours, without keep-warm.
    pub ours: Replay,
    /// Ours, with keep-warm.
    pub ours_warm: Replay,
    /// The optimum without keep-warm.
    pub optimum: Usd,
    /// The optimum with keep-warm.
    pub optimum_warm: Usd,
    /// How many turns.
    pub turns: usize,
    /// How many deliveries.
    pub deliveries: u64,
    /// From the beginning to the last arrival.
    pub span: Duration,
}

impl Report {
    /// Ours over the optimum, without keep-warm.
    pub fn ratio(&self) -> f64 {
        ratio(self.ours.cost, self.optimum)
    }

    /// Ours over the optimum, with keep-warm.
    pub fn ratio_warm(&self) -> f64 {
        ratio(self.ours_warm.cost, self.optimum_warm)
    }

    /// The report as JSON; money is in USD.
    pub fn json(&self) -> Value {
        json!({
            "cost": {
                "fresh": self.fresh.dollars(),
                "append": self.append.dollars(),
                "ours": self.ours.cost.dollars(),
                "ours_warm": self.ours_warm.cost.dollars(),
                "optimum": self.optimum.dollars(),
                "optimum_warm": self.optimum_warm.dollars(),
            },
            "refreshes": refreshes(&self.ours),
            "pings": self.ours_warm.pings,
            "turns": self.turns,
            "deliveries": self.deliveries,
            "ratio": rounded(self.ratio()),
            "ratio_warm": rounded(self.ratio_warm()),
        })
    }

    /// The report as text, with what was assumed.
    pub fn text(&self, scene: &Scene<'_>) -> String {
        let mut text = assumptions(scene);
        let days = (self.span.as_secs_f64() / 86_400.0).max(1.0);
        let _ = writeln!(text, "{} turns, {} deliveries in {days:.1} days\n", self.turns, self.deliveries);
        let _ = writeln!(text, "{:<34}{:>12}{:>14}", "", "USD", "USD a day");
        for (name, cost) in [
            ("a process a turn", self.fresh),
            ("one session, never refreshed", self.append),
            ("ours", self.ours.cost),
            ("ours, kept warm", self.ours_warm.cost),
            ("optimum", self.optimum),
            ("optimum, kept warm", self.optimum_warm),
        ] {
            let _ = writeln!(text, "{name:<34}{:>12.4}{:>14.4}", cost.dollars(), cost.dollars() / days);
        }
        let _ =
            writeln!(text, "\nours / optimum       {:.3}, kept warm {:.3}", self.ratio(), self.ratio_warm());
        let _ = writeln!(text, "refreshes            {}", by_reason(&self.ours));
        let _ = writeln!(
            text,
            "refreshes, kept warm {}, {} pings",
            by_reason(&self.ours_warm),
            self.ours_warm.pings
        );
        text
    }
}

fn ratio(ours: Usd, optimum: Usd) -> f64 {
    if optimum == Usd::default() { 1.0 } else { ours.dollars() / optimum.dollars() }
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1e4).round() / 1e4
}

fn refreshes(replay: &Replay) -> u64 {
    replay.refreshes.values().sum()
}

fn by_reason(replay: &Replay) -> String {
    let reasons = replay.refreshes.iter().map(|(reason, count)| format!(", {} {count}", reason.name()));
    format!("{}{}", refreshes(replay), reasons.collect::<String>())
}

fn assumptions(scene: &Scene<'_>) -> String {
    let (price, assumed, tariff) = (scene.price, scene.assumed, &scene.price.tariff);
    let dollars = |nanos: u64| nanos as f64 / 1000.0;
    let sharing = match assumed.sharing {
        Sharing::Shared => "shared by sessions",
        Sharing::Rewritten => "written anew by each session",
    };
    format!(
        "{}, cache kept {}; USD a million tokens: input {}, output {}, cache read {}, cache write {}\n\
         assumed tokens: static prefix {} ({sharing}), after a rehydration {}, a delivery {}, a reply {}; \
         a process a turn: {} lines of {} for each delivery\n",
        price.model,
        scene.ttl.name(),
        dollars(tariff.input),
        dollars(tariff.output),
        dollars(tariff.read),
        dollars(tariff.write(scene.ttl)),
        assumed.fixed,
        assumed.rehydrated,
        assumed.delivery,
        assumed.reply,
        assumed.lines,
        assumed.line,
    )
}
