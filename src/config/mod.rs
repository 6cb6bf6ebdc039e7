//! What the operator wrote. Reads the file and the environment, and gathers each part's own config.
//!
//! It is read once; nothing else in the project reads the environment or a config file. A new key is added to
//! [`mod@file`], to `config/example.toml` and where its section is gathered.

mod budget;
pub mod error;
pub mod example;
pub mod file;
mod heart;
mod mind;
mod overrides;
mod personas;
pub mod prices;
mod reading;
mod registers;
pub mod server;
mod session;
mod source;
mod talk;
#[cfg(test)]
mod tests;
pub mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ruma::{OwnedUserId, UserId};

use self::file::File;
use self::reading::Reading;
use self::source::Source;
use crate::homeserver::registration::Registration;
use crate::{bridge, store};

pub use error::{ConfigError, Place, Problem, ProblemKind};
pub use example::EXAMPLE;

/// How long the first signal waits for a turn in hand.
const GRACE: Duration = Duration::from_secs(20);
/// Names the point at which a build for tests kills itself.
const HALT: &str = "PERSONA_BRIDGE_HALT";

/// Everything that the environment of this process gives; an argument, so that tests can bring their own.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The variables.
    pub vars: BTreeMap<String, String>,
    /// Our own binary, which guards the minds' processes.
    pub program: PathBuf,
}

/// A file that is read and well-formed, with the environment laid over it.
#[derive(Clone, Debug)]
pub struct Loaded {
    file: File,
    source: Source,
    base: PathBuf,
    environment: Environment,
    is_beside: bool,
}

/// What the bridge runs with, before the registration is read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[homeserver]`
    pub homeserver: server::Homeserver,
    /// `[appservice]`
    pub appservice: server::Appservice,
    /// `[store]`
    pub store: store::Config,
    /// What is unwise.
    pub warnings: Vec<Problem>,
    bridge: bridge::Config,
    loaded: Loaded,
}

/// What the bridge runs with.
#[derive(Clone)]
pub struct Config {
    /// `[homeserver]`
    pub homeserver: server::Homeserver,
    /// `[appservice]`
    pub appservice: server::Appservice,
    /// `[store]`
    pub store: store::Config,
    /// The registration: tokens, id, bot and namespaces.
    pub registration: Registration,
    /// The bridge's own.
    pub bridge: bridge::Config,
    /// What is unwise.
    pub warnings: Vec<Problem>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_this_process() -> Self {
        let vars =
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        let program = std::env::current_exe().unwrap_or_else(|_| "persona-bridge".into());
        Self { vars: vars.collect(), program }
    }
}

/// Reads a file and lays the environment over it.
///
/// # Errors
/// It cannot be read, or a key or value is not known.
pub fn load(path: &Path, environment: Environment) -> Result<Loaded, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let base = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let one = |problem| ConfigError::Invalid(vec![problem]);
    let mut source = Source::parse(path, text).map_err(one)?;
    source.read::<File>().map_err(one)?;
    let mut table: toml::Table = source.read().map_err(one)?;
    overrides::apply(&mut table, &mut source, &environment.vars, &base).map_err(ConfigError::Invalid)?;
    let file = source::read_table(table, &Place::File(path.into()), "").map_err(one)?;
    Ok(Loaded { file, source, base, environment, is_beside: false })
}

impl Loaded {
    /// For a command beside the bridge: whoever gives it may lack the credential and the program of the minds.
    #[must_use]
    pub fn beside(self) -> Self {
        Self { is_beside: true, ..self }
    }

