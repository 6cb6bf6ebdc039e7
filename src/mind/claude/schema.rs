//! Whether a value fits a JSON schema, as far as reply schemas go.
//!
//! It knows `type`, `properties`, `required`, `additionalProperties: false`, `items`, `enum`, the length and count limits;
//! what it does not know it takes for fulfilled.

use serde_json::Value;

/// Tells whether `value` fits `schema`.
pub(super) fn fits(value: &Value, schema: &Value) -> bool {
    type_fits(value, &schema["type"])
        && schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value))
        && size_fits(value, schema)
        && object_fits(value, schema)
        && value.as_array().into_iter().flatten().all(|item| fits(item, &schema["items"]))
}

fn type_fits(value: &Value, wanted: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn size_fits(value: &Value, schema: &Value) -> bool {
    let within = |size: usize, least: &str, most: &str| {
        let size = size as u64;
        schema[least].as_u64().is_none_or(|least| size >= least)
            && schema[most].as_u64().is_none_or(|most| size <= most)
    };
    match value {
        Value::String(text) => within(text.chars().count(), "minLength", "maxLength"),
        Value::Array(items) => within(items.len(), "minItems", "maxItems"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn object_fits(value: &Value, schema: &Value) -> bool {
    let Some(object) = value.as_object() else { return true };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let closed = schema["additionalProperties"] == Value::Bool(false);
    let properties = schema["properties"].as_object();
    required.into_iter().all(|name| object.contains_key(name))
        && object.iter().all(|(name, item)| match properties.and_then(|known| known.get(name)) {
            Some(known) => fits(item, known),
            None => !closed,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: Value, expect: bool) {
        let say = json!({"type": "object", "additionalProperties": false, "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}, "room": {"type": ["string", "null"]}}});
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["say"],
            "properties": {"say": {"type": "array", "items": say, "maxItems": 2}}});
        assert_eq!(fits(&value, &schema), expect, "{value}");
    }

    #[test]
    fn a_value_of_the_schemas_shape_fits() {
        check(json!({"say": []}), true);
        check(json!({"say": [{"text": "a", "room": null}, {"text": "b", "room": "x"}]}), true);
    }

    #[test]
    fn any_other_shape_does_not() {
        for value in [
            json!(null),
            json!("say"),
            json!([]),
            json!({}),
            json!({"say": "a"}),
            json!({"say": ["a"]}),
            json!({"say": [{"text": 1}]}),
            json!({"say": [{"text": ""}]}),
            json!({"say": [{"room": "x"}]}),
            json!({"say": [{"text": "a", "other": 1}]}),
            json!({"say": [], "react": []}),
            json!({"say": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}),
        ] {
            check(value, false);
        }
    }

    #[test]
    fn an_empty_schema_takes_anything() {
        assert!(fits(&json!({"a": [1, "b"]}), &Value::Null));
    }
}
