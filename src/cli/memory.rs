//! `memory`: what a Persona remembers, for operators.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};

use super::{CliError, ConfigFile, beside, load, print};
use crate::bridge::inspect::Asked;
use crate::bridge::orders::Order;
use crate::config::{Config, Environment};
use crate::conversation::{MemoryNumber, PersonaId};
use crate::operate::ExitCode;

/// What is asked of her memories.
#[derive(Clone, Debug, Subcommand)]
pub enum Memory {
    /// List what she remembers
    List(Options),
    /// Show all that is known of one memory
    Show(Labelled),
    /// Let her forget memories
    Forget(Labelled),
}

/// Whose memories.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Of this Persona; may be left out where there is only one
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
}

/// Which memories.
#[derive(Clone, Debug, Args)]
pub struct Labelled {
    /// Whose
    #[command(flatten)]
    pub options: Options,
    /// Their labels, as `n3`
    #[arg(required = true, value_name = "LABEL", value_parser = label)]
    pub labels: Vec<MemoryNumber>,
}

fn label(text: &str) -> Result<MemoryNumber, String> {
    MemoryNumber::of_label(text).ok_or_else(|| "a label is an n with a number, as n3".to_owned())
}

pub(super) async fn memory(asked: Memory, environment: Environment) -> Result<ExitCode, CliError> {
    match asked {
        Memory::List(options) => list(&options, environment).await,
        Memory::Show(labelled) => labels(labelled, Asked::Show, environment).await,
        Memory::Forget(labelled) => labels(labelled, Asked::Forget, environment).await,
    }
}

async fn labels(
    Labelled { options, labels }: Labelled,
    asked: fn(BTreeSet<MemoryNumber>) -> Asked,
    environment: Environment,
) -> Result<ExitCode, CliError> {
    let config = load(&options.file, environment)?;
    let persona = whose(&config, options.persona.as_deref())?;
    print(&format!("{}\n", ask(&config, &persona, asked(labels.into_iter().collect())).await?))
}

async fn list(options: &Options, environment: Environment) -> Result<ExitCode, CliError> {
    let config = load(&options.file, environment)?;
    if options.persona.is_some() || config.bridge.personas.len() == 1 {
        let persona = whose(&config, options.persona.as_deref())?;
        return print(&format!("{}\n", ask(&config, &persona, Asked::List).await?));
    }
    let mut lists = Vec::new();
    for persona in &config.bridge.personas {
        let id = &persona.persona.id;
        lists.push(format!("{id}:\n{}\n", ask(&config, id, Asked::List).await?));
    }
    print(&lists.join("\n"))
}

async fn ask(config: &Config, persona: &PersonaId, asked: Asked) -> Result<String, CliError> {
    beside::order(config, &Order::Memory { persona: persona.clone(), asked }).await
}

/// The Persona that is named, else the only one.
fn whose(config: &Config, named: Option<&str>) -> Result<PersonaId, CliError> {
    match (named, config.bridge.personas.as_slice()) {
        (Some(named), _) => beside::known(config, named),
        (None, [only]) => Ok(only.persona.id.clone()),
        (None, _) => Err(beside::other("there are several Personas; name one with --persona".to_owned())),
    }
}
