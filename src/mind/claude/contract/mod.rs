//! Whether a CLI keeps to what a mind relies on, tried on an API of our own: nobody else is asked, and no credential is used.

pub(super) mod api;
mod play;

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::launch::Folders;
use super::{Config, mind};
use crate::conversation::{Millis, PersonaId};
use api::Api;
use play::Stage;

/// The longest silence of the CLI, whose API answers at once.
const SILENCE: Duration = Duration::from_secs(30);
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(150);

/// A point of the contract that the CLI does not keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// It could not be tried.
    #[error("it could not be tried ({0})")]
    Untried(String),
    /// It went on and on.
    #[error("two lines were not done within {0} s")]
    Endless(u64),
    /// It was fed, and the API was not asked.
    #[error("a line that is fed asks the API nothing ({0})")]
    Silent(String),
    /// Its session is not ours.
    #[error("the session is not the one we began: {0}")]
    Session(String),
    /// The turn's end does not name our line.
    #[error("no result names our line in `user_message_uuids` ({0})")]
    Unnamed(String),
    /// The typed reply does not come through.
    #[error("the call of StructuredOutput is not given back as a typed reply ({0})")]
    Untyped(String),
    /// The request is without our system prompt.
    #[error("the request does not carry our system prompt")]
    Prompt,
    /// The request offers other tools.
    #[error("the request offers the tools {0} and not StructuredOutput alone")]
    Tools(String),
    /// The session's file does not hold the reply.
    #[error("the session's file does not tell the reply of a line that was answered ({0})")]
    Record(String),
    /// The session is not taken up again.
    #[error("a resumed process does not go on with the session ({0})")]
    Resumed(String),
    /// An answered line is run again.
    #[error("a resumed process asks the API again for a line that was answered")]
    Repeated,
}

/// Plays two turns of the CLI in a folder that is thrown away, and tells which points it does not keep.
///
/// `run` was never used before.
pub async fn contract(config: &Config, schema: &'static str, run: Uuid, now: Millis) -> Vec<Breach> {
    let untried = |error: std::io::Error| vec![Breach::Untried(error.to_string())];
    let reply = json!({"say": [{"text": "The contract holds."}], "react": []});
    let api = match Api::bind(reply.clone()).await {
        Ok(api) => api,
        Err(error) => return untried(error),
    };
    let config = Config { silence: SILENCE, ..api.asked_by(config) };
    // No Persona's id holds a `~`.
    let nobody = PersonaId(format!("~contract-{}", run.simple()));
    let root = Folders::of(&config, &nobody).root;
    let (handle, mind) = mind(config, nobody, schema);
    let stage = Stage { api: &api, reply, run, now };
    let played = async { tokio::join!(stage.play(handle), mind).0 };
    let breaches = tokio::select! {
        played = tokio::time::timeout(PATIENCE, played) => played.unwrap_or_else(|_| {
            vec![Breach::Endless(PATIENCE.as_secs())]
        }),
        never = api.serve() => match never {},
    };
    match std::fs::remove_dir_all(&root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, folder = %root.display(), "a folder that is of no use any more could not be removed");
        }
        Ok(()) | Err(_) => {}
    }
    breaches
}
