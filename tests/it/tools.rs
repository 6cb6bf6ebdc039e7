//! Programs that tests need, provisioned once into a cache folder.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the CLI that everything was measured on.
const CLAUDE_VERSION: &str = "2.1.332";

/// The real claude CLI, or none (said aloud) where it cannot be had; with `CI=true` that is a failure.
pub(crate) fn claude_program() -> Option<PathBuf> {
    match provision() {
        Ok(program) => Some(program),
        Err(reason) if is_ci() => panic!("the claude CLI cannot be had: {reason}"),
        Err(reason) => {
            skipped(&format!("no claude, {reason}"), &this_test());
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
    let scale = variable("PB_SCALE").map_or(1, |scale| scale.parse().expect("PB_SCALE is a number"));
    assert!(scale > 0, "PB_SCALE is at least 1");
    scale
}

/// The test that runs, by its thread's name; a thread of a runtime has none.
fn this_test() -> String {
    std::thread::current().name().unwrap_or("a test with the real claude").to_owned()
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

/// Now, in unix ms, as other programs on this machine see it.
#[expect(clippy::disallowed_methods, reason = "compared with the clock of other programs, which is the same")]
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970");
    u64::try_from(since.as_millis()).expect("there are milliseconds left")
}

/// A variable of the test's environment, if it is set to something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Says that a test did not run.
pub(crate) fn skipped(why: &str, test: &str) {
    aloud(&format!("SKIPPED ({why}): {test}"));
}

/// Says something past the test harness, which swallows what `println` says.
pub(crate) fn aloud(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Whether nothing may be left out.
pub(crate) fn is_ci() -> bool {
    variable("CI").as_deref() == Some("true")
}
