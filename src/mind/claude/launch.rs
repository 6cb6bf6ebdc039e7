//! What a claude process is started with: its folders, arguments and environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Config, Ttl};
use crate::conversation::PersonaId;
use crate::persona::session::Session;

/// The settings that every session runs with.
const SETTINGS: &str = r#"{"autoCompactEnabled":false,"idleCompaction":false,"cleanupPeriodDays":3650}"#;

/// The folders of one Persona, all below `<state>/<persona>`.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    /// The folder that holds the others.
    pub(super) root: PathBuf,
    /// The child's working directory; outside of any git tree.
    pub(super) cwd: PathBuf,
    /// `HOME`.
    pub(super) home: PathBuf,
    /// `CLAUDE_CONFIG_DIR`.
    pub(super) config: PathBuf,
    /// `TMPDIR`.
    pub(super) tmp: PathBuf,
    /// `XDG_RUNTIME_DIR`.
    pub(super) run: PathBuf,
    /// System prompts, a file a generation.
    pub(super) prompts: PathBuf,
}

impl Folders {
    /// The folders of a Persona; nothing is made yet.
    pub(super) fn of(config: &Config, persona: &PersonaId) -> Self {
        // The child has another working directory than we do.
        let state = std::path::absolute(&config.state).unwrap_or_else(|_| config.state.clone());
        let root = state.join(persona.as_str());
        let below = |name: &str| root.join(name);
        Self {
            cwd: below("cwd"),
            home: below("home"),
            config: below("config"),
            tmp: below("tmp"),
            run: below("run"),
            prompts: below("prompts"),
            root,
        }
    }

    /// Makes what is missing, readable by us alone.
    pub(super) fn make(&self) -> io::Result<()> {
        let folders = [&self.root, &self.cwd, &self.home, &self.config, &self.tmp, &self.run, &self.prompts];
        folders
            .into_iter()
            .try_for_each(|folder| DirBuilder::new().recursive(true).mode(0o700).create(folder))
    }

    /// The system prompt's file of a session.
    pub(super) fn prompt(&self, session: &Session) -> PathBuf {
        self.prompts.join(format!("{}.md", session.generation))
    }

    /// Writes the system prompt of a session: anew for a new one, otherwise only where the file is missing.
    pub(super) fn write_prompt(&self, session: &Session, prompt: &str, opening: Opening) -> io::Result<()> {
        let path = self.prompt(session);
        if opening != Opening::Begin && path.exists() {
            return Ok(());
        }
        let fresh = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(prompt.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &path)
    }
}

/// How a process takes up its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A new session.
    Begin,
    /// A known one.
    Resume,
    /// A known one whose last line waits for its answer: it is run again by the CLI itself.
    ResumeInterrupted,
}

/// Checks that no folder from `path` upwards is a git tree, whose state the CLI would put before her words.
///
/// # Errors
/// A sentence that names the tree and says what to do.
pub fn outside_git(path: &Path) -> Result<(), String> {
    let known = path.ancestors().find_map(|folder| folder.canonicalize().ok());
    let tree = path.ancestors().chain(known.iter().flat_map(|known| known.ancestors()));
    match tree.into_iter().find(|folder| folder.join(".git").exists()) {
        None => Ok(()),
        Some(tree) => Err(format!(
            "{} lies in the git tree {}; set [mind.claude] state to a folder outside of any git tree",
            path.display(),
            tree.display()
        )),
    }
}

/// The arguments that are the same for every session of a configuration, model and effort aside.
pub(super) fn constant_arguments() -> Vec<&'static str> {
    vec![
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--replay-user-messages",
        "--include-partial-messages",
        "--tools",
        "",
        "--strict-mcp-config",
        "--setting-sources",
        "",
        "--disable-slash-commands",
        "--restricted",
        "--max-turns",
        "4",
        "--settings",
        SETTINGS,
    ]
}

