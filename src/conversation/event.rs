//! A Matrix event as far as the bridge cares, already read leniently by the ear.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};

use super::ids::{Millis, RequestId, TurnId};

/// One event of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event id; it alone decides what is new.
    pub id: OwnedEventId,
    /// The room it stands in.
    pub room: OwnedRoomId,
    /// Who sent it.
    pub sender: OwnedUserId,
    /// `origin_server_ts`; zero where it was unreadable.
    pub at: Millis,
    /// Our own request id, where the content carries one: the echo of something we sent.
    pub request: Option<RequestId>,
    /// The turn that it says it was said in; to be believed of our own Personas only.
    pub cause: Option<Cause>,
    /// What it says.
    pub content: Content,
}

/// What a Persona's event comes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The turn in which she said it.
    pub turn: TurnId,
    /// How many Personas' turns lie between that one and the last word of a person.
    pub hops: u32,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// `m.room.message`.
    Message(Message),
    /// `m.room.member`.
    Member(Member),
    /// `m.room.encryption`: the room is encrypted from here on.
    Encryption,
    /// `m.room.redaction`.
    Redaction {
        /// The event taken back.
        redacts: OwnedEventId,
    },
    /// `m.reaction` that annotates an event.
    Reaction {
        /// To which event.
        to: OwnedEventId,
        /// What stands in it, mostly an emoji.
        key: String,
    },
    /// `m.room.tombstone`: the room is over; another one may take its place.
    Tombstone(Option<OwnedRoomId>),
    /// `m.room.name` or `m.room.topic`.
    Described(Described),
    /// Anything else, skipped and counted by its type.
    Other {
        /// The event type.
        kind: String,
    },
}

/// What people say of a room, none where they say nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Described {
    /// Its name.
    Name(Option<String>),
    /// What it is about.
    Topic(Option<String>),
}

/// A message of any msgtype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which kind it is.
    pub kind: MessageKind,
    /// Its words: body without reply fallback, caption, or a media placeholder such as `[image photo.jpg 240 kB]`.
    pub text: String,
    /// The root of the thread it stands in.
    pub thread: Option<OwnedEventId>,
    /// The event it answers (a thread's fallback reply is none).
    pub reply_to: Option<OwnedEventId>,
    /// The event it replaces; `text` is then the new text.
    pub edits: Option<OwnedEventId>,
    /// `m.mentions.user_ids`.
    pub mentions: Vec<OwnedUserId>,
    /// `m.mentions.room`: everybody in the room.
    pub mentions_room: bool,
}

impl Message {
    /// The words of an edit take the place of these; what it answers, and the thread it stands in, stay.
    pub fn reword(&mut self, edit: Self) {
        let Self { kind, text, mentions, mentions_room, thread: _, reply_to: _, edits: _ } = edit;
        (self.kind, self.text, self.mentions, self.mentions_room) = (kind, text, mentions, mentions_room);
    }
}

/// The kinds of message that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// `m.text`, and unknown msgtypes with a body.
    Text,
    /// `m.emote`.
    Emote,
    /// `m.notice`: never wakes.
    Notice,
    /// A file, image, audio or video.
    Media,
}

/// A change of somebody's membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose membership it is (the state key).
    pub user: OwnedUserId,
    /// What it is now.
    pub membership: Membership,
    /// The display name carried along.
    pub display_name: Option<String>,
    /// `is_direct` of an invite.
    pub is_direct: bool,
}

/// A membership as the Matrix spec names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// In the room.
    Join,
    /// Invited.
    Invite,
    /// Not in the room (left, kicked, or refused).
    Leave,
    /// Banned.
    Ban,
    /// Asked to be let in.
    Knock,
}

/// Who types in a room right now: all of them, as of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typing {
    /// The room.
    pub room: OwnedRoomId,
    /// Everybody who types there.
    pub users: BTreeSet<OwnedUserId>,
}
