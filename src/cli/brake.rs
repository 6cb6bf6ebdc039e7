//! `brake`: nothing is asked any more, until it is released.

use clap::{Args, Subcommand};

use super::{CliError, ConfigFile, beside, load, print};
use crate::bridge::orders::{Lever, Order};
use crate::config::Environment;
use crate::operate::ExitCode;

/// What is done with it.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// What is done with it
    #[command(subcommand)]
    pub action: Action,
}

/// What is done with it.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// From now on nothing is asked; a turn in flight is ended and stays pending
    Hold(Whom),
    /// Who was held is asked again
    Release(Whom),
}

/// Whom it is about.
#[derive(Clone, Debug, Args)]
pub struct Whom {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// This Persona alone
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
}

pub(super) async fn brake(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let (lever, whom) = match options.action {
        Action::Hold(whom) => (Lever::Hold, whom),
        Action::Release(whom) => (Lever::Release, whom),
    };
    let config = load(&whom.file, environment)?;
    let persona = whom.persona.as_deref().map(|persona| beside::known(&config, persona)).transpose()?;
    let follows = beside::order(&config, &Order::Brake { lever, persona }).await?;
    print(&format!("{follows}\n"))
}
