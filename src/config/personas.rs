//! `[[personas]]`: who they are, from their files.

use std::collections::BTreeSet;

use ruma::{OwnedRoomAliasId, RoomAliasId, UserId};

use super::file::{self, File};
use super::reading::Reading;
use super::server::{Appservice, Homeserver};
use crate::bridge::PersonaConfig;
use crate::conversation::{Persona, PersonaId};
use crate::persona::State;
use crate::persona::state::Malformed;

/// The most bytes of doctrine a Persona may have, all files together.
const DOCTRINE_MAX: usize = 96 << 10;
/// The most bytes of a user id.
const USER_MAX: usize = 255;
/// The most characters of a name.
const NAME_MAX: usize = 64;

pub(super) fn personas(
    file: &File,
    reading: &mut Reading<'_>,
    server: Option<(&Homeserver, &Appservice)>,
) -> Vec<PersonaConfig> {
    if file.personas.is_empty() {
        reading.fail("personas", "there is no Persona", "add a [[personas]] section with id and name");
    }
    let mut ids = BTreeSet::new();
    let mut personas = Vec::new();
    for (index, section) in file.personas.iter().enumerate() {
        let key = format!("personas[{index}]");
        let id = persona_id(section, reading, &key, &mut ids);
        let name = persona_name(section, reading, &key);
        let doctrine = doctrine(section, reading, &key);
        let state = state(section, reading, &key);
        let avatar = avatar(section, reading, &key);
        let rooms = persona_rooms(section, reading, &key, &file.rooms);
        let (Some(id), Some(name), Some((homeserver, appservice))) = (id, name, server) else { continue };
        let user = format!("@{}{id}:{}", appservice.user_prefix, homeserver.server_name);
        match UserId::parse(&user) {
            Ok(user) if user.as_str().len() <= USER_MAX => {
                let persona = Persona { id: PersonaId(id), user, name };
                personas.push(PersonaConfig { persona, avatar, doctrine, state, rooms });
            }
            _ => reading.fail(&format!("{key}.id"), format!("{user} is not a user id"), "shorten her id"),
        }
    }
    personas
}

fn persona_id(
    section: &file::Persona,
    reading: &mut Reading<'_>,
    key: &str,
    ids: &mut BTreeSet<String>,
) -> Option<String> {
    let key = format!("{key}.id");
    let id = reading.required(&key, section.id.as_ref())?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._=-".contains(c);
    if id.is_empty() || !id.chars().all(fits) {
        reading.fail(&key, format!("`{id}` cannot end a user id"), "use a-z, 0-9 and . _ = - only");
        return None;
    }
    if id.starts_with('.') {
        let cause = format!("`{id}` begins with a dot and cannot name her folder");
        reading.fail(&key, cause, "begin it with one of a-z, 0-9, _, = and -");
        return None;
    }
    if !ids.insert(id.clone()) {
        reading.fail(&key, format!("`{id}` stands twice"), "give each Persona an id of her own");
        return None;
    }
    Some(id.clone())
}

fn persona_name(section: &file::Persona, reading: &mut Reading<'_>, key: &str) -> Option<String> {
    let key = format!("{key}.name");
    let name = reading.required(&key, section.name.as_ref())?;
    if name.trim().is_empty() || name.contains(char::is_control) || name.chars().count() > NAME_MAX {
        reading.fail(&key, "is empty, too long or not one line", "write the name people call her by");
        return None;
    }
    Some(name.trim().to_owned())
}

fn avatar(section: &file::Persona, reading: &mut Reading<'_>, key: &str) -> Option<String> {
    let avatar = section.avatar.as_ref()?;
    if !avatar.starts_with("mxc://") {
        let cause = format!("`{avatar}` is not an mxc:// address");
        reading.fail(
            &format!("{key}.avatar"),
            cause,
            "upload the picture in any client and copy its mxc:// address",
        );
    }
    Some(avatar.clone())
}

fn doctrine(section: &file::Persona, reading: &mut Reading<'_>, key: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, file) in section.doctrine.iter().enumerate() {
        let path = reading.path(file);
        match Reading::text(&path) {
            Ok(text) => texts.push(text),
            Err(error) => {
                let cause = format!("{}: {error}", path.display());
                reading.fail(&format!("{key}.doctrine[{index}]"), cause, "name a text file that can be read");
            }
        }
    }
    let total: usize = texts.iter().map(String::len).sum();
    if total > DOCTRINE_MAX {
        let cause = format!("is {total} bytes together, more than {DOCTRINE_MAX}");
        reading.fail(&format!("{key}.doctrine"), cause, "shorten it; she reads all of it with every session");
    }
    texts
}

fn state(section: &file::Persona, reading: &mut Reading<'_>, key: &str) -> Option<State> {
    let key = format!("{key}.state");
    let path = reading.path(section.state.as_ref()?);
    let shown = path.display();
    let text = match Reading::text(&path) {
        Ok(text) => text,
        Err(error) => {
            reading.fail(&key, format!("{shown}: {error}"), "name a JSON file that can be read");
            return None;
        }
    };
    match State::read(&text) {
        Ok(state) => match state.fit() {
            Ok(()) => Some(state),
            Err(misfit) => {
                reading.fail(&key, format!("{shown} {misfit}"), "mend that file");
                None
            }
        },
        Err(Malformed { line, reason }) => {
            reading.fail(&key, format!("{shown}:{line} {reason}"), "mend that file");
            None
        }
    }
}

/// Her rooms; a declared one that is wrong was complained of where it is declared.
fn persona_rooms(
    section: &file::Persona,
    reading: &mut Reading<'_>,
    key: &str,
    declared: &[file::Room],
) -> Vec<OwnedRoomAliasId> {
    let mut aliases = Vec::new();
    for (index, text) in section.rooms.iter().enumerate() {
        let key = format!("{key}.rooms[{index}]");
        match declared.iter().find(|room| room.alias.as_ref() == Some(text)) {
            Some(room) if room.direct.is_some() => {
                let remedy = "remove it here; its `direct` names who is in it";
                reading.fail(&key, format!("{text} is a direct chat"), remedy);
            }
            Some(_) => aliases.extend(RoomAliasId::parse(text)),
            None => {
                let remedy = format!("add a [[rooms]] section with alias = \"{text}\" and a register");
                reading.fail(&key, format!("{text} is not among the rooms"), remedy);
            }
        }
    }
    let hers = declared.iter().filter(|room| room.direct.is_some() && room.direct == section.id);
    aliases.extend(hers.filter_map(|room| RoomAliasId::parse(room.alias.as_ref()?).ok()));
    aliases
}
