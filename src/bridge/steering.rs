//! Admins who stop Personas in a room by a word, or let them go on: heeded when the word comes in, outside of any model.

use super::BridgeError;
use super::shared::Shared;
use super::translate::Path;
use crate::conversation::steer::{Steer, Word, said};
use crate::conversation::{Content, Event, Level, Persona};
use crate::store::{Effect, Steered};

/// The word in an event, if it is an admin's. What is read back of a time before a Persona came is about nobody.
pub(crate) fn steer(shared: &Shared, event: &Event, path: Path) -> Option<Steer> {
    let Content::Message(message) = &event.content else { return None };
    let directory = shared.directory();
    if directory.is_ours(&event.sender) || directory.permissions.level(&event.sender) < Level::Admin {
        return None;
    }
    let room = directory.room(&event.room).filter(|room| !room.encrypted)?;
    let is_there = |persona: &&Persona| {
        room.seats.contains_key(&persona.id)
            && (path != Path::ReadBack || directory.has_passed(&persona.id, &event.room))
    };
    let mut there = directory.personas.iter().filter(is_there).peekable();
    there.peek()?;
    let (word, whom) = said(message, there)?;
    let now = shared.clock.now();
    // A clock that is ahead would overtake all that is said till then.
    let at = if event.at.is_known() { event.at.min(now) } else { now };
    Some(Steer { room: event.room.clone(), whom, word, at })
}

/// What it does, with the notices to operators of what it may come to.
pub(crate) fn effect(shared: &Shared, event: &Event, steer: Steer) -> Result<Effect, BridgeError> {
    let whom = steer.whom.as_ref().map_or("everyone", |whom| whom.as_str());
    let (room, sender) = (&event.room, &event.sender);
    let (changes, again) = match steer.word {
        Word::Stop => (
            format!(
                "{sender} has stopped {whom} in {room}: nothing is asked or said there until `!persona go` there or \
                 `brake release`"
            ),
            "stop",
        ),
        Word::Go => (format!("{sender} lets {whom} go on in {room}"), "go"),
    };
    let overtaken = format!(
        "{sender} said `{again}` of {whom} in {room}, but by its time something newer was said or done: nothing is changed; \
         say it again if it is still meant"
    );
    let in_vain = format!(
        "{sender} lets {whom} go on in {room}, but everyone is stopped there: `!persona go` there lets them go on"
    );
    let says = |text: &str| -> Result<_, BridgeError> {
        let notice = shared.control_notice(&format!("steer:{}", event.id), text)?;
        Ok(notice.map(|(_, says)| says).unwrap_or_default())
    };
    let telling =
        Steered { changes: says(&changes)?, overtaken: says(&overtaken)?, in_vain: says(&in_vain)? };
    Ok(Effect::Steer { steer, telling })
}
