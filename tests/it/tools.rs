//! Programs that tests need, provisioned once into a cache folder.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the CLI that everything was measured on.
const CLAUDE_VERSION: &str = "2.1.332";

/// The real claude CLI, or none (said aloud) where it cannot be had; a failure where `CI` is set.
pub(crate) fn claude_program() -> Option<PathBuf> {
    match provision() {
        Ok(program) => Some(program),
        Err(reason) if variable("CI").is_some() => panic!("the claude CLI cannot be had: {reason}"),
        Err(reason) => {
            skipped(&format!("the claude CLI cannot be had: {reason}"));
            None
        }
    }
}

/// The folder that tools are kept in: `PB_TOOLS`, else below the user's cache folder.
pub(crate) fn tools_folder() -> PathBuf {
    let home = || PathBuf::from(variable("HOME").unwrap_or_else(|| "/tmp".to_owned()));
    let cache = || variable("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    variable("PB_TOOLS").map_or_else(|| cache().join("persona-bridge/tools"), PathBuf::from)
}

/// How much is asked of the tests that repeat themselves: 1, or what `PB_SCALE` says.
pub(crate) fn scale() -> u32 {
    variable("PB_SCALE").and_then(|scale| scale.parse().ok()).unwrap_or(1).max(1)
}

fn provision() -> Result<PathBuf, String> {
    let package = match std::env::consts::ARCH {
        "x86_64" => "@anthropic-ai/claude-code-linux-x64",
        "aarch64" => "@anthropic-ai/claude-code-linux-arm64",
        other => return Err(format!("there is no package for {other}")),
    };
    let tools = tools_folder();
    std::fs::create_dir_all(&tools).map_err(|error| format!("{}: {error}", tools.display()))?;
    let lock = File::create(tools.join("claude.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let folder = tools.join(format!("claude-{CLAUDE_VERSION}"));
    let program = folder.join("node_modules").join(package).join("claude");
    if !program.is_file() {
        install(&folder, &format!("{package}@{CLAUDE_VERSION}"))?;
    }
    program.is_file().then_some(program).ok_or_else(|| "the package holds no claude binary".to_owned())
}

fn install(folder: &Path, package: &str) -> Result<(), String> {
    let fresh = folder.with_extension("part");
    let _ = std::fs::remove_dir_all(&fresh);
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&fresh).arg(package);
    let output = npm.output().map_err(|error| format!("npm cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm install {package}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let _ = std::fs::remove_dir_all(folder);
    std::fs::rename(&fresh, folder).map_err(|error| error.to_string())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Says that a test did not run, past the test harness, which swallows what `eprintln` says.
pub(crate) fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {reason}");
}
