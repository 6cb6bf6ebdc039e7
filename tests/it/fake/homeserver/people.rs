//! People: what an ordinary user does in her client.

use serde_json::{Value, json};

use super::FakeHomeserver;
use super::rooms::NewRoom;
use super::state::Draft;

/// An ordinary user.
#[derive(Clone)]
pub(crate) struct TestUser {
    home: FakeHomeserver,
    /// Her user id.
    pub(crate) id: String,
}

impl FakeHomeserver {
    /// A user with her localpart as display name; made if missing.
    pub(crate) fn user(&self, localpart: &str) -> TestUser {
        let mut state = self.lock();
        let id = format!("@{localpart}:{}", state.setup.server_name);
        if state.add_user(&id) {
            state.name(&id, localpart);
        }
        drop(state);
        TestUser { home: self.clone(), id }
    }
}

impl TestUser {
    /// Says something: the event.
    pub(crate) fn say(&self, room: &str, body: &str) -> String {
        self.say_content(
            room,
            "m.room.message",
            json!({ "msgtype": "m.text", "body": body, "m.mentions": {} }),
        )
    }

    /// Says something to somebody by mention: the event.
    pub(crate) fn say_to(&self, room: &str, whom: &str, body: &str) -> String {
        let mentions = json!({ "user_ids": [whom] });
        let content = json!({ "msgtype": "m.text", "body": body, "m.mentions": mentions });
        self.say_content(room, "m.room.message", content)
    }

    /// Sends an event of any type: its id.
    pub(crate) fn say_content(&self, room: &str, kind: &str, content: Value) -> String {
        self.act(|state| state.append(Draft { room, sender: &self.id, kind, state_key: None, content }))
    }

    /// Sends a state event: its id.
    pub(crate) fn set_state(&self, room: &str, kind: &str, key: &str, content: Value) -> String {
        self.act(|state| state.append(Draft { room, sender: &self.id, kind, state_key: Some(key), content }))
    }

    /// Replaces the words of an earlier message.
    pub(crate) fn edit(&self, room: &str, event: &str, body: &str) -> String {
        let new = json!({ "msgtype": "m.text", "body": body });
        let relation = json!({ "rel_type": "m.replace", "event_id": event });
        let content = json!({ "msgtype": "m.text", "body": format!("* {body}"), "m.new_content": new, "m.relates_to": relation });
        self.say_content(room, "m.room.message", content)
    }

    /// Reacts to an event.
    pub(crate) fn react(&self, room: &str, event: &str, key: &str) -> String {
        let relation = json!({ "rel_type": "m.annotation", "event_id": event, "key": key });
        self.say_content(room, "m.reaction", json!({ "m.relates_to": relation }))
    }

    /// Answers an event.
    pub(crate) fn reply(&self, room: &str, event: &str, body: &str) -> String {
        let relation = json!({ "m.in_reply_to": { "event_id": event } });
        let content =
            json!({ "msgtype": "m.text", "body": body, "m.mentions": {}, "m.relates_to": relation });
        self.say_content(room, "m.room.message", content)
    }

    /// Takes an event back.
    pub(crate) fn redact(&self, room: &str, event: &str) -> String {
        self.act(|state| state.redact(room, &self.id, event))
    }

    /// Makes a private room.
    pub(crate) fn create_room(&self, name: &str) -> String {
        self.make(NewRoom { name: Some(name.to_owned()), ..NewRoom::default() })
    }

    /// Makes a room that anyone may join, with an alias.
    pub(crate) fn create_public_room(&self, alias_localpart: &str) -> String {
        self.make(NewRoom { alias: Some(alias_localpart.to_owned()), public: true, ..NewRoom::default() })
    }

    /// Makes a room with an alias that only invited people may join.
    pub(crate) fn create_closed_room(&self, alias_localpart: &str) -> String {
        self.make(NewRoom { alias: Some(alias_localpart.to_owned()), ..NewRoom::default() })
    }

    /// Opens a direct room with somebody, who is invited.
    pub(crate) fn create_dm(&self, whom: &str) -> String {
        self.make(NewRoom { direct: true, invite: vec![whom.to_owned()], ..NewRoom::default() })
    }