    /// The sections that a registration is written from; nothing else needs to be right for it.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn for_registration(&self) -> Result<(server::Homeserver, server::Appservice), ConfigError> {
        let mut reading = self.reading();
        let homeserver = server::homeserver(&self.file, &mut reading);
        let appservice = server::appservice(&self.file, &mut reading);
        match (homeserver, appservice) {
            (Some(homeserver), Some(appservice)) if reading.problems.is_empty() => {
                Ok((homeserver, appservice))
            }
            _ => Err(ConfigError::Invalid(reading.problems)),
        }
    }

    /// Gathers everything, reading the files that are named and the secret.
    ///
    /// # Errors
    /// Everything that is wrong, not just the first.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        let (file, mut reading) = (&self.file, self.reading());
        let homeserver = server::homeserver(file, &mut reading);
        let appservice = server::appservice(file, &mut reading);
        let store = server::store(file, &mut reading);
        let mind = mind::mind(file, &mut reading, &self.environment.program, &store.path);
        let places = mind::places(file, &mut reading);
        let budget = budget::budget(file, &mut reading);
        let care = session::policy(file, &mut reading);
        let prices = session::prices(file, &mut reading);
        session::check_price(mind.as_ref().zip(prices.as_ref()), &budget, &mut reading);
        let settle = talk::settle(file, &mut reading);
        let trim_over = talk::trim_over(file, &mut reading);
        let heart = heart::heart(file, &mut reading);
        let default_register = talk::default_register(file, &mut reading);
        let registers = registers::registers(file, &mut reading);
        let rooms = talk::rooms(file, &mut reading);
        let addressed_only = talk::addressed_only(file, &mut reading);
        let personas = personas::personas(file, &mut reading, homeserver.as_ref().zip(appservice.as_ref()));
        let permissions = talk::permissions(file, &mut reading);
        let bots = talk::bots(file, &mut reading);
        let bot = homeserver.as_ref().zip(appservice.as_ref()).and_then(|(h, a)| bot(h, &a.bot));
        let (Some(homeserver), Some(appservice), Some(mind), Some(places), Some(prices), Some(bot), true) =
            (homeserver, appservice, mind, places, prices, bot, reading.problems.is_empty())
        else {
            return Err(ConfigError::Invalid(reading.problems));
        };
        let bridge = bridge::Config {
            server_name: homeserver.server_name.clone(),
            bot,
            appservice: appservice.id.clone(),
            user_prefix: appservice.user_prefix.clone(),
            personas,
            registers,
            rooms,
            addressed_only,
            default_register,
            permissions,
            bots,
            among: talk::among(file),
            dm_memories: talk::dm_memories(file),
            trim_over,
            settle,
            heart,
            typing_waits: appservice.receive_ephemeral,
            reconcile: homeserver.reconcile,
            places,
            mind,
            mind_version: String::new(),
            budget,
            prices,
            care,
            archive_keep: session::archive_keep(file),
            transcript_keep: session::transcript_keep(file),
            grace: GRACE,
            halt: self.environment.vars.get(HALT).and_then(|name| bridge::Halt::named(name)),
        };
        let warnings = reading.warnings;
        Ok(Settings { homeserver, appservice, store, warnings, bridge, loaded: self.clone() })
    }

    fn reading(&self) -> Reading<'_> {
        Reading {
            source: &self.source,
            base: &self.base,
            vars: &self.environment.vars,
            is_beside: self.is_beside,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Settings {
    /// Joins the settings with the registration, which has the last word on id and bot.
    ///
    /// # Errors
    /// A user or the server that the registration does not cover.
    pub fn with_registration(mut self, registration: Registration) -> Result<Config, ConfigError> {
        let mut reading = self.loaded.reading();
        registration_fits(&self, &registration, &mut reading);
        let Some(bot) = bot(&self.homeserver, &registration.sender_localpart) else {
            reading.fail(
                "appservice.registration",
                format!("sender_localpart `{}` cannot stand in a user id", registration.sender_localpart),
                "generate the registration anew",
            );
            return Err(ConfigError::Invalid(reading.problems));
        };
        if let Some(index) = self.bridge.personas.iter().position(|p| p.persona.user == bot) {
            let key = format!("personas[{index}].id");
            reading.fail(&key, format!("{bot} is the bot itself"), "give her another id");
        }
        if !reading.problems.is_empty() {
            return Err(ConfigError::Invalid(reading.problems));
        }
        self.warnings.append(&mut reading.warnings);
        self.bridge.bot = bot;
        self.bridge.appservice.clone_from(&registration.id);
        Ok(Config {
            homeserver: self.homeserver,
            appservice: self.appservice,
            store: self.store,
            registration,
            bridge: self.bridge,
            warnings: self.warnings,
        })
    }

    /// What the bridge is set up for; id and bot are only final with the registration.
    pub fn bridge(&self) -> &bridge::Config {
        &self.bridge
    }
}

fn bot(homeserver: &server::Homeserver, localpart: &str) -> Option<OwnedUserId> {
    UserId::parse(format!("@{localpart}:{}", homeserver.server_name)).ok()
}

fn registration_fits(settings: &Settings, registration: &Registration, reading: &mut Reading<'_>) {
    for (index, persona) in settings.bridge.personas.iter().enumerate() {
        let user = &persona.persona.user;
        if !registration.covers_user(user) {
            reading.fail_as(
                ProblemKind::Namespace,
                &format!("personas[{index}].id"),
                format!("{user} is outside the namespace of {}", settings.appservice.registration.display()),
                "set server_name and user_prefix as they were when it was generated, or generate it anew \
                 (--force), install it and restart the homeserver",
            );
        }
    }
    hinders(registration, reading);
    if settings.bridge.typing_waits && !registration.receive_ephemeral {
        reading.warn(
            "talk.typing_waits",
            "the registration does not ask the homeserver to tell who types",
            "set receive_ephemeral: true in it, install it and restart the homeserver",
        );
    }
    match &registration.url {
        None => reading.warn(
            "appservice.registration",
            "it has no url, so the homeserver brings nothing",
            "generate it anew (--force), install it and restart the homeserver",
        ),
        Some(url) if url.trim_end_matches('/') != settings.appservice.url.as_str().trim_end_matches('/') => {
            reading.warn(
                "appservice.url",
                format!("the registration says {url}"),
                "make them equal; the homeserver follows the registration",
            );
        }
        Some(_) => {}
    }
}

/// What of a registration works against the bridge.
fn hinders(registration: &Registration, reading: &mut Reading<'_>) {
    const KEY: &str = "appservice.registration";
    const REMEDY: &str = "generate it anew (--force), install it and restart the homeserver";
    if registration.as_token == registration.hs_token {
        reading.warn(KEY, "as_token and hs_token are the same", REMEDY);
    }
    if registration.rate_limited {
        let remedy = "set rate_limited: false in it, install it and restart the homeserver";
        reading.warn(KEY, "the homeserver limits how fast Personas speak", remedy);
    }
    if !registration.exclusive {
        let remedy = "set exclusive: true for its users, install it and restart the homeserver";
        reading.warn(KEY, "anyone may register a user in the Personas' namespace", remedy);
    }
}
