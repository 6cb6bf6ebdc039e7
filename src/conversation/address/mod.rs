//! Who hears an event and whom it addresses.

mod names;

use std::collections::BTreeSet;
use std::time::Duration;

use ruma::OwnedEventId;

use super::batch::{Delivery, DeliveryKind};
use super::event::{Content, Event, Message, MessageKind};
use super::hops;
use super::ids::{Lane, Millis, PersonaId};
use super::permission::{Bots, Level, Permissions};
use super::register::{Heed, Listen, Wakes};
use super::room::{Persona, Room, Seat};

/// What is known beside the event.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// All Personas.
    pub personas: &'a [Persona],
    /// Who may chat.
    pub permissions: &'a Permissions,
    /// Who is a machine of other people.
    pub bots: &'a Bots,
    /// From how many hops on a Persona's line wakes nobody.
    pub max_hops: u32,
    /// The bot and any other user of ours: never mail.
    pub bot: &'a ruma::UserId,
    /// The sender of the event that this one answers, where that is known.
    pub answers: Option<&'a ruma::UserId>,
    /// Whom the thread that it stands in asked last.
    pub asked: &'a BTreeSet<PersonaId>,
    /// When it was heard.
    pub now: Millis,
    /// Whether it was found by reading back.
    pub late: bool,
}

/// What reaches the bridge so long after it was said is late, however it came.
const LATE: Duration = Duration::from_secs(5 * 60);

/// Why what a user of ours says is no mail.
pub const OWN: &str = "own";

/// Why what is addressed to nobody is no mail where nothing else is kept.
pub const UNADDRESSED: &str = "unaddressed";

/// What an event is to the Personas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Mail, one delivery (number 0) for each Persona who hears it.
    Mail(Vec<(PersonaId, Delivery)>),
    /// An edit: mail for those who heard the event it replaces; and that event as it would be heard if it were said now with
    /// the new words.
    Edit(OwnedEventId, Vec<(PersonaId, Delivery)>, Vec<(PersonaId, Delivery)>),
    /// A redaction: the notice that becomes mail for those who heard it (lane of its first seat, number 0).
    Redaction(OwnedEventId, Delivery),
    /// A reaction, and who sits where it may be to her words, with the lanes they hear the room in.
    Reaction(Vec<(PersonaId, Lane)>),
    /// Nothing to hear, and why, as a counter's label.
    Nothing(&'static str),
}

/// Decides who hears an event of a room.
///
/// Redactions are heard from anybody, also in an encrypted room: whoever the homeserver lets take a message back, it must
/// not be fed any more.
pub fn hear(event: &Event, room: &Room, known: Known<'_>) -> Hearing {
    match &event.content {
        Content::Redaction { redacts } => hear_redaction(event, redacts, room, known),
        _ if event.sender == known.bot => Hearing::Nothing(OWN),
        Content::Message(message) => hear_message(event, message, room, known),
        Content::Reaction { .. } => hear_reaction(event, room, known),
        Content::Member(_) => Hearing::Nothing("member"),
        Content::Encryption => Hearing::Nothing("encryption"),
        Content::Tombstone(_) => Hearing::Nothing("tombstone"),
        Content::Described(_) => Hearing::Nothing("description"),
        Content::Other { .. } => Hearing::Nothing("other"),
    }
}

fn hear_message(event: &Event, message: &Message, room: &Room, known: Known<'_>) -> Hearing {
    if let Some(why) = unheard(event, room, known) {
        return Hearing::Nothing(why);
    }
    let mut mail = heard(event, message, room, known);
    if mail.is_empty() {
        return Hearing::Nothing(OWN);
    }
    let plain = |mail: Vec<(bool, (PersonaId, Delivery))>| mail.into_iter().map(|(_, mail)| mail).collect();
    if let Some(edited) = &message.edits {
        let anew = Message { edits: None, ..message.clone() };
        let said = Event { id: edited.clone(), content: Content::Message(anew.clone()), ..event.clone() };
        return Hearing::Edit(edited.clone(), plain(mail), plain(heard(&said, &anew, room, known)));
    }
    if room.listen == Listen::Addressed {
        mail.retain(|(is_to_her, _)| *is_to_her);
    }
    if mail.is_empty() { Hearing::Nothing(UNADDRESSED) } else { Hearing::Mail(plain(mail)) }
}

