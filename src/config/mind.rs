//! `[mind]`: which mind, its program, its folder and its secret.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ProblemKind;
use super::file::{self, Claude, CredentialKind, File, MindKind, Ttl};
use super::reading::Reading;
use super::server::http_url;
use super::source::{CREDENTIAL, NO_PLACE, PLACES};
use crate::bridge;
use crate::mind::{claude, scripted};
use crate::persona::Places;

/// Reads which mind; `guard` is our own binary.
pub(super) fn mind(
    file: &File,
    reading: &mut Reading<'_>,
    guard: &Path,
    store: &Path,
) -> Option<bridge::Mind> {
    match file.mind.kind.unwrap_or_default() {
        MindKind::Claude => {
            claude(&file.mind.claude, reading, guard).map(|config| bridge::Mind::Claude(Box::new(config)))
        }
        MindKind::Scripted => {
            let state = match &file.mind.scripted.state {
                Some(path) => reading.path(path),
                None => store.with_file_name("scripted"),
            };
            Some(bridge::Mind::Scripted(scripted::Config { state }))
        }
    }
}

/// Reads how many minds may live and think at once, and how much memory they may take.
pub(super) fn places(file: &File, reading: &mut Reading<'_>) -> Option<Places> {
    let most = usize::try_from(file.mind.max_live.unwrap_or(8)).unwrap_or(usize::MAX);
    if most == 0 {
        reading.fail_as_example("mind.max_live", "no mind could ever live");
        return None;
    }
    let thinking = file.mind.max_thinking.map_or(most, |most| usize::try_from(most).unwrap_or(usize::MAX));
    if thinking == 0 {
        reading.fail_as_example("mind.max_thinking", "no mind could ever think");
        return None;
    }
    Some(Places { most, thinking, resident: file.mind.max_rss.map(|size| size.0) })
}

fn claude(section: &Claude, reading: &mut Reading<'_>, guard: &Path) -> Option<claude::Config> {
    let program = program(section.program.as_deref().unwrap_or("claude"), reading);
    let state = reading.path(section.state.as_deref().unwrap_or(Path::new("minds")));
    if let Err(said) = claude::outside_git(&state) {
        let (cause, remedy) = said.split_once("; ").unwrap_or((&said, "name another folder"));
        reading.fail("mind.claude.state", cause, remedy);
    }
    let base_url = section.base_url.as_deref().map(|text| http_url(reading, "mind.claude.base_url", text));
    let silence = section.silence.map_or(Duration::from_secs(120), |span| span.0);
    if silence < Duration::from_secs(1) {
        reading.fail_as_example("mind.claude.silence", "must be one second at least");
    }
    let model = plain(reading, "mind.claude.model", section.model.as_deref().or(Some("claude-sonnet-4-5")));
    let effort = plain(reading, "mind.claude.effort", section.effort.as_deref());
    let secret = secret(section.credential.as_ref(), reading);
    let credential = claude::Credential {
        variable: match section.credential_kind.unwrap_or_default() {
            CredentialKind::ApiKey => "ANTHROPIC_API_KEY",
            CredentialKind::OauthToken => claude::OAUTH_VARIABLE,
        },
        secret: secret?,
    };
    Some(claude::Config {
        program: program?,
        guard: guard.into(),
        model: model?,
        effort,
        state,
        base_url: match base_url {
            Some(url) => Some(url?),
            None => None,
        },
        credential,
        ttl: match section.ttl.unwrap_or_default() {
            Ttl::Auto => claude::Ttl::Auto,
            Ttl::FiveMinutes => claude::Ttl::FiveMinutes,
            Ttl::OneHour => claude::Ttl::OneHour,
        },
        silence,
        resuming: claude::Resuming::default(),
    })
}

/// A word that can stand as an argument of its own.
fn plain(reading: &mut Reading<'_>, key: &str, text: Option<&str>) -> Option<String> {
    let text = text?;
    if text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace) {
        reading.fail_as_example(key, format!("`{text}` is not one word"));
        return None;
    }
    Some(text.to_owned())
}

/// The program: a name is looked up on PATH, a path is relative to the file. Beside a bridge it is not started.
fn program(text: &str, reading: &mut Reading<'_>) -> Option<PathBuf> {
    const KEY: &str = "mind.claude.program";
    if reading.is_beside {
        return Some(text.into());
    }
    let found = if text.contains('/') {
        Some(reading.path(Path::new(text))).filter(|path| is_program(path))
    } else {
        let path = reading.vars.get("PATH").map_or("", String::as_str);
        std::env::split_paths(path).map(|folder| folder.join(text)).find(|path| is_program(path))
    };
    if found.is_none() {
        let cause = format!("there is no program `{text}`");
        let remedy = format!(
            "install it with `npm install -g @anthropic-ai/claude-code-linux-x64@{}` and name its `claude` here",
            claude::PINNED_VERSION
        );
        reading.fail_as(ProblemKind::Mind, KEY, cause, remedy);
    }
    found
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Reads the secret, once; beside a bridge there is nobody to give it to.
fn secret(section: Option<&file::Credential>, reading: &mut Reading<'_>) -> Option<String> {
    const KEY: &str = CREDENTIAL;
    let section = reading.required(KEY, section)?;
    let file = section.file.as_ref().map(|file| file.to_string_lossy());
    if section.env.as_deref().is_some_and(is_no_name) || file.is_some_and(|file| is_key(&file)) {
        reading.fail(KEY, NO_PLACE, PLACES);
        return None;
    }
    if reading.is_beside {
        return Some(String::new());
    }
    let secret = match (&section.env, &section.file) {
        (Some(name), None) => match reading.vars.get(name) {
            Some(secret) => secret.trim().to_owned(),
            None => {
                let remedy = format!("set {name} where the bridge is started, or use {{ file = \"PATH\" }}");
                reading.fail(KEY, format!("the variable {name} is not set"), remedy);
                return None;
            }
        },
        (None, Some(file)) => secret_file(&reading.path(file), reading)?,
        (Some(_), Some(_)) | (None, None) => {
            reading.fail(KEY, "needs one of env and file", "write { env = \"NAME\" } or { file = \"PATH\" }");
            return None;
        }
    };
    if secret.is_empty() || secret.contains(|c: char| c.is_whitespace() || c.is_control()) {
        reading.fail(KEY, "is empty or holds blanks", "put the key alone there, on one line");
        return None;
    }
    Some(secret)
}

/// Whether a text cannot be the name of a variable, and so may be the secret itself.
fn is_no_name(text: &str) -> bool {
    !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || text.is_empty()
}

/// Whether a text has the form of a key of the API.
fn is_key(text: &str) -> bool {
    text.starts_with("sk-")
}

fn secret_file(path: &Path, reading: &mut Reading<'_>) -> Option<String> {
    const KEY: &str = CREDENTIAL;
    let shown = path.display();
    let read = std::fs::metadata(path).and_then(|meta| Ok((meta, Reading::text(path)?)));
    match read {
        Ok((meta, _)) if meta.permissions().mode() & 0o077 != 0 => {
            let cause =
                format!("{shown} can be read by others (mode {:04o})", meta.permissions().mode() & 0o7777);
            reading.fail(KEY, cause, format!("run `chmod 600 {shown}`"));
            None
        }
        Ok((_, text)) => Some(text.trim().to_owned()),
        Err(error) => {
            reading.fail(KEY, format!("{shown}: {error}"), "put the key alone in that file, mode 0600");
            None
        }
    }
}
