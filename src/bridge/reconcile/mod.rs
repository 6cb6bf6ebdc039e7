//! Reads back what transactions missed: each room forwards from its checked mark, in the server's own order.

mod room;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ruma::OwnedRoomId;
use tokio::sync::mpsc;

use super::BridgeError;
use super::calls::Failed;
use super::encryption;
use super::seats;
use super::shared::{Poke, Shared};
use crate::homeserver::client::CallErrorKind;
use room::look;

/// The pause between two rooms of a pass.
const PACE: Duration = Duration::from_millis(20);
/// How soon a failed pass is tried again.
const AGAIN: Duration = Duration::from_secs(15);
/// How soon the next pass begins where the homeserver brings nothing by itself until its own delay is over.
const BEHIND: Duration = Duration::from_secs(5);
/// The break after a pass that failed.
const BREATH: Duration = Duration::from_secs(1);

/// Runs passes: at `reconcile`, when poked, and again soon after a failure; until the service has drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut pokes: mpsc::UnboundedReceiver<Poke>,
) -> Result<(), BridgeError> {
    let mut full = shared.clock.now().plus(shared.config.reconcile);
    let mut caught_up = false;
    loop {
        let mut asked = BTreeSet::new();
        tokio::select! {
            biased;
            () = shared.drained.cancelled() => return Ok(()),
            Some(poke) = pokes.recv() => { asked.insert(poke); }
            () = shared.clock.sleep_until(Some(full)) => { asked.insert(Poke::All); }
        }
        while let Ok(poke) = pokes.try_recv() {
            asked.insert(poke);
        }
        if shared.clock.now() >= full {
            asked.insert(Poke::All);
        }
        let whole = asked.contains(&Poke::All);
        let pass = async {
            if !super::receive::has_room(&shared)? {
                return Ok(false);
            }
            if whole { whole_pass(&shared).await } else { rooms_pass(&shared, asked).await }
        };
        let done = tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            done = pass => done?,
        };
        if !done {
            // A call that fails each time must not make one pass follow the other without a break.
            tokio::time::sleep(BREATH).await;
        }
        if whole && done && !std::mem::replace(&mut caught_up, true) {
            tracing::info!("caught up: every room is read back");
        }
        let next = shared.clock.now().plus(pause(&shared, done));
        full = if whole { next } else { full.min(next) };
    }
}

/// How long the next pass may wait after one that succeeded, or did not.
fn pause(shared: &Shared, done: bool) -> Duration {
    let reconcile = shared.config.reconcile;
    match done {
        false => reconcile.min(AGAIN),
        true if shared.is_behind() => reconcile.min(BEHIND),
        true => reconcile,
    }
}

/// One pass over seats, invites and all rooms; answers whether every look succeeded.
pub(crate) async fn whole_pass(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    let mut good = seats::compare(shared).await?;
    super::rooms::unjoined(shared).await?;
    good &= super::invites::ask(shared).await?;
    let rooms = shared.directory().seated();
    Ok(look_at(shared, rooms).await? && good)
}

async fn rooms_pass(shared: &Arc<Shared>, asked: BTreeSet<Poke>) -> Result<bool, BridgeError> {
    let rooms = asked.into_iter().filter_map(|poke| match poke {
        Poke::Room(room) => Some(room),
        Poke::All => None,
    });
    let rooms: Vec<OwnedRoomId> = rooms.collect();
    let unseated =
        rooms.iter().any(|room| shared.directory().room(room).is_none_or(|room| room.seats.is_empty()));
    let good = if unseated { seats::compare(shared).await? } else { true };
    Ok(look_at(shared, rooms).await? && good)
}

async fn look_at(shared: &Arc<Shared>, rooms: Vec<OwnedRoomId>) -> Result<bool, BridgeError> {
    let mut good = true;
    for room in rooms {
        good &= encryption::learn(shared, &room).await?;
        match look(shared, &room).await {
            Ok(new) if new > 0 => {
                tracing::info!(%room, new, "read back what no transaction brought");
                shared.note_missed();
            }
            Ok(_) => {}
            Err(Failed::Call(error)) => {
                tracing::debug!(%room, %error, "a room could not be read back");
                use CallErrorKind as Kind;
                match error.kind {
                    // It may come back without what it held: what it brings then waits for what is read.
                    Kind::NotSent | Kind::Uncertain => shared.directory().unmark(Some(&room)),
                    Kind::Limited(_) => {}
                    Kind::Unauthorized
                    | Kind::Forbidden
                    | Kind::NotFound
                    | Kind::TooLarge
                    | Kind::Server
                    | Kind::Already
                    | Kind::Refused => hear_all_the_same(shared, &room)?,
                }
                good = false;
            }
            Err(Failed::Bridge(error)) => return Err(error),
        }
        tokio::time::sleep(PACE).await;
    }
    Ok(good)
}

/// The homeserver does not let the room be read; what it brings by itself is better than nothing.
fn hear_all_the_same(shared: &Shared, room: &OwnedRoomId) -> Result<(), BridgeError> {
    if shared.store.mark(room)?.is_some() {
        shared.caught_up(room);
    }
    Ok(())
}
