//! The command line: what can be asked of the binary, and what it answers.
//!
//! Each command is one file with one function; it prints to standard output and says how the process ends.

mod beside;
mod brake;
mod campaign;
mod chance;
mod check;
mod demo;
mod doctor;
mod example;
mod generate;
mod ledger;
mod memory;
mod persona;
mod release;
mod remind;
mod run;
mod session;
mod simulate;
mod states;
mod version;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::bridge::BridgeError;
use crate::bridge::clock::{Clock, draw};
use crate::config::{self, ConfigError, Environment, Problem, ProblemKind};
use crate::homeserver::registration::RegistrationError;
use crate::operate::ExitCode;
use crate::persona::session::care::Word;
use crate::store::{Opening, Owner, StoreError};
use crate::telemetry::{LogOptions, TelemetryError};

/// Personas with one persistent claude session each, living on Matrix as appservice users.
#[derive(Debug, Parser)]
#[command(
    name = "persona-bridge",
    version,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// Print the version, and what it was built for, as JSON
    #[arg(long)]
    pub version_json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Logging
    #[command(flatten)]
    pub log: LogOptions,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the bridge
    Run(ConfigFile),
    /// Check the config, without asking anyone
    Check(ConfigFile),
    /// Check the config, the homeserver in both directions, the mind and the store, without starting the bridge
    Doctor(ConfigFile),
    /// Show what the Personas' sessions used and cost
    Ledger(ledger::Options),
    /// Show what a Persona remembers, or let her forget it
    #[command(subcommand)]
    Memory(memory::Memory),
    /// Show a Persona's state, or put another in its place
    #[command(subcommand)]
    Persona(persona::Persona),
    /// Open or close a campaign, which every Persona is told of, or list those that are open
    #[command(subcommand)]
    Campaign(campaign::Asked),
    /// List what a Persona wants to be reminded of, or cancel one
    Remind(remind::Options),
    /// Let a Persona's next mail begin her next session
    Refresh(session::Options),
    /// Let a Persona note what would be lost with her session
    Flush(session::Options),
    /// Ask nothing any more, or ask again
    Brake(brake::Options),
    /// Let held mail be asked again, and parked says be sent again
    Release(beside::Whom),
    /// Let a Persona's session go on for as long as it can, whatever it costs
    Keep(session::Options),
    /// Write the registration that the homeserver needs
    #[command(short_flag = 'g')]
    GenerateRegistration(generate::Options),
    /// Write a commented example config
    #[command(short_flag = 'e')]
    ExampleConfig(example::Options),
    /// Say what a session would cost, by arrivals from a file or drawn
    Simulate(simulate::Options),
    /// Bring up a homeserver and the bridge on this machine, and talk to a Persona
    Demo(demo::Options),
}

/// Which config.
#[derive(Clone, Debug, Args)]
pub struct ConfigFile {
    /// The config file
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
}

/// Why a command ended badly, in words for the operator.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The config is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The registration is wrong.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// Logging cannot begin.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bridge ended.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    /// Anything else, with its own code.
    #[error("{reason}")]
    Other {
        /// What happened and what to do.
        reason: String,
        /// How the process ends.
        code: ExitCode,
    },
}

impl CliError {
    /// How the process ends.
    pub fn code(&self) -> ExitCode {
        match self {
            Self::Config(error) => config_code(error),
            Self::Registration(error) => registration_code(error),
            Self::Telemetry(_) => ExitCode::Usage,
            Self::Io { .. } => ExitCode::Failed,
            Self::Store(error) => store_code(error),
            Self::Bridge(error) => bridge_code(error),
            Self::Other { code, .. } => *code,
        }
    }
}

/// Does what needs no runtime; `None` is left for [`main`].
///
/// # Errors
/// What went wrong, in words, with its exit code.
pub fn at_once(cli: &Cli, environment: &Environment) -> Result<Option<ExitCode>, CliError> {
    if cli.version_json {
        return print(&version::json()).map(Some);
    }
    match &cli.command {
        Some(Command::Check(file)) => check::check(&file.config, environment).map(Some),
        Some(Command::GenerateRegistration(options)) => generate::generate(options, environment).map(Some),
        Some(Command::ExampleConfig(options)) => example::example(options).map(Some),
        Some(Command::Simulate(options)) => simulate::run(options).map(Some),
        Some(
            Command::Run(_)
            | Command::Doctor(_)
            | Command::Ledger(_)
            | Command::Memory(_)
            | Command::Persona(_)
            | Command::Campaign(_)
            | Command::Remind(_)
            | Command::Refresh(_)
            | Command::Flush(_)
            | Command::Brake(_)
            | Command::Release(_)
            | Command::Keep(_)
            | Command::Demo(_),
        ) => Ok(None),
        None => Ok(Some(ExitCode::Usage)),
    }
}