/// All arguments of one start.
pub(super) fn arguments(
    config: &Config,
    folders: &Folders,
    schema: &str,
    session: &Session,
    opening: Opening,
) -> Vec<OsString> {
    let mut all: Vec<OsString> = constant_arguments().into_iter().map(OsString::from).collect();
    all.extend(["--model".into(), OsString::from(&config.model)]);
    if let Some(effort) = &config.effort {
        all.extend(["--effort".into(), OsString::from(effort)]);
    }
    all.extend(["--system-prompt-file".into(), folders.prompt(session).into_os_string()]);
    all.extend(["--json-schema".into(), OsString::from(schema)]);
    let flag = if opening == Opening::Begin { "--session-id" } else { "--resume" };
    all.extend([flag.into(), OsString::from(session.id.to_string())]);
    all
}

/// The whole environment of the child but for the credential and the switch of [`Opening::ResumeInterrupted`].
pub(super) fn environment(config: &Config, folders: &Folders) -> BTreeMap<&'static str, OsString> {
    let mut all: BTreeMap<&'static str, OsString> = BTreeMap::from([
        ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ("HOME", folders.home.clone().into()),
        ("CLAUDE_CONFIG_DIR", folders.config.clone().into()),
        ("TMPDIR", folders.tmp.clone().into()),
        ("CLAUDE_CODE_TMPDIR", folders.tmp.clone().into()),
        ("XDG_RUNTIME_DIR", folders.run.clone().into()),
        ("LANG", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1".into()),
        ("DISABLE_AUTO_COMPACT", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("API_TIMEOUT_MS", "60000".into()),
        ("CLAUDE_CODE_MAX_RETRIES", "3".into()),
        ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1".into()),
    ]);
    if let Some(url) = &config.base_url {
        all.insert("ANTHROPIC_BASE_URL", url.as_str().trim_end_matches('/').into());
    }
    match config.ttl {
        Ttl::Auto => {}
        Ttl::FiveMinutes => drop(all.insert("FORCE_PROMPT_CACHING_5M", "1".into())),
        Ttl::OneHour => {
            all.insert("CLAUDE_CODE_PROMPT_CACHE_TTL", "1h".into());
            all.insert("ENABLE_PROMPT_CACHING_1H", "1".into());
        }
    }
    all
}

