//! What the benches share: figures, a raw sled to compare with, and a whole bridge on loopback sockets.
//!
//! A figure compares two things measured in turns within one run on one machine, so that what else the machine does
//! falls on both.

pub(crate) mod ear;
pub(crate) mod events;
#[expect(unused_imports, clippy::unwrap_used, reason = "helpers of tests, of which benches use a part")]
#[path = "../../tests/it/fake/mod.rs"]
pub(crate) mod fake;
pub(crate) mod figures;
pub(crate) mod house;
pub(crate) mod raw;

use std::time::{Duration, Instant, SystemTime};

/// The time now, for measuring.
#[expect(clippy::disallowed_methods, reason = "benches measure time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time now as other processes see it too.
#[expect(clippy::disallowed_methods, reason = "benches measure time across processes")]
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is set")
}

/// A runtime as `persona-bridge run` has it.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// Waits until something holds, looking every millisecond.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
