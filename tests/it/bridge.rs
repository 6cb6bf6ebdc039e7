//! The real binary beside a test homeserver: a written config and registration, start, readiness, kill and restart.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use persona_bridge::demo::child::{Child, Launch, Signal};
use tempfile::TempDir;
use tokio::process::Command;

use crate::servers::{PREFIX, SERVER_NAME, Server, last_lines};
use crate::tools::aloud;

const READY_DEADLINE: Duration = Duration::from_secs(60);
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Our own binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_persona-bridge");

/// What a test decides of the bridge; the rest is as in [`Setup::default`].
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The `[mind]` tables.
    pub(crate) mind: String,
    /// `talk.settle`.
    pub(crate) settle: String,
    /// Further lines of `[talk]`.
    pub(crate) talk: String,
    /// The lines of `[heart]`.
    pub(crate) heart: String,
    /// `talk.typing_waits`.
    pub(crate) typing_waits: bool,
    /// `homeserver.reconcile`.
    pub(crate) reconcile: String,
    /// The ids of the Personas; `eir` is called Eir.
    pub(crate) personas: Vec<String>,
    /// The names of the rooms, each with a register of its name; the alias is `#persona_NAME:hs.test`.
    pub(crate) rooms: Vec<String>,
    /// The register of other rooms, if they are taken.
    pub(crate) default_register: Option<String>,
    /// The `[permissions]` lines.
    pub(crate) permissions: String,
    /// Variables of the bridge's environment.
    pub(crate) env: Vec<(String, String)>,
    /// Where the homeserver is, if it is not spoken to directly.
    pub(crate) homeserver: Option<url::Url>,
    /// Where the bridge listens, if not where the homeserver calls it.
    pub(crate) listen: Option<u16>,
    /// What is logged.
    pub(crate) log: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mind: "[mind]\nkind = \"scripted\"\n".to_owned(),
            settle: "100ms".to_owned(),
            talk: String::new(),
            heart: String::new(),
            typing_waits: false,
            reconcile: "5m".to_owned(),
            personas: vec!["eir".to_owned(), "brage".to_owned()],
            rooms: vec!["swarm".to_owned()],
            default_register: None,
            permissions: format!("\"{SERVER_NAME}\" = \"chat\"\n"),
            env: Vec::new(),
            homeserver: None,
            listen: None,
            log: "info",
        }
    }
}

/// A bridge; dropping it kills it.
pub(crate) struct Bridge {
    /// Its folder: config, registration, store, log.
    pub(crate) dir: PathBuf,
    /// Where it listens.
    pub(crate) port: u16,
    /// Variables of its environment at its next start.
    pub(crate) env: Vec<(String, String)>,
    log: &'static str,
    child: Option<Child>,
    /// How long the log was at its last start.
    begun: usize,
    _folder: Arc<TempDir>,
}

impl Setup {
    /// Writes config, registration, doctrine and state for a server: the config file.
    pub(crate) fn write(&self, server: &Server) -> PathBuf {
        let dir = server.folder("bridge");
        std::fs::write(dir.join("registration.yaml"), server.appservice.yaml()).unwrap();
        std::fs::write(dir.join("doctrine.md"), "You are a Persona in a test. Answer shortly.\n").unwrap();
        std::fs::write(dir.join("state.json"), "{\"mood\": \"calm\"}\n").unwrap();
        let config = dir.join("config.toml");
        std::fs::write(&config, self.toml(server)).unwrap();
        config
    }

