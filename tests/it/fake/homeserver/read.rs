//! Reading back: history both ways, state, invites.

use serde_json::{Value, json};

use super::Flavour;
use super::http::{Ask, Caller, Outcome, Refusal, no, panicked};
use super::state::{Event, Membership, Room, State};

/// Conduit's start of the newest page.
const CONDUIT_NEWEST: &str = "18446744073709551615";

/// Synapse's filter, as far as it is honoured.
struct Filter {
    senders: Option<Value>,
    types: Option<Value>,
    not_senders: Option<Value>,
}

impl State {
    pub(super) fn messages(&mut self, ask: &Ask, caller: &Caller, room: &str) -> Outcome {
        self.readable(caller, room)?;
        let flavour = self.setup.flavour;
        let most = if flavour == Flavour::Synapse { 1000 } else { 100 };
        let limit = ask.query("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10_usize).min(most);
        let forward = ask.query("dir") == Some("f");
        let from = match ask.query("from") {
            Some(token) => Some(position(token).ok_or_else(|| no(400, "M_UNKNOWN", "Invalid from token"))?),
            None => None,
        };
        let filter = Filter::read(ask);
        let known = &self.rooms[room];
        let wanted = |event: &&Event| flavour == Flavour::Conduit || filter.lets(event);
        let page: Vec<Event> = if forward {
            let after = known.events.iter().filter(|event| from.is_none_or(|from| event.position > from));
            after.filter(wanted).take(limit).cloned().collect()
        } else {
            // Conduit's token is the oldest event already shown, Synapse's the point before it.
            let before = |event: &&Event| match (from, flavour) {
                (None, _) => true,
                (Some(from), Flavour::Synapse) => event.position <= from,
                (Some(from), Flavour::Conduit) => event.position < from,
            };
            known.events.iter().rev().filter(before).filter(wanted).take(limit).cloned().collect()
        };
        let page: Vec<Event> = page.into_iter().filter(|event| self.visible(caller, event)).collect();
        let end = page.last().map(|last| match (flavour, forward) {
            (Flavour::Synapse, true) => format!("t{}", last.position),
            (Flavour::Synapse, false) => format!("t{}", last.position - 1),
            (Flavour::Conduit, _) => last.position.to_string(),
        });
        let chunk: Vec<Value> =
            page.iter().map(|event| event.shown(flavour, &caller.user, caller.device.as_deref())).collect();
        let mut answer = json!({ "start": ask.query("from").unwrap_or(CONDUIT_NEWEST), "chunk": chunk });
        if let Some(end) = end {
            answer["end"] = json!(end);
        }
        Ok(answer)
    }

    pub(super) fn context(&mut self, caller: &Caller, room: &str, event: &str) -> Outcome {
        if self.setup.flavour == Flavour::Conduit && caller.masquerades {
            return Err(panicked());
        }
        let missing = || no(404, "M_NOT_FOUND", "Event not found.").or_conduit("Base event id not found.");
        let known = self.rooms.get(room).ok_or_else(missing)?;
        let event = known.events.iter().find(|known| known.id == event).ok_or_else(missing)?.clone();
        if !self.visible(caller, &event) {
            return Err(no(403, "M_FORBIDDEN", "You don't have permission to access that event.")
                .or_conduit("You don't have permission to view this event."));
        }
        let flavour = self.setup.flavour;
        let end = match flavour {
            Flavour::Synapse => format!("t{}", event.position),
            Flavour::Conduit => event.position.to_string(),
        };
        let shown = event.shown(flavour, &caller.user, caller.device.as_deref());
        Ok(
            json!({ "event": shown, "start": end, "end": end, "events_before": [], "events_after": [], "state": [] }),
        )
    }

    /// Whether a user may ask for history at all.
    fn readable(&self, caller: &Caller, room: &str) -> Result<(), Refusal> {
        if self.setup.flavour == Flavour::Conduit {
            return match (caller.masquerades, self.rooms.contains_key(room)) {
                (true, _) => Err(panicked()),
                (false, true) => Ok(()),
                (false, false) => Err(no(500, "M_UNKNOWN", "Looked for bad shortroomid in timeline")),
            };
        }
        self.was_member(caller, room)
    }

    /// Synapse lets in who is joined, or left; nobody who is invited or banned.
    fn was_member(&self, caller: &Caller, room: &str) -> Result<(), Refusal> {
        match self.rooms.get(room).and_then(|known| known.membership(&caller.user)) {
            Some(Membership::Join | Membership::Leave) => Ok(()),
            Some(Membership::Invite | Membership::Ban) | None => Err(no(
                403,
                "M_FORBIDDEN",
                format!("User {} not in room {room}, and room previews are disabled", caller.user),
            )),
        }
    }

    /// Conduit decides once per user and state of the room, and keeps to it until it restarts: who asks before she
    /// joins does not see those events afterwards either.
    fn visible(&mut self, caller: &Caller, event: &Event) -> bool {
        if self.setup.flavour == Flavour::Synapse {
            return self.was_member(caller, &event.room).is_ok();
        }
        let joined = self.rooms[&event.room].is_joined(&caller.user);
        let key = (caller.user.clone(), event.room.clone(), event.state_before);
        *self.visibility.entry(key).or_insert(joined)
    }

    pub(super) fn read_state(&self, caller: &Caller, room: &str, kind: &str, key: &str) -> Outcome {
        match self.setup.flavour {
            Flavour::Synapse => self.was_member(caller, room)?,
            Flavour::Conduit => {
                let joined = self.rooms.get(room).is_some_and(|known| known.is_joined(&caller.user));
                if !joined {
                    return Err(no(403, "M_FORBIDDEN", "You don't have permission to view the room state."));
                }
            }
        }
        let missing = || no(404, "M_NOT_FOUND", "Event not found.").or_conduit("State event not found.");
        self.rooms[room].state_event(kind, key).map(|event| event.content.clone()).ok_or_else(missing)
    }

    /// Only invites, and which joined rooms have news; on Synapse nothing for the bot. Who asks the same again gets the answer of before, unless that
    /// was empty: on Synapse for two minutes (here for ever), on Conduit until the device asks something else.
    pub(super) fn sync(&mut self, ask: &Ask, caller: &Caller) -> Outcome {
        let since = ask.query("since").map(str::to_owned);
        let device = (caller.user.clone(), caller.device.clone().unwrap_or_default());
        let question = match self.setup.flavour {
            // It raises NotImplementedError for the appservice's own user.
            Flavour::Synapse if caller.user == self.setup.bot => {
                return Err(no(500, "M_UNKNOWN", "Internal server error"));
            }
            Flavour::Synapse => format!("{since:?} {:?}", ask.query("filter")),
            Flavour::Conduit if caller.masquerades => return Err(panicked()),
            Flavour::Conduit => format!("{since:?}"),
        };
        let answers = self.synced.entry(device).or_default();
        if let Some(answer) = answers.get(&question) {
            return Ok(answer.clone());
        }
        if self.setup.flavour == Flavour::Conduit {
            answers.clear();
        }
        let answer = self.news(caller, since.as_deref());
        if answer["rooms"] != json!({ "invite": {}, "join": {} }) || since.is_none() {
            let device = (caller.user.clone(), caller.device.clone().unwrap_or_default());
            self.synced.entry(device).or_default().insert(question, answer.clone());
        }
        Ok(answer)
    }

    fn news(&self, caller: &Caller, since: Option<&str>) -> Value {
        let since = since.and_then(position).unwrap_or_default();
        let (mut invited, mut joined) = (serde_json::Map::new(), serde_json::Map::new());
        for (id, room) in &self.rooms {
            let at = room.state_event("m.room.member", &caller.user).map_or(0, |event| event.position);
            let newest = room.events.last().map_or(0, |event| event.position);
            match room.membership(&caller.user) {
                Some(Membership::Invite) if at > since => {
                    let state = json!({ "invite_state": { "events": stripped(room, &caller.user) } });
                    invited.insert(id.clone(), state);
                }
                Some(Membership::Join) if newest > since => {
                    joined.insert(id.clone(), json!({}));
                }
                Some(_) | None => {}
            }
        }
        let next = match self.setup.flavour {
            Flavour::Synapse => format!("s{}_0_0", self.position),
            Flavour::Conduit => self.position.to_string(),
        };
        json!({ "next_batch": next, "rooms": { "invite": invited, "join": joined } })
    }
}

/// What an invited user is shown of a room; event ids are not among it.
pub(super) fn stripped(room: &Room, user: &str) -> Vec<Value> {
    let inviter = room.members.get(user).map(|member| member.by.as_str()).unwrap_or_default();
    let keys = [
        ("m.room.create", ""),
        ("m.room.join_rules", ""),
        ("m.room.name", ""),
        ("m.room.encryption", ""),
        ("m.room.member", inviter),
        ("m.room.member", user),
    ];
    let events = keys.iter().filter_map(|(kind, key)| room.state_event(kind, key));
    events
        .map(
            |e| json!({ "type": e.kind, "state_key": e.state_key, "sender": e.sender, "content": e.content }),
        )
        .collect()
}

fn position(token: &str) -> Option<u64> {
    token.trim_start_matches(['t', 's']).split(['_', '-']).next()?.parse().ok()
}

impl Filter {
    fn read(ask: &Ask) -> Self {
        let filter: Value =
            ask.query("filter").and_then(|filter| serde_json::from_str(filter).ok()).unwrap_or_default();
        let part = |key: &str| filter.get(key).cloned();
        Self { senders: part("senders"), types: part("types"), not_senders: part("not_senders") }
    }

    fn lets(&self, event: &Event) -> bool {
        let names =
            |list: &Value, name: &str| list.as_array().is_some_and(|all| all.iter().any(|one| one == name));
        self.senders.as_ref().is_none_or(|senders| names(senders, &event.sender))
            && self.types.as_ref().is_none_or(|types| names(types, &event.kind))
            && !self.not_senders.as_ref().is_some_and(|senders| names(senders, &event.sender))
    }
}
