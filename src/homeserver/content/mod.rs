//! From markdown to message contents: sanitised HTML, pills and mentions, split to what the server takes.
//!
//! It never lets raw HTML or a link of a foreign scheme through, never mentions a whole room and never drops a word.
//! What a message may look like is decided in `html`, where it may be split in `cut`.

mod cut;
mod html;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ruma::{EventId, OwnedUserId, UserId};
use serde_json::{Map, Value, json};

use super::event::{CAUSE_KEY, REQUEST_KEY};
use crate::conversation::{Cause, RequestId};

/// The most bytes a serialised content may have (Synapse takes 64,963, Conduit 64,927).
pub const CONTENT_MAX: usize = 60_000;

/// What is left free for the request id and the cause that [`freeze`] puts in.
const REQUEST_ROOM: usize = 256;

/// Words to be said in a room.
#[derive(Clone, Debug)]
pub struct Speech<'a> {
    /// Markdown.
    pub text: &'a str,
    /// Joined members of the room: only they become pills and mentions.
    pub members: &'a BTreeMap<OwnedUserId, Option<String>>,
    /// The thread it is said in.
    pub thread: Option<&'a EventId>,
    /// The newest message of that thread that is known: clients without threads show what is said as an answer to it.
    pub newest: Option<&'a EventId>,
    /// The event it answers.
    pub reply_to: Option<&'a EventId>,
}

/// Renders words into `m.room.message` contents, in order, each small enough with its request id; blank text into none.
pub fn render(speech: &Speech<'_>) -> Vec<Value> {
    parts(speech, CONTENT_MAX)
}

/// A reaction's content.
pub fn reaction(to: &EventId, key: &str) -> Value {
    json!({"m.relates_to": {"rel_type": "m.annotation", "event_id": to, "key": key}})
}

/// Splits a content that the server found too large into two smaller ones; `None` where it cannot be split.
///
/// Both stay in the thread; the first alone keeps the reply.
pub fn split(content: &Value) -> Option<Vec<Value>> {
    let kind =
        content.get("msgtype")?.as_str().filter(|kind| matches!(*kind, "m.text" | "m.notice" | "m.emote"))?;
    let relation = content.get("m.relates_to");
    let body = content.get("body")?.as_str()?;
    let (first, second) = cut::cut(body, body.len() / 2)?;
    let members = html::mentioned(content);
    Some(vec![
        message(kind, &first, &members, relation.cloned()),
        message(kind, &second, &members, relation.and_then(following)),
    ])
}

/// The content as JSON text with the request id in it, and what a Persona's event comes of.
pub fn freeze(content: &Value, request: &RequestId, cause: Option<&Cause>) -> String {
    let mut content = content.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.insert(REQUEST_KEY.to_owned(), Value::from(request.as_str()));
        if let Some(Cause { turn, hops }) = cause {
            fields.insert(CAUSE_KEY.to_owned(), json!({"turn": turn.to_string(), "hops": hops}));
        }
    }
    content.to_string()
}

fn parts(speech: &Speech<'_>, max: usize) -> Vec<Value> {
    let mut waiting = Vec::from_iter(clean(speech.text));
    let mut parts = Vec::new();
    while let Some(text) = waiting.pop() {
        let reply_to = speech.reply_to.filter(|_| parts.is_empty());
        let halves = |len| cut::cut(&text, first_share(text.len(), len, max));
        // A body that is too long by itself need not be rendered to know it.
        if let Some((first, second)) = (text.len() > max).then(|| halves(text.len())).flatten() {
            waiting.extend([second, first]);
            continue;
        }
        let content =
            message("m.text", &text, speech.members, relation(speech.thread, reply_to, speech.newest));
        let len = content.to_string().len() + REQUEST_ROOM;
        match (len > max).then(|| halves(len)).flatten() {
            Some((first, second)) => waiting.extend([second, first]),
            None => parts.push(content),
        }
    }
    parts
}

/// Where to cut a text so that, with as few parts as its content needs, all become of about the same length.
fn first_share(text: usize, content: usize, max: usize) -> usize {
    let parts = content.div_ceil(max).max(2);
    text * (parts / 2) / parts
}

/// Without NUL, which a server may refuse, and without blank lines around; `None` where nothing is left.
fn clean(text: &str) -> Option<String> {
    let text = text.replace('\0', "");
    let text = text.trim_end();
    let first = text.find(|c: char| !c.is_whitespace())?;
    let line = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
    Some(text[line..].to_owned())
}

fn message(
    kind: &str,
    text: &str,
    members: &BTreeMap<OwnedUserId, Option<String>>,
    relation: Option<Value>,
) -> Value {
    let words = html::render(text, members);
    let mut content = Map::new();
    content.insert("msgtype".into(), kind.into());
    content.insert("body".into(), text.into());
    if let Some(html) = words.html {
        content.insert("format".into(), "org.matrix.custom.html".into());
        content.insert("formatted_body".into(), html.into());
    }
    content.insert("m.mentions".into(), mentions(&words.mentions));
    if let Some(relation) = relation {
        content.insert("m.relates_to".into(), relation);
    }
    Value::Object(content)
}

fn mentions(users: &[&UserId]) -> Value {
    if users.is_empty() { json!({}) } else { json!({"user_ids": users}) }
}

fn relation(thread: Option<&EventId>, reply_to: Option<&EventId>, newest: Option<&EventId>) -> Option<Value> {
    match (thread, reply_to) {
        (Some(root), reply_to) => Some(json!({
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": reply_to.is_none(),
            "m.in_reply_to": {"event_id": reply_to.or(newest).unwrap_or(root)},
        })),
        (None, Some(reply_to)) => Some(json!({"m.in_reply_to": {"event_id": reply_to}})),
        (None, None) => None,
    }
}

/// The relation of what follows a first part: its thread, where it has one.
fn following(first: &Value) -> Option<Value> {
    let is_thread = first.get("rel_type")? == "m.thread";
    let root = first.get("event_id")?.as_str().filter(|_| is_thread)?;
    let answered = first.pointer("/m.in_reply_to/event_id").and_then(Value::as_str);
    let newest = answered.and_then(|answered| <&EventId>::try_from(answered).ok());
    relation(Some(<&EventId>::try_from(root).ok()?), None, newest)
}
