//! Who and where in the demo: two Personas, three rooms, and whether a line addresses anyone. Pure.

/// The prefix of the Personas' localparts and of the rooms' aliases.
pub(super) const PREFIX: &str = "persona_";

/// The Personas: id and name.
pub(super) const PERSONAS: [(&str, &str); 2] = [("eir", "Eir"), ("brage", "Brage")];

/// The rooms: name, and how it is spoken in there.
pub(super) const ROOMS: [(&str, &str); 3] = [
    ("minds", "Unhurried: one thought, followed to its end."),
    ("swarm", "Quick and short, as among many: a sentence or two."),
    ("burn", "Frank and dry: say what does not hold, and never hurt."),
];

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A room, by its name.
    Room(&'static str),
    /// A direct chat with a Persona, by her id.
    Direct(&'static str),
}

impl Target {
    /// A room's or Persona's name as people type it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let word = text.trim().trim_start_matches(['#', '@']).to_lowercase();
        let room = ROOMS.iter().find(|(name, _)| *name == word).map(|(name, _)| Self::Room(name));
        room.or_else(|| PERSONAS.iter().find(|(id, _)| *id == word).map(|(id, _)| Self::Direct(id)))
    }

    /// As it is shown: `#swarm` or `Eir`.
    pub(super) fn label(self) -> String {
        match self {
            Self::Room(name) => format!("#{name}"),
            Self::Direct(id) => name_of(id).to_owned(),
        }
    }

    /// Whether somebody will answer a line there.
    pub(super) fn addresses(self, text: &str) -> bool {
        match self {
            Self::Room(_) => names_somebody(text),
            Self::Direct(_) => true,
        }
    }
}

/// Every target, for messages: `minds, swarm, burn, eir, brage`.
pub(super) fn targets() -> String {
    let rooms = ROOMS.iter().map(|(name, _)| *name);
    rooms.chain(PERSONAS.iter().map(|(id, _)| *id)).collect::<Vec<_>>().join(", ")
}

/// The sentence for a line that addresses nobody.
pub(super) const UNADDRESSED: &str = "in a room only those answer who are named: say \"Eir, …\" or \"Brage, …\", or open a direct chat (/dm eir)";

/// Whether a Persona's name is in it as a whole word.
pub(super) fn names_somebody(text: &str) -> bool {
    PERSONAS.iter().any(|(_, name)| is_named(text, name))
}

/// Whether a name is in it as a whole word.
pub(super) fn is_named(text: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word.to_lowercase() == name)
}

/// A Persona's name.
pub(super) fn name_of(id: &str) -> &str {
    PERSONAS.iter().find(|(known, _)| *known == id).map_or(id, |(_, name)| name)
}

/// A Persona's full user id.
pub(super) fn user_id(id: &str, server_name: &str) -> String {
    format!("@{PREFIX}{id}:{server_name}")
}

/// The Persona behind a full user id.
pub(super) fn persona(user_id: &str) -> Option<&'static str> {
    let localpart = user_id.strip_prefix('@')?.split_once(':')?.0;
    let id = localpart.strip_prefix(PREFIX)?;
    PERSONAS.iter().find(|(known, _)| *known == id).map(|(known, _)| *known)
}

/// A room's alias.
pub(super) fn alias(room: &str, server_name: &str) -> String {
    format!("#{PREFIX}{room}:{server_name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_rooms_or_personas() {
        let check = |text: &str, expect: Option<Target>| assert_eq!(Target::parse(text), expect, "{text}");
        check("swarm", Some(Target::Room("swarm")));
        check("#Minds", Some(Target::Room("minds")));
        check(" Eir ", Some(Target::Direct("eir")));
        check("@brage", Some(Target::Direct("brage")));
        check("nobody", None);
        check("", None);
    }

    #[test]
    fn a_name_addresses_only_as_a_whole_word() {
        let check = |text: &str, expect: bool| assert_eq!(names_somebody(text), expect, "{text}");
        check("Eir, hello", true);
        check("hello eir", true);
        check("what do you think, BRAGE?", true);
        check("their heirs", false);
        check("Eira", false);
        check("hello", false);
        check("", false);
    }

    #[test]
    fn a_direct_chat_needs_no_name() {
        assert!(Target::Direct("eir").addresses("hello"));
        assert!(!Target::Room("swarm").addresses("hello"));
    }

    #[test]
    fn a_persona_is_known_by_her_user_id() {
        let check = |user: &str, expect: Option<&str>| assert_eq!(persona(user), expect, "{user}");
        check(&user_id("eir", "demo.test"), Some("eir"));
        check("@persona_other:demo.test", None);
        check("@you:demo.test", None);
        check("eir", None);
    }
}
