//! An ordinary user with an ordinary client: matrix-sdk. Its futures are used in this file alone, since every place
//! that uses them costs compile time.

use std::time::Duration;

use matrix_sdk::config::{RequestConfig, SyncSettings};
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::api::client::filter::FilterDefinition;
use matrix_sdk::ruma::api::client::room::{create_room, upgrade_room};
use matrix_sdk::ruma::api::client::typing::create_typing_event;
use matrix_sdk::ruma::api::client::typing::create_typing_event::v3::{Typing, TypingInfo};
use matrix_sdk::ruma::{EventId, OwnedRoomId, RoomId, RoomOrAliasId, RoomVersionId, UserId, uint};
use matrix_sdk::{Client, Room};
use serde_json::{Value, json};

use crate::servers::Server;

/// How long an answer may take.
pub(crate) const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// A user of a test homeserver, logged in.
pub(crate) struct User {
    /// The full user id.
    pub(crate) id: String,
    client: Client,
    seen: Vec<Seen>,
}

/// An event that came by sync or was read back.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its room.
    pub(crate) room: OwnedRoomId,
    /// Its id.
    pub(crate) event_id: String,
    /// Its sender.
    pub(crate) sender: String,
    /// Its type.
    pub(crate) kind: String,
    /// Its state key, empty where it has none.
    pub(crate) key: String,
    /// Its content.
    pub(crate) content: Value,
    /// When its server says it was sent, in unix ms.
    pub(crate) at: u64,
}

impl Seen {
    fn read(room: &RoomId, event: &Value) -> Self {
        let field = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        Self {
            room: room.to_owned(),
            event_id: field("event_id"),
            sender: field("sender"),
            kind: field("type"),
            key: field("state_key"),
            content: event["content"].clone(),
            at: event["origin_server_ts"].as_u64().unwrap_or_default(),
        }
    }

    /// The text of a message, empty for anything else.
    pub(crate) fn body(&self) -> &str {
        self.content["body"].as_str().unwrap_or_default()
    }

    /// Whether it says that this user has joined.
    pub(crate) fn is_join_of(&self, user: &str) -> bool {
        self.kind == "m.room.member" && self.sender == user && self.content["membership"] == "join"
    }

    /// Whether it is a message of this user.
    pub(crate) fn is_message_of(&self, sender: &str) -> bool {
        self.kind == "m.room.message" && self.sender == sender
    }
}

impl User {
    /// Registers a user and logs them in.
    pub(crate) async fn register(server: &Server, name: &str) -> Self {
        server.homeserver.register_user(name, "secret").await.unwrap();
        Self::login(server, name).await
    }

    /// Logs a registered user in.
    pub(crate) async fn login(server: &Server, name: &str) -> Self {
        let client = Client::builder().homeserver_url(server.homeserver.url()).build().await.unwrap();
        client.matrix_auth().login_username(name, "secret").send().await.unwrap();
        let id = client.user_id().unwrap().to_string();
        Self { id, client, seen: Vec::new() }
    }

    /// Joins a room by id or alias.
    pub(crate) async fn join(&self, room: &str) -> OwnedRoomId {
        let room = RoomOrAliasId::parse(room).unwrap();
        self.client.join_room_by_id_or_alias(&room, &[]).await.unwrap().room_id().to_owned()
    }

    /// Opens a direct chat as Element does: invited, `is_direct`, the room ready to be spoken in.
    pub(crate) async fn create_dm(&self, with: &str) -> OwnedRoomId {
        let with = UserId::parse(with).unwrap();
        self.client.create_dm(&with).await.unwrap().room_id().to_owned()
    }

    /// Opens a room with others invited, from the fields of a createRoom call.
    pub(crate) async fn create_room(&self, fields: Value) -> OwnedRoomId {
        let mut request = create_room::v3::Request::new();
        request.name = fields["name"].as_str().map(str::to_owned);
        let invite = fields["invite"].as_array().into_iter().flatten().filter_map(Value::as_str);
        request.invite = invite.map(|user| UserId::parse(user).unwrap()).collect();
        request.is_direct = fields["is_direct"] == true;
        self.client.create_room(request).await.unwrap().room_id().to_owned()
    }

