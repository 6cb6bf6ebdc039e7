//! `persona`: who a Persona is now, as the store has it.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{CliError, ConfigFile, beside, load, print};
use crate::bridge::orders::Order;
use crate::bridge::states::States;
use crate::config::Environment;
use crate::operate::ExitCode;
use crate::persona::state::MOST;

/// What is asked of her state.
#[derive(Clone, Debug, Subcommand)]
pub enum Persona {
    /// Print it whole, as JSON
    Get(Whose),
    /// Put a whole document in its place; it must carry the `updatedAt` that it was got with
    Put(Document),
}

/// Whose state.
#[derive(Clone, Debug, Args)]
pub struct Whose {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Of this Persona
    #[arg(value_name = "ID")]
    pub id: String,
}

/// Which document, and whose state it is to be.
#[derive(Clone, Debug, Args)]
pub struct Document {
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// The file with it; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub document: PathBuf,
}

pub(super) async fn persona(asked: Persona, environment: Environment) -> Result<ExitCode, CliError> {
    let (whose, asked) = match asked {
        Persona::Get(whose) => (whose, States::Get),
        Persona::Put(Document { whose, document }) => {
            let text = read(&document).map_err(|source| CliError::Io { path: document, source })?;
            (whose, States::Put(text))
        }
    };
    let config = load(&whose.file, environment)?;
    let persona = beside::known(&config, &whose.id)?;
    let follows = beside::order(&config, &Order::State { persona, asked }).await?;
    print(&format!("{follows}\n"))
}

/// Reads a document; what is too long for one is cut, and refused for its length later.
fn read(from: &Path) -> std::io::Result<String> {
    let most = u64::try_from(MOST).unwrap_or(u64::MAX) + 1;
    let mut text = String::new();
    if from == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(from)?.take(most).read_to_string(&mut text)?;
    }
    Ok(text)
}
