//! What is known of the homeserver and of who we are with it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use ruma::{OwnedRoomAliasId, OwnedRoomId, UserId};

use super::Shared;
use crate::conversation::{Millis, PersonaId};
use crate::homeserver::client::{Identity, Mode};

impl Shared {
    /// The identity a user's calls are made with; before it is established, plain masquerading.
    pub(crate) fn identity(&self, user: &UserId) -> Identity {
        let known = self.identities.lock().unwrap_or_else(PoisonError::into_inner).get(user).cloned();
        known.unwrap_or_else(|| Identity { user: user.to_owned(), device: None, token: None })
    }

    pub(crate) fn set_identity(&self, identity: Identity) {
        let mut identities = self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        identities.insert(identity.user.clone(), identity);
    }

    pub(crate) fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// A transaction came: the homeserver reaches us.
    pub(crate) fn note_transaction(&self) {
        self.last_transaction.store(self.clock.now().0, Ordering::Relaxed);
        self.missed.store(false, Ordering::Relaxed);
    }

    /// When the last transaction came, or the service began.
    pub(crate) fn last_transaction(&self) -> Millis {
        Millis(self.last_transaction.load(Ordering::Relaxed))
    }

    /// How often the homeserver fell silent.
    pub(crate) fn outages(&self) -> u64 {
        self.outages.load(Ordering::Relaxed)
    }

    /// Reading back found what no transaction brought.
    pub(crate) fn note_missed(&self) {
        self.missed.store(true, Ordering::Relaxed);
    }

    /// Whether a homeserver without a retry timer may hold something back: it does so after a failure, until its delay
    /// is over and something new happens. A transaction shows that it does not.
    pub(crate) fn is_behind(&self) -> bool {
        self.mode() == Mode::Token && self.missed.load(Ordering::Relaxed)
    }

    /// Configured rooms that could not be joined at start.
    pub(crate) fn unjoined(&self) -> MutexGuard<'_, BTreeSet<(PersonaId, OwnedRoomAliasId)>> {
        self.unjoined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rooms whose members could not be read when a Persona took her seat.
    pub(crate) fn memberless(&self) -> MutexGuard<'_, BTreeSet<OwnedRoomId>> {
        self.memberless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a direct room is known to be marked as such with the server.
    pub(crate) fn is_marked_direct(&self, persona: &PersonaId, room: &OwnedRoomId) -> bool {
        let marked = self.marked_direct.lock().unwrap_or_else(PoisonError::into_inner);
        marked.contains(&(persona.clone(), room.clone()))
    }

    /// A direct room is marked as such with the server.
    pub(crate) fn note_marked_direct(&self, persona: &PersonaId, room: &OwnedRoomId) {
        let mut marked = self.marked_direct.lock().unwrap_or_else(PoisonError::into_inner);
        marked.insert((persona.clone(), room.clone()));
    }
}