    /// Says something: the event id.
    pub(crate) async fn say(&self, room: &RoomId, text: &str) -> String {
        self.send(room, "m.room.message", json!({"msgtype": "m.text", "body": text, "m.mentions": {}})).await
    }

    /// Begins to type, for half a minute, or ends.
    pub(crate) async fn types(&self, room: &RoomId, typing: bool) {
        // The client's own verb gives four seconds, and tells the end only within them.
        let info = TypingInfo::new(Duration::from_secs(30));
        let state = if typing { Typing::Yes(info) } else { Typing::No };
        let user = self.client.user_id().expect("the user is logged in").to_owned();
        let request = create_typing_event::v3::Request::new(user, room.to_owned(), state);
        self.client.send(request).await.unwrap();
    }

    /// Says something that mentions someone.
    pub(crate) async fn say_to(&self, room: &RoomId, user: &str, text: &str) -> String {
        let mentions = json!({"user_ids": [user]});
        self.send(room, "m.room.message", json!({"msgtype": "m.text", "body": text, "m.mentions": mentions}))
            .await
    }

    /// Sends any event: its id.
    pub(crate) async fn send(&self, room: &RoomId, kind: &str, content: Value) -> String {
        let sent = self.room(room).send_raw(kind, content).await.unwrap();
        sent.response.event_id.to_string()
    }

