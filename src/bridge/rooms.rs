//! The rooms that the config names, and the bot's control room that ties the store to this homeserver.

use std::sync::Arc;

use ruma::{OwnedRoomAliasId, OwnedRoomId, OwnedUserId, RoomAliasId};

use super::calls::{Failed, fatal, patiently, unlimited};
use super::encryption;
use super::shared::Shared;
use super::{BridgeError, PersonaConfig, RoomKind};
use crate::conversation::{Level, PersonaId};
use crate::homeserver::client::{CallError, CallErrorKind, CreateRoom, Identity};
use crate::store::SeatRow;

/// Finds the control room, or makes it for a new store; answers false when the service stops meanwhile.
pub(crate) async fn control(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    let bot = shared.identity(&shared.config.bot);
    if let Some(room) = shared.store.control_room()? {
        let joined = patiently(shared, || shared.client.joined_rooms(&bot)).await;
        return match joined {
            None => Ok(false),
            Some(Ok(rooms)) if rooms.contains(&room) => {
                invite_admins(shared, &bot, &room).await?;
                Ok(true)
            }
            Some(Ok(_)) => Err(BridgeError::ControlRoomGone { room }),
            Some(Err(error)) => Err(fatal(error, "the bot's rooms cannot be listed")),
        };
    }
    let alias = format!("{}control-{}", shared.config.user_prefix, shared.store.epoch().simple());
    let wanted = CreateRoom {
        alias_localpart: Some(alias.clone()),
        name: Some("persona-bridge".to_owned()),
        invite: admins(shared),
        ..CreateRoom::default()
    };
    match patiently(shared, || make(shared, &bot, &alias, wanted.clone())).await {
        None => Ok(false),
        Some(Ok(room)) => {
            tracing::info!(%room, "the control room of a new store");
            shared.store.set_control_room(room).await?;
            for admin in admins(shared) {
                shared.store.say_once(invited(&admin), Vec::new(), shared.clock.now()).await?;
            }
            Ok(true)
        }
        Some(Err(error)) => {
            Err(fatal(error, "the control room cannot be made: is the alias namespace registered?"))
        }
    }
}

/// Invites admins whom the config names since; each once ever, for who has left is not invited again.
async fn invite_admins(shared: &Shared, bot: &Identity, room: &OwnedRoomId) -> Result<(), BridgeError> {
    for admin in admins(shared) {
        if !shared.store.say_once(invited(&admin), Vec::new(), shared.clock.now()).await? {
            continue;
        }
        if let Err(error) = shared.client.invite(bot, room, &admin).await {
            tracing::warn!(%admin, %error, "an admin could not be invited to the control room");
        }
    }
    Ok(())
}

/// The fact that an admin was invited to the control room.
fn invited(admin: &OwnedUserId) -> String {
    format!("invited:{admin}")
}

/// The people whom the config names as admins.
fn admins(shared: &Shared) -> Vec<OwnedUserId> {
    let named = shared.config.permissions.0.iter().filter(|(_, level)| **level == Level::Admin);
    named.filter_map(|(who, _)| OwnedUserId::try_from(who.as_str()).ok()).collect()
}

async fn make(
    shared: &Shared,
    bot: &Identity,
    alias: &str,
    wanted: CreateRoom,
) -> Result<OwnedRoomId, CallError> {
    match shared.client.create_room(bot, wanted).await {
        Err(error) if error.kind == CallErrorKind::Already => {
            let alias = RoomAliasId::parse(format!("#{alias}:{}", shared.config.server_name));
            match alias {
                Ok(alias) => shared.client.resolve(&alias).await,
                Err(_) => Err(error),
            }
        }
        other => other,
    }
}

