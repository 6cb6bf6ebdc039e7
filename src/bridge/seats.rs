//! Compares the seats with the server's word of who is where.

use std::collections::BTreeSet;
use std::sync::Arc;

use ruma::OwnedRoomId;

use super::calls::Failed;
use super::rooms::take_seat;
use super::shared::Shared;
use super::upgrade;
use super::{BridgeError, PersonaConfig};
use crate::conversation::{Lane, Membership, PersonaId, Room};
use crate::homeserver::client::{CallError, Identity};
use crate::store::SeatRow;

/// Seats a Persona where she is joined and unseats her where she is not; one room that fails keeps no other waiting.
pub(crate) async fn compare(shared: &Arc<Shared>, id: &PersonaId) -> Result<(), Failed> {
    let Some(persona) = shared.config.personas.iter().find(|persona| persona.persona.id == *id) else {
        return Ok(());
    };
    let identity = &shared.identity(&persona.persona.user);
    let joined: BTreeSet<OwnedRoomId> = shared.client.joined_rooms(identity).await?.into_iter().collect();
    let mut outcome = Outcome::default();
    let seated: BTreeSet<OwnedRoomId> = {
        let directory = shared.directory();
        directory.seated().into_iter().filter(|room| directory.sits(&persona.persona.id, room)).collect()
    };
    let control = shared.store.control_room()?;
    for room in joined.difference(&seated).filter(|room| Some(*room) != control.as_ref()) {
        outcome.note(sit_down(shared, id, identity, room).await)?;
    }
    for room in joined.intersection(&seated) {
        let row = unlisted(shared, persona, room);
        if let Some(row) = row {
            take_seat(shared, row, None).await?;
        }
    }
    for room in seated.difference(&joined) {
        outcome.note(stand_up(shared, id, identity, room).await)?;
    }
    outcome.note(mark_direct(shared, id, identity, &joined).await)?;
    outcome.0.map_or(Ok(()), |error| Err(error.into()))
}

/// The last call that failed, if one did.
#[derive(Default)]
struct Outcome(Option<CallError>);

impl Outcome {
    fn note(&mut self, done: Result<(), Failed>) -> Result<(), BridgeError> {
        match done {
            Ok(()) => {}
            Err(Failed::Call(error)) => self.0 = Some(error),
            Err(Failed::Bridge(error)) => return Err(error),
        }
        Ok(())
    }
}

/// Marks her direct rooms as such with the server, once in each run: a store that is made anew knows them by that.
async fn mark_direct(
    shared: &Arc<Shared>,
    id: &PersonaId,
    identity: &Identity,
    joined: &BTreeSet<OwnedRoomId>,
) -> Result<(), Failed> {
    let directs = shared.directory().directs(id).into_iter().filter(|(room, _)| joined.contains(room));
    let unmarked: Vec<_> = directs.filter(|(room, _)| !shared.is_marked_direct(id, room)).collect();
    if unmarked.is_empty() {
        return Ok(());
    }
    let marked = shared.client.direct_rooms(identity).await?;
    for (room, with) in unmarked {
        if let Some(with) = with.filter(|_| !marked.contains(&room)) {
            let _one = shared.direct.lock().await;
            shared.client.mark_direct(identity, &with, &room).await?;
        }
        shared.note_marked_direct(id, &room);
    }
    Ok(())
}

/// Her seat in a room whose members could not be read, or, as last read, do not list her: she was invited and has joined
/// since.
fn unlisted(shared: &Shared, persona: &PersonaConfig, room: &OwnedRoomId) -> Option<SeatRow> {
    let unread = shared.memberless().contains(room);
    let directory = shared.directory();
    let lacks = |known: &&Room| unread || !known.members.contains_key(&persona.persona.user);
    let known = directory.room(room).filter(lacks)?;
    let lane = known.seats.get(&persona.persona.id)?.lane.clone();
    Some(SeatRow { persona: persona.persona.id.clone(), room: room.clone(), lane, invite: None, line: None })
}

/// She is in a room that the store does not know: heard already by the config or by others, direct, default register, or left
/// alone and told.
async fn sit_down(
    shared: &Arc<Shared>,
    persona: &PersonaId,
    identity: &Identity,
    room: &OwnedRoomId,
) -> Result<(), Failed> {
    if upgrade::is_left_behind(shared, persona, identity, room).await? {
        return Ok(());
    }
    let (heard, is_awaited) = {
        let directory = shared.directory();
        (directory.lane(room).cloned(), directory.awaited(persona, room).is_some())
    };
    if is_awaited {
        // She has joined it to follow, and is seated once that is done.
        return Ok(());
    }
    let lane = match heard {
        Some(lane) => lane,
        None => {
            // Where it cannot be read she is seated by the next pass: a direct chat must never share a lane.
            if shared.client.direct_rooms(identity).await?.contains(room) {
                Lane::Direct(room.clone())
            } else if let Some(register) = &shared.config.default_register {
                Lane::Register(register.clone())
            } else {
                let text = format!(
                    "{persona} is in {room}, which is no room of the config and no direct chat: unheard"
                );
                return Ok(shared.tell(&format!("unheard:{persona}:{room}"), &text).await?);
            }
        }
    };
    let row = SeatRow { persona: persona.clone(), room: room.clone(), lane, invite: None, line: None };
    Ok(take_seat(shared, row, None).await?)
}

/// She is not joined where she has a seat: an invite that waits keeps it, a leave or ban ends it.
async fn stand_up(
    shared: &Arc<Shared>,
    persona: &PersonaId,
    identity: &Identity,
    room: &OwnedRoomId,
) -> Result<(), Failed> {
    let membership = shared.client.membership(identity, room).await?;
    if !matches!(membership, Some(Membership::Leave | Membership::Ban)) {
        return Ok(());
    }
    // Some servers tell nothing of an invite that waits.
    let invites = shared.client.pending_invites(identity).await?;
    if invites.iter().any(|invite| invite.room == *room) {
        return Ok(());
    }
    shared.directory().unseat(persona, room);
    let dropped = shared.store.unseat(persona, identity.user.clone(), room.clone()).await?;
    let text = format!(
        "{persona} is not in {room} any more and comes back only by invite; {dropped} unsent messages were dropped"
    );
    Ok(shared.tell(&format!("gone:{persona}:{room}:{}", shared.clock.now().0), &text).await?)
}
