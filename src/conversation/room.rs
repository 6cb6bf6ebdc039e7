//! Rooms and who sits in them.

use std::collections::BTreeMap;

use ruma::{OwnedRoomId, OwnedUserId};

use super::ids::{Lane, PersonaId};
use super::register::{Heed, Listen};

/// A Persona as others see her.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    /// Her id in the config.
    pub id: PersonaId,
    /// Her Matrix user.
    pub user: OwnedUserId,
    /// The name people call her by.
    pub name: String,
}

/// A room as far as speaking and hearing in it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its id.
    pub id: OwnedRoomId,
    /// Its alias in the config, if it has one (`#swarm:example.org`).
    pub alias: Option<String>,
    /// Its name, as whoever may has set it.
    pub name: Option<String>,
    /// What it is about, likewise.
    pub topic: Option<String>,
    /// Whether `m.room.encryption` was seen.
    pub encrypted: bool,
    /// What of the talk in it becomes mail.
    pub listen: Listen,
    /// The Personas joined to it and the lane each hears it in.
    pub seats: BTreeMap<PersonaId, Seat>,
    /// Joined members and their display names.
    pub members: BTreeMap<OwnedUserId, Option<String>>,
}

/// A Persona's place in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The lane this room belongs to for her.
    pub lane: Lane,
    /// What she heeds here.
    pub heed: Heed,
}