/// Does what was asked; the answer is how the process ends.
///
/// # Errors
/// What went wrong, in words, with its exit code.
pub async fn main(cli: Cli, environment: Environment) -> Result<ExitCode, CliError> {
    if let Some(code) = at_once(&cli, &environment)? {
        return Ok(code);
    }
    match cli.command {
        Some(Command::Run(file)) => {
            crate::telemetry::begin(&cli.log)?;
            run::run(whole(config::load(&file.config, environment)?)?).await
        }
        Some(Command::Doctor(file)) => doctor::doctor(&file.config, environment).await,
        Some(Command::Ledger(options)) => ledger::ledger(options, environment).await,
        Some(Command::Memory(asked)) => memory::memory(asked, environment).await,
        Some(Command::Persona(asked)) => persona::persona(asked, environment).await,
        Some(Command::Campaign(asked)) => campaign::campaign(asked, environment).await,
        Some(Command::Remind(options)) => remind::remind(options, environment).await,
        Some(Command::Refresh(options)) => session::say(options, environment, Word::Refresh).await,
        Some(Command::Flush(options)) => session::say(options, environment, Word::Flush).await,
        Some(Command::Brake(options)) => brake::brake(options, environment).await,
        Some(Command::Release(options)) => release::release(options, environment).await,
        Some(Command::Keep(options)) => session::say(options, environment, Word::Keep).await,
        Some(Command::Demo(options)) => demo::demo(options, environment).await,
        Some(
            Command::Check(_)
            | Command::GenerateRegistration(_)
            | Command::ExampleConfig(_)
            | Command::Simulate(_),
        )
        | None => Ok(ExitCode::Usage),
    }
}

/// Loads the config of a bridge for a command beside it.
fn load(file: &ConfigFile, environment: Environment) -> Result<config::Config, CliError> {
    whole(config::load(&file.config, environment)?.beside())
}

/// A config with its registration.
fn whole(loaded: config::Loaded) -> Result<config::Config, CliError> {
    let settings = loaded.settings()?;
    let registration = crate::homeserver::registration::read(&settings.appservice.registration)?;
    Ok(settings.with_registration(registration)?)
}

/// With what the config's store is opened now.
fn opening(config: &config::Config) -> Opening {
    let owner = Owner {
        server_name: config.homeserver.server_name.to_string(),
        appservice: config.registration.id.clone(),
    };
    Opening { owner, epoch: draw(), now: Clock::Wall.now() }
}

/// Prints to standard output; a closed pipe is nobody's fault.
fn print(text: &str) -> Result<ExitCode, CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::Ok),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::Ok),
        Err(source) => Err(CliError::Io { path: "standard output".into(), source }),
    }
}

fn config_code(error: &ConfigError) -> ExitCode {
    match error {
        ConfigError::Read { .. } => ExitCode::ConfigRead,
        ConfigError::Invalid(problems) => problems.first().map_or(ExitCode::ConfigInvalid, problem_code),
    }
}

fn problem_code(problem: &Problem) -> ExitCode {
    match problem.kind {
        ProblemKind::Config => ExitCode::ConfigInvalid,
        ProblemKind::Mind => ExitCode::MindFailed,
        ProblemKind::Namespace => ExitCode::WrongUser,
    }
}

fn store_code(error: &StoreError) -> ExitCode {
    match error {
        StoreError::Locked { .. }
        | StoreError::Foreign { .. }
        | StoreError::Owner { .. }
        | StoreError::Version { .. } => ExitCode::StoreRefused,
        StoreError::Corrupt { .. } | StoreError::Io(_) => ExitCode::StoreFailed,
    }
}

fn bridge_code(error: &BridgeError) -> ExitCode {
    match error {
        BridgeError::Store(error) => store_code(error),
        BridgeError::TokenRefused { .. } => ExitCode::TokenRefused,
        BridgeError::Homeserver { .. } => ExitCode::WrongUser,
        BridgeError::ControlRoomGone { .. } => ExitCode::StoreRefused,
        BridgeError::Ear(_) | BridgeError::Task { .. } => ExitCode::Failed,
    }
}

fn registration_code(error: &RegistrationError) -> ExitCode {
    match error {
        RegistrationError::Missing { .. } | RegistrationError::Io { .. } => ExitCode::ConfigRead,
        RegistrationError::Invalid { .. } => ExitCode::ConfigInvalid,
        RegistrationError::Exists { .. } => ExitCode::Failed,
    }
}
