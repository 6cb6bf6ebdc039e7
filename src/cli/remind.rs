//! `remind`: what a Persona wants to be reminded of, for operators.

use clap::Args;

use super::{CliError, ConfigFile, beside, load, print};
use crate::bridge::orders::Order;
use crate::bridge::reminders::Reminders;
use crate::config::Environment;
use crate::conversation::ReminderNumber;
use crate::operate::ExitCode;

/// Whose reminders, and which one is cancelled.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Whose
    #[arg(value_name = "NAME")]
    pub persona: String,
    /// Cancel the one of this label, as `r3`, instead of listing all
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub cancel: Option<ReminderNumber>,
}

fn label(text: &str) -> Result<ReminderNumber, String> {
    ReminderNumber::of_label(text).ok_or_else(|| "a label is an r with a number, as r3".to_owned())
}

pub(super) async fn remind(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let config = load(&options.file, environment)?;
    let persona = beside::known(&config, &options.persona)?;
    let asked = options.cancel.map_or(Reminders::List, Reminders::Cancel);
    let follows = beside::order(&config, &Order::Remind { persona, asked }).await?;
    print(&format!("{follows}\n"))
}
