//! From a result to an ending: typed fields first, then the CLI's own texts.

use std::time::Duration;

use super::corpus::{self, Meaning};
use super::wire::{Assistant, Outcome, Output, Retry};
use crate::persona::{Ending, RequestUsage, Usage};

/// What was seen of a turn before its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    error: Option<String>,
    at: Option<u64>,
    retry: Option<Retry>,
    limit: Option<Option<u64>>,
}

impl Seen {
    /// Takes note of one line of stdout.
    pub(super) fn note(&mut self, output: &Output) {
        match output {
            Output::Assistant(Assistant { error, at, request: _ }) => {
                self.error.clone_from(error);
                self.at = at.or(self.at);
            }
            Output::Retry(retry) => self.retry = Some(*retry),
            Output::LimitReached { until } => self.limit = Some(*until),
            Output::Init { .. }
            | Output::Echo { .. }
            | Output::Done { .. }
            | Output::Began(_)
            | Output::Counted(_)
            | Output::Compacted
            | Output::Result(_)
            | Output::Other => {}
        }
    }

    fn error(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    /// The delay that was asked for: until the limit ends, else what the CLI waited for the last 429.
    fn retry_after(&self) -> Option<Duration> {
        let limit = self.limit.flatten().zip(self.at);
        let until = limit.map(|(until, at)| Duration::from_secs(until.saturating_sub(at)));
        let asked = self.retry.filter(|retry| retry.status == Some(429));
        until.or_else(|| asked.map(|retry| Duration::from_millis(retry.delay)))
    }
}

/// A delay from which on the CLI does not try a refused request again by itself, and does not tell it either.
const UNTRIED: Duration = Duration::from_secs(90);

/// Tells how the attempt ended that this result ends.
pub(super) fn classify(outcome: &Outcome, seen: &Seen) -> Ending {
    if let Some(reply) = reply(outcome) {
        return Ending::Answered { reply };
    }
    if !outcome.is_error && !outcome.subtype.starts_with("error") {
        return without_reply(outcome, seen);
    }
    by_reason(outcome, seen)
        .or_else(|| by_status(outcome, seen))
        .or_else(|| by_word(seen.error(), seen))
        .or_else(|| corpus::meaning(&outcome.text).and_then(|meaning| by_meaning(meaning, seen)))
        .unwrap_or_else(|| match seen.error() {
            "invalid_request" => Ending::Rejected { reason: "the API refused the request".to_owned() },
            _ => transient("the request failed", seen),
        })
}

/// Why a result shows that a session which was taken up again is spoilt: it gives results for which nothing was asked, or the
/// API refuses a tool call that stands in it.
pub(super) fn spoilt(outcome: &Outcome, ending: &Ending, usage: &Usage) -> Option<&'static str> {
    let free = |request: &RequestUsage| request.prefix() + request.output == 0;
    match ending {
        Ending::Invalid { .. } if outcome.structured_output.is_none() => {
            let empty = usage.requests.iter().all(free) && usage.money == Some(0.0);
            empty.then_some("the resumed session gives empty results")
        }
        Ending::Rejected { .. } => {
            let of_a_tool =
                ["tool use", "tool_use", "tool_result"].iter().any(|word| outcome.text.contains(word));
            of_a_tool.then_some("the API refuses a tool call that stands in the resumed session (400)")
        }
        Ending::Answered { .. }
        | Ending::Transient { .. }
        | Ending::Final { .. }
        | Ending::Invalid { .. }
        | Ending::Lost { .. }
        | Ending::Died { .. }
        | Ending::Stranded
        | Ending::Refused { .. }
        | Ending::TooLong
        | Ending::Poisoned { .. }
        | Ending::SessionGone { .. }
        | Ending::Unsettled { .. } => None,
    }
}

fn reply(outcome: &Outcome) -> Option<String> {
    let completed =
        !outcome.is_error && outcome.subtype == "success" && outcome.terminal_reason == "completed";
    outcome.structured_output.as_ref().filter(|reply| completed && reply.is_object()).map(ToString::to_string)
}

/// A result that is no error and yet holds no usable reply.
fn without_reply(outcome: &Outcome, seen: &Seen) -> Ending {
    let told = corpus::meaning(&outcome.text).and_then(|meaning| by_meaning(meaning, seen));
    let fault = if outcome.structured_output.is_some() {
        "the structured output was not an object"
    } else {
        "there was no structured output; call the StructuredOutput tool, with empty lists for silence"
    };
    told.unwrap_or_else(|| Ending::Invalid { fault: fault.to_owned() })
}

