//! What was probably meant by words that are no command.

use strsim::damerau_levenshtein;

use super::{NAMES, split};
use crate::conversation::PersonaId;
use crate::conversation::room::Persona;
use crate::conversation::steer::{PREFIX, is_called};

/// The furthest that a word lies from what was probably meant.
const NEAR: usize = 2;
/// The words that are said in the room which is meant.
const STEERING: [&str; 2] = ["stop", "go"];

/// A word that stops Personas or lets them go on, as it was probably meant.
struct Meant<'a> {
    /// How far the words lie from it.
    far: usize,
    word: &'static str,
    whom: Option<&'a PersonaId>,
}

/// The word that lies nearest, if one is near, and how far away it lies.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let near = known.map(|known| (damerau_levenshtein(given, &known.to_lowercase()), known));
    near.filter(|(far, known)| *far <= NEAR && *far < known.len()).min()
}

/// The answer to words that are no command here.
pub(super) fn unknown(words: &str, personas: &[Persona]) -> String {
    let (name, rest) = split(words);
    let name = name.to_lowercase();
    let command = nearest(&name, NAMES.iter().map(|(known, ..)| *known));
    let steering = steering(&words.to_lowercase(), personas);
    if let Some(meant) = steering.filter(|meant| command.is_none_or(|(far, _)| meant.far <= far)) {
        return answer(words, &meant);
    }
    match (STEERING.into_iter().find(|word| *word == name), command) {
        (Some(word), _) => answer(words, &Meant { far: 0, word, whom: None }),
        (None, Some((_, near))) => {
            format!("I do not know `{name}`; did you mean `{}`?", format!("{near} {rest}").trim())
        }
        (None, None) => format!("I do not know `{name}`; `help` lists what I do"),
    }
}

/// What is meant if the last word or the first is nearly such a word, and the others nearly a Persona.
fn steering<'a>(words: &str, personas: &'a [Persona]) -> Option<Meant<'a>> {
    let (before, last) = words.rsplit_once(' ').unwrap_or(("", words));
    let (first, after) = split(words);
    let meant = |word: &str, name: &str, moved: usize| {
        let (far, word) = nearest(word, STEERING.into_iter())?;
        let name = name.strip_suffix([':', ',']).unwrap_or(name);
        let (away, whom) = if name.is_empty() { (0, None) } else { called(name, personas)? };
        Some(Meant { far: far + away + moved, word, whom })
    };
    let turned = meant(first, after, usize::from(!after.is_empty()));
    [meant(last, before, 0), turned].into_iter().flatten().min_by_key(|meant| meant.far)
}

/// Who is nearly called so, and how nearly: of a short id nothing is left that far away.
fn called<'a>(name: &str, personas: &'a [Persona]) -> Option<(usize, Option<&'a PersonaId>)> {
    let known = personas.iter().find(|persona| is_called(persona, name));
    if let Some(persona) = known {
        return Some((0, Some(&persona.id)));
    }
    let (far, id) = nearest(name, personas.iter().map(|persona| persona.id.as_str()))?;
    let near = personas.iter().find(|persona| persona.id.as_str() == id && far * 2 <= id.len())?;
    Some((far, Some(&near.id)))
}

fn answer(words: &str, meant: &Meant<'_>) -> String {
    let Meant { far, word, whom } = meant;
    let whole = match whom {
        Some(whom) => format!("{PREFIX} {whom} {word}"),
        None => format!("{PREFIX} {word}"),
    };
    match (whom, *word == "stop") {
        _ if *far > 0 => {
            format!("I do not know `{words}`; did you mean `{whole}`? That is said in the room that is meant")
        }
        (None, true) => format!("say `{whole}` in the room that is meant; `brake` holds everybody"),
        (None, false) => {
            format!("say `{whole}` in the room that is meant; `brake release` lets everybody go on")
        }
        (Some(whom), true) => {
            format!("say `{whole}` in a room where she sits; `pause {whom}` holds her everywhere")
        }
        (Some(whom), false) => {
            format!("say `{whole}` in a room where she sits; `resume {whom}` lets her go on everywhere")
        }
    }
}
