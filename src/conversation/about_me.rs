//! What people may ask the bot of what is remembered about them, and what it answers.

use std::collections::BTreeSet;

use ruma::{OwnedEventId, OwnedRoomId, OwnedUserId, UserId};

use super::event::{Content, Event, MessageKind};
use super::ids::Millis;

/// What the bot is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The event.
    pub event: OwnedEventId,
    /// Where.
    pub room: OwnedRoomId,
    /// By whom, and about whom.
    pub user: OwnedUserId,
    /// What.
    pub wish: Wish,
    /// When, as its homeserver says; zero where that is not known.
    pub at: Millis,
    /// Whether the bot is mentioned; else it is asked only in a direct chat.
    pub mentions: bool,
}

/// What somebody wants with what is remembered about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To be told.
    Tell,
    /// That it is forgotten.
    Forget,
    /// What an admin tells the bridge, in these words; `mentions` says whether they followed the prefix.
    Command(String),
}

impl Wish {
    /// Its name, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tell => "tell",
            Self::Forget => "forget",
            Self::Command(_) => "command",
        }
    }
}

/// The longest part of an answer, in bytes.
const PART_BYTES: usize = 16 * 1024;

/// The question in an event, if it is one.
pub fn question(event: &Event, bot: &UserId) -> Option<Question> {
    let Content::Message(message) = &event.content else { return None };
    if message.kind != MessageKind::Text || message.edits.is_some() || !may_ask(&message.text) {
        return None;
    }
    let text = message.text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let wish = if let Some((before, _)) = text.split_once("forget what you remember about me") {
        let not = ["never", "not", "don't", "don’t", "dont"];
        if before.split_whitespace().next_back().is_some_and(|word| not.contains(&word)) {
            return None;
        }
        Wish::Forget
    } else if text.contains("what do you remember about me") {
        Wish::Tell
    } else {
        return None;
    };
    let mentions =
        message.mentions.iter().any(|user| user == bot) || text.contains(&bot.as_str().to_lowercase());
    let (room, user) = (event.room.clone(), event.sender.clone());
    Some(Question { event: event.id.clone(), room, user, wish, at: event.at, mentions })
}

/// Whether a word stands in a text without which nothing is asked: most texts are not looked at any closer.
fn may_ask(text: &str) -> bool {
    const WORD: &[u8] = b"remember";
    text.as_bytes().windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// Whether the bot is asked, by who is in the room beside our own users.
pub fn is_asked(question: &Question, others: &BTreeSet<OwnedUserId>) -> bool {
    question.mentions || is_alone(question, others)
}

/// Whether only who asks reads the answer.
pub fn is_alone(question: &Question, others: &BTreeSet<OwnedUserId>) -> bool {
    others.len() == 1 && others.contains(&question.user)
}

/// The parts of the answer to who wants to be told: for each Persona her name and the texts that may be said here.
pub fn told(personas: &[(String, Vec<String>)]) -> Vec<String> {
    let mut parts = vec!["What is remembered about you, as far as it can be said here:".to_owned()];
    for (name, texts) in personas {
        for text in texts {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = format!("\n- {name}: {text}");
            match parts.last_mut() {
                Some(last) if last.len() + line.len() <= PART_BYTES => last.push_str(&line),
                _ => parts.push(line.trim_start().to_owned()),
            }
        }
    }
    if personas.iter().all(|(_, texts)| texts.is_empty()) {
        parts = vec!["Nothing is remembered about you that can be said here.".to_owned()];
    }
    parts
}

/// The answer to who wanted it forgotten.
pub const FORGOTTEN: &str = "What was remembered about you is forgotten. What a Persona has heard in her present session \
    stays with her until that ends.";

#[cfg(test)]
mod tests {
    use ruma::{event_id, room_id, user_id};

    use super::*;
    use crate::conversation::{Message, Millis};

    fn said(text: &str, mentions: &[&UserId]) -> Event {
        let message = Message {
            kind: MessageKind::Text,
            text: text.into(),
            thread: None,
            reply_to: None,
            edits: None,
            mentions: mentions.iter().map(|user| (*user).to_owned()).collect(),
            mentions_room: false,
        };
        Event {
            id: event_id!("$q").to_owned(),
            room: room_id!("!r:hs.test").to_owned(),
            sender: user_id!("@alice:hs.test").to_owned(),
            at: Millis(1),
            request: None,
            cause: None,
            content: Content::Message(message),
        }
    }

    fn asked(text: &str, mentions: &[&UserId]) -> Option<(Wish, bool)> {
        let question = question(&said(text, mentions), user_id!("@bot:hs.test"))?;
        Some((question.wish, question.mentions))
    }

    #[test]
    fn a_question_is_known_by_its_words() {
        let bot = user_id!("@bot:hs.test");
        assert_eq!(asked("What do you remember\nabout me?", &[]), Some((Wish::Tell, false)));
        assert_eq!(asked("bot: forget what you remember about me", &[bot]), Some((Wish::Forget, true)));
        assert_eq!(asked("@bot:hs.test what do you remember about me", &[]), Some((Wish::Tell, true)));
        let never = "bot: please never  forget what you remember about me!";
        for other in ["what do you remember?", "remember me", "", never] {
            assert_eq!(asked(other, &[bot]), None);
        }
    }

    #[test]
    fn without_a_mention_it_is_asked_only_where_nobody_else_is() {
        let alice = || user_id!("@alice:hs.test").to_owned();
        let bob = || user_id!("@bob:hs.test").to_owned();
        let ask = |mentions: &[&UserId], others: &[OwnedUserId]| {
            let event = said("what do you remember about me", mentions);
            let question = question(&event, user_id!("@bot:hs.test")).unwrap();
            is_asked(&question, &others.iter().cloned().collect())
        };
        assert!(ask(&[], &[alice()]));
        assert!(!ask(&[], &[alice(), bob()]) && !ask(&[], &[bob()]) && !ask(&[], &[]));
        assert!(ask(&[user_id!("@bot:hs.test")], &[alice(), bob()]));
    }

    #[test]
    fn the_answer_names_who_remembers_and_is_parted_where_it_is_long() {
        let eir = |texts: &[&str]| ("Eir".to_owned(), texts.iter().map(|&text| text.to_owned()).collect());
        assert_eq!(
            told(&[eir(&["her cat\nis Tom"]), ("Brage".to_owned(), vec![])]),
            ["What is remembered about you, as far as it can be said here:\n- Eir: her cat is Tom"]
        );
        assert_eq!(told(&[eir(&[])]), ["Nothing is remembered about you that can be said here."]);
        let long = vec!["x".repeat(1000); 40];
        let parts = told(&[("Eir".to_owned(), long)]);
        assert!(parts.len() == 3 && parts.iter().all(|part| part.len() <= PART_BYTES));
    }
}
