//! Accounts, devices, tokens and who a caller is.

use serde_json::{Value, json};

use super::Flavour;
use super::http::{Ask, Caller, Outcome, Refusal, no};
use super::state::State;

impl State {
    /// Who asks, by token and masquerading.
    pub(super) fn caller(&self, ask: &Ask) -> Result<Caller, Refusal> {
        let token = ask.token.as_deref().ok_or_else(|| no(401, "M_MISSING_TOKEN", "Missing access token"))?;
        if token == self.setup.as_token {
            return self.masquerade(ask.query("user_id"), ask.query("device_id"));
        }
        let unknown = || no(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.");
        let (user, device) = self.tokens.get(token).ok_or_else(unknown)?.clone();
        Ok(Caller { user, device: Some(device), masquerades: false })
    }

    fn masquerade(&self, user: Option<&str>, device: Option<&str>) -> Result<Caller, Refusal> {
        let user = user.map_or_else(|| self.bot(), str::to_owned);
        if !self.is_ours(&user) {
            return Err(match self.setup.flavour {
                Flavour::Synapse => no(
                    403,
                    "M_FORBIDDEN",
                    format!("Application service cannot masquerade as this user ({user})."),
                ),
                Flavour::Conduit => no(400, "M_EXCLUSIVE", "User is not in namespace."),
            });
        }
        let Some(known) = self.users.get(&user) else {
            let words = format!("Application service has not registered this user ({user})");
            return Err(no(403, "M_FORBIDDEN", words).or_conduit("User does not exist."));
        };
        let device = match self.setup.flavour {
            Flavour::Synapse => device,
            Flavour::Conduit => None,
        };
        if let Some(device) = device.filter(|device| !known.devices.contains(*device)) {
            let words = format!(
                "Application service trying to use a device that doesn't exist ('{device}' for {user})"
            );
            return Err(no(400, "M_UNKNOWN_DEVICE", words));
        }
        Ok(Caller { user, device: device.map(str::to_owned), masquerades: true })
    }

    fn is_appservice(&self, ask: &Ask) -> Result<(), Refusal> {
        match ask.token.as_deref() {
            Some(token) if token == self.setup.as_token => Ok(()),
            Some(_) => Err(no(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")),
            None => Err(no(401, "M_MISSING_TOKEN", "Missing access token")),
        }
    }

    pub(super) fn register(&mut self, ask: &Ask) -> Outcome {
        self.is_appservice(ask)?;
        let body = ask.json()?;
        let localpart = body["username"].as_str().unwrap_or_default();
        let user = format!("@{localpart}:{}", self.setup.server_name);
        if !self.is_ours(&user) {
            let words = "Invalid user localpart for this application service.";
            return Err(no(400, "M_EXCLUSIVE", words).or_conduit("User is not in namespace."));
        }
        let fresh = self.add_user(&user);
        if !fresh && self.users[&user].profile.contains_key("displayname") {
            return Err(no(400, "M_USER_IN_USE", "User ID already taken."));
        }
        self.name(&user, localpart);
        Ok(json!({ "user_id": user }))
    }

    /// Whether the user is new.
    pub(super) fn add_user(&mut self, user: &str) -> bool {
        let fresh = !self.users.contains_key(user);
        self.users.entry(user.to_owned()).or_default();
        fresh
    }

    pub(super) fn name(&mut self, user: &str, name: &str) {
        if let Some(user) = self.users.get_mut(user) {
            user.profile.insert("displayname".to_owned(), name.to_owned());
        }
    }

    pub(super) fn login(&mut self, ask: &Ask) -> Outcome {
        self.is_appservice(ask)?;
        let body = ask.json()?;
        let user = body["identifier"]["user"].as_str().unwrap_or_default().to_owned();
        let device = body["device_id"].as_str().unwrap_or("RANDOM").to_owned();
        let Some(known) = self.users.get_mut(&user) else {
            return Err(match self.setup.flavour {
                Flavour::Synapse => no(404, "M_NOT_FOUND", "User not found"),
                Flavour::Conduit => super::http::panicked(),
            });
        };
        known.devices.insert(device.clone());
        if self.setup.flavour == Flavour::Conduit {
            self.tokens.retain(|_, owner| *owner != (user.clone(), device.clone()));
        }
        self.next_token += 1;
        let token = format!("token_{}", self.next_token);
        self.tokens.insert(token.clone(), (user.clone(), device.clone()));
        Ok(json!({ "user_id": user, "device_id": device, "access_token": token }))
    }

    pub(super) fn put_device(&mut self, caller: &Caller, device: &str) -> Outcome {
        let known = self.users.get_mut(&caller.user).expect("the caller is known");
        if self.setup.flavour == Flavour::Conduit && !known.devices.contains(device) {
            return Err(no(404, "M_NOT_FOUND", "Device not found."));
        }
        known.devices.insert(device.to_owned());
        Ok(json!({}))
    }

    pub(super) fn whoami(&self, caller: &Caller) -> Value {
        let mut who = json!({ "user_id": caller.user });
        if let Some(device) = &caller.device {
            who["device_id"] = json!(device);
        }
        who
    }

    pub(super) fn profile(
        &mut self,
        method: &str,
        ask: &Ask,
        caller: &Caller,
        user: &str,
        field: &str,
    ) -> Outcome {
        if method == "GET" {
            let known =
                self.users.get(user).ok_or_else(|| no(404, "M_NOT_FOUND", "Profile was not found"))?;
            return Ok(known.profile.get(field).map_or_else(|| json!({}), |value| json!({ field: value })));
        }
        if user != caller.user {
            return Err(no(403, "M_FORBIDDEN", "Cannot set another user's profile"));
        }
        let value = ask.json()?[field].as_str().unwrap_or_default().to_owned();
        let known = self.users.get_mut(user).expect("the caller is known");
        let before = known.profile.insert(field.to_owned(), value.clone());
        if before != Some(value) || self.setup.flavour == Flavour::Conduit {
            let joined = self.rooms.iter().filter(|(_, room)| room.is_joined(user));
            let joined: Vec<String> = joined.map(|(id, _)| id.clone()).collect();
            for room in joined {
                self.put_member(&room, user, user, "join", json!({}));
            }
        }
        Ok(json!({}))
    }

    pub(super) fn account_data(
        &mut self,
        method: &str,
        ask: &Ask,
        caller: &Caller,
        user: &str,
        kind: &str,
    ) -> Outcome {
        if user != caller.user {
            return Err(no(403, "M_FORBIDDEN", "Cannot get account data for other users."));
        }
        let known = self.users.get_mut(user).expect("the caller is known");
        if method == "GET" {
            let missing = || no(404, "M_NOT_FOUND", "Account data not found").or_conduit("Data not found.");
            return known.account_data.get(kind).cloned().ok_or_else(missing);
        }
        known.account_data.insert(kind.to_owned(), ask.json()?);
        Ok(json!({}))
    }

    pub(super) fn upload(&mut self) -> Value {
        self.next_token += 1;
        json!({ "content_uri": format!("mxc://{}/media{}", self.setup.server_name, self.next_token) })
    }
}
