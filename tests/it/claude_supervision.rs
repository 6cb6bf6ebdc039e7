//! Nothing of a mind outlives its bridge, and its bridge does not lose it: with a bridge that is killed for real.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use persona_bridge::mind::{MindCommand, MindEvent};
use persona_bridge::persona::decide::Stop;
use rustix::process::Pid;

use crate::fake::messages_api::{Answer, Gate, MessagesApi};
use crate::minds::{Home, feed, forked, group, line, members, session};
use crate::tools::claude_program;

/// The variable that makes a copy of this test binary stand in for a bridge: state, program, model and base URL.
const ROLE: &str = "PB_TEST_STANDS_IN_AS_BRIDGE";

/// How long anything of a killed bridge may live.
const GRACE: Duration = Duration::from_secs(2);

/// A bridge of one Persona in a process of its own; it has fed line 1.
struct Bridge {
    child: Child,
    group: Pid,
}

impl Bridge {
    /// Starts it by running the calling test in a copy of this binary, and waits until it says `until`.
    fn start(home: &Home, test: &str, until: &str) -> Self {
        let config = &home.config;
        let url = config.base_url.as_ref().map(ToString::to_string).unwrap_or_default();
        let role =
            [&config.state.display().to_string(), &config.program.display().to_string(), &config.model, &url];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(ROLE, role.map(String::as_str).join("\n"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(until)), "the bridge ended");
        Self { child, group: group(home) }
    }

    /// Kills it as nothing can refuse, and waits until its group is gone.
    fn kill(mut self) {
        self.child.kill().unwrap();
        let begun = Instant::now();
        self.child.wait().unwrap();
        while !members(self.group).is_empty() {
            assert!(begun.elapsed() < GRACE, "{:?} live on", members(self.group));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What the copy does: feeds a line, says what it hears of it, and stays.
#[expect(clippy::print_stdout, reason = "the test that started it reads it")]
async fn stand_in(role: &str) {
    let parts: Vec<&str> = role.split('\n').collect();
    let mut home = Home::new(parts[1].into(), parts[3].parse().ok());
    home.config.state = parts[0].into();
    home.config.model = parts[2].to_owned();
    let mut mind = home.mind();
    mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "[mail]\nhello")))).await;
    loop {
        match mind.handle.events.recv().await {
            Some(MindEvent::Heard { .. }) => println!("\nheard"),
            Some(MindEvent::TurnEnded { .. }) => println!("\nended"),
            Some(
                MindEvent::Exited { .. }
                | MindEvent::Pinged { .. }
                | MindEvent::Probed { .. }
                | MindEvent::Weighed { .. }
                | MindEvent::Poisoned { .. }
                | MindEvent::Version { .. }
                | MindEvent::Notice { .. },
            ) => {}
            None => return,
        }
    }
}

async fn stands_in() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    stand_in(&role).await;
    true
}