    /// Opens an encrypted direct room with somebody, who is invited.
    pub(crate) fn create_encrypted_dm(&self, whom: &str) -> String {
        let invite = vec![whom.to_owned()];
        self.make(NewRoom { direct: true, encrypted: true, invite, ..NewRoom::default() })
    }

    /// Makes a room from the fields of a createRoom call.
    pub(crate) fn create_room_of(&self, fields: &Value) -> String {
        self.make(NewRoom::read(fields))
    }

    fn make(&self, room: NewRoom) -> String {
        self.act(|state| state.make_room(&self.id, room))
    }

    /// Invites somebody.
    pub(crate) fn invite(&self, room: &str, whom: &str) -> String {
        self.move_member(room, whom, "invite")
    }

    /// Invites somebody to talk directly.
    pub(crate) fn invite_directly(&self, room: &str, whom: &str) -> String {
        self.act(|state| state.put_member(room, &self.id, whom, "invite", json!({ "is_direct": true })))
    }

    /// Joins, invited or not.
    pub(crate) fn join(&self, room: &str) -> String {
        self.move_member(room, &self.id, "join")
    }

    /// Leaves.
    pub(crate) fn leave(&self, room: &str) -> String {
        self.move_member(room, &self.id, "leave")
    }

    /// Kicks somebody, or lifts her ban.
    pub(crate) fn kick(&self, room: &str, whom: &str) -> String {
        self.move_member(room, whom, "leave")
    }

    /// Bans somebody.
    pub(crate) fn ban(&self, room: &str, whom: &str) -> String {
        self.move_member(room, whom, "ban")
    }

    fn move_member(&self, room: &str, whom: &str, membership: &str) -> String {
        self.act(|state| state.put_member(room, &self.id, whom, membership, json!({})))
    }

    /// Forbids somebody to post, or allows it again.
    pub(crate) fn set_muted(&self, room: &str, whom: &str, muted: bool) {
        let level = if muted { -1 } else { 0 };
        self.set_state(room, "m.room.power_levels", "", json!({ "users": { whom: level } }));
        self.act(|state| {
            let room = state.rooms.get_mut(room).expect("a room of this homeserver");
            if muted { room.muted.insert(whom.to_owned()) } else { room.muted.remove(whom) }
        });
    }

    /// Turns encryption on.
    pub(crate) fn encrypt(&self, room: &str) -> String {
        self.set_state(room, "m.room.encryption", "", json!({ "algorithm": "m.megolm.v1.aes-sha2" }))
    }

    /// Upgrades the room: the new one, which only invited people may join, and nobody is.
    pub(crate) fn upgrade(&self, room: &str) -> String {
        self.upgrade_to(room, false)
    }

    /// Upgrades the room: the new one, to which nobody is invited.
    pub(crate) fn upgrade_to(&self, room: &str, public: bool) -> String {
        let next = self.replacement(room, public, false);
        self.bury(room, &next);
        next
    }

    /// Makes a room that says of itself that it takes the place of another.
    pub(crate) fn replacement(&self, room: &str, public: bool, encrypted: bool) -> String {
        self.make(NewRoom { public, encrypted, predecessor: Some(room.to_owned()), ..NewRoom::default() })
    }

    /// Says of a room that it is over and that another takes its place.
    pub(crate) fn bury(&self, room: &str, next: &str) {
        let content = json!({ "body": "This room has been replaced", "replacement_room": next });
        self.set_state(room, "m.room.tombstone", "", content);
        self.act(|state| state.rooms.get_mut(room).expect("it took the tombstone").tombstoned = true);
    }

    /// Changes her display name in every room she is in.
    pub(crate) fn set_display_name(&self, name: &str) {
        self.act(|state| {
            state.name(&self.id, name);
            let rooms: Vec<String> = state.rooms.keys().cloned().collect();
            for room in rooms {
                if state.rooms[&room].is_joined(&self.id) {
                    state.put_member(&room, &self.id, &self.id, "join", json!({}));
                }
            }
        });
    }

    fn act<T>(&self, act: impl FnOnce(&mut super::state::State) -> T) -> T {
        let outcome = act(&mut self.home.lock());
        self.home.queued.notify_one();
        outcome
    }
}
