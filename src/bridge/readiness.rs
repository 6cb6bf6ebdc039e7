//! Whether the service is ready, and if not, why.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokio::sync::watch;

/// The reasons why it is not ready, each under a key of its own; ready when there are none.
#[derive(Debug)]
pub(crate) struct Readiness {
    reasons: Mutex<BTreeMap<String, String>>,
    shown: watch::Sender<Result<(), Vec<String>>>,
}

impl Readiness {
    /// Not ready: nothing is known yet.
    pub(crate) fn new() -> Self {
        let unknown =
            [("start", "the bridge is starting"), ("ping", "the homeserver has not reached us yet")];
        let reasons: BTreeMap<_, _> =
            unknown.map(|(key, reason)| (key.to_owned(), reason.to_owned())).into_iter().collect();
        let (shown, _) = watch::channel(Err(reasons.values().cloned().collect()));
        Self { reasons: Mutex::new(reasons), shown }
    }

    /// What /ready shows.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Result<(), Vec<String>>> {
        self.shown.subscribe()
    }

    /// Says a reason; answers whether it is a new one (to be logged once).
    pub(crate) fn say(&self, key: &str, reason: &str) -> bool {
        let mut reasons = self.reasons.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = reasons.insert(key.to_owned(), reason.to_owned());
        self.show(&reasons);
        before.is_none_or(|before| before != reason)
    }

    /// Takes a reason back; answers whether there was one.
    pub(crate) fn clear(&self, key: &str) -> bool {
        let mut reasons = self.reasons.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let had = reasons.remove(key).is_some();
        self.show(&reasons);
        had
    }

    /// Why it is not ready.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.subscribe().borrow().clone().err().unwrap_or_default()
    }

    fn show(&self, reasons: &BTreeMap<String, String>) {
        let state = if reasons.is_empty() { Ok(()) } else { Err(reasons.values().cloned().collect()) };
        // What was shown before is nobody's any more.
        drop(self.shown.send_replace(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_only_without_reasons() {
        let readiness = Readiness::new();
        let shown = readiness.subscribe();
        assert_eq!(shown.borrow().as_ref().map_err(Vec::len), Err(2));
        assert!(readiness.clear("ping"));
        assert_eq!(*shown.borrow(), Err(vec!["the bridge is starting".to_owned()]));
        assert!(readiness.say("disk", "full"));
        assert!(!readiness.say("disk", "full"), "the same reason is not new");
        assert!(readiness.clear("start"));
        assert_eq!(*shown.borrow(), Err(vec!["full".to_owned()]));
        assert!(readiness.clear("disk"));
        assert!(!readiness.clear("disk"));
        assert_eq!(*shown.borrow(), Ok(()));
    }
}
