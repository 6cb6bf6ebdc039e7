//! What a claude process is started with: its folders, arguments and environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::Config;
use super::manner::Manner;
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

    /// The reply schema's file of a session.
    fn schema_file(&self, session: &Session) -> PathBuf {
        self.prompts.join(format!("{}.schema.json", session.generation))
    }

    /// The reply schema that a session was begun with; none where none was written.
    pub(super) fn schema(&self, session: &Session) -> Option<String> {
        std::fs::read_to_string(self.schema_file(session)).ok()
    }

    /// Writes what a session is begun with beside its file.
    pub(super) fn write_texts(
        &self,
        session: &Session,
        texts: Texts<'_>,
        opening: Opening,
    ) -> io::Result<()> {
        write(&self.schema_file(session), texts.schema, opening)?;
        write(&self.prompt(session), texts.prompt, opening)
    }

    /// The system prompt's file of a session.
    pub(super) fn prompt(&self, session: &Session) -> PathBuf {
        self.prompts.join(format!("{}.md", session.generation))
    }
}

/// What a session is begun with, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Texts<'a> {
    /// The system prompt.
    pub(super) prompt: &'a str,
    /// The reply schema.
    pub(super) schema: &'a str,
}

/// Writes a text of a session: anew for a new one, otherwise only where the file is missing.
fn write(path: &Path, text: &str, opening: Opening) -> io::Result<()> {
    if opening != Opening::Begin && path.exists() {
        return Ok(());
    }
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
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
    /// A copy of a known one, under another id.
    Fork(Uuid),
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
    manner: &Manner,
    folders: &Folders,
    schema: &str,
    session: &Session,
    opening: Opening,
) -> Vec<OsString> {
    let mut all: Vec<OsString> = manner.argv.iter().map(OsString::from).collect();
    all.extend(["--model".into(), OsString::from(&manner.model)]);
    if let Some(effort) = &manner.effort {
        all.extend(["--effort".into(), OsString::from(effort)]);
    }
    all.extend(["--system-prompt-file".into(), folders.prompt(session).into_os_string()]);
    if !schema.is_empty() {
        all.extend(["--json-schema".into(), OsString::from(schema)]);
    }
    let flag = if opening == Opening::Begin { "--session-id" } else { "--resume" };
    all.extend([flag.into(), OsString::from(session.id.to_string())]);
    if let Opening::Fork(id) = opening {
        all.extend(["--fork-session".into(), "--session-id".into(), OsString::from(id.to_string())]);
    }
    all
}

/// The whole environment of the child but for the credential and the switch of [`Opening::ResumeInterrupted`].
pub(super) fn environment(manner: &Manner, config: &Config, folders: &Folders) -> BTreeMap<String, OsString> {
    let begun_with = manner.environment.iter().map(|(name, value)| (name.clone(), OsString::from(value)));
    let places = places(config, folders).into_iter().map(|(name, value)| (name.to_owned(), value));
    begun_with.chain(places).collect()
}

/// The variables of where the child lives and whom it asks: as they are configured now, whatever a session was begun with.
fn places(config: &Config, folders: &Folders) -> BTreeMap<&'static str, OsString> {
    let mut all: BTreeMap<&'static str, OsString> = BTreeMap::from([
        ("HOME", folders.home.clone().into()),
        ("CLAUDE_CONFIG_DIR", folders.config.clone().into()),
        ("TMPDIR", folders.tmp.clone().into()),
        ("CLAUDE_CODE_TMPDIR", folders.tmp.clone().into()),
        ("XDG_RUNTIME_DIR", folders.run.clone().into()),
    ]);
    if let Some(url) = &config.base_url {
        all.insert("ANTHROPIC_BASE_URL", url.as_str().trim_end_matches('/').into());
    }
    all
}