    fn toml(&self, server: &Server) -> String {
        let url = self.homeserver.as_ref().unwrap_or(server.homeserver.url());
        let (port, listen) = (server.appservice.port, self.listen.unwrap_or(server.appservice.port));
        let mut toml = format!(
            "[homeserver]\nurl = \"{url}\"\nserver_name = \"{SERVER_NAME}\"\nreconcile = \"{}\"\n\
             [appservice]\nlisten = \"127.0.0.1:{listen}\"\nurl = \"http://127.0.0.1:{port}\"\n\
             registration = \"registration.yaml\"\nuser_prefix = \"{PREFIX}\"\n[store]\npath = \"store\"\n{}\n\
             [talk]\nsettle = \"{}\"\nsettle_max = \"10s\"\ntyping_waits = {}\n{}",
            self.reconcile, self.mind, self.settle, self.typing_waits, self.talk
        );
        if let Some(register) = &self.default_register {
            let _ = writeln!(toml, "default_register = \"{register}\"");
        }
        for room in &self.rooms {
            let _ = writeln!(toml, "[registers.{room}]\nvoice = \"As in {room}.\"\nnames_address = true");
            let _ = writeln!(toml, "[[rooms]]\nalias = \"{}\"\nregister = \"{room}\"", alias(room));
        }
        let aliases: Vec<String> = self.rooms.iter().map(|room| alias(room)).collect();
        for id in &self.personas {
            let _ = writeln!(
                toml,
                "[[personas]]\nid = \"{id}\"\nname = \"{}\"\ndoctrine = [\"doctrine.md\"]\nstate = \"state.json\"\n\
                 rooms = {aliases:?}",
                name(id)
            );
        }
        let _ = writeln!(toml, "[permissions]\n{}[heart]\n{}", self.permissions, self.heart);
        toml
    }
}

/// The alias of a configured room.
pub(crate) fn alias(room: &str) -> String {
    format!("#{PREFIX}{room}:{SERVER_NAME}")
}

/// The full user id of a Persona.
pub(crate) fn persona(id: &str) -> String {
    format!("@{PREFIX}{id}:{SERVER_NAME}")
}

/// The display name of a Persona.
pub(crate) fn name(id: &str) -> String {
    let (first, rest) = id.split_at(1);
    first.to_uppercase() + rest
}

impl Bridge {
    /// Writes the config, starts the bridge and waits until it is ready.
    pub(crate) async fn spawn(server: &Server, setup: &Setup) -> Self {
        let config = setup.write(server);
        let mut bridge = Self {
            dir: config.parent().unwrap().to_owned(),
            port: setup.listen.unwrap_or(server.appservice.port),
            env: setup.env.clone(),
            log: setup.log,
            child: None,
            begun: 0,
            _folder: Arc::clone(&server.dir),
        };
        bridge.restart().await;
        bridge
    }

    /// Starts it without waiting.
    pub(crate) async fn start(&mut self) {
        self.begun = self.log().len();
        let launch = Launch::new(PROGRAM, &self.dir, &self.log_file());
        let launch = launch.args(["run", "--config", "config.toml", "--log", self.log]);
        let mut launch = launch.guarded(Some(Path::new(PROGRAM)));
        launch.env = self.env.iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.child = Some(launch.spawn().await.unwrap());
    }

    /// Kills it if it runs, starts it and waits until it is ready.
    pub(crate) async fn restart(&mut self) {
        self.kill(Signal::KILL).await;
        self.start().await;
        self.ready().await;
    }

