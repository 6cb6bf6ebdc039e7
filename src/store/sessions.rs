//! Who a Persona is to claude and to Matrix.

use ruma::OwnedUserId;

use super::record::{IdentityForm, SessionForm};
use super::table::Table;
use super::tx::{Read, Tx};
use super::{IdentityRow, Result};
use crate::conversation::PersonaId;
use crate::persona::session::Session;

/// The session row of a Persona.
pub(super) fn session<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<Session>> {
    let form = from.record::<SessionForm>(Table::Sessions, persona.as_str().as_bytes())?;
    Ok(form.map(Session::from))
}

/// Writes the session row of a Persona.
pub(super) fn put(tx: &mut Tx<'_>, persona: &PersonaId, session: Session) -> Result<()> {
    tx.put(Table::Sessions, persona.as_str().as_bytes(), &SessionForm::from(session))
}

/// How a user is authenticated.
pub(super) fn identity<R: Read>(from: &R, user: &OwnedUserId) -> Result<Option<IdentityRow>> {
    let form = from.record::<IdentityForm>(Table::Identities, user.as_bytes())?;
    Ok(form.map(|form| form.row(user.clone())))
}

/// Writes how a user is authenticated.
pub(super) fn put_identity(tx: &mut Tx<'_>, identity: IdentityRow) -> Result<()> {
    let (user, form) = IdentityForm::new(identity);
    tx.put(Table::Identities, user.as_bytes(), &form)
}
