//! What is played, and what is seen in it.

use serde_json::Value;
use uuid::Uuid;

use super::Breach;
use super::api::Api;
use crate::conversation::{LineId, Millis};
use crate::mind::{Feed, MindCommand, MindEvent, MindHandle};
use crate::persona::Ending;
use crate::persona::decide::Stop;
use crate::persona::session::Session;

/// What the CLI is told, and asked.
const PROMPT: &str = "You are a part in a play that tries a program.";
const WORDS: [&str; 2] = ["The first line of the play.", "The second line of the play."];

/// What is played with.
pub(super) struct Stage<'a> {
    /// Our API.
    pub(super) api: &'a Api,
    /// What it replies.
    pub(super) reply: Value,
    /// What the ids derive from.
    pub(super) run: Uuid,
    /// The time.
    pub(super) now: Millis,
}

/// How a line went.
struct Turn {
    ending: Ending,
    from_record: bool,
    /// How many requests it made.
    asked: usize,
}

impl Stage<'_> {
    /// Plays, and ends the mind.
    pub(super) async fn play(&self, mut mind: MindHandle) -> Vec<Breach> {
        let first = self.feed(&mut mind, 0).await;
        let mut breaches = self.wrong_requests();
        if let Some(breach) = self.wrong_turn(&first) {
            breaches.push(breach);
            return breaches;
        }
        stop(&mut mind).await;
        let recorded = self.feed(&mut mind, 0).await;
        if !(recorded.from_record && recorded.asked == 0 && self.is_reply(&recorded.ending)) {
            let seen =
                if recorded.asked > 0 { "it was asked again".to_owned() } else { told(&recorded.ending) };
            breaches.push(Breach::Record(seen));
            return breaches;
        }
        let second = self.feed(&mut mind, 1).await;
        for breach in self.wrong_requests() {
            if !breaches.contains(&breach) {
                breaches.push(breach);
            }
        }
        let newest = self.api.asked().pop().unwrap_or_default();
        if self.wrong_turn(&second).is_some() {
            breaches.push(Breach::Resumed(told(&second.ending)));
        } else if !newest["messages"].to_string().contains(WORDS[0]) {
            breaches.push(Breach::Resumed("what was said before is missing".to_owned()));
        } else if self.feed(&mut mind, 0).await.asked > 0 {
            breaches.push(Breach::Repeated);
        }
        breaches
    }

    /// Feeds one of the lines and waits for the end of its turn.
    async fn feed(&self, mind: &mut MindHandle, number: usize) -> Turn {
        let before = self.api.asked().len();
        let line = LineId(Uuid::new_v5(&self.run, WORDS[number].as_bytes()));
        let session = Session::fresh(Uuid::new_v5(&self.run, b"session"), self.now);
        let feed = Feed::single(session, line, PROMPT, WORDS[number], self.now);
        // Where the mind is gone, no event comes either.
        let _ = mind.commands.send(MindCommand::Feed(Box::new(feed))).await;
        let (ending, from_record) = ended(mind).await;
        Turn { ending, from_record, asked: self.api.asked().len() - before }
    }

    fn is_reply(&self, ending: &Ending) -> bool {
        let Ending::Answered { reply } = ending else { return false };
        serde_json::from_str::<Value>(reply).is_ok_and(|reply| reply == self.reply)
    }

    /// What is wrong with a line that was to be thought about.
    fn wrong_turn(&self, turn: &Turn) -> Option<Breach> {
        let told = told(&turn.ending);
        match &turn.ending {
            Ending::Poisoned { .. } => Some(Breach::Session(told)),
            _ if turn.asked == 0 => Some(Breach::Silent(told)),
            Ending::Lost { .. } | Ending::Died { .. } | Ending::Stranded => Some(Breach::Unnamed(told)),
            Ending::SessionGone { .. } | Ending::Unsettled { .. } => Some(Breach::Record(told)),
            ending if self.is_reply(ending) => None,
            Ending::Answered { .. }
            | Ending::Transient { .. }
            | Ending::Final { .. }
            | Ending::Rejected { .. }
            | Ending::Invalid { .. }
            | Ending::Refused { .. }
            | Ending::TooLong => Some(Breach::Untyped(told)),
        }
    }

    /// What is wrong with the newest request.
    fn wrong_requests(&self) -> Vec<Breach> {
        let Some(newest) = self.api.asked().pop() else { return Vec::new() };
        let prompt = (!newest["system"].to_string().contains(PROMPT)).then_some(Breach::Prompt);
        let tools: Vec<&str> = newest["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        let none = if tools.is_empty() { "(none)".to_owned() } else { tools.join(", ") };
        prompt.into_iter().chain((tools != ["StructuredOutput"]).then_some(Breach::Tools(none))).collect()
    }
}

async fn ended(mind: &mut MindHandle) -> (Ending, bool) {
    while let Some(event) = mind.events.recv().await {
        if let MindEvent::TurnEnded { ending, from_record, .. } = event {
            return (ending, from_record);
        }
    }
    (Ending::Lost { reason: "the mind is gone".to_owned() }, false)
}

/// Ends the process.
async fn stop(mind: &mut MindHandle) {
    let _ = mind.commands.send(MindCommand::Stop(Stop::Idle)).await;
    while let Some(event) = mind.events.recv().await {
        if let MindEvent::Exited { .. } = event {
            return;
        }
    }
}

/// An ending in words.
fn told(ending: &Ending) -> String {
    match ending {
        Ending::Answered { .. } => "it was answered".to_owned(),
        Ending::TooLong => "it was too long".to_owned(),
        Ending::Stranded => "it was not run".to_owned(),
        // The fault is said to her.
        Ending::Invalid { .. } => "there was none that fits the schema".to_owned(),
        Ending::Transient { reason, .. }
        | Ending::Final { reason }
        | Ending::Rejected { reason }
        | Ending::Lost { reason }
        | Ending::Died { reason }
        | Ending::Refused { reason }
        | Ending::Poisoned { reason }
        | Ending::SessionGone { reason } => reason.clone(),
        Ending::Unsettled { why } => why.name().to_owned(),
    }
}
