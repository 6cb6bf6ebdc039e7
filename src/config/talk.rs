//! `[talk]`, `[memory]`, `[[rooms]]` and `[permissions]`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ruma::{OwnedRoomAliasId, RoomAliasId, ServerName, UserId};

use super::file::{self, File};
use super::reading::{Reading, is_placeholder};
use super::registers::known_register;
use crate::bridge::RoomKind;
use crate::conversation::{Bots, Level, Permissions, RegisterName};
use crate::persona::Among;
use crate::persona::decide::Settle;
use crate::persona::memory::DmMemories;

/// The key of `[permissions]` that is a list.
const BOTS: &str = "bots";

/// The longest message that is shown in whole unless the file says otherwise.
const TRIM_OVER: usize = 8 * 1024;

/// The shortest message that may be shown in part, in bytes.
const LEAST_SHOWN: usize = 256;

pub(super) fn settle(file: &File, reading: &mut Reading<'_>) -> Settle {
    let quiet = file.talk.settle.map_or(Duration::from_secs(2), |span| span.0);
    let cap = file.talk.settle_max.map_or(Duration::from_secs(10), |span| span.0);
    if cap < quiet {
        reading.fail("talk.settle_max", "is shorter than talk.settle", "make it at least as long");
    }
    Settle { quiet, cap }
}

pub(super) fn trim_over(file: &File, reading: &mut Reading<'_>) -> usize {
    let Some(size) = file.talk.trim_over else { return TRIM_OVER };
    let size = usize::try_from(size.0).unwrap_or(usize::MAX);
    if size < LEAST_SHOWN {
        let cause =
            format!("must be {LEAST_SHOWN} bytes at least: hardly any message would be shown in whole");
        reading.fail_as_example("talk.trim_over", cause);
    }
    size
}

pub(super) fn dm_memories(file: &File) -> DmMemories {
    match file.memory.dm_memories.unwrap_or_default() {
        file::DmMemories::DmOnly => DmMemories::DmOnly,
        file::DmMemories::SamePerson => DmMemories::SamePerson,
        file::DmMemories::Everywhere => DmMemories::Everywhere,
    }
}

pub(super) fn default_register(file: &File, reading: &mut Reading<'_>) -> Option<RegisterName> {
    let name = file.talk.default_register.as_ref()?;
    known_register(file, reading, "talk.default_register", name)
}

pub(super) fn rooms(file: &File, reading: &mut Reading<'_>) -> BTreeMap<OwnedRoomAliasId, RoomKind> {
    let mut rooms = BTreeMap::new();
    for (index, room) in file.rooms.iter().enumerate() {
        let key = format!("rooms[{index}]");
        let alias = reading.required(&format!("{key}.alias"), room.alias.as_ref());
        let alias = alias.and_then(|text| room_alias(reading, &format!("{key}.alias"), text));
        let kind = room_kind(file, reading, &key, room);
        let (Some(alias), Some(kind)) = (alias, kind) else { continue };
        if rooms.insert(alias.clone(), kind).is_some() {
            reading.fail(&format!("{key}.alias"), format!("{alias} stands twice"), "remove one of the two");
        }
    }
    rooms
}

/// The rooms in which only what is addressed becomes mail.
pub(super) fn addressed_only(file: &File, reading: &mut Reading<'_>) -> BTreeSet<OwnedRoomAliasId> {
    let mut aliases = BTreeSet::new();
    for (index, room) in file.rooms.iter().enumerate() {
        if room.listen.unwrap_or_default() == file::Listen::All {
            continue;
        }
        if room.direct.is_some() {
            let remedy = "remove it: all that is said in a direct chat is addressed";
            reading.fail(&format!("rooms[{index}].listen"), "says nothing in a direct chat", remedy);
        }
        aliases.extend(room.alias.as_ref().and_then(|alias| RoomAliasId::parse(alias).ok()));
    }
    aliases
}

