//! The faults of a homeserver, switched by the test.

use std::time::Duration;

use super::FakeHomeserver;

/// What goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive, and the caller knows.
    Down,
    /// It does not arrive, and the caller does not know.
    CutBefore,
    /// It takes effect, and the caller does not know.
    CutAfter,
    /// It takes effect but its transaction id is lost (Conduit killed in the middle of a send); the caller does not
    /// know.
    CutAfterForgetting,
    /// 429 with `retry_after_ms`.
    Limited(Duration),
    /// Any other answer: status and body.
    Answer(u16, String),
}

/// A request as a predicate sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// The path, percent-decoded, without query.
    pub(crate) path: &'a str,
    /// The body.
    pub(crate) body: &'a str,
}

type Matches = Box<dyn Fn(&Seen<'_>) -> bool + Send>;

/// The switches.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) latency: Duration,
    pub(super) largest: Option<usize>,
    pub(super) down: bool,
    rules: Vec<(Matches, u32, Fault)>,
}

impl Faults {
    /// The fault of this request, used up by it.
    pub(super) fn meet(&mut self, seen: &Seen<'_>) -> Option<Fault> {
        if self.down {
            return Some(Fault::Down);
        }
        let (_, left, fault) = self.rules.iter_mut().find(|(matches, left, _)| *left > 0 && matches(seen))?;
        *left -= 1;
        let fault = fault.clone();
        self.rules.retain(|(_, left, _)| *left > 0);
        Some(fault)
    }
}

impl FakeHomeserver {
    /// Whether it is away altogether; every call is then certainly not sent.
    pub(crate) fn set_down(&self, down: bool) {
        self.lock().faults.down = down;
    }

    /// The time each request takes, half before and half after its effect.
    pub(crate) fn set_latency(&self, latency: Duration) {
        self.lock().faults.latency = latency;
    }

    /// The largest content in bytes, instead of the flavour's own limit.
    pub(crate) fn set_largest(&self, bytes: usize) {
        self.lock().faults.largest = Some(bytes);
    }

    /// Lets the next `times` requests meet a fault.
    pub(crate) fn fail_next(&self, times: u32, fault: Fault) {
        self.fail_when(times, fault, |_| true);
    }

    /// Lets the next `times` requests that match meet a fault; rules are asked in the order they were made.
    pub(crate) fn fail_when(
        &self,
        times: u32,
        fault: Fault,
        matches: impl Fn(&Seen<'_>) -> bool + Send + 'static,
    ) {
        self.lock().faults.rules.push((Box::new(matches), times, fault));
    }

    /// Takes all faults back; latency and limits stay.
    pub(crate) fn clear_faults(&self) {
        let faults = &mut self.lock().faults;
        faults.rules.clear();
        faults.down = false;
    }
}
