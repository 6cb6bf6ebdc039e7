//! Who hears an event and whom it addresses.

mod names;

use ruma::OwnedEventId;

use super::batch::{Delivery, DeliveryKind};
use super::event::{Content, Event, Message, MessageKind};
use super::ids::{Lane, Millis, PersonaId};
use super::permission::{Level, Permissions};
use super::register::Wakes;
use super::room::{Persona, Room, Seat};

/// What is known beside the event.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// All Personas.
    pub personas: &'a [Persona],
    /// Who may chat.
    pub permissions: &'a Permissions,
    /// The bot and any other user of ours: never mail.
    pub bot: &'a ruma::UserId,
    /// The sender of the event that this one answers, where it is known to be a Persona of ours.
    pub answers: Option<&'a PersonaId>,
    /// When it was heard.
    pub now: Millis,
    /// Whether it was found by reading back.
    pub late: bool,
}

/// Why what a user of ours says is no mail.
pub const OWN: &str = "own";

/// What an event is to the Personas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Mail, one delivery (number 0) for each Persona who hears it.
    Mail(Vec<(PersonaId, Delivery)>),
    /// An edit: mail for those who heard the event it replaces.
    Edit(OwnedEventId, Vec<(PersonaId, Delivery)>),
    /// A redaction: the notice that becomes mail for those who heard it (lane of its first seat, number 0).
    Redaction(OwnedEventId, Delivery),
    /// Nothing to hear, and why, as a counter's label.
    Nothing(&'static str),
}

/// Decides who hears an event of a room.
///
/// Redactions are heard from anybody who is not ours, also in an encrypted room: whoever the homeserver lets take a
/// message back, it must not be fed any more.
pub fn hear(event: &Event, room: &Room, known: Known<'_>) -> Hearing {
    if event.sender == known.bot {
        return Hearing::Nothing(OWN);
    }
    match &event.content {
        Content::Message(message) => hear_message(event, message, room, known),
        Content::Redaction { redacts } => hear_redaction(event, redacts, room, known),
        Content::Member(_) => Hearing::Nothing("member"),
        Content::Encryption => Hearing::Nothing("encryption"),
        Content::Tombstone => Hearing::Nothing("tombstone"),
        Content::Other { .. } => Hearing::Nothing("other"),
    }
}

fn hear_message(event: &Event, message: &Message, room: &Room, known: Known<'_>) -> Hearing {
    let from_persona = known.personas.iter().any(|persona| persona.user == event.sender);
    if !from_persona && known.permissions.level(&event.sender) == Level::Block {
        return Hearing::Nothing("blocked");
    }
    if room.encrypted {
        return Hearing::Nothing("in an encrypted room");
    }
    let seated: Vec<_> = seated(room, known.personas).collect();
    if seated.is_empty() {
        return Hearing::Nothing("where nobody sits");
    }
    let calls = !from_persona && message.kind != MessageKind::Notice;
    let whom: Vec<_> =
        seated.iter().map(|(persona, seat)| addresses(message, persona, seat, known)).collect();
    let anybody = whom.contains(&true) || addresses_others(event, message);
    let mail: Vec<_> = seated
        .into_iter()
        .zip(whom)
        .filter(|((persona, _), _)| persona.user != event.sender)
        .map(|((persona, seat), addressed)| {
            let addressed = calls && addressed;
            let passing = message.edits.is_none() && !anybody;
            let wakes = calls && wakes(seat.heed.wakes, addressed, passing);
            let delivery = message_delivery(event, message, room, &seat.lane, known);
            (persona.id.clone(), Delivery { addressed, wakes, ..delivery })
        })
        .collect();
    match &message.edits {
        _ if mail.is_empty() => Hearing::Nothing(OWN),
        Some(edited) => Hearing::Edit(edited.clone(), mail),
        None => Hearing::Mail(mail),
    }
}

fn hear_redaction(event: &Event, redacts: &OwnedEventId, room: &Room, known: Known<'_>) -> Hearing {
    if known.personas.iter().any(|persona| persona.user == event.sender) {
        return Hearing::Nothing(OWN);
    }
    let Some((_, seat)) = seated(room, known.personas).next() else {
        return Hearing::Nothing("where nobody sits");
    };
    let kind = DeliveryKind::Redaction(redacts.clone());
    Hearing::Redaction(redacts.clone(), delivery(event, room, &seat.lane, kind, known))
}

/// The seats of Personas that we know, in order of their ids.
fn seated<'a>(
    room: &'a Room,
    personas: &'a [Persona],
) -> impl Iterator<Item = (&'a Persona, &'a Seat)> + use<'a> {
    room.seats
        .iter()
        .filter_map(|(id, seat)| personas.iter().find(|persona| persona.id == *id).map(|found| (found, seat)))
}

fn addresses(message: &Message, persona: &Persona, seat: &Seat, known: Known<'_>) -> bool {
    matches!(seat.lane, Lane::Direct(_))
        || message.mentions.contains(&persona.user)
        || known.answers == Some(&persona.id)
        || (seat.heed.names_address && names::named(&message.text, persona))
}

/// Whether it mentions or answers somebody, whoever that is.
fn addresses_others(event: &Event, message: &Message) -> bool {
    message.reply_to.is_some() || message.mentions.iter().any(|user| *user != event.sender)
}

fn wakes(wakes: Wakes, addressed: bool, passing: bool) -> bool {
    match wakes {
        Wakes::Addressed => addressed,
        Wakes::Anyone => addressed || passing,
        Wakes::Nobody => false,
    }
}

fn message_delivery(
    event: &Event,
    message: &Message,
    room: &Room,
    lane: &Lane,
    known: Known<'_>,
) -> Delivery {
    let kind = match (&message.edits, message.kind) {
        (Some(edited), _) => DeliveryKind::Edit(edited.clone()),
        (None, MessageKind::Text) => DeliveryKind::Text,
        (None, MessageKind::Emote) => DeliveryKind::Emote,
        (None, MessageKind::Notice) => DeliveryKind::Notice,
        (None, MessageKind::Media) => DeliveryKind::Media,
    };
    Delivery {
        text: message.text.clone(),
        thread: message.thread.clone(),
        reply_to: message.reply_to.clone(),
        ..delivery(event, room, lane, kind, known)
    }
}

fn delivery(event: &Event, room: &Room, lane: &Lane, kind: DeliveryKind, known: Known<'_>) -> Delivery {
    Delivery {
        seq: 0,
        lane: lane.clone(),
        room: room.id.clone(),
        sender: event.sender.clone(),
        sender_name: room.members.get(&event.sender).cloned().flatten(),
        event: event.id.clone(),
        kind,
        text: String::new(),
        thread: None,
        reply_to: None,
        addressed: false,
        wakes: false,
        late: known.late,
        said: event.at,
        heard: known.now,
    }
}

#[cfg(test)]
mod tests;
