//! What is on its way into rooms right now, so that who stops a room can wait until nothing is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ruma::{OwnedRoomId, RoomId};
use tokio::sync::Notify;

/// The calls that send something, counted by room; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flights(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<BTreeMap<OwnedRoomId, usize>>,
    landed: Notify,
}

impl Inner {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<OwnedRoomId, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Flight {
    flights: Flights,
    room: OwnedRoomId,
}

impl Flights {
    /// Something is sent from now on.
    pub(crate) fn begin(&self, room: &RoomId) -> Flight {
        *self.0.counts().entry(room.to_owned()).or_default() += 1;
        Flight { flights: self.clone(), room: room.to_owned() }
    }

    /// Waits until nothing is on its way into a room.
    pub(crate) async fn landed(&self, room: &RoomId) {
        loop {
            let landed = self.0.landed.notified();
            tokio::pin!(landed);
            // Before the look, so that no landing after it is missed.
            landed.as_mut().enable();
            if !self.0.counts().contains_key(room) {
                return;
            }
            landed.await;
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut counts = self.flights.0.counts();
        if let Some(count) = counts.get_mut(&self.room) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.room);
            }
        }
        drop(counts);
        self.flights.0.landed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use ruma::room_id;

    use super::*;

    #[tokio::test]
    async fn a_room_is_waited_for_until_the_last_has_landed() {
        let (flights, room) = (Flights::default(), room_id!("!a:hs.test"));
        flights.landed(room).await;
        let (first, second) = (flights.begin(room), flights.begin(room));
        flights.landed(room_id!("!b:hs.test")).await;
        let landed = flights.landed(room);
        tokio::pin!(landed);
        assert!(poll!(&mut landed).is_pending());
        drop(first);
        assert!(poll!(&mut landed).is_pending());
        drop(second);
        landed.await;
    }
}
