//! Making rooms and moving in and out of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Flavour;
use super::http::{Ask, Caller, Outcome, Refusal, no};
use super::state::{Membership, Room, State};

/// What a room is made from.
#[derive(Default)]
pub(super) struct NewRoom {
    pub(super) alias: Option<String>,
    pub(super) name: Option<String>,
    pub(super) public: bool,
    pub(super) direct: bool,
    pub(super) encrypted: bool,
    pub(super) predecessor: Option<String>,
    pub(super) invite: Vec<String>,
}

impl NewRoom {
    /// From the body of a createRoom call.
    pub(super) fn read(body: &Value) -> Self {
        let text = |key: &str| body[key].as_str().map(str::to_owned);
        let invite = body["invite"].as_array().into_iter().flatten();
        Self {
            alias: text("room_alias_name"),
            name: text("name"),
            public: body["preset"] == "public_chat",
            direct: body["is_direct"] == true,
            encrypted: false,
            predecessor: None,
            invite: invite.filter_map(|user| user.as_str().map(str::to_owned)).collect(),
        }
    }
}

impl State {
    pub(super) fn resolve(&self, alias: &str) -> Outcome {
        let missing = || {
            no(404, "M_NOT_FOUND", format!("Room alias {alias} not found"))
                .or_conduit("Room with alias not found.")
        };
        let room = self.aliases.get(alias).ok_or_else(missing)?;
        Ok(json!({ "room_id": room, "servers": [self.setup.server_name] }))
    }

    pub(super) fn create_room(&mut self, ask: &Ask, caller: &Caller) -> Outcome {
        let body = ask.json()?;
        let alias = body["room_alias_name"].as_str();
        if let Some(alias) = alias {
            if alias.starts_with(&self.setup.user_prefix) && !caller.masquerades {
                return Err(no(400, "M_EXCLUSIVE", "This alias is reserved by an application service."));
            }
            if self.aliases.contains_key(&self.full_alias(alias)) {
                return Err(no(400, "M_ROOM_IN_USE", "Room alias already taken")
                    .or_conduit("Room alias already exists."));
            }
        }
        let room = NewRoom::read(&body);
        Ok(json!({ "room_id": self.make_room(&caller.user, room) }))
    }

    fn full_alias(&self, localpart: &str) -> String {
        format!("#{localpart}:{}", self.setup.server_name)
    }

    /// Makes a room with its first events: its id, in the form of room version 12.
    pub(super) fn make_room(&mut self, creator: &str, new: NewRoom) -> String {
        let id = format!("!r{}", self.rooms.len() + 1);
        let room = Room {
            creator: creator.to_owned(),
            public: new.public,
            tombstoned: false,
            muted: BTreeSet::new(),
            members: BTreeMap::new(),
            events: Vec::new(),
            state: BTreeMap::new(),
        };
        self.rooms.insert(id.clone(), room);
        let mut create = json!({ "room_version": "12" });
        if let Some(old) = new.predecessor {
            create["predecessor"] = json!({ "room_id": old });
        }
        self.put_state(&id, creator, "m.room.create", create);
        self.put_member(&id, creator, creator, "join", json!({}));
        self.put_state(&id, creator, "m.room.power_levels", json!({ "events_default": 0 }));
        let rule = if new.public { "public" } else { "invite" };
        self.put_state(&id, creator, "m.room.join_rules", json!({ "join_rule": rule }));
        if let Some(alias) = new.alias {
            let alias = self.full_alias(&alias);
            self.aliases.insert(alias.clone(), id.clone());
            self.put_state(&id, creator, "m.room.canonical_alias", json!({ "alias": alias }));
        }
        if let Some(name) = new.name {
            self.put_state(&id, creator, "m.room.name", json!({ "name": name }));
        }
        if new.encrypted {
            let content = json!({ "algorithm": "m.megolm.v1.aes-sha2" });
            self.put_state(&id, creator, "m.room.encryption", content);
        }
        let direct = if new.direct { json!({ "is_direct": true }) } else { json!({}) };
        for user in new.invite {
            self.put_member(&id, creator, &user, "invite", direct.clone());
        }
        id
    }

