//! Sending, and what a homeserver remembers of a transaction id.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::http::{Ask, Caller, Outcome, Refusal, no};
use super::state::{Draft, State};
use super::{FakeHomeserver, Flavour};

/// The largest contents measured, in bytes.
const SYNAPSE_LARGEST: usize = 64_963;
const CONDUIT_LARGEST: usize = 64_927;

/// What is remembered: event ids by transaction id.
#[derive(Clone, Default)]
pub(super) struct Idempotency {
    /// Synapse's cache: by path, and by appservice (not ghost!) or user; lost at a restart and after half an hour.
    memory: BTreeMap<(String, String), String>,
    /// Synapse: by room, user, device and id, for a day. Conduit: by user, device and id, for ever.
    table: BTreeMap<[String; 4], String>,
}

impl State {
    pub(super) fn send(&mut self, ask: &Ask, caller: &Caller, room: &str, kind: &str, txn: &str) -> Outcome {
        let keys = self.keys(ask, caller, room, txn);
        if let Some(event) = self.known(&keys) {
            return Ok(json!({ "event_id": event }));
        }
        let content = self.content(ask)?;
        self.may_post(caller, room)?;
        self.new_annotation(caller, room, kind, &content)?;
        let id = self.append(Draft { room, sender: &caller.user, kind, state_key: None, content });
        self.stamp(room, &id, txn, caller.device.clone());
        if let Some(memory) = keys.0 {
            self.sent.memory.insert(memory, id.clone());
        }
        if let Some(table) = keys.1 {
            self.sent.table.insert(table, id.clone());
        }
        Ok(json!({ "event_id": id }))
    }

    fn keys(
        &self,
        ask: &Ask,
        caller: &Caller,
        room: &str,
        txn: &str,
    ) -> (Option<(String, String)>, Option<[String; 4]>) {
        let owned = str::to_owned;
        match self.setup.flavour {
            Flavour::Synapse => {
                let owner = if caller.masquerades { &self.setup.appservice } else { &caller.user };
                let table = caller.device.clone().map(|d| [owned(room), caller.user.clone(), d, owned(txn)]);
                (Some((ask.path.join("/"), owner.clone())), table)
            }
            Flavour::Conduit => {
                let device = caller.device.clone().unwrap_or_default();
                (None, Some([String::new(), caller.user.clone(), device, owned(txn)]))
            }
        }
    }

    fn known(&self, keys: &(Option<(String, String)>, Option<[String; 4]>)) -> Option<String> {
        let memory = keys.0.as_ref().and_then(|key| self.sent.memory.get(key));
        memory.or_else(|| keys.1.as_ref().and_then(|key| self.sent.table.get(key))).cloned()
    }

    /// Writes the transaction id on the event.
    fn stamp(&mut self, room: &str, id: &str, txn: &str, device: Option<String>) {
        let room = self.rooms.get_mut(room).expect("it took the event");
        if let Some(event) = room.events.iter_mut().rev().find(|event| event.id == id) {
            event.txn = Some(txn.to_owned());
            event.device = device;
        }
    }

    pub(super) fn send_state(
        &mut self,
        ask: &Ask,
        caller: &Caller,
        room: &str,
        kind: &str,
        key: &str,
    ) -> Outcome {
        let content = self.content(ask)?;
        self.may_post(caller, room)?;
        let known = self.rooms[room].state_event(kind, key).filter(|event| event.content == content);
        if let (Flavour::Synapse, Some(event)) = (self.setup.flavour, known) {
            return Ok(json!({ "event_id": event.id }));
        }
        let draft = Draft { room, sender: &caller.user, kind, state_key: Some(key), content };
        Ok(json!({ "event_id": self.append(draft) }))
    }

    fn content(&self, ask: &Ask) -> Outcome {
        let content = ask.json()?;
        if !content.is_object() || has_float(&content) {
            return Err(no(400, "M_BAD_JSON", "Bad JSON value: float")
                .or_conduit("Event content provided is invalid"));
        }
        let (largest, status, errcode) = match self.setup.flavour {
            Flavour::Synapse => (SYNAPSE_LARGEST, 413, "M_TOO_LARGE"),
            Flavour::Conduit => (CONDUIT_LARGEST, 400, "M_INVALID_PARAM"),
        };
        if content.to_string().len() > self.faults.largest.unwrap_or(largest) {
            return Err(no(status, errcode, "event too large").or_conduit("Event is invalid"));
        }
        Ok(content)
    }

    fn may_post(&self, caller: &Caller, room: &str) -> Result<(), Refusal> {
        self.joined(caller, room)?;
        let known = &self.rooms[room];
        let silenced = known.muted.contains(&caller.user) || known.tombstoned;
        if silenced && known.creator != caller.user {
            let words =
                "You don't have permission to post that to the room. user_level (0) < send_level (50)";
            return Err(no(403, "M_FORBIDDEN", words).or_conduit("Event is not authorized."));
        }
        Ok(())
    }

    /// Synapse refuses a reaction that stands already.
    fn new_annotation(
        &self,
        caller: &Caller,
        room: &str,
        kind: &str,
        content: &Value,
    ) -> Result<(), Refusal> {
        let same = |event: &super::Event| {
            event.kind == kind
                && event.sender == caller.user
                && event.content["m.relates_to"] == content["m.relates_to"]
        };
        let doubled = kind == "m.reaction" && self.rooms[room].events.iter().any(same);
        if doubled && self.setup.flavour == Flavour::Synapse {
            return Err(no(400, "M_DUPLICATE_ANNOTATION", "Can't send same reaction twice"));
        }
        Ok(())
    }

    /// A restart: Synapse's cache and queue are gone, Conduit's wrong ideas of visibility too.
    pub(super) fn restart(&mut self) {
        self.sent.memory.clear();
        self.visibility.clear();
        self.synced.clear();
        if self.setup.flavour == Flavour::Synapse {
            self.lose_queue();
        }
    }
}

fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(values) => values.iter().any(has_float),
        Value::Object(map) => map.values().any(has_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

impl FakeHomeserver {
    /// Forgets every transaction id, as Synapse does after a day.
    pub(crate) fn lose_idempotency(&self) {
        self.lock().sent = Idempotency::default();
    }

    /// Restarts: what its flavour holds in memory only is lost.
    pub(crate) fn restart(&self) {
        self.lock().restart();
        self.queued.notify_one();
    }
}
