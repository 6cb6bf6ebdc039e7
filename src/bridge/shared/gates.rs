//! What stands between a Persona and the asking: the brake, the budget, the account, the API's limits.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use ruma::{OwnedRoomId, RoomId, UserId};

use super::Shared;
use crate::bridge::BridgeError;
use crate::bridge::spend::Spend;
use crate::conversation::{Millis, PersonaId};
use crate::persona::Brake;
use crate::persona::probe::Access;
use crate::store::StoreError;

/// The longest that an admin's word is not acknowledged because something is on its way into the room.
const LANDS: Duration = Duration::from_secs(2);

impl Shared {
    /// Reads whom the operator's brake holds; where that cannot be read it holds everyone.
    pub(crate) fn read_brake(&self) -> Result<(), StoreError> {
        let brake = match self.store.brake() {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(%error, "whom the brake holds cannot be read: it holds everyone");
                Brake::everyone()
            }
            read => read?,
        };
        match brake.held() {
            Some(held) => {
                let text = format!("the brake holds {held}: nothing is asked or said until `brake release`");
                if self.readiness.say("brake", &text) {
                    tracing::warn!("{text}");
                }
            }
            None => drop(self.readiness.clear("brake")),
        }
        *self.brake.lock().unwrap_or_else(PoisonError::into_inner) = brake;
        Ok(())
    }

    /// Whom the operator's brake holds.
    pub(crate) fn brake(&self) -> MutexGuard<'_, Brake> {
        self.brake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a Persona's mail of a room stays where it is: nothing of it is asked.
    pub(crate) fn stops(&self, persona: &PersonaId, room: &RoomId) -> bool {
        self.brake().stops(persona, room)
    }

    /// Whether what a user has to say in a room waits; the bot may always speak.
    pub(crate) fn may_speak(&self, user: &UserId, room: &RoomId) -> bool {
        let mut personas = self.config.personas.iter().map(|configured| &configured.persona);
        let Some(persona) = personas.find(|persona| persona.user == *user) else { return true };
        let brake = self.brake();
        !brake.holds(&persona.id) && !brake.stops(&persona.id, room)
    }

    /// Admins have stopped Personas in these rooms, or let them go on: that holds from now on, and what was on its way into
    /// them has arrived.
    pub(crate) async fn steered(&self, rooms: &BTreeSet<OwnedRoomId>) -> Result<(), BridgeError> {
        if rooms.is_empty() {
            return Ok(());
        }
        self.read_brake()?;
        self.wake_all();
        self.outbox.notify_one();
        for room in rooms {
            // A homeserver that does not answer must not be kept waiting for its own answer.
            let _ = tokio::time::timeout(LANDS, self.flights.landed(room)).await;
        }
        Ok(())
    }

    /// What is spent today.
    pub(crate) fn spend(&self) -> MutexGuard<'_, Spend> {
        self.spend.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the account.
    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account was refused to somebody.
    pub(crate) fn account_refused(&self) {
        self.access().refused(self.clock.now());
        self.refusals.notify_one();
    }

    /// The API takes the account: whoever was held because it did not goes on.
    pub(crate) async fn account_taken(&self) -> Result<(), BridgeError> {
        if !self.access().taken() {
            return Ok(());
        }
        self.refusals.notify_one();
        self.bells.values().for_each(|bell| bell.taken.store(true, Ordering::Relaxed));
        self.wake_all();
        let key = format!("account:{}", self.clock.now().0);
        self.note(&key, "the API takes the account again: whoever was not asked any more goes on").await
    }

    /// The API asks to wait until then; answers whether no such wait is known that still lasts.
    pub(crate) fn note_limit(&self, now: Millis, until: Millis) -> bool {
        let mut known = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known <= now;
        *known = until.max(*known);
        is_new
    }

    /// Whether the API may be asked what nobody waits for: not while it has refused the account or wants to be left alone.
    pub(crate) fn may_ask_idly(&self) -> bool {
        let limit = *self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        limit <= self.clock.now() && self.access().due().is_none()
    }
}
