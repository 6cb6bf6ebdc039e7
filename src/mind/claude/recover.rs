//! What to do with a line when no process lives, by what the session's file says.

use serde_json::Value;

use super::launch::Opening;
use super::transcript::{Standing, Transcript};
use crate::mind::{Feed, Purpose};
use crate::persona::RequestUsage;
use crate::persona::session::Reason;

/// How a line is taken up.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Recovery {
    /// It was answered; no process is needed.
    Answered {
        /// The reply, as JSON text.
        reply: String,
        /// What its request used.
        usage: RequestUsage,
    },
    /// A process is to be started and the line written.
    Start {
        /// How.
        opening: Opening,
        /// Whether the file is in the way of a new session and must be put aside first.
        put_aside: bool,
    },
    /// The session must not be used.
    Gone {
        /// Why: a phrase.
        reason: String,
    },
    /// It was only to be settled and is not answered.
    Unsettled {
        /// Why it was.
        why: Reason,
    },
}

/// Decides how a line is taken up; one that is only to be settled starts nothing.
pub(super) fn recover(feed: &Feed, transcript: Option<&Transcript>, schema: &Value) -> Recovery {
    match (take_up(feed, transcript, schema), feed.purpose) {
        (answered @ Recovery::Answered { .. }, Purpose::Settle(_)) => answered,
        (_, Purpose::Settle(why)) => Recovery::Unsettled { why },
        (recovery, Purpose::Answer) => recovery,
    }
}

fn gone(reason: &str) -> Recovery {
    Recovery::Gone { reason: reason.to_owned() }
}

fn take_up(feed: &Feed, transcript: Option<&Transcript>, schema: &Value) -> Recovery {
    let required = feed.must_exist || feed.session.last_committed.is_some();
    let Some(transcript) = transcript.filter(|transcript| transcript.resumable) else {
        return match (required, transcript) {
            (true, _) => gone("the session's file is gone"),
            (false, found) => Recovery::Start { opening: Opening::Begin, put_aside: found.is_some() },
        };
    };
    if feed.session.last_committed.is_some_and(|line| !transcript.holds(line)) {
        return gone("the session's file has lost the last committed line");
    }
    let resume = |opening| Recovery::Start { opening, put_aside: false };
    match transcript.standing(feed.line, schema) {
        Standing::Answered { reply, usage } => Recovery::Answered { reply: reply.to_string(), usage },
        Standing::Unanswered { last: true } => resume(Opening::ResumeInterrupted),
        Standing::Unanswered { last: false } => {
            gone("another line stands after the unanswered one in the session's file")
        }
        Standing::Unknown => resume(Opening::Resume),
    }
}

/// The words that an attempt feeds: the short line if the session holds an earlier attempt, else the whole batch.
pub(super) fn words<'a>(feed: &'a Feed, transcript: Option<&Transcript>) -> &'a str {
    let holds = |line| transcript.is_some_and(|transcript| transcript.holds(line));
    if feed.earlier.iter().any(|line| holds(*line)) { &feed.again } else { &feed.whole }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::conversation::{LineId, Millis};
    use crate::persona::session::{Account, Fingerprint, Session};

    fn line(number: u128) -> LineId {
        LineId(Uuid::from_u128(number))
    }

    fn feed(last_committed: Option<LineId>, must_exist: bool) -> Feed {
        let (id, fingerprint) = (Uuid::from_u128(7), Fingerprint::default());
        let session = Session {
            generation: 1,
            id,
            fingerprint,
            begun: Millis(0),
            last_committed,
            seeded: false,
            account: Account::default(),
        };
        Feed {
            line: line(2),
            session,
            must_exist,
            prompt: String::new(),
            whole: "whole".to_owned(),
            again: "again".to_owned(),
            earlier: vec![line(3), line(4)],
            purpose: Purpose::Answer,
            now: Millis(0),
        }
    }

    /// A file with these lines; a negative one is answered.
    fn file(lines: &[i64]) -> Transcript {
        let mut text = String::new();
        for number in lines {
            let uuid = line(u128::from(number.unsigned_abs()));
            let user = json!({"type": "user", "uuid": uuid.to_string(), "message": {"content": "x"}});
            text.push_str(&format!("{user}\n"));
            if *number < 0 {
                let call = json!({"type": "tool_use", "name": "StructuredOutput", "input": {"say": []}});
                let assistant = json!({"type": "assistant", "message": {"content": [call]}});
                text.push_str(&format!("{assistant}\n"));
            }
        }
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, text).unwrap();
        Transcript::read(&path).unwrap()
    }

    fn check(feed: &Feed, transcript: Option<&Transcript>, expect: Recovery) {
        assert_eq!(recover(feed, transcript, &Value::Null), expect);
    }

    fn start(opening: Opening) -> Recovery {
        Recovery::Start { opening, put_aside: false }
    }

    fn is_gone(recovery: &Recovery) -> bool {
        matches!(recovery, Recovery::Gone { .. })
    }

    #[test]
    fn without_a_file_a_session_is_begun_unless_it_must_exist() {
        check(&feed(None, false), None, start(Opening::Begin));
        assert!(is_gone(&recover(&feed(None, true), None, &Value::Null)));
        assert!(is_gone(&recover(&feed(Some(line(1)), false), None, &Value::Null)));
    }

    #[test]
    fn a_file_without_a_turn_is_put_aside() {
        let empty = file(&[]);
        check(&feed(None, false), Some(&empty), Recovery::Start { opening: Opening::Begin, put_aside: true });
        assert!(is_gone(&recover(&feed(None, true), Some(&empty), &Value::Null)));
    }

    #[test]
    fn a_known_session_is_resumed_as_the_line_stands() {
        check(&feed(Some(line(1)), true), Some(&file(&[-1])), start(Opening::Resume));
        check(&feed(Some(line(1)), true), Some(&file(&[-1, 2])), start(Opening::ResumeInterrupted));
        let usage = RequestUsage::default();
        let answered = Recovery::Answered { reply: r#"{"say":[]}"#.to_owned(), usage };
        check(&feed(Some(line(1)), true), Some(&file(&[-1, -2])), answered);
    }

    #[test]
    fn a_session_that_lost_or_mixed_up_lines_is_gone() {
        assert!(is_gone(&recover(&feed(Some(line(1)), true), Some(&file(&[-9, 2])), &Value::Null)));
        assert!(is_gone(&recover(&feed(None, false), Some(&file(&[2, 3])), &Value::Null)));
    }

    #[test]
    fn a_line_that_is_to_be_settled_is_answered_from_the_file_or_not_at_all() {
        let purpose = Purpose::Settle(Reason::Cold);
        let unsettled = || Recovery::Unsettled { why: Reason::Cold };
        let feed = Feed { purpose, ..feed(Some(line(1)), true) };
        let answered = recover(&feed, Some(&file(&[-1, -2])), &Value::Null);
        assert!(matches!(answered, Recovery::Answered { .. }), "{answered:?}");
        for lines in [&[-1][..], &[-1, 2], &[-9]] {
            check(&feed, Some(&file(lines)), unsettled());
        }
        let feed =
            Feed { session: Session { last_committed: None, ..feed.session }, must_exist: false, ..feed };
        check(&feed, None, unsettled());
    }

    #[test]
    fn the_file_decides_the_words() {
        let feed = feed(None, false);
        assert_eq!(words(&feed, None), "whole");
        assert_eq!(words(&feed, Some(&file(&[-1]))), "whole");
        assert_eq!(words(&feed, Some(&file(&[-1, 4]))), "again");
    }
}
