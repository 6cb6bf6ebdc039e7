//! Registers: how a kind of room is spoken in, what wakes a Persona there, and who may speak into it.

use std::collections::BTreeSet;

use super::ids::{Lane, RegisterName};

/// The register of direct chats; each of them is a lane of its own.
pub const DM: &str = "dm";

/// How a kind of room is spoken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// How it is spoken in.
    pub voice: String,
    /// How long what is said there should be; empty for no guidance.
    pub length: String,
    /// What is heeded there.
    pub heed: Heed,
    /// Where an answer stands.
    pub reply: ReplyIn,
    /// Which other lanes may speak there.
    pub speak_from: SpeakFrom,
}

/// What of the talk in a room concerns a Persona.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heed {
    /// Which messages wake her.
    pub wakes: Wakes,
    /// Whether her bare name addresses her.
    pub names_address: bool,
    /// Whether `@room` addresses her.
    pub room_mention: bool,
    /// Whether another Persona who addresses her wakes her.
    pub personas_wake: bool,
}

/// What of the talk in a room becomes mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listen {
    /// All of it.
    #[default]
    All,
    /// What is addressed to her.
    Addressed,
}

/// Which messages of people wake a Persona; another Persona wakes her by what is addressed to her alone, if at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakes {
    /// Those that are addressed to her.
    #[default]
    Addressed,
    /// All but those that are addressed to others and not to her.
    Anyone,
    /// None: what is said waits for whatever else wakes her.
    Nobody,
}

/// Where an answer stands in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyIn {
    /// Where it was asked for: in the thread, or in the timeline.
    #[default]
    AsAsked,
    /// In a thread; what was asked in the timeline becomes the root of one.
    Thread,
    /// In the timeline, also where it was asked for in a thread.
    Timeline,
}

/// The lanes that may speak into the rooms of a register beside its own: no direct chat unless that is allowed expressly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpeakFrom(BTreeSet<RegisterName>);

/// Direct chats are listed without being allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is said in direct chats could come up in its rooms")]
pub struct PrivateLane;

impl SpeakFrom {
    /// Lists registers; [`DM`] stands for every direct chat.
    ///
    /// # Errors
    /// Direct chats are among them and not allowed.
    pub fn new(
        names: impl IntoIterator<Item = RegisterName>,
        allow_from_dm: bool,
    ) -> Result<Self, PrivateLane> {
        let names: BTreeSet<RegisterName> = names.into_iter().collect();
        let is_private = names.iter().any(|name| name.as_str() == DM);
        if is_private && !allow_from_dm { Err(PrivateLane) } else { Ok(Self(names)) }
    }

    /// Whether a lane is among them.
    pub fn lists(&self, lane: &Lane) -> bool {
        self.0.contains(&lane.register())
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(RegisterName::as_str)
    }
}

impl Register {
    /// The names of the registers that need not be written down.
    pub const SHIPPED: [&str; 4] = ["burn", DM, "minds", "swarm"];

    /// A register that need not be written down.
    pub fn shipped(name: &str) -> Option<Self> {
        let (voice, length) = match name {
            "minds" => (
                "Among Personas: clipped, to the point, what is to be coordinated and nothing else.",
                "one or two sentences",
            ),
            "swarm" => (
                "With people and other Personas: in your own voice, to the whole room.",
                "a few sentences, more only where somebody asks for it",
            ),
            "burn" => (
                "Open to all: in your own voice, loose and lively, for whoever reads along.",
                "one to three sentences",
            ),
            DM => (
                "With one person, in private: in your own voice, attentive.",
                "as long as the question needs",
            ),
            _ => return None,
        };
        let personas_wake = matches!(name, "minds" | "swarm");
        let heed = Heed { names_address: true, personas_wake, ..Heed::default() };
        Some(Self { voice: voice.to_owned(), length: length.to_owned(), heed, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_direct_chat_speaks_elsewhere_only_where_that_is_allowed(
            names in prop::collection::vec(prop::sample::select(vec!["dm", "minds", "swarm"]), 0..4),
            allowed in any::<bool>(),
        ) {
            let names: Vec<RegisterName> = names.into_iter().map(|name| RegisterName(name.into())).collect();
            let direct = Lane::Direct(ruma::owned_room_id!("!d:hs.test"));
            let lists = SpeakFrom::new(names.clone(), allowed).map(|from| from.lists(&direct));
            let has = names.iter().any(|name| name.as_str() == DM);
            prop_assert_eq!(lists, if has && !allowed { Err(PrivateLane) } else { Ok(has) });
            prop_assert!(!SpeakFrom::default().lists(&direct));
        }
    }

    #[test]
    fn every_name_that_is_shipped_has_a_register_with_a_voice() {
        for name in Register::SHIPPED {
            let register = Register::shipped(name).expect(name);
            assert!(!register.voice.is_empty() && !register.length.is_empty(), "{name}");
            assert_eq!(register.heed.personas_wake, ["minds", "swarm"].contains(&name), "{name}");
        }
        assert_eq!(Register::shipped("lounge"), None);
    }
}
