//! The claude CLI for `--mind claude`: its credential by name, and its binary from PATH or installed by npm.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use super::child::Launch;
use super::error::DemoError;
use super::homeserver::{find_program, provision};
use super::{Surroundings, secret};

/// The version that the bridge was measured on, and older than which it takes none.
pub const CLAUDE_VERSION: &str = "2.1.332";

/// The native binary's package, which needs no node to run.
const PACKAGE: &str = match std::env::consts::ARCH.as_bytes() {
    b"aarch64" => "@anthropic-ai/claude-code-linux-arm64",
    _ => "@anthropic-ai/claude-code-linux-x64",
};

/// The variables that can hold the credential, and what each holds in the config's words.
const CREDENTIALS: [(&str, &str); 2] =
    [("ANTHROPIC_API_KEY", "api_key"), ("CLAUDE_CODE_OAUTH_TOKEN", "oauth_token")];

/// How the bridge runs claude.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claude {
    program: PathBuf,
    state: PathBuf,
    variable: &'static str,
    kind: &'static str,
    /// The API's address, where it is not the CLI's own.
    base_url: Option<String>,
}

impl Claude {
    /// Its part of the config.
    pub(super) fn config(&self) -> String {
        let Self { program, state, variable, kind, base_url } = self;
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let (program, state) = (quoted(&program.to_string_lossy()), quoted(&state.to_string_lossy()));
        let base_url = base_url.iter().map(|url| format!("base_url = {}\n", quoted(url))).collect::<String>();
        format!(
            "[mind.claude]\nprogram = {program}\nstate = {state}\ncredential = {{ env = \"{variable}\" }}\n\
             credential_kind = \"{kind}\"\n{base_url}"
        )
    }
}

/// Names the credential and finds or installs the binary.
pub(super) async fn find(
    dir: &Path,
    around: &Surroundings,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Claude, DemoError> {
    let given = CREDENTIALS.iter().find(|(variable, _)| around.variable(variable).is_some());
    let Some((variable, kind)) = given else {
        return Err(DemoError::Missing {
            what: "the account of --mind claude".to_owned(),
            remedy: "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the environment of this command"
                .to_owned(),
        });
    };
    let program = match find_program("claude", around.path()) {
        Some(found) if is_new_enough(&found, dir).await => found,
        Some(_) | None => install(dir, around, progress).await?,
    };
    let base_url = around.variable("ANTHROPIC_BASE_URL").map(str::to_owned);
    Ok(Claude { program, state: state_folder(dir, around), variable, kind, base_url })
}

/// Her sessions lie outside any git tree, since claude would tell her of one.
fn state_folder(dir: &Path, around: &Surroundings) -> PathBuf {
    let tree = dir.ancestors().any(|folder| folder.join(".git").exists());
    match around.variable("HOME") {
        Some(home) if tree => {
            let name = secret::name_of(dir);
            Path::new(home).join(".local/state/persona-bridge").join(format!("demo-{name}"))
        }
        Some(_) | None => dir.join("minds"),
    }
}

async fn is_new_enough(program: &Path, dir: &Path) -> bool {
    let (lines, mut read) = mpsc::channel(8);
    let asked = Launch::new(program, dir, &dir.join("claude-install.log")).args(["--version"]);
    let Ok(_child) = asked.spawn_lines(lines).await else { return false };
    read.recv().await.and_then(|line| version(&line)) >= version(CLAUDE_VERSION)
}

/// The numbers at the beginning of `2.1.332 (Claude Code)`.
fn version(line: &str) -> Option<[u32; 3]> {
    let mut numbers = line.split_whitespace().next()?.splitn(3, '.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}

async fn install(
    dir: &Path,
    around: &Surroundings,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<PathBuf, DemoError> {
    let folder = around.tools(dir).join(format!("claude-{CLAUDE_VERSION}"));
    let program = folder.join("node_modules").join(PACKAGE).join("claude");
    if program.exists() && is_new_enough(&program, dir).await {
        return Ok(program);
    }
    let Some(npm) = find_program("npm", around.path()) else {
        return Err(DemoError::Missing {
            what: format!("claude ≥ {CLAUDE_VERSION}, and npm to install it,"),
            remedy: "install npm with: sudo apt-get install -y npm".to_owned(),
        });
    };
    progress(&format!("installing {PACKAGE}@{CLAUDE_VERSION} into {} (once)", folder.display()));
    super::files::make(&folder)?;
    let log = dir.join("claude-install.log");
    let package = format!("{PACKAGE}@{CLAUDE_VERSION}");
    let arguments = ["install", "--no-audit", "--no-fund", "--prefix", ".", &package];
    let step = Launch::new(npm, &folder, &log).args(arguments).guarded(around.guard());
    provision::run("npm install", step, &log, progress).await?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(vars: &[(&str, &str)]) -> Surroundings {
        let vars = vars.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Surroundings { vars, program: None }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let check =
            |line: &str, expect: bool| assert_eq!(version(line) >= version(CLAUDE_VERSION), expect, "{line}");
        check("2.1.332 (Claude Code)", true);
        check("2.2.0 (Claude Code)", true);
        check("10.0.0", true);
        check("2.1.197 (Claude Code)", false);
        check("not a version", false);
        check("", false);
    }

    #[tokio::test]
    async fn without_a_credential_both_variables_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = find(dir.path(), &around(&[("ANTHROPIC_API_KEY", "")]), &mut |_| {}).await.unwrap_err();
        assert_eq!(error.meaning(), super::super::Meaning::Missing);
        let error = error.to_string();
        assert!(error.contains("ANTHROPIC_API_KEY") && error.contains("CLAUDE_CODE_OAUTH_TOKEN"), "{error}");
    }

    #[tokio::test]
    async fn an_old_claude_and_no_npm_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let old = dir.path().join("claude");
        std::fs::write(&old, "#!/bin/sh\necho '2.1.197 (Claude Code)'\n").unwrap();
        std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = dir.path().to_str().unwrap();
        let around = around(&[("CLAUDE_CODE_OAUTH_TOKEN", "secret"), ("PATH", path)]);
        let error = find(dir.path(), &around, &mut |_| {}).await.unwrap_err().to_string();
        assert!(error.contains("npm") && error.contains(CLAUDE_VERSION), "{error}");
    }

    #[tokio::test]
    async fn a_claude_on_the_path_is_taken_and_its_secret_never_written() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("claude");
        std::fs::write(&program, "#!/bin/sh\necho '2.1.332 (Claude Code)'\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = dir.path().to_str().unwrap();
        let around = around(&[("CLAUDE_CODE_OAUTH_TOKEN", "the-secret"), ("PATH", path)]);
        let config = find(dir.path(), &around, &mut |_| {}).await.unwrap().config();
        assert!(config.contains("credential = { env = \"CLAUDE_CODE_OAUTH_TOKEN\" }"), "{config}");
        assert!(config.contains("oauth_token") && !config.contains("the-secret"), "{config}");
    }

    #[test]
    fn in_a_git_tree_the_sessions_lie_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let around = around(&[("HOME", "/home/someone")]);
        assert_eq!(state_folder(dir.path(), &around), dir.path().join("minds"));
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let elsewhere = state_folder(&dir.path().join("demo"), &around);
        assert!(
            elsewhere.starts_with("/home/someone/.local/state/persona-bridge"),
            "{}",
            elsewhere.display()
        );
    }
}
