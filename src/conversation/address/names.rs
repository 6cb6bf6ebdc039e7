//! Whether a text calls somebody by name.

use std::cell::LazyCell;

use unicode_segmentation::UnicodeSegmentation;

use crate::conversation::room::Persona;

/// Whether the Persona's name stands in the text as a whole word, whatever the case.
pub(super) fn named(text: &str, persona: &Persona) -> bool {
    stands(text, &persona.name, persona)
}

/// Whether the Persona's name, or the id that operators know her by, stands in the text so.
pub(super) fn named_or_known(text: &str, persona: &Persona) -> bool {
    named(text, persona) || [&*persona.id.0, persona.user.as_str()].iter().any(|id| stands(text, id, persona))
}

/// Whether what a Persona is called stands in the text as a whole word, whatever the case.
///
/// Borders are those of Unicode's word segmentation, and beside apostrophes, colons and markup underscores (`Eir's`,
/// `Eir:look`, `_Eir_`). Inside of a Matrix id the name counts only where the id is her own.
fn stands(text: &str, name: &str, persona: &Persona) -> bool {
    let name = folded_name(name);
    let Some(first) = name.first() else { return false };
    // Most texts name nobody: their words are told apart only where the letters stand in them.
    let borders = LazyCell::new(|| -> Vec<usize> {
        text.split_word_bound_indices().map(|(at, _)| at).chain([text.len()]).collect()
    });
    let may_begin = |c: char| !c.is_ascii() || c.to_ascii_lowercase() == *first;
    text.char_indices().filter(|(_, c)| may_begin(*c)).any(|(start, _)| {
        match_at(&text[start..], &name).is_some_and(|length| {
            let end = start + length;
            is_border(text, start, &borders)
                && is_border(text, end, &borders)
                && !inside_foreign_id(text, start, end, persona)
        })
    })
}

/// Folds case so that `ς`, `σ` and `Σ`, or `ß` and `SS`, are the same.
fn fold(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

/// The name in folded case, with one space between its words.
fn folded_name(name: &str) -> Vec<char> {
    let mut folded = Vec::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(fold));
    }
    folded
}

/// The length in bytes of the folded name at the beginning of the text, if it stands there.
fn match_at(text: &str, name: &[char]) -> Option<usize> {
    let mut wanted = name.iter().copied();
    let mut left = name.len();
    let mut chars = text.char_indices().peekable();
    while left > 0 {
        let (_, c) = chars.next()?;
        if c.is_whitespace() {
            (wanted.next() == Some(' ')).then_some(())?;
            left -= 1;
            while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
            continue;
        }
        for folded in fold(c) {
            (wanted.next() == Some(folded)).then_some(())?;
            left -= 1;
        }
    }
    Some(chars.peek().map_or(text.len(), |(at, _)| *at))
}

fn is_border(text: &str, at: usize, borders: &[usize]) -> bool {
    borders.binary_search(&at).is_ok() || ends_word(text[..at].chars().rev()) || ends_word(text[at..].chars())
}

/// Whether what lies beyond a border (nearest first) is an apostrophe, a colon, or underscores that join no other word.
fn ends_word(mut beyond: impl Iterator<Item = char>) -> bool {
    match beyond.next() {
        Some('\'' | '’' | ':') => true,
        Some('_') => !beyond.find(|c| *c != '_').is_some_and(char::is_alphanumeric),
        _ => false,
    }
}

