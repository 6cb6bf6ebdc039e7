//! `release`: what was put aside goes again.

use clap::Args;

use super::{CliError, ConfigFile, beside, load, print};
use crate::bridge::orders::Order;
use crate::config::Environment;
use crate::operate::ExitCode;

/// Whose is released.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Of this Persona alone
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
}

pub(super) async fn release(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let config = load(&options.file, environment)?;
    let of = options.persona.as_deref().map(|persona| beside::known(&config, persona)).transpose()?;
    let of = of.and_then(|id| {
        let mut personas = config.bridge.personas.iter().map(|known| &known.persona);
        personas.find(|known| known.id == id).map(|known| (id, known.user.clone()))
    });
    let follows = beside::order(&config, &Order::Release { of }).await?;
    print(&format!("{follows}\n"))
}
