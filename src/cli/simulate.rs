//! `simulate`: what a session would cost, by arrivals.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::{CliError, print};
use crate::config::prices;
use crate::operate::simulate::{ASSUMED, Assumptions, Scene, Sharing, draw, read, simulate};
use crate::operate::{ExitCode, simulate::Arrival};
use crate::persona::session::price::{Price, Prices, Ttl};

/// What is replayed, and what is assumed.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// A file of arrivals, one a line: seconds since the beginning, and how many deliveries
    #[arg(long, value_name = "FILE", required_unless_present = "poisson", conflicts_with = "poisson")]
    pub trace: Option<PathBuf>,
    /// Draw so many arrivals a day, at random moments
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub poisson: Option<u64>,
    /// The model, as in the config
    #[arg(long)]
    pub model: String,
    /// A price file of your own, its rows before the shipped ones
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How long the prompt cache keeps what was not used
    #[arg(long, value_parser = PossibleValuesParser::new(["5m", "1h"]).map(|name| ttl(&name)))]
    pub ttl: Ttl,
    /// Deliveries that a turn answers, where the trace does not say
    #[arg(long, value_name = "D", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub deliveries: u64,
    /// Days to draw arrivals for
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=366))]
    pub days: u64,
    /// The seed that arrivals are drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Assumed: tokens of the static prefix (system prompt and tools)
    #[arg(long, value_name = "TOKENS", default_value_t = ASSUMED.fixed, value_parser = tokens())]
    pub static_tokens: u64,
    /// Assumed: tokens of the whole prefix right after a rehydration
    #[arg(long, value_name = "TOKENS", default_value_t = ASSUMED.rehydrated, value_parser = tokens())]
    pub rehydrated_tokens: u64,
    /// Assumed: tokens of a delivery
    #[arg(long, value_name = "TOKENS", default_value_t = ASSUMED.delivery, value_parser = tokens())]
    pub delivery_tokens: u64,
    /// Assumed: tokens of a reply
    #[arg(long, value_name = "TOKENS", default_value_t = ASSUMED.reply, value_parser = tokens())]
    pub reply_tokens: u64,
    /// Assume that a new session never finds the static prefix in the cache
    #[arg(long)]
    pub rewrite_static: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn tokens() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1_000_000)
}

fn ttl(name: &str) -> Ttl {
    if name == Ttl::OneHour.name() { Ttl::OneHour } else { Ttl::FiveMinutes }
}

pub(super) fn run(options: &Options) -> Result<ExitCode, CliError> {
    let price = price(options)?;
    let assumed = assumptions(options, &price)?;
    let scene = Scene { price: &price, ttl: options.ttl, assumed };
    let report = simulate(&arrivals(options)?, &scene);
    if options.json {
        return print(&format!("{:#}\n", report.json()));
    }
    print(&report.text(&scene))
}

fn arrivals(options: &Options) -> Result<Vec<Arrival>, CliError> {
    match (&options.trace, options.poisson) {
        (Some(path), _) => read(path, options.deliveries)
            .map_err(|error| CliError::Other { reason: error.to_string(), code: ExitCode::Failed }),
        (None, Some(per_day)) => Ok(draw(per_day, options.days, options.deliveries, options.seed)),
        (None, None) => Err(usage("nothing to replay; name --trace or --poisson".into())),
    }
}

fn price(options: &Options) -> Result<Price, CliError> {
    let (prices, model) = (known(options)?, &options.model);
    prices.find(model).ok_or_else(|| {
        let known: Vec<&str> = prices.models.iter().map(|price| price.model.as_str()).collect();
        usage(format!("--model {model}: no price is known; write one of: {}", known.join(", ")))
    })
}

fn known(options: &Options) -> Result<Prices, CliError> {
    let Some(path) = &options.prices else { return Ok(prices::shipped()?) };
    let text = std::fs::read_to_string(path).map_err(|source| CliError::Io { path: path.clone(), source })?;
    Ok(prices::with_own(path, &text)?)
}

fn assumptions(options: &Options, price: &Price) -> Result<Assumptions, CliError> {
    let (fixed, rehydrated) = (options.static_tokens, options.rehydrated_tokens);
    if fixed > rehydrated {
        return Err(usage(format!(
            "--static-tokens {fixed}: the static prefix is a part of the rehydrated one; write {rehydrated} or less"
        )));
    }
    if fixed < price.minimum {
        return Err(usage(format!(
            "--static-tokens {fixed}: {} caches no prompt below {} tokens; write at least that",
            price.model, price.minimum
        )));
    }
    let sharing = if options.rewrite_static { Sharing::Rewritten } else { Sharing::Shared };
    Ok(Assumptions {
        fixed,
        rehydrated,
        delivery: options.delivery_tokens,
        reply: options.reply_tokens,
        sharing,
        ..ASSUMED
    })
}

fn usage(reason: String) -> CliError {
    CliError::Other { reason, code: ExitCode::Usage }
}