fn room_kind(file: &File, reading: &mut Reading<'_>, key: &str, room: &file::Room) -> Option<RoomKind> {
    let Some(whose) = &room.direct else {
        let register = reading.required(&format!("{key}.register"), room.register.as_ref())?;
        return known_register(file, reading, &format!("{key}.register"), register).map(RoomKind::Register);
    };
    let key = format!("{key}.direct");
    if room.register.is_some() {
        reading.fail(&key, "a direct chat has no register", "remove one of the two");
    }
    if !file.personas.iter().any(|persona| persona.id.as_ref() == Some(whose)) {
        reading.fail(&key, format!("there is no Persona `{whose}`"), "write the id of one");
    }
    Some(RoomKind::Direct)
}

fn room_alias(reading: &mut Reading<'_>, key: &str, text: &str) -> Option<OwnedRoomAliasId> {
    match RoomAliasId::parse(text) {
        Ok(alias) if is_placeholder(alias.server_name().as_str()) => {
            reading.fail(key, "is the example's placeholder", "write a room of your own homeserver");
            None
        }
        Ok(alias) => Some(alias),
        Err(_) => {
            let cause = format!("`{text}` is not a room alias");
            reading.fail(key, cause, "write it like \"#lounge:your.server\", in quotes");
            None
        }
    }
}

pub(super) fn permissions(file: &File, reading: &mut Reading<'_>) -> Permissions {
    let mut permissions = BTreeMap::new();
    for (name, written) in &file.permissions {
        let key = format!("permissions.{name}");
        let file::Permission::Level(level) = written else {
            if name != BOTS {
                reading.fail(&key, "is a list", "write one of: block, chat, admin");
            }
            continue;
        };
        let server =
            name.strip_prefix('@').and_then(|user| user.split_once(':')).map_or(name.as_str(), |(_, s)| s);
        let valid = match name.as_str() {
            "*" => true,
            user if user.starts_with('@') => <&UserId>::try_from(user).is_ok(),
            server => <&ServerName>::try_from(server).is_ok(),
        };
        if !valid {
            let cause = format!("`{name}` is no user, no server and not *");
            reading.fail(&key, cause, "write \"@user:server\", \"server\" or \"*\"");
        } else if is_placeholder(server) {
            reading.fail(
                &key,
                "is the example's placeholder",
                "write your own server and users, or remove it",
            );
        }
        let level = match level {
            file::Level::Block => Level::Block,
            file::Level::Chat => Level::Chat,
            file::Level::Admin => Level::Admin,
        };
        permissions.insert(name.clone(), level);
    }
    if permissions.values().all(|level| *level == Level::Block) {
        let remedy = "add a line such as \"your.server\" = \"chat\"";
        reading.warn("permissions", "nobody may talk to the Personas", remedy);
    }
    Permissions(permissions)
}

/// Who is a machine of other people.
pub(super) fn bots(file: &File, reading: &mut Reading<'_>) -> Bots {
    let Some(file::Permission::Patterns(patterns)) = file.permissions.get(BOTS) else {
        return Bots::default();
    };
    for (index, pattern) in patterns.iter().enumerate() {
        let key = format!("permissions.{BOTS}[{index}]");
        let server = pattern.split_once(':').map(|(_, server)| server);
        if server.is_some_and(is_placeholder) {
            reading.fail(&key, "is the example's placeholder", "write your own server, or remove it");
        } else if server.is_none() || !pattern.starts_with(['@', '*']) {
            let cause = format!("`{pattern}` fits no user id");
            reading.fail(&key, cause, "write it like \"@*bot:your.server\"; * stands for any text");
        }
    }
    Bots(patterns.clone())
}

/// How far Personas go on among themselves.
pub(super) fn among(file: &File) -> Among {
    let (talk, shipped) = (&file.talk, Among::default());
    Among {
        max_hops: talk.max_hops.unwrap_or(shipped.max_hops),
        pair: talk.pair_limit.map_or(shipped.pair, |rate| rate.0),
        room: talk.room_limit.map_or(shipped.room, |rate| rate.0),
    }
}
