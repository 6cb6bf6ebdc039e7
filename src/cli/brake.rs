//! `brake`: nothing is asked any more, until it is released.

use clap::{Args, Subcommand};

use super::beside::{Whom, order};
use super::{CliError, ConfigFile, print};
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
    /// Whom it holds, and whom admins have stopped in which rooms
    Show(ConfigFile),
}

pub(super) async fn brake(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let (lever, whom) = match options.action {
        Action::Hold(whom) => (Lever::Hold, whom),
        Action::Release(whom) => (Lever::Release, whom),
        Action::Show(file) => (Lever::Show, Whom { file, persona: None }),
    };
    let (config, persona) = whom.load(environment)?;
    let follows = order(&config, &Order::Brake { lever, persona }).await?;
    print(&format!("{follows}\n"))
}
