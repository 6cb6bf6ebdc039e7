//! One try to send a say: what is asked before, and what its failure means.

use std::time::Duration;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::Trouble;
use crate::bridge::BridgeError;
use crate::bridge::calls::Failed;
use crate::bridge::encryption;
use crate::bridge::halt::Halt;
use crate::bridge::shared::Shared;
use crate::bridge::translate::level;
use crate::conversation::invite::Decision;
use crate::conversation::{Level, Membership};
use crate::homeserver::client::{CallError, CallErrorKind, Identity};
use crate::homeserver::event::answered_by;
use crate::store::{NewSay, Say};

/// What became of one try.
pub(super) enum Tried {
    Sent(OwnedEventId),
    Later {
        after: Option<Duration>,
        uncertain: bool,
        server_fault: bool,
        reached: bool,
    },
    /// Whom it answers is blocked by now, or all whose mail it comes of are.
    Unwanted,
    /// She was stopped there meanwhile: it waits.
    Stopped,
    TooLarge,
    /// It stands there already, as what event is not known.
    Done,
    Park(String),
    /// She is not in the room any more.
    Gone,
    /// Only our cache was stale: she has joined again.
    Rejoined,
}

/// One try: proof of an earlier one first where that is uncertain, then the PUT.
pub(super) async fn attempt(shared: &Shared, say: &Say, trouble: &Trouble) -> Result<Tried, BridgeError> {
    if let Some(event) = shared.store.sent_event(&say.say.request)? {
        return Ok(Tried::Sent(event));
    }
    if is_unwanted(shared, say)? {
        return Ok(Tried::Unwanted);
    }
    let identity = shared.identity(&say.say.sender);
    let NewSay { room, request, kind, body, cause, .. } = &say.say;
    if *cause != encryption::cause(room) {
        match encryption::is_encrypted(shared, &identity, room).await {
            Ok(false) => {}
            Ok(true) => return Ok(Tried::Park("the room is encrypted now".to_owned())),
            Err(Failed::Bridge(error)) => return Err(error),
            Err(Failed::Call(error)) => return unknown(shared, say, trouble, &error).await,
        }
    }
    if trouble.uncertain {
        match shared.client.find_sent(&identity, room, request, say.since.0).await {
            Ok(Some(event)) => return Ok(Tried::Sent(event)),
            Ok(None) => {}
            Err(error) if matches!(error.kind, CallErrorKind::Forbidden | CallErrorKind::NotFound) => {}
            Err(error) => return Ok(later(&error)),
        }
    }
    // Whoever stops her from here on waits for this.
    let _flight = shared.flights.begin(room);
    if !shared.may_speak(&say.say.sender, room) {
        return Ok(Tried::Stopped);
    }
    match shared.client.send(&identity, room, kind, request, body).await {
        Ok(event) => {
            Halt::AfterPut.reached(shared.config.halt.filter(|_| say.say.sender != shared.config.bot));
            Ok(Tried::Sent(event))
        }
        Err(error) => refused(shared, say, trouble, &error).await,
    }
}

/// Whether whom it answers is blocked by now, or all whose mail it comes of are.
fn is_unwanted(shared: &Shared, say: &Say) -> Result<bool, BridgeError> {
    let answered =
        answered_by(&say.say.body).map(|event| shared.store.said_by(&event)).transpose()?.flatten();
    let directory = shared.directory();
    let is_blocked = |user: &OwnedUserId| level(&directory, user) == Level::Block;
    let all = !say.owed_to.is_empty() && say.owed_to.iter().all(is_blocked);
    Ok(all || answered.as_ref().is_some_and(is_blocked))
}

