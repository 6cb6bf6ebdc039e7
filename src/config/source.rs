//! The text of a config: which key stands on which line, and what the parser's complaints mean.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::IntoDeserializer;
use serde::{Deserialize, de::DeserializeOwned};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem, ProblemKind};
use super::example;

/// The key of the one secret.
pub(super) const CREDENTIAL: &str = "mind.claude.credential";
/// What is wrong with a credential that is not written as one.
pub(super) const NO_PLACE: &str = "names neither a variable nor a file";
/// How a credential is written.
pub(super) const PLACES: &str =
    "write credential = { env = \"NAME\" } or { file = \"PATH\" }, never the key itself";

/// A parsed text that knows where its keys stand.
#[derive(Clone, Debug)]
pub(super) struct Source {
    path: PathBuf,
    text: String,
    entries: Vec<Entry>,
    variables: BTreeMap<String, String>,
}

/// A key of the text: where it begins and where its value ends.
#[derive(Clone, Debug)]
struct Entry {
    path: String,
    span: Range<usize>,
}

impl Source {
    /// Parses a text; a syntax error names its line.
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, Problem> {
        let mut source = Self { path: path.into(), text, entries: Vec::new(), variables: BTreeMap::new() };
        let mut entries = Vec::new();
        match DeTable::parse(&source.text) {
            Ok(table) => walk(table.get_ref(), "", &mut entries),
            Err(error) => return Err(source.syntax(&error)),
        }
        source.entries = entries;
        Ok(source)
    }

    /// Reads the text as a type; a wrong key or value is explained.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        toml::from_str(&self.text).map_err(|error| self.explain(&error))
    }

    /// Remembers that a key's value came from a variable.
    pub(super) fn overridden(&mut self, key: String, variable: String) {
        self.variables.insert(key, variable);
    }

    /// Where the value of a key was written: its variable, its line, its nearest parent's, or just the file.
    pub(super) fn place(&self, key: &str) -> Place {
        let mut key = key;
        loop {
            if let Some(name) = self.variables.get(key) {
                return Place::Variable(name.clone());
            }
            if let Some(entry) = self.entries.iter().find(|entry| entry.path == key) {
                return Place::Line(self.path.clone(), self.line(entry.span.start));
            }
            let Some(end) = key.rfind(['.', '[']) else { return Place::File(self.path.clone()) };
            key = &key[..end];
        }
    }

    /// Each key's path with the text from the key to the end of its value.
    pub(super) fn snippets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|entry| (entry.path.as_str(), &self.text[entry.span.clone()]))
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|b| **b == b'\n').count()
    }

    fn syntax(&self, error: &toml::de::Error) -> Problem {
        let place = error.span().map_or_else(
            || Place::File(self.path.clone()),
            |span| Place::Line(self.path.clone(), self.line(span.start)),
        );
        Problem {
            place,
            key: String::new(),
            cause: format!("this is not TOML ({})", one_line(error.message())),
            remedy: "mend that line; strings stand in double quotes, a key may appear once".into(),
            kind: ProblemKind::Config,
        }
    }

    fn explain(&self, error: &toml::de::Error) -> Problem {
        let Some(span) = error.span() else {
            return complaint(Place::File(self.path.clone()), String::new(), error.message());
        };
        let key = self
            .entries
            .iter()
            .filter(|entry| entry.span.start <= span.start && span.start < entry.span.end)
            .max_by_key(|entry| entry.path.len())
            .map_or_else(String::new, |entry| entry.path.clone());
        complaint(Place::Line(self.path.clone(), self.line(span.start)), key, error.message())
    }
}

/// Reads a table that stands in no text; a wrong key or value is explained for `place` and `key`.
pub(super) fn read_table<'de, T: Deserialize<'de>>(
    table: toml::Table,
    place: &Place,
    key: &str,
) -> Result<T, Problem> {
    T::deserialize(toml::Value::Table(table).into_deserializer())
        .map_err(|error: toml::de::Error| complaint(place.clone(), key.into(), error.message()))
}

/// Puts a complaint of the parser into our words: nearest known key, or how the value is written.
fn complaint(place: Place, key: String, message: &str) -> Problem {
    if is_of_credential(&key) && !message.starts_with("unknown field") {
        // The parser's words repeat the value, which may be the secret itself.
        return Problem {
            place,
            key,
            cause: NO_PLACE.into(),
            remedy: PLACES.into(),
            kind: ProblemKind::Config,
        };
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (cause, remedy) = match (message, quoted.as_slice()) {
        (unknown, [given, known @ ..]) if unknown.starts_with("unknown field") => {
            (format!("unknown key `{given}`"), nearest(given, known))
        }
        (unknown, [given, known @ ..]) if unknown.starts_with("unknown variant") => {
            (format!("`{given}` is not known"), format!("write one of: {}", known.join(", ")))
        }
        (table, _) if table.contains("expected struct ") => {
            ("is one value instead of several keys".into(), example::hint(&key))
        }
        _ => (plain(message), example::hint(&key)),
    };
    Problem { place, key, cause, remedy, kind: ProblemKind::Config }
}

fn is_of_credential(key: &str) -> bool {
    key.strip_prefix(CREDENTIAL).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn nearest(given: &str, known: &[&str]) -> String {
    let best = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3));
    match best {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "remove it".into(),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// The parser's words without Rust's.
fn plain(message: &str) -> String {
    one_line(message)
        .replace("expected u32", "expected a whole number")
        .replace("expected f64", "expected a number")
        .replace("expected path string", "expected a path")
        .replace("a sequence", "a list")
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn walk(table: &DeTable<'_>, parent: &str, entries: &mut Vec<Entry>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if parent.is_empty() { name.to_string() } else { format!("{parent}.{name}") };
        enter(path, key.span().start, value, entries);
    }
}

fn enter(path: String, start: usize, value: &Spanned<DeValue<'_>>, entries: &mut Vec<Entry>) {
    match value.get_ref() {
        DeValue::Table(table) => walk(table, &path, entries),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                enter(format!("{path}[{index}]"), item.span().start, item, entries);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
    entries.push(Entry { path, span: start..value.span().end.max(start) });
}
