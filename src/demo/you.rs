//! The user of the demo: their rooms, what they say, and what the Personas say to them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::cast::{self, PERSONAS, Target};
use super::matrix::{CallFault, Login, Matrix, text};
use super::secret;

const POLL: Duration = Duration::from_millis(100);

/// The logged-in user.
pub(super) struct You {
    matrix: Matrix,
    login: Login,
    rooms: BTreeMap<String, Target>,
    since: Option<String>,
    /// Which sync of which process it is: homeservers repeat an answer of before to a question of before.
    mark: (String, u64),
}

/// Something that a Persona said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// Where.
    pub(super) target: Target,
    /// Who, by her id.
    pub(super) persona: &'static str,
    /// What.
    pub(super) body: String,
}

impl You {
    /// A user by their token; what was said before now is not heard again.
    pub(super) async fn new(matrix: &Matrix, login: Login) -> Result<Self, CallFault> {
        let matrix = matrix.with_token(&login.access_token);
        let mut you = Self { matrix, login, rooms: BTreeMap::new(), since: None, mark: (secret::token(), 0) };
        you.sync(Duration::ZERO).await?;
        Ok(you)
    }

    /// The full user id.
    pub(super) fn id(&self) -> &str {
        &self.login.user_id
    }

    /// Goes to a room or a direct chat and waits until the Personas are there: the room's id.
    pub(super) async fn go(&mut self, target: Target) -> Result<String, CallFault> {
        let known = self.rooms.iter().find(|(_, known)| **known == target).map(|(room, _)| room.clone());
        if let Some(room) = known {
            return Ok(room);
        }
        let server = self.login.server_name().to_owned();
        let (room, members) = match target {
            Target::Room(name) => {
                let room = self.join_when_there(&cast::alias(name, &server)).await?;
                (room, PERSONAS.iter().map(|(id, _)| cast::user_id(id, &server)).collect())
            }
            Target::Direct(id) => {
                let her = cast::user_id(id, &server);
                (self.direct(&her).await?, vec![her])
            }
        };
        self.wait_for_members(&room, &members).await?;
        self.rooms.insert(room.clone(), target);
        Ok(room)
    }

    /// Says something in a room: the event id.
    pub(super) async fn say(&self, room: &str, words: &str) -> Result<String, CallFault> {
        self.matrix.say(room, &secret::token(), words).await
    }

    /// Waits at most `patience` for something to happen: what the Personas said, in order.
    pub(super) async fn listen(&mut self, patience: Duration) -> Result<Vec<Heard>, CallFault> {
        let answer = self.sync(patience).await?;
        let mut heard = Vec::new();
        for (room, target) in &self.rooms {
            let timeline = answer["rooms"]["join"][room]["timeline"]["events"].as_array();
            heard.extend(timeline.into_iter().flatten().filter_map(|event| Heard::read(*target, event)));
        }
        Ok(heard)
    }

    /// Waits at most `patience` for something to happen: what stands new in a room, in its order.
    pub(super) async fn timeline(&mut self, room: &str, patience: Duration) -> Result<Vec<Value>, CallFault> {
        let mut answer = self.sync(patience).await?;
        let events = answer["rooms"]["join"][room]["timeline"]["events"].take();
        Ok(events.as_array().cloned().unwrap_or_default())
    }

    async fn sync(&mut self, patience: Duration) -> Result<Value, CallFault> {
        let patience = patience.as_millis().to_string();
        self.mark.1 += 1;
        // Every type is excluded already; the one more makes it a question of its own.
        let presence = json!({"types": [], "not_types": [format!("{}.{}", self.mark.0, self.mark.1)]});
        let filter = json!({"room": {"timeline": {"limit": 100}}, "presence": presence}).to_string();
        let mut query = vec![("timeout", patience.as_str()), ("filter", filter.as_str())];
        if let Some(since) = &self.since {
            query.push(("since", since));
        }
        let answer = self.matrix.get(&["v3", "sync"], &query).await?;
        self.since = Some(text(&answer, "next_batch")?);
        Ok(answer)
    }

    /// The bridge makes the rooms at its first start: they may not be there yet.
    async fn join_when_there(&self, alias: &str) -> Result<String, CallFault> {
        loop {
            match self.matrix.join(alias).await {
                Err(fault) if fault.is("M_NOT_FOUND") => tokio::time::sleep(POLL).await,
                other => return other,
            }
        }
    }

    /// The direct chat with her: the one of before if it can still be spoken in, else a new one.
    async fn direct(&self, her: &str) -> Result<String, CallFault> {
        let path = ["v3", "user", self.id(), "account_data", "m.direct"];
        let mut direct = match self.matrix.get(&path, &[]).await {
            Ok(direct) if direct.is_object() => direct,
            Ok(_) => json!({}),
            Err(fault) if fault.is("M_NOT_FOUND") => json!({}),
            Err(fault) => return Err(fault),
        };
        let earlier = direct[her].as_array().into_iter().flatten().filter_map(Value::as_str).next_back();
        if let Some(room) = earlier
            && self.members(room).await.is_ok_and(|members| members.contains(&her.to_owned()))
        {
            return Ok(room.to_owned());
        }
        let create = json!({"is_direct": true, "invite": [her], "preset": "trusted_private_chat"});
        let room = text(&self.matrix.post(&["v3", "createRoom"], &create).await?, "room_id")?;
        direct[her] = json!([room]);
        self.matrix.put(&path, &direct).await?;
        Ok(room)
    }

    async fn wait_for_members(&self, room: &str, expected: &[String]) -> Result<(), CallFault> {
        loop {
            let members = self.members(room).await?;
            if expected.iter().all(|member| members.contains(member)) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn members(&self, room: &str) -> Result<Vec<String>, CallFault> {
        let answer = self.matrix.get(&["v3", "rooms", room, "joined_members"], &[]).await?;
        Ok(answer["joined"].as_object().into_iter().flatten().map(|(user, _)| user.clone()).collect())
    }
}

impl Heard {
    /// What an event says, if a Persona says something by it.
    pub(super) fn read(target: Target, event: &Value) -> Option<Self> {
        let content = &event["content"];
        let is_edit = content["m.relates_to"]["rel_type"] == "m.replace";
        if event["type"] != "m.room.message" || is_edit {
            return None;
        }
        let persona = cast::persona(event["sender"].as_str()?)?;
        Some(Self { target, persona, body: content["body"].as_str()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_personas_say_is_heard() {
        let event = |sender: &str, kind: &str, content: Value| {
            let event = json!({"sender": sender, "type": kind, "content": content});
            Heard::read(Target::Room("swarm"), &event).map(|heard| (heard.persona, heard.body))
        };
        let says = json!({"msgtype": "m.text", "body": "Hello."});
        let eir = "@persona_eir:demo.test";
        assert_eq!(event(eir, "m.room.message", says.clone()), Some(("eir", "Hello.".to_owned())));
        assert_eq!(event("@you:demo.test", "m.room.message", says.clone()), None);
        assert_eq!(event(eir, "m.reaction", says), None);
        assert_eq!(event(eir, "m.room.message", json!({})), None, "redacted");
        let edit = json!({"msgtype": "m.text", "body": "* Hi.", "m.relates_to": {"rel_type": "m.replace"}});
        assert_eq!(event(eir, "m.room.message", edit), None);
    }
}
