//! What was heard by nobody, counted by why; told now and then, and at /stats.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::BridgeError;
use super::heart;
use super::shared::Shared;
use crate::store::Counts;

/// How often the log tells what was counted, if that changed.
const PERIOD: Duration = Duration::from_secs(300);

/// Counters of this process.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    unheard: Mutex<BTreeMap<&'static str, u64>>,
    answered: AtomicU64,
    returned: AtomicU64,
}

/// The counters at one moment.
type Unheard = BTreeMap<&'static str, u64>;

impl Tally {
    /// Events were heard by nobody.
    pub(crate) fn unheard(&self, why: &'static str, events: u64) {
        if events > 0 {
            *self.lock().entry(why).or_default() += events;
        }
    }

    /// The homeserver has answered a call with success.
    pub(crate) fn note_answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls it has answered so.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// The homeserver has answered again after it was silent.
    pub(crate) fn note_returned(&self) {
        self.returned.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it has come back so.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.load(Ordering::Relaxed)
    }

    fn counted(&self) -> Unheard {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Unheard> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The page at /stats.
pub(crate) fn page(shared: &Shared) -> Value {
    let Counts { waiting, held, outbox, parked, quarantined } = shared.store.counts();
    json!({
        "unheard": shared.tally.counted(),
        "braked": shared.brake().told(),
        "next_beat": heart::next(shared).ok().map(|beat| beat.0),
        "minds": living(shared),
        "waiting": waiting,
        "held": held,
        "outbox": outbox,
        "parked": parked,
        "quarantined": quarantined,
        "flush_ms": flushes(shared.store.flush_times()),
    })
}

/// The live minds and their resident memory in bytes.
fn living(shared: &Shared) -> serde_json::Map<String, Value> {
    let living = shared.slots.living().into_iter();
    living.map(|(who, resident)| (who.to_string(), resident.into())).collect()
}

/// How long the newest flushes took, in milliseconds; null where there was none.
fn flushes(mut times: Vec<Duration>) -> Value {
    times.sort();
    let at = |place: usize| times.get(place).map(|time| time.as_secs_f64() * 1e3);
    json!({ "median": at(times.len() / 2), "slowest": at(times.len().saturating_sub(1)) })
}

/// Logs the counters when they have changed, every few minutes and once more when the service has drained.
pub(crate) async fn run(shared: Arc<Shared>) -> Result<(), BridgeError> {
    let mut told = (Unheard::new(), [0; 3]);
    loop {
        let until = shared.clock.now().plus(PERIOD);
        let drained = tokio::select! {
            () = shared.drained.cancelled() => true,
            () = shared.clock.sleep_until(Some(until)) => false,
        };
        let Counts { held, parked, quarantined, .. } = shared.store.counts();
        let now = (shared.tally.counted(), [held, parked, quarantined]);
        if now != told {
            let unheard = sentence(&now.0);
            tracing::info!(
                unheard,
                held,
                parked,
                quarantined,
                "what was not heard since the start, and what is kept"
            );
            told = now;
        }
        if drained {
            return Ok(());
        }
    }
}

fn sentence(unheard: &Unheard) -> String {
    let counts: Vec<String> = unheard.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_are_told_in_milliseconds() {
        assert_eq!(flushes(Vec::new()), json!({ "median": null, "slowest": null }));
        let times = [4, 1, 9].map(Duration::from_millis).to_vec();
        assert_eq!(flushes(times), json!({ "median": 4.0, "slowest": 9.0 }));
    }

    #[test]
    fn events_are_counted_by_why() {
        let tally = Tally::default();
        assert_eq!(sentence(&tally.counted()), "nothing");
        tally.unheard("unreadable", 0);
        tally.unheard("blocked", 1);
        tally.unheard("blocked", 2);
        tally.unheard("another type", 1);
        assert_eq!(sentence(&tally.counted()), "1 another type, 3 blocked");
    }
}
