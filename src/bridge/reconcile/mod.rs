//! Reads back what transactions missed: each room forwards from its checked mark, in the server's own order.

mod room;
mod troubles;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ruma::OwnedRoomId;
use tokio::sync::mpsc;

use super::calls::Failed;
use super::shared::{Poke, Shared};
use super::{BridgeError, describe, encryption, invites, seats, upgrade};
use crate::homeserver::client::{CallError, CallErrorKind, Mode};
use room::look;
use troubles::{Part, Troubles};

/// The pause between two rooms of a pass.
const PACE: Duration = Duration::from_millis(20);
/// How soon a pass is tried again that found no room on the disk.
const AGAIN: Duration = Duration::from_secs(15);
/// How soon the next pass begins where the homeserver brings nothing by itself until its own delay is over.
const BEHIND: Duration = Duration::from_secs(5);
/// How many time-outs in a row are the room's own: what is pushed there is heard all the same.
const TIMEOUTS: u32 = 3;
/// After how many failures in a row operators are told.
const TELL: u32 = 6;

/// Runs passes: at `reconcile`, when poked, and again for what failed when its time has come; until the service has
/// drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut pokes: mpsc::UnboundedReceiver<Poke>,
) -> Result<(), BridgeError> {
    let mut full = shared.clock.now().plus(shared.config.reconcile);
    let mut troubles = Troubles::default();
    let (mut passed, mut caught_up) = (false, false);
    loop {
        let next = troubles.next().map_or(full, |next| next.min(full));
        let mut asked = BTreeSet::new();
        tokio::select! {
            biased;
            () = shared.drained.cancelled() => return Ok(()),
            Some(poke) = pokes.recv() => { asked.insert(poke); }
            () = shared.clock.sleep_until(Some(next)) => {}
        }
        while let Ok(poke) = pokes.try_recv() {
            asked.insert(poke);
        }
        let all = asked.contains(&Poke::All);
        if all {
            // The homeserver may have come back: what waits for it need wait no longer.
            shared.outbox.notify_one();
        }
        let whole = all || shared.clock.now() >= full;
        if !super::receive::has_room(&shared)? {
            full = shared.clock.now().plus(shared.config.reconcile.min(AGAIN));
            tokio::select! {
                () = shared.drained.cancelled() => return Ok(()),
                () = shared.clock.sleep_until(Some(full)) => continue,
            }
        }
        let pass = async {
            if whole {
                whole_pass(&shared, &mut troubles).await
            } else {
                part_pass(&shared, &mut troubles, asked).await
            }
        };
        tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            done = pass => done?,
        };
        passed |= whole;
        if passed && troubles.is_empty() && !std::mem::replace(&mut caught_up, true) {
            tracing::info!("caught up: every room is read back");
        }
        let next = shared.clock.now().plus(pause(&shared));
        full = if whole { next } else { full.min(next) };
    }
}

/// How long the next whole pass may wait.
fn pause(shared: &Shared) -> Duration {
    let reconcile = shared.config.reconcile;
    if shared.is_behind() { reconcile.min(BEHIND) } else { reconcile }
}

/// One pass over seats, invites and all rooms.
async fn whole_pass(shared: &Arc<Shared>, troubles: &mut Troubles) -> Result<(), BridgeError> {
    troubles.reach_again();
    seats_pass(shared, troubles).await?;
    // Synapse, which masquerades, answers /sync of the appservice's own user with 500.
    let bot = (shared.mode() == Mode::Token).then(|| shared.config.bot.clone());
    let personas = shared.config.personas.iter().map(|persona| persona.persona.user.clone());
    for user in personas.chain(bot).collect::<Vec<_>>() {
        attempt(shared, troubles, Part::Invites(user)).await?;
    }
    let rooms = shared.directory().seated();
    rooms_pass(shared, troubles, rooms).await
}

/// What was poked, and what failed before and is due.
async fn part_pass(
    shared: &Arc<Shared>,
    troubles: &mut Troubles,
    asked: BTreeSet<Poke>,
) -> Result<(), BridgeError> {
    for part in troubles.due(shared.clock.now()) {
        attempt(shared, troubles, part).await?;
    }
    let rooms = asked.into_iter().filter_map(|poke| match poke {
        Poke::Room(room) => Some(room),
        Poke::All => None,
    });
    let rooms: Vec<OwnedRoomId> = rooms.collect();
    let is_strange = |room| shared.directory().is_strange(room);
    if rooms.iter().any(is_strange) {
        seats_pass(shared, troubles).await?;
    }
    rooms_pass(shared, troubles, rooms).await
}

