//! The memory of a bridge with a hundred Personas and ten thousand waiting deliveries.

#[expect(dead_code, reason = "each bench uses its part")]
mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::events::{message, transaction};
use common::figures::{Report, measured};
use common::house::House;
use persona_bridge::bridge::Mind;
use persona_bridge::mind::scripted;

/// How many Personas hear each message.
const PERSONAS: usize = 100;
/// How many messages wait for each.
const MESSAGES: u64 = 100;
/// The most memory, in megabytes.
const LIMIT: f64 = 80.0;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut report = Report::default();
    common::runtime().block_on(async {
        let mind = Mind::Scripted(scripted::Config { state: folder.path().join("minds") });
        let house = House::open(folder.path(), PERSONAS, mind, "scripted").await;
        let mut ear = house.ear().await;
        for number in 0..MESSAGES {
            let event = message(number, &house.room, None);
            ear.put(&format!("message{number}"), &transaction(&[event])).await;
        }
        let waiting = house.store.counts().waiting;
        assert!(waiting >= PERSONAS as u64 * MESSAGES, "only {waiting} deliveries wait");
        // What wakes for the last message has its turn.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, field) in [("memory", "VmRSS:"), ("memory at its peak", "VmHWM:")] {
            let name = format!("{name}, 100 Personas and 10,000 waiting deliveries");
            report.limit(&name, measured(vec![megabytes(field)], "MB"), LIMIT);
        }
        house.leave().await;
    });
    report.finish()
}

/// A size of this process as the kernel tells it, in megabytes.
fn megabytes(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a known field");
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes * 1024.0 / 1e6
}
