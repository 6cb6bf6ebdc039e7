//! The CLI's two line formats: what is written to its stdin and what is read from its stdout.
//!
//! Reading is lenient: a field of another type than expected is as if it were missing, and a line of an unknown type is
//! [`Output::Other`].

use std::time::Duration;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::conversation::LineId;
use crate::persona::RequestUsage;

/// The user line that feeds `words`, with its line end.
///
/// Words that began with `/` would be taken for a command of the CLI, so a line end goes before them.
pub(super) fn user_line(line: LineId, words: &str) -> Vec<u8> {
    let guarded = if words.trim_start().starts_with('/') { format!("\n{words}") } else { words.to_owned() };
    let message = json!({"role": "user", "content": guarded});
    let mut bytes =
        json!({"type": "user", "uuid": line.to_string(), "message": message}).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// One line of stdout, as far as we act on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    /// A turn begins (once for each), in this session and for these lines.
    Init {
        /// The session's id.
        session: Option<Uuid>,
        /// The lines of the turn.
        lines: Vec<Uuid>,
        /// The CLI's version.
        version: Option<String>,
    },
    /// A line of ours has entered the session.
    Echo {
        /// Its uuid.
        line: Uuid,
    },
    /// The CLI has nothing more to do with a line of ours.
    Done {
        /// Its uuid.
        line: Uuid,
    },
    /// The model (or, on an error, the CLI in its stead) said something.
    Assistant(Assistant),
    /// The answer to an API request begins.
    Began(Request),
    /// So many output tokens of the running request.
    Counted(u64),
    /// The CLI asks the API once more by itself.
    Retry(Retry),
    /// A limit of the plan is reached until this time, in seconds since the Unix epoch.
    LimitReached {
        /// When it ends.
        until: Option<u64>,
    },
    /// The session was compacted.
    Compacted,
    /// A turn ended.
    Result(Box<Outcome>),
    /// Anything else.
    Other,
}

/// One `assistant` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assistant {
    /// The CLI's word for the error that it stands for.
    pub(super) error: Option<String>,
    /// When it was made, in seconds since the Unix epoch.
    pub(super) at: Option<u64>,
    /// Its request, unless the CLI made it up.
    pub(super) request: Option<Request>,
}

/// One API request, as far as it is known here: the output is what was counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The id of the message that answers it.
    pub(super) message: String,
    /// What it used.
    pub(super) usage: RequestUsage,
}

/// One `system/api_retry` line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retry {
    /// The HTTP status that made it necessary.
    pub(super) status: Option<u64>,
    /// How long the CLI waits, in milliseconds.
    pub(super) delay: u64,
}

/// One `result` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Whether the CLI calls it an error; missing counts as one.
    pub(super) is_error: bool,
    /// `success`, `error_max_turns`, …
    pub(super) subtype: String,
    /// `completed`, `api_error`, `prompt_too_long`, …
    pub(super) terminal_reason: String,
    /// Why the model stopped.
    pub(super) stop_reason: String,
    /// The HTTP status of the failed request.
    pub(super) api_error_status: Option<u64>,
    /// The CLI's finer word for it.
    pub(super) api_error: String,
    /// Text, which may be the CLI's own.
    pub(super) text: String,
    /// Messages of an error that has nothing to do with the API.
    pub(super) errors: Vec<String>,
    /// The typed reply.
    pub(super) structured_output: Option<Value>,
    /// The lines it ends.
    pub(super) lines: Vec<Uuid>,
    /// Money of the process so far; the CLI counts on from the last process if that one ended well.
    pub(super) total_cost_usd: f64,
    /// Money since the result before, where it is told.
    pub(super) cost_since_last: Option<f64>,
    /// The model's context window in tokens.
    pub(super) window: Option<u64>,
}

