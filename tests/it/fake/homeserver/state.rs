//! What the homeserver holds, and the one place where an event comes into being.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::faults::Faults;
use super::queue::Queue;
use super::send::Idempotency;
use super::{Flavour, Setup};

/// The first moment of a homeserver without a clock, in unix ms.
const DAWN: u64 = 1_700_000_000_000;

/// Everything.
pub(super) struct State {
    pub(super) setup: Setup,
    pub(super) clock: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
    /// Of the newest event.
    pub(super) position: u64,
    pub(super) users: BTreeMap<String, User>,
    /// Access token to user and device.
    pub(super) tokens: BTreeMap<String, (String, String)>,
    pub(super) next_token: u64,
    pub(super) rooms: BTreeMap<String, Room>,
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) sent: Idempotency,
    pub(super) faults: Faults,
    pub(super) queue: Queue,
    pub(super) typing: Vec<(String, String, bool)>,
    pub(super) receipts: Vec<(String, String, String)>,
    pub(super) requests: Vec<String>,
    /// Conduit's memory of who may see events of which state, right or wrong, until it restarts.
    pub(super) visibility: BTreeMap<(String, String, usize), bool>,
    /// Answers of /sync that are given again, by user and device, then by question.
    pub(super) synced: BTreeMap<(String, String), BTreeMap<String, Value>>,
}

/// A user, ghost or not.
#[derive(Default)]
pub(super) struct User {
    pub(super) devices: BTreeSet<String>,
    pub(super) profile: BTreeMap<String, String>,
    pub(super) account_data: BTreeMap<String, Value>,
}

/// A room.
pub(super) struct Room {
    pub(super) creator: String,
    pub(super) public: bool,
    pub(super) tombstoned: bool,
    pub(super) muted: BTreeSet<String>,
    pub(super) members: BTreeMap<String, Member>,
    pub(super) events: Vec<Event>,
    /// Indices into `events` by type and state key.
    pub(super) state: BTreeMap<(String, String), usize>,
}

/// A user's place in a room.
pub(super) struct Member {
    pub(super) membership: Membership,
    /// Who brought it about.
    pub(super) by: String,
}

/// A membership, as the fake needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// In the room.
    Join,
    /// Invited.
    Invite,
    /// Not in the room any more.
    Leave,
    /// Banned.
    Ban,
}

/// An event of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Its id.
    pub(crate) id: String,
    /// Its room.
    pub(crate) room: String,
    /// Who sent it.
    pub(crate) sender: String,
    /// Its type.
    pub(crate) kind: String,
    /// Its state key.
    pub(crate) state_key: Option<String>,
    /// Its content, empty once redacted.
    pub(crate) content: Value,
    /// `origin_server_ts`.
    pub(crate) at: u64,
    /// Its place in the order of all events.
    pub(crate) position: u64,
    /// The transaction id it was sent with.
    pub(crate) txn: Option<String>,
    /// The device it was sent from.
    pub(crate) device: Option<String>,
    /// The event that it takes back.
    pub(crate) redacts: Option<String>,
    /// The event that took it back.
    pub(crate) redacted_by: Option<String>,
    /// The content of the state event before it.
    pub(crate) before: Option<Value>,
    /// How many state events came before it: which state it was sent in.
    pub(crate) state_before: usize,
}

/// What an event is made of.
pub(super) struct Draft<'a> {
    pub(super) room: &'a str,
    pub(super) sender: &'a str,
    pub(super) kind: &'a str,
    pub(super) state_key: Option<&'a str>,
    pub(super) content: Value,
}

impl State {
    pub(super) fn new(setup: Setup) -> Self {
        let mut state = Self {
            setup,
            clock: None,
            position: 0,
            users: BTreeMap::new(),
            tokens: BTreeMap::new(),
            next_token: 0,
            rooms: BTreeMap::new(),
            aliases: BTreeMap::new(),
            sent: Idempotency::default(),
            faults: Faults::default(),
            queue: Queue::default(),
            typing: Vec::new(),
            receipts: Vec::new(),
            requests: Vec::new(),
            visibility: BTreeMap::new(),
            synced: BTreeMap::new(),
        };
        if state.setup.flavour == Flavour::Synapse {
            let bot = state.bot();
            state.users.insert(bot, User::default());
        }
        state
    }

    pub(super) fn bot(&self) -> String {
        format!("@{}:{}", self.setup.bot, self.setup.server_name)
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.as_ref().map_or(DAWN + self.position, |clock| clock())
    }

    /// Whether a user belongs to the appservice.
    pub(super) fn is_ours(&self, user: &str) -> bool {
        let ghost = user
            .strip_prefix('@')
            .and_then(|user| user.strip_suffix(&format!(":{}", self.setup.server_name)))
            .is_some_and(|localpart| localpart.starts_with(&self.setup.user_prefix));
        ghost || user == self.bot()
    }

