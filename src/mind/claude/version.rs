//! Which CLI it is.

use std::process::Stdio;
use std::time::Duration;

use super::{Config, PINNED_VERSION, spawner};

/// How long the binary may take to name its version; the first start after boot reads 400 MB.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks the binary for its version.
///
/// # Errors
/// It cannot be run, or is older than the pinned one (by name and reason).
pub async fn version(config: &Config) -> Result<String, String> {
    let program = config.program.display();
    let mut command = tokio::process::Command::new(&config.program);
    command.arg("--version").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("HOME", &config.state).env("DISABLE_AUTOUPDATER", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let child = spawner::spawn(command).await.map_err(|error| {
        format!("{program} cannot be started ({error}); set [mind.claude] program to a claude binary")
    })?;
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .map_err(|_| format!("{program} --version did not answer within {} s", PATIENCE.as_secs()))?
        .map_err(|error| format!("{program} --version: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().next().unwrap_or_default();
    accept(version).map(|()| version.to_owned()).map_err(|reason| format!("{program}: {reason}"))
}

/// Tells whether a version is newer than all that was measured, which operators should know.
pub fn newer_than_pinned(version: &str) -> bool {
    numbers(version) > numbers(PINNED_VERSION)
}

fn accept(version: &str) -> Result<(), String> {
    match numbers(version) {
        None => Err("it does not name its version; is it a claude binary?".to_owned()),
        found if found < numbers(PINNED_VERSION) => Err(format!(
            "claude {version} is older than {PINNED_VERSION}: older ones can lose the last turn in a crash and do not \
             say which line a result belongs to; install @anthropic-ai/claude-code-linux-x64@{PINNED_VERSION}"
        )),
        Some(_) => Ok(()),
    }
}

fn numbers(version: &str) -> Option<[u64; 3]> {
    let release = version.split(['-', '+']).next()?;
    let parts: Vec<u64> = release.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: &str, accepted: bool, newer: bool) {
        assert_eq!(accept(version).is_ok(), accepted, "{version}");
        assert_eq!(newer_than_pinned(version), newer, "{version}");
    }

    #[test]
    fn older_versions_are_refused_and_newer_ones_are_told() {
        check("2.1.331", false, false);
        check("2.1.197", false, false);
        check("1.9.999", false, false);
        check("2.1.332", true, false);
        check("2.1.333", true, true);
        check("2.10.0", true, true);
        check("3.0.0-beta.1", true, true);
    }

    #[test]
    fn what_names_no_version_is_refused() {
        for text in ["", "v2.1.332", "2.1", "2.1.x", "hello"] {
            check(text, false, false);
        }
    }

    #[test]
    fn the_refusal_names_both_versions() {
        let reason = accept("2.1.197").unwrap_err();
        assert!(reason.contains("2.1.197") && reason.contains(PINNED_VERSION), "{reason}");
    }
}
