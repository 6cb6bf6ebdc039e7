//! Acts on decided invites: joins, or refuses with the reason; alike for those pushed and those found by asking.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ruma::OwnedRoomId;
use tokio::sync::mpsc;

use super::BridgeError;
use super::calls::{Failed, patiently};
use super::rooms::{self, take_seat};
use super::shared::{InviteWork, Shared};
use super::translate::decide_invite;
use crate::conversation::invite::Decision;
use crate::conversation::{Lane, PersonaId};
use crate::homeserver::client::{CallError, CallErrorKind, PendingInvite};
use crate::store::SeatRow;

/// An invite that is being acted on: whose and where, and how it went.
type Acting = BoxFuture<'static, ((PersonaId, OwnedRoomId), Result<(), BridgeError>)>;

/// Acts on invites, none waiting for another, until the service has drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut work: mpsc::UnboundedReceiver<InviteWork>,
) -> Result<(), BridgeError> {
    let mut acting: FuturesUnordered<Acting> = FuturesUnordered::new();
    let mut in_hand: BTreeSet<(PersonaId, OwnedRoomId)> = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = shared.drained.cancelled() => return Ok(()),
            Some((invite, done)) = acting.next(), if !acting.is_empty() => {
                in_hand.remove(&invite);
                done?;
            }
            Some(work) = work.recv() => {
                let invite = (work.persona.clone(), work.room.clone());
                if in_hand.insert(invite.clone()) {
                    let shared = shared.clone();
                    acting.push(Box::pin(async move { (invite, act(&shared, work).await) }));
                }
            }
        }
    }
}

async fn act(shared: &Arc<Shared>, work: InviteWork) -> Result<(), BridgeError> {
    let InviteWork { persona, room, inviter, mut decision } = work;
    let Some(user) = shared.user_of(&persona) else { return Ok(()) };
    let identity = shared.identity(&user);
    if matches!(decision, Decision::Refuse(_)) {
        rooms::look_for_unjoined(shared).await;
        decision = decide_invite(shared, &shared.directory(), &room, &inviter, false);
    }
    match decision {
        Decision::Accept(lane) => {
            match patiently(shared, || shared.client.join(&identity, &room)).await {
                None => return Ok(()),
                Some(Ok(())) => {}
                Some(Err(error)) => return unwelcome(shared, &persona, &user, &room, &error).await,
            }
            tracing::info!(%persona, %room, "joined by invite");
            if matches!(lane, Lane::Direct(_)) {
                let _one = shared.direct.lock().await;
                if let Err(error) = shared.client.mark_direct(&identity, &inviter, &room).await {
                    tracing::debug!(%error, %room, "m.direct was not set");
                }
            }
            take_seat(shared, SeatRow { persona, room, lane, invite: None, line: None }, None).await
        }
        Decision::Refuse(reason) => {
            let left = patiently(shared, || shared.client.leave(&identity, &room, reason)).await;
            match left {
                Some(Err(error)) => tracing::warn!(%persona, %room, %error, "an invite could not be refused"),
                Some(Ok(())) => tracing::info!(%persona, %room, %inviter, reason, "an invite is refused"),
                None => {}
            }
            Ok(())
        }
    }
}

/// The join was refused: the invite was taken back, or the room does not let her in.
async fn unwelcome(
    shared: &Arc<Shared>,
    persona: &PersonaId,
    user: &ruma::OwnedUserId,
    room: &OwnedRoomId,
    error: &CallError,
) -> Result<(), BridgeError> {
    tracing::warn!(%persona, %room, %error, "she could not join by her invite");
    if matches!(error.kind, CallErrorKind::Forbidden | CallErrorKind::NotFound) {
        shared.directory().unseat(persona, room);
        shared.store.unseat(persona, user.clone(), room.clone()).await?;
    }
    Ok(())
}

/// Decides the invites that a Persona has waiting at the server, as one that is pushed is decided; answers whether all
/// could be asked for.
pub(crate) async fn ask(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    let mut good = true;
    for persona in &shared.config.personas {
        match ask_for(shared, &persona.persona.id).await {
            Ok(()) => {}
            Err(Failed::Call(error)) => {
                tracing::debug!(%error, "pending invites could not be read");
                good = false;
            }
            Err(Failed::Bridge(error)) => return Err(error),
        }
    }
    Ok(good)
}

/// Decides the invites that one Persona has waiting.
pub(crate) async fn ask_for(shared: &Arc<Shared>, persona: &PersonaId) -> Result<(), Failed> {
    let Some(user) = shared.user_of(persona) else { return Ok(()) };
    for invite in shared.client.pending_invites(&shared.identity(&user)).await? {
        decide(shared, persona, invite).await?;
    }
    Ok(())
}

/// Her seat is taken before she joins, so that a crash in between loses neither the lane nor what is said meanwhile.
async fn decide(shared: &Arc<Shared>, persona: &PersonaId, invite: PendingInvite) -> Result<(), BridgeError> {
    let PendingInvite { room, sender, is_direct, event } = invite;
    let decision = decide_invite(shared, &shared.directory(), &room, &sender, is_direct);
    if let Decision::Accept(lane) = &decision {
        let (persona, room, lane) = (persona.clone(), room.clone(), lane.clone());
        let row = SeatRow { persona, room, lane, invite: event, line: None };
        shared.store.seat(row.clone(), None).await?;
        shared.directory().seat(&row);
    }
    let work = InviteWork { persona: persona.clone(), room, inviter: sender, decision };
    // The inviter's task ends only with the service.
    let _ = shared.invites.send(work);
    Ok(())
}
