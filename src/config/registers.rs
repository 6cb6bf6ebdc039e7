//! `[registers]`: those of the file, laid over the shipped ones.

use std::collections::BTreeMap;

use super::file::{self, File};
use super::reading::Reading;
use crate::conversation::{DM, Heed, Register, RegisterName, Wakes};

/// The registers in use: those that the file writes down, those that rooms have, and the one of direct chats.
pub(super) fn registers(file: &File, reading: &mut Reading<'_>) -> BTreeMap<RegisterName, Register> {
    let mut registers = BTreeMap::new();
    for (name, written) in &file.registers {
        let key = format!("registers.{name}");
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            reading.fail(&key, format!("`{name}` cannot name a register"), "use a-z, 0-9, _ and - only");
        }
        registers.insert(RegisterName(name.clone()), register(name, written, reading));
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
fn register(name: &str, written: &file::Register, reading: &mut Reading<'_>) -> Register {
    let key = format!("registers.{name}");
    let shipped = Register::shipped(name);
    if shipped.is_none() {
        reading.required(&format!("{key}.voice"), written.voice.as_ref());
    }
    let base = shipped.unwrap_or_default();
    let wakes = written.wakes.map_or(base.heed.wakes, |wakes| match wakes {
        file::Wakes::Addressed => Wakes::Addressed,
        file::Wakes::Anyone => Wakes::Anyone,
        file::Wakes::Nobody => Wakes::Nobody,
    });
    let names_address = written.names_address.unwrap_or(base.heed.names_address);
    Register {
        voice: written.voice.clone().unwrap_or(base.voice),
        length: written.length.clone().unwrap_or(base.length),
        heed: Heed { wakes, names_address },
    }
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
    if file.registers.contains_key(name) || Register::shipped(name).is_some() {
        return Some(RegisterName(name.to_owned()));
    }
    let written = file.registers.keys().map(String::as_str);
    let mut known: Vec<&str> = written.chain(Register::SHIPPED).filter(|known| *known != DM).collect();
    known.sort_unstable();
    known.dedup();
    let remedy = format!("add [registers.{name}] with a voice, or name one of: {}", known.join(", "));
    reading.fail(key, format!("there is no register `{name}`"), remedy);
    None
}
