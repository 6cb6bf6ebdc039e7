//! A Persona's state: a JSON document about who she is now. The store has the truth; a change names what it was made from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::schema::{self, Misfit};
use crate::conversation::Millis;
use crate::conversation::prompt::stamp;

/// The member that tells which version a document is.
pub const UPDATED_AT: &str = "updatedAt";
/// The most bytes of a document: she reads all of it with every session.
pub const MOST: usize = 96 << 10;

/// A state: a JSON object, its members as they were written and in their order.
#[derive(Clone, Debug)]
pub struct State {
    members: Vec<(String, Box<RawValue>)>,
    updated_at: Option<String>,
}

/// A state as it is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// It; it always tells its version.
    pub state: State,
    /// When it was written down.
    pub at: Millis,
}

/// Why a text is no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Malformed {
    /// The line, counted from 1.
    pub line: usize,
    /// Why.
    pub reason: String,
}

/// Why a document does not take the place of the one that is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It was made from another one.
    #[error(
        "the state in the store is of {kept}, and this document was made from that of {given}: get it anew and put your change into it"
    )]
    Outdated {
        /// The version of the one that is kept.
        kept: String,
        /// The version that the document carries.
        given: String,
    },
    /// It does not tell what it was made from.
    #[error(
        "the state in the store is of {kept}, and this document has no `{UPDATED_AT}`: get it and put your change into it"
    )]
    Unstamped {
        /// The version of the one that is kept.
        kept: String,
    },
}

impl State {
    /// Reads a document.
    ///
    /// # Errors
    /// It is too long, no JSON object, has a member twice, or an `updatedAt` that is no text.
    pub fn read(text: &str) -> Result<Self, Malformed> {
        if text.len() > MOST {
            let reason = format!("is {} bytes long, more than {MOST}", text.len());
            return Err(Malformed { line: 1, reason });
        }
        let read = serde_json::from_str::<Members>(text);
        let Members(mut members) =
            read.map_err(|error| Malformed { line: error.line(), reason: is_no_object(&error) })?;
        let place = members.iter().position(|(name, _)| name == UPDATED_AT);
        let updated_at = place.map(|place| members.remove(place).1);
        let updated_at = updated_at.map(|stamp| serde_json::from_str(stamp.get())).transpose();
        let updated_at =
            updated_at.map_err(|_| Malformed { line: 1, reason: format!("`{UPDATED_AT}` is not a text") })?;
        Ok(Self { members, updated_at })
    }

    /// Whether it fits the shipped schema. What was kept before there was one is read without.
    ///
    /// # Errors
    /// The first place where it does not.
    pub fn fit(&self) -> Result<(), Misfit> {
        schema::check(self.members.iter().map(|(name, raw)| (name.as_str(), raw.get())))
    }

    /// Which version it is.
    pub fn updated_at(&self) -> Option<&str> {
        self.updated_at.as_deref()
    }

    /// The document, with its version at the end.
    pub fn text(&self) -> String {
        let stamp =
            self.updated_at.as_ref().map(|stamp| (UPDATED_AT, Value::from(stamp.as_str()).to_string()));
        let members = self.members.iter().map(|(name, raw)| (name.as_str(), raw.get().to_owned()));
        let lines: Vec<String> =
            members.chain(stamp).map(|(name, value)| format!("  {}: {value}", Value::from(name))).collect();
        if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n}}", lines.join(",\n")) }
    }

    /// Whether it says the same, whatever its version, its spaces and the order of its members.
    pub fn says_as(&self, other: &Self) -> bool {
        let values = |state: &Self| {
            // What JSON allows and no value holds (1e999, half a surrogate pair) is compared as it is written.
            let of = |(name, raw): &(String, Box<RawValue>)| {
                (name.clone(), serde_json::from_str::<Value>(raw.get()).map_err(|_| raw.get().to_owned()))
            };
            state.members.iter().map(of).collect::<BTreeMap<String, Result<Value, String>>>()
        };
        values(self) == values(other)
    }

    /// The first one that is kept: it tells its own version, if it has one.
    pub fn first(self, now: Millis) -> Kept {
        let updated_at = self.updated_at.or_else(|| Some(stamp(now)));
        Kept { state: Self { updated_at, ..self }, at: now }
    }
}

impl Kept {
    /// What takes its place when a document is put: the document of a later version, if it was made from this one and says
    /// something else; nothing where it says the same.
    ///
    /// # Errors
    /// It was made from another one.
    pub fn put(&self, given: State, now: Millis) -> Result<Option<Self>, Refusal> {
        if given.says_as(&self.state) {
            return Ok(None);
        }
        let kept = self.state.updated_at().unwrap_or_default().to_owned();
        match given.updated_at {
            None => Err(Refusal::Unstamped { kept }),
            Some(given) if given != kept => Err(Refusal::Outdated { kept, given }),
            Some(_) => {
                let at = now.max(Millis(self.at.0 + 1));
                let state = State { updated_at: Some(stamp(at)), ..given };
                Ok(Some(Self { state, at }))
            }
        }
    }
}

