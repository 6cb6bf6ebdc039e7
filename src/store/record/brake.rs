//! The brake as a text. Before admins could stop rooms it was a JSON list of Personas, in which `*` stands for everyone; such
//! a list is read, too.

use std::collections::BTreeSet;

use ruma::OwnedRoomId;
use serde::{Deserialize, Serialize};

use crate::conversation::steer::Word;
use crate::conversation::{Millis, PersonaId};
use crate::persona::Brake;
use crate::store::db::BRAKE;
use crate::store::table::Table;
use crate::store::{Result, StoreError};

/// Everyone; no Persona's id is so.
const EVERYONE: &str = "*";

/// The forms that are read.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyForm {
    List(BTreeSet<String>),
    Whole(BrakeForm),
}

#[derive(Serialize, Deserialize)]
struct BrakeForm {
    held: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    words: Vec<WordForm>,
    #[serde(default, skip_serializing_if = "super::is_zero")]
    released: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pulls: Vec<PullForm>,
}

#[derive(Serialize, Deserialize)]
struct PullForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    persona: Option<String>,
    holds: bool,
    at: u64,
}

#[derive(Serialize, Deserialize)]
struct WordForm {
    room: OwnedRoomId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    persona: Option<String>,
    stops: bool,
    at: u64,
}

/// The text of a brake.
pub(in crate::store) fn brake_text(brake: &Brake) -> String {
    let names = brake.personas.iter().map(|persona| persona.0.clone());
    let words = brake.words.iter().map(|((room, persona), (word, at))| WordForm {
        room: room.clone(),
        persona: persona.as_ref().map(|persona| persona.0.clone()),
        stops: *word == Word::Stop,
        at: at.0,
    });
    let form = BrakeForm {
        held: brake.all.then(|| EVERYONE.to_owned()).into_iter().chain(names).collect(),
        words: words.collect(),
        released: brake.released.0,
        pulls: brake.pulls.iter().map(pull_form).collect(),
    };
    serde_json::json!(form).to_string()
}

fn pull_form((persona, (word, at)): (&Option<PersonaId>, &(Word, Millis))) -> PullForm {
    PullForm {
        persona: persona.as_ref().map(|persona| persona.0.clone()),
        holds: *word == Word::Stop,
        at: at.0,
    }
}

/// The brake of a text.
pub(in crate::store) fn brake(text: &str) -> Result<Brake> {
    let form = match serde_json::from_str(text).map_err(|_| unreadable())? {
        AnyForm::List(held) => BrakeForm { held, words: Vec::new(), released: 0, pulls: Vec::new() },
        AnyForm::Whole(form) => form,
    };
    let words = form.words.into_iter().map(|WordForm { room, persona, stops, at }| {
        let word = if stops { Word::Stop } else { Word::Go };
        ((room, persona.map(PersonaId)), (word, Millis(at)))
    });
    let pulls = form.pulls.into_iter().map(|PullForm { persona, holds, at }| {
        let word = if holds { Word::Stop } else { Word::Go };
        (persona.map(PersonaId), (word, Millis(at)))
    });
    Ok(Brake {
        all: form.held.contains(EVERYONE),
        words: words.collect(),
        personas: form.held.into_iter().filter(|name| name != EVERYONE).map(PersonaId).collect(),
        released: Millis(form.released),
        pulls: pulls.collect(),
    })
}

fn unreadable() -> StoreError {
    super::corrupt(Table::Meta, BRAKE.as_bytes(), "it is no brake")
}

#[cfg(test)]
mod tests {
    use ruma::owned_room_id;

    use super::*;

    fn eir() -> PersonaId {
        PersonaId("eir".to_owned())
    }

    #[test]
    fn it_stays_as_it_is() {
        let room = || owned_room_id!("!a:hs.test");
        let words =
            [((room(), None), (Word::Go, Millis(7))), ((room(), Some(eir())), (Word::Stop, Millis(9)))];
        let pulls = [(None, (Word::Go, Millis(5))), (Some(eir()), (Word::Stop, Millis(6)))];
        let rows = [
            (r#"{"held":[]}"#, Brake::default()),
            (r#"{"held":["*"]}"#, Brake::everyone()),
            (r#"{"held":["*","eir"]}"#, Brake { personas: [eir()].into(), ..Brake::everyone() }),
            (
                r#"{"held":[],"pulls":[{"at":5,"holds":false},{"at":6,"holds":true,"persona":"eir"}],"released":5,"words":[{"at":7,"room":"!a:hs.test","stops":false},{"at":9,"persona":"eir","room":"!a:hs.test","stops":true}]}"#,
                Brake { words: words.into(), released: Millis(5), pulls: pulls.into(), ..Brake::default() },
            ),
        ];
        for (text, held) in rows {
            assert_eq!((brake(text).unwrap(), brake_text(&held).as_str()), (held, text));
        }
        for text in ["", "eir", r#"{"eir":true}"#, "[1]"] {
            assert!(brake(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_of_an_earlier_version_is_read() {
        let rows = [
            ("[]", Brake::default()),
            (r#"["*"]"#, Brake::everyone()),
            (r#"["eir"]"#, Brake { personas: [eir()].into(), ..Brake::default() }),
        ];
        for (text, held) in rows {
            assert_eq!(brake(text).unwrap(), held);
        }
    }
}