async fn seats_pass(shared: &Arc<Shared>, troubles: &mut Troubles) -> Result<(), BridgeError> {
    for persona in &shared.config.personas {
        attempt(shared, troubles, Part::Seats(persona.persona.id.clone())).await?;
    }
    Ok(())
}

async fn rooms_pass(
    shared: &Arc<Shared>,
    troubles: &mut Troubles,
    rooms: Vec<OwnedRoomId>,
) -> Result<(), BridgeError> {
    for room in rooms {
        attempt(shared, troubles, Part::Room(room)).await?;
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}

/// Does one part of a pass, unless it failed and has to wait: for the delay that the homeserver gave, or for longer with
/// each failure. No part waits for another.
async fn attempt(shared: &Arc<Shared>, troubles: &mut Troubles, part: Part) -> Result<(), BridgeError> {
    if troubles.waits(&part, shared.clock.now()) {
        return Ok(());
    }
    let tried = match &part {
        Part::Seats(persona) => seats::compare(shared, persona).await,
        Part::Invites(user) => invites::ask_for(shared, user).await,
        Part::Room(room) => look_at(shared, room).await,
    };
    match tried {
        Ok(()) => {
            if troubles.well(&part).is_some_and(|tries| tries >= TELL) {
                tracing::info!(%part, "this can be read back again");
            }
            Ok(())
        }
        Err(Failed::Bridge(error)) => Err(error),
        Err(Failed::Call(error)) => failed(shared, troubles, part, &error).await,
    }
}

async fn look_at(shared: &Arc<Shared>, room: &OwnedRoomId) -> Result<(), Failed> {
    let learnt = encryption::learn(shared, room).await;
    let described = describe::learn(shared, room).await;
    let new = look(shared, room).await?;
    if new > 0 {
        tracing::info!(%room, new, "read back what no transaction brought");
        shared.note_missed();
    }
    // Last, so that what was said in a room that is over is heard before it is left.
    upgrade::follow(shared, room).await?;
    learnt.and(described)
}

async fn failed(
    shared: &Arc<Shared>,
    troubles: &mut Troubles,
    part: Part,
    error: &CallError,
) -> Result<(), BridgeError> {
    tracing::debug!(%part, %error, "this could not be read back");
    let now = shared.clock.now();
    let (tries, since) = troubles.failed(part.clone(), now, error.kind);
    if let Part::Room(room) = &part {
        use CallErrorKind as Kind;
        match error.kind {
            // It may come back without what it held: what it brings then waits for what is read.
            Kind::NotSent => shared.directory().unmark(Some(room)),
            Kind::Uncertain if shared.client.versions().await.is_err() => {
                shared.directory().unmark(Some(room));
            }
            // A room that takes too long says nothing of the homeserver.
            Kind::Uncertain if tries < TIMEOUTS => {}
            Kind::Limited(_) => {}
            Kind::Uncertain
            | Kind::Unauthorized
            | Kind::Forbidden
            | Kind::NotFound
            | Kind::TooLarge
            | Kind::Server
            | Kind::Already
            | Kind::Refused => hear_all_the_same(shared, room)?,
        }
    }
    if tries == TELL && !matches!(error.kind, CallErrorKind::NotSent) {
        let (status, errcode) = (error.status, &error.errcode);
        let text = format!(
            "{part} cannot be read back ({} {status} {errcode}); it is tried again and again, and what the homeserver \
             brings by itself is heard all the same",
            error.call
        );
        shared.tell(&format!("unread:{part}:{}", since.0), &text).await?;
    }
    Ok(())
}

/// The homeserver does not let the room be read; what it brings by itself is better than nothing.
fn hear_all_the_same(shared: &Shared, room: &OwnedRoomId) -> Result<(), BridgeError> {
    if shared.store.mark(room)?.is_some() {
        shared.caught_up(room);
    }
    Ok(())
}
