//! What the stand-in says: a function of the session's record alone.

use serde_json::json;

use super::mail::{self, Mail};
use super::record::Record;
use crate::conversation::LineId;

const WHAT: &str = "I am a scripted stand-in, not a model";
const HELP: &str = "I only repeat what I was told. Ask me \"what did I say before?\" and I quote you from this session, \
    also after a restart. Tell me \"remember that …\", and I have it before me in later sessions too: ask \"what do you \
    remember?\". Set [mind] kind = \"claude\" to talk to a real mind.";

/// Behind which stands what is to be remembered.
const REMEMBER: &str = "remember that ";

/// The most memories of one reply.
const MEMORIES: usize = 8;

/// The longest quote, in characters.
const QUOTE: usize = 200;

/// The reply to a turn, as JSON text: one say for each room with mail to her, nothing where there is none.
///
/// The turn's words are those of `line` and of the `earlier` attempts.
pub(super) fn reply(record: &Record, earlier: &[LineId], line: LineId) -> String {
    let turn: Vec<LineId> = earlier.iter().copied().chain([line]).collect();
    let words: Vec<(bool, &str)> = record.all_words(&turn).collect();
    let all: Vec<(bool, Mail)> = words
        .iter()
        .flat_map(|(now, words)| mail::read(words).into_iter().map(move |mail| (*now, mail)))
        .collect();
    let mail: Vec<&Mail> = all.iter().map(|(_, mail)| mail).collect();
    let mut says: Vec<(&str, Vec<String>)> = Vec::new();
    let mut remember = Vec::new();
    for (at, (_, asked)) in all.iter().enumerate().filter(|(_, (now, asked))| *now && asked.to_her) {
        let kept = kept(asked);
        let sentence = match kept {
            Some(kept) => format!("I will remember, {}: \"{}\"", asked.name, quote(kept)),
            None if asked.text.to_lowercase().contains("what do you remember") => {
                recite(asked, &words, &mail[..at])
            }
            None => sentence(asked, &mail[..at], &mail),
        };
        remember.extend(kept.map(|kept| memory(asked, kept)));
        match says.iter_mut().find(|(room, _)| *room == asked.room) {
            Some((_, sentences)) => sentences.push(sentence),
            None => says.push((&asked.room, vec![sentence])),
        }
    }
    let alone = says.len() == 1;
    let says: Vec<_> = says.iter().map(|(room, sentences)| say(room, sentences, alone)).collect();
    let mut reply = json!({ "say": says, "react": [] });
    if !remember.is_empty() {
        remember.truncate(MEMORIES);
        reply["remember"] = remember.into();
    }
    reply.to_string()
}

/// What she is asked to remember: the words behind "remember that".
fn kept(asked: &Mail) -> Option<&str> {
    let at = asked.text.to_lowercase().find(REMEMBER)? + REMEMBER.len();
    asked.text.get(at..).map(str::trim).filter(|kept| !kept.is_empty())
}

fn memory(asked: &Mail, kept: &str) -> serde_json::Value {
    let text: String = kept.chars().take(QUOTE).collect();
    json!({ "text": text, "about": [asked.user], "salience": 0.5 })
}

/// What she was reminded of or asked to remember in this room, as far as she was in this session.
fn recite(asked: &Mail, words: &[(bool, &str)], before: &[&Mail]) -> String {
    let of_room = |words: &&str| mail::read(words).iter().any(|mail| mail.room == asked.room);
    let reminded = words.iter().map(|(_, words)| *words).filter(of_room).flat_map(mail::memories);
    let told =
        before.iter().filter(|mail| mail.room == asked.room && mail.to_her).filter_map(|mail| kept(mail));
    let all: Vec<String> =
        reminded.chain(told.map(str::to_owned)).map(|text| format!("\"{}\"", quote(&text))).collect();
    if all.is_empty() {
        return format!("I remember nothing here, {}", asked.name);
    }
    format!("I remember, {}: {}", asked.name, all.join(", "))
}

