//! `ledger`: what the Personas' sessions used and cost.

use std::time::Duration;

use clap::Args;

use super::beside::{Holder, Whom, holder, other};
use super::{CliError, print};
use crate::bridge::clock::Clock;
use crate::config::{Config, Environment};
use crate::conversation::Millis;
use crate::operate::ExitCode;
use crate::persona::session::Entry;
use crate::persona::session::sums;
use crate::store::entries_from_json;

/// What is asked for.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Whose
    #[command(flatten)]
    pub whom: Whom,
    /// How far back, as `12h` or `7d`
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = humantime::parse_duration)]
    pub since: Duration,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) async fn ledger(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let (config, persona) = options.whom.load(environment)?;
    let now = Clock::Wall.now();
    let since = Millis(now.0.saturating_sub(u64::try_from(options.since.as_millis()).unwrap_or(u64::MAX)));
    let mut entries = entries(&config, since).await?;
    entries.retain(|entry| persona.as_ref().is_none_or(|persona| entry.persona == *persona));
    let summed = sums::sum(&entries, since);
    print(&if options.json { format!("{:#}\n", sums::json(&summed)) } else { sums::text(&summed) })
}

/// From the store, or from the bridge that has it open.
async fn entries(config: &Config, since: Millis) -> Result<Vec<Entry>, CliError> {
    if !config.store.path.exists() {
        return Ok(Vec::new());
    }
    match holder(config).await? {
        Holder::Us(store) => Ok(store.ledger(since)?),
        Holder::Bridge(bridge) => {
            let answer = bridge.running(config).ledger(since.0).await;
            answer.ok().and_then(entries_from_json).ok_or_else(|| {
                let listen = config.appservice.listen;
                other(format!(
                    "the store is in use, and the bridge at {listen} does not tell its ledger; is it another version?"
                ))
            })
        }
    }
}
