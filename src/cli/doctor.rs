//! `doctor`: the config, then everything the bridge depends on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{CliError, check, opening, print, states};
use crate::bridge::Mind;
use crate::bridge::clock::draw;
use crate::config::{Config, Environment};
use crate::conversation::RequestId;
use crate::homeserver::client::ReqwestTransport;
use crate::operate::doctor::{Patient, examine};
use crate::operate::{ExitCode, Finding, finding};

/// How long one call may take; a homeserver waits up to a minute for a ping's answer.
const TIMEOUT: Duration = Duration::from_secs(70);

pub(super) async fn doctor(path: &Path, environment: Environment) -> Result<ExitCode, CliError> {
    let (mut findings, config) = check::read(path, environment);
    if let Some(config) = &config {
        findings.extend(states::ask(config).await);
    }
    for finding in &findings {
        print(&format!("{finding}\n"))?;
    }
    if let Some(config) = config {
        let patient = patient(config)?;
        let mut tell = |finding: &Finding| {
            // A reader who went away misses the words, not the exit code.
            let _ = print(&format!("{finding}\n"));
        };
        findings.extend(examine(&patient, &mut tell).await);
    }
    Ok(finding::code(&findings))
}

fn patient(config: Config) -> Result<Patient, CliError> {
    let transport = ReqwestTransport::new(TIMEOUT)
        .map_err(|error| CliError::Other { reason: error.to_string(), code: ExitCode::Failed })?;
    let opening = opening(&config);
    Ok(Patient {
        transport: Arc::new(transport),
        homeserver: config.homeserver.url,
        server_name: config.homeserver.server_name,
        bot: config.bridge.bot,
        personas: config.bridge.personas.into_iter().map(|persona| persona.persona.user).collect(),
        user_prefix: config.appservice.user_prefix,
        listen: config.appservice.listen,
        store: config.store,
        now: opening.now,
        opening,
        claude: match config.bridge.mind {
            Mind::Claude(claude) => Some(*claude),
            Mind::Scripted(_) => None,
        },
        request: RequestId(draw().to_string()),
        registration: config.registration,
    })
}
