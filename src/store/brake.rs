//! Whom the brake holds: one row, written by operators' orders and by what admins say in rooms.

use ruma::OwnedRoomId;

use super::db::BRAKE;
use super::tx::{Read, Tx};
use super::{Result, Steered, Store, StoreError, outbox, record};
use crate::conversation::Millis;
use crate::conversation::steer::Steer;
use crate::persona::{Brake, Heeded};

impl Store {
    /// Whom the operator's brake holds.
    pub fn brake(&self) -> Result<Brake> {
        self.read(|view| kept(view))
    }
    /// Changes whom it holds; answers whom it holds then. One that cannot be read held everyone.
    pub async fn change_brake(&self, change: impl FnOnce(&mut Brake) + Send + 'static) -> Result<Brake> {
        self.write(move |tx| self::change(tx, change)).await
    }
}

/// The brake as it is written down.
pub(super) fn kept<R: Read>(from: &R) -> Result<Brake> {
    let text = from.meta(BRAKE)?;
    text.map_or_else(|| Ok(Brake::default()), |text| record::brake(&text))
}

/// Writes it down.
pub(super) fn put(tx: &mut Tx<'_>, brake: &Brake) {
    tx.put_meta(BRAKE, &record::brake_text(brake));
}

/// Changes it in one transaction; one that cannot be read holds everyone.
pub(super) fn change(tx: &mut Tx<'_>, change: impl FnOnce(&mut Brake)) -> Result<Brake> {
    let mut brake = match kept(tx) {
        Err(StoreError::Corrupt { .. }) => Brake::everyone(),
        read => read?,
    };
    change(&mut brake);
    put(tx, &brake);
    Ok(brake)
}

/// A room takes the place of another one: what admins said there counts in it too. A brake that cannot be read stays as it is.
pub(super) fn follow(tx: &mut Tx<'_>, from: &OwnedRoomId, to: &OwnedRoomId) -> Result<()> {
    let mut brake = match kept(tx) {
        Err(StoreError::Corrupt { .. }) => return Ok(()),
        read => read?,
    };
    if brake.follow(from, to) {
        put(tx, &brake);
    }
    Ok(())
}

/// Heeds what an admin said, and tells what it came to. A brake that cannot be read holds everyone until an
/// operator releases it, whatever is said.
pub(super) fn steer(tx: &mut Tx<'_>, steer: &Steer, telling: Steered, now: Millis) -> Result<()> {
    let mut brake = match kept(tx) {
        Err(StoreError::Corrupt { .. }) => return Ok(()),
        read => read?,
    };
    let heeded = brake.steer(steer);
    put(tx, &brake);
    let whom = steer.whom.as_ref().map_or("everyone", |whom| whom.as_str());
    let (room, word) = (&steer.room, steer.word);
    tracing::warn!(%room, whom, ?word, ?heeded, "an admin's word");
    let says = match heeded {
        Heeded::Changes => telling.changes,
        Heeded::Same => Vec::new(),
        Heeded::Overtaken => telling.overtaken,
        Heeded::InVain => telling.in_vain,
    };
    says.into_iter().try_for_each(|say| outbox::say(tx, say, now).map(drop))
}
