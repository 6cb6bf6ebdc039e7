//! What the client promises on any homeserver: checked on the fake in memory, over a socket, on Synapse and on
//! Conduit. Where the two differ, both ways are written down here, so that the fake cannot drift from either.

mod reading;
mod sending;

use persona_bridge::conversation::{Membership, RequestId};
use persona_bridge::homeserver::client::{
    CallError, CallErrorKind, Called, Client, CreateRoom, Identity, Mode, probe_mode,
};
use persona_bridge::homeserver::event::REQUEST_KEY;
use ruma::{OwnedEventId, OwnedRoomAliasId, OwnedRoomId, OwnedUserId};
use serde_json::{Value, json};

use crate::fake::homeserver::Flavour;

/// The device that every ghost has.
const DEVICE: &str = "PERSONA_BRIDGE";

/// A homeserver and an ordinary user of it, Alice.
pub(crate) trait World {
    /// As which it behaves.
    fn flavour(&self) -> Flavour;
    /// Our client of it.
    fn client(&self) -> Client;
    /// Stops it hard and starts it again.
    async fn restart(&mut self);
    /// Alice makes a room, from the fields of a createRoom call.
    async fn create_room(&self, fields: Value) -> String;
    /// Alice sends an event: its id.
    async fn send(&self, room: &str, kind: &str, content: Value) -> String;
    /// Alice moves somebody: `invite`, `kick` or `ban`.
    async fn put_member(&self, room: &str, verb: &str, user: &str);
    /// Alice forbids everybody else to post.
    async fn silence(&self, room: &str);

    /// Alice says something.
    async fn say(&self, room: &str, body: &str) -> OwnedEventId {
        event(&self.send(room, "m.room.message", json!({ "msgtype": "m.text", "body": body })).await)
    }
}

/// Checks all of it.
pub(crate) async fn holds(world: &mut impl World) {
    let client = world.client();
    accounts(world, &client).await;
    let eir = ghost(world, &client, "persona_eir").await;
    let brage = ghost(world, &client, "persona_brage").await;
    profile(&client, &eir).await;
    invites(world, &client, &eir).await;
    first_message(world, &client, &eir).await;
    aliases(&client, &eir, &brage).await;
    doors(world, &client, &eir).await;
    state(world, &client, &eir).await;
    sending::sends(world, &client, &eir).await;
    sending::refusals(world, &client, &eir).await;
    sending::reactions(world, &client, &eir).await;
    sending::lost_room(world, &client, &eir).await;
    reading::history(world, &client, &eir).await;
    reading::looking_back(world, &client, &eir).await;
    sending::repeats(world, &client, &eir, &brage).await;
    sending::repeats_after_a_restart(world, &client, &eir).await;
    pings(&client).await;
}

fn user(localpart: &str) -> OwnedUserId {
    format!("@{localpart}:hs.test").try_into().unwrap()
}

fn room(id: &str) -> OwnedRoomId {
    id.try_into().unwrap()
}

fn event(id: &str) -> OwnedEventId {
    id.try_into().unwrap()
}

fn request(id: &str) -> RequestId {
    RequestId(id.to_owned())
}

fn text(body: &str) -> String {
    json!({ "msgtype": "m.text", "body": body }).to_string()
}

fn ours(body: &str, id: &str) -> String {
    json!({ "msgtype": "m.text", "body": body, REQUEST_KEY: id }).to_string()
}

fn masquerade(user: OwnedUserId) -> Identity {
    Identity { user, device: None, token: None }
}

#[track_caller]
fn kind<T: std::fmt::Debug>(outcome: Called<T>) -> CallErrorKind {
    let error: CallError = outcome.unwrap_err();
    assert!(!error.message.starts_with("M_"), "{error}");
    error.kind
}

async fn ghost(world: &impl World, client: &Client, localpart: &str) -> Identity {
    let mode = match world.flavour() {
        Flavour::Synapse => Mode::Masquerade,
        Flavour::Conduit => Mode::Token,
    };
    establish(client, user(localpart), DEVICE, mode).await
}

/// A registered ghost with her device, in [`Mode::Token`] logged in.
pub(crate) async fn establish(client: &Client, user: OwnedUserId, device: &str, mode: Mode) -> Identity {
    client.register(user.localpart()).await.unwrap();
    let token = match mode {
        Mode::Masquerade => client.put_device(&user, device).await.map(|()| None),
        Mode::Token => client.login(&user, device).await.map(Some),
    };
    Identity { user, device: Some(device.to_owned()), token: token.unwrap() }
}

/// A private room of Alice's in which a ghost is.
async fn shared_room(world: &impl World, client: &Client, ghost: &Identity) -> OwnedRoomId {
    let fields = json!({ "preset": "private_chat", "invite": [ghost.user] });
    let shared = room(&world.create_room(fields).await);
    client.join(ghost, &shared).await.unwrap();
    shared
}

fn bodies(events: &[Box<serde_json::value::RawValue>]) -> Vec<String> {
    let events = events.iter().map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap());
    events.filter_map(|event| event["content"]["body"].as_str().map(str::to_owned)).collect()
}