/// The variables of one start on top of [`environment`].
pub(super) fn start_environment(config: &Config, opening: Opening) -> Vec<(&'static str, OsString)> {
    let mut all = vec![(config.credential.variable, OsString::from(&config.credential.secret))];
    if opening == Opening::ResumeInterrupted {
        all.push(("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1".into()));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::conversation::Millis;
    use crate::mind::claude::{Credential, fingerprint};
    use crate::persona::session::{Account, Fingerprint};

    fn config(state: &Path) -> Config {
        Config {
            program: "/opt/claude".into(),
            guard: "/opt/persona-bridge".into(),
            model: "a-model".to_owned(),
            effort: Some("high".to_owned()),
            state: state.to_owned(),
            base_url: Some("http://127.0.0.1:9/".parse().unwrap()),
            credential: Credential { variable: "ANTHROPIC_API_KEY", secret: "a secret".to_owned() },
            ttl: Ttl::OneHour,
            silence: Duration::from_secs(120),
        }
    }

    fn session() -> Session {
        let (id, fingerprint) = (Uuid::from_u128(7), Fingerprint::default());
        Session {
            generation: 3,
            id,
            fingerprint,
            begun: Millis(0),
            last_committed: None,
            account: Account::default(),
        }
    }

    fn eir() -> PersonaId {
        PersonaId("eir".to_owned())
    }

    #[test]
    fn arguments_are_these() {
        let config = config(Path::new("/state"));
        let folders = Folders::of(&config, &eir());
        let all = arguments(&config, &folders, "{\"type\":\"object\"}", &session(), Opening::Begin);
        let lines: Vec<String> = all.into_iter().map(|part| format!("{part:?}")).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_known_session_is_resumed() {
        let config = config(Path::new("/state"));
        let folders = Folders::of(&config, &eir());
        for opening in [Opening::Resume, Opening::ResumeInterrupted] {
            let all = arguments(&config, &folders, "", &session(), opening);
            assert_eq!(all[all.len() - 2..], [OsString::from("--resume"), session().id.to_string().into()]);
            let switch = start_environment(&config, opening).len() == 2;
            assert_eq!(switch, opening == Opening::ResumeInterrupted);
        }
    }

    #[test]
    fn the_environment_is_this_and_holds_no_secret() {
        let config = config(Path::new("/state"));
        let all = environment(&config, &Folders::of(&config, &eir()));
        let lines: Vec<String> =
            all.iter().map(|(name, value)| format!("{name}={}", value.display())).collect();
        insta::assert_snapshot!(lines.join("\n"));
        assert!(!format!("{config:?}").contains("a secret"));
    }

    #[test]
    fn each_part_of_a_session_is_in_its_fingerprint() {
        let config = config(Path::new("/state"));
        let of = |config: &Config, prompt, schema| fingerprint(config, &eir(), "2.1.332", prompt, schema);
        let before = of(&config, "prompt", "schema");
        let differs = |config: &Config, prompt, schema| before.differences(&of(config, prompt, schema));
        assert_eq!(differs(&config, "prompt", "schema"), [""; 0]);
        assert_eq!(differs(&config, "prompt!", "schema"), ["prompt"]);
        assert_eq!(differs(&config, "prompt", "schema!"), ["schema"]);
        let model = Config { model: "another".to_owned(), ..config.clone() };
        assert_eq!(differs(&model, "prompt", "schema"), ["model"]);
        let effort = Config { effort: None, ..config.clone() };
        assert_eq!(differs(&effort, "prompt", "schema"), ["effort"]);
        let ttl = Config { ttl: Ttl::FiveMinutes, ..config.clone() };
        assert_eq!(differs(&ttl, "prompt", "schema"), ["environment"]);
        let state = Config { state: "/elsewhere".into(), ..config.clone() };
        assert_eq!(differs(&state, "prompt", "schema"), ["cwd", "environment"]);
        let key = Credential { variable: "ANTHROPIC_API_KEY", secret: "another".to_owned() };
        assert_eq!(differs(&Config { credential: key, ..config }, "prompt", "schema"), [""; 0]);
        assert!(!format!("{before:?}").contains("a secret"));
    }

    #[test]
    fn a_prompt_is_written_once_a_session() {
        let state = tempfile::tempdir().unwrap();
        let folders = Folders::of(&config(state.path()), &eir());
        folders.make().unwrap();
        let write = |prompt, opening| {
            folders.write_prompt(&session(), prompt, opening).unwrap();
            std::fs::read_to_string(folders.prompt(&session())).unwrap()
        };
        assert_eq!(write("first", Opening::Resume), "first");
        assert_eq!(write("second", Opening::Resume), "first");
        assert_eq!(write("third", Opening::Begin), "third");
    }

    #[test]
    fn a_git_tree_anywhere_above_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/there/yet");
        assert_eq!(outside_git(&deep), Ok(()));
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let reason = outside_git(&deep).unwrap_err();
        assert!(reason.contains(&folder.path().display().to_string()), "{reason}");
    }

    #[test]
    fn a_git_tree_behind_a_link_is_found() {
        let [tree, elsewhere] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        std::fs::create_dir_all(tree.path().join(".git")).unwrap();
        std::fs::create_dir_all(tree.path().join("state")).unwrap();
        std::os::unix::fs::symlink(tree.path().join("state"), elsewhere.path().join("link")).unwrap();
        assert!(outside_git(&elsewhere.path().join("link/eir/cwd")).is_err());
    }
}
