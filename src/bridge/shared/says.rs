//! Says with their bodies frozen, and notices to operators.

use ruma::{OwnedRoomId, UserId};

use super::Shared;
use crate::bridge::BridgeError;
use crate::conversation::{Cause, RequestId};
use crate::homeserver::content;
use crate::homeserver::event::{CAUSE_KEY, REQUEST_KEY};
use crate::store::NewSay;

impl Shared {
    /// A say with its request id derived and its body frozen.
    pub(crate) fn say(&self, sender: &UserId, target: SayTarget<'_>, content: &serde_json::Value) -> NewSay {
        self.say_of(sender, target, content, None)
    }

    /// Like [`Shared::say`], of what a Persona says in a turn.
    pub(crate) fn say_of(
        &self,
        sender: &UserId,
        target: SayTarget<'_>,
        content: &serde_json::Value,
        origin: Option<&Cause>,
    ) -> NewSay {
        let SayTarget { room, kind, cause, part } = target;
        let request = RequestId::derive(self.store.epoch(), sender, room, cause, kind, part);
        NewSay {
            sender: sender.to_owned(),
            room: room.clone(),
            body: content::freeze(content, &request, origin),
            request,
            kind: kind.to_owned(),
            cause: cause.to_owned(),
            part: part.to_owned(),
        }
    }

    /// Tells operators once for `key`: a warning in the log and a notice in the control room.
    pub(crate) async fn tell(&self, key: &str, text: &str) -> Result<(), BridgeError> {
        let is_new = self.put_notice(key, text).await;
        // What cannot be told in the room is still told here.
        if !matches!(is_new, Ok(false)) {
            tracing::warn!(key, "{text}");
        }
        is_new.map(drop)
    }

    /// Like [`Shared::tell`], of what goes as it should.
    pub(crate) async fn note(&self, key: &str, text: &str) -> Result<(), BridgeError> {
        if self.put_notice(key, text).await? {
            tracing::info!(key, "{text}");
        }
        Ok(())
    }

    /// Answers whether it is news; where there is no control room, all is.
    async fn put_notice(&self, key: &str, text: &str) -> Result<bool, BridgeError> {
        let Some((key, says)) = self.control_notice(key, text)? else { return Ok(true) };
        let is_new = self.store.say_once(key, says, self.clock.now()).await?;
        if is_new {
            self.outbox.notify_one();
        }
        Ok(is_new)
    }

    /// Like [`Shared::tell`], for who puts the notice into the store together with something else.
    pub(crate) fn telling(
        &self,
        key: &str,
        text: &str,
    ) -> Result<Option<(String, Vec<NewSay>)>, BridgeError> {
        tracing::warn!(key, "{text}");
        self.control_notice(key, text)
    }

    /// What is put into the control room for `key`, where there is one.
    pub(crate) fn control_notice(
        &self,
        key: &str,
        text: &str,
    ) -> Result<Option<(String, Vec<NewSay>)>, BridgeError> {
        let Some(room) = self.store.control_room()? else { return Ok(None) };
        let cause = format!("told:{key}");
        let target = SayTarget { room: &room, kind: "m.room.message", cause: &cause, part: "0" };
        let say = self.say(&self.config.bot, target, &notice(text));
        Ok(Some((cause, vec![say])))
    }
}

/// Where a say goes and what it is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SayTarget<'a> {
    pub(crate) room: &'a OwnedRoomId,
    pub(crate) kind: &'a str,
    pub(crate) cause: &'a str,
    pub(crate) part: &'a str,
}

/// A plain `m.notice`.
pub(crate) fn notice(text: &str) -> serde_json::Value {
    serde_json::json!({ "msgtype": "m.notice", "body": text, "m.mentions": {} })
}

/// The content of a frozen body, without what was put into it.
pub(crate) fn thaw(body: &str) -> Option<serde_json::Value> {
    let mut content: serde_json::Value = serde_json::from_str(body).ok()?;
    let fields = content.as_object_mut()?;
    fields.remove(REQUEST_KEY);
    fields.remove(CAUSE_KEY);
    Some(content)
}
