//! From an event at the ear to the request at the API: one living claude process against one spawned for each turn.

#[expect(dead_code, reason = "each bench uses its part")]
mod common;
#[expect(
    dead_code,
    clippy::disallowed_methods,
    reason = "a bench needs the claude CLI alone, from the tests' folder"
)]
#[path = "../tests/it/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::events::{message, transaction};
use common::fake::messages_api::{Answer, MessagesApi};
use common::figures::{Bound, Report, times};
use common::house::{FIRST, House};
use common::{now, until};
use persona_bridge::bridge::Mind;
use persona_bridge::conversation::reply::SCHEMA;
use persona_bridge::mind::claude::{self, Credential, PINNED_VERSION, Ttl};
use tokio::process::Command;
use uuid::Uuid;

const MODEL: &str = "claude-sonnet-4-5";
/// How many turns of each kind go before the measured ones.
const WARM_UP: usize = 2;
/// How many turns of each kind are measured.
const TURNS: usize = 9;

fn main() -> ExitCode {
    let Some(program) = tools::claude_program() else { return ExitCode::FAILURE };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut report = Report::default();
    common::runtime().block_on(measure(folder.path(), program, &mut report));
    report.finish()
}

async fn measure(folder: &Path, program: PathBuf, report: &mut Report) {
    let api = MessagesApi::start().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = asked.clone();
    api.rule(move |_| {
        noted.lock().expect("no panic").push(now());
        Answer::say("done")
    });
    let mind = Mind::Claude(Box::new(config(folder.join("minds"), program.clone(), &api)));
    let house = House::open(folder, 1, mind, PINNED_VERSION).await;
    let mut ear = house.ear().await;
    let spawned = Spawned { program, folder: folder.join("spawned"), api: api.url().to_string() };
    let (mut living, mut fresh) = (Vec::new(), Vec::new());
    for turn in 0..WARM_UP + TURNS {
        let event = message(turn as u64, &house.room, Some(FIRST));
        let body = transaction(std::slice::from_ref(&event));
        let (answers, begun) = (count(&asked), now());
        ear.put(&format!("turn{turn}"), &body).await;
        until("her request", || count(&asked) > answers).await;
        living.push(asked_after(&asked, answers, begun));
        until("the end of the turn", || at_rest(&house)).await;
        let (answers, begun) = (count(&asked), now());
        spawned.turn(turn, &event).await;
        fresh.push(asked_after(&asked, answers, begun));
    }
    house.leave().await;
    let (living, fresh) = (living.split_off(WARM_UP), fresh.split_off(WARM_UP));
    let bound = Bound::AtMost(1.0 / 8.0);
    report.compare("turn: event to API request, living over spawned", times(living), times(fresh), bound);
}

type Asked = Mutex<Vec<Instant>>;

fn count(asked: &Asked) -> usize {
    asked.lock().expect("no panic").len()
}

fn asked_after(asked: &Asked, answers: usize, begun: Instant) -> Duration {
    asked.lock().expect("no panic")[answers] - begun
}

fn at_rest(house: &House) -> bool {
    let persona = persona_bridge::conversation::PersonaId("p0".to_owned());
    let open = house.store.standing(&persona).is_ok_and(|(open, _)| open.is_some());
    !open && house.store.counts().outbox == 0 && house.store.counts().waiting == 0
}

fn config(state: PathBuf, program: PathBuf, api: &MessagesApi) -> claude::Config {
    claude::Config {
        program,
        guard: env!("CARGO_BIN_EXE_persona-bridge").into(),
        model: MODEL.to_owned(),
        effort: None,
        state,
        base_url: Some(api.url()),
        credential: Credential { variable: "ANTHROPIC_API_KEY", secret: "dummy".to_owned() },
        ttl: Ttl::Auto,
        silence: Duration::from_secs(60),
        resuming: claude::Resuming::default(),
    }
}

/// The other way: a process for each turn, with the flags and the environment that make it quick.
struct Spawned {
    program: PathBuf,
    folder: PathBuf,
    api: String,
}

impl Spawned {
    async fn turn(&self, turn: usize, words: &str) {
        let session = Uuid::from_u128(1).to_string();
        for name in ["home", "config", "tmp", "cwd"] {
            std::fs::create_dir_all(self.folder.join(name)).expect("our own folder");
        }
        let mut command = Command::new(&self.program);
        command.args(["-p", "--output-format", "json", "--tools", "", "--strict-mcp-config"]);
        command.args([
            "--setting-sources",
            "",
            "--disable-slash-commands",
            "--restricted",
            "--max-turns",
            "4",
        ]);
        command.args(["--model", MODEL, "--system-prompt", "Be brief.", "--json-schema", SCHEMA]);
        command.args([if turn == 0 { "--session-id" } else { "--resume" }, &session, words]);
        command.env_clear().current_dir(self.folder.join("cwd")).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", self.folder.join("home")).env("TMPDIR", self.folder.join("tmp"));
        command.env("CLAUDE_CONFIG_DIR", self.folder.join("config"));
        command.env("ANTHROPIC_BASE_URL", self.api.trim_end_matches('/')).env("ANTHROPIC_API_KEY", "dummy");
        for switch in [
            "CLAUDE_CODE_DISABLE_ATTACHMENTS",
            "DISABLE_AUTO_COMPACT",
            "DISABLE_AUTOUPDATER",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        ] {
            command.env(switch, "1");
        }
        let output = command.stdin(Stdio::null()).output().await.expect("the CLI starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
