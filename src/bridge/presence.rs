//! What people see of a Persona's attention: typing while she thinks, a receipt when she has read. Best effort.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use tokio::sync::mpsc;

use super::BridgeError;
use super::calls::Failed;
use super::encryption;
use super::shared::Shared;
use crate::conversation::{Batch, Millis};
use crate::homeserver::client::CallErrorKind;

/// How often typing is renewed; the client asks for 30 s each time.
const RENEW: Duration = Duration::from_secs(20);

/// Something to be shown.
#[derive(Clone, Debug)]
pub(crate) enum Signal {
    /// Typing begins or ends.
    Typing { user: OwnedUserId, room: OwnedRoomId, on: bool },
    /// Everything up to the event is read.
    Read { user: OwnedUserId, room: OwnedRoomId, event: OwnedEventId },
}

/// One Persona's side.
pub(crate) struct Presence {
    shared: Arc<Shared>,
    user: OwnedUserId,
    typing: BTreeSet<OwnedRoomId>,
    unread: BTreeMap<OwnedRoomId, OwnedEventId>,
}

impl Presence {
    pub(crate) fn new(shared: Arc<Shared>, user: OwnedUserId) -> Self {
        Self { shared, user, typing: BTreeSet::new(), unread: BTreeMap::new() }
    }

    /// She begins to think about a batch.
    pub(crate) fn thinking(&mut self, batch: &Batch) {
        self.unread = batch.deliveries.iter().map(|d| (d.room.clone(), d.event.clone())).collect();
        let rooms: BTreeSet<OwnedRoomId> = {
            let directory = self.shared.directory();
            let rooms = batch.deliveries.iter().filter(|d| d.is_asked()).map(|d| d.room.clone());
            rooms.filter(|room| !directory.is_encrypted(room)).collect()
        };
        for room in rooms {
            self.typing.insert(room.clone());
            self.show(Signal::Typing { user: self.user.clone(), room, on: true });
        }
    }

    /// The batch has entered her session.
    pub(crate) fn read(&mut self) {
        for (room, event) in std::mem::take(&mut self.unread) {
            self.show(Signal::Read { user: self.user.clone(), room, event });
        }
    }

    /// She thinks no more.
    pub(crate) fn rest(&mut self) {
        for room in std::mem::take(&mut self.typing) {
            self.show(Signal::Typing { user: self.user.clone(), room, on: false });
        }
    }

    fn show(&self, signal: Signal) {
        // Nobody shows anything any more once the service ends.
        let _ = self.shared.signals.send(signal);
    }
}

type Showing = BoxFuture<'static, (Signal, Result<(), Failed>)>;

/// Shows signals until the service has drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut signals: mpsc::UnboundedReceiver<Signal>,
) -> Result<(), BridgeError> {
    let mut typing: BTreeMap<(OwnedUserId, OwnedRoomId), Millis> = BTreeMap::new();
    let mut showing: FuturesUnordered<Showing> = FuturesUnordered::new();
    loop {
        let next = typing.values().min().copied();
        tokio::select! {
            biased;
            () = shared.drained.cancelled() => return Ok(()),
            Some((signal, shown)) = showing.next(), if !showing.is_empty() => {
                match shown {
                    Ok(()) => {}
                    Err(Failed::Call(error)) => {
                        tracing::debug!(%error, "a signal was not shown");
                        if let CallErrorKind::Limited(after) = error.kind {
                            showing.extend(again(&shared, &mut typing, signal, after));
                        }
                    }
                    Err(Failed::Bridge(error)) => return Err(error),
                }
            }
            Some(signal) = signals.recv() => {
                remember(&shared, &mut typing, &signal);
                showing.push(show(&shared, signal, Duration::ZERO));
            }
            () = shared.clock.sleep_until(next), if next.is_some() => {
                for signal in renewals(&shared, &mut typing) {
                    showing.push(show(&shared, signal, Duration::ZERO));
                }
            }
        }
    }
}

fn remember(shared: &Shared, typing: &mut BTreeMap<(OwnedUserId, OwnedRoomId), Millis>, signal: &Signal) {
    if let Signal::Typing { user, room, on } = signal {
        let key = (user.clone(), room.clone());
        if *on {
            typing.insert(key, shared.clock.now().plus(RENEW));
        } else {
            typing.remove(&key);
        }
    }
}

/// What is made of a signal that the homeserver wants later: typing is renewed then if it still goes on.
fn again(
    shared: &Arc<Shared>,
    typing: &mut BTreeMap<(OwnedUserId, OwnedRoomId), Millis>,
    signal: Signal,
    after: Duration,
) -> Option<Showing> {
    if let Signal::Typing { user, room, on: true } = signal {
        typing.entry((user, room)).and_modify(|at| *at = shared.clock.now().plus(after));
        return None;
    }
    Some(show(shared, signal, after))
}

fn renewals(shared: &Shared, typing: &mut BTreeMap<(OwnedUserId, OwnedRoomId), Millis>) -> Vec<Signal> {
    let now = shared.clock.now();
    let due = typing.iter_mut().filter(|(_, at)| **at <= now);
    due.map(|((user, room), at)| {
        *at = now.plus(RENEW);
        Signal::Typing { user: user.clone(), room: room.clone(), on: true }
    })
    .collect()
}

fn show(shared: &Arc<Shared>, signal: Signal, after: Duration) -> Showing {
    let shared = shared.clone();
    Box::pin(async move {
        if !after.is_zero() {
            shared.clock.sleep_until(Some(shared.clock.now().plus(after))).await;
        }
        let shown = show_now(&shared, &signal).await;
        (signal, shown)
    })
}

async fn show_now(shared: &Shared, signal: &Signal) -> Result<(), Failed> {
    if is_hidden(shared, signal).await? {
        return Ok(());
    }
    match signal {
        Signal::Typing { user, room, on } => {
            shared.client.typing(&shared.identity(user), room, *on).await?;
        }
        Signal::Read { user, room, event } => {
            shared.client.receipt(&shared.identity(user), room, event).await?;
        }
    }
    Ok(())
}

/// In an encrypted room, or before it is known to be none, nothing is shown; what was shown before is taken back.
async fn is_hidden(shared: &Shared, signal: &Signal) -> Result<bool, Failed> {
    match signal {
        Signal::Typing { on: false, .. } => Ok(false),
        Signal::Typing { user, room, .. } | Signal::Read { user, room, .. } => {
            encryption::is_encrypted(shared, &shared.identity(user), room).await
        }
    }
}
