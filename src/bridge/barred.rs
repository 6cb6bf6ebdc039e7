//! Somebody who may not talk to Personas and does so alone with one is told so, once.

use super::directory::Directory;
use super::shared::{SayTarget, Shared, notice};
use crate::conversation::{Content, Event, Lane, Level, MessageKind, PersonaId};
use crate::store::Effect;

/// The one line that such a person ever gets, of the Persona whom she writes to first.
pub(crate) fn courtesy(
    shared: &Shared,
    directory: &Directory,
    event: &Event,
    is_hers: impl Fn(&PersonaId) -> bool,
) -> Option<Effect> {
    let Content::Message(message) = &event.content else { return None };
    let is_talk = message.kind != MessageKind::Notice && message.edits.is_none();
    let is_barred =
        !directory.is_ours(&event.sender) && directory.permissions.level(&event.sender) == Level::Block;
    let room = directory.room(&event.room).filter(|room| is_talk && is_barred && !room.encrypted)?;
    let alone = |id: &PersonaId| room.seats.get(id).is_some_and(|seat| matches!(seat.lane, Lane::Direct(_)));
    let persona = directory.personas.iter().find(|persona| alone(&persona.id) && is_hers(&persona.id))?;
    let key = format!("barred:{}", event.sender);
    let target = SayTarget { room: &event.room, kind: "m.room.message", cause: &key, part: "0" };
    let text =
        "I may not talk with you: whoever runs me has not allowed it. I do not read what you write here.";
    let say = shared.say(&persona.user, target, &notice(text));
    Some(Effect::Once { key, says: vec![say] })
}