    pub(super) fn join(&mut self, caller: &Caller, room_or_alias: &str) -> Outcome {
        let id = match room_or_alias.strip_prefix('#') {
            Some(_) => self.resolve(room_or_alias)?["room_id"].as_str().unwrap_or_default().to_owned(),
            None => room_or_alias.to_owned(),
        };
        let missing = || no(404, "M_UNKNOWN", "Can't join remote room because no servers are in the room.");
        let room = self.rooms.get(&id).ok_or_else(missing)?;
        let uninvited = || {
            no(403, "M_FORBIDDEN", "You are not invited to this room.").or_conduit("Event is not authorized.")
        };
        match room.membership(&caller.user) {
            Some(Membership::Join) => return Ok(json!({ "room_id": id })),
            Some(Membership::Ban) => {
                return Err(match self.setup.flavour {
                    Flavour::Synapse => no(403, "M_BAD_STATE", "Cannot join user who was banned"),
                    Flavour::Conduit => uninvited(),
                });
            }
            Some(Membership::Invite) => {}
            Some(Membership::Leave) | None if room.public => {}
            Some(Membership::Leave) | None => return Err(uninvited()),
        }
        self.put_member(&id, &caller.user, &caller.user, "join", json!({}));
        Ok(json!({ "room_id": id }))
    }

    pub(super) fn leave(&mut self, ask: &Ask, caller: &Caller, room: &str) -> Outcome {
        let user = &caller.user;
        let left = self.rooms.get(room).and_then(|known| known.members.get(user));
        match left.map(|member| (member.membership, member.by == *user)) {
            Some((Membership::Join | Membership::Invite, _)) => {}
            Some((Membership::Leave, true)) if self.setup.flavour == Flavour::Synapse => {
                return Ok(json!({}));
            }
            Some((Membership::Leave | Membership::Ban, _)) | None => {
                let words = format!("{user} not in room {room}.");
                return Err(no(403, "M_FORBIDDEN", words).or_conduit("Event is not authorized."));
            }
        }
        let reason = ask.json().ok().and_then(|body| body["reason"].as_str().map(str::to_owned));
        let extra = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
        self.put_member(room, user, user, "leave", extra);
        Ok(json!({}))
    }

    pub(super) fn invite(&mut self, ask: &Ask, caller: &Caller, room: &str) -> Outcome {
        self.joined(caller, room)?;
        let user = ask.json()?["user_id"].as_str().unwrap_or_default().to_owned();
        match self.rooms[room].membership(&user) {
            Some(Membership::Join) => {
                let words = format!("{user} is already in the room.");
                Err(no(403, "M_FORBIDDEN", words).or_conduit("Event is not authorized."))
            }
            Some(Membership::Ban) => Err(no(403, "M_FORBIDDEN", format!("{user} is banned from the room"))),
            Some(Membership::Invite | Membership::Leave) | None => {
                self.put_member(room, &caller.user, &user, "invite", json!({}));
                Ok(json!({}))
            }
        }
    }

    pub(super) fn joined_rooms(&self, caller: &Caller) -> Value {
        let joined = self.rooms.iter().filter(|(_, room)| room.is_joined(&caller.user));
        json!({ "joined_rooms": joined.map(|(id, _)| id).collect::<Vec<_>>() })
    }

    pub(super) fn joined_members(&self, caller: &Caller, room: &str) -> Outcome {
        let outside = || {
            no(403, "M_FORBIDDEN", "Appservice not in room")
                .or_conduit("You don't have permission to view this room.")
        };
        let known = self.rooms.get(room).filter(|known| known.is_joined(&caller.user)).ok_or_else(outside)?;
        let joined = known.members.iter().filter(|(_, member)| member.membership == Membership::Join);
        let member = |user: &String| {
            let content = known.state_event("m.room.member", user).map(|event| &event.content);
            let name = content.and_then(|content| content["displayname"].as_str());
            (user.clone(), json!({ "display_name": name, "avatar_url": null }))
        };
        let joined: serde_json::Map<String, Value> = joined.map(|(user, _)| member(user)).collect();
        Ok(json!({ "joined": joined }))
    }

    pub(super) fn set_typing(&mut self, ask: &Ask, caller: &Caller, room: &str, user: &str) -> Outcome {
        if user != caller.user {
            return Err(no(400, "M_UNKNOWN", "Cannot set another user's typing state"));
        }
        self.joined(caller, room).map_err(|refusal| refusal.or_conduit("You are not in this room."))?;
        let on = ask.json()?["typing"] == true;
        self.typing.push((room.to_owned(), user.to_owned(), on));
        Ok(json!({}))
    }

    /// Refuses who is not joined, in the words of a send.
    pub(super) fn joined(&self, caller: &Caller, room: &str) -> Result<(), Refusal> {
        let Some(known) = self.rooms.get(room) else {
            return Err(match self.setup.flavour {
                Flavour::Synapse => {
                    no(403, "M_FORBIDDEN", format!("User {} not in room {room}", caller.user))
                }
                Flavour::Conduit => no(500, "M_UNKNOWN", "non-create event for room of unknown version"),
            });
        };
        if known.is_joined(&caller.user) {
            return Ok(());
        }
        let words = format!("User {} not in room {room}", caller.user);
        Err(no(403, "M_FORBIDDEN", words).or_conduit("Event is not authorized."))
    }
}
