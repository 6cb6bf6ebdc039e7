//! The registration file: written once, and read at run time as the only place of id, tokens, bot and namespace.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use ruma::{RoomAliasId, UserId};
use serde_yaml_ng::Value;

/// A registration as read.
#[derive(Clone)]
pub struct Registration {
    /// Appservice id.
    pub id: String,
    /// Our token at the homeserver.
    pub as_token: Arc<str>,
    /// The homeserver's token at ours.
    pub hs_token: Arc<str>,
    /// The bot's localpart.
    pub sender_localpart: String,
    /// The url the homeserver calls.
    pub url: Option<String>,
    /// User regexes, as written.
    pub user_namespaces: Vec<String>,
    /// Alias regexes, as written.
    pub alias_namespaces: Vec<String>,
    /// Whether the homeserver limits how fast our users speak; it does unless it is told otherwise.
    pub rate_limited: bool,
    /// Whether all user namespaces are ours alone.
    pub exclusive: bool,
    /// Whether the homeserver is asked to tell who types.
    pub receive_ephemeral: bool,
}

/// What a registration is written from.
#[derive(Clone)]
pub struct Draft {
    /// Appservice id.
    pub id: String,
    /// The url the homeserver will call.
    pub url: String,
    /// The bot's localpart.
    pub bot: String,
    /// The prefix of Personas' localparts and of aliases.
    pub user_prefix: String,
    /// The homeserver's name.
    pub server_name: String,
    /// The appservice's token (drawn by the caller).
    pub as_token: String,
    /// The homeserver's token (drawn by the caller).
    pub hs_token: String,
    /// Whether the homeserver is to tell who types.
    pub receive_ephemeral: bool,
}

impl Registration {
    /// Whether a user is ours by the user namespaces.
    pub fn covers_user(&self, user: &UserId) -> bool {
        covers(&self.user_namespaces, user.as_str())
    }

    /// Whether an alias is ours by the alias namespaces.
    pub fn covers_alias(&self, alias: &RoomAliasId) -> bool {
        covers(&self.alias_namespaces, alias.as_str())
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("id", &self.id)
            .field("sender_localpart", &self.sender_localpart)
            .field("url", &self.url)
            .field("user_namespaces", &self.user_namespaces)
            .field("alias_namespaces", &self.alias_namespaces)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("id", &self.id)
            .field("url", &self.url)
            .field("bot", &self.bot)
            .field("user_prefix", &self.user_prefix)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// Why a registration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// There is none.
    #[error(
        "there is no registration at {path}; write one with `persona-bridge generate-registration --config FILE`"
    )]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It exists and must not be overwritten.
    #[error(
        "{path} exists; its tokens may be in use. Add --force to replace it, and restart the homeserver after"
    )]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a registration.
    #[error("{path} is not a registration: {reason}")]
    Invalid {
        /// Where.
        path: PathBuf,
        /// Which key, and the remedy.
        reason: String,
    },
}

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Never.
    Refuse,
    /// By the operator's word.
    Force,
}

/// The YAML of a registration, fit for Synapse and Conduit.
pub fn render(draft: &Draft) -> String {
    let server = escape(&draft.server_name);
    let prefix = escape(&draft.user_prefix);
    let bot = escape(&draft.bot);
    let users = quote(&format!("^@{prefix}[a-z0-9._=-]+:{server}$"));
    let the_bot = quote(&format!("^@{bot}:{server}$"));
    let aliases = quote(&format!("^#{prefix}.*:{server}$"));
    [
        format!("id: {}", quote(&draft.id)),
        format!("url: {}", quote(&draft.url)),
        format!("as_token: {}", quote(&draft.as_token)),
        format!("hs_token: {}", quote(&draft.hs_token)),
        format!("sender_localpart: {}", quote(&draft.bot)),
        "rate_limited: false".to_owned(),
        format!("receive_ephemeral: {}", draft.receive_ephemeral),
        "namespaces:".to_owned(),
        "  users:".to_owned(),
        namespace(&users),
        namespace(&the_bot),
        "  aliases:".to_owned(),
        namespace(&aliases),
        "  rooms: []\n".to_owned(),
    ]
    .join("\n")
}

/// Writes a registration with mode 0600; refuses to overwrite without `force`.
///
/// # Errors
/// It exists, or cannot be written.
pub fn write(path: &Path, draft: &Draft, force: Overwrite) -> Result<(), RegistrationError> {
    let yaml = render(draft);
    let written = match force {
        Overwrite::Refuse => create(path, &yaml),
        Overwrite::Force => replace(path, &yaml),
    };
    written.map_err(|source| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::AlreadyExists {
            RegistrationError::Exists { path }
        } else {
            RegistrationError::Io { path, source }
        }
    })
}

