//! `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use url::Url;

use super::CliError;
use crate::config::Environment;
use crate::demo::{self, DemoError, Meaning, MindChoice, Surroundings};
use crate::operate::ExitCode;

/// How the demo runs.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The folder that everything is kept in; a second start goes on with it
    #[arg(long, value_name = "DIR", default_value = "./persona-bridge-demo")]
    pub dir: PathBuf,
    /// Who thinks for the Personas: the stand-in, or claude with ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN
    #[arg(long, value_enum, default_value_t = Mind::Scripted)]
    pub mind: Mind,
    /// Use a running homeserver instead of bringing one up
    #[arg(long, value_name = "URL")]
    pub homeserver: Option<Url>,
    /// Say this, print the answer alone, and end; beside a running demo it is said through that one
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub say: Option<String>,
    /// Whom to say it to: minds, swarm, burn (name a Persona in the text), eir or brage
    #[arg(long, value_name = "TARGET", requires = "say")]
    pub to: Option<String>,
}

/// Who thinks for the Personas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mind {
    /// A stand-in that needs no account
    Scripted,
    /// The claude CLI
    Claude,
}

/// The one call of the demo.
pub(super) async fn demo(options: Options, environment: Environment) -> Result<ExitCode, CliError> {
    let asked = demo::Options {
        dir: options.dir,
        mind: match options.mind {
            Mind::Scripted => MindChoice::Scripted,
            Mind::Claude => MindChoice::Claude,
        },
        homeserver: options.homeserver,
        say: options.say.zip(options.to),
    };
    let around = Surroundings { vars: environment.vars, program: Some(environment.program) };
    demo::run(asked, around).await.map_err(refused)?;
    Ok(ExitCode::Ok)
}

fn refused(error: DemoError) -> CliError {
    let code = match error.meaning() {
        Meaning::Failed => ExitCode::Failed,
        Meaning::Usage => ExitCode::Usage,
        Meaning::Missing => ExitCode::ConfigInvalid,
        Meaning::HomeserverUnreachable => ExitCode::HomeserverUnreachable,
        Meaning::TokenRefused => ExitCode::TokenRefused,
    };
    CliError::Other { reason: error.to_string(), code }
}
