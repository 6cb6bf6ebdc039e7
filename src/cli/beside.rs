//! A command beside a bridge: it takes the store where nobody has it, else it asks the bridge that does.

use std::time::Duration;

use clap::Args;

use super::{CliError, ConfigFile, load, opening};
use crate::bridge::clock::Clock;
use crate::bridge::orders::{self, Lever, Order, OrderError};
use crate::config::{Config, Environment};
use crate::conversation::PersonaId;
use crate::homeserver::appservice::Running;
use crate::homeserver::client::ReqwestTransport;
use crate::operate::ExitCode;
use crate::store::{Store, StoreError};

/// How long the running bridge may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A config, and whom of it a command is about.
#[derive(Clone, Debug, Args)]
pub struct Whom {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Of this Persona alone
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
}

impl Whom {
    /// Loads the config and finds the Persona in it, if one is named.
    pub(super) fn load(&self, environment: Environment) -> Result<(Config, Option<PersonaId>), CliError> {
        let config = load(&self.file, environment)?;
        let persona = self.persona.as_deref().map(|persona| known(&config, persona)).transpose()?;
        Ok((config, persona))
    }
}

/// Who has the store.
pub(super) enum Holder {
    /// We, now.
    Us(Store),
    /// A running bridge.
    Bridge(Bridge),
}

/// A running bridge.
pub(super) struct Bridge {
    transport: ReqwestTransport,
}

/// Opens the store, unless a running bridge has it.
pub(super) async fn holder(config: &Config) -> Result<Holder, CliError> {
    let (at, opening) = (config.store.clone(), opening(config));
    let opened = tokio::task::spawn_blocking(move || Store::open(&at, opening)).await;
    match opened.map_err(|error| other(error.to_string()))? {
        Ok(store) => Ok(Holder::Us(store)),
        Err(StoreError::Locked { .. }) => {
            let transport = ReqwestTransport::new(TIMEOUT).map_err(|error| other(error.to_string()))?;
            Ok(Holder::Bridge(Bridge { transport }))
        }
        Err(error) => Err(error.into()),
    }
}

impl Bridge {
    /// It, at the config's address.
    pub(super) fn running<'a>(&'a self, config: &'a Config) -> Running<'a> {
        Running {
            transport: &self.transport,
            listen: config.appservice.listen,
            hs_token: &config.registration.hs_token,
        }
    }
}

/// Gives an order to the running bridge, or carries it out on the store of one that is not running; answers what
/// follows, in words.
pub(super) async fn order(config: &Config, order: &Order) -> Result<String, CliError> {
    let is_hold = matches!(order, Order::Brake { lever: Lever::Hold, .. });
    if !is_hold && !config.store.path.exists() {
        return Err(other(format!(
            "there is no store at {}; run the bridge first (`brake hold` makes it, so that the first start asks nothing)",
            config.store.path.display()
        )));
    }
    let is_new = !config.store.path.exists();
    match holder(config).await? {
        Holder::Us(store) => {
            let carried_out = orders::carry_out(&store, order, Clock::Wall.now()).await;
            let shown = config.store.path.display();
            let place =
                if is_new { format!("; that stands in a new store at {shown}") } else { String::new() };
            carried_out.map(|follows| follows + &place).map_err(|error| {
                if let OrderError::Store(error) = error { error.into() } else { other(error.to_string()) }
            })
        }
        Holder::Bridge(bridge) => {
            let answer = bridge.running(config).order(&order.to_json()).await;
            let follows = answer.map(|answer| answer["follows"].as_str().unwrap_or_default().to_owned());
            follows.map_err(|error| other(format!("the bridge at {}: {error}", config.appservice.listen)))
        }
    }
}

/// The id of a Persona of the config.
pub(super) fn known(config: &Config, persona: &str) -> Result<PersonaId, CliError> {
    let personas = &config.bridge.personas;
    let found = personas.iter().map(|known| &known.persona.id).find(|id| id.as_str() == persona);
    found.cloned().ok_or_else(|| {
        let known: Vec<&str> = personas.iter().map(|known| known.persona.id.as_str()).collect();
        other(format!("there is no Persona {persona}; there are {}", known.join(", ")))
    })
}

/// A failure in words.
pub(super) fn other(reason: String) -> CliError {
    CliError::Other { reason, code: ExitCode::Failed }
}
