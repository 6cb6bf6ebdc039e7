//! Follows a room to the one that takes its place, once that one says so too: seat, lane and alias move along.

use std::collections::BTreeSet;
use std::sync::Arc;

use ruma::{OwnedRoomId, OwnedServerName, OwnedUserId};

use super::calls::Failed;
use super::directory::Directory;
use super::rooms::take_seat;
use super::shared::{Poke, Shared};
use crate::conversation::{Lane, PersonaId};
use crate::homeserver::client::{CallErrorKind, Identity};
use crate::homeserver::event::{predecessor, replacement};
use crate::store::{Effect, SeatRow};

/// The reason with which she leaves.
const REASON: &str = "the room was upgraded";
/// The most servers that are asked to let her in.
const SERVERS: usize = 10;

/// Somebody of a room, with her user and the lane in which she hears it.
type Sitter = (PersonaId, OwnedUserId, Lane);

/// A room says that it is over, and which one takes its place.
pub(crate) fn announced(shared: &Shared, room: &OwnedRoomId, to: &OwnedRoomId) -> Effect {
    shared.directory().succeed(room, Some(to.clone()));
    Effect::Upgraded { room: room.clone(), to: to.clone() }
}

/// Moves everybody who sits in a room that is over; who is not let in is tried again with the next pass.
pub(crate) async fn follow(shared: &Arc<Shared>, old: &OwnedRoomId) -> Result<(), Failed> {
    // Not in the condition itself, which would hold the directory meanwhile.
    let next = shared.directory().successor(old).cloned();
    let Some(new) = next else { return Ok(()) };
    for sitter in sitters(shared, old) {
        let (persona, user, _) = &sitter;
        let identity = shared.identity(user);
        let via = servers(&shared.directory(), old, &new);
        match shared.client.join_via(&identity, &new, via).await {
            Ok(()) => {}
            Err(error) if matches!(error.kind, CallErrorKind::Forbidden | CallErrorKind::NotFound) => {
                let text =
                    format!("{old} was upgraded to {new}, which does not let {persona} in; invite her there");
                shared.tell(&format!("upgrade:{persona}:{old}:{new}"), &text).await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        let create = shared.client.state(&identity, &new, "m.room.create", "").await?;
        if create.and_then(|create| predecessor(create.get())).as_ref() != Some(old) {
            return refuse(shared, &sitter, (old, &new)).await;
        }
        carry_over(shared, sitter, (old, &new)).await?;
    }
    Ok(())
}

fn sitters(shared: &Shared, room: &OwnedRoomId) -> Vec<Sitter> {
    let seats = shared.directory().room(room).map(|room| room.seats.clone()).unwrap_or_default();
    let sitter = |(persona, lane)| Some((shared.user_of(&persona)?, persona, lane));
    let seats = seats.into_iter().map(|(persona, seat)| (persona, seat.lane));
    seats.filter_map(sitter).map(|(user, persona, lane)| (persona, user, lane)).collect()
}

/// Whether somebody sits in the room that takes the place of one in which she still is: she leaves the old one then.
pub(crate) async fn is_left_behind(
    shared: &Shared,
    persona: &PersonaId,
    identity: &Identity,
    room: &OwnedRoomId,
) -> Result<bool, Failed> {
    let sits_in_next = {
        let directory = shared.directory();
        directory.successor(room).is_some_and(|next| directory.sits(persona, next))
    };
    if sits_in_next {
        leave(shared, identity, room).await?;
    }
    Ok(sits_in_next)
}

async fn carry_over(
    shared: &Arc<Shared>,
    (persona, user, lane): Sitter,
    (old, new): (&OwnedRoomId, &OwnedRoomId),
) -> Result<(), Failed> {
    let identity = shared.identity(&user);
    let (lane, alias) = shared.directory().inherit(old, new, &lane);
    let row = SeatRow { persona: persona.clone(), room: new.clone(), lane, invite: None, line: None };
    let dropped = shared.store.carry_over(row.clone(), alias.clone(), user, old.clone()).await?;
    // Whoever was stopped in the old room is in the new one, before anything of it is fed.
    shared.read_brake()?;
    shared.directory().unseat(&persona, old);
    take_seat(shared, row, alias).await?;
    let text = format!(
        "{persona} went on from {old} to {new}, which takes its place; {dropped} unsent messages were dropped"
    );
    shared.note(&format!("upgraded:{persona}:{old}:{new}"), &text).await?;
    look_further(shared, &identity, new).await?;
    leave(shared, &identity, old).await
}

/// The room may be over as well by now.
async fn look_further(shared: &Shared, identity: &Identity, room: &OwnedRoomId) -> Result<(), Failed> {
    let tombstone = shared.client.state(identity, room, "m.room.tombstone", "").await?;
    if let Some(next) = tombstone.and_then(|content| replacement(content.get())).filter(|next| next != room) {
        shared.store.succeed(room.clone(), Some(next.clone())).await?;
        shared.directory().succeed(room, Some(next));
        shared.poke(Poke::Room(room.clone()));
    }
    Ok(())
}

/// The room does not say that it takes the other's place: nobody follows.
async fn refuse(
    shared: &Shared,
    (persona, user, _): &Sitter,
    (old, new): (&OwnedRoomId, &OwnedRoomId),
) -> Result<(), Failed> {
    let is_hers = shared.directory().sits(persona, new);
    if !is_hers {
        leave(shared, &shared.identity(user), new).await?;
    }
    shared.store.succeed(old.clone(), None).await?;
    shared.directory().succeed(old, None);
    let text =
        format!("{old} says that {new} takes its place, but that room says nothing of it: nobody follows");
    Ok(shared.tell(&format!("upgrade-refused:{old}:{new}"), &text).await?)
}

async fn leave(shared: &Shared, identity: &Identity, room: &OwnedRoomId) -> Result<(), Failed> {
    match shared.client.leave(identity, room, REASON).await {
        // She is not in it any more.
        Err(error) if matches!(error.kind, CallErrorKind::Forbidden | CallErrorKind::NotFound) => Ok(()),
        left => Ok(left?),
    }
}

/// The servers that may know the new room: those in the ids of both, and those of the people in the old one.
fn servers(directory: &Directory, old: &OwnedRoomId, new: &OwnedRoomId) -> Vec<OwnedServerName> {
    let named = [new.server_name(), old.server_name()].into_iter().flatten().map(ToOwned::to_owned);
    let people = directory.room(old).into_iter().flat_map(|room| room.members.keys());
    let theirs: BTreeSet<OwnedServerName> = people.map(|user| user.server_name().to_owned()).collect();
    named.chain(theirs).take(SERVERS).collect()
}
