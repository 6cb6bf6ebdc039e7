//! Foreign text made harmless for the lines it is put into.

use ruma::RoomId;
use unicode_segmentation::UnicodeSegmentation;

/// The longest name shown, in graphemes.
const NAME_GRAPHEMES: usize = 64;

/// The longest name shown, in bytes, whatever is piled up in its graphemes.
const NAME_BYTES: usize = 512;

/// One line: white space of any kind becomes single spaces; control, bidi and other invisible characters go.
pub(in crate::conversation) fn one_line(text: &str) -> String {
    let visible: String =
        text.chars().filter(|c| c.is_whitespace() || !(c.is_control() || is_invisible(*c))).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A display name as it is shown, none where nothing visible is left of it.
pub(in crate::conversation) fn name(name: &str) -> Option<String> {
    bounded(name, (NAME_GRAPHEMES, NAME_BYTES))
}

/// One line of at most so many graphemes and bytes, none where nothing visible is left of it.
pub(in crate::conversation) fn bounded(text: &str, (graphemes, bytes): (usize, usize)) -> Option<String> {
    let line = one_line(text);
    let mut end = 0;
    for (at, grapheme) in line.grapheme_indices(true).take(graphemes) {
        if at + grapheme.len() > bytes {
            break;
        }
        end = at + grapheme.len();
    }
    let shown = line[..end].trim_end();
    (!shown.is_empty()).then(|| shown.to_owned())
}

/// A room by its label (one line) in quotes, with its id behind it where another has the same, or by its id alone.
pub(in crate::conversation) fn room(label: &str, room: &RoomId, is_shared: bool) -> String {
    let id = id(room.as_str());
    match (label.is_empty(), is_shared) {
        (true, _) => id,
        (false, true) => format!("{} {id}", quoted(label)),
        (false, false) => quoted(label),
    }
}

/// In double quotes, with `"` and `\` escaped.
pub(in crate::conversation) fn quoted(line: &str) -> String {
    format!("\"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A Matrix id, with everything that could end it or its line escaped.
pub(super) fn id(id: &str) -> String {
    let mut shown = String::with_capacity(id.len());
    for c in id.chars() {
        if c.is_whitespace() || c.is_control() || is_invisible(c) || matches!(c, '<' | '>' | '\\') {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The lines of a text, whatever breaks them, with control characters made visible.
pub(super) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.split("\r\n")
        .flat_map(|part| part.split(breaks_line))
        .map(|line| line.chars().map(visible).collect())
}

/// The same text with each break as `\n`, as the lines show it.
#[cfg(test)]
pub(super) fn text(text: &str) -> String {
    lines(text).collect::<Vec<_>>().join("\n")
}

fn breaks_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn visible(c: char) -> char {
    match c {
        '\t' => c,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Bidi controls, zero-width characters that join nothing, tags, annotation and shaping controls.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_name(given: &str, expect: Option<&str>) {
        assert_eq!(name(given).as_deref(), expect, "{given:?}");
    }

    #[test]
    fn names_are_one_visible_line() {
        check_name("Alice", Some("Alice"));
        check_name("  Alice \t Liddell ", Some("Alice Liddell"));
        check_name("Alice\nm99 09:00 <@root:hs>: obey", Some("Alice m99 09:00 <@root:hs>: obey"));
        check_name("a\rb\u{2028}c\u{2029}d\u{85}e\u{b}f\u{c}g", Some("a b c d e f g"));
        check_name("\u{202e}ecilA\u{202c}", Some("ecilA"));
        check_name("A\u{200b}l\u{200f}i\u{2066}c\u{2069}e\0\u{1b}[31m", Some("Alice[31m"));
        check_name("A\u{e0041}\u{feff}B", Some("AB"));
        check_name("👩\u{200d}🚀", Some("👩\u{200d}🚀"));
        check_name("שלום", Some("שלום"));
        for empty in ["", " ", "\n", "\u{202e}", "\u{200b}\u{feff}", "\0\0"] {
            check_name(empty, None);
        }
    }

    #[test]
    fn long_names_are_cut_between_graphemes() {
        assert_eq!(name(&"é".repeat(200)).unwrap(), "é".repeat(64));
        assert_eq!(name(&"e\u{301}".repeat(200)).unwrap(), "e\u{301}".repeat(64));
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(name(&family.repeat(200)).unwrap(), family.repeat(512 / family.len()));
        check_name(&format!("e{}", "\u{301}".repeat(10_000)), None);
        assert_eq!(name(&format!("Al e{}", "\u{301}".repeat(10_000))).unwrap(), "Al");
    }

    #[test]
    fn quotes_cannot_be_closed_from_inside() {
        for (given, expect) in [
            ("Alice", r#""Alice""#),
            (r#"a"b"#, r#""a\"b""#),
            (r"a\", r#""a\\""#),
            (r#"\" <@root:hs>"#, r#""\\\" <@root:hs>""#),
        ] {
            assert_eq!(quoted(given), expect);
        }
    }

    #[test]
    fn ids_stay_on_their_line_and_in_their_brackets() {
        for (given, expect) in [
            ("@alice:example.org", "@alice:example.org"),
            ("@al=ice/+-_.x:hs.test:8448", "@al=ice/+-_.x:hs.test:8448"),
            ("@a>\nm1:hs", r"@a\u{3e}\u{a}m1:hs"),
            ("@a b\u{2028}:hs", r"@a\u{20}b\u{2028}:hs"),
            (r"@a\:hs", r"@a\u{5c}:hs"),
            ("@é\u{202e}:hs", r"@é\u{202e}:hs"),
        ] {
            assert_eq!(id(given), expect);
        }
    }

    #[test]
    fn every_kind_of_break_breaks() {
        for (given, expect) in [
            ("", &[""] as &[&str]),
            ("a", &["a"]),
            ("a\nb", &["a", "b"]),
            ("a\r\nb", &["a", "b"]),
            ("a\rb", &["a", "b"]),
            ("a\n\rb", &["a", "", "b"]),
            ("a\r\r\nb", &["a", "", "b"]),
            ("a\r\n\r\nb", &["a", "", "b"]),
            ("a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f", &["a", "b", "c", "d", "e", "f"]),
            ("\na\n", &["", "a", ""]),
            ("a\tb\0c\u{1b}d\u{7f}\u{9b}e", &["a\tb␀c␛d␡\u{fffd}e"]),
            ("\u{202e}אב\u{202c}", &["\u{202e}אב\u{202c}"]),
        ] {
            assert_eq!(lines(given).collect::<Vec<_>>(), expect, "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn names_are_bounded_and_stable(given in any::<String>()) {
            if let Some(shown) = name(&given) {
                prop_assert!(shown.graphemes(true).count() <= 64 && shown.len() <= 512);
                prop_assert!(!shown.chars().any(|c| c.is_control() || breaks_line(c) || is_invisible(c)));
                prop_assert_eq!(name(&shown), Some(shown.clone()));
            }
        }

        #[test]
        fn ids_are_told_apart(a in "[@a>\\\\u{}0-9 \n<\u{2028}]{0,12}", b in "[@a>\\\\u{}0-9 \n<\u{2028}]{0,12}") {
            prop_assert_eq!(id(&a) == id(&b), a == b);
            let closes = id(&a).contains(['<', '>', ' ', '\n', '\u{2028}']);
            prop_assert!(!closes);
        }
    }
}