    /// Waits until /ready says so.
    pub(crate) async fn ready(&self) {
        let child = self.child.as_ref().expect("the bridge was started");
        let outcome = tokio::time::timeout(READY_DEADLINE, async {
            tokio::select! {
                () = self.answers_ready() => Ok(()),
                status = child.wait() => Err(status),
            }
        });
        match outcome.await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => panic!("the bridge ended with {status:?}:\n{}", self.tail()),
            Err(_) => panic!("the bridge is not ready:\n{}", self.tail()),
        }
    }

    async fn answers_ready(&self) {
        while !self.is_up().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether it is ready but for a homeserver that cannot reach it, which some tests mean to have.
    async fn is_up(&self) -> bool {
        let unheard = |body: &str| body.contains("does not reach us") && !body.contains("is starting");
        self.get("ready").await.is_some_and(|(status, body)| status == 200 || unheard(&body))
    }

    /// Whether /ready says so.
    pub(crate) async fn is_ready(&self) -> bool {
        self.get("ready").await.is_some_and(|(status, _)| status == 200)
    }

    /// GET of one of its own pages: status and body; none if it does not answer.
    pub(crate) async fn get(&self, page: &str) -> Option<(u16, String)> {
        let answer = reqwest::get(format!("http://127.0.0.1:{}/{page}", self.port)).await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// Waits until a bridge that was started by other means says that it is ready.
    pub(crate) async fn ready_somewhere(&self) {
        let ready = tokio::time::timeout(READY_DEADLINE, self.answers_ready()).await;
        assert!(ready.is_ok(), "the bridge is not ready");
    }

    /// Runs another command with its config: whether that succeeded, and what it printed, or else complained of.
    pub(crate) async fn command(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["--config", "config.toml"]).current_dir(&self.dir);
        let output = command.kill_on_drop(true).output().await.unwrap();
        let said = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    /// Sends a signal and waits for its end: the exit status, none if it did not run.
    pub(crate) async fn kill(&mut self, signal: Signal) -> Option<ExitStatus> {
        self.child.take()?.kill(signal).await
    }

    /// Waits for its end by itself.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        let ended = tokio::time::timeout(READY_DEADLINE, self.child.as_ref()?.wait()).await;
        self.child = None;
        ended.unwrap_or_else(|_| panic!("the bridge does not end:\n{}", self.tail()))
    }

    /// Asks it to end: the exit status.
    pub(crate) async fn stop(&mut self) -> Option<ExitStatus> {
        self.child.take()?.stop(STOP_GRACE).await
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.child.as_ref().map(Child::id)
    }

    /// Waits until it has said something since its last start.
    pub(crate) async fn logs(&self, text: &str) {
        let said = async {
            while !self.log()[self.begun..].contains(text) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let done = tokio::time::timeout(READY_DEADLINE, said).await;
        assert!(done.is_ok(), "the bridge never said {text:?}:\n{}", self.tail());
    }

    /// Everything that it has said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join("bridge.log")
    }

    fn tail(&self) -> String {
        last_lines(&self.log(), 60)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if std::thread::panicking() {
            aloud(&format!("--- the bridge in {} said:\n{}", Path::new(&self.dir).display(), self.tail()));
        }
    }
}

mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::servers;
    use crate::user::User;
    use persona_bridge::demo::homeserver::Kind;

    #[tokio::test]
    async fn a_named_persona_answers_on_synapse() {
        a_named_persona_answers(Kind::Synapse, "a_named_persona_answers_on_synapse").await;
    }

    #[tokio::test]
    async fn a_named_persona_answers_on_conduit() {
        a_named_persona_answers(Kind::Conduit, "a_named_persona_answers_on_conduit").await;
    }

    /// The files below a folder that others than their owner may read.
    fn readable_by_others(folder: &Path) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let (path, metadata) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
                if metadata.is_dir() {
                    folders.push(path);
                } else if metadata.permissions().mode() & 0o077 != 0 {
                    found.push(path);
                }
            }
        }
        found
    }

    async fn a_named_persona_answers(kind: Kind, test: &str) {
        let Some(server) = servers::server(kind, test).await else { return };
        let mut bridge = Bridge::spawn(&server, &Setup::default()).await;
        let mut alice = User::register(&server, "alice").await;
        let room = alice.join(&alias("swarm")).await;
        let asked = alice.say(&room, &format!("{}, hello", name("eir"))).await;
        alice.answer(&room, &asked, &persona("eir")).await;
        let direct = alice.create_dm(&persona("brage")).await;
        let asked = alice.say(&direct, "hello").await;
        alice.answer(&direct, &asked, &persona("brage")).await;
        assert!(bridge.pid().is_some() && bridge.is_ready().await);
        let status = bridge.stop().await.unwrap();
        assert!(status.success(), "{status}\n{}", bridge.log());
        assert_eq!(readable_by_others(&bridge.dir.join("store")), [] as [PathBuf; 0]);
        assert_eq!(alice.said_by(&room, &persona("eir")).await.len(), 1);
        assert_eq!(alice.said_by(&direct, &persona("brage")).await.len(), 1);
    }
}
