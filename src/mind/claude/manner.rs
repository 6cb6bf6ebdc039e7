//! How the CLI is run, as far as a session must be resumed with what it was begun with: all but where it lives, whom it
//! asks, and the credential.

use std::collections::BTreeMap;
use std::path::PathBuf;

use uuid::Uuid;

use super::{Config, Resuming, Ttl, launch};
use crate::conversation::PersonaId;
use crate::persona::session::identity::{CWD, Fingerprint, VERSION};

/// Between the parts of a list in a fingerprint.
const BETWEEN: char = '\u{1f}';

/// Model, effort, arguments and environment of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// `--model`
    pub(super) model: String,
    /// `--effort`, if set.
    pub(super) effort: Option<String>,
    /// The arguments that are the same for every session.
    pub(super) argv: Vec<String>,
    /// The variables that are the same for every session.
    pub(super) environment: BTreeMap<String, String>,
}

impl Manner {
    /// As it is configured now.
    pub(super) fn configured(config: &Config) -> Self {
        Self {
            model: config.model.clone(),
            effort: config.effort.clone(),
            argv: launch::constant_arguments().into_iter().map(str::to_owned).collect(),
            environment: environment(config.ttl),
        }
    }

    /// As it is configured now, for one request of a session that is thrown away.
    pub(super) fn of_a_probe(config: &Config) -> Self {
        let mut manner = Self { effort: None, ..Self::configured(config) };
        // The last word on a matter counts.
        manner.argv.extend(["--max-turns", "1", "--no-session-persistence"].map(str::to_owned));
        manner.environment.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned());
        manner
    }

    /// As a session was begun; where its fingerprint does not tell, as it is configured now.
    pub(super) fn of(begun_with: &Fingerprint, config: &Config) -> Self {
        let now = Self::configured(config);
        if config.resuming == Resuming::AsConfigured {
            return now;
        }
        let part = |name: &str| begun_with.0.get(name);
        let list = |text: &String| text.split(BETWEEN).map(str::to_owned).collect::<Vec<_>>();
        let variable =
            |text: String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            model: part("model").cloned().unwrap_or(now.model),
            effort: part("effort")
                .map_or(now.effort, |effort| Some(effort.clone()).filter(|one| !one.is_empty())),
            argv: part("argv").map_or(now.argv, list),
            environment: part("environment")
                .map_or(now.environment, |text| list(text).into_iter().filter_map(variable).collect()),
        }
    }

    fn parts(self) -> [(&'static str, String); 4] {
        let between = BETWEEN.to_string();
        let variables: Vec<String> =
            self.environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        [
            ("argv", self.argv.join(&between)),
            ("effort", self.effort.unwrap_or_default()),
            ("environment", variables.join(&between)),
            ("model", self.model),
        ]
    }
}

/// The fingerprint of a session begun now with this prompt and schema, which stand in it as digests.
///
/// The credential and the API's address are no part of it: another key, or a proxy, ends no session.
pub fn fingerprint(
    config: &Config,
    persona: &PersonaId,
    version: &str,
    prompt: &str,
    schema: &str,
) -> Fingerprint {
    let parts = Manner::configured(config).parts().into_iter().chain([
        (CWD, launch::Folders::of(config, persona).cwd.display().to_string()),
        ("prompt", digest(prompt)),
        ("schema", digest(schema)),
        (VERSION, version.to_owned()),
    ]);
    Fingerprint(parts.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The config folder that a session was begun in.
pub(super) fn config_folder(begun_with: &Fingerprint) -> Option<PathBuf> {
    Some(PathBuf::from(begun_with.0.get(CWD)?).parent()?.join("config"))
}

/// A short name of a text that differs when the text does.
fn digest(text: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}

fn environment(ttl: Ttl) -> BTreeMap<String, String> {
    let mut all = vec![
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        ("DISABLE_AUTO_COMPACT", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("API_TIMEOUT_MS", "60000"),
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
        ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
    ];
    match ttl {
        Ttl::Auto => {}
        Ttl::FiveMinutes => all.push(("FORCE_PROMPT_CACHING_5M", "1")),
        Ttl::OneHour => {
            all.extend([("CLAUDE_CODE_PROMPT_CACHE_TTL", "1h"), ("ENABLE_PROMPT_CACHING_1H", "1")]);
        }
    }
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
