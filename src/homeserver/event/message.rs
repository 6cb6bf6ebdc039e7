//! The words of a message: text, emote, notice, media placeholder, reply, thread, edit and mentions.

use ruma::{OwnedEventId, OwnedUserId};

use super::fields::Fields;
use super::{event_id, user_id};
use crate::conversation::{Message, MessageKind};

/// The most characters of a file name in a placeholder.
const FILE_NAME_MAX: usize = 120;

/// Reads a message's content; `None` where it says nothing readable.
pub(super) fn message(content: &Fields<'_>) -> Option<Message> {
    let relation = Relation::read(&content.object("m.relates_to"));
    let new = content.object("m.new_content");
    if relation.edits.is_some() {
        let is_reply = new.object("m.relates_to").object("m.in_reply_to").has("event_id");
        if let Some((kind, text)) = words(&new, is_reply) {
            let mentioning = if new.has("m.mentions") { &new } else { content };
            return Some(said(kind, text, relation, &mentioning.object("m.mentions")));
        }
    }
    let (kind, mut text) = words(content, relation.answers.is_some())?;
    if relation.edits.is_some() {
        text = text.strip_prefix("* ").map(str::to_owned).unwrap_or(text);
    }
    Some(said(kind, text, relation, &content.object("m.mentions")))
}

/// Reads a sticker's content, an image whose body describes it.
pub(super) fn sticker(content: &Fields<'_>) -> Option<Message> {
    if content.is_empty() {
        return None;
    }
    let relation = Relation::read(&content.object("m.relates_to"));
    let text = placeholder("sticker", content);
    Some(said(MessageKind::Media, text, relation, &content.object("m.mentions")))
}

fn said(kind: MessageKind, text: String, relation: Relation, mentions: &Fields<'_>) -> Message {
    let reply_to = relation.answers.filter(|_| !relation.is_falling_back);
    let (thread, edits) = (relation.thread, relation.edits);
    let mentions_room = mentions.bool("room");
    Message { kind, text, thread, reply_to, edits, mentions: users(mentions), mentions_room }
}

/// Which event is answered or reacted to by what relates so.
pub(super) fn answered(relates: &Fields<'_>) -> Option<OwnedEventId> {
    let relation = Relation::read(relates);
    let reacts =
        || relates.string("event_id").filter(|_| is_annotation(relates)).and_then(|id| event_id(&id));
    relation.answers.filter(|_| !relation.is_falling_back).or_else(reacts)
}

fn is_annotation(relates: &Fields<'_>) -> bool {
    relates.string("rel_type").is_some_and(|kind| kind == "m.annotation")
}

/// What `m.relates_to` says.
struct Relation {
    thread: Option<OwnedEventId>,
    edits: Option<OwnedEventId>,
    answers: Option<OwnedEventId>,
    is_falling_back: bool,
}

impl Relation {
    fn read(fields: &Fields<'_>) -> Self {
        let target = || fields.string("event_id").and_then(|id| event_id(&id));
        let kind = fields.string("rel_type").unwrap_or_default();
        let thread = (kind == "m.thread").then(target).flatten();
        Self {
            is_falling_back: thread.is_some() && fields.bool("is_falling_back"),
            thread,
            edits: (kind == "m.replace").then(target).flatten(),
            answers: fields.object("m.in_reply_to").string("event_id").and_then(|id| event_id(&id)),
        }
    }
}

fn words(content: &Fields<'_>, is_reply: bool) -> Option<(MessageKind, String)> {
    let kind = match content.string("msgtype").unwrap_or_default().as_ref() {
        "m.emote" => MessageKind::Emote,
        "m.notice" => MessageKind::Notice,
        media @ ("m.image" | "m.file" | "m.audio" | "m.video") => {
            return Some((MessageKind::Media, placeholder(&media[2..], content)));
        }
        _ => MessageKind::Text,
    };
    let body = content.string("body")?.into_owned();
    Some((kind, if is_reply { without_reply_fallback(&body).to_owned() } else { body }))
}

fn users(mentions: &Fields<'_>) -> Vec<OwnedUserId> {
    let mut users = Vec::new();
    for user in mentions.strings("user_ids").iter().filter_map(|id| user_id(id)) {
        if !users.contains(&user) {
            users.push(user);
        }
    }
    users
}

/// `[image photo.jpg 240 kB]`, with the caption behind it where the body is not the file's name.
fn placeholder(kind: &str, content: &Fields<'_>) -> String {
    let body = content.string("body").filter(|body| !body.trim().is_empty());
    let filename = content.string("filename").filter(|name| !name.trim().is_empty());
    let caption = body.as_ref().filter(|body| filename.as_ref().is_some_and(|name| name != *body));
    let name = filename.as_ref().or(body.as_ref()).map(|name| one_line(name));
    let size = content.object("info").number("size").map(human_size);
    let mut text = format!(
        "[{}]",
        [Some(kind.to_owned()), name, size].into_iter().flatten().collect::<Vec<_>>().join(" ")
    );
    if let Some(caption) = caption {
        text.push(' ');
        text.push_str(caption);
    }
    text
}

fn one_line(name: &str) -> String {
    let line: String =
        name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(FILE_NAME_MAX).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A size in decimal units: `512 B`, `240 kB`, `2.4 MB`.
fn human_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}

/// Removes the quotation that older clients put before a reply: `> <@user:server> …`, or `> * <@user:server> …`.
fn without_reply_fallback(body: &str) -> &str {
    if !(body.starts_with("> <@") || body.starts_with("> * <@")) {
        return body;
    }
    let mut rest = body;
    while rest.starts_with("> ") || rest.starts_with(">\n") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
    if rest.is_empty() { body } else { rest }
}