/// A message for each who sits there and did not say it, and whether it is meant for her.
fn heard(
    event: &Event,
    message: &Message,
    room: &Room,
    known: Known<'_>,
) -> Vec<(bool, (PersonaId, Delivery))> {
    let voice = voice(event, message, known);
    let called = called(event, message, room, known);
    let to_nobody = called.is_none();
    seated(room, known.personas)
        .filter(|(persona, _)| persona.user != event.sender)
        .map(|(persona, seat)| {
            let is_asked = to_nobody && message.thread.is_some() && known.asked.contains(&persona.id);
            let is_called = called.as_ref().is_some_and(|called| called.contains(&persona.id));
            let by_itself = is_called || matches!(seat.lane, Lane::Direct(_));
            let is_passing = to_nobody && message.edits.is_none();
            let (addressed, wakes) = match voice {
                Voice::Persona(hops) if message.kind != MessageKind::Notice => {
                    (by_itself, by_itself && rouses(hops, message, seat.heed, known))
                }
                Voice::Persona(_) | Voice::Machine => (false, false),
                Voice::Person => {
                    let is_to_her = is_asked || by_itself;
                    let is_steered = names_as_admin(event, message, persona, known);
                    (is_to_her, is_steered || wakes(seat.heed.wakes, is_to_her, is_passing))
                }
            };
            let delivery = message_delivery(event, message, room, &seat.lane, known);
            let hops = voice.hops();
            (is_asked || by_itself, (persona.id.clone(), Delivery { addressed, wakes, hops, ..delivery }))
        })
        .collect()
}

