//! `generate-registration`.

use clap::Args;

use super::chance::token;
use super::{CliError, ConfigFile, print};
use crate::config::{self, Environment, server};
use crate::homeserver::registration::{self, Draft, Overwrite};
use crate::operate::ExitCode;

/// What is written, and where.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Which config
    #[command(flatten)]
    pub file: ConfigFile,
    /// Print it instead of writing the file; the tokens in it are new each time
    #[arg(long, conflicts_with = "force")]
    pub print: bool,
    /// Replace an existing registration; its tokens end with the homeserver's next restart
    #[arg(long)]
    pub force: bool,
}

pub(super) fn generate(options: &Options, environment: &Environment) -> Result<ExitCode, CliError> {
    let (homeserver, appservice) =
        config::load(&options.file.config, environment.clone())?.for_registration()?;
    let draft = draft(&homeserver, &appservice)?;
    if options.print {
        return print(&registration::render(&draft));
    }
    let overwrite = if options.force { Overwrite::Force } else { Overwrite::Refuse };
    registration::write(&appservice.registration, &draft, overwrite)?;
    print(&format!(
        "{path} is written. Give it to the homeserver (on Synapse: app_service_config_files, then restart it; on \
         Conduit: register-appservice in the admin room), and keep it secret.\n",
        path = appservice.registration.display()
    ))
}

fn draft(homeserver: &server::Homeserver, appservice: &server::Appservice) -> Result<Draft, CliError> {
    Ok(Draft {
        id: appservice.id.clone(),
        url: appservice.url.as_str().trim_end_matches('/').to_owned(),
        bot: appservice.bot.clone(),
        user_prefix: appservice.user_prefix.clone(),
        server_name: homeserver.server_name.to_string(),
        as_token: token()?,
        hs_token: token()?,
        receive_ephemeral: appservice.receive_ephemeral,
    })
}
