//! What the ear costs over durable appending: large transactions, and small ones in flight together.

#[expect(dead_code, reason = "each bench uses its part")]
mod common;

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use common::events::{message, transaction};
use common::figures::{Bound, Report, measured, times};
use common::house::House;
use common::now;
use common::raw::Raw;
use persona_bridge::bridge::Mind;
use persona_bridge::mind::scripted;
use tokio::task::JoinSet;

/// How many large transactions are measured.
const LARGE: u64 = 60;
/// How many events a large one holds.
const EVENTS: u64 = 100;
/// How many small ones are in flight.
const IN_FLIGHT: u64 = 16;
/// How many of them each line of calls makes in a round.
const SMALL: u64 = 25;
/// How many rounds of small ones are measured.
const ROUNDS: u64 = 8;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut report = Report::default();
    common::runtime().block_on(async {
        let mind = Mind::Scripted(scripted::Config { state: folder.path().join("minds") });
        let house = House::open(folder.path(), 1, mind, "scripted").await;
        large(&house, folder.path(), &mut report).await;
        small(&house, folder.path(), &mut report).await;
        house.leave().await;
    });
    report.finish()
}

async fn large(house: &House, folder: &Path, report: &mut Report) {
    let raw = Raw::open(&folder.join("raw-large"));
    let mut ear = house.ear().await;
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in 0..LARGE {
        let numbers = (round * EVENTS)..((round + 1) * EVENTS);
        let events: Vec<String> = numbers.map(|number| message(number, &house.room, None)).collect();
        let body = transaction(&events);
        let begun = now();
        ear.put(&format!("large{round}"), &body).await;
        ours.push(begun.elapsed());
        let begun = now();
        raw.append(&events);
        baseline.push(begun.elapsed());
    }
    report.compare("ear: 100 events a transaction", times(ours), times(baseline), Bound::AtMost(2.0));
}

async fn small(house: &House, folder: &Path, report: &mut Report) {
    let raw = Raw::open(&folder.join("raw-small"));
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let events = |line: u64| -> Vec<String> {
            let first = (1 << 32) + (round * IN_FLIGHT + line) * SMALL;
            (first..first + SMALL).map(|number| message(number, &house.room, None)).collect()
        };
        ours.push(rate(calls(house, round, events).await));
        baseline.push(rate(threads(&raw, events)));
    }
    let (ours, baseline) = (measured(ours, "/s"), measured(baseline, "/s"));
    report.compare("ear: one event a transaction, 16 in flight", ours, baseline, Bound::AtLeast(1.0 / 3.0));
}

fn rate(time: Duration) -> f64 {
    (IN_FLIGHT * SMALL) as f64 / time.as_secs_f64()
}

async fn calls(house: &House, round: u64, events: impl Fn(u64) -> Vec<String>) -> Duration {
    let mut lines = JoinSet::new();
    let mut ready = Vec::new();
    for line in 0..IN_FLIGHT {
        let bodies: Vec<String> = events(line).into_iter().map(|event| transaction(&[event])).collect();
        ready.push((line, house.ear().await, bodies));
    }
    let begun = now();
    for (line, mut ear, bodies) in ready {
        lines.spawn(async move {
            for (number, body) in bodies.iter().enumerate() {
                ear.put(&format!("small{round}-{line}-{number}"), body).await;
            }
        });
    }
    while let Some(done) = lines.join_next().await {
        done.expect("a line of calls succeeds");
    }
    begun.elapsed()
}

fn threads(raw: &Raw, events: impl Fn(u64) -> Vec<String>) -> Duration {
    let all: Vec<Vec<String>> = (0..IN_FLIGHT).map(events).collect();
    let begun = now();
    thread::scope(|scope| {
        for events in &all {
            scope.spawn(|| events.iter().for_each(|event| raw.append(std::slice::from_ref(event))));
        }
    });
    begun.elapsed()
}
