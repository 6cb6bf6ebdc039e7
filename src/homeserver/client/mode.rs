//! Which way a homeserver lets its ghosts speak.

use ruma::{OwnedUserId, UserId};

use super::{CallErrorKind, Called, Client, Identity, Mode};

/// Asks how the homeserver lets a registered ghost speak.
///
/// The rule: make the device (`PUT /devices`), then ask whoami with `user_id` and `device_id`. A homeserver that
/// echoes the device binds transaction ids to it, durably: [`Mode::Masquerade`]. One that refuses the device or
/// echoes another or none (Conduit, whose `/messages`, `/context` and `/sync` fail under masquerading): [`Mode::Token`].
///
/// # Errors
/// The homeserver is away, or does not let us be this user at all.
pub async fn probe_mode(client: &Client, user: &UserId, device: &str) -> Called<Mode> {
    match client.put_device(user, device).await {
        Err(error) if unsupported(error.kind) => return Ok(Mode::Token),
        outcome => outcome?,
    }
    match client.whoami(&masquerade(user.to_owned(), device)).await {
        Ok((echoed_user, Some(echoed))) if echoed_user == user && echoed == device => Ok(Mode::Masquerade),
        Ok(_) => Ok(Mode::Token),
        Err(error) if unsupported(error.kind) => Ok(Mode::Token),
        Err(error) => Err(error),
    }
}

fn masquerade(user: OwnedUserId, device: &str) -> Identity {
    Identity { user, device: Some(device.to_owned()), token: None }
}

fn unsupported(kind: CallErrorKind) -> bool {
    matches!(kind, CallErrorKind::NotFound | CallErrorKind::Refused)
}