/// Why nobody hears a message of a room.
fn unheard(event: &Event, room: &Room, known: Known<'_>) -> Option<&'static str> {
    if event.sender == known.bot {
        return Some(OWN);
    }
    if !is_persona(event, known) && known.permissions.level(&event.sender) == Level::Block {
        return Some("blocked");
    }
    if room.encrypted {
        return Some("in an encrypted room");
    }
    seated(room, known.personas).next().is_none().then_some("where nobody sits")
}

fn is_persona(event: &Event, known: Known<'_>) -> bool {
    known.personas.iter().any(|persona| persona.user == event.sender)
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    /// A person.
    Person,
    /// A Persona, in a turn with so many hops.
    Persona(u32),
    /// A machine of other people, or anybody by a notice: it calls upon nobody.
    Machine,
}

impl Voice {
    /// The hops of a Persona's line.
    fn hops(self) -> Option<u32> {
        match self {
            Self::Persona(hops) => Some(hops),
            Self::Person | Self::Machine => None,
        }
    }
}

fn voice(event: &Event, message: &Message, known: Known<'_>) -> Voice {
    if is_persona(event, known) {
        // What she says outside of turns (that a room is encrypted, that mail waits) has no cause.
        return Voice::Persona(event.cause.map_or(hops::UNKNOWN, |cause| cause.hops));
    }
    let is_machine = message.kind == MessageKind::Notice || known.bots.hold(&event.sender);
    if is_machine { Voice::Machine } else { Voice::Person }
}

/// Whether a Persona's line that is addressed to another wakes her.
fn rouses(hops: u32, message: &Message, heed: Heed, known: Known<'_>) -> bool {
    let says_something = !message.text.trim().is_empty();
    says_something && heed.personas_wake && heed.wakes != Wakes::Nobody && hops < known.max_hops
}

/// Whom the thread that a message stands in (or begins) asks after it, with the thread's root, if that changes: those it
/// addresses, where it addresses or answers anybody, else those who were asked before. An edit asks only where nobody is asked.
pub fn asks(event: &Event, room: &Room, known: Known<'_>) -> Option<(OwnedEventId, BTreeSet<PersonaId>)> {
    let Content::Message(message) = &event.content else { return None };
    let is_person = voice(event, message, known) == Voice::Person;
    let is_settled = message.edits.is_some() && !known.asked.is_empty();
    if unheard(event, room, known).is_some() || !is_person || is_settled {
        return None;
    }
    let asked = called(event, message, room, known)?;
    let root = root(event, message).clone();
    (asked != *known.asked).then_some((root, asked))
}

/// The root of the thread that a message stands in, or that it (or what it edits) begins where somebody goes on in one.
pub fn root<'a>(event: &'a Event, message: &'a Message) -> &'a OwnedEventId {
    message.thread.as_ref().or(message.edits.as_ref()).unwrap_or(&event.id)
}

/// To whom a message turns by itself: the Personas among them, but for those who hear the room as a direct chat; none where
/// it turns to nobody.
fn called(event: &Event, message: &Message, room: &Room, known: Known<'_>) -> Option<BTreeSet<PersonaId>> {
    let of_register = seated(room, known.personas).filter(|(_, seat)| matches!(seat.lane, Lane::Register(_)));
    let asked: BTreeSet<PersonaId> = of_register
        .filter(|(persona, seat)| {
            addresses(message, persona, seat, known) || names_as_admin(event, message, persona, known)
        })
        .map(|(persona, _)| persona.id.clone())
        .collect();
    let answers_another = message.reply_to.is_some() && known.answers != Some(&*event.sender);
    let mentions_another = message.mentions.iter().any(|user| *user != event.sender);
    (!asked.is_empty() || answers_another || mentions_another).then_some(asked)
}

fn hear_redaction(event: &Event, redacts: &OwnedEventId, room: &Room, known: Known<'_>) -> Hearing {
    let Some((_, seat)) = seated(room, known.personas).next() else {
        return Hearing::Nothing("where nobody sits");
    };
    let kind = DeliveryKind::Redaction(redacts.clone());
    Hearing::Redaction(redacts.clone(), delivery(event, room, &seat.lane, kind, known))
}

/// Reactions are heard of whom messages are heard; one's own are no news.
fn hear_reaction(event: &Event, room: &Room, known: Known<'_>) -> Hearing {
    if let Some(why) = unheard(event, room, known) {
        return Hearing::Nothing(why);
    }
    let others = seated(room, known.personas).filter(|(persona, _)| persona.user != event.sender);
    Hearing::Reaction(others.map(|(persona, seat)| (persona.id.clone(), seat.lane.clone())).collect())
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

/// Whether a message addresses somebody of a register by itself.
fn addresses(message: &Message, persona: &Persona, seat: &Seat, known: Known<'_>) -> bool {
    message.mentions.contains(&persona.user)
        || known.answers == Some(&*persona.user)
        || (seat.heed.room_mention && message.mentions_room)
        || (seat.heed.names_address && names::named(&message.text, persona))
}

/// Whether an admin calls her by what operators call her: that is heard whatever the register says.
fn names_as_admin(event: &Event, message: &Message, persona: &Persona, known: Known<'_>) -> bool {
    let is_admin = known.permissions.level(&event.sender) == Level::Admin;
    let is_named = message.mentions.contains(&persona.user) || names::named_or_known(&message.text, persona);
    is_admin && is_named && voice(event, message, known) == Voice::Person
}

fn wakes(wakes: Wakes, addressed: bool, is_passing: bool) -> bool {
    match wakes {
        Wakes::Addressed => addressed,
        Wakes::Anyone => addressed || is_passing,
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
        hops: None,
        again: None,
        late: known.late || (event.at.is_known() && known.now.since(event.at) >= LATE),
        said: event.at,
        heard: known.now,
    }
}

#[cfg(test)]
mod tests;
