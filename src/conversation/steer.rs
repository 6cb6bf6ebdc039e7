//! What an admin says to stop Personas in a room, or to let them go on: a whole message, never a part of one.

use ruma::matrix_uri::MatrixId;
use ruma::{MatrixToUri, OwnedRoomId};

use super::event::{Message, MessageKind};
use super::ids::{Millis, PersonaId};
use super::room::Persona;

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing is asked or said there any more.
    Stop,
    /// It goes on.
    Go,
}

/// A word of an admin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// In which room.
    pub room: OwnedRoomId,
    /// This Persona alone; else everyone there.
    pub whom: Option<PersonaId>,
    /// What.
    pub word: Word,
    /// When it was said.
    pub at: Millis,
}

/// With what a message begins that is meant for the bridge.
pub const PREFIX: &str = "!persona";

/// What a whole message says, and of whom: `stop`, `!persona stop` or `<name> stop`, `!persona go` or `<name> go`, whatever
/// the case; a name is that of one of these Personas, her id or her user's, also as a client writes a mention (`Eir:`, or a link
/// to her user).
///
/// An edit says nothing: what it replaces was heard.
pub fn said<'a>(
    message: &Message,
    personas: impl IntoIterator<Item = &'a Persona>,
) -> Option<(Word, Option<PersonaId>)> {
    if message.kind != MessageKind::Text || message.edits.is_some() || message.text.len() > LONGEST {
        return None;
    }
    let text = message.text.to_lowercase();
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let word = match words.pop()? {
        "stop" => Word::Stop,
        "go" => Word::Go,
        _ => return None,
    };
    match words.as_slice() {
        [] => (word == Word::Stop).then_some((word, None)),
        [PREFIX] => Some((word, None)),
        [PREFIX, name @ ..] | name => {
            let name = name.join(" ");
            let name = name.strip_suffix([':', ',']).unwrap_or(&name);
            let named = personas.into_iter().find(|persona| is_called(persona, name))?;
            Some((word, Some(named.id.clone())))
        }
    }
}

/// The longest message that is looked at, in bytes: most are no such word.
const LONGEST: usize = 512;

/// Whether a Persona is called so: her id, her name, or her user's id, in lower case, or a Markdown link to her user, as clients
/// write a mention that is shown as a pill.
pub fn is_called(persona: &Persona, name: &str) -> bool {
    if let Some(user) = linked(name) {
        return persona.user.as_str().to_lowercase() == user;
    }
    let called = persona.name.split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = name.strip_prefix('@').unwrap_or(name);
    [called.as_str(), persona.id.as_str(), persona.user.as_str(), persona.user.localpart()]
        .into_iter()
        .map(str::to_lowercase)
        .any(|known| known == name || known == bare)
}

/// The user to whom a text is a Markdown link by `matrix.to`, and nothing else.
fn linked(text: &str) -> Option<String> {
    let (label, link) = text.strip_prefix('[')?.strip_suffix(')')?.split_once("](")?;
    let uri = MatrixToUri::parse(link).ok().filter(|_| !label.contains(['[', ']']))?;
    if let MatrixId::User(user) = uri.id() { Some(user.to_string()) } else { None }
}

#[cfg(test)]
mod tests {
    use ruma::{UserId, event_id, user_id};

    use super::*;

    fn message(text: &str) -> Message {
        Message {
            kind: MessageKind::Text,
            text: text.into(),
            thread: None,
            reply_to: None,
            edits: None,
            mentions: Vec::new(),
            mentions_room: false,
        }
    }

    fn personas() -> [Persona; 2] {
        let of = |id: &str, user: &UserId, name: &str| Persona {
            id: PersonaId(id.into()),
            user: user.to_owned(),
            name: name.into(),
        };
        [
            of("eir", user_id!("@persona_eir:hs.test"), "Eir"),
            of("b", user_id!("@persona_b:hs.test"), "Old Brage"),
        ]
    }

    #[track_caller]
    fn check(text: &str, expect: Option<(Word, Option<&str>)>) {
        let said = said(&message(text), &personas());
        let expect = expect.map(|(word, whom)| (word, whom.map(|whom| PersonaId(whom.into()))));
        assert_eq!(said, expect, "{text:?}");
    }

    #[test]
    fn a_whole_message_stops_a_room_or_one_persona_in_it() {
        for text in ["stop", "STOP", "  Stop\n", "!persona stop", "!Persona  STOP"] {
            check(text, Some((Word::Stop, None)));
        }
        for text in ["eir stop", "EIR: Stop", "@eir stop", "@persona_eir:hs.test, stop", "!persona eir stop"]
        {
            check(text, Some((Word::Stop, Some("eir"))));
        }
        for text in ["old  brage stop", "b stop", "Old Brage: stop"] {
            check(text, Some((Word::Stop, Some("b"))));
        }
        for link in ["@persona_b:hs.test", "%40persona_b%3Ahs.test"] {
            check(&format!("[Old Brage](https://matrix.to/#/{link}) stop"), Some((Word::Stop, Some("b"))));
            check(&format!("!persona [x](https://matrix.to/#/{link}): stop"), Some((Word::Stop, Some("b"))));
        }
        check("!persona go", Some((Word::Go, None)));
        check("Eir go", Some((Word::Go, Some("eir"))));
    }

    #[test]
    fn anything_else_is_no_such_word() {
        for text in [
            "go",
            "",
            "stop it",
            "please stop",
            "Eir please stop",
            "nobody stop",
            "eir",
            "brage stop",
            "stop!",
            "[Eir](https://matrix.to/#/@alice:hs.test) stop",
            "[Eir](https://matrix.to/#/!room:hs.test) stop",
            "[Eir](eir) stop",
        ] {
            check(text, None);
        }
        let all = personas();
        let notice = Message { kind: MessageKind::Notice, ..message("stop") };
        let edit = Message { edits: Some(event_id!("$e").to_owned()), ..message("stop") };
        assert_eq!((said(&notice, &all), said(&edit, &all)), (None, None));
        assert_eq!(said(&message("Eir stop"), &all[1..]), None, "she is not there");
    }
}
