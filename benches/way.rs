//! One message's way through the bridge against the durable flushes on it: from the ear to the mind's stdin, and from
//! the mind's result to the homeserver.
//!
//! The mind is the real supervisor of the claude CLI; in the CLI's place this binary itself, told by its arguments,
//! stands and notes when a line has come and when its result goes.

#[expect(dead_code, reason = "each bench uses its part")]
mod common;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::events::{message, transaction};
use common::fake::homeserver::Fault;
use common::figures::{Bound, Report, measured, times};
use common::house::{FIRST, House};
use common::{now, until, wall};
use persona_bridge::bridge::Mind;
use persona_bridge::mind::claude::{self, Credential, PINNED_VERSION, Ttl};
use serde_json::{Value, json};

/// How many turns go before the measured ones.
const WARM_UP: usize = 5;
/// How many turns are measured.
const TURNS: usize = 100;
/// Durable flushes of the store from the ear to stdin: the event, the open turn.
const BEFORE: usize = 2;
/// Durable flushes of the store in a whole turn: those, the reply, and that it was sent.
const ALL: f64 = 4.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--resume" || argument == "--session-id") {
        stand_in(&arguments).expect("the stand-in's files");
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = std::env::current_exe().expect("our own path");
    let mut report = Report::default();
    common::runtime().block_on(measure(folder.path(), program, &mut report));
    report.finish()
}

/// When each step of each turn was taken, and how long flushes took meanwhile.
#[derive(Default)]
struct Way {
    put: Vec<Duration>,
    sent: Vec<Duration>,
    flushes_before: Vec<Duration>,
    flushes_after: Vec<Duration>,
    flushes_counted: Vec<f64>,
}

async fn measure(folder: &Path, program: PathBuf, report: &mut Report) {
    let state = folder.join("minds");
    let mind = Mind::Claude(Box::new(config(state.clone(), program)));
    let house = House::open(folder, 1, mind, PINNED_VERSION).await;
    let way = walk(&house, folder).await;
    house.leave().await;
    let stamps = stamps(&state.join("p0/home/stamps"));
    assert_eq!(stamps.len(), WARM_UP + TURNS, "a line for each turn");
    let measured_turns = WARM_UP..WARM_UP + TURNS;
    let to_stdin = measured_turns.clone().map(|turn| stamps[turn].0 - way.put[turn]).collect();
    let to_put = measured_turns.map(|turn| way.sent[turn] - stamps[turn].1).collect();
    let (before, after) = (times(way.flushes_before), times(way.flushes_after));
    report.compare("way: ear to stdin, over its 2 flushes", times(to_stdin), before, Bound::AtMost(3.0));
    report.compare("way: result to PUT, over its 2 flushes", times(to_put), after, Bound::AtMost(3.0));
    report.limit("way: flushes of the store in a turn", measured(way.flushes_counted, ""), ALL);
}

async fn walk(house: &House, folder: &Path) -> Way {
    let mut file = File::create(folder.join("raw.jsonl")).expect("a new file");
    let sent = Arc::new(Mutex::new(Vec::new()));
    note_sends(house, &sent);
    let mut ear = house.ear().await;
    let mut way = Way::default();
    for turn in 0..WARM_UP + TURNS {
        let record = message(turn as u64, &house.room, Some(FIRST));
        let body = transaction(std::slice::from_ref(&record));
        let flushes = house.store.flushes();
        way.put.push(wall());
        ear.put(&format!("turn{turn}"), &body).await;
        until("her answer", || sent.lock().expect("no panic").len() > turn).await;
        until("the end of the turn", || house.store.counts().outbox == 0).await;
        if turn >= WARM_UP {
            let count = house.store.flushes() - flushes;
            way.flushes_counted.push(count as f64);
            let times = house.store.flush_times();
            let of_turn = &times[times.len() - count as usize..];
            way.flushes_before.push(of_turn[..BEFORE].iter().sum());
            file.write_all(record.as_bytes()).expect("the file is written");
            way.flushes_after.push(of_turn[BEFORE] + timed(|| file.sync_all().expect("the file is synced")));
        }
    }
    way.sent = sent.lock().expect("no panic").clone();
    way
}

/// Notes when each message to the room arrives at the homeserver.
fn note_sends(house: &House, sent: &Arc<Mutex<Vec<Duration>>>) {
    let sent = sent.clone();
    let place = format!("/rooms/{}/send/", house.room);
    house.home.fail_when(1, Fault::Down, move |seen| {
        if seen.path.contains(&place) {
            sent.lock().expect("no panic").push(wall());
        }
        false
    });
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = now();
    work();
    begun.elapsed()
}

fn config(state: PathBuf, program: PathBuf) -> claude::Config {
    claude::Config {
        program,
        guard: env!("CARGO_BIN_EXE_persona-bridge").into(),
        model: "none".to_owned(),
        effort: None,
        state,
        base_url: None,
        credential: Credential { variable: "ANTHROPIC_API_KEY", secret: "none".to_owned() },
        ttl: Ttl::Auto,
        silence: Duration::from_secs(60),
        resuming: claude::Resuming::default(),
    }
}

/// When each line had come and when its result went.
fn stamps(file: &Path) -> Vec<(Duration, Duration)> {
    let text = std::fs::read_to_string(file).expect("the stand-in wrote it");
    let time = |text: &str| Duration::from_nanos(text.parse().expect("nanoseconds"));
    let stamp = |line: &str| line.split_once(' ').map(|(came, went)| (time(came), time(went)));
    text.lines().filter_map(stamp).collect()
}

/// Answers every line like the CLI, with a session's file as the CLI's own.
#[expect(clippy::disallowed_methods, reason = "the stand-in finds its folders as the CLI does")]
fn stand_in(arguments: &[String]) -> std::io::Result<()> {
    let folder = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_default());
    let flag = arguments.iter().position(|argument| argument == "--resume" || argument == "--session-id");
    let session = flag.and_then(|flag| arguments.get(flag + 1)).cloned().unwrap_or_default();
    let project = folder("CLAUDE_CONFIG_DIR").join("projects/bench");
    std::fs::create_dir_all(&project)?;
    let open = |path: PathBuf| OpenOptions::new().create(true).append(true).open(path);
    let mut file = open(project.join(format!("{session}.jsonl")))?;
    let mut stamps = open(folder("HOME").join("stamps"))?;
    for line in std::io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let came = wall();
        let uuid = &line["uuid"];
        tell(
            &json!({"type": "system", "subtype": "init", "session_id": session, "user_message_uuids": [uuid]}),
        )?;
        tell(&json!({"type": "user", "isReplay": true, "uuid": uuid}))?;
        let output = json!({"say": [{"text": "done"}], "react": []});
        let call = json!({"type": "tool_use", "name": "StructuredOutput", "input": output});
        writeln!(file, "{}", json!({"type": "user", "uuid": uuid, "message": line["message"]}))?;
        writeln!(file, "{}", json!({"type": "assistant", "message": {"model": "m", "content": [call]}}))?;
        let went = wall();
        tell(&json!({
            "type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
            "user_message_uuids": [uuid], "structured_output": output,
        }))?;
        writeln!(stamps, "{} {}", came.as_nanos(), went.as_nanos())?;
    }
    Ok(())
}

fn tell(line: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
