//! `check`: the config, without asking anyone.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::Access;

use super::{CliError, config_code, print, problem_code, registration_code, states};
use crate::bridge::Mind;
use crate::config::error;
use crate::config::{self, Config, ConfigError, Environment, Problem, ProblemKind, Settings};
use crate::homeserver::registration::{self, RegistrationError};
use crate::operate::{ExitCode, Finding, finding};

/// What is looked at, in order.
const LINES: [&str; 10] = [
    "[homeserver]",
    "[appservice]",
    "[store]",
    "[mind]",
    "credential",
    "[talk]",
    "[registers]",
    "[[rooms]]",
    "[[personas]]",
    "[permissions]",
];

pub(super) fn check(path: &Path, environment: &Environment) -> Result<ExitCode, CliError> {
    let (mut findings, config) = read(path, environment.clone());
    findings.extend(config.iter().flat_map(states::look));
    let text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    print(&text)?;
    Ok(finding::code(&findings))
}

/// Reads a config and says how each part of it is; the whole of it only if nothing failed.
pub(super) fn read(path: &Path, environment: Environment) -> (Vec<Finding>, Option<Config>) {
    let settings = match config::load(path, environment).and_then(|loaded| loaded.settings()) {
        Ok(settings) => settings,
        Err(error) => return (failures(&error), None),
    };
    let mut findings = vec![Finding::ok("config", format!("{} is well-formed", path.display()))];
    let registration = settings.appservice.registration.clone();
    findings.extend(LINES.into_iter().map(|line| Finding::ok(line, summary(line, &settings))));
    let config = match registration::read(&registration) {
        Ok(read) => settings.clone().with_registration(read).map_err(|error| failures(&error)),
        Err(error) => Err(vec![Finding::fail(
            "registration",
            registration_code(&error),
            error.to_string(),
            registration_remedy(&error),
        )]),
    };
    if let Some(finding) = closed_store(&settings.store.path) {
        findings.retain(|finding| finding.line != "[store]");
        findings.push(finding);
    }
    let warnings = config.as_ref().map_or(&settings.warnings, |config| &config.warnings);
    for warning in warnings {
        warn(&mut findings, warning);
    }
    match config {
        Ok(config) => {
            findings.push(registration_file(&registration, &config));
            (findings, Some(config))
        }
        Err(failures) => {
            findings.extend(failures.into_iter().filter(|finding| finding.code() != ExitCode::Ok));
            (findings, None)
        }
    }
}

/// What of a store that exists we have no right to open.
fn closed_store(path: &Path) -> Option<Finding> {
    let parts = [path.to_owned(), path.join("lock"), path.join("sled"), path.join("sled/db")];
    parts.iter().find_map(|part| {
        let mut wanted = Access::READ_OK | Access::WRITE_OK;
        if std::fs::metadata(part).is_ok_and(|meta| meta.is_dir()) {
            wanted |= Access::EXEC_OK;
        }
        let error = std::io::Error::from(rustix::fs::access(part, wanted).err()?);
        let denied = matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
        let cause = format!("{}: {error}", part.display());
        let remedy = "give the bridge's user the right to read and write it, or check as that user";
        denied.then(|| Finding::fail("[store]", ExitCode::StoreFailed, cause, remedy))
    })
}

/// What the error's own words do not say yet.
fn registration_remedy(error: &RegistrationError) -> &'static str {
    match error {
        RegistrationError::Missing { .. }
        | RegistrationError::Exists { .. }
        | RegistrationError::Invalid { .. } => "",
        RegistrationError::Io { .. } => "give the bridge's user the right to read it",
    }
}

/// A warning takes the place of its part's good word.
fn warn(findings: &mut Vec<Finding>, warning: &Problem) {
    let line = line_of(warning);
    let good = findings.iter().position(|finding| finding.line == line && finding.remedy.is_empty());
    let finding = Finding::warn(line, cause(warning), &warning.remedy);
    match good {
        Some(at) => findings[at] = finding,
        None => findings.push(finding),
    }
}

fn failures(error: &ConfigError) -> Vec<Finding> {
    let problems = match error {
        ConfigError::Read { path, source } => {
            let remedy = error::how_to_give(path, source);
            return vec![Finding::fail(
                "config",
                config_code(error),
                format!("{}: {source}", path.display()),
                remedy,
            )];
        }
        ConfigError::Invalid(problems) => problems,
    };
    problems
        .iter()
        .map(|problem| {
            Finding::fail(line_of(problem), problem_code(problem), cause(problem), &problem.remedy)
        })
        .collect()
}

fn cause(problem: &Problem) -> String {
    if problem.key.is_empty() {
        return format!("{}: {}", problem.place, problem.cause);
    }
    format!("{}: {}: {}", problem.place, problem.key, problem.cause)
}

/// Which line a problem belongs to.
fn line_of(problem: &Problem) -> &'static str {
    if problem.kind == ProblemKind::Namespace {
        return "namespace";
    }
    if problem.key.starts_with("mind.claude.credential") {
        return "credential";
    }
    let section = problem.key.split(['.', '[']).next().unwrap_or_default();
    LINES.into_iter().find(|line| line.trim_matches(['[', ']']) == section).unwrap_or("config")
}

fn summary(line: &str, settings: &Settings) -> String {
    let bridge = settings.bridge();
    match line {
        "[homeserver]" => format!("{} at {}", settings.homeserver.server_name, settings.homeserver.url),
        "[appservice]" => {
            format!("listens at {}, called at {}", settings.appservice.listen, settings.appservice.url)
        }
        "[store]" => settings.store.path.display().to_string(),
        "[mind]" => match &bridge.mind {
            Mind::Claude(claude) => format!("{} with {}", claude.program.display(), claude.model),
            Mind::Scripted(_) => "scripted, a stand-in".into(),
        },
        "credential" => match &bridge.mind {
            Mind::Claude(claude) => format!("is read, for {}", claude.credential.variable),
            Mind::Scripted(_) => "none is needed".into(),
        },
        "[talk]" => {
            format!("settles in {} to {} ms", bridge.settle.quiet.as_millis(), bridge.settle.cap.as_millis())
        }
        "[registers]" => list(bridge.registers.keys()),
        "[[rooms]]" => list(bridge.rooms.keys()),
        "[[personas]]" => list(bridge.personas.iter().map(|persona| &persona.persona.user)),
        _ => list(bridge.permissions.0.keys()),
    }
}

fn list<T: std::fmt::Display>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    if items.is_empty() { "none".into() } else { items.join(", ") }
}

fn registration_file(path: &Path, config: &Config) -> Finding {
    const LINE: &str = "registration";
    let shown = path.display();
    let mode = std::fs::metadata(path).map_or(0, |meta| meta.permissions().mode());
    if mode & 0o007 != 0 {
        let cause = format!("{shown} can be read by everyone (mode {:04o})", mode & 0o7777);
        return Finding::warn(LINE, cause, format!("run `chmod o-rwx {shown}`; it holds both tokens"));
    }
    Finding::ok(LINE, format!("{shown} with id {} and bot {}", config.registration.id, config.bridge.bot))
}