fn say(room: &str, sentences: &[String], alone: bool) -> serde_json::Value {
    let text = format!("{} — {WHAT}.", sentences.join("; "));
    if alone || room.is_empty() { json!({ "text": text }) } else { json!({ "text": text, "room": room }) }
}

fn sentence(asked: &Mail, before: &[&Mail], all: &[&Mail]) -> String {
    let words = asked.text.to_lowercase();
    if words.contains("what did i say") {
        return match previous(asked, before, all) {
            Some(said) => format!("Before that you said, {}: \"{}\"", asked.name, quote(&said.text)),
            None => format!("You said nothing here before in this session, {}", asked.name),
        };
    }
    let heard = format!("I heard you, {}: \"{}\"", asked.name, quote(&asked.text));
    if asks_for_help(&words) { format!("{heard}. {HELP}") } else { heard }
}

/// What the same person said last before, in the same room (another room is nobody's business here) and not taken back.
fn previous<'a>(asked: &Mail, before: &[&'a Mail], all: &[&Mail]) -> Option<&'a Mail> {
    let taken_back = |label: &str| all.iter().any(|mail| mail.takes_back.as_deref() == Some(label));
    before.iter().rev().copied().find(|mail| {
        mail.user == asked.user
            && mail.room == asked.room
            && !mail.text.is_empty()
            && !taken_back(&mail.label)
    })
}

fn asks_for_help(words: &str) -> bool {
    let mut bare = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.contains("who are you") || (bare.clone().count() <= 3 && bare.any(|word| word == "help"))
}