/// Reads one line of stdout; never fails.
pub(super) fn read(line: &[u8]) -> Output {
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return Output::Other };
    match text(&value, "type") {
        "system" => system(&value),
        "user" => echo(&value),
        "command_lifecycle" => lifecycle(&value),
        "assistant" => Output::Assistant(assistant(&value)),
        "stream_event" => stream_event(&value),
        "rate_limit_event" => rate_limit(&value["rate_limit_info"]),
        "result" => Output::Result(Box::new(outcome(value))),
        _ => Output::Other,
    }
}

fn system(value: &Value) -> Output {
    match text(value, "subtype") {
        "init" => Output::Init {
            session: uuid(&value["session_id"]),
            lines: lines(value),
            version: value["claude_code_version"].as_str().map(str::to_owned),
        },
        "compact_boundary" => Output::Compacted,
        "api_retry" => Output::Retry(Retry {
            status: value["error_status"].as_u64(),
            delay: value["retry_delay_ms"].as_f64().map_or(0, |delay| delay.max(0.0) as u64),
        }),
        _ => Output::Other,
    }
}

fn echo(value: &Value) -> Output {
    match (value["isReplay"].as_bool(), uuid(&value["uuid"])) {
        (Some(true), Some(line)) => Output::Echo { line },
        _ => Output::Other,
    }
}

fn lifecycle(value: &Value) -> Output {
    match (text(value, "state"), uuid(&value["command_uuid"])) {
        ("completed", Some(line)) => Output::Done { line },
        _ => Output::Other,
    }
}

fn assistant(value: &Value) -> Assistant {
    let message = &value["message"];
    Assistant {
        error: value["error"].as_str().map(str::to_owned),
        at: value["timestamp"].as_str().and_then(seconds),
        request: request(message),
    }
}

/// Reads what an API message says of its request; none where the CLI made the message up.
pub(super) fn request(message: &Value) -> Option<Request> {
    let model = text(message, "model");
    if model == "<synthetic>" {
        return None;
    }
    let usage = &message["usage"];
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let written_1h = count(&usage["cache_creation"]["ephemeral_1h_input_tokens"]);
    let usage = RequestUsage {
        model: model.to_owned(),
        input: count(&usage["input_tokens"]),
        cache_read: count(&usage["cache_read_input_tokens"]),
        // An API without the split knows five minutes only.
        written_5m: count(&usage["cache_creation_input_tokens"]).saturating_sub(written_1h),
        written_1h,
        output: count(&usage["output_tokens"]),
        first_token: None,
    };
    Some(Request { message: text(message, "id").to_owned(), usage })
}

fn stream_event(value: &Value) -> Output {
    let event = &value["event"];
    match (text(event, "type"), event["usage"]["output_tokens"].as_u64()) {
        ("message_delta", Some(output)) => Output::Counted(output),
        ("message_start", _) => began(&event["message"], &value["ttft_ms"]),
        _ => Output::Other,
    }
}

fn began(message: &Value, first_token: &Value) -> Output {
    let Some(mut request) = request(message) else { return Output::Other };
    request.usage.first_token = first_token.as_u64().map(Duration::from_millis);
    Output::Began(request)
}

fn rate_limit(info: &Value) -> Output {
    if text(info, "status") == "rejected" {
        return Output::LimitReached { until: info["resetsAt"].as_u64() };
    }
    Output::Other
}

fn outcome(mut value: Value) -> Outcome {
    let structured_output =
        value.get_mut("structured_output").map(Value::take).filter(|output| !output.is_null());
    let owned = |name: &str| text(&value, name).to_owned();
    let errors = value["errors"].as_array().into_iter().flatten();
    let costs = value["model_usage_since_last_result"].as_object();
    let models = value["modelUsage"].as_object().into_iter().flat_map(Map::values);
    let cost =
        |costs: &Map<String, Value>| costs.values().filter_map(|model| model["costUSD"].as_f64()).sum();
    Outcome {
        is_error: value["is_error"].as_bool().unwrap_or(true),
        subtype: owned("subtype"),
        terminal_reason: owned("terminal_reason"),
        stop_reason: owned("stop_reason"),
        api_error_status: value["api_error_status"].as_u64(),
        api_error: owned("api_error"),
        text: owned("result"),
        errors: errors.filter_map(|error| error.as_str().map(str::to_owned)).collect(),
        structured_output,
        lines: lines(&value),
        total_cost_usd: value["total_cost_usd"].as_f64().unwrap_or(0.0),
        cost_since_last: costs.map(cost),
        window: models.filter_map(|model| model["contextWindow"].as_u64()).max(),
    }
}

