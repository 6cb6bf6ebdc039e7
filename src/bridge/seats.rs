//! Compares the seats with the server's word of who is where.

use std::collections::BTreeSet;
use std::sync::Arc;

use ruma::OwnedRoomId;

use super::rooms::take_seat;
use super::shared::Shared;
use super::{BridgeError, PersonaConfig};
use crate::conversation::{Lane, Membership, PersonaId};
use crate::homeserver::client::Identity;
use crate::store::SeatRow;

/// Seats Personas where they are joined and unseats them where they are not; answers whether all could be asked.
pub(crate) async fn compare(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    let mut good = true;
    for persona in &shared.config.personas {
        let identity = shared.identity(&persona.persona.user);
        match shared.client.joined_rooms(&identity).await {
            Ok(joined) => compare_one(shared, persona, &identity, joined.into_iter().collect()).await?,
            Err(error) => {
                tracing::debug!(persona = %persona.persona.id, %error, "joined rooms could not be read");
                good = false;
            }
        }
    }
    Ok(good)
}

async fn compare_one(
    shared: &Arc<Shared>,
    persona: &PersonaConfig,
    identity: &Identity,
    joined: BTreeSet<OwnedRoomId>,
) -> Result<(), BridgeError> {
    let seated: BTreeSet<OwnedRoomId> = {
        let directory = shared.directory();
        let sits = |room: &OwnedRoomId| {
            directory.room(room).is_some_and(|room| room.seats.contains_key(&persona.persona.id))
        };
        directory.seated().into_iter().filter(sits).collect()
    };
    let control = shared.store.control_room()?;
    for room in joined.difference(&seated).filter(|room| Some(*room) != control.as_ref()) {
        sit_down(shared, &persona.persona.id, identity, room).await?;
    }
    for room in joined.intersection(&seated) {
        let row = unlisted(shared, persona, room);
        if let Some(row) = row {
            take_seat(shared, row, None).await?;
        }
    }
    for room in seated.difference(&joined) {
        stand_up(shared, &persona.persona.id, identity, room).await?;
    }
    Ok(())
}

/// Her seat in a room whose members, as last read, do not list her: she was invited and has joined since.
fn unlisted(shared: &Shared, persona: &PersonaConfig, room: &OwnedRoomId) -> Option<SeatRow> {
    let directory = shared.directory();
    let known = directory.room(room).filter(|known| !known.members.contains_key(&persona.persona.user))?;
    let lane = known.seats.get(&persona.persona.id)?.lane.clone();
    Some(SeatRow { persona: persona.persona.id.clone(), room: room.clone(), lane, invite: None, line: None })
}

/// She is in a room that the store does not know: configured, direct, default register, or left alone and told.
async fn sit_down(
    shared: &Arc<Shared>,
    persona: &PersonaId,
    identity: &Identity,
    room: &OwnedRoomId,
) -> Result<(), BridgeError> {
    let configured = shared.directory().configured(room).cloned();
    let lane = match configured {
        Some(lane) => lane,
        None => {
            // Where it cannot be read she is seated by the next pass: a direct chat must never share a lane.
            let Ok(direct) = shared.client.direct_rooms(identity).await else { return Ok(()) };
            if direct.contains(room) {
                Lane::Direct(room.clone())
            } else if let Some(register) = &shared.config.default_register {
                Lane::Register(register.clone())
            } else {
                let text = format!(
                    "{persona} is in {room}, which is no room of the config and no direct chat: unheard"
                );
                return shared.tell(&format!("unheard:{persona}:{room}"), &text).await;
            }
        }
    };
    let row = SeatRow { persona: persona.clone(), room: room.clone(), lane, invite: None, line: None };
    take_seat(shared, row, None).await
}

/// She is not joined where she has a seat: an invite that waits keeps it, a leave or ban ends it.
async fn stand_up(
    shared: &Arc<Shared>,
    persona: &PersonaId,
    identity: &Identity,
    room: &OwnedRoomId,
) -> Result<(), BridgeError> {
    match shared.client.membership(identity, room).await {
        Ok(Some(Membership::Leave | Membership::Ban)) => {}
        _ => return Ok(()),
    }
    // Some servers tell nothing of an invite that waits.
    match shared.client.pending_invites(identity).await {
        Ok(invites) if !invites.iter().any(|invite| invite.room == *room) => {}
        _ => return Ok(()),
    }
    shared.directory().unseat(persona, room);
    let dropped = shared.store.unseat(persona, identity.user.clone(), room.clone()).await?;
    let text = format!(
        "{persona} is not in {room} any more and comes back only by invite; {dropped} unsent messages were dropped"
    );
    shared.tell(&format!("gone:{persona}:{room}:{}", shared.clock.now().0), &text).await
}
