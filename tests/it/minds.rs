//! Driving one mind by hand: its folder, its handle, and the questions that tests ask it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use persona_bridge::conversation::{LineId, Millis, PersonaId};
use persona_bridge::mind::claude::{Config, Credential, Resuming, Ttl, mind};
use persona_bridge::mind::{Feed, MindCommand, MindEvent, MindHandle, Purpose};
use persona_bridge::persona::decide::Stop;
use persona_bridge::persona::session::{Account, Fingerprint, Session};
use persona_bridge::persona::{Ending, Usage};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::task::JoinSet;
use url::Url;
use uuid::Uuid;

/// A reply schema of the shape that the bridge uses.
pub(crate) const SCHEMA: &str = r#"{"type":"object","additionalProperties":false,"required":["say","react"],"properties":{"say":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"},"room":{"type":"string"},"reply_to":{"type":"string"}}}},"react":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["message","key"],"properties":{"message":{"type":"string"},"key":{"type":"string"}}}}}}"#;

/// A Persona with a folder of her own.
pub(crate) struct Home {
    pub(crate) config: Config,
    pub(crate) persona: PersonaId,
    folder: TempDir,
}

impl Home {
    pub(crate) fn new(program: PathBuf, base_url: Option<Url>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            program,
            guard: env!("CARGO_BIN_EXE_persona-bridge").into(),
            model: "claude-sonnet-4-5".to_owned(),
            effort: None,
            state: folder.path().join("state"),
            base_url,
            credential: Credential { variable: "ANTHROPIC_API_KEY", secret: "dummy".to_owned() },
            ttl: Ttl::Auto,
            silence: Duration::from_secs(60),
            resuming: Resuming::default(),
        };
        Self { config, persona: PersonaId("eir".to_owned()), folder }
    }

    /// A folder that is the test's own.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The Persona's folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.config.state.join(self.persona.as_str())
    }

    /// The session's file, once there is one.
    pub(crate) fn session_file(&self, session: &Session) -> Option<PathBuf> {
        let projects = std::fs::read_dir(self.root().join("config/projects")).ok()?;
        let name = format!("{}.jsonl", session.id);
        projects.filter_map(|folder| Some(folder.ok()?.path().join(&name))).find(|path| path.is_file())
    }

    /// A running mind.
    pub(crate) fn mind(&self) -> Mind {
        self.mind_with(SCHEMA)
    }

    /// A running mind that is configured with this reply schema.
    pub(crate) fn mind_with(&self, schema: &'static str) -> Mind {
        let (handle, run) = mind(self.config.clone(), self.persona.clone(), schema);
        let mut task = JoinSet::new();
        task.spawn(run);
        Mind { handle, task }
    }
}

/// The session of a generation.
pub(crate) fn session(generation: u32) -> Session {
    Session {
        generation,
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, &generation.to_be_bytes()),
        fingerprint: Fingerprint::default(),
        begun: Millis(0),
        last_committed: None,
        seeded: false,
        account: Account::default(),
    }
}

/// A line that differs by its number.
pub(crate) fn line(number: u32) -> LineId {
    LineId(Uuid::new_v5(&Uuid::NAMESPACE_DNS, &number.to_be_bytes()))
}

/// A feed of these words as line `number` of a session.
pub(crate) fn feed(session: &Session, number: u32, words: &str) -> Feed {
    Feed {
        line: line(number),
        session: session.clone(),
        must_exist: false,
        prompt: "You are Eir.".to_owned(),
        whole: words.to_owned(),
        again: "(retry)".to_owned(),
        earlier: Vec::new(),
        purpose: Purpose::Answer,
        now: Millis(1_800_000_000_000),
    }
}

/// A running mind and its task.
pub(crate) struct Mind {
    pub(crate) handle: MindHandle,
    pub(crate) task: JoinSet<()>,
}

/// How a feed went.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    pub(crate) usage: Usage,
    pub(crate) heard: bool,
    pub(crate) from_record: bool,
    pub(crate) notices: Vec<String>,
    pub(crate) alarms: Vec<&'static str>,
}