/// Seats every Persona in her configured rooms; what cannot be joined is told and tried again.
pub(crate) async fn configured(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    for persona in &shared.config.personas {
        for alias in &persona.rooms {
            let Some(kind) = shared.config.rooms.get(alias) else { continue };
            if shared.soft.is_cancelled() {
                return Ok(false);
            }
            if let Err(error) = seat(shared, persona, alias, kind).await? {
                shared.unjoined().insert((persona.persona.id.clone(), alias.clone()));
                know(shared, alias, kind).await;
                let text = format!("{} cannot join {alias}: {error}", persona.persona.user);
                shared.tell(&format!("join:{}:{alias}", persona.persona.id), &text).await?;
            }
        }
    }
    Ok(true)
}

/// Tries again, as often as rooms are read back, what could not be joined at start; until the service has drained.
pub(crate) async fn join_late(shared: Arc<Shared>) -> Result<(), BridgeError> {
    loop {
        let next = shared.clock.now().plus(shared.config.reconcile);
        tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            () = shared.clock.sleep_until(Some(next)) => {}
        }
        tokio::select! {
            () = shared.drained.cancelled() => return Ok(()),
            done = unjoined(&shared) => done?,
        }
    }
}

/// Where she came in by an invite meanwhile, nothing is left to do.
async fn unjoined(shared: &Arc<Shared>) -> Result<(), BridgeError> {
    let waiting = shared.unjoined().clone();
    for (id, alias) in waiting {
        let persona = shared.config.personas.iter().find(|persona| persona.persona.id == id);
        let (Some(persona), Some(kind)) = (persona, shared.config.rooms.get(&alias)) else { continue };
        know(shared, &alias, kind).await;
        if seat(shared, persona, &alias, kind).await?.is_ok() {
            shared.unjoined().remove(&(id, alias));
        }
    }
    Ok(())
}

/// Looks whether configured rooms that could not be joined exist by now.
pub(crate) async fn look_for_unjoined(shared: &Shared) {
    let waiting = shared.unjoined().clone();
    for (_, alias) in waiting {
        if let Some(kind) = shared.config.rooms.get(&alias) {
            know(shared, &alias, kind).await;
        }
    }
}

/// A configured room that lets nobody in is known all the same, so that an invite to it is taken.
async fn know(shared: &Shared, alias: &OwnedRoomAliasId, kind: &RoomKind) {
    match shared.client.resolve(alias).await {
        Ok(room) => shared.directory().configure(&room, alias.as_str(), kind),
        Err(error) => tracing::debug!(%alias, %error, "a configured room is not there"),
    }
}

async fn seat(
    shared: &Arc<Shared>,
    persona: &PersonaConfig,
    alias: &OwnedRoomAliasId,
    kind: &RoomKind,
) -> Result<Result<(), CallError>, BridgeError> {
    let identity = shared.identity(&persona.persona.user);
    let id = &persona.persona.id;
    let been_in = shared.directory().been_in(id, alias.as_str());
    if !been_in.is_empty() {
        match returned(shared, &identity, alias, &been_in).await {
            None | Some(Ok(Returned::Away)) => return Ok(Ok(())),
            Some(Ok(Returned::There(room))) => {
                take_seat(shared, seat_row(id, &room, kind), Some(alias.to_string())).await?;
                return Ok(Ok(()));
            }
            Some(Ok(Returned::Elsewhere)) => {}
            Some(Err(error)) => return Ok(Err(error)),
        }
    }
    let room = match by_alias(shared, || enter(shared, &identity, alias, kind)).await {
        None => return Ok(Ok(())),
        Some(Ok(room)) => room,
        Some(Err(error)) => return Ok(Err(error)),
    };
    shared.directory().configure(&room, alias.as_str(), kind);
    take_seat(shared, seat_row(id, &room, kind), Some(alias.to_string())).await?;
    Ok(Ok(()))
}

/// Tries a call about an alias until it is answered: a room whose own server is away fails like an outage of ours, and
/// nothing else waits for it.
async fn by_alias<T, F>(shared: &Shared, call: impl Fn() -> F) -> Option<Result<T, CallError>>
where
    F: Future<Output = Result<T, CallError>>,
{
    let once = || async {
        match call().await {
            Err(error) if error.kind == CallErrorKind::Server => Ok(Err(error)),
            answered => answered.map(Ok),
        }
    };
    patiently(shared, once).await.map(Result::flatten)
}

