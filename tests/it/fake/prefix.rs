//! What the prompt cache needs: each request of a session begins with all of the request before.

use serde_json::{Value, json};

/// Where a request does not begin with all of the request before.
///
/// Only an unanswered last message may differ: it may have grown, or, if the CLI was killed before it wrote the line
/// down, what was new in it may come later. So may what it was told of a new day, which stands in the result before.
pub(super) fn broken_prefix(before: &Value, next: &Value) -> Option<String> {
    let (before, next) = (messages(before), messages(next));
    let (last, settled) = before.split_last()?;
    let differs = (0..before.len()).find(|at| next.get(*at) != Some(&before[*at]))?;
    if let [now, rest @ ..] = &next[differs.min(next.len())..]
        && differs == settled.len()
    {
        let grown = rest.is_empty() && begins_with(&blocks(now), &blocks(last));
        let put_off = rest.first().is_some_and(|next| next["content"] == "No response requested.")
            && begins_with(&untold(last), &untold(now));
        if grown || put_off {
            return None;
        }
    }
    let now = &next[differs.min(next.len())..];
    Some(format!("message {differs}\nbefore: {:?}\nnow: {now:?}", &before[differs..]))
}

/// The blocks of a message without what the CLI has told in the results of tools.
fn untold(message: &Value) -> Vec<Value> {
    let mut blocks = blocks(message);
    for block in blocks.iter_mut().filter(|block| block["type"] == "tool_result") {
        let told = block["content"].as_str().and_then(|text| text.split_once("\n\n<system-reminder>"));
        if let Some((result, _)) = told {
            block["content"] = result.into();
        }
    }
    blocks
}

fn begins_with(now: &[Value], before: &[Value]) -> bool {
    let text = |block: &Value| block["text"].as_str().map(|text| text.trim_end_matches('\n').to_owned());
    let same =
        |(now, before): (&Value, &Value)| now == before || (text(now) == text(before) && text(now).is_some());
    now.len() >= before.len() && now.iter().zip(before).all(same)
}

/// A request's cacheable parts without cache marks and billing header, a lone text block as its string.
pub(super) fn plain(body: &Value) -> Value {
    let mut parts = json!({"tools": body["tools"], "system": body["system"], "messages": body["messages"]});
    if let Some(system) = parts["system"].as_array_mut() {
        let billing = |block: &Value| {
            block["text"].as_str().is_some_and(|text| text.starts_with("x-anthropic-billing"))
        };
        system.retain(|block| !billing(block));
    }
    unmark(&mut parts);
    for message in parts["messages"].as_array_mut().into_iter().flatten() {
        let lone = message["content"].as_array().filter(|blocks| blocks.len() == 1);
        let text = lone.map(|blocks| blocks[0]["text"].clone()).filter(Value::is_string);
        if let Some(text) = text {
            message["content"] = text;
        }
    }
    parts
}

fn unmark(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("cache_control");
            object.values_mut().for_each(unmark);
        }
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

mod tests {
    use super::*;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn said(text: &str) -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
    }

    fn check(before: Value, next: Value, holds: bool) {
        let [before, next] = [before, next].map(|messages| plain(&json!({"messages": messages})));
        assert_eq!(broken_prefix(&before, &next).is_none(), holds, "{before} {next}");
    }

    #[test]
    fn an_answered_prefix_must_hold() {
        let marked = json!({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]});
        check(json!([user("a")]), json!([user("a"), said("b"), user("c")]), true);
        check(json!([marked]), json!([user("a"), said("b"), user("c")]), true);
        check(json!([user("a")]), json!([user("A"), said("b"), user("c")]), false);
        check(json!([user("a"), said("b"), user("c")]), json!([user("a"), said("B"), user("c")]), false);
        check(json!([user("a"), said("b"), user("c")]), json!([user("a")]), false);
    }

    #[test]
    fn an_unanswered_last_message_may_grow_or_come_later() {
        let both = json!({"role": "user", "content": [{"type": "text", "text": "a\n"}, {"type": "text", "text": "b"}]});
        check(json!([user("a")]), json!([both]), true);
        check(json!([user("x")]), json!([both]), false);
        check(json!([both]), json!([user("a"), said("No response requested."), user("b")]), true);
        let results = json!({"role": "user", "content": [{"type": "tool_result", "content": "ok"}]});
        let with_words = json!({"role": "user", "content": [{"type": "tool_result", "content": "ok"}, {"type": "text", "text": "b"}]});
        let note = json!({"role": "assistant", "content": "No response requested."});
        check(json!([with_words]), json!([results, note, user("b")]), true);
        check(json!([with_words]), json!([results, said("b"), user("b")]), false);
        let told = "ok\n\n<system-reminder>\nThe date has changed.";
        let of_a_new_day = json!({"role": "user", "content": [{"type": "tool_result", "content": told}, {"type": "text", "text": "b"}]});
        check(json!([of_a_new_day]), json!([results, note, user("b")]), true);
        check(json!([of_a_new_day, said("c")]), json!([results, note, user("b")]), false);
    }
}
