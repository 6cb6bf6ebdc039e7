//! Who a Persona is to claude and to Matrix.

use ruma::OwnedUserId;

use super::record::{self, IdentityForm, SessionForm};
use super::table::Table;
use super::tx::{Read, Tx};
use super::{IdentityRow, Result, Store};
use crate::conversation::PersonaId;
use crate::persona::session::Session;
use crate::persona::session::care::Word;

impl Store {
    /// What an operator said of a session, with the generation that it was said of.
    pub fn word(&self, persona: &PersonaId) -> Result<Option<(u32, Word)>> {
        self.read(|view| word(view, persona))
    }
    /// Which generation of a Persona's session has last heard what was taken back since.
    pub fn tainted(&self, persona: &PersonaId) -> Result<Option<u32>> {
        self.read(|view| tainted(view, persona))
    }
    /// Writes down what an operator says of a Persona's session; answers of which generation, if there is one.
    pub async fn set_word(&self, persona: &PersonaId, word: Word) -> Result<Option<u32>> {
        let persona = persona.clone();
        self.write(move |tx| put_word(tx, &persona, word)).await
    }
    /// How a user is authenticated.
    pub fn identity(&self, user: &OwnedUserId) -> Result<Option<IdentityRow>> {
        self.read(|view| identity(view, user))
    }
    /// Writes how a user is authenticated.
    pub async fn set_identity(&self, identity: IdentityRow) -> Result<()> {
        self.write(move |tx| put_identity(tx, identity)).await
    }
}

/// The session row of a Persona.
pub(super) fn session<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<Session>> {
    let form = from.record::<SessionForm>(Table::Sessions, persona.as_str().as_bytes())?;
    Ok(form.map(Session::from))
}

/// Writes the session row of a Persona.
pub(super) fn put(tx: &mut Tx<'_>, persona: &PersonaId, session: Session) -> Result<()> {
    tx.put(Table::Sessions, persona.as_str().as_bytes(), &SessionForm::from(session))
}

/// What an operator said of a session, as `GENERATION WORD`, with that generation.
pub(super) fn word<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<(u32, Word)>> {
    let key = word_key(persona);
    let Some(text) = from.meta(&key)? else { return Ok(None) };
    let read =
        text.split_once(' ').and_then(|(number, word)| Some((number.parse().ok()?, Word::named(word)?)));
    read.map(Some).ok_or_else(|| record::corrupt(Table::Meta, key.as_bytes(), "not a word on a session"))
}

/// Writes down what an operator says of the session that there is; answers its generation.
pub(super) fn put_word(tx: &mut Tx<'_>, persona: &PersonaId, word: Word) -> Result<Option<u32>> {
    let Some(Session { generation, .. }) = session(tx, persona)? else { return Ok(None) };
    tx.put_meta(&word_key(persona), &format!("{generation} {}", word.name()));
    Ok(Some(generation))
}

/// A flush begins: if an operator asked for one, it is asked for no longer.
pub(super) fn drop_flush(tx: &mut Tx<'_>, persona: &PersonaId) -> Result<()> {
    match word(tx, persona)? {
        Some((_, Word::Flush)) => tx.remove(Table::Meta, word_key(persona).as_bytes()),
        Some((_, Word::Refresh | Word::Keep)) | None => Ok(()),
    }
}

/// Which generation of a Persona's session has last heard what was taken back since.
pub(super) fn tainted<R: Read>(from: &R, persona: &PersonaId) -> Result<Option<u32>> {
    let key = taint_key(persona);
    let Some(text) = from.meta(&key)? else { return Ok(None) };
    let generation = text.parse().map(Some);
    generation.map_err(|_| record::corrupt(Table::Meta, key.as_bytes(), "not the number of a session"))
}

/// Something that a Persona has heard was taken back: her session is not to be gone on with.
pub(super) fn taint(tx: &mut Tx<'_>, persona: &PersonaId) -> Result<()> {
    if let Some(Session { generation, .. }) = session(tx, persona)? {
        tx.put_meta(&taint_key(persona), &generation.to_string());
    }
    Ok(())
}

fn taint_key(persona: &PersonaId) -> String {
    format!("tainted:{persona}")
}

fn word_key(persona: &PersonaId) -> String {
    format!("word:{persona}")
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