fn seat_row(persona: &PersonaId, room: &OwnedRoomId, kind: &RoomKind) -> SeatRow {
    let (persona, lane) = (persona.clone(), kind.lane(room));
    SeatRow { persona, room: room.clone(), lane, invite: None, line: None }
}

/// How a Persona finds a configured room in which she has been.
enum Returned {
    /// She is still in it.
    There(OwnedRoomId),
    /// She is not: a pass takes her seat away, and only an invite brings her back.
    Away,
    /// The alias leads to another room, or nowhere.
    Elsewhere,
}

/// Looks where she is before anything is joined: who was kicked, banned or left never joins by herself.
async fn returned(
    shared: &Shared,
    identity: &Identity,
    alias: &RoomAliasId,
    been_in: &[OwnedRoomId],
) -> Option<Result<Returned, CallError>> {
    let room = match by_alias(shared, || shared.client.resolve(alias)).await? {
        Ok(room) if been_in.contains(&room) => room,
        Ok(_) => return Some(Ok(Returned::Elsewhere)),
        Err(error) if error.kind == CallErrorKind::NotFound => return Some(Ok(Returned::Elsewhere)),
        Err(error) => return Some(Err(error)),
    };
    let joined = patiently(shared, || shared.client.joined_rooms(identity)).await?;
    Some(joined.map(|joined| if joined.contains(&room) { Returned::There(room) } else { Returned::Away }))
}

/// Joins a room by alias, making it first where it is missing and the alias is ours; a direct chat is somebody's.
async fn enter(
    shared: &Shared,
    identity: &Identity,
    alias: &RoomAliasId,
    kind: &RoomKind,
) -> Result<OwnedRoomId, CallError> {
    let makes = *kind != RoomKind::Direct && ours(shared, alias);
    match shared.client.join_alias(identity, alias).await {
        Err(error) if error.kind == CallErrorKind::NotFound && makes => {
            let localpart = alias.alias().to_owned();
            let wanted = CreateRoom {
                alias_localpart: Some(localpart.clone()),
                name: Some(
                    localpart.strip_prefix(&shared.config.user_prefix).unwrap_or(&localpart).to_owned(),
                ),
                public: true,
                ..CreateRoom::default()
            };
            make(shared, &shared.identity(&shared.config.bot), &localpart, wanted).await?;
            shared.client.join_alias(identity, alias).await
        }
        other => other,
    }
}

fn ours(shared: &Shared, alias: &RoomAliasId) -> bool {
    alias.server_name() == shared.config.server_name && alias.alias().starts_with(&shared.config.user_prefix)
}

/// Seats a Persona in a room she has joined: durably, with its members, and heard from now on.
pub(crate) async fn take_seat(
    shared: &Arc<Shared>,
    row: SeatRow,
    alias: Option<String>,
) -> Result<(), BridgeError> {
    let user = shared.user_of(&row.persona);
    shared.store.seat(row.clone(), alias).await?;
    shared.directory().seat(&row);
    let Some(user) = user else { return Ok(()) };
    let identity = shared.identity(&user);
    match unlimited(shared, || shared.client.joined_members(&identity, &row.room)).await {
        Ok(members) => {
            shared.directory().set_members(&row.room, &members);
            shared.store.set_members(row.room.clone(), members, shared.clock.now()).await?;
            shared.memberless().remove(&row.room);
        }
        Err(error) => {
            tracing::debug!(room = %row.room, %error, "the members could not be read; the next pass asks again");
            shared.memberless().insert(row.room.clone());
            shared.directory().joined(&row.room, &user);
        }
    }
    // Some servers say nothing of a room's state from before she came.
    match encryption::learn(shared, &row.room).await {
        Ok(()) => {}
        Err(Failed::Call(error)) => tracing::debug!(room = %row.room, %error, "its encryption is not known"),
        Err(Failed::Bridge(error)) => return Err(error),
    }
    shared.poke(super::shared::Poke::Room(row.room));
    Ok(())
}