/// What serde says, without the place, which stands beside it.
fn is_no_object(error: &serde_json::Error) -> String {
    let said = error.to_string();
    // What serde says of a value of another type has the value in it.
    if error.is_data() && !said.starts_with(TWICE) {
        return "is not a JSON object".to_owned();
    }
    let reason = said.rsplit_once(" at line ").map_or(said.as_str(), |(reason, _)| reason);
    format!("is not a JSON object ({reason})")
}

/// What is said of a document with two members of one name; the name is hers.
const TWICE: &str = "a member stands in it twice";

/// The members of an object in their order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfMembers)
    }
}

struct OfMembers;

impl<'de> Visitor<'de> for OfMembers {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let (mut members, mut names) = (Vec::new(), BTreeSet::new());
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if !names.insert(name.clone()) {
                return Err(de::Error::custom(TWICE));
            }
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Millis = Millis(1_793_448_000_000);

    fn state(text: &str) -> State {
        State::read(text).unwrap()
    }

    #[track_caller]
    fn check_read(text: &str, reason: &str) {
        assert_eq!(State::read(text).unwrap_err().to_string(), reason, "{text}");
    }

    #[test]
    fn what_is_no_state_is_told_with_its_line() {
        check_read("[]", "line 1: is not a JSON object");
        check_read("\"hush\"", "line 1: is not a JSON object");
        check_read("{\n\"a\": }", "line 2: is not a JSON object (expected value)");
        check_read("{} {}", "line 1: is not a JSON object (trailing characters)");
        check_read("\"a member stands in it twice: hush\"", "line 1: is not a JSON object");
        let twice = "is not a JSON object (a member stands in it twice)";
        check_read("{\"hush\": 1,\n\"hush\": 2}", &format!("line 2: {twice}"));
        check_read("{\"updatedAt\": 7}", "line 1: `updatedAt` is not a text");
        check_read(&" ".repeat(MOST + 1), "line 1: is 98305 bytes long, more than 98304");
    }

    #[test]
    fn a_document_keeps_its_members_as_they_are_and_tells_its_version_last() {
        let written = "{\"z\": 1.50, \"updatedAt\": \"monday\",\n \"a\": {\"y\":\n 2}, \"b\\n\": []}";
        let read =
            "{\n  \"z\": 1.50,\n  \"a\": {\"y\":\n 2},\n  \"b\\n\": [],\n  \"updatedAt\": \"monday\"\n}";
        assert_eq!(state(written).text(), read);
        assert_eq!(state(read).text(), read);
        assert_eq!(state(" {} ").text(), "{}");
    }

    #[test]
    fn the_first_one_keeps_its_version_or_is_given_one() {
        let kept = |text| state(text).first(NOON).state.updated_at().map(str::to_owned);
        assert_eq!(kept("{\"updatedAt\": \"monday\"}"), Some("monday".into()));
        assert_eq!(kept("{}"), Some("2026-10-31T12:00:00.000Z".into()));
    }

    #[test]
    fn a_document_takes_the_place_of_the_one_that_it_was_made_from_alone() {
        let kept = state("{\"mood\": \"calm\"}").first(NOON);
        let put = |text: &str| kept.put(state(text), NOON);
        assert_eq!(
            put("{\"mood\": \"wild\"}").unwrap_err(),
            Refusal::Unstamped { kept: "2026-10-31T12:00:00.000Z".into() }
        );
        let other = "{\"mood\": \"wild\", \"updatedAt\": \"2026-10-31T11:00:00.000Z\"}";
        let refusal = put(other).unwrap_err().to_string();
        assert!(refusal.contains("12:00:00.000Z") && refusal.contains("11:00:00.000Z"), "{refusal}");
        let next = put("{\"mood\": \"wild\", \"updatedAt\": \"2026-10-31T12:00:00.000Z\"}").unwrap().unwrap();
        assert_eq!(
            next.state.text(),
            "{\n  \"mood\": \"wild\",\n  \"updatedAt\": \"2026-10-31T12:00:00.001Z\"\n}",
            "no two versions have one name, also within a millisecond"
        );
        assert!(next.put(state(other), NOON).unwrap().is_none(), "it says the same already");
    }

    #[test]
    fn what_no_value_can_hold_is_no_less_a_change() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for odd in ["1e999", "\"\\ud800\"", &deep] {
            let with = state(&format!("{{\"mood\": \"calm\", \"odd\": {odd}}}"));
            assert!(!with.says_as(&state("{\"mood\": \"calm\"}")), "{odd}");
            assert!(with.says_as(&with.clone()), "{odd}");
        }
    }
}
