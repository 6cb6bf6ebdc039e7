//! The operator's brake: who is not to be asked, whatever comes.

use std::collections::BTreeSet;

use crate::conversation::PersonaId;

/// Whom the brake holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brake {
    /// Whether it holds everyone, whoever is named beside that.
    pub all: bool,
    /// These Personas.
    pub personas: BTreeSet<PersonaId>,
}

impl Brake {
    /// It holds everyone.
    pub fn everyone() -> Self {
        Self { all: true, personas: BTreeSet::new() }
    }

    /// Whether it holds a Persona.
    pub fn holds(&self, persona: &PersonaId) -> bool {
        self.all || self.personas.contains(persona)
    }

    /// Holds a Persona, or everyone.
    pub fn hold(&mut self, persona: Option<&PersonaId>) {
        match persona {
            Some(persona) => drop(self.personas.insert(persona.clone())),
            None => self.all = true,
        }
    }

    /// Lets a Persona go, or everyone. Where it holds everyone, one alone cannot be let go.
    pub fn release(&mut self, persona: Option<&PersonaId>) {
        match persona {
            Some(persona) => drop(self.personas.remove(persona)),
            None => *self = Self::default(),
        }
    }

    /// Whom it holds, in words; none where it holds nobody.
    pub fn held(&self) -> Option<String> {
        if self.all {
            return Some("everyone".to_owned());
        }
        let names: Vec<&str> = self.personas.iter().map(PersonaId::as_str).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> PersonaId {
        PersonaId(name.to_owned())
    }

    #[test]
    fn it_holds_whom_it_was_told_until_it_is_told_otherwise() {
        let mut brake = Brake::default();
        assert_eq!((brake.holds(&id("eir")), brake.held()), (false, None));
        brake.hold(Some(&id("eir")));
        brake.hold(Some(&id("bil")));
        assert_eq!(brake.held().as_deref(), Some("bil, eir"));
        brake.release(Some(&id("bil")));
        assert!(brake.holds(&id("eir")) && !brake.holds(&id("bil")));
        brake.hold(None);
        assert_eq!(brake.held().as_deref(), Some("everyone"));
        brake.release(Some(&id("bil")));
        assert!(brake.holds(&id("bil")), "everyone is everyone");
        brake.release(None);
        assert_eq!(brake, Brake::default());
    }
}