fn inside_foreign_id(text: &str, start: usize, end: usize, persona: &Persona) -> bool {
    let begins = text[..start].ends_with(['@', '#']);
    let server = text[end..].strip_prefix(':').and_then(|rest| rest.chars().next());
    let goes_on = server.is_some_and(|c| c.is_alphanumeric() || c == '[');
    begins && goes_on && !text[start - 1..].starts_with(persona.user.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruma::user_id;

    use super::*;
    use crate::conversation::ids::PersonaId;

    fn persona(name: &str) -> Persona {
        Persona { id: PersonaId("eir".into()), user: user_id!("@eir:hs.test").to_owned(), name: name.into() }
    }

    #[track_caller]
    fn check(name: &str, text: &str, expect: bool) {
        assert_eq!(named(text, &persona(name)), expect, "{name:?} in {text:?}");
    }

    #[test]
    fn a_name_alone_or_among_words_is_found() {
        for text in [
            "Eir",
            "eir",
            "EIR!",
            "hello Eir",
            "Eir, are you there?",
            "(Eir)",
            "\"Eir\"",
            "what does Eir think",
            "Eir: look",
            "Eir:look",
            "@Eir look",
            "@eir: look",
            "Eir's idea",
            "Eir’s idea",
            "l'Eir",
            "_Eir_",
            "__Eir__ said",
            "*Eir*",
            "**Eir**",
            "Eir-",
            "ask Eir.",
            "first\nEir\nlast",
            "eirik and eir",
            "👋Eir👋",
            "…Eir…",
            "Eir\u{a0}said",
        ] {
            check("Eir", text, true);
        }
    }

    #[test]
    fn a_name_inside_another_word_is_not() {
        for text in [
            "",
            "Eirik",
            "their",
            "heir apparent",
            "weird",
            "eir_bot",
            "my_eir",
            "my__eir__x",
            "eir2",
            "2eir",
            "eïr",
            "eir\u{301}",
            "e ir",
            "Ei",
            "Ваeir",
        ] {
            check("Eir", text, false);
        }
    }

    #[test]
    fn names_of_several_words_match_across_any_white_space() {
        check("Mother Night", "so, mother night, hear me", true);
        check("Mother Night", "Mother\n  NIGHT", true);
        check("  Mother   Night ", "Mother Night", true);
        check("Mother Night", "Mother Nightly", false);
        check("Mother Night", "Grandmother Night", false);
        check("Mother Night", "Mothernight", false);
        check("Mother Night", "Mother of Night", false);
    }

    #[test]
    fn other_scripts_and_foldings() {
        check("Ёлка", "привет, ёлка!", true);
        check("Ёлка", "ёлками", false);
        check("Οδυσσεύς", "ΟΔΥΣΣΕΎΣ", true);
        check("Straße", "STRASSE", true);
        check("STRASSE", "straße", true);
        check("エイル", "エイルさん、こんにちは", true);
        check("中", "在中国", true);
        check("אייר", "שלום אייר!", true);
        check("R2-D2", "r2-d2?", true);
        check("C++", "ask C++ now", true);
        check("😀", "hi 😀", true);
    }

    #[test]
    fn ids_of_others_do_not_name_her() {
        check("Eir", "ask @eir:elsewhere.test", false);
        check("Eir", "see #eir:hs.test", false);
        check("Eir", "ask @eir:hs.test please", true);
        check("Eir", "ask @eir:elsewhere.test, Eir", true);
    }

    #[test]
    fn operators_know_her_by_her_ids_too() {
        let mother = Persona { id: PersonaId("mn".into()), ..persona("Mother Night") };
        for text in ["mother night, hi", "MN: look", "ask mn.", "is @eir:hs.test up?"] {
            assert!(named_or_known(text, &mother), "{text}");
        }
        for text in ["", "mns", "m n", "ask @mn:elsewhere.test", "@eir:hs.test.org", "eir"] {
            assert!(!named_or_known(text, &mother), "{text}");
        }
        assert!(!named("mn", &mother), "that is for operators");
    }

    #[test]
    fn no_name_names_nobody() {
        check("", "", false);
        check("  ", "anything  at all", false);
    }

    proptest! {
        #[test]
        fn a_name_between_spaces_is_always_found(
            before in "\\PC{0,20}", name in "\\p{L}{1,8}( \\p{L}{1,8})?", after in "\\PC{0,20}",
        ) {
            let text = format!("{before} {name} {after}");
            prop_assert!(named(&text, &persona(&name)), "{:?}", text);
        }

        #[test]
        fn a_name_glued_to_letters_is_never_found(
            name in "[a-z]{1,8}", before in "[A-Z]{1,5}", after in "[A-Z]{0,5}",
        ) {
            let text = format!("{before}0{name}{after}");
            prop_assert!(!named(&text, &persona(&name)));
        }

        #[test]
        fn any_text_is_read_without_panic(text in any::<String>(), name in any::<String>()) {
            let _ = named(&text, &persona(&name));
        }
    }
}