fn by_reason(outcome: &Outcome, seen: &Seen) -> Option<Ending> {
    let limits = ["error_max_turns", "error_max_structured_output_retries", "error_max_budget_usd"];
    if let Some(limit) = limits.into_iter().find(|limit| outcome.subtype == *limit) {
        return Some(last(limit));
    }
    match (outcome.terminal_reason.as_str(), outcome.stop_reason.as_str(), seen.error()) {
        ("prompt_too_long" | "blocking_limit", ..) => Some(Ending::TooLong),
        (.., "billing_error") => Some(refused("the account's balance is too low")),
        (_, "refusal", _) => Some(last("the model refused")),
        (.., "max_output_tokens") => Some(last("the limit of output tokens was reached")),
        _ => None,
    }
}

fn by_status(outcome: &Outcome, seen: &Seen) -> Option<Ending> {
    Some(match outcome.api_error_status? {
        401 => refused("the API refused the credential (401)"),
        403 => refused("the API refused the request (403)"),
        408 => transient("the request timed out (408)", seen),
        429 if outcome.api_error == "usage_limit_reached" => {
            transient("the plan's limit is reached (429)", seen)
        }
        429 => Ending::Transient {
            reason: "too many requests (429)".to_owned(),
            retry_after: seen.retry_after().or(seen.retry.is_none().then_some(UNTRIED)),
        },
        529 => transient("the API is overloaded (529)", seen),
        500..=599 => transient("the API failed (5xx)", seen),
        400 if corpus::meaning(&outcome.text) == Some(Meaning::TooLong) => Ending::TooLong,
        400 => Ending::Rejected { reason: "the API refused the request (400)".to_owned() },
        404 => last("the API does not know the model (404)"),
        413 => last("the request was too large (413)"),
        _ => last("the API refused the request"),
    })
}

fn by_word(word: &str, seen: &Seen) -> Option<Ending> {
    match word {
        "authentication_failed" => Some(refused("the credential was refused")),
        "billing_error" => Some(refused("the account's balance is too low")),
        "rate_limit" => Some(transient("too many requests", seen)),
        "overloaded" | "server_error" => Some(transient("the API failed", seen)),
        "model_not_found" => Some(last("the API does not know the model")),
        "max_output_tokens" => Some(last("the limit of output tokens was reached")),
        _ => None,
    }
}

fn by_meaning(meaning: Meaning, seen: &Seen) -> Option<Ending> {
    match meaning {
        Meaning::TooLong => Some(Ending::TooLong),
        Meaning::Transient => Some(transient("the API could not be reached or failed", seen)),
        Meaning::Refused => Some(refused("the credential was refused")),
        Meaning::Final => Some(last("the request failed for good")),
        Meaning::Note => None,
    }
}

fn transient(reason: &str, seen: &Seen) -> Ending {
    Ending::Transient { reason: reason.to_owned(), retry_after: seen.retry_after() }
}

fn last(reason: &str) -> Ending {
    Ending::Final { reason: reason.to_owned() }
}