fn fake(model: &str) -> Home {
    let mut home = Home::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake/claude.sh").into(), None);
    home.config.model = model.to_owned();
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn descendants_of_a_killed_bridge_end() {
    if stands_in().await {
        return;
    }
    for model in ["forks", "deaf"] {
        let home = fake(model);
        let bridge = Bridge::start(&home, "claude_supervision::descendants_of_a_killed_bridge_end", "heard");
        let forks = if model == "forks" { forked(&home).len() } else { 0 };
        assert_eq!(forks, if model == "forks" { 2 } else { 0 });
        bridge.kill();
        assert!(model != "forks" || forked(&home).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_cli_of_a_killed_bridge_ends_and_asks_no_more() {
    if stands_in().await {
        return;
    }
    let Some(program) = claude_program() else { return };
    let api = MessagesApi::start().await;
    let home = Home::new(program, Some(api.url()));
    let gate = Gate::closed();
    api.script([Answer::Held(gate.clone(), Box::new(Answer::error(500, "api_error", "again, please")))]);
    let test = "claude_supervision::the_real_cli_of_a_killed_bridge_ends_and_asks_no_more";
    let bridge = Bridge::start(&home, test, "heard");
    api.wait_for(1).await;
    bridge.kill();
    gate.open();
    tokio::time::sleep(GRACE).await;
    assert_eq!(api.requests().len(), 1);
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&session(1), 1, "[mail]\nhello")).await.said(), "echo [mail]\nhello");
    assert_eq!(api.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_survives_a_killed_guard_is_ended_by_the_next_bridge() {
    if stands_in().await {
        return;
    }
    let mut home = fake("forks");
    let test = "claude_supervision::what_survives_a_killed_guard_is_ended_by_the_next_bridge";
    let mut bridge = Bridge::start(&home, test, "heard");
    rustix::process::kill_process(bridge.group, rustix::process::Signal::KILL).unwrap();
    bridge.child.kill().unwrap();
    bridge.child.wait().unwrap();
    assert_eq!(forked(&home).len(), 2);
    home.config.model = "answers".to_owned();
    let mut mind = home.mind();
    let ended = mind.feed(feed(&session(2), 2, "words")).await;
    assert_eq!((ended.said().as_str(), ended.notices.len()), ("done", 1));
    assert_eq!((forked(&home), members(bridge.group)), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_child_lives_for_as_long_as_it_is_wanted() {
    let home = fake("answers");
    let mut mind = home.mind();
    assert_eq!(mind.feed(feed(&session(1), 1, "words")).await.said(), "done");
    let first = group(&home);
    // Longer than any pool of threads keeps an idle one.
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(mind.feed(feed(&session(1), 2, "words")).await.said(), "done");
    assert_eq!(group(&home), first);
    assert!(mind.weigh().await.is_some_and(|resident| resident > 0));
    mind.stop(Stop::Idle).await;
    assert_eq!(mind.weigh().await, None);
}

/// Far ends of a process's sockets, as /proc shows them: `0100007F:1F90`.
fn far_ends(process: Pid) -> Vec<String> {
    let folder = format!("/proc/{}", process.as_raw_nonzero());
    let own: Vec<String> = std::fs::read_dir(Path::new(&folder).join("fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|table| format!("{folder}/net/{table}"));
    let rows = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let rows: Vec<String> =
        rows.flat_map(|text| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()).collect();
    let fields = rows.iter().map(|row| row.split_whitespace().collect::<Vec<_>>());
    fields.filter(|row| own.iter().any(|inode| inode == row[9])).map(|row| row[2].to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_cli_talks_to_the_loopback_alone_and_starts_nothing() {
    let Some(program) = claude_program() else { return };
    let api = MessagesApi::start().await;
    let home = Home::new(program, Some(api.url()));
    let gate = Gate::closed();
    api.script([Answer::Held(gate.clone(), Box::new(Answer::say("seen")))]);
    let mut mind = home.mind();
    mind.send(MindCommand::Feed(Box::new(feed(&session(1), 1, "[mail]\nhello")))).await;
    api.wait_for(1).await;
    let group = group(&home);
    let mut seen = 0;
    for _ in 0..50 {
        let ends: Vec<String> = members(group).into_iter().flat_map(far_ends).collect();
        let local = |end: &String| {
            let (address, port) = end.split_once(':').unwrap();
            port == "0000" || address == "0100007F" || address.ends_with("FFFF00000100007F")
        };
        assert!(ends.iter().all(local), "{ends:?}");
        seen += ends.len();
        assert_eq!(members(group).len(), 2, "the guard and the CLI");
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    assert!(seen > 0, "the connection to the API was never seen");
    gate.open();
    assert_eq!(mind.turn_end(line(1)).await.said(), "seen");
    let sockets = std::fs::read_dir(home.root().join("run")).unwrap().count();
    assert_eq!(sockets, 0, "no socket for peers");
}