fn lines(value: &Value) -> Vec<Uuid> {
    let many = value["user_message_uuids"].as_array().into_iter().flatten();
    let mut all: Vec<Uuid> = many.chain([&value["user_message_uuid"]]).filter_map(uuid).collect();
    all.dedup();
    all
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn uuid(value: &Value) -> Option<Uuid> {
    value.as_str()?.parse().ok()
}

fn seconds(timestamp: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339(timestamp).ok()?;
    Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "aaaaaaaa-0000-4000-8000-000000000001";
    const SESSION: &str = "11111111-1111-4111-8111-111111111111";

    fn id(text: &str) -> Uuid {
        text.parse().unwrap()
    }

    /// Reads a recorded line in which `LINE` and `SESSION` stand for their ids.
    fn check(line: &str, expect: Output) {
        let line = line.replace("LINE", LINE).replace("SESSION", SESSION);
        assert_eq!(read(line.as_bytes()), expect, "{line}");
    }

    #[test]
    fn a_user_line_is_one_line() {
        let bytes = user_line(LineId(id(LINE)), "[mail]\nhello \u{2028} \"x\"\0");
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(
            text.trim_end(),
            r#"{"message":{"content":"[mail]\nhello \u2028 \"x\"\u0000","role":"user"},"type":"user","uuid":"LINE"}"#
                .replace("LINE", LINE)
                .replace("\\u2028", "\u{2028}")
        );
    }

    #[test]
    fn no_words_begin_with_a_slash() {
        for words in ["/cost", "  /cost", "\n/cost"] {
            let line: Value = serde_json::from_slice(&user_line(LineId(id(LINE)), words)).unwrap();
            assert_eq!(line["message"]["content"], format!("\n{words}"));
        }
    }

    #[test]
    fn the_begin_of_a_turn_is_read() {
        check(
            r#"{"type":"system","subtype":"init","cwd":"/c","session_id":"SESSION","tools":["StructuredOutput"],"claude_code_version":"2.1.332","user_message_uuids":["LINE"]}"#,
            Output::Init {
                session: Some(id(SESSION)),
                lines: vec![id(LINE)],
                version: Some("2.1.332".to_owned()),
            },
        );
        check(
            r#"{"type":"user","message":{"role":"user","content":"hello"},"session_id":"SESSION","uuid":"LINE","isReplay":true}"#,
            Output::Echo { line: id(LINE) },
        );
        check(r#"{"type":"user","message":{"role":"user","content":"x"},"uuid":"LINE"}"#, Output::Other);
        let lifecycle = |state: &str| {
            format!(r#"{{"type":"command_lifecycle","command_uuid":"LINE","state":"{state}"}}"#)
        };
        check(&lifecycle("completed"), Output::Done { line: id(LINE) });
        check(&lifecycle("started"), Output::Other);
    }

    #[test]
    fn what_she_says_is_counted_and_what_the_cli_says_is_not() {
        check(
            r#"{"type":"assistant","message":{"model":"claude-sonnet-4-5","id":"msg_1","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":4,"ephemeral_5m_input_tokens":1},"cache_read_input_tokens":3,"output_tokens":1}},"timestamp":"1970-01-01T00:01:40.061Z"}"#,
            Output::Assistant(Assistant {
                error: None,
                at: Some(100),
                request: Some(Request {
                    message: "msg_1".to_owned(),
                    usage: RequestUsage {
                        model: "claude-sonnet-4-5".to_owned(),
                        input: 10,
                        cache_read: 3,
                        written_5m: 1,
                        written_1h: 4,
                        output: 1,
                        first_token: None,
                    },
                }),
            }),
        );
        check(
            r#"{"type":"assistant","message":{"model":"<synthetic>","usage":{"input_tokens":0}},"error":"rate_limit"}"#,
            Output::Assistant(Assistant { error: Some("rate_limit".to_owned()), at: None, request: None }),
        );
        check(
            r#"{"type":"stream_event","event":{"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20},"type":"message_delta"}}"#,
            Output::Counted(20),
        );
        let usage =
            RequestUsage { model: "m".to_owned(), input: 7, written_5m: 5, ..RequestUsage::default() };
        let begun = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_2","model":"m","usage":{"input_tokens":7,"cache_creation_input_tokens":5}}}}"#;
        let began = |first_token| {
            let usage = RequestUsage { first_token, ..usage.clone() };
            Output::Began(Request { message: "msg_2".to_owned(), usage })
        };
        check(begun, began(None));
        let told = begun.replace(r#""event":"#, r#""ttft_ms":347,"event":"#);
        check(&told, began(Some(Duration::from_millis(347))));
        check(r#"{"type":"stream_event","event":{"type":"ping"}}"#, Output::Other);
    }

    #[test]
    fn waits_and_limits_are_read() {
        check(
            r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":1240.5,"error_status":429,"error":"rate_limit"}"#,
            Output::Retry(Retry { status: Some(429), delay: 1240 }),
        );
        check(
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795995064}}"#,
            Output::LimitReached { until: Some(1_795_995_064) },
        );
        check(
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1}}"#,
            Output::Other,
        );
        check(r#"{"type":"system","subtype":"compact_boundary"}"#, Output::Compacted);
    }

    #[test]
    fn a_result_is_read() {
        let expect = Outcome {
            is_error: false,
            subtype: "success".to_owned(),
            terminal_reason: "completed".to_owned(),
            stop_reason: "tool_use".to_owned(),
            text: "{}".to_owned(),
            structured_output: Some(json!({"say": []})),
            lines: vec![id(LINE)],
            total_cost_usd: 0.5,
            cost_since_last: Some(0.25),
            window: Some(200_000),
            ..Outcome::default()
        };
        check(
            r#"{"stop_reason":"tool_use","session_id":"SESSION","total_cost_usd":0.5,"ttft_ms":1234,"modelUsage":{"a":{"contextWindow":200000}},"terminal_reason":"completed","is_error":false,"subtype":"success","api_error_status":null,"result":"{}","structured_output":{"say":[]},"type":"result","user_message_uuid":"LINE","user_message_uuids":["LINE"],"model_usage_since_last_result":{"a":{"costUSD":0.125},"b":{"costUSD":0.125}}}"#,
            Output::Result(Box::new(expect)),
        );
    }

    #[test]
    fn a_result_without_its_fields_is_an_error_of_no_line() {
        let Output::Result(outcome) =
            read(br#"{"type":"result","structured_output":null,"user_message_uuids":[1]}"#)
        else {
            panic!("not a result")
        };
        assert_eq!(*outcome, Outcome { is_error: true, ..Outcome::default() });
    }

    #[test]
    fn anything_else_is_borne() {
        for line in
            ["", "[]", "7", "not json", "{\"type\":7}", "{\"type\":\"new\"}", "{\"type\":\"system\"}", "{"]
        {
            check(line, Output::Other);
        }
        assert_eq!(read(b"\xff\xfe"), Output::Other);
    }

    proptest::proptest! {
        #[test]
        fn any_words_arrive(words in "(?s).*") {
            let bytes = user_line(LineId(id(LINE)), &words);
            let (end, text) = bytes.split_last().unwrap();
            proptest::prop_assert_eq!(*end, b'\n');
            proptest::prop_assert!(!text.contains(&b'\n'));
            let line: Value = serde_json::from_slice(text).unwrap();
            let arrived = line["message"]["content"].as_str().unwrap();
            let guarded = words.trim_start().starts_with('/').then(|| ["\n", words.as_str()].concat());
            proptest::prop_assert_eq!(arrived, guarded.unwrap_or(words));
        }
    }
}
