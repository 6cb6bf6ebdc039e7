//! Figures: one line each, held to their bounds where `--check` asks for it.

use std::process::ExitCode;
use std::time::Duration;

/// What was measured: the median and the range in which four of five samples lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) median: f64,
    low: f64,
    high: f64,
    unit: &'static str,
}

/// What the samples of a thing come to.
pub(crate) fn measured(mut samples: Vec<f64>, unit: &'static str) -> Measured {
    samples.sort_by(f64::total_cmp);
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
    Measured { median: at(0.5), low: at(0.1), high: at(0.9), unit }
}

/// Times as milliseconds.
pub(crate) fn times(samples: Vec<Duration>) -> Measured {
    measured(samples.into_iter().map(|time| time.as_secs_f64() * 1e3).collect(), "ms")
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { median, low, high, unit } = self;
        write!(f, "{median:.2} {unit} ({low:.2}..{high:.2})")
    }
}

/// What a ratio must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most:.2}"),
            Self::AtLeast(least) => write!(f, ">= {least:.2}"),
        }
    }
}

/// The figures of one bench.
#[derive(Debug, Default)]
pub(crate) struct Report {
    failed: bool,
}

impl Report {
    /// Compares ours with a baseline by their medians.
    pub(crate) fn compare(&mut self, name: &str, ours: Measured, baseline: Measured, bound: Bound) {
        self.line(name, ours, &baseline.to_string(), ours.median / baseline.median, bound);
    }

    /// Compares ours with a fixed limit.
    pub(crate) fn limit(&mut self, name: &str, ours: Measured, most: f64) {
        let limit = format!("limit {most:.2} {}", ours.unit);
        self.line(name, ours, &limit, ours.median / most, Bound::AtMost(1.0));
    }

    #[expect(clippy::print_stdout, reason = "figures are what a bench is for")]
    fn line(&mut self, name: &str, ours: Measured, baseline: &str, ratio: f64, bound: Bound) {
        let holds = bound.holds(ratio);
        self.failed |= !holds;
        let verdict = if holds { "PASS" } else { "FAIL" };
        println!("{name}: ours {ours}, baseline {baseline}, ratio {ratio:.2}, bound {bound}, {verdict}");
    }

    /// Fails where a figure did and the command line has `--check`.
    pub(crate) fn finish(self) -> ExitCode {
        let check = std::env::args().any(|argument| argument == "--check");
        if check && self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
