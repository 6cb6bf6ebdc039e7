//! What comes in, and what it does to the store.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::{NewSay, Reacted, SeatRow};
use crate::conversation::about_me::Question;
use crate::conversation::steer::Steer;
use crate::conversation::{Delivery, Described, Millis, PersonaId, RequestId};

/// An event on its way in, with what it does here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its id: an event seen before has no effect at all.
    pub event: OwnedEventId,
    /// What it does, in order.
    pub effects: Vec<Effect>,
}

/// What is sent to tell what a word of an admin came to, whichever it is; nothing where all was so already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steered {
    /// Where it changes whom is stopped.
    pub changes: Vec<NewSay>,
    /// Where something newer was said.
    pub overtaken: Vec<NewSay>,
    /// Where she stays stopped since everyone there is.
    pub in_vain: Vec<NewSay>,
}

/// What an event does to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Mail for a Persona; the store puts in the number (`delivery.seq` is ignored).
    Deliver(PersonaId, Delivery),
    /// An event was taken back. Mail of it that waits, fed or not, loses its words (`DeliveryKind::Withdrawn`); for each
    /// Persona who heard it and may have been fed it, `notice` (with lane, room and labels of her copy) becomes mail.
    Redact {
        /// The event taken back.
        redacts: OwnedEventId,
        /// The delivery that tells of it; `lane` and `seq` are filled in for each Persona.
        notice: Delivery,
    },
    /// Mail for those who heard `edits`: like [`Effect::Deliver`] but dropped where the Persona never heard that event.
    DeliverEdit(PersonaId, OwnedEventId, Delivery),
    /// A message as an edit words it, said by the edit's sender in the edit's room. To who has not been fed it yet it is
    /// addressed from now on as this is; for who has not heard it, it becomes mail where it is addressed to her. It is dropped
    /// where nobody heard the message and it was not [`Effect::Passed`].
    Reworded(PersonaId, Delivery),
    /// A message came in that nobody heard, since it was addressed to nobody: where, and of whom.
    Passed(OwnedRoomId, OwnedUserId),
    /// A member's state; an older `at` than the recorded one changes nothing.
    Member {
        /// The room.
        room: OwnedRoomId,
        /// The member.
        user: OwnedUserId,
        /// Display name.
        name: Option<String>,
        /// Whether joined.
        joined: bool,
        /// `origin_server_ts` of the change.
        at: Millis,
    },
    /// What a room is called or about; what was said of that earlier changes nothing.
    Described {
        /// The room.
        room: OwnedRoomId,
        /// What it is now.
        is: Described,
        /// `origin_server_ts` of the change.
        at: Millis,
    },
    /// A room is over, and another one takes its place.
    Upgraded {
        /// The room that is over.
        room: OwnedRoomId,
        /// The one that takes its place.
        to: OwnedRoomId,
    },
    /// Whom the thread with that root asks from now on.
    Asks(OwnedEventId, BTreeSet<PersonaId>),
    /// The room is encrypted from now on.
    Encrypted(OwnedRoomId),
    /// The echo of something we sent: the outbox row is settled, the event id kept.
    Echo(RequestId),
    /// Somebody reacts, perhaps to what a Persona said: it is gathered for her.
    React(Reacted),
    /// A Persona takes her place in a room.
    Seat(SeatRow),
    /// A Persona lost her place: what waits to be sent by her there is dropped.
    Unseat {
        /// Which Persona.
        persona: PersonaId,
        /// Her user.
        user: OwnedUserId,
        /// The room.
        room: OwnedRoomId,
    },
    /// An admin stops Personas in a room, or lets them go on.
    Steer {
        /// What was said.
        steer: Steer,
        /// What is sent to tell what it came to.
        telling: Steered,
    },
    /// The bot is asked something, which it answers by [`Store::answer`](super::Store::answer).
    Ask(Question),
    /// Says that are owed once for `key`, put into the outbox unless the key is done.
    Once {
        /// The fact behind it, e.g. `encrypted:!room`.
        key: String,
        /// What to send.
        says: Vec<NewSay>,
    },
}

/// Something unreadable that came in, kept for inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The raw JSON, cut at 64 KiB.
    pub raw: String,
    /// Why, as a fixed phrase.
    pub reason: String,
}
