//! Every command in `docs/*.md` is run as it stands there, in order, on a real homeserver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use persona_bridge::demo::homeserver::Kind;
use persona_bridge::mind::claude::PINNED_VERSION;

use crate::bridge::{Bridge, PROGRAM, Setup};
use crate::servers::{self, Server};
use crate::tools;

/// How long the homeserver may take to reach a bridge that has just begun.
const READY: Duration = Duration::from_secs(60);

/// The commands of the documents: the lines after `$ ` in `console` fences.
fn commands() -> Vec<(String, String)> {
    let mut commands = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        commands.extend(console(&text).into_iter().map(|command| (name.clone(), command)));
    }
    commands
}

fn console(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside && language == "console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            commands.push(command.to_owned());
        }
    }
    commands
}

/// An operator who does what the documents say.
struct Operator<'a> {
    server: &'a Server,
    setup: Setup,
    dir: PathBuf,
    bridge: Option<Bridge>,
}

impl<'a> Operator<'a> {
    fn new(server: &'a Server) -> Self {
        let mind = "[mind]\nkind = \"scripted\"\n[mind.scripted]\nstate = \"minds\"\n".to_owned();
        let dir = server.folder("bridge");
        Self { server, setup: Setup { mind, ..Setup::default() }, dir, bridge: None }
    }

    /// Does what a command says; the fault is all that it answered.
    async fn follow(&mut self, command: &str) -> Result<(), String> {
        let words: Vec<&str> = command.split(' ').collect();
        match words.as_slice() {
            ["persona-bridge", "run", "--config", "bridge.toml"] => {
                self.bridge = Some(Bridge::spawn(self.server, &self.setup).await);
                self.is_ready().await?;
                let beside = self.persona_bridge(&["doctor", "--config", "bridge.toml"]).await?;
                let both = beside.contains("the bridge runs") && beside.contains("the bridge that runs");
                both.then_some(()).ok_or(format!("the doctor beside it: {beside}"))
            }
            ["persona-bridge", arguments @ .., ">", file] => {
                let output = self.output(arguments).await;
                fs::write(self.dir.join(file), &output.stdout).unwrap();
                if output.status.success() { Ok(()) } else { Err(said(&output)) }
            }
            ["persona-bridge", arguments @ ..] => {
                self.persona_bridge(arguments).await?;
                self.afterwards(arguments[0]);
                Ok(())
            }
            ["curl", "-fsS", url] => {
                let page = url.strip_prefix("http://127.0.0.1:29600/").expect("the default address");
                if page == "ready" {
                    self.is_ready().await?;
                }
                let answer = self.bridge.as_ref().expect("it runs").get(page).await;
                let good = answer.as_ref().is_some_and(|(status, _)| *status == 200);
                good.then_some(()).ok_or(format!("{answer:?}"))
            }
            ["kill", "-TERM", "$(pidof", "persona-bridge)"] => {
                let status = self.bridge.as_mut().expect("it runs").stop().await.expect("it ran");
                status.success().then_some(()).ok_or(status.to_string())
            }
            ["tar", ..] => {
                // Nobody has thought yet.
                fs::create_dir_all(self.dir.join("minds")).unwrap();
                let output =
                    Command::new("sh").arg("-c").arg(command).current_dir(&self.dir).output().unwrap();
                let good = output.status.success() && self.dir.join("backup.tar.gz").exists();
                good.then_some(()).ok_or(said(&output))
            }
            ["npm", "install", "--prefix", "/opt/claude", package] => {
                let version = package.rsplit_once('@').unwrap().1;
                (version == PINNED_VERSION).then_some(()).ok_or(format!("{PINNED_VERSION} is pinned"))
            }
            [program, "--version"] if program.starts_with("/opt/claude/") => claude(program),
            _ => Err("no test runs it".to_owned()),
        }
    }

    /// Waits until the homeserver has reached the bridge, as its operator does.
    async fn is_ready(&self) -> Result<(), String> {
        let bridge = self.bridge.as_ref().expect("it runs");
        let ready = async {
            while !bridge.is_ready().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let Err(_) = tokio::time::timeout(READY, ready).await else { return Ok(()) };
        Err(format!("never ready: {:?}", bridge.get("ready").await))
    }

    async fn persona_bridge(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.output(arguments).await;
        if output.status.success() { Ok(said(&output)) } else { Err(said(&output)) }
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(arguments).current_dir(&self.dir).kill_on_drop(true).output().await.unwrap()
    }

    /// What the operator does by hand after a command.
    fn afterwards(&self, command: &str) {
        match command {
            "example-config" => {
                let config = self.setup.write(self.server);
                fs::rename(config, self.dir.join("bridge.toml")).unwrap();
                fs::remove_file(self.dir.join("registration.yaml")).unwrap();
            }
            // The test's homeserver has a registration already; the operator would give it hers.
            "generate-registration" => {
                assert!(fs::read_to_string(self.dir.join("registration.yaml")).unwrap().contains("as_token"));
                fs::write(self.dir.join("registration.yaml"), self.server.appservice.yaml()).unwrap();
            }
            _ => {}
        }
    }
}

fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}: {out}{err}", output.status)
}

/// The program that tests install lies where the documents install it, and says its version.
fn claude(documented: &str) -> Result<(), String> {
    let Some(program) = tools::claude_program() else { return Ok(()) };
    let below = documented.strip_prefix("/opt/claude/").unwrap();
    if !program.ends_with(below) {
        return Err(format!("{} is not at {below}", program.display()));
    }
    let output = Command::new(program).arg("--version").output().unwrap();
    let pinned = String::from_utf8_lossy(&output.stdout).starts_with(PINNED_VERSION);
    pinned.then_some(()).ok_or(said(&output))
}

#[tokio::test]
async fn every_command_of_the_documents_does_what_they_say() {
    let test = "every_command_of_the_documents_does_what_they_say";
    let Some(server) = servers::server(Kind::Synapse, test).await else { return };
    let mut operator = Operator::new(&server);
    let commands = commands();
    assert!(commands.len() >= 10, "{commands:?}");
    for (document, command) in commands {
        tools::aloud(&format!("{document}: {command}"));
        let followed = operator.follow(&command).await;
        assert!(followed.is_ok(), "{document}: `{command}`: {:?}", followed.unwrap_err());
    }
}

#[test]
fn only_console_fences_hold_commands() {
    let text = "```yaml\n$ no\n```\n$ no\n   ```console\n   $ yes --really\n   out\n   ```\n```console\n$ two\n```\n";
    assert_eq!(console(text), ["yes --really", "two"]);
}