impl Ended {
    /// The text of the first say.
    pub(crate) fn said(&self) -> String {
        let Ending::Answered { reply } = &self.ending else { panic!("not answered: {self:?}") };
        let reply: serde_json::Value = serde_json::from_str(reply).unwrap();
        reply["say"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

impl Mind {
    pub(crate) async fn send(&self, command: MindCommand) {
        self.handle.commands.send(command).await.unwrap();
    }

    pub(crate) async fn event(&mut self) -> MindEvent {
        let event = tokio::time::timeout(Duration::from_secs(90), self.handle.events.recv());
        event.await.expect("the mind tells something").expect("the mind lives")
    }

    /// Feeds and waits for the turn's end.
    pub(crate) async fn feed(&mut self, feed: Feed) -> Ended {
        let line = feed.line;
        self.send(MindCommand::Feed(Box::new(feed))).await;
        self.turn_end(line).await
    }

    /// Pings and waits for what it used.
    pub(crate) async fn ping(&mut self, feed: Feed) -> Usage {
        self.send(MindCommand::Ping(Box::new(feed))).await;
        loop {
            if let MindEvent::Pinged { usage } = self.event().await {
                return usage;
            }
        }
    }

    /// Probes and waits for how that ended and what it used.
    pub(crate) async fn probe(&mut self, feed: Feed) -> (Ending, Usage) {
        self.send(MindCommand::Probe(Box::new(feed))).await;
        loop {
            if let MindEvent::Probed { ending, usage } = self.event().await {
                return (ending, usage);
            }
        }
    }

    /// Waits for the end of a line's turn.
    pub(crate) async fn turn_end(&mut self, wanted: LineId) -> Ended {
        let (mut heard, mut notices, mut alarms) = (false, Vec::new(), Vec::new());
        loop {
            match self.event().await {
                MindEvent::Heard { line } => {
                    assert_eq!((line, heard), (wanted, false));
                    heard = true;
                }
                MindEvent::TurnEnded { line, ending, usage, from_record, .. } => {
                    assert_eq!(line, wanted);
                    return Ended { ending, usage, heard, from_record, notices, alarms };
                }
                MindEvent::Notice { text } => notices.push(text),
                MindEvent::Poisoned { reason, .. } => alarms.push(reason),
                MindEvent::Exited { .. }
                | MindEvent::Pinged { .. }
                | MindEvent::Probed { .. }
                | MindEvent::Weighed { .. }
                | MindEvent::Version { .. } => {}
            }
        }
    }

    /// The resident memory of its idle process, if one lives.
    pub(crate) async fn weigh(&mut self) -> Option<u64> {
        self.send(MindCommand::Weigh).await;
        loop {
            if let MindEvent::Weighed { resident } = self.event().await {
                return resident;
            }
        }
    }

    /// Waits until it is told that no process lives.
    pub(crate) async fn exited(&mut self) -> String {
        loop {
            if let MindEvent::Exited { report } = self.event().await {
                return report;
            }
        }
    }

    pub(crate) async fn stop(&mut self, how: Stop) -> String {
        self.send(MindCommand::Stop(how)).await;
        self.exited().await
    }

    /// Takes the mind's task away as a crash would: nothing is waited for.
    pub(crate) async fn crash(mut self) {
        self.task.shutdown().await;
    }
}

/// The process group that the Persona's child was started with.
pub(crate) fn group(home: &Home) -> Pid {
    started_group(home).expect("a child was started")
}

fn started_group(home: &Home) -> Option<Pid> {
    let record = std::fs::read(home.root().join("owner.json")).ok()?;
    let record: serde_json::Value = serde_json::from_slice(&record).ok()?;
    i32::try_from(record["group"].as_i64()?).ok().and_then(Pid::from_raw)
}

/// The living members of a process group.
pub(crate) fn members(group: Pid) -> Vec<Pid> {
    let group = group.as_raw_nonzero().get().to_string();
    let member = |id: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.get(2) == Some(&group.as_str()) && fields[0] != "Z"
    };
    let ids = std::fs::read_dir("/proc").unwrap();
    let ids = ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(member).filter_map(Pid::from_raw).collect()
}

/// Kills the CLI itself, as the kernel would for want of memory; its guard stays.
pub(crate) fn kill_program(home: &Home) {
    let Some(group) = started_group(home) else { return };
    for member in members(group).into_iter().filter(|member| *member != group) {
        let _ = kill_process(member, Signal::KILL);
    }
}

/// The living processes among those that `fake/claude.sh` has started in the background.
pub(crate) fn forked(home: &Home) -> Vec<String> {
    let all = std::fs::read_to_string(home.root().join("home/forked")).unwrap();
    let living = |id: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    };
    all.lines().filter(living).map(str::to_owned).collect()
}
