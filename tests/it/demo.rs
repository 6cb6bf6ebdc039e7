//! The first run by its real binary: an answer alone on stdout, a second start, beside a running one, nothing left over.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use persona_bridge::demo::CLAUDE_VERSION;
use persona_bridge::demo::homeserver::{Kind, find_program};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::bridge::PROGRAM;
use crate::fake::messages_api::{Answer, MessagesApi};
use crate::servers::{self, synapse_python};
use crate::tools::{claude_program, skipped, tools_folder, variable};

const DEADLINE: Duration = Duration::from_secs(180);

/// A demo's folder and homeserver.
struct Demo {
    dir: TempDir,
    kind: Kind,
}

impl Demo {
    /// A new folder; `None` (said aloud) where the homeserver is not there.
    async fn new(kind: Kind, test: &str) -> Option<Self> {
        let found = match kind {
            Kind::Synapse => synapse_python(test).await.is_some(),
            Kind::Conduit => conduit().is_some(),
        };
        if !found && kind == Kind::Conduit {
            skipped("no conduit", test);
        }
        found.then(|| Self { dir: tempfile::tempdir().unwrap(), kind })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("demo").arg("--dir").arg(self.dir.path()).args(args).kill_on_drop(true);
        command
            .env("PB_TOOLS", tools_folder())
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("CLAUDE_CODE_OAUTH_TOKEN");
        match self.kind {
            Kind::Synapse => command.env("CONDUIT_BIN", "/nowhere/conduit"),
            Kind::Conduit => command.env("CONDUIT_BIN", conduit().unwrap()),
        };
        command
    }

    async fn run(&self, args: &[&str]) -> Output {
        tokio::time::timeout(DEADLINE, self.command(args).output()).await.expect("the demo ends").unwrap()
    }

    /// The answer to one question, and nothing else on stdout.
    async fn ask(&self, words: &str, to: &str) -> String {
        let output = self.run(&["--say", words, "--to", to]).await;
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{}\n{out}\n{err}\n{}", output.status, self.bridge_log());
        out
    }

    /// A chat that is ready to be typed into.
    async fn chat(&self) -> Chat {
        let mut command = self.command(&[]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut chat = Chat { child, lines };
        chat.line(|line| line.starts_with("/quit")).await;
        chat
    }

    fn bridge_log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("bridge.log")).unwrap_or_default()
    }

    /// The processes that work in the demo's folder or have it on their command line.
    fn processes(&self) -> Vec<String> {
        let folder = self.dir.path();
        let at_work = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let process = entry.ok()?.path();
            let bytes = std::fs::read(process.join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&bytes).replace('\0', " ");
            let here = std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
            (here || command.contains(folder.to_str()?)).then_some(command)
        });
        at_work.collect()
    }

    async fn wait_for_no_process(&self) {
        let gone = tokio::time::timeout(Duration::from_secs(5), async {
            while !self.processes().is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(gone.await.is_ok(), "left over: {:#?}", self.processes());
    }
}

/// A running chat.
struct Chat {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Chat {
    async fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self, fits: impl Fn(&str) -> bool) -> String {
        let found = tokio::time::timeout(DEADLINE, async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the chat goes on");
                if fits(&line) {
                    return line;
                }
            }
        });
        found.await.expect("the line comes")
    }

    async fn signal(mut self, name: &str) -> ExitStatus {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), pid]).status().await.unwrap().success());
        tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await.expect("it ends").unwrap()
    }
}

fn conduit() -> Option<PathBuf> {
    let program = variable("CONDUIT_BIN").unwrap_or_else(|| "conduit".to_owned());
    find_program(&program, &variable("PATH").unwrap_or_default())
}

/// The files below a folder that hold these bytes.
fn files_with(needle: &str, folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| match std::fs::symlink_metadata(&path).unwrap() {
        kind if kind.is_dir() => files_with(needle, &path),
        kind if kind.is_file() => {
            let bytes = std::fs::read(&path).unwrap();
            let holds = bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
            holds.then_some(path).into_iter().collect()
        }
        _ => Vec::new(),
    });
    found.collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

mod tests {
    use super::*;

