//! Texts that the CLI writes itself, where she would have spoken; recorded from 2.1.332.
//!
//! Typed fields decide first. This table is for what comes without them; a new wording is one row.

/// What a text of the CLI stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The prompt does not fit the window.
    TooLong,
    /// It may work later.
    Transient,
    /// The account cannot ask.
    Refused,
    /// It will not work as it is.
    Final,
    /// It is only a note in the session.
    Note,
}

/// How each text begins, and what it stands for.
const TEXTS: &[(&str, Meaning)] = &[
    ("Prompt is too long", Meaning::TooLong),
    ("API Error: 400 prompt is too long", Meaning::TooLong),
    ("You've hit your limit", Meaning::Transient),
    ("You've hit your session limit", Meaning::Transient),
    ("You've hit your weekly limit", Meaning::Transient),
    ("You've reached your", Meaning::Transient),
    ("Claude AI usage limit reached", Meaning::Transient),
    ("API Error: Request rejected (429)", Meaning::Transient),
    ("API Error: Server is temporarily limiting requests", Meaning::Transient),
    ("API Error: 429", Meaning::Transient),
    ("API Error: 5", Meaning::Transient),
    ("API Error: Overloaded", Meaning::Transient),
    ("API Error: Internal server error", Meaning::Transient),
    ("API Error: Connection", Meaning::Transient),
    ("API Error: Unable to connect", Meaning::Transient),
    ("API Error: Request timed out", Meaning::Transient),
    ("API Error: Stream ended without receiving any events", Meaning::Transient),
    ("API Error: The response stream", Meaning::Transient),
    ("Request timed out", Meaning::Transient),
    ("Invalid API key", Meaning::Refused),
    ("Not logged in", Meaning::Refused),
    ("Please run /login", Meaning::Refused),
    ("Failed to authenticate", Meaning::Refused),
    ("OAuth token", Meaning::Refused),
    ("Credit balance is too low", Meaning::Refused),
    ("Your credit balance is too low", Meaning::Refused),
    ("API Error: 401", Meaning::Refused),
    ("API Error: 403", Meaning::Refused),
    ("API Error: 4", Meaning::Final),
    ("API Error:", Meaning::Transient),
    ("Request too large", Meaning::Final),
    ("There's an issue with the selected model", Meaning::Final),
    ("Unknown command: /", Meaning::Final),
    ("No response requested.", Meaning::Note),
    ("[Request interrupted by user", Meaning::Note),
    ("[Tool call interrupted:", Meaning::Note),
    ("[Your previous response had no visible output", Meaning::Note),
    ("[structured-output-enforce]", Meaning::Note),
    ("Continue from where you left off.", Meaning::Note),
    ("Output token limit hit. Resume directly", Meaning::Note),
    ("Output does not match required schema:", Meaning::Note),
    ("Structured output provided successfully", Meaning::Note),
    ("Your response above was stopped by a safety classifier", Meaning::Note),
    ("No conversation found with session ID:", Meaning::Note),
    ("This session is being continued from a previous conversation", Meaning::Note),
    ("(no content)", Meaning::Note),
];

/// What a text stands for if it is one of the CLI's.
pub(super) fn meaning(text: &str) -> Option<Meaning> {
    let text = text.trim_start();
    let known = TEXTS.iter().find(|(start, _)| text.starts_with(start)).map(|(_, meaning)| *meaning);
    known.or_else(|| is_missing_command(text).then_some(Meaning::Final))
}

/// `/cost isn't available in this environment.` and its like.
fn is_missing_command(text: &str) -> bool {
    text.starts_with('/') && text.trim_end().ends_with("isn't available in this environment.")
}

/// Tells whether a text is one of the CLI's own, which must never be taken for her words.
pub fn is_cli_text(text: &str) -> bool {
    meaning(text).is_some()
}

/// Whole texts as they were recorded, for tests.
#[cfg(test)]
pub(super) const RECORDED: &[&str] = &[
    "API Error: Request rejected (429) · Number of requests has exceeded your per-minute rate limit",
    "API Error: Server is temporarily limiting requests (not your usage limit) · This request would exceed your rate limit",
    "You've hit your limit · resets 11:31pm (UTC)",
    "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18991).",
    "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18991).",
    "API Error: Stream ended without receiving any events",
    "Invalid API key · Fix external API key",
    "Not logged in · Please run /login",
    "Failed to authenticate. API Error: 403 Your API key does not have permission",
    "Credit balance is too low",
    "Prompt is too long",
    "Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the request over the limit. Remove older images or compact the conversation.",
    "API Error: 400 messages: nope",
    "There's an issue with the selected model (claude-sonnet-4-5). It may not exist or you may not have access to it. Run --model to pick a different model.",
    "API Error: Sonnet 4.5 can't help with this. Start a new session to continue.\n\nLearn more: https://www.anthropic.com/legal/aup\n\nMessage ID: msg_1",
    "/cost isn't available in this environment.",
    "Unknown command: /bogus",
    "No response requested.",
    "[Request interrupted by user]",
    "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. Check whether it took effect before relying on it or running it again.]",
    "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool now.",
    "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.",
    "Output does not match required schema: root: must have required property 'react', /say: must be array",
    "Structured output provided successfully",
    "Continue from where you left off.",
    "No conversation found with session ID: 44444444-4444-4444-8444-444444444444",
    "(no content)",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_text_is_known() {
        for text in RECORDED {
            assert!(is_cli_text(text), "{text}");
        }
    }

    #[test]
    fn what_people_say_is_not_the_clis() {
        for text in
            ["", "hello", "/me waves", "The prompt is too long for me", "API errors are annoying", "ok"]
        {
            assert!(!is_cli_text(text), "{text}");
        }
    }

    #[test]
    fn the_finer_row_stands_before_the_coarser() {
        for (later, (start, _)) in TEXTS.iter().enumerate() {
            for (earlier, _) in &TEXTS[..later] {
                assert!(!start.starts_with(earlier), "{start} is never reached behind {earlier}");
            }
        }
    }
}
