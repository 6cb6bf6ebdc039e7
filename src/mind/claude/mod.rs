//! The real claude CLI as a long-lived child, one a Persona.
//!
//! A line is fed at most once: before a process is started the session's file says whether the line is unknown,
//! unanswered or answered, and the CLI takes the line's uuid for a key of idempotency. A process belongs to one session,
//! holds the Persona's lock as its stderr, and is started through our own [`guard`], so that nothing of it outlives us.
//! It never sends the control interrupt (an interrupted line is not run again) and never tells text of the CLI as hers.

mod archive;
mod classify;
mod contract;
mod corpus;
pub mod guard;
mod handshake;
mod launch;
mod live;
mod manner;
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

use crate::conversation::PersonaId;
use crate::persona::session;
use url::Url;

pub use archive::prune;
pub use contract::{Breach, contract};
pub use corpus::is_cli_text;
pub use handshake::handshake;
pub use launch::outside_git;
pub use manner::fingerprint;
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
    /// With what a session is resumed.
    pub resuming: Resuming,
}

/// With what a session is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resuming {
    /// With what it was begun with.
    #[default]
    AsBegun,
    /// With what is configured now: only for tests, to show what that does to the prompt cache.
    AsConfigured,
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