    #[tokio::test]
    async fn one_command_answers_and_a_second_start_goes_on_on_synapse() {
        answers_and_goes_on(Kind::Synapse, "one_command_answers_and_a_second_start_goes_on_on_synapse").await;
    }

    #[tokio::test]
    async fn one_command_answers_and_a_second_start_goes_on_on_conduit() {
        answers_and_goes_on(Kind::Conduit, "one_command_answers_and_a_second_start_goes_on_on_conduit").await;
    }

    async fn answers_and_goes_on(kind: Kind, test: &str) {
        let Some(demo) = Demo::new(kind, test).await else { return };
        let answer = demo.ask("Eir, the password is swordfish", "swarm").await;
        assert!(answer.contains("swordfish") && answer.lines().count() == 1, "{answer}");
        demo.wait_for_no_process().await;
        let answer = demo.ask("Eir, what did I say before?", "swarm").await;
        assert!(answer.contains("swordfish"), "the session did not live across the restart: {answer}");
        let direct = demo.ask("hello", "brage").await;
        assert!(direct.contains("hello") && !direct.contains("swordfish"), "{direct}");
        demo.wait_for_no_process().await;
    }

    #[tokio::test]
    async fn a_question_is_asked_through_the_demo_that_runs() {
        let test = "a_question_is_asked_through_the_demo_that_runs";
        let Some(demo) = Demo::new(Kind::Synapse, test).await else { return };
        let mut chat = demo.chat().await;
        chat.say("nobody in particular").await;
        chat.line(|line| line.contains("only those answer who are named")).await;
        chat.say("Eir, hello from the chat").await;
        chat.line(|line| line.starts_with("Eir in #swarm: ") && line.contains("hello from the chat")).await;
        chat.say("/dm brage").await;
        chat.say("hello in private").await;
        chat.line(|line| line.starts_with("Brage: ") && line.contains("hello in private")).await;
        let answer = demo.ask("Eir, hello from beside", "swarm").await;
        assert!(answer.contains("hello from beside"), "{answer}");
        let second = demo.run(&[]).await;
        assert_eq!(second.status.code(), Some(1), "a second chat in the same folder");
        assert!(text(&second.stderr).contains("already runs"));
        assert!(chat.signal("INT").await.success());
        demo.wait_for_no_process().await;
        assert!(!demo.dir.path().join("running.json").exists());
    }

    #[tokio::test]
    async fn each_question_in_a_row_has_its_own_answer() {
        let test = "each_question_in_a_row_has_its_own_answer";
        let Some(demo) = Demo::new(Kind::Synapse, test).await else { return };
        let chat = demo.chat().await;
        for number in 1..=4 {
            let answer = demo.ask(&format!("Eir, number {number}"), "swarm").await;
            assert!(answer.contains(&format!("number {number}")), "to number {number}: {answer}");
        }
        assert!(chat.signal("INT").await.success());
    }

    #[tokio::test]
    async fn nothing_outlives_a_demo_that_is_killed() {
        let Some(demo) = Demo::new(Kind::Synapse, "nothing_outlives_a_demo_that_is_killed").await else {
            return;
        };
        let chat = demo.chat().await;
        assert_eq!(demo.processes().len(), 3, "demo, homeserver, bridge: {:#?}", demo.processes());
        assert!(!chat.signal("KILL").await.success());
        demo.wait_for_no_process().await;
        let answer = demo.ask("Eir, still there?", "swarm").await;
        assert!(answer.contains("still there"), "{answer}");
    }

    #[tokio::test]
    async fn a_running_synapse_is_used_once_it_knows_the_appservice() {
        let test = "a_running_synapse_is_used_once_it_knows_the_appservice";
        uses_a_running_homeserver(Kind::Synapse, test).await;
    }

    #[tokio::test]
    async fn a_running_conduit_is_used_once_it_knows_the_appservice() {
        let test = "a_running_conduit_is_used_once_it_knows_the_appservice";
        uses_a_running_homeserver(Kind::Conduit, test).await;
    }

