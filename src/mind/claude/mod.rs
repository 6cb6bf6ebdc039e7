//! The real claude CLI as a long-lived child, one a Persona.
//!
//! A line is fed at most once: before a process is started the session's file says whether the line is unknown,
//! unanswered or answered, and the CLI takes the line's uuid for a key of idempotency. A process belongs to one session,
//! holds the Persona's lock as its stderr, and is started through our own [`guard`], so that nothing of it outlives us.
//! It never sends the control interrupt (an interrupted line is not run again) and never tells text of the CLI as hers.

mod classify;
mod corpus;
pub mod guard;
mod handshake;
mod launch;
mod live;
mod measure;
mod owner;
mod proc;
mod process;
mod recover;
mod schema;
mod spawner;
mod transcript;
mod turn;
mod version;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use uuid::Uuid;

use crate::conversation::PersonaId;
use crate::persona::session::{self, Fingerprint};

pub use corpus::is_cli_text;
pub use handshake::handshake;
pub use launch::outside_git;
pub use version::{newer_than_pinned, version};

/// How the CLI is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The claude binary.
    pub program: PathBuf,
    /// Our own binary, which guards each child (`persona-bridge guard …`).
    pub guard: PathBuf,
    /// The model.
    pub model: String,
    /// `--effort`, if set.
    pub effort: Option<String>,
    /// The folder that holds one folder a Persona: cwd, HOME, config dir, tmp, stderr file.
    pub state: PathBuf,
    /// `ANTHROPIC_BASE_URL`, if not the default.
    pub base_url: Option<Url>,
    /// The credential.
    pub credential: Credential,
    /// The cache's time to live.
    pub ttl: Ttl,
    /// The longest silence of a busy child.
    pub silence: Duration,
}

/// The variable of a credential whose prefixes the cache keeps for an hour by itself.
pub const OAUTH_VARIABLE: &str = "CLAUDE_CODE_OAUTH_TOKEN";

impl Config {
    /// For how long the prompt cache keeps a prefix.
    pub fn cached_for(&self) -> session::Ttl {
        match self.ttl {
            Ttl::FiveMinutes => session::Ttl::FiveMinutes,
            Ttl::OneHour => session::Ttl::OneHour,
            Ttl::Auto if self.credential.variable == OAUTH_VARIABLE => session::Ttl::OneHour,
            Ttl::Auto => session::Ttl::FiveMinutes,
        }
    }
}

/// A secret and the variable it is handed to the child in.
#[derive(Clone)]
pub struct Credential {
    /// `ANTHROPIC_API_KEY` or `CLAUDE_CODE_OAUTH_TOKEN`.
    pub variable: &'static str,
    /// The secret; never shown.
    pub secret: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// The prompt cache's time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ttl {
    /// What the credential gives.
    #[default]
    Auto,
    /// Five minutes.
    FiveMinutes,
    /// One hour.
    OneHour,
}

/// The version that everything here was measured on.
pub const PINNED_VERSION: &str = "2.1.332";

/// The fingerprint of a session begun now with this prompt and schema.
///
/// Prompt and schema stand in it as digests; the credential stands in it by its variable's name alone.
pub fn fingerprint(
    config: &Config,
    persona: &PersonaId,
    version: &str,
    prompt: &str,
    schema: &str,
) -> Fingerprint {
    let folders = launch::Folders::of(config, persona);
    let argv = launch::constant_arguments();
    let environment = launch::environment(config, &folders);
    let environment: Vec<String> =
        environment.iter().map(|(name, value)| format!("{name}={}", value.display())).collect();
    let parts = [
        ("argv", argv.join("\u{1f}")),
        ("credential", config.credential.variable.to_owned()),
        ("cwd", folders.cwd.display().to_string()),
        ("effort", config.effort.clone().unwrap_or_default()),
        ("environment", environment.join("\u{1f}")),
        ("model", config.model.clone()),
        ("prompt", digest(prompt)),
        ("schema", digest(schema)),
        ("version", version.to_owned()),
    ];
    Fingerprint(parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A short name of a text that differs when the text does.
fn digest(text: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}

/// Makes a Persona's mind: the handle, and the future to be spawned by the bridge.
///
/// The future ends once the handle is dropped and no process lives. Dropping it early kills the process.
pub fn mind(
    config: Config,
    persona: PersonaId,
    schema: &'static str,
) -> (super::MindHandle, impl Future<Output = ()> + Send + 'static) {
    let (commands, inbox) = tokio::sync::mpsc::channel(4);
    let (outbox, events) = tokio::sync::mpsc::channel(64);
    let mind = live::Mind::new(config, persona, schema, inbox, outbox);
    (super::MindHandle { commands, events }, mind.run())
}
