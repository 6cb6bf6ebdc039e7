//! `run`.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{CliError, opening};
use crate::bridge::clock::Clock;
use crate::bridge::minds::minds;
use crate::bridge::{self, Mind, Parts, signals};
use crate::config::Config;
use crate::homeserver::client::{Client, ReqwestTransport};
use crate::homeserver::serve::Listen;
use crate::mind::claude;
use crate::operate::ExitCode;
use crate::store::Store;

/// The longest that one call to the homeserver may take.
const CALL: Duration = Duration::from_secs(60);

/// Runs the bridge until it is told to stop.
pub(super) async fn run(config: Config) -> Result<ExitCode, CliError> {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    // The store holds tokens, the minds' folders words: whatever is made is its owner's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let stop = CancellationToken::new();
    let parts = parts(config, stop.clone()).await?;
    tokio::select! {
        ended = bridge::run(parts) => ended?,
        signalled = signals::watch(stop) => {
            signalled.map_err(|error| other(format!("signals cannot be watched: {error}"), ExitCode::Failed))?;
            return Ok(ExitCode::Failed);
        }
    }
    Ok(ExitCode::Ok)
}

async fn parts(config: Config, stop: CancellationToken) -> Result<Parts, CliError> {
    let opening = opening(&config);
    let store_config = config.store.clone();
    let opened = tokio::task::spawn_blocking(move || Store::open(&store_config, opening)).await;
    let store =
        opened.map_err(|error| other(format!("the store failed: {error}"), ExitCode::StoreFailed))??;
    // After the store, whose lock tells better than a taken port that this bridge runs already.
    let listen = config.appservice.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        let remedy = "is another persona-bridge running? Set [appservice] listen to a free address";
        other(format!("cannot listen at {listen}: {error}; {remedy}"), ExitCode::Failed)
    })?;
    let transport = ReqwestTransport::new(CALL)
        .map_err(|error| other(format!("no HTTP client: {error}"), ExitCode::Failed))?;
    let url = config.homeserver.url.clone();
    let client = Client::new(Arc::new(transport), url, config.registration.as_token.clone());
    let mut bridge = config.bridge;
    bridge.mind_version = mind_version(&bridge.mind).await?;
    Ok(Parts {
        minds: minds(&bridge),
        config: bridge,
        store,
        client,
        hs_token: config.registration.hs_token.clone(),
        listen: Listen::Socket(listener),
        clock: Clock::Wall,
        stop,
    })
}

async fn mind_version(mind: &Mind) -> Result<String, CliError> {
    match mind {
        Mind::Claude(config) => {
            let version =
                claude::version(config).await.map_err(|error| other(error, ExitCode::MindFailed))?;
            if claude::newer_than_pinned(&version) {
                let pinned = claude::PINNED_VERSION;
                tracing::warn!(
                    "claude {version} is newer than {pinned}, the version this bridge was measured on; `persona-bridge doctor` \
                     tells whether it keeps to what the bridge relies on"
                );
            }
            Ok(version)
        }
        Mind::Scripted(_) => Ok("scripted".to_owned()),
    }
}

fn other(reason: String, code: ExitCode) -> CliError {
    CliError::Other { reason, code }
}
