//! The fields of one JSON object, each read on its own.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How many fields most objects have at most.
const USUAL: usize = 12;

/// The fields of one object; what is no object has none. Of fields with the same name the last one counts.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A string, copied only where it has escapes in it.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(USUAL);
                while let Some((Text(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'a> Fields<'a> {
    /// Reads an object's fields without reading their values; `None` for anything else.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// Whether the field is there and not null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.get() != "null")
    }

    /// Whether there are no fields.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A string.
    pub(super) fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        serde_json::from_str(self.get(key)?.get()).ok().map(|Text(text)| text)
    }

    /// A whole number that is not negative.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Whether it is `true`.
    pub(super) fn bool(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.get() == "true")
    }

    /// An object; without fields where it is none.
    pub(super) fn object(&self, key: &str) -> Fields<'a> {
        self.get(key).and_then(|value| Fields::read(value.get())).unwrap_or_default()
    }

    /// The strings of a list; whatever else stands in it is left out.
    pub(super) fn strings(&self, key: &str) -> Vec<String> {
        let list: Vec<&RawValue> =
            self.get(key).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default();
        list.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect()
    }
}

/// Replaces unpaired surrogate escapes, which no Rust string can hold, by U+FFFD.
pub(super) fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let (len, lone) = escape(&json[at..]);
        if lone {
            clean.push_str(&json[from..at]);
            clean.push_str("\\ufffd");
            from = at + len;
        }
        at += len;
    }
    if from == 0 {
        return Cow::Borrowed(json);
    }
    clean.push_str(&json[from..]);
    Cow::Owned(clean)
}

/// The length of the escape that the text begins with, and whether it is a lone surrogate.
fn escape(text: &str) -> (usize, bool) {
    let second = || unit(text.get(6..)?).filter(|unit| (0xDC00..0xE000).contains(unit));
    match unit(text) {
        Some(0xD800..0xDC00) if second().is_some() => (12, false),
        Some(0xD800..0xE000) => (6, true),
        Some(_) => (6, false),
        None => (1 + text[1..].chars().next().map_or(0, char::len_utf8), false),
    }
}

/// The code unit of a `\uXXXX` at the text's beginning.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(json: &str, expect: &str) {
        assert_eq!(without_lone_surrogates(json), expect, "{json}");
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        check(r#""plain""#, r#""plain""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d""#, r#""\ufffd""#);
        check(r#""a\uDE00b""#, r#""a\ufffdb""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ud83dx\ude00""#, r#""\ufffdx\ufffd""#);
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\u0041\ud800\n""#, r#""\u0041\ufffd\n""#);
    }

    #[test]
    fn broken_escapes_pass_unchanged() {
        for json in ["\\", "\\u", "\\u12", "\\uzzzz", "\\u+123", "\\é", "\"\\ud83"] {
            check(json, json);
        }
    }

    #[test]
    fn each_field_is_read_on_its_own() {
        let text = r#"{"a":1,"b":"x","c":["p",3,null,"q"],"d":{"e":true},"f":null,"g":-1,"h":1.5}"#;
        let fields = Fields::read(text).unwrap();
        assert_eq!((fields.number("a"), fields.number("g"), fields.number("h")), (Some(1), None, None));
        assert_eq!((fields.string("a"), fields.string("b")), (None, Some("x".into())));
        assert_eq!(fields.strings("c"), ["p", "q"]);
        assert!(fields.object("d").bool("e") && !fields.bool("a"));
        assert!(!fields.has("f") && fields.has("a") && !fields.has("z"));
        assert!(fields.object("b").is_empty() && fields.strings("b").is_empty());
    }

    #[test]
    fn the_last_of_a_name_counts_also_where_it_is_escaped() {
        let fields = Fields::read(r#"{"a":1,"\u0061":2,"b":3}"#).unwrap();
        assert_eq!((fields.number("a"), fields.number("b")), (Some(2), Some(3)));
    }

    proptest! {
        #[test]
        fn any_serialised_string_stays_as_it_is(text in ".*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(without_lone_surrogates(&json), json.as_str());
        }

        #[test]
        fn any_mix_of_code_units_becomes_readable(units in proptest::collection::vec(0xD7FEu16..0xE002, 0..12)) {
            let json = format!("\"{}\"", units.iter().map(|u| format!("\\u{u:04x}")).collect::<String>());
            let read: String = serde_json::from_str(&without_lone_surrogates(&json)).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }
    }
}
