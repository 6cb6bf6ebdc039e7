//! Registers: how a kind of room is spoken in, and what wakes a Persona there.

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
}

/// What of the talk in a room concerns a Persona.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heed {
    /// Which messages wake her.
    pub wakes: Wakes,
    /// Whether her bare name addresses her.
    pub names_address: bool,
}

/// Which messages of people wake a Persona.
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
        let heed = Heed { wakes: Wakes::Addressed, names_address: true };
        Some(Self { voice: voice.to_owned(), length: length.to_owned(), heed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_shipped_has_a_register_with_a_voice() {
        for name in Register::SHIPPED {
            let register = Register::shipped(name).expect(name);
            assert!(!register.voice.is_empty() && !register.length.is_empty(), "{name}");
        }
        assert_eq!(Register::shipped("lounge"), None);
    }
}