/// Reads a registration.
///
/// # Errors
/// It is missing, unreadable or incomplete.
pub fn read(path: &Path) -> Result<Registration, RegistrationError> {
    let text = text(path).map_err(|source| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            RegistrationError::Missing { path }
        } else {
            RegistrationError::Io { path, source }
        }
    })?;
    parse(&text).map_err(|reason| RegistrationError::Invalid { path: path.to_owned(), reason })
}

/// The text of a file; what is none, such as a pipe, may never come to an end.
fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    fs::read_to_string(path)
}

fn namespace(quoted: &str) -> String {
    format!("    - exclusive: true\n      regex: {quoted}")
}

/// A YAML scalar in single quotes.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Escapes for Python's and Rust's regexes alike; a hyphen is plain in both outside of brackets.
fn escape(text: &str) -> String {
    regex::escape(text).replace("\\-", "-")
}

fn create(path: &Path, yaml: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(yaml.as_bytes())?;
    file.sync_all()?;
    File::open(folder(path))?.sync_all()
}

/// Replaces the file as a whole, so that a crash leaves either the old or the new one.
fn replace(path: &Path, yaml: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => create(&new, yaml)?,
    }
    fs::rename(&new, path)?;
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn parse(text: &str) -> Result<Registration, String> {
    let yaml: Value =
        serde_yaml_ng::from_str(text).map_err(|error| format!("it is no YAML ({})", place(&error)))?;
    if !yaml.is_mapping() {
        return Err(format!("it is no YAML mapping; {REMEDY}"));
    }
    Ok(Registration {
        id: string(&yaml, "id")?,
        as_token: string(&yaml, "as_token")?.into(),
        hs_token: string(&yaml, "hs_token")?.into(),
        sender_localpart: string(&yaml, "sender_localpart")?,
        url: yaml.get("url").and_then(Value::as_str).map(str::to_owned),
        user_namespaces: namespaces(&yaml, "users")?,
        alias_namespaces: namespaces(&yaml, "aliases")?,
        rate_limited: yaml.get("rate_limited").and_then(Value::as_bool).unwrap_or(true),
        receive_ephemeral: yaml.get("receive_ephemeral").and_then(Value::as_bool).unwrap_or(false),
        exclusive: entries(&yaml, "users").iter().all(|entry| entry["exclusive"] == true),
    })
}

const REMEDY: &str = "write it anew with `persona-bridge generate-registration --force`";

/// Where the YAML is broken; the parser's own words may quote a token.
fn place(error: &serde_yaml_ng::Error) -> String {
    error
        .location()
        .map_or("unreadable".to_owned(), |at| format!("line {}, column {}", at.line(), at.column()))
}

fn string(yaml: &Value, key: &str) -> Result<String, String> {
    match yaml.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::Null) | None => Err(format!("`{key}` is missing; {REMEDY}")),
        Some(_) => Err(format!("`{key}` is not a text; put it in quotes, or {REMEDY}")),
    }
}

fn entries<'a>(yaml: &'a Value, kind: &str) -> &'a [Value] {
    let entries = yaml.get("namespaces").and_then(|all| all.get(kind)).and_then(Value::as_sequence);
    entries.map(Vec::as_slice).unwrap_or_default()
}

fn namespaces(yaml: &Value, kind: &str) -> Result<Vec<String>, String> {
    entries(yaml, kind)
        .iter()
        .enumerate()
        .map(|(n, entry)| namespace_regex(entry, &format!("namespaces.{kind}[{n}].regex")))
        .collect()
}

fn namespace_regex(entry: &Value, name: &str) -> Result<String, String> {
    let text = entry.get("regex").and_then(Value::as_str);
    let text = text.ok_or_else(|| format!("`{name}` is missing; {REMEDY}"))?;
    anchored(text).map_err(|_| format!("`{name}` is not a regular expression; {REMEDY}"))?;
    Ok(text.to_owned())
}

/// Anchored at the beginning alone, as Synapse does it.
fn anchored(text: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{text})"))
}

fn covers(namespaces: &[String], id: &str) -> bool {
    namespaces.iter().any(|text| anchored(text).is_ok_and(|regex| regex.is_match(id)))
}
