//! How long a store with a million known event ids takes to open, after a stop and after a crash.

#[expect(dead_code, reason = "each bench uses its part")]
mod common;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use common::events::event_id;
use common::figures::{Report, measured};
use common::{house, now};
use persona_bridge::conversation::Millis;
use persona_bridge::store::Arrival;

/// How many event ids are known.
const KNOWN: u64 = 1_000_000;
/// How many come in at once.
const AT_ONCE: u64 = 10_000;
/// How often opening is measured.
const OPENINGS: u32 = 3;
/// The longest start, in seconds.
const LIMIT: f64 = 2.0;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (stopped, crashed) = (folder.path().join("stopped"), folder.path().join("crashed"));
    let runtime = common::runtime();
    let store = house::store(&stopped);
    runtime.block_on(async {
        for first in (0..KNOWN).step_by(AT_ONCE as usize) {
            let arrival = |number| Arrival {
                event: event_id(number).try_into().expect("an event id"),
                effects: Vec::new(),
            };
            let arrivals = (first..first + AT_ONCE).map(arrival).collect();
            let new =
                store.accept(arrivals, Vec::new(), None, Millis(first)).await.expect("the store accepts");
            assert!(new.iter().all(|new| *new), "all ids are new");
        }
        // What still sinks behind the last answer would be copied half.
        store.close().await.expect("the store writes");
    });
    copy(&stopped, &crashed);
    drop((store, runtime));
    let mut report = Report::default();
    for (name, made) in [("start after a stop", &stopped), ("start after a crash", &crashed)] {
        let openings =
            (0..OPENINGS).map(|number| opening(made, &folder.path().join(format!("copy{number}"))));
        let seconds = openings.map(|time| time.as_secs_f64()).collect();
        report.limit(&format!("{name}, 1,000,000 known event ids"), measured(seconds, "s"), LIMIT);
    }
    report.finish()
}

/// The time of opening a fresh copy: opening changes what a later opening finds.
fn opening(made: &Path, fresh: &Path) -> Duration {
    copy(made, fresh);
    let begun = now();
    let store = house::store(fresh);
    let taken = begun.elapsed();
    let last = event_id(KNOWN - 1).try_into().expect("an event id");
    assert!(store.knows(&last).expect("the store reads"), "nothing is missing");
    drop(store);
    std::fs::remove_dir_all(fresh).expect("our own folder");
    taken
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a new folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let (from, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("its entries");
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("space for a copy");
        }
    }
}