async fn accounts(world: &impl World, client: &Client) {
    assert!(client.versions().await.unwrap().iter().any(|version| version.starts_with("v1.")));
    for _ in 0..2 {
        client.register("persona-bridge").await.unwrap();
        client.register("persona_eir").await.unwrap();
    }
    assert_eq!(kind(client.register("stranger").await), CallErrorKind::Forbidden);
    let (eir, nobody) = (user("persona_eir"), masquerade(user("persona_nobody")));
    assert_eq!(kind(client.whoami(&masquerade(user("alice"))).await), CallErrorKind::Forbidden);
    assert_eq!(kind(client.whoami(&nobody).await), CallErrorKind::Forbidden);
    assert_eq!(kind(probe_mode(client, &nobody.user, DEVICE).await), CallErrorKind::Forbidden);
    let stranger = Identity { token: Some("wrong".to_owned()), ..masquerade(eir.clone()) };
    assert_eq!(kind(client.whoami(&stranger).await), CallErrorKind::Unauthorized);
    let mode = probe_mode(client, &eir, DEVICE).await.unwrap();
    match world.flavour() {
        Flavour::Synapse => {
            assert_eq!(mode, Mode::Masquerade);
            let nowhere = Identity { device: Some("NOWHERE".to_owned()), ..masquerade(eir) };
            assert_eq!(kind(client.whoami(&nowhere).await), CallErrorKind::Refused);
        }
        Flavour::Conduit => {
            assert_eq!(mode, Mode::Token);
            // The second login of a device ends the first token.
            let first = client.login(&eir, DEVICE).await.unwrap();
            let second = client.login(&eir, DEVICE).await.unwrap();
            let with = |token: String| Identity { token: Some(token), ..masquerade(eir.clone()) };
            assert_eq!(kind(client.whoami(&with(first)).await), CallErrorKind::Unauthorized);
            let who = client.whoami(&with(second)).await.unwrap();
            assert_eq!(who, (eir.clone(), Some(DEVICE.to_owned())));
        }
    }
}

async fn profile(client: &Client, eir: &Identity) {
    assert_eq!(client.whoami(eir).await.unwrap(), (eir.user.clone(), Some(DEVICE.to_owned())));
    for _ in 0..2 {
        client.set_display_name(eir, "Eir").await.unwrap();
    }
    for _ in 0..2 {
        client.set_avatar(eir, "mxc://hs.test/eir").await.unwrap();
    }
    for id in ["!a:hs.test", "!b:hs.test", "!a:hs.test"] {
        client.mark_direct(eir, &user("alice"), &room(id)).await.unwrap();
    }
}

async fn invites(world: &impl World, client: &Client, eir: &Identity) {
    assert_eq!(client.pending_invites(eir).await.unwrap(), []);
    let invite = json!([eir.user]);
    let direct = room(&world.create_room(json!({ "is_direct": true, "invite": invite })).await);
    let plain = room(&world.create_room(json!({ "preset": "private_chat", "invite": invite })).await);
    let mut pending = client.pending_invites(eir).await.unwrap();
    pending.sort_by_key(|invite| !invite.is_direct);
    let found: Vec<_> = pending.iter().map(|i| (i.room.clone(), i.sender.clone(), i.is_direct)).collect();
    let alice = user("alice");
    assert_eq!(found, [(direct.clone(), alice.clone(), true), (plain.clone(), alice.clone(), false)]);
    assert_eq!(client.membership(eir, &direct).await.unwrap(), Some(Membership::Leave));
    client.join(eir, &direct).await.unwrap();
    client.join(eir, &direct).await.unwrap();
    assert_eq!(client.membership(eir, &direct).await.unwrap(), Some(Membership::Join));
    client.leave(eir, &plain, "not for me").await.unwrap();
    assert_eq!(client.membership(eir, &plain).await.unwrap(), Some(Membership::Leave));
    assert_eq!(client.pending_invites(eir).await.unwrap(), []);
    // A second run of the bridge asks the same anew.
    let second = world.client().for_run(2);
    assert_eq!(second.pending_invites(eir).await.unwrap(), []);
    assert_eq!(client.joined_rooms(eir).await.unwrap(), std::slice::from_ref(&direct));
    let mut members = client.joined_members(eir, &direct).await.unwrap();
    members.sort();
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(members, [(alice, name("alice")), (eir.user.clone(), name("Eir"))]);
    assert_eq!(kind(client.joined_members(eir, &plain).await), CallErrorKind::Forbidden);
    client.leave(eir, &direct, "").await.unwrap();
}

/// What is said between invite and join is read back after it.
async fn first_message(world: &impl World, client: &Client, eir: &Identity) {
    let early = room(&world.create_room(json!({ "is_direct": true, "invite": [eir.user] })).await);
    world.say(early.as_str(), "before you came").await;
    client.join(eir, &early).await.unwrap();
    let newest = client.newest(eir, &early, 10).await.unwrap();
    assert_eq!(bodies(&newest.events), ["before you came"]);
    client.leave(eir, &early, "").await.unwrap();
}

