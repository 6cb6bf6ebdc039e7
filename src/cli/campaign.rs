//! `campaign`: what every Persona is told that the operators are about.

use clap::{Args, Subcommand};

use super::{CliError, ConfigFile, beside, load, print};
use crate::bridge::campaigns::Campaigns;
use crate::bridge::orders::Order;
use crate::config::Environment;
use crate::conversation::{Campaign, Slug};
use crate::operate::ExitCode;

/// What is asked of campaigns.
#[derive(Clone, Debug, Subcommand)]
pub enum Asked {
    /// Open one, or give an open one another title
    Open(Opened),
    /// Close one
    Close(Closed),
    /// List those that are open
    List(ConfigFile),
}

/// The campaign that is opened.
#[derive(Clone, Debug, Args)]
pub struct Opened {
    /// Which
    #[command(flatten)]
    pub which: Closed,
    /// What it is, in one line
    #[arg(value_name = "TITLE")]
    pub title: String,
}

/// Which campaign.
#[derive(Clone, Debug, Args)]
pub struct Closed {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// What it is called by, as autumn-fair
    #[arg(value_name = "SLUG", value_parser = |text: &str| Slug::new(text))]
    pub slug: Slug,
}

pub(super) async fn campaign(asked: Asked, environment: Environment) -> Result<ExitCode, CliError> {
    let (file, asked) = match asked {
        Asked::Open(Opened { which: Closed { file, slug }, title }) => {
            let campaign = Campaign::new(slug, &title).map_err(|error| beside::other(error.to_string()))?;
            (file, Campaigns::Open(campaign))
        }
        Asked::Close(Closed { file, slug }) => (file, Campaigns::Close(slug)),
        Asked::List(file) => (file, Campaigns::List),
    };
    let config = load(&file, environment)?;
    let follows = beside::order(&config, &Order::Campaign(asked)).await?;
    print(&format!("{follows}\n"))
}