    /// Says something with a transaction id, again and again until a server that may be down has taken it.
    pub(crate) async fn say_until_taken(&self, room: &RoomId, txn: &str, text: &str) {
        let content = json!({"msgtype": "m.text", "body": text, "m.mentions": {}});
        loop {
            let config = RequestConfig::short_retry().disable_retry();
            let room = self.room(room);
            let sending = room.send_raw("m.room.message", content.clone());
            match sending.with_transaction_id(txn.into()).with_request_config(config).await {
                Ok(_) => return,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Takes an event back.
    pub(crate) async fn redact(&self, room: &RoomId, event: &str) {
        self.room(room).redact(&EventId::parse(event).unwrap(), None, None).await.unwrap();
    }

    /// Sends any state event: its id.
    pub(crate) async fn send_state(&self, room: &RoomId, kind: &str, key: &str, content: Value) -> String {
        self.room(room).send_state_event_raw(kind, key, content).await.unwrap().event_id.to_string()
    }

    /// Invites someone.
    pub(crate) async fn invite(&self, room: &RoomId, user: &str) {
        self.room(room).invite_user_by_id(&UserId::parse(user).unwrap()).await.unwrap();
    }

    /// Replaces a room by one of another version: the new room.
    pub(crate) async fn upgrade(&self, room: &RoomId) -> OwnedRoomId {
        let request = upgrade_room::v3::Request::new(room.to_owned(), RoomVersionId::V11);
        self.client.send(request).await.unwrap().replacement_room
    }

    /// Kicks someone.
    pub(crate) async fn kick(&self, room: &RoomId, user: &str) {
        self.room(room).kick_user(&UserId::parse(user).unwrap(), Some("test")).await.unwrap();
    }

    /// The first message of `sender` that came to the room after the event `asked`.
    pub(crate) async fn answer(&mut self, room: &RoomId, asked: &str, sender: &str) -> Seen {
        let mut from = 0;
        let what = format!("an answer of {sender} to {asked}");
        self.wait(&what, |seen| {
            let asked_at = seen.iter().position(|event| event.event_id == asked)?;
            from = from.max(asked_at + 1);
            seen[from..].iter().find(|event| event.room == room && event.is_message_of(sender)).cloned()
        })
        .await
    }

    /// The first event, seen before or to come, that fits.
    pub(crate) async fn event(&mut self, what: &str, fits: impl Fn(&Seen) -> bool) -> Seen {
        self.wait(what, |seen| seen.iter().find(|event| fits(event)).cloned()).await
    }

    /// Syncs until `find` finds something in all that was seen.
    pub(crate) async fn wait<T>(&mut self, what: &str, mut find: impl FnMut(&[Seen]) -> Option<T>) -> T {
        let found = tokio::time::timeout(ANSWER_DEADLINE, async {
            loop {
                if let Some(found) = find(&self.seen) {
                    return found;
                }
                self.sync().await;
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("{} waited in vain for {what}; seen: {:#?}", self.id, self.seen),
        }
    }

    /// One sync: what is new goes to what was seen. A server that is down is asked again.
    pub(crate) async fn sync(&mut self) {
        let mut filter = FilterDefinition::default();
        filter.room.timeline.limit = Some(uint!(500));
        let settings = SyncSettings::new().timeout(Duration::from_secs(10)).filter(filter.into());
        let Ok(response) = self.client.sync_once(settings).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            return;
        };
        for (room, update) in response.rooms.joined {
            for event in update.timeline.events {
                self.seen.push(Seen::read(&room, &event.raw().deserialize_as::<Value>().unwrap()));
            }
        }
    }

    /// The whole room, oldest first, by the server's order.
    pub(crate) async fn timeline(&self, room: &RoomId) -> Vec<Seen> {
        let handle = self.room(room);
        let mut events = Vec::new();
        let mut options = MessagesOptions::backward();
        loop {
            options.limit = uint!(100);
            let page = handle.messages(options).await.unwrap();
            let raw = page.chunk.iter().map(|event| event.raw().deserialize_as::<Value>().unwrap());
            events.extend(raw.map(|event| Seen::read(room, &event)));
            let Some(end) = page.end.filter(|_| !page.chunk.is_empty()) else { break };
            options = MessagesOptions::backward().from(Some(end.as_str()));
        }
        events.reverse();
        events
    }

    /// The messages of one sender in the whole room, oldest first.
    pub(crate) async fn said_by(&self, room: &RoomId, sender: &str) -> Vec<Seen> {
        let mut events = self.timeline(room).await;
        events.retain(|event| event.is_message_of(sender));
        events
    }

    fn room(&self, room: &RoomId) -> Room {
        self.client.get_room(room).expect("the user knows the room")
    }
}

mod tests {
    use super::*;
    use crate::servers;
    use persona_bridge::demo::child::Signal;
    use persona_bridge::demo::homeserver::Kind;

    #[tokio::test]
    async fn two_users_talk_on_synapse() {
        two_users_talk(Kind::Synapse, "two_users_talk_on_synapse").await;
    }

    #[tokio::test]
    async fn two_users_talk_on_conduit() {
        two_users_talk(Kind::Conduit, "two_users_talk_on_conduit").await;
    }

    async fn two_users_talk(kind: Kind, test: &str) {
        let Some(mut server) = servers::server(kind, test).await else { return };
        let mut alice = User::register(&server, "alice").await;
        let mut bob = User::register(&server, "bob").await;
        let room = alice.create_dm(&bob.id).await;
        assert_eq!(bob.join(room.as_str()).await, room);
        let asked = alice.say_to(&room, &bob.id, "Bob?").await;
        let heard = bob.event("the question", |event| event.event_id == asked).await;
        assert_eq!(heard.content["m.mentions"]["user_ids"][0], bob.id);
        bob.say(&room, "Yes.").await;
        server.homeserver.kill(Signal::KILL).await;
        server.homeserver.restart().await.unwrap();
        assert_eq!(alice.answer(&room, &asked, &bob.id).await.body(), "Yes.");
        let said: Vec<String> =
            bob.said_by(&room, &alice.id).await.iter().map(|event| event.body().to_owned()).collect();
        assert_eq!(said, ["Bob?"]);
        let other = alice.create_room(json!({"name": "Other", "invite": [bob.id]})).await;
        let named = alice.event("its name", |event| event.room == other && event.kind == "m.room.name").await;
        assert_eq!(named.content["name"], "Other");
        bob.join(other.as_str()).await;
        alice.send_state(&other, "m.room.topic", "", json!({"topic": "t"})).await;
        alice.kick(&other, &bob.id).await;
        let last = alice.timeline(&other).await.pop().unwrap();
        assert_eq!((last.kind.as_str(), &last.content["membership"]), ("m.room.member", &json!("leave")));
    }
}