async fn aliases(client: &Client, eir: &Identity, brage: &Identity) {
    let minds: OwnedRoomAliasId = "#persona_minds:hs.test".try_into().unwrap();
    assert_eq!(kind(client.resolve(&minds).await), CallErrorKind::NotFound);
    assert_eq!(kind(client.join_alias(eir, &minds).await), CallErrorKind::NotFound);
    let wanted = CreateRoom {
        alias_localpart: Some("persona_minds".to_owned()),
        name: Some("Minds".to_owned()),
        public: true,
        ..CreateRoom::default()
    };
    let made = client.create_room(eir, wanted.clone()).await.unwrap();
    assert_eq!(kind(client.create_room(eir, wanted).await), CallErrorKind::Already);
    assert_eq!(client.resolve(&minds).await.unwrap(), made);
    assert_eq!(client.join_alias(brage, &minds).await.unwrap(), made);
    assert_eq!(client.membership(brage, &made).await.unwrap(), Some(Membership::Join));
    let name = client.state(brage, &made, "m.room.name", "").await.unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(name.get()).unwrap(), json!({ "name": "Minds" }));
    let pair = CreateRoom { invite: vec![brage.user.clone()], ..CreateRoom::default() };
    let pair = client.create_room(eir, pair).await.unwrap();
    let pending = client.pending_invites(brage).await.unwrap();
    assert_eq!((pending[0].room.clone(), pending[0].is_direct), (pair.clone(), false));
    client.leave(brage, &pair, "").await.unwrap();
    client.invite(eir, &pair, &brage.user).await.unwrap();
    client.join(brage, &pair).await.unwrap();
    assert_eq!(kind(client.invite(eir, &pair, &brage.user).await), CallErrorKind::Forbidden);
}

/// Rooms that do not let her in, or that she does not know.
async fn doors(world: &impl World, client: &Client, eir: &Identity) {
    let private = room(&world.create_room(json!({ "preset": "private_chat" })).await);
    assert_eq!(kind(client.join(eir, &private).await), CallErrorKind::Forbidden);
    assert_eq!(client.membership(eir, &private).await.unwrap(), Some(Membership::Leave));
    world.put_member(private.as_str(), "ban", eir.user.as_str()).await;
    assert_eq!(kind(client.join(eir, &private).await), CallErrorKind::Forbidden);
    let unknown = room("!nowhere:hs.test");
    let sent = client.send(eir, &unknown, "m.room.message", &request("d1"), &text("x")).await;
    assert_eq!(client.membership(eir, &unknown).await.unwrap(), Some(Membership::Leave));
    match world.flavour() {
        Flavour::Synapse => {
            assert_eq!(kind(sent), CallErrorKind::Forbidden);
            assert_eq!(kind(client.newest(eir, &private, 1).await), CallErrorKind::Forbidden);
        }
        Flavour::Conduit => {
            assert_eq!(kind(sent), CallErrorKind::Server);
            let page = client.newest(eir, &private, 1).await.unwrap();
            assert!(page.events.is_empty() && page.end.is_none());
            // The handler panics: an empty 500.
            let error = client.newest(&masquerade(eir.user.clone()), &private, 1).await.unwrap_err();
            assert_eq!((error.kind, error.errcode.as_str()), (CallErrorKind::Server, ""));
            assert_eq!(
                kind(client.pending_invites(&masquerade(eir.user.clone())).await),
                CallErrorKind::Server
            );
        }
    }
}

async fn state(world: &impl World, client: &Client, eir: &Identity) {
    let control = CreateRoom { name: Some("control".to_owned()), ..CreateRoom::default() };
    let control = client.create_room(eir, control).await.unwrap();
    assert!(client.state(eir, &control, "m.room.encryption", "").await.unwrap().is_none());
    let kind = "dev.persona_bridge.nudge";
    let put = async |n: u32| {
        client.send_state(eir, &control, kind, "a key/%", &json!({ "n": n }).to_string()).await.unwrap()
    };
    let (first, again, second) = (put(1).await, put(1).await, put(2).await);
    assert_eq!(first == again, world.flavour() == Flavour::Synapse);
    assert_ne!(first, second);
    let read = client.state(eir, &control, kind, "a key/%").await.unwrap().unwrap();
    assert_eq!(read.get(), r#"{"n":2}"#);
    assert!(client.state(eir, &control, kind, "").await.unwrap().is_none());
    client.typing(eir, &control, true).await.unwrap();
    client.typing(eir, &control, false).await.unwrap();
    client.receipt(eir, &control, &second).await.unwrap();
}

async fn pings(client: &Client) {
    let error = client.ping("persona-bridge", "p").await.unwrap_err();
    assert_eq!((error.kind, error.errcode.as_str()), (CallErrorKind::Server, "M_CONNECTION_FAILED"));
    assert_eq!(kind(client.ping("another", "p").await), CallErrorKind::Forbidden);
}
