//! `--say`: one question, her answer alone, the end.

use std::time::Duration;

use serde_json::Value;

use super::cast::{self, Target};
use super::error::DemoError;
use super::matrix::CallFault;
use super::you::{Heard, You};

/// How long an answer may take from readiness on.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where `--to` points, and that somebody is addressed there.
pub(super) fn target(to: &str, words: &str) -> Result<Target, DemoError> {
    let target = Target::parse(to).ok_or_else(|| {
        DemoError::Usage(format!("there is no {to}; --to takes one of {}", cast::targets()))
    })?;
    if words.trim().is_empty() {
        return Err(DemoError::Usage("--say needs words".to_owned()));
    }
    if target.addresses(words) { Ok(target) } else { Err(DemoError::Usage(cast::UNADDRESSED.to_owned())) }
}

/// Says the words and waits for the answer.
pub(super) async fn say(you: &mut You, target: Target, words: &str) -> Result<String, DemoError> {
    match tokio::time::timeout(PATIENCE, ask(you, target, words)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(DemoError::Silent(format!(
            "no answer from {} within {} s",
            target.label(),
            PATIENCE.as_secs()
        ))),
    }
}

async fn ask(you: &mut You, target: Target, words: &str) -> Result<String, CallFault> {
    let room = you.go(target).await?;
    let question = you.say(&room, words).await?;
    let mut asked = false;
    loop {
        let events = you.timeline(&room, Duration::from_secs(10)).await?;
        // What stands before the question is no answer to it.
        let later = if asked { Some(events.as_slice()) } else { after(&question, &events) };
        let Some(later) = later else { continue };
        asked = true;
        if let Some(answer) = answer(target, words, later) {
            return Ok(answer);
        }
    }
}

/// The events that stand after one of them.
fn after<'a>(event: &str, events: &'a [Value]) -> Option<&'a [Value]> {
    let at = events.iter().position(|other| other["event_id"] == event)?;
    Some(&events[at + 1..])
}

/// What the first who was asked says there.
fn answer(target: Target, words: &str, events: &[Value]) -> Option<String> {
    let heard = events.iter().filter_map(|event| Heard::read(target, event));
    let mut answers = heard.filter(|heard| answers(target, words, heard.persona));
    let first = answers.next()?;
    let rest = answers.filter(|heard| heard.persona == first.persona).map(|heard| heard.body);
    Some(std::iter::once(first.body).chain(rest).collect::<Vec<_>>().join("\n\n"))
}

/// Whether this Persona was asked.
fn answers(target: Target, words: &str, persona: &str) -> bool {
    match target {
        Target::Direct(id) => id == persona,
        Target::Room(_) => cast::is_named(words, cast::name_of(persona)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_needs_a_place_words_and_somebody() {
        let check = |to: &str, words: &str, expect: Result<Target, &str>| match (target(to, words), expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect),
            (Err(DemoError::Usage(said)), Err(expect)) => assert!(said.contains(expect), "{said}"),
            (found, expect) => panic!("{to} {words}: {found:?} instead of {expect:?}"),
        };
        check("swarm", "Eir, hello", Ok(Target::Room("swarm")));
        check("eir", "hello", Ok(Target::Direct("eir")));
        check("swarm", "hello", Err(cast::UNADDRESSED));
        check("nowhere", "Eir, hello", Err("minds, swarm, burn, eir, brage"));
        check("eir", "  ", Err("needs words"));
    }

    #[test]
    fn an_answer_stands_after_its_question() {
        let event = |id: &str, who: &str, body: &str| {
            json!({"event_id": id, "type": "m.room.message", "sender": format!("@{who}:demo.test"),
                "content": {"msgtype": "m.text", "body": body}})
        };
        let target = Target::Room("swarm");
        let events = [
            event("$1", "persona_eir", "an earlier answer"),
            event("$2", "you", "Eir, hello"),
            event("$3", "persona_brage", "another's"),
            event("$4", "persona_eir", "hers"),
            event("$5", "persona_eir", "and more"),
        ];
        let said = answer(target, "Eir, hello", after("$2", &events).unwrap());
        assert_eq!(said.as_deref(), Some("hers\n\nand more"));
        assert_eq!(answer(target, "Eir, hello", after("$5", &events).unwrap()), None);
        assert_eq!(after("$6", &events), None);
    }

    #[test]
    fn only_she_who_was_asked_answers() {
        assert!(answers(Target::Room("swarm"), "Eir, hello", "eir"));
        assert!(!answers(Target::Room("swarm"), "Eir, hello", "brage"));
        assert!(answers(Target::Direct("brage"), "hello", "brage"));
    }
}
