//! The homeserver itself, and what belongs to a user rather than a room.

use std::time::Duration;

use ruma::api::client::account::{register, whoami};
use ruma::api::client::appservice::request_ping;
use ruma::api::client::config::{get_global_account_data, set_global_account_data};
use ruma::api::client::device::update_device;
use ruma::api::client::profile::{get_profile_field, set_profile_field};
use ruma::api::client::session::login;
use ruma::api::client::uiaa::UserIdentifier;
use ruma::events::GlobalAccountDataEventType;
use ruma::profile::{ProfileFieldName, ProfileFieldValue};
use ruma::serde::Raw;
use ruma::{OwnedUserId, RoomId, UserId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{Speaker, read};
use super::{CallErrorKind, Called, Client, Identity};

impl Client {
    /// GET /versions: the spec versions.
    pub async fn versions(&self) -> Called<Vec<String>> {
        #[derive(Deserialize)]
        struct Answer {
            versions: Vec<String>,
        }
        let url = format!("{}/_matrix/client/versions", self.url.as_str().trim_end_matches('/'));
        let mut request = http::Request::new(Vec::new());
        *request.uri_mut() = url.try_into().map_err(|_| super::call::unwritten("versions"))?;
        let body = self.carry("versions", request).await?;
        read::<Answer>("versions", &body).map(|answer| answer.versions)
    }

    /// whoami: the user and the device echoed.
    pub async fn whoami(&self, identity: &Identity) -> Called<(OwnedUserId, Option<String>)> {
        #[derive(Deserialize)]
        struct Answer {
            user_id: OwnedUserId,
            device_id: Option<String>,
        }
        let request = whoami::v3::Request::new();
        let answer: Answer = self.ask("whoami", Speaker::As(identity), request).await?;
        Ok((answer.user_id, answer.device_id))
    }

    /// Registers a user of the namespace without login; already so is success.
    pub async fn register(&self, localpart: &str) -> Called<()> {
        let mut request = register::v3::Request::new();
        request.username = Some(localpart.to_owned());
        request.login_type = Some(register::LoginType::ApplicationService);
        request.inhibit_login = true;
        match self.tell("register", Speaker::Appservice, request).await {
            Err(error) if error.kind == CallErrorKind::Already => Ok(()),
            outcome => outcome,
        }
    }

    /// PUT /devices/{device} as the user (masquerading).
    pub async fn put_device(&self, user: &UserId, device: &str) -> Called<()> {
        let mut request = update_device::v3::Request::new(device.into());
        request.display_name = Some("persona-bridge".to_owned());
        let identity = Identity { user: user.to_owned(), device: None, token: None };
        self.tell("put_device", Speaker::As(&identity), request).await
    }

    /// Appservice login: the token of the user's device.
    pub async fn login(&self, user: &UserId, device: &str) -> Called<String> {
        #[derive(Deserialize)]
        struct Answer {
            access_token: String,
        }
        let who = login::v3::ApplicationService::new(UserIdentifier::Matrix(user.to_owned().into()));
        let mut request = login::v3::Request::new(login::v3::LoginInfo::ApplicationService(who));
        request.device_id = Some(device.into());
        request.initial_device_display_name = Some("persona-bridge".to_owned());
        let answer: Answer = self.ask("login", Speaker::Appservice, request).await?;
        Ok(answer.access_token)
    }

    /// Asks the homeserver to ping us back.
    pub async fn ping(&self, appservice: &str, txn: &str) -> Called<Duration> {
        #[derive(Deserialize)]
        struct Answer {
            duration_ms: u64,
        }
        let mut request = request_ping::v1::Request::new(appservice.to_owned());
        request.transaction_id = Some(txn.into());
        let answer: Answer = self.ask("ping", Speaker::Appservice, request).await?;
        Ok(Duration::from_millis(answer.duration_ms))
    }

    /// Sets the display name if it differs.
    pub async fn set_display_name(&self, identity: &Identity, name: &str) -> Called<()> {
        let value = ProfileFieldValue::DisplayName(name.to_owned());
        self.set_profile("set_display_name", identity, value).await
    }

    /// Sets the avatar (an `mxc://` URI) if it differs.
    pub async fn set_avatar(&self, identity: &Identity, mxc: &str) -> Called<()> {
        self.set_profile("set_avatar", identity, ProfileFieldValue::AvatarUrl(mxc.into())).await
    }

    /// Takes the avatar off if it is still `mxc`; another one is somebody else's.
    pub async fn clear_avatar(&self, identity: &Identity, mxc: &str) -> Called<()> {
        let call = "clear_avatar";
        if self.profile(call, identity, ProfileFieldName::AvatarUrl).await?.as_deref() != Some(mxc) {
            return Ok(());
        }
        let none = ProfileFieldValue::AvatarUrl("".into());
        let request = set_profile_field::v3::Request::new(identity.user.clone(), none);
        self.tell(call, Speaker::As(identity), request).await
    }

    /// Writes only a difference: each write is a member event in every room.
    async fn set_profile(
        &self,
        call: &'static str,
        identity: &Identity,
        value: ProfileFieldValue,
    ) -> Called<()> {
        let field = value.field_name();
        if self.profile(call, identity, field.clone()).await?.as_deref() == value.value().as_str() {
            return Ok(());
        }
        let request = set_profile_field::v3::Request::new(identity.user.clone(), value);
        self.tell(call, Speaker::As(identity), request).await
    }

    async fn profile(
        &self,
        call: &'static str,
        identity: &Identity,
        field: ProfileFieldName,
    ) -> Called<Option<String>> {
        let request = get_profile_field::v3::Request::new(identity.user.clone(), field.clone());
        match self.ask::<_, Value>(call, Speaker::As(identity), request).await {
            Ok(profile) => Ok(profile.get(field.as_str()).and_then(Value::as_str).map(str::to_owned)),
            Err(error) if error.kind == CallErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds a room to the user's own `m.direct`.
    ///
    /// It reads, then writes: two calls for one user at once may lose one of the rooms.
    pub async fn mark_direct(&self, identity: &Identity, with: &UserId, room: &RoomId) -> Called<()> {
        let kind = GlobalAccountDataEventType::Direct;
        let request = get_global_account_data::v3::Request::new(identity.user.clone(), kind.clone());
        let before = match self.ask::<_, Value>("mark_direct", Speaker::As(identity), request).await {
            Ok(before) => before,
            Err(error) if error.kind == CallErrorKind::NotFound => Value::Null,
            Err(error) => return Err(error),
        };
        let Some(after) = with_direct(before, with, room) else { return Ok(()) };
        let empty = Raw::from_json(RawValue::NULL.to_owned());
        let request = set_global_account_data::v3::Request::new_raw(identity.user.clone(), kind, empty);
        let _: Value =
            self.ask_with("mark_direct", Speaker::As(identity), request, &after.to_string()).await?;
        Ok(())
    }
}

/// The direct rooms with one more; `None` where it is there already. What cannot be read begins anew.
fn with_direct(before: Value, with: &UserId, room: &RoomId) -> Option<Value> {
    let mut direct = match before {
        Value::Object(direct) => direct,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            serde_json::Map::new()
        }
    };
    let rooms = direct.entry(with.as_str()).or_insert_with(|| Value::Array(Vec::new()));
    if !rooms.is_array() {
        *rooms = Value::Array(Vec::new());
    }
    let rooms = rooms.as_array_mut()?;
    if rooms.iter().any(|known| known.as_str() == Some(room.as_str())) {
        return None;
    }
    rooms.push(Value::String(room.to_string()));
    Some(Value::Object(direct))
}

#[cfg(test)]
mod tests {
    use ruma::{room_id, user_id};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, expect: Option<Value>) {
        assert_eq!(with_direct(before, user_id!("@a:x"), room_id!("!r:x")), expect);
    }

    #[test]
    fn a_direct_room_is_added_beside_the_others() {
        check(Value::Null, Some(json!({ "@a:x": ["!r:x"] })));
        check(json!({ "@b:x": ["!o:x"] }), Some(json!({ "@a:x": ["!r:x"], "@b:x": ["!o:x"] })));
        check(json!({ "@a:x": ["!o:x"] }), Some(json!({ "@a:x": ["!o:x", "!r:x"] })));
        check(json!({ "@a:x": ["!r:x", "!o:x"] }), None);
        check(json!({ "@a:x": 1 }), Some(json!({ "@a:x": ["!r:x"] })));
        check(json!([1]), Some(json!({ "@a:x": ["!r:x"] })));
    }
}
