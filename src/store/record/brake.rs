//! The brake as a text: a JSON list of Personas, in which `*` stands for everyone.

use std::collections::BTreeSet;

use crate::conversation::PersonaId;
use crate::persona::Brake;
use crate::store::db::BRAKE;
use crate::store::table::Table;
use crate::store::{Result, StoreError};

/// Everyone; no Persona's id is so.
const EVERYONE: &str = "*";

/// The text of a brake.
pub(in crate::store) fn brake_text(brake: &Brake) -> String {
    let names = brake.personas.iter().map(PersonaId::as_str);
    let names: Vec<&str> = brake.all.then_some(EVERYONE).into_iter().chain(names).collect();
    serde_json::json!(names).to_string()
}

/// The brake of a text.
pub(in crate::store) fn brake(text: &str) -> Result<Brake> {
    let names: BTreeSet<String> = serde_json::from_str(text).map_err(|_| unreadable())?;
    let all = names.contains(EVERYONE);
    let personas = names.into_iter().filter(|name| name != EVERYONE).map(PersonaId).collect();
    Ok(Brake { all, personas })
}

fn unreadable() -> StoreError {
    super::corrupt(Table::Meta, BRAKE.as_bytes(), "it is no list of Personas")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_as_it_is() {
        let eir = BTreeSet::from([PersonaId("eir".to_owned())]);
        let rows = [
            ("[]", Brake::default()),
            (r#"["*"]"#, Brake::everyone()),
            (r#"["eir"]"#, Brake { all: false, personas: eir.clone() }),
            (r#"["*","eir"]"#, Brake { all: true, personas: eir }),
        ];
        for (text, held) in rows {
            assert_eq!((brake(text).unwrap(), brake_text(&held).as_str()), (held, text));
        }
        for text in ["", "eir", r#"{"eir":true}"#, "[1]"] {
            assert!(brake(text).is_err(), "{text}");
        }
    }
}