/// Before it is known whether the room is encrypted nothing is sent; that is asked again for as long as it takes.
async fn unknown(
    shared: &Shared,
    say: &Say,
    trouble: &Trouble,
    error: &CallError,
) -> Result<Tried, BridgeError> {
    match error.kind {
        CallErrorKind::Forbidden | CallErrorKind::Unauthorized => refused(shared, say, trouble, error).await,
        CallErrorKind::Limited(_)
        | CallErrorKind::NotSent
        | CallErrorKind::Uncertain
        | CallErrorKind::Server
        | CallErrorKind::NotFound
        | CallErrorKind::TooLarge
        | CallErrorKind::Already
        | CallErrorKind::Refused => {
            let (after, reached) = waits(error);
            Ok(Tried::Later { after, uncertain: false, server_fault: false, reached })
        }
    }
}

/// The delay that the homeserver gave, if it did, and whether it was reached at all.
fn waits(error: &CallError) -> (Option<Duration>, bool) {
    let after = if let CallErrorKind::Limited(after) = error.kind { Some(after) } else { None };
    (after, !matches!(error.kind, CallErrorKind::NotSent | CallErrorKind::Uncertain))
}

fn later(error: &CallError) -> Tried {
    let (after, reached) = waits(error);
    Tried::Later {
        after,
        uncertain: matches!(error.kind, CallErrorKind::Uncertain | CallErrorKind::Server),
        server_fault: error.kind == CallErrorKind::Server,
        reached,
    }
}

async fn refused(
    shared: &Shared,
    say: &Say,
    trouble: &Trouble,
    error: &CallError,
) -> Result<Tried, BridgeError> {
    tracing::debug!(%error, room = %say.say.room, request = %say.say.request, "a say was not taken");
    Ok(match error.kind {
        CallErrorKind::Limited(_)
        | CallErrorKind::NotSent
        | CallErrorKind::Uncertain
        | CallErrorKind::Server => later(error),
        CallErrorKind::Unauthorized => {
            crate::bridge::identities::renew(shared, &say.say.sender).await;
            later(error)
        }
        CallErrorKind::TooLarge => Tried::TooLarge,
        CallErrorKind::Forbidden => forbidden(shared, say, trouble).await,
        // A duplicate annotation.
        CallErrorKind::Already => Tried::Done,
        CallErrorKind::NotFound | CallErrorKind::Refused => {
            Tried::Park(format!("the homeserver refused it ({} {})", error.status, error.errcode))
        }
    })
}

/// Reads her membership to tell a muted or upgraded room from one she has lost.
async fn forbidden(shared: &Shared, say: &Say, trouble: &Trouble) -> Tried {
    let identity = shared.identity(&say.say.sender);
    let room = &say.say.room;
    let invited = match shared.client.membership(&identity, room).await {
        Ok(Some(Membership::Join)) => {
            return Tried::Park("the room does not let her speak (muted or upgraded)".to_owned());
        }
        Ok(Some(Membership::Ban)) => return Tried::Gone,
        // Homeservers refuse the look to who is merely invited, too.
        Ok(Some(Membership::Leave | Membership::Invite | Membership::Knock) | None) => {
            is_welcome(shared, &identity, room).await
        }
        Err(error) => return later(&error),
    };
    match invited {
        Err(error) => later(&error),
        Ok(false) => Tried::Gone,
        Ok(true) if trouble.rejoined => Tried::Park("she cannot join the room".to_owned()),
        Ok(true) => match shared.client.join(&identity, room).await {
            Ok(()) => Tried::Rejoined,
            Err(error) if matches!(error.kind, CallErrorKind::Forbidden | CallErrorKind::NotFound) => {
                Tried::Gone
            }
            Err(error) => later(&error),
        },
    }
}

/// Whether an invite to the room waits for her that she would take.
async fn is_welcome(shared: &Shared, identity: &Identity, room: &OwnedRoomId) -> Result<bool, CallError> {
    let invites = shared.client.pending_invites(identity).await?;
    let Some(invite) = invites.into_iter().find(|invite| invite.room == *room) else { return Ok(false) };
    let directory = shared.directory();
    let decision =
        crate::bridge::translate::decide_invite(shared, &directory, room, &invite.sender, invite.is_direct);
    Ok(matches!(decision, Decision::Accept(_)))
}
