//! What a session that begins is shown of a room as said before its mail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ruma::{OwnedEventId, OwnedRoomId, UserId};

use super::BridgeError;
use super::calls::unlimited;
use super::hearing::{Beside, is_for_bridge};
use super::receive::read_page;
use super::shared::Shared;
use super::translate::Path;
use crate::conversation::address::{Hearing, hear};
use crate::conversation::prompt::ContextLine;
use crate::conversation::{Batch, Content, Event, Persona, PersonaId};

/// How many earlier lines the first turn of a session carries for each room at hand.
const LINES: usize = 20;
/// The longest that they are waited for.
const WAIT: Duration = Duration::from_secs(10);

/// What was said before the batch that she hears, or said herself; nothing where the server does not answer.
pub(crate) async fn lines(
    shared: &Arc<Shared>,
    persona: &Persona,
    room: &OwnedRoomId,
    batch: &Batch,
) -> Result<Vec<ContextLine>, BridgeError> {
    let events = tokio::time::timeout(WAIT, before(shared, &persona.user, room, batch)).await;
    let mut events = events.unwrap_or_default();
    events.retain(|event| !is_for_bridge(shared, event));
    let mut lines = Vec::new();
    for (event, edit) in newest_words(events) {
        if event.sender == persona.user || hears(shared, &persona.id, &event)? {
            lines.extend(line(shared, event, edit));
        }
    }
    Ok(lines.split_off(lines.len().saturating_sub(LINES)))
}

/// The events before the batch, oldest first.
async fn before(shared: &Arc<Shared>, user: &UserId, room: &OwnedRoomId, batch: &Batch) -> Vec<Event> {
    let identity = shared.identity(user);
    let fed: BTreeSet<&OwnedEventId> = batch.deliveries.iter().map(|delivery| &delivery.event).collect();
    let limit = u32::try_from(LINES + fed.len().min(60)).unwrap_or(u32::MAX);
    // From the mail backwards, not from the newest: whatever was said since, the lines are the same.
    let Some(first) = batch.deliveries.iter().find(|delivery| delivery.room == *room) else {
        return Vec::new();
    };
    let from = unlimited(shared, || shared.client.after(&identity, room, &first.event)).await;
    let Ok(Some(from)) = from else { return Vec::new() };
    let page = unlimited(shared, || shared.client.older(&identity, room, &from, limit)).await;
    let Ok(page) = page else { return Vec::new() };
    let (mut events, _) = read_page(&page.events);
    events.reverse();
    events.into_iter().take_while(|event| !fed.contains(&event.id)).collect()
}

/// The messages among some events, in order, each with the words that its sender gave it last, and by which edit.
fn newest_words(events: Vec<Event>) -> Vec<(Event, Option<OwnedEventId>)> {
    let mut said: Vec<(Event, Option<OwnedEventId>)> = Vec::new();
    let mut places: BTreeMap<OwnedEventId, usize> = BTreeMap::new();
    for event in events {
        let Content::Message(message) = &event.content else { continue };
        let Some(edited) = &message.edits else {
            places.insert(event.id.clone(), said.len());
            said.push((event, None));
            continue;
        };
        let Some((of, edit)) = places.get(edited).and_then(|place| said.get_mut(*place)) else { continue };
        if let (true, Content::Message(of)) = (of.sender == event.sender, &mut of.content) {
            of.reword(message.clone());
            *edit = Some(event.id.clone());
        }
    }
    said
}

/// Whether she hears a message as it reads by now. In a thread that turned to nobody she does where she heard it.
fn hears(shared: &Shared, persona: &PersonaId, event: &Event) -> Result<bool, BridgeError> {
    let heard = shared.store.number_of(persona, &event.id)?.map(|_| persona.clone());
    let beside = Beside { asked: heard.into_iter().collect(), ..Beside::of(shared, event)? };
    let directory = shared.directory();
    let Some(room) = directory.room(&event.room) else { return Ok(false) };
    let hearing = hear(event, room, beside.known(shared, &directory, Path::Transaction));
    Ok(matches!(hearing, Hearing::Mail(mail) if mail.iter().any(|(hearer, _)| hearer == persona)))
}

fn line(shared: &Shared, event: Event, edit: Option<OwnedEventId>) -> Option<ContextLine> {
    let Event { id, room, sender, at, content: Content::Message(message), .. } = event else { return None };
    let sender_name = shared.directory().room(&room)?.members.get(&sender).cloned().flatten();
    Some(ContextLine { event: id, edit, sender, sender_name, text: message.text, said: at })
}
