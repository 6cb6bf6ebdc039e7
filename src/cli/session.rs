//! `refresh`, `flush` and `keep`: what an operator says of a Persona's session.

use clap::Args;

use super::beside::{known, order};
use super::{CliError, ConfigFile, load, print};
use crate::bridge::orders::Order;
use crate::config::Environment;
use crate::operate::ExitCode;
use crate::persona::session::care::Word;

/// Whose session.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Of this Persona
    #[arg(long, value_name = "ID")]
    pub persona: String,
}

pub(super) async fn say(
    options: Options,
    environment: Environment,
    word: Word,
) -> Result<ExitCode, CliError> {
    let config = load(&options.file, environment)?;
    let persona = known(&config, &options.persona)?;
    let follows = order(&config, &Order::Session { persona, word }).await?;
    print(&format!("{follows}\n"))
}
