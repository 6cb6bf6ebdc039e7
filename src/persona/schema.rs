//! The shipped schema of a Persona's state (`config/state.schema.json`), and the first fault that a document has by it.
//!
//! Read here are the few keywords of JSON Schema that the file uses; a test fails where it uses another.

use std::fmt;

use serde_json::{Map, Value};

/// The schema.
pub const SCHEMA: &str = include_str!("../../config/state.schema.json");

/// Where a document does not fit the schema, and what is asked there; nothing of what the document holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("does not fit the shipped schema at {path}: {wants}")]
pub struct Misfit {
    /// The place, as a JSON pointer (`/interests/3`).
    pub path: String,
    /// What the schema wants there.
    pub wants: Wants,
}

/// What a schema wants of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// One of these types.
    Type(Vec<String>),
    /// At most so many characters.
    Characters(u64),
    /// At most so many items.
    Items(u64),
}

impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(types) => write!(f, "it must be {}", types.join(" or ")),
            Self::Characters(most) => write!(f, "it must have at most {most} characters"),
            Self::Items(most) => write!(f, "it must have at most {most} items"),
        }
    }
}

/// Checks the members of a document, in their order; one that no value can hold (`1e999`) is of no type.
///
/// # Errors
/// The first fault.
pub fn check<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), Misfit> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    for (name, raw) in members {
        let value = serde_json::from_str(raw).ok();
        if let Some(schema) = schema_of(&schema, name) {
            fits(value.as_ref(), schema, &format!("/{}", step(name)))?;
        }
    }
    Ok(())
}

/// The schema of a member: its own, else that of all others.
fn schema_of<'a>(object: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    let own = object.get("properties").and_then(|properties| properties.get(name));
    own.or_else(|| object.get("additionalProperties"))?.as_object()
}

fn fits(value: Option<&Value>, schema: &Map<String, Value>, path: &str) -> Result<(), Misfit> {
    let misfit = |wants| Err(Misfit { path: path.to_owned(), wants });
    let types = types(schema);
    let is_one = |wanted: &String| value.is_some_and(|value| kind(value) == wanted);
    if !types.is_empty() && !types.iter().any(is_one) {
        return misfit(Wants::Type(types));
    }
    let most = |key: &str| schema.get(key).and_then(Value::as_u64);
    let is_over = |count: usize, most: u64| u64::try_from(count).is_ok_and(|count| count > most);
    match value {
        Some(Value::String(text)) => match most("maxLength") {
            Some(most) if is_over(text.chars().count(), most) => misfit(Wants::Characters(most)),
            Some(_) | None => Ok(()),
        },
        Some(Value::Array(items)) => {
            if let Some(most) = most("maxItems").filter(|most| is_over(items.len(), *most)) {
                return misfit(Wants::Items(most));
            }
            let Some(each) = schema.get("items").and_then(Value::as_object) else { return Ok(()) };
            items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| fits(Some(item), each, &format!("{path}/{at}")))
        }
        Some(Value::Object(members)) => {
            let schema = Value::Object(schema.clone());
            members.iter().try_for_each(|(name, member)| match schema_of(&schema, name) {
                Some(schema) => fits(Some(member), schema, &format!("{path}/{}", step(name))),
                None => Ok(()),
            })
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => Ok(()),
    }
}

/// The types that a schema allows; none where it allows all.
fn types(schema: &Map<String, Value>) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A member's name as a step of a path: one of the schema's own, else what stands for any other, for names are content, too.
fn step(name: &str) -> &str {
    let is_known =
        serde_json::from_str::<Value>(SCHEMA).is_ok_and(|schema| schema["properties"].get(name).is_some());
    if is_known { name } else { "*" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn misfit(name: &str, raw: &str) -> Option<String> {
        check([(name, raw)].into_iter()).err().map(|misfit| misfit.to_string())
    }

    /// Whether all keywords of a schema are read here.
    fn knows(schema: &Value) -> bool {
        let known = [
            "$schema",
            "title",
            "description",
            "type",
            "properties",
            "additionalProperties",
            "items",
            "maxLength",
            "maxItems",
        ];
        let Some(keywords) = schema.as_object() else { return schema.is_boolean() };
        let below = |key: &str| schema.get(key).is_none_or(knows);
        keywords.keys().all(|key| known.contains(&key.as_str()))
            && below("items")
            && below("additionalProperties")
            && schema["properties"].as_object().is_none_or(|properties| properties.values().all(knows))
    }

    #[test]
    fn every_keyword_of_the_shipped_schema_is_read() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert!(schema["properties"].is_object() && knows(&schema), "{schema}");
        assert!(!knows(&serde_json::json!({ "properties": { "a": { "pattern": "x" } } })));
    }

    #[test]
    fn the_first_fault_is_told_by_its_place_and_nothing_of_the_content() {
        for (name, raw, fault) in [
            ("mood", "\"calm\"", None),
            ("mood", "7", Some("at /mood: it must be string")),
            ("mood", "1e999", Some("at /mood: it must be string")),
            ("interests", "[\"a\", \"b\"]", None),
            ("interests", "\"hush\"", Some("at /interests: it must be array")),
            ("interests", "[\"a\", {\"hush\": 1}]", Some("at /interests/1: it must be string")),
            ("remembers", "[\"a\", {\"hush\": [1]}]", None),
            ("remembers", "[null]", Some("at /remembers/0: it must be string or object")),
            ("people", "{\"@hush:hs\": 3}", Some("at /people/*: it must be string or object")),
            ("anything", "{\"else\": [1, null, 1e999]}", None),
        ] {
            let told = misfit(name, raw);
            assert_eq!(
                told.as_deref().and_then(|told| told.strip_prefix("does not fit the shipped schema ")),
                fault,
                "{name} {raw}"
            );
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(misfit("mood", &format!("\"{}\"", "é".repeat(2_000))), None);
        let told = misfit("mood", &format!("\"{}\"", "x".repeat(2_001))).unwrap();
        assert!(told.ends_with("at /mood: it must have at most 2000 characters"), "{told}");
        let told = misfit("interests", &serde_json::json!(vec!["x"; 201]).to_string()).unwrap();
        assert!(told.ends_with("at /interests: it must have at most 200 items"), "{told}");
    }
}