/// The variables of one start on top of [`environment`].
pub(super) fn start_environment(config: &Config, opening: Opening) -> Vec<(&'static str, OsString)> {
    let mut all = vec![(config.credential.variable, OsString::from(&config.credential.secret))];
    if opening == Opening::ResumeInterrupted {
        all.push(("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1".into()));
        // However old it is: by default it is left as it is after a day.
        all.push(("CLAUDE_CODE_RESUME_INTERRUPTED_TURN_MAX_AGE_MS", "0".into()));
    }
    all
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::conversation::Millis;
    use crate::mind::claude::{Credential, OAUTH_VARIABLE, Resuming, Ttl, fingerprint};
    use crate::persona::session::{Account, Fingerprint};

    pub(in crate::mind::claude) fn config(state: &Path) -> Config {
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
            resuming: Resuming::default(),
        }
    }

    pub(in crate::mind::claude) fn session() -> Session {
        let (id, fingerprint) = (Uuid::from_u128(7), Fingerprint::default());
        Session {
            generation: 3,
            id,
            fingerprint,
            begun: Millis(0),
            last_committed: None,
            seeded: false,
            account: Account::default(),
        }
    }

    pub(in crate::mind::claude) fn eir() -> PersonaId {
        PersonaId("eir".to_owned())
    }

    #[test]
    fn arguments_are_these() {
        let config = config(Path::new("/state"));
        let folders = Folders::of(&config, &eir());
        let manner = Manner::configured(&config);
        let all = arguments(&manner, &folders, "{\"type\":\"object\"}", &session(), Opening::Begin);
        let lines: Vec<String> = all.into_iter().map(|part| format!("{part:?}")).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_known_session_is_resumed() {
        let config = config(Path::new("/state"));
        let folders = Folders::of(&config, &eir());
        for opening in [Opening::Resume, Opening::ResumeInterrupted] {
            let all = arguments(&Manner::configured(&config), &folders, "", &session(), opening);
            assert_eq!(all[all.len() - 2..], [OsString::from("--resume"), session().id.to_string().into()]);
            let switch = start_environment(&config, opening).len() > 1;
            assert_eq!(switch, opening == Opening::ResumeInterrupted);
        }
    }

    #[test]
    fn the_environment_is_this_and_holds_no_secret() {
        let config = config(Path::new("/state"));
        let all = environment(&Manner::configured(&config), &config, &Folders::of(&config, &eir()));
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
        assert_eq!(differs(&state, "prompt", "schema"), ["cwd"]);
        let credential = Credential { variable: OAUTH_VARIABLE, secret: "another".to_owned() };
        let elsewhere = Config { credential, base_url: None, ..config };
        assert_eq!(differs(&elsewhere, "prompt", "schema"), [""; 0]);
        assert!(!format!("{before:?}").contains("a secret"));
    }

    #[test]
    fn a_session_is_resumed_with_what_it_was_begun_with() {
        let begun = config(Path::new("/state"));
        let print = fingerprint(&begun, &eir(), "2.1.332", "prompt", "schema");
        let now =
            Config { model: "another".to_owned(), effort: None, ttl: Ttl::FiveMinutes, ..begun.clone() };
        assert_eq!(Manner::of(&print, &now), Manner::configured(&begun));
        let no_effort = fingerprint(&now, &eir(), "2.1.332", "prompt", "schema");
        assert_eq!(Manner::of(&no_effort, &begun), Manner::configured(&now));
        let unguarded = Config { resuming: Resuming::AsConfigured, ..now.clone() };
        assert_eq!(Manner::of(&print, &unguarded), Manner::configured(&now));
        assert_eq!(Manner::of(&Fingerprint::default(), &now), Manner::configured(&now));
    }

    #[test]
    fn prompt_and_schema_are_written_once_a_session() {
        let state = tempfile::tempdir().unwrap();
        let folders = Folders::of(&config(state.path()), &eir());
        folders.make().unwrap();
        assert_eq!(folders.schema(&session()), None);
        let write = |text, opening| {
            folders.write_texts(&session(), Texts { prompt: text, schema: text }, opening).unwrap();
            [std::fs::read_to_string(folders.prompt(&session())).ok(), folders.schema(&session())]
        };
        let both = |text: &str| [Some(text.to_owned()), Some(text.to_owned())];
        assert_eq!(write("first", Opening::Resume), both("first"));
        assert_eq!(write("second", Opening::Resume), both("first"));
        assert_eq!(write("third", Opening::Begin), both("third"));
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
