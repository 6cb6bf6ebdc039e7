//! Registers the bot and the Personas and settles how each of them speaks.

use std::sync::Arc;

use ruma::{OwnedUserId, UserId};

use super::BridgeError;
use super::calls::{fatal, patiently, unlimited};
use super::shared::Shared;
use crate::homeserver::client::{CallError, CallErrorKind, Identity, Mode, probe_mode};
use crate::store::IdentityRow;

/// Every user of ours has this one device; it makes transaction ids last across restarts of the homeserver.
const DEVICE: &str = "PERSONA_BRIDGE";

const NAMESPACE: &str = "the registration's namespace does not cover it: compare [homeserver] server_name, [appservice] \
                         user_prefix and the registration, then restart the homeserver";

/// Registers, probes and dresses everyone; answers false when the service stops meanwhile.
pub(crate) async fn establish(shared: &Arc<Shared>) -> Result<bool, BridgeError> {
    let mut users: Vec<(OwnedUserId, Option<String>, Option<String>)> =
        vec![(shared.config.bot.clone(), Some("persona-bridge".to_owned()), None)];
    for persona in &shared.config.personas {
        users.push((
            persona.persona.user.clone(),
            Some(persona.persona.name.clone()),
            persona.avatar.clone(),
        ));
    }
    for (index, (user, name, avatar)) in users.into_iter().enumerate() {
        let client = &shared.client;
        match patiently(shared, || client.register(user.localpart())).await {
            None => return Ok(false),
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(fatal(error, NAMESPACE)),
        }
        if index == 0 && !probe(shared, &user).await? {
            return Ok(false);
        }
        if !settle(shared, &user).await? {
            return Ok(false);
        }
        dress(shared, &user, name, avatar).await?;
    }
    shared.readiness.clear("homeserver");
    Ok(true)
}

/// Asks once which way this homeserver takes; what the store already holds decides, so that it never changes.
async fn probe(shared: &Shared, bot: &UserId) -> Result<bool, BridgeError> {
    if let Some(row) = shared.store.identity(&bot.to_owned())? {
        shared.set_mode(if row.token.is_some() { Mode::Token } else { Mode::Masquerade });
        return Ok(true);
    }
    let client = &shared.client;
    match patiently(shared, || probe_mode(client, bot, DEVICE)).await {
        None => Ok(false),
        Some(Ok(mode)) => {
            tracing::info!(?mode, "the homeserver's way of speaking as a Persona");
            shared.set_mode(mode);
            Ok(true)
        }
        Some(Err(error)) => Err(fatal(error, NAMESPACE)),
    }
}

/// Gives the user her device, and her token where the server needs one.
async fn settle(shared: &Shared, user: &OwnedUserId) -> Result<bool, BridgeError> {
    let row = shared.store.identity(user)?;
    let row = match row {
        Some(row) => row,
        None => {
            let made = patiently(shared, || make(shared, user)).await;
            let token = match made {
                None => return Ok(false),
                Some(Ok(token)) => token,
                Some(Err(error)) => return Err(fatal(error, NAMESPACE)),
            };
            let row =
                IdentityRow { user: user.clone(), device: DEVICE.to_owned(), token, profile: (None, None) };
            shared.store.set_identity(row.clone()).await?;
            row
        }
    };
    shared.set_identity(identity(&row));
    Ok(true)
}

async fn make(shared: &Shared, user: &UserId) -> Result<Option<String>, CallError> {
    match shared.mode() {
        Mode::Masquerade => shared.client.put_device(user, DEVICE).await.map(|()| None),
        Mode::Token => shared.client.login(user, DEVICE).await.map(Some),
    }
}

fn identity(row: &IdentityRow) -> Identity {
    Identity { user: row.user.clone(), device: Some(row.device.clone()), token: row.token.clone() }
}

/// A user's own token was refused: logs in again with the same device. Without own tokens there is nothing to renew.
pub(crate) async fn renew(shared: &Shared, user: &OwnedUserId) {
    let known = shared.identity(user);
    if known.token.is_none() {
        if shared
            .readiness
            .say("token", "the homeserver refuses the appservice's token; restart it with our registration")
        {
            tracing::error!(
                "the homeserver refuses the appservice's token; is it running with this registration?"
            );
        }
        return;
    }
    match unlimited(shared, || shared.client.login(user, DEVICE)).await {
        Ok(token) => {
            let profile =
                shared.store.identity(user).ok().flatten().map(|row| row.profile).unwrap_or_default();
            let row =
                IdentityRow { user: user.clone(), device: DEVICE.to_owned(), token: Some(token), profile };
            shared.set_identity(identity(&row));
            if let Err(error) = shared.store.set_identity(row).await {
                tracing::error!(%error, "a renewed token could not be kept");
            }
        }
        Err(error) => tracing::warn!(%user, %error, "could not log in again"),
    }
}

/// Sets name and avatar where they differ from what was set last, and takes off the avatar that was; a refusal is told and forgotten.
async fn dress(
    shared: &Shared,
    user: &OwnedUserId,
    name: Option<String>,
    avatar: Option<String>,
) -> Result<(), BridgeError> {
    let Some(row) = shared.store.identity(user)? else { return Ok(()) };
    if row.profile == (name.clone(), avatar.clone()) {
        return Ok(());
    }
    let who = identity(&row);
    let mut set = true;
    if let Some(name) = &name {
        set &= shown(user, unlimited(shared, || shared.client.set_display_name(&who, name)).await);
    }
    match (&avatar, &row.profile.1) {
        (Some(avatar), _) => {
            set &= shown(user, unlimited(shared, || shared.client.set_avatar(&who, avatar)).await)
        }
        (None, Some(before)) => {
            set &= shown(user, unlimited(shared, || shared.client.clear_avatar(&who, before)).await)
        }
        (None, None) => {}
    }
    if set {
        shared.store.set_identity(IdentityRow { profile: (name, avatar), ..row }).await?;
    }
    Ok(())
}

fn shown(user: &UserId, result: Result<(), CallError>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.kind == CallErrorKind::Already => true,
        Err(error) => {
            tracing::warn!(%user, %error, "name or avatar could not be set; it is tried again at the next start");
            false
        }
    }
}