    async fn uses_a_running_homeserver(kind: Kind, test: &str) {
        let Some(mut server) = servers::server(kind, test).await else { return };
        let demo = Demo { dir: tempfile::tempdir().unwrap(), kind };
        let url = server.homeserver.url().to_string();
        let ask = ["--homeserver", &url, "--say", "Eir, hello abroad", "--to", "minds"];
        let refused = demo.run(&ask).await;
        assert_eq!(refused.status.code(), Some(16), "{}", text(&refused.stderr));
        let registration = demo.dir.path().join("registration.yaml");
        assert!(text(&refused.stderr).contains(registration.canonicalize().unwrap().to_str().unwrap()));
        server.homeserver.register_appservice(&std::fs::read_to_string(registration).unwrap()).await.unwrap();
        let answered = demo.run(&ask).await;
        let said = (text(&answered.stdout), text(&answered.stderr));
        assert!(answered.status.success() && said.0.contains("hello abroad"), "{said:?}");
    }

    #[tokio::test]
    async fn the_real_claude_answers_by_the_credential_of_the_environment() {
        let test = "the_real_claude_answers_by_the_credential_of_the_environment";
        let Some(demo) = Demo::new(Kind::Synapse, test).await else { return };
        let Some(claude) = claude_program() else { return };
        let api = MessagesApi::start().await;
        api.rule(|_| Answer::say("Hello from the real one."));
        let mut command = demo.command(&["--mind", "claude", "--say", "Eir, hello", "--to", "swarm"]);
        command.env("ANTHROPIC_API_KEY", "sk-ant-a-test").env("ANTHROPIC_BASE_URL", api.url().as_str());
        let path = format!("{}:{}", claude.parent().unwrap().display(), variable("PATH").unwrap());
        let output = command.env("PATH", path).output().await.unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{err}\n{}", demo.bridge_log());
        assert_eq!(out, "Hello from the real one.\n");
        assert!(!api.requests().is_empty());
        demo.wait_for_no_process().await;
        assert_eq!(files_with("sk-ant-a-test", demo.dir.path()), Vec::<PathBuf>::new());
        assert_ne!(
            files_with("ANTHROPIC_API_KEY", demo.dir.path()),
            Vec::<PathBuf>::new(),
            "the search finds something"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_said_with_its_exit_code() {
        let demo = Demo { dir: tempfile::tempdir().unwrap(), kind: Kind::Synapse };
        let check = async |args: &[&str], code: i32, says: &str| {
            let output = demo.run(args).await;
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
            assert!(said.contains(says), "{args:?}: {said}");
            assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
        };
        check(&["--say", "hello", "--to", "swarm"], 2, "say \"Eir, …\" or \"Brage, …\"").await;
        check(&["--say", "Eir, hello", "--to", "nowhere"], 2, "minds, swarm, burn, eir, brage").await;
        check(&["--say", "hello"], 2, "--to").await;
        check(&["--mind", "claude", "--say", "hello", "--to", "eir"], 11, "CLAUDE_CODE_OAUTH_TOKEN").await;
        check(
            &["--homeserver", "http://127.0.0.1:9", "--say", "hello", "--to", "eir"],
            2,
            "another homeserver",
        )
        .await;
    }

    #[tokio::test]
    async fn a_homeserver_that_is_not_there_has_its_own_exit_code() {
        let demo = Demo { dir: tempfile::tempdir().unwrap(), kind: Kind::Synapse };
        let output = demo.run(&["--homeserver", "http://127.0.0.1:9", "--say", "hello", "--to", "eir"]).await;
        assert_eq!(output.status.code(), Some(12), "{}", text(&output.stderr));
    }

    #[tokio::test]
    async fn without_python_the_one_line_that_installs_it_is_said() {
        let demo = Demo { dir: tempfile::tempdir().unwrap(), kind: Kind::Synapse };
        let mut command = demo.command(&["--say", "hello", "--to", "eir"]);
        command.env("PB_TOOLS", demo.dir.path()).env("PATH", "/nowhere");
        let output = command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(11));
        let said = text(&output.stderr);
        assert!(said.contains("apt-get install -y python3 python3-venv"), "{said}");
    }

    #[test]
    fn the_demo_installs_the_claude_that_the_bridge_takes() {
        assert_eq!(CLAUDE_VERSION, persona_bridge::mind::claude::PINNED_VERSION);
        assert!(Path::new(PROGRAM).exists());
    }
}
