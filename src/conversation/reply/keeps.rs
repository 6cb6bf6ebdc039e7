//! What a reply does beside acts: it remembers, forgets, asks to be shown a message in whole, and looks ahead.

use std::collections::BTreeSet;

use ruma::OwnedUserId;
use unicode_segmentation::UnicodeSegmentation;

use super::decode::{Remember, TaskWord, decode, label};
use super::heart::{self, Pulse, Reminds};
use super::{Allowance, Fault};
use crate::conversation::memory::{Kept, MemoryNumber, Salience, TEXT_BYTES, Task};

/// The longest topic, in bytes.
const TOPIC_BYTES: usize = 255;
/// The most that one memory is about.
const ABOUT: usize = 16;

/// What a reply keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// What she wants to remember.
    pub remember: Vec<Kept>,
    /// What she forgets.
    pub forget: Vec<MemoryNumber>,
    /// The labels of what she wants to be shown in whole.
    pub show: BTreeSet<String>,
    /// Her pulse, where she gives one.
    pub pulse: Option<Pulse>,
    /// What becomes of her reminders.
    pub reminds: Reminds,
}

/// Reads what a reply keeps. A memory without a word is left out; one that is too long is cut.
///
/// # Errors
/// Not the schema's shape, a label that stands for nothing in the lane's allowance, or a time that cannot be read.
pub fn keeps(reply: &str, allowance: &Allowance) -> Result<Keeps, Fault> {
    let reply = decode(reply)?;
    let forget = reply.forget.iter().map(|given| memory(&label(given), allowance));
    let show = reply.show.iter().map(|given| part(label(given), allowance));
    Ok(Keeps {
        forget: forget.collect::<Result<_, _>>()?,
        show: show.collect::<Result<_, _>>()?,
        remember: reply.remember.iter().filter_map(kept).collect(),
        pulse: reply.pulse.as_ref().map(heart::pulse).transpose()?,
        reminds: heart::reminds(&reply, allowance)?,
    })
}

fn memory(label: &str, allowance: &Allowance) -> Result<MemoryNumber, Fault> {
    let number = MemoryNumber::of_label(label).filter(|number| allowance.memories.contains(number));
    number.ok_or_else(|| Fault(format!("{label:?} is not the label of a memory that you can forget here")))
}

fn part(label: String, allowance: &Allowance) -> Result<String, Fault> {
    if allowance.parts.contains(&label) {
        return Ok(label);
    }
    Err(Fault(format!("{label:?} is not the label of a message that you were shown in part here")))
}

fn kept(remember: &Remember) -> Option<Kept> {
    let text = cut(visible(&remember.text).trim(), TEXT_BYTES);
    if text.is_empty() {
        return None;
    }
    let mut kept = Kept { text, ..Kept::default() };
    for about in remember.about.iter().take(ABOUT) {
        match person(about.trim()) {
            Some(person) => drop(kept.people.insert(person)),
            None => drop(topic(about).map(|topic| kept.topics.insert(topic))),
        }
    }
    kept.salience = remember.salience.map(Salience::of_share).unwrap_or_default();
    kept.task = remember.task.map(|task| match task {
        TaskWord::Open => Task::Open,
        TaskWord::Done => Task::Done,
    });
    Some(kept)
}

/// A whole user id, as it is shown in mail or without its brackets.
fn person(about: &str) -> Option<OwnedUserId> {
    let id = about.strip_prefix('<').and_then(|about| about.strip_suffix('>')).unwrap_or(about);
    OwnedUserId::try_from(id).ok()
}

fn topic(about: &str) -> Option<String> {
    Some(cut(&line(about), TOPIC_BYTES)).filter(|topic| !topic.is_empty())
}

/// A text on one line.
pub(super) fn line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn visible(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// At most so many bytes, cut between graphemes.
pub(super) fn cut(text: &str, most: usize) -> String {
    let fits =
        text.grapheme_indices(true).map(|(at, grapheme)| at + grapheme.len()).take_while(|end| *end <= most);
    text[..fits.last().unwrap_or(0)].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::two_rooms;
    use super::*;

    #[track_caller]
    fn check_kept(remember: Value, expect: &Kept) {
        let reply = json!({"say": [], "react": [], "remember": [remember]});
        assert_eq!(
            keeps(&reply.to_string(), &two_rooms()).unwrap().remember,
            std::slice::from_ref(expect),
            "{reply}"
        );
    }

    fn kept(text: &str) -> Kept {
        Kept { text: text.into(), ..Kept::default() }
    }

    #[test]
    fn what_is_remembered_is_read_with_people_and_topics_apart() {
        let alice = ruma::user_id!("@alice:hs.test").to_owned();
        check_kept(
            json!({"text": " Tom is\n a cat ", "about": ["<@alice:hs.test>", "@alice", " big \n cats", ""], "salience": 0.9}),
            &Kept {
                people: [alice].into(),
                topics: ["@alice".to_owned(), "big cats".to_owned()].into(),
                salience: Salience::of_hundredths(90),
                ..kept("Tom is\n a cat")
            },
        );
        let open = json!({"text": "x", "about": [], "salience": 7, "task": "open"});
        let salience = Salience::of_hundredths(100);
        check_kept(open, &Kept { task: Some(Task::Open), salience, ..kept("x") });
        check_kept(json!({"text": "x", "task": "done"}), &Kept { task: Some(Task::Done), ..kept("x") });
    }

    #[test]
    fn a_memory_is_cut_between_graphemes_and_one_without_a_word_left_out() {
        check_kept(json!({"text": "é".repeat(600)}), &kept(&"é".repeat(500)));
        check_kept(json!({"text": "e\u{301}".repeat(600)}), &kept(&"e\u{301}".repeat(333)));
        let reply = json!({"say": [], "react": [], "remember": [{"text": " \u{7}\n"}]});
        assert_eq!(keeps(&reply.to_string(), &two_rooms()), Ok(Keeps::default()));
    }

    #[test]
    fn labels_of_memories_and_parts_count_only_within_the_allowance() {
        let read = |list: &str, label: &str| {
            let reply = json!({"say": [], "react": [], list: [label]});
            keeps(&reply.to_string(), &two_rooms())
        };
        assert_eq!(read("forget", " N3 ").unwrap().forget, [MemoryNumber(3)]);
        assert_eq!(read("show", "M2").unwrap().show, ["m2".to_owned()].into());
        for (list, label) in
            [("forget", "n4"), ("forget", "m2"), ("forget", ""), ("show", "m1"), ("show", "n3")]
        {
            let fault = read(list, label).unwrap_err().0;
            assert!(fault.starts_with(&format!("{label:?} is not the label of a me")), "{fault}");
        }
    }

    #[test]
    fn a_reply_of_the_first_version_keeps_nothing() {
        assert_eq!(keeps(r#"{"say": [], "react": []}"#, &two_rooms()), Ok(Keeps::default()));
        let many = json!({"say": [], "react": [], "remember": vec![json!({"text": "x"}); 9]});
        assert_eq!(
            keeps(&many.to_string(), &two_rooms()).unwrap_err().0,
            "remember has 9 items; at most 8 are taken"
        );
    }
}