    /// Adds an event to its room, its state and the appservice's queue: its id.
    pub(super) fn append(&mut self, draft: Draft<'_>) -> String {
        self.position += 1;
        let (at, position) = (self.now(), self.position);
        let room = self.rooms.get_mut(draft.room).expect("the room was looked up");
        let id = format!("$e{position}");
        let key = draft.state_key.map(|key| (draft.kind.to_owned(), key.to_owned()));
        let before =
            key.as_ref().and_then(|key| room.state.get(key)).map(|at| room.events[*at].content.clone());
        if let Some(key) = key {
            room.state.insert(key, room.events.len());
        }
        if draft.kind == "m.room.member" {
            let user = draft.state_key.unwrap_or_default().to_owned();
            if let Some(membership) = membership(&draft.content) {
                room.members.insert(user, Member { membership, by: draft.sender.to_owned() });
            }
        }
        let state_before = room.events.iter().rev().find(|e| e.state_key.is_some());
        let state_before = state_before.map_or(0, |event| event.state_before + 1);
        room.events.push(Event {
            id: id.clone(),
            room: draft.room.to_owned(),
            sender: draft.sender.to_owned(),
            kind: draft.kind.to_owned(),
            state_key: draft.state_key.map(str::to_owned),
            content: draft.content,
            at,
            position,
            txn: None,
            device: None,
            redacts: None,
            redacted_by: None,
            before,
            state_before,
        });
        self.enqueue(draft.room);
        id
    }

    /// Puts a member event with the user's display name.
    pub(super) fn put_member(
        &mut self,
        room: &str,
        by: &str,
        user: &str,
        membership: &str,
        extra: Value,
    ) -> String {
        let mut content = json!({ "membership": membership });
        if matches!(membership, "join" | "invite")
            && let Some(name) = self.users.get(user).and_then(|user| user.profile.get("displayname"))
        {
            content["displayname"] = json!(name);
        }
        if let (Some(content), Value::Object(extra)) = (content.as_object_mut(), extra) {
            content.extend(extra);
        }
        self.append(Draft { room, sender: by, kind: "m.room.member", state_key: Some(user), content })
    }

    /// Puts any other state event.
    pub(super) fn put_state(&mut self, room: &str, by: &str, kind: &str, content: Value) -> String {
        self.append(Draft { room, sender: by, kind, state_key: Some(""), content })
    }

    /// Takes an event back: its content is emptied and a redaction appended.
    pub(super) fn redact(&mut self, room: &str, by: &str, event: &str) -> String {
        let content = json!({ "redacts": event });
        let id = self.append(Draft { room, sender: by, kind: "m.room.redaction", state_key: None, content });
        let room = self.rooms.get_mut(room).expect("it took the redaction");
        for known in &mut room.events {
            if known.id == id {
                known.redacts = Some(event.to_owned());
            } else if known.id == event {
                known.content = json!({});
                known.redacted_by = Some(id.clone());
            }
        }
        id
    }
}

impl Room {
    pub(super) fn state_event(&self, kind: &str, key: &str) -> Option<&Event> {
        self.state.get(&(kind.to_owned(), key.to_owned())).map(|at| &self.events[*at])
    }

    pub(super) fn membership(&self, user: &str) -> Option<Membership> {
        self.members.get(user).map(|member| member.membership)
    }

    pub(super) fn is_joined(&self, user: &str) -> bool {
        self.membership(user) == Some(Membership::Join)
    }
}

fn membership(content: &Value) -> Option<Membership> {
    match content["membership"].as_str()? {
        "join" => Some(Membership::Join),
        "invite" => Some(Membership::Invite),
        "leave" => Some(Membership::Leave),
        "ban" => Some(Membership::Ban),
        _ => None,
    }
}

impl Event {
    /// As `/messages` and the like show it to a user and device.
    pub(super) fn shown(&self, flavour: Flavour, to: &str, device: Option<&str>) -> Value {
        let mut event = self.wire(flavour);
        let own = self.sender == to && self.device.as_deref() == device;
        if let (Flavour::Synapse, true, Some(txn)) = (flavour, own, &self.txn) {
            event["unsigned"]["transaction_id"] = json!(txn);
        }
        event
    }

    /// As a transaction carries it.
    pub(super) fn wire(&self, flavour: Flavour) -> Value {
        let mut event = json!({
            "event_id": self.id, "room_id": self.room, "sender": self.sender, "type": self.kind,
            "content": self.content, "origin_server_ts": self.at, "unsigned": {},
        });
        if let Some(key) = &self.state_key {
            event["state_key"] = json!(key);
        }
        if let Some(redacts) = &self.redacts {
            event["redacts"] = json!(redacts);
        }
        if let Some(by) = &self.redacted_by {
            event["unsigned"]["redacted_because"] = json!({ "event_id": by });
        }
        if let Some(before) = &self.before {
            event["unsigned"]["prev_content"] = before.clone();
        }
        match flavour {
            Flavour::Synapse => {
                event["user_id"] = json!(self.sender);
                event["age"] = json!(0);
                event["unsigned"]["age"] = json!(0);
            }
            // To everyone, whoever sent it.
            Flavour::Conduit => {
                if let Some(txn) = &self.txn {
                    event["unsigned"]["transaction_id"] = json!(txn);
                }
            }
        }
        event
    }
}