/// One line, cut.
fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    const ALICE: &str = "\"Alice\" <@alice:hs.test>";
    const BOB: &str = "\"Bob\" <@bob:hs.test>";

    fn line(number: usize) -> LineId {
        LineId(Uuid::from_u128(number as u128))
    }

    /// The says of the last of these batches, each fed as a line of its own.
    fn says(batches: &[&str]) -> Vec<(String, Option<String>)> {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::create(&dir.path().join("session.jsonl")).unwrap();
        for (number, words) in batches.iter().enumerate() {
            record.heard(line(number), words).unwrap();
        }
        let reply: Value = serde_json::from_str(&reply(&record, &[], line(batches.len() - 1))).unwrap();
        assert_eq!(reply["react"], json!([]));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let says = reply["say"].as_array().unwrap().iter();
        says.map(|say| (text(&say["text"]).unwrap(), text(&say["room"]))).collect()
    }

    #[track_caller]
    fn check(batches: &[&str], expect: &[&str]) {
        let texts: Vec<String> = says(batches).into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, expect);
    }

    #[test]
    fn it_names_what_was_said_to_her() {
        check(
            &[&format!("room !a:b\nm1 08:00 {BOB}: psst\nm2 08:00 {ALICE} (to you): hello\n| Eir")],
            &["I heard you, Alice: \"hello Eir\" — I am a scripted stand-in, not a model."],
        );
    }

    #[test]
    fn what_was_not_said_to_her_is_met_with_silence() {
        check(&[&format!("room !a:b\nm1 08:00 {BOB}: psst")], &[]);
        check(&["(retry)"], &[]);
    }

    #[test]
    fn several_messages_are_all_named_once() {
        let words = format!("room !a:b\nm1 08:00 {BOB} (to you): one\nm2 08:00 {ALICE} (to you): two");
        check(
            &[&words],
            &[
                "I heard you, Bob: \"one\"; I heard you, Alice: \"two\" — I am a scripted stand-in, not a model.",
            ],
        );
    }

    #[test]
    fn each_room_gets_its_own_say() {
        let words = format!(
            "room \"#a:b\"\nm1 08:00 {BOB} (to you): one\nroom \"#c:b\" !c:b\nm2 08:00 {ALICE} (to you): two"
        );
        let says = says(&[&words]);
        let rooms: Vec<_> = says.iter().map(|(_, room)| room.as_deref()).collect();
        assert_eq!(rooms, [Some("#a:b"), Some("!c:b")]);
        assert!(says[0].0.contains("one") && !says[0].0.contains("two"));
    }

    const ASKED: &str =
        "room !a:b\nm9 08:00 \"Alice\" <@alice:hs.test> (to you): Eir, What did I SAY before?";

    #[test]
    fn it_quotes_the_sender_from_earlier_in_the_session() {
        let cat = format!("room !a:b\nm1 08:00 {ALICE}: my cat is Tom\nm2 08:00 {BOB}: my dog is Rex");
        check(
            &[&cat, "(retry)", ASKED],
            &["Before that you said, Alice: \"my cat is Tom\" — I am a scripted stand-in, not a model."],
        );
        check(
            &[ASKED],
            &["You said nothing here before in this session, Alice — I am a scripted stand-in, not a model."],
        );
    }

    #[test]
    fn it_never_quotes_from_another_room_or_what_was_taken_back() {
        let elsewhere = format!("room !dm:b\nm1 08:00 {ALICE} (to you): a secret");
        let nothing =
            "You said nothing here before in this session, Alice — I am a scripted stand-in, not a model.";
        check(&[&elsewhere, ASKED], &[nothing]);
        let said = format!("room !a:b\nm1 08:00 {ALICE} (to you): a slip");
        let taken_back = format!("room !a:b\nm2 08:00 {ALICE} (took back m1):");
        check(&[&said, &taken_back, ASKED], &[nothing]);
    }

    #[test]
    fn asked_to_remember_she_does_and_recites_it_in_the_same_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::create(&dir.path().join("session.jsonl")).unwrap();
        let told = format!("room !a:b\nm1 08:00 {ALICE} (to you): Eir, Remember that my cat is Tom");
        record.heard(line(0), &told).unwrap();
        let reply: Value = serde_json::from_str(&reply(&record, &[], line(0))).unwrap();
        let expect = json!([{"text": "my cat is Tom", "about": ["@alice:hs.test"], "salience": 0.5}]);
        assert_eq!(reply["remember"], expect);
        let ask = |room: &str| format!("room {room}\nm2 08:00 {ALICE} (to you): what do you remember?");
        let reminded = format!(
            "# you remember\nn1 08:00 (in register x): her dog is Rex\n# mail for you\n{}",
            ask("!a:b")
        );
        check(
            &[&told, &reminded],
            &[
                "I remember, Alice: \"her dog is Rex\", \"my cat is Tom\" — I am a scripted stand-in, not a model.",
            ],
        );
        check(
            &[&told, &ask("!c:b")],
            &["I remember nothing here, Alice — I am a scripted stand-in, not a model."],
        );
    }

    #[test]
    fn asked_for_help_it_says_how_to_use_it() {
        for asked in ["help", "Eir: help!", "please help Eir", "well, who are you?"] {
            let says = says(&[&format!("room !a:b\nm1 08:00 {ALICE} (to you): {asked}")]);
            assert!(says[0].0.contains(HELP) && says[0].0.ends_with("not a model."), "{asked}: {says:?}");
        }
        let says = says(&[&format!("room !a:b\nm1 08:00 {ALICE} (to you): I will help you carry it")]);
        assert!(!says[0].0.contains(HELP));
    }

    #[test]
    fn a_retry_answers_the_mail_of_the_attempt_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::create(&dir.path().join("session.jsonl")).unwrap();
        record.heard(line(0), &format!("room !a:b\nm1 08:00 {ALICE} (to you): old")).unwrap();
        record.heard(line(1), &format!("room !a:b\nm2 08:00 {ALICE} (to you): hello")).unwrap();
        record.heard(line(2), "(retry)").unwrap();
        let reply = reply(&record, &[line(1)], line(2));
        assert!(reply.contains("hello") && !reply.contains("old"), "{reply}");
    }

    #[test]
    fn a_long_message_is_quoted_in_part() {
        let words = format!("room !a:b\nm1 08:00 {ALICE} (to you): {}", "ü".repeat(500));
        let says = says(&[&words]);
        assert!(says[0].0.contains(&format!("\"{}…\"", "ü".repeat(QUOTE))), "{says:?}");
    }
}
