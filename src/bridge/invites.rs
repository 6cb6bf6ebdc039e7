//! Acts on decided invites: joins, or refuses with the reason; alike for those pushed and those found by asking.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ruma::{OwnedRoomId, OwnedUserId};
use tokio::sync::mpsc;

use super::BridgeError;
use super::calls::{Failed, patiently};
use super::rooms::{self, take_seat};
use super::shared::{InviteWork, Poke, Shared};
use super::translate::{decide_invite, level};
use crate::conversation::invite::{self, Decision};
use crate::conversation::{Lane, PersonaId};
use crate::homeserver::client::{CallError, CallErrorKind, Identity, PendingInvite};
use crate::store::SeatRow;

/// An invite that is being acted on: whose and where, and how it went.
type Acting = BoxFuture<'static, ((OwnedUserId, OwnedRoomId), Result<(), BridgeError>)>;

/// Acts on invites, none waiting for another, until the service has drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut work: mpsc::UnboundedReceiver<InviteWork>,
) -> Result<(), BridgeError> {
    let mut acting: FuturesUnordered<Acting> = FuturesUnordered::new();
    let mut in_hand: BTreeSet<(OwnedUserId, OwnedRoomId)> = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = shared.drained.cancelled() => return Ok(()),
            Some((invite, done)) = acting.next(), if !acting.is_empty() => {
                in_hand.remove(&invite);
                done?;
            }
            Some(work) = work.recv() => {
                let invite = (work.user.clone(), work.room.clone());
                if in_hand.insert(invite.clone()) {
                    let shared = shared.clone();
                    acting.push(Box::pin(async move { (invite, act(&shared, work).await) }));
                }
            }
        }
    }
}

async fn act(shared: &Arc<Shared>, work: InviteWork) -> Result<(), BridgeError> {
    let InviteWork { user, room, inviter, is_direct } = work;
    let persona = shared.directory().persona(&user).map(|persona| persona.id.clone());
    let Some(persona) = persona else { return act_as_bot(shared, &room, &inviter, is_direct).await };
    let identity = shared.identity(&user);
    let mut decision = decide_invite(shared, &shared.directory(), &room, &inviter, is_direct);
    if matches!(decision, Decision::Refuse(_)) {
        rooms::look_for_unjoined(shared).await;
        decision = decide_invite(shared, &shared.directory(), &room, &inviter, is_direct);
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
                match shared.client.mark_direct(&identity, &inviter, &room).await {
                    Ok(()) => shared.note_marked_direct(&persona, &room),
                    Err(error) => tracing::debug!(%error, %room, "m.direct is left to the next pass"),
                }
            }
            take_seat(shared, SeatRow { persona, room, lane, invite: None, line: None }, None).await
        }
        Decision::Refuse(reason) => {
            refuse(shared, &identity, &room, reason).await;
            Ok(())
        }
    }
}

/// The bot comes where an admin wants it, and to direct chats; all others are told whom to invite instead.
async fn act_as_bot(
    shared: &Arc<Shared>,
    room: &OwnedRoomId,
    inviter: &OwnedUserId,
    is_direct: bool,
) -> Result<(), BridgeError> {
    let identity = shared.identity(&shared.config.bot);
    let level = level(&shared.directory(), inviter);
    if let Err(reason) = invite::decide_for_bot(level, is_direct) {
        refuse(shared, &identity, room, reason).await;
        return Ok(());
    }
    match patiently(shared, || shared.client.join(&identity, room)).await {
        Some(Ok(())) => tracing::info!(%room, %inviter, "the bot joined by its invite"),
        Some(Err(error)) => tracing::warn!(%room, %error, "the bot could not join by its invite"),
        None => {}
    }
    Ok(())
}

async fn refuse(shared: &Shared, identity: &Identity, room: &OwnedRoomId, reason: &str) {
    let user = &identity.user;
    match patiently(shared, || shared.client.leave(identity, room, reason)).await {
        Some(Err(error)) => tracing::warn!(%user, %room, %error, "an invite could not be refused"),
        Some(Ok(())) => tracing::info!(%user, %room, reason, "an invite is refused"),
        None => {}
    }
}

/// The join was refused: the invite was taken back, or the room does not let her in.
async fn unwelcome(
    shared: &Arc<Shared>,
    persona: &PersonaId,
    user: &OwnedUserId,
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

/// Acts on the invites that a user of ours has waiting at the server, as on one that is pushed.
pub(crate) async fn ask_for(shared: &Arc<Shared>, user: &OwnedUserId) -> Result<(), Failed> {
    for invite in shared.client.pending_invites(&shared.identity(user)).await? {
        take(shared, user, invite).await?;
    }
    Ok(())
}

/// Her seat is taken before she joins, so that a crash in between loses neither the lane nor what is said meanwhile.
async fn take(shared: &Arc<Shared>, user: &OwnedUserId, invite: PendingInvite) -> Result<(), BridgeError> {
    let PendingInvite { room, sender, is_direct, event } = invite;
    let row = {
        let directory = shared.directory();
        let awaited = directory.persona(user).and_then(|persona| directory.awaited(&persona.id, &room));
        if let Some(old) = awaited {
            shared.poke(Poke::Room(old.clone()));
            return Ok(());
        }
        let decision = decide_invite(shared, &directory, &room, &sender, is_direct);
        let persona = directory.persona(user).map(|persona| persona.id.clone());
        persona.zip(decision.lane()).map(|(persona, lane)| SeatRow {
            persona,
            room: room.clone(),
            lane,
            invite: event,
            line: None,
        })
    };
    if let Some(row) = row {
        shared.store.seat(row.clone(), None).await?;
        shared.directory().seat(&row);
    }
    let work = InviteWork { user: user.clone(), room, inviter: sender, is_direct };
    // The inviter's task ends only with the service.
    let _ = shared.invites.send(work);
    Ok(())
}