fn refused(reason: &str) -> Ending {
    Ending::Refused { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mind::claude::corpus::RECORDED;

    fn success() -> Outcome {
        Outcome {
            subtype: "success".to_owned(),
            terminal_reason: "completed".to_owned(),
            ..Outcome::default()
        }
    }

    /// A failed result as the CLI words it, and the word of the assistant line before it.
    fn failed(status: Option<u64>, word: &str, text: &str) -> (Outcome, Seen) {
        let outcome = Outcome {
            is_error: true,
            subtype: "success".to_owned(),
            terminal_reason: "api_error".to_owned(),
            stop_reason: "stop_sequence".to_owned(),
            api_error_status: status,
            text: text.to_owned(),
            ..Outcome::default()
        };
        (outcome, Seen { error: Some(word.to_owned()), ..Seen::default() })
    }

    fn kind(ending: &Ending) -> &'static str {
        match ending {
            Ending::Answered { .. } => "answered",
            Ending::Transient { .. } => "transient",
            Ending::Final { .. } => "final",
            Ending::Rejected { .. } => "rejected",
            Ending::Died { .. } => "died",
            Ending::Poisoned { .. } => "poisoned",
            Ending::Invalid { .. } => "invalid",
            Ending::Lost { .. } => "lost",
            Ending::Stranded => "stranded",
            Ending::Refused { .. } => "refused",
            Ending::TooLong => "too long",
            Ending::SessionGone { .. } => "gone",
            Ending::Unsettled { .. } => "unsettled",
        }
    }

    #[test]
    fn recorded_failures_are_known() {
        let rows: &[(Option<u64>, &str, &str, &str)] = &[
            (Some(429), "rate_limit", RECORDED[0], "transient"),
            (Some(429), "rate_limit", RECORDED[1], "transient"),
            (Some(429), "rate_limit", RECORDED[2], "transient"),
            (Some(529), "server_error", RECORDED[3], "transient"),
            (Some(500), "server_error", RECORDED[4], "transient"),
            (None, "unknown", RECORDED[5], "transient"),
            (Some(401), "authentication_failed", RECORDED[6], "refused"),
            (Some(401), "authentication_failed", RECORDED[7], "refused"),
            (Some(403), "authentication_failed", RECORDED[8], "refused"),
            (Some(400), "billing_error", RECORDED[9], "refused"),
            (Some(400), "invalid_request", RECORDED[10], "too long"),
            (None, "invalid_request", RECORDED[10], "too long"),
            (Some(413), "invalid_request", RECORDED[11], "final"),
            (Some(400), "unknown", RECORDED[12], "rejected"),
            (Some(404), "model_not_found", RECORDED[13], "final"),
            (None, "max_output_tokens", "API Error: the response exceeded the maximum", "final"),
            (None, "invalid_request", "something new", "rejected"),
            (None, "authentication_failed", "something new", "refused"),
            (None, "overloaded", "something new", "transient"),
            (Some(503), "unknown", "something new", "transient"),
            (Some(418), "unknown", "something new", "final"),
            (None, "", "", "transient"),
        ];
        for (status, word, text, expect) in rows {
            let (outcome, seen) = failed(*status, word, text);
            assert_eq!(kind(&classify(&outcome, &seen)), *expect, "{status:?} {word} {text}");
        }
    }

    #[test]
    fn reasons_to_end_come_before_anything_else() {
        let ended = |change: fn(&mut Outcome)| {
            let (mut outcome, seen) = failed(None, "unknown", "");
            change(&mut outcome);
            classify(&outcome, &seen)
        };
        assert_eq!(kind(&ended(|outcome| outcome.stop_reason = "refusal".to_owned())), "final");
        assert_eq!(ended(|outcome| outcome.terminal_reason = "prompt_too_long".to_owned()), Ending::TooLong);
        assert_eq!(ended(|outcome| outcome.terminal_reason = "blocking_limit".to_owned()), Ending::TooLong);
        for limit in ["error_max_turns", "error_max_structured_output_retries"] {
            let outcome = Outcome { subtype: limit.to_owned(), is_error: false, ..Outcome::default() };
            assert_eq!(classify(&outcome, &Seen::default()), Ending::Final { reason: limit.to_owned() });
        }
    }

    #[test]
    fn an_object_of_a_completed_success_is_the_reply() {
        let outcome = Outcome { structured_output: Some(json!({"say": []})), ..success() };
        let answered = Ending::Answered { reply: r#"{"say":[]}"#.to_owned() };
        assert_eq!(classify(&outcome, &Seen::default()), answered);
    }

    #[test]
    fn an_object_of_anything_else_is_none() {
        let output = || Some(json!({"say": []}));
        for outcome in [
            Outcome { is_error: true, structured_output: output(), ..success() },
            Outcome {
                terminal_reason: "aborted_streaming".to_owned(),
                structured_output: output(),
                ..success()
            },
            Outcome { subtype: "error_max_turns".to_owned(), structured_output: output(), ..success() },
            Outcome { structured_output: Some(json!([1])), ..success() },
            Outcome { structured_output: Some(json!("say")), ..success() },
            success(),
        ] {
            assert_ne!(kind(&classify(&outcome, &Seen::default())), "answered", "{outcome:?}");
        }
    }

    #[test]
    fn no_text_of_the_cli_is_taken_for_a_reply() {
        assert!(RECORDED.len() >= 15);
        for text in RECORDED {
            for structured_output in [None, Some(json!(text))] {
                let outcome = Outcome { text: (*text).to_owned(), structured_output, ..success() };
                assert_ne!(kind(&classify(&outcome, &Seen::default())), "answered", "{text}");
            }
        }
    }

    #[test]
    fn a_fault_tells_her_what_was_missing() {
        let Ending::Invalid { fault } = classify(&success(), &Seen::default()) else { panic!("not invalid") };
        assert!(fault.contains("StructuredOutput"), "{fault}");
    }

    #[test]
    fn the_end_of_a_limit_is_waited_for() {
        let (outcome, mut seen) = failed(Some(429), "rate_limit", "");
        let after = |seen: &Seen| {
            let Ending::Transient { retry_after, .. } = classify(&outcome, seen) else {
                panic!("not transient")
            };
            retry_after.map(|after| after.as_millis())
        };
        assert_eq!(after(&seen), Some(90_000), "the CLI has not tried again");
        seen.note(&Output::Retry(Retry { status: Some(529), delay: 9_000 }));
        assert_eq!(after(&seen), None);
        seen.note(&Output::Retry(Retry { status: Some(429), delay: 1_240 }));
        assert_eq!(after(&seen), Some(1_240));
        seen.note(&Output::LimitReached { until: Some(1_000) });
        assert_eq!(after(&seen), Some(1_240), "there is no time to count from yet");
        let said =
            |at| Output::Assistant(Assistant { error: seen.error.clone(), at: Some(at), request: None });
        let (before, behind) = (said(400), said(1_400));
        seen.note(&before);
        assert_eq!(after(&seen), Some(600_000));
        seen.note(&behind);
        assert_eq!(after(&seen), Some(0));
    }
}
