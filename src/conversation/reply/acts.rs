//! Acts from a reply, within an allowance.

use ruma::{OwnedEventId, OwnedRoomId};

use super::decode::{React, Say, decode, label};
use super::rooms::Open;
use super::{Act, Allowance, Fault, Target};
use crate::conversation::register::ReplyIn;

/// The longest reaction key, in bytes.
const KEY_BYTES: usize = 64;

/// Reads a reply and turns it into acts: says first, then reactions, each in her order; an empty list is silence.
///
/// A say with nothing to be seen in it is left out, and so is a reaction that stands twice. A say goes into the thread
/// of the message it answers, else into the one where its room was asked, unless the room's register wants it elsewhere; it
/// quotes only what she says it answers.
///
/// # Errors
/// Not the schema's shape, an unknown room or label, or a room outside the lane's allowance.
pub fn acts(reply: &str, allowance: &Allowance) -> Result<Vec<Act>, Fault> {
    let reply = decode(reply)?;
    let mut acts = Vec::new();
    for say in &reply.say {
        acts.extend(speak(say, allowance)?);
    }
    for react in &reply.react {
        let act = react_to(react, allowance)?;
        if !acts.contains(&act) {
            acts.push(act);
        }
    }
    Ok(acts)
}

fn speak(say: &Say, allowance: &Allowance) -> Result<Option<Act>, Fault> {
    let text: String = say.text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    if text.trim().is_empty() {
        return Ok(None);
    }
    let named = say.room().map(|name| room(name, allowance)).transpose()?;
    let answered = say.reply_to().map(|given| target(&given, allowance)).transpose()?;
    let (room, asked) = match (named, answered) {
        (Some(named), Some(answered)) if named != answered.room => {
            return Err(disagreement(say, answered, allowance));
        }
        (_, Some(answered)) => (answered.room.clone(), Some(answered)),
        (Some(named), None) => {
            let asked = allowance.asked.get(&named);
            (named, asked)
        }
        (None, None) => {
            let (room, asked) = default_place(allowance)?;
            (room.clone(), asked)
        }
    };
    let thread = asked.and_then(|asked| thread(asked, &room, allowance));
    let newest = thread.as_ref().and_then(|root| allowance.newest.get(root)).cloned();
    let reply_to = answered.map(|answered| answered.event.clone());
    Ok(Some(Act::Say { room, text, thread, newest, reply_to }))
}

fn react_to(react: &React, allowance: &Allowance) -> Result<Act, Fault> {
    let answered = target(&label(&react.message), allowance)?;
    let key = react.key.trim();
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if key.is_empty() || key.len() > KEY_BYTES || key.contains(breaks) {
        return Err(Fault(format!(
            "a reaction's key is an emoji or a word of at most {KEY_BYTES} bytes on one line"
        )));
    }
    Ok(Act::React { room: answered.room.clone(), event: answered.event.clone(), key: key.to_owned() })
}

/// Where a say stands that names no place, and the message that it answers.
fn default_place(allowance: &Allowance) -> Result<(&OwnedRoomId, Option<&Target>), Fault> {
    let asked = allowance.default.as_ref().map(|target| (&target.room, Some(target)));
    asked
        .or_else(|| Some((allowance.home.as_ref()?, None)))
        .filter(|(room, _)| allowance.rooms.contains(room))
        .ok_or_else(|| Fault(format!("say in which room; {}", allowed(allowance))))
}

/// The thread in which an answer to a message stands, if in one.
fn thread(asked: &Target, room: &OwnedRoomId, allowance: &Allowance) -> Option<OwnedEventId> {
    match allowance.rooms.get(room)?.reply {
        ReplyIn::AsAsked => asked.thread.clone(),
        ReplyIn::Thread => asked.thread.clone().or_else(|| Some(asked.event.clone())),
        ReplyIn::Timeline => None,
    }
}

fn target<'a>(given: &str, allowance: &'a Allowance) -> Result<&'a Target, Fault> {
    allowance
        .labels
        .get(given)
        .filter(|target| allowance.rooms.contains(&target.room))
        .ok_or_else(|| Fault(format!("{given:?} is not the label of a message that you can answer here")))
}

/// The room that a name means: by its id, else by a whole name, else by an alias without its server.
pub(super) fn room(name: &str, allowance: &Allowance) -> Result<OwnedRoomId, Fault> {
    if let Some((id, _)) = allowance.rooms.iter().find(|(id, _)| id.as_str() == name) {
        return Ok(id.clone());
    }
    let wanted = plain(name);
    let by = |form: fn(&str) -> String| {
        let bears = |open: &Open| !wanted.is_empty() && open.names.iter().any(|other| form(other) == wanted);
        allowance.rooms.iter().filter(|(_, open)| bears(open)).map(|(id, _)| id).collect::<Vec<_>>()
    };
    let found = Some(by(plain)).filter(|found| !found.is_empty()).unwrap_or_else(|| by(local));
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(Fault(format!(
            "{name:?} is not a room that this mail lets you speak in; {}",
            allowed(allowance)
        ))),
        [..] => Err(Fault(format!("{name:?} is the name of several rooms; use its id: {}", ids(&found)))),
    }
}

fn plain(name: &str) -> String {
    let line = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    line.strip_prefix('#').map(str::to_owned).unwrap_or(line)
}

/// An alias without its server; empty, which is no name, for anything else.
fn local(name: &str) -> String {
    let alias = name.strip_prefix('#').and_then(|alias| alias.split_once(':'));
    alias.map(|(local, _)| plain(local)).unwrap_or_default()
}

fn disagreement(say: &Say, answered: &Target, allowance: &Allowance) -> Fault {
    Fault(format!(
        "{} stands in {}, not in {:?}; leave out room or reply_to",
        say.reply_to().unwrap_or_default(),
        shown(&answered.room, allowance),
        say.room().unwrap_or_default(),
    ))
}

fn allowed(allowance: &Allowance) -> String {
    let rooms: Vec<String> = allowance.rooms.iter().map(|(room, _)| shown(room, allowance)).collect();
    if rooms.is_empty() { "there is none".to_owned() } else { format!("allowed: {}", rooms.join(", ")) }
}

/// The room's first name, else its id.
fn shown(room: &OwnedRoomId, allowance: &Allowance) -> String {
    let name = allowance.rooms.get(room).and_then(|open| open.names.first());
    name.map_or_else(|| room.to_string(), |name| format!("{name:?}"))
}

fn ids(rooms: &[&OwnedRoomId]) -> String {
    rooms.iter().map(|room| room.as_str()).collect::<Vec<_>>().join(", ")
}
