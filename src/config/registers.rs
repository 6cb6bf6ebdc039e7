//! `[registers]`: those of the file, laid over the shipped ones.

use std::collections::BTreeMap;

use super::file::{self, File};
use super::reading::Reading;
use crate::conversation::{DM, Heed, Register, RegisterName, ReplyIn, SpeakFrom, Wakes};

/// The registers in use: those that the file writes down, those that rooms have, and the one of direct chats.
pub(super) fn registers(file: &File, reading: &mut Reading<'_>) -> BTreeMap<RegisterName, Register> {
    let mut registers = BTreeMap::new();
    for (name, written) in &file.registers {
        let key = format!("registers.{name}");
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            reading.fail(&key, format!("`{name}` cannot name a register"), "use a-z, 0-9, _ and - only");
        }
        registers.insert(RegisterName(name.clone()), register(file, name, written, reading));
    }
    let of_rooms = file.rooms.iter().filter_map(|room| room.register.as_deref());
    for name in of_rooms.chain(file.talk.default_register.as_deref()).chain([DM]) {
        if let Some(shipped) = Register::shipped(name) {
            registers.entry(RegisterName(name.to_owned())).or_insert(shipped);
        }
    }
    registers
}

/// A register of the file; what it does not say is as shipped, where it has the name of a shipped one.
fn register(file: &File, name: &str, written: &file::Register, reading: &mut Reading<'_>) -> Register {
    let key = format!("registers.{name}");
    let shipped = Register::shipped(name);
    if shipped.is_none() {
        reading.required(&format!("{key}.voice"), written.voice.as_ref());
    }
    let speak_from = speak_from(file, &key, written, reading);
    let base = shipped.unwrap_or_default();
    let heed = Heed {
        wakes: written.wakes.map_or(base.heed.wakes, wakes),
        names_address: written.names_address.unwrap_or(base.heed.names_address),
        room_mention: written.room_mention.unwrap_or(base.heed.room_mention),
        personas_wake: written.personas_wake.unwrap_or(base.heed.personas_wake),
    };
    Register {
        voice: written.voice.clone().unwrap_or(base.voice),
        length: written.length.clone().unwrap_or(base.length),
        heed,
        reply: written.reply.map_or(base.reply, reply_in),
        speak_from,
    }
}

fn wakes(written: file::Wakes) -> Wakes {
    match written {
        file::Wakes::Addressed => Wakes::Addressed,
        file::Wakes::Anyone => Wakes::Anyone,
        file::Wakes::Nobody => Wakes::Nobody,
    }
}

fn reply_in(written: file::ReplyIn) -> ReplyIn {
    match written {
        file::ReplyIn::AsAsked => ReplyIn::AsAsked,
        file::ReplyIn::Thread => ReplyIn::Thread,
        file::ReplyIn::Timeline => ReplyIn::Timeline,
    }
}

/// Which lanes may speak into a register's rooms; nothing is shipped.
fn speak_from(file: &File, key: &str, written: &file::Register, reading: &mut Reading<'_>) -> SpeakFrom {
    let names = written.speak_from.as_deref().unwrap_or_default();
    for (index, name) in names.iter().enumerate() {
        if !is_known(file, name) {
            let cause = format!("there is no register `{name}`");
            reading.fail(&format!("{key}.speak_from[{index}]"), cause, remedy(file, name));
        }
    }
    let allowed = written.allow_from_dm.unwrap_or(false);
    if allowed && !names.iter().any(|name| name == DM) {
        let remedy = "add \"dm\" to speak_from beside it, or remove it";
        reading.fail(&format!("{key}.allow_from_dm"), "allows what is not asked for", remedy);
    }
    let listed = SpeakFrom::new(names.iter().map(|name| RegisterName(name.clone())), allowed);
    listed.unwrap_or_else(|error| {
        let remedy = "remove \"dm\" from it, or write allow_from_dm = true beside it";
        reading.fail(&format!("{key}.speak_from"), error.to_string(), remedy);
        SpeakFrom::default()
    })
}

fn is_known(file: &File, name: &str) -> bool {
    file.registers.contains_key(name) || Register::shipped(name).is_some()
}

/// The register that rooms have by a name.
pub(super) fn known_register(
    file: &File,
    reading: &mut Reading<'_>,
    key: &str,
    name: &str,
) -> Option<RegisterName> {
    if name == DM {
        let remedy = "name another one, or make the room a direct chat by `direct`";
        reading.fail(key, "`dm` is the register of direct chats", remedy);
        return None;
    }
    if is_known(file, name) {
        return Some(RegisterName(name.to_owned()));
    }
    reading.fail(key, format!("there is no register `{name}`"), remedy(file, name));
    None
}

/// What to do about a register that does not exist.
fn remedy(file: &File, name: &str) -> String {
    let written = file.registers.keys().map(String::as_str);
    let mut known: Vec<&str> = written.chain(Register::SHIPPED).filter(|known| *known != DM).collect();
    known.sort_unstable();
    known.dedup();
    format!("add [registers.{name}] with a voice, or name one of: {}", known.join(", "))
}
