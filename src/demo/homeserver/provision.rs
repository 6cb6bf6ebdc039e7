//! Installs Synapse into a folder, once: a virtual environment of Python's own.
//!
//! The marker file is written last, so that an install that was interrupted is begun anew.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;

use super::HomeserverError;
use crate::demo::child::Launch;

/// The version that everything here was measured on.
pub const SYNAPSE_VERSION: &str = "1.163.2";

/// What makes the missing parts of Python present.
pub const PYTHON_REMEDY: &str = "sudo apt-get install -y python3 python3-venv";

const PYTHONS: [&str; 5] = ["python3", "python3.13", "python3.12", "python3.11", "python3.10"];
const CHECK: &str = "import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 10) else 1)";
const MARKER: &str = "complete";

/// Installs Synapse under `tools` unless it is there: the Python that runs it. `progress` is told each step.
///
/// # Errors
/// Python is missing or too old, or pip failed (its words are in the log beside the folder).
pub async fn synapse(
    tools: &Path,
    guard: Option<&Path>,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<PathBuf, HomeserverError> {
    let folder = tools.join(format!("synapse-{SYNAPSE_VERSION}"));
    let python = folder.join("bin/python");
    if folder.join(MARKER).exists() {
        return Ok(python);
    }
    std::fs::create_dir_all(tools).map_err(HomeserverError::io(tools))?;
    let _lock = lock(&tools.join("synapse.lock"), progress).await?;
    if folder.join(MARKER).exists() {
        return Ok(python);
    }
    let log = tools.join("synapse-install.log");
    let base = find_python(tools, &log, guard).await?;
    progress(&format!(
        "installing Synapse {SYNAPSE_VERSION} into {} (once, a minute or two)",
        folder.display()
    ));
    let venv = Launch::new(base, tools, &log).args(["-m", "venv", "--clear"]).args([&folder]);
    run("python3 -m venv", venv.guarded(guard), &log, progress).await?;
    let requirement = format!("matrix-synapse=={SYNAPSE_VERSION}");
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", &requirement];
    run("pip install", Launch::new(&python, tools, &log).args(pip).guarded(guard), &log, progress).await?;
    std::fs::write(folder.join(MARKER), SYNAPSE_VERSION).map_err(HomeserverError::io(&folder))?;
    Ok(python)
}

/// The first Python that is new enough and whole.
async fn find_python(cwd: &Path, log: &Path, guard: Option<&Path>) -> Result<&'static str, HomeserverError> {
    for python in PYTHONS {
        let check = Launch::new(python, cwd, log).args(["-c", CHECK]).guarded(guard);
        if let Ok(child) = check.spawn().await
            && child.wait().await.is_some_and(|status| status.success())
        {
            return Ok(python);
        }
    }
    Err(HomeserverError::Missing {
        what: "python3 ≥ 3.10 with its modules venv and ensurepip",
        remedy: PYTHON_REMEDY,
    })
}

/// Runs a step to its end, telling of the lines that say something.
pub(crate) async fn run(
    step: &'static str,
    launch: Launch,
    log: &Path,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<(), HomeserverError> {
    let (lines, mut read) = mpsc::channel(64);
    let child = launch
        .spawn_lines(lines)
        .await
        .map_err(|source| HomeserverError::Io { path: PathBuf::from(step), source })?;
    while let Some(line) = read.recv().await {
        if let Some(news) = worth_telling(&line) {
            progress(&news);
        }
    }
    match child.wait().await {
        Some(status) if status.success() => Ok(()),
        status => Err(HomeserverError::Ended {
            what: step,
            status: status.map_or_else(|| "without a status".to_owned(), |status| status.to_string()),
            log: log.to_owned(),
            tail: super::tail(log),
        }),
    }
}

/// Of pip's lines those that show that something goes on, short.
fn worth_telling(line: &str) -> Option<String> {
    let line = line.trim();
    let line = line.split_once(" (from").map_or(line, |(package, _)| package);
    let starts = ["Collecting ", "Installing ", "Successfully ", "Building "];
    let told = starts.iter().any(|start| line.starts_with(start));
    told.then(|| line.chars().take(76).collect())
}

async fn lock(path: &Path, progress: &mut (dyn FnMut(&str) + Send)) -> Result<File, HomeserverError> {
    let file = File::create(path).map_err(HomeserverError::io(path))?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(HomeserverError::io(path)(source)),
            Err(TryLockError::WouldBlock) if told => {}
            Err(TryLockError::WouldBlock) => progress("waiting for another installation of Synapse"),
        }
        told = true;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_complete_is_not_installed_again() {
        let tools = tempfile::tempdir().unwrap();
        let folder = tools.path().join(format!("synapse-{SYNAPSE_VERSION}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(MARKER), "").unwrap();
        let mut told = Vec::new();
        let python = synapse(tools.path(), None, &mut |line| told.push(line.to_owned())).await.unwrap();
        assert_eq!(python, folder.join("bin/python"));
        assert!(told.is_empty(), "{told:?}");
    }

    #[tokio::test]
    async fn a_failed_step_names_its_log_and_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let step = Launch::new("/bin/sh", dir.path(), &log).args(["-c", "echo no network >&2; exit 7"]);
        let error = run("pip install", step, &log, &mut |_| {}).await.unwrap_err().to_string();
        assert!(
            error.contains("pip install") && error.contains("no network") && error.contains("log"),
            "{error}"
        );
    }

    #[test]
    fn only_lines_that_show_progress_are_told() {
        let check = |line: &str, told: bool| assert_eq!(worth_telling(line).is_some(), told, "{line}");
        check("Collecting matrix-synapse==1.163.2", true);
        check("Installing collected packages: a, b", true);
        check("  Using cached x.whl (1 kB)", false);
        check("", false);
    }
}
