//! `ledger`: what the Personas' sessions used and cost.

use std::time::Duration;

use clap::Args;

use super::{CliError, ConfigFile, load, opening, print};
use crate::bridge::clock::Clock;
use crate::config::{Config, Environment};
use crate::conversation::{Millis, PersonaId};
use crate::homeserver::appservice::ask_ledger;
use crate::homeserver::client::ReqwestTransport;
use crate::operate::{ExitCode, ledger};
use crate::persona::session::Entry;
use crate::store::{Store, StoreError, entries_from_json};

/// How long the running bridge may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is asked for.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Of this Persona alone
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
    /// How far back, as `12h` or `7d`
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = humantime::parse_duration)]
    pub since: Duration,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) async fn ledger(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let config = load(&options.file, environment)?;
    let persona = options.persona.map(PersonaId);
    if let Some(persona) = &persona
        && !config.bridge.personas.iter().any(|known| known.persona.id == *persona)
    {
        let known: Vec<&str> = config.bridge.personas.iter().map(|known| known.persona.id.as_str()).collect();
        return Err(other(format!("there is no Persona {persona}; there are {}", known.join(", "))));
    }
    let now = Clock::Wall.now();
    let since = Millis(now.0.saturating_sub(u64::try_from(options.since.as_millis()).unwrap_or(u64::MAX)));
    let mut entries = entries(&config, since).await?;
    entries.retain(|entry| persona.as_ref().is_none_or(|persona| entry.persona == *persona));
    let summed = ledger::sum(&entries, since);
    print(&if options.json { format!("{:#}\n", ledger::json(&summed)) } else { ledger::text(&summed) })
}

/// From the store, or from the bridge that has it open.
async fn entries(config: &Config, since: Millis) -> Result<Vec<Entry>, CliError> {
    if !config.store.path.exists() {
        return Ok(Vec::new());
    }
    let (at, opening) = (config.store.clone(), opening(config));
    let read = move || Store::open(&at, opening).and_then(|store| store.ledger(since));
    match tokio::task::spawn_blocking(read).await.map_err(|error| other(error.to_string()))? {
        Err(StoreError::Locked { .. }) => from_the_bridge(config, since).await,
        read => Ok(read?),
    }
}

async fn from_the_bridge(config: &Config, since: Millis) -> Result<Vec<Entry>, CliError> {
    let transport = ReqwestTransport::new(TIMEOUT).map_err(|error| other(error.to_string()))?;
    let (listen, token) = (config.appservice.listen, &config.registration.hs_token);
    let answer = ask_ledger(&transport, listen, token, since.0).await;
    answer.ok().and_then(entries_from_json).ok_or_else(|| {
        other(format!(
            "the store is in use, and the bridge at {listen} does not tell its ledger; is it another version?"
        ))
    })
}

fn other(reason: String) -> CliError {
    CliError::Other { reason, code: ExitCode::Failed }
}
