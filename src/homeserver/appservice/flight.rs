//! Transactions in flight: a repeat of one shares its answer, for only as long as the first is being worked on.
//!
//! A transaction id alone says nothing: a homeserver that restarts in the middle of a call may use it again for other
//! events. So a call joins another only where both id and event ids are the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, Shared, WeakShared};
use ruma::OwnedEventId;
use tokio::sync::{mpsc, oneshot};

use super::envelope::Opened;
use super::{Answer, Received};

/// The work on one transaction, up to its answer; none where nobody answered.
type Work = BoxFuture<'static, Option<Answer>>;

/// What makes two calls the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    txn: String,
    events: Vec<OwnedEventId>,
    unreadable: Vec<String>,
}

/// The transactions in flight; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<BTreeMap<Key, WeakShared<Work>>>>);

impl Flights {
    /// Hands a transaction on, or joins the same one in flight, and waits for its answer.
    ///
    /// Handed on, its work no longer depends on the caller. A caller who goes away before that leaves it undone, and a
    /// repeat that came meanwhile carries it on.
    pub(super) async fn join(
        &self,
        to: &mpsc::Sender<Received>,
        txn: String,
        opened: Opened,
    ) -> Option<Answer> {
        let key = Key {
            txn: txn.clone(),
            events: opened.events.iter().map(|event| event.id.clone()).collect(),
            unreadable: opened.unreadable.iter().map(|bad| bad.raw.clone()).collect(),
        };
        let to = to.clone();
        let start = || hand_on(to, txn, opened).boxed().shared();
        self.find_or_start(key, start).await
    }

    fn find_or_start(&self, key: Key, start: impl FnOnce() -> Shared<Work>) -> Shared<Work> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, work| work.upgrade().is_some_and(|work| work.peek().is_none()));
        if let Some(work) = flights.get(&key).and_then(WeakShared::upgrade) {
            return work;
        }
        let work = start();
        if let Some(weak) = work.downgrade() {
            flights.insert(key, weak);
        }
        work
    }
}

async fn hand_on(to: mpsc::Sender<Received>, txn: String, opened: Opened) -> Option<Answer> {
    let Opened { events, unreadable, typing } = opened;
    let (answer, answered) = oneshot::channel();
    to.send(Received { txn, events, unreadable, typing, answer }).await.ok()?;
    answered.await.ok()
}
