//! The way back from words to messages: what the form promises, written down as a reader.
//! The tests prove with it that nothing is lost or forged.

use super::SEAM;

/// A message as read back from rendered words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadMessage {
    /// The rest of the room line it stands under.
    pub(crate) room: String,
    /// Its number; none for an earlier line.
    pub(crate) seq: Option<u64>,
    /// Its time as shown.
    pub(crate) time: String,
    /// The shown display name, unescaped.
    pub(crate) name: Option<String>,
    /// The sender's id as shown.
    pub(crate) sender: String,
    /// The marks in their order.
    pub(crate) marks: Vec<String>,
    /// The text, its breaks as `\n`.
    pub(crate) text: String,
}

/// A memory as read back: its label, its marks, and its text with breaks as `\n`.
pub(crate) type ReadMemory = (String, String, String);

/// Reads the memories that stand before the mail, behind the seam where there is one, and the rest of the words.
pub(crate) fn read_memories(words: &str) -> (Vec<ReadMemory>, &str) {
    let words = words.strip_prefix(SEAM).and_then(|rest| rest.strip_prefix('\n')).unwrap_or(words);
    let Some(mut rest) = words.strip_prefix("# you remember\n") else { return (Vec::new(), words) };
    let mut memories: Vec<ReadMemory> = Vec::new();
    while let Some((line, after)) = rest.split_once('\n').filter(|(line, _)| !line.starts_with('#')) {
        if let (Some(more), Some((_, _, text))) = (line.strip_prefix('|'), memories.last_mut()) {
            text.push('\n');
            text.push_str(more.strip_prefix(' ').unwrap_or(more));
        } else {
            memories.extend(memory(line));
        }
        rest = after;
    }
    (memories, rest)
}

/// `n3 09:00 (in register swarm; about "a):b"): text`
fn memory(line: &str) -> Option<ReadMemory> {
    let (head, rest) = line.split_once(" (")?;
    let (label, _time) = head.split_once(' ')?;
    // A name in quotes, or an id in its brackets, may hold what would end the marks.
    let (mut inside, mut escaped) = (None, false);
    let end = rest.char_indices().find_map(|(at, c)| {
        match (inside, c) {
            (None, '"') => inside = Some('"'),
            (None, '<') => inside = Some('>'),
            (None, ')') => return Some(at),
            (Some(closes), c) if c == closes && !escaped => inside = None,
            _ => {}
        }
        escaped = inside == Some('"') && c == '\\' && !escaped;
        None
    })?;
    let text = rest[end..].strip_prefix("):")?;
    Some((label.to_owned(), rest[..end].to_owned(), text.strip_prefix(' ').unwrap_or(text).to_owned()))
}

/// Passes over what was said before her session was lost.
fn after_past(words: &str) -> &str {
    let Some(rest) = words.strip_prefix(super::past::HEADER) else { return words };
    rest.find("\n#").map_or("", |end| &rest[end + 1..])
}

/// Reads rendered words back: the header line of the mail, and all messages in their order.
///
/// Lines that the renderer does not write are passed over.
pub(crate) fn read_back(words: &str) -> (&str, Vec<ReadMessage>) {
    let mail = after_past(read_memories(words).1);
    let (header, body) = mail.split_once('\n').unwrap_or((mail, ""));
    let mut room = "";
    let mut messages: Vec<ReadMessage> = Vec::new();
    for line in body.split('\n') {
        if let Some(more) = line.strip_prefix('|') {
            if let Some(message) = messages.last_mut() {
                message.text.push('\n');
                message.text.push_str(more.strip_prefix(' ').unwrap_or(more));
            }
        } else if let Some(label) = line.strip_prefix("room ") {
            room = label;
        } else {
            messages.extend(first_line(line, room));
        }
    }
    (header, messages)
}

fn first_line(line: &str, room: &str) -> Option<ReadMessage> {
    let (label, rest) = line.split_once(' ')?;
    let seq = match label {
        "earlier" => None,
        label => Some(label.strip_prefix('m')?.parse().ok()?),
    };
    let (time, rest) = rest.split_at(rest.find(['"', '<'])?);
    let (name, rest) = name(rest)?;
    let (sender, rest) = rest.strip_prefix('<')?.split_once('>')?;
    let (marks, rest) = match rest.strip_prefix(" (") {
        Some(rest) => rest.split_once(')')?,
        None => ("", rest),
    };
    let text = rest.strip_prefix(':')?;
    Some(ReadMessage {
        room: room.to_owned(),
        seq,
        time: time.trim_end().to_owned(),
        name,
        sender: sender.to_owned(),
        marks: marks.split("; ").filter(|mark| !mark.is_empty()).map(str::to_owned).collect(),
        text: text.strip_prefix(' ').unwrap_or(text).to_owned(),
    })
}

/// The quoted name, if one stands there, and what follows it.
fn name(rest: &str) -> Option<(Option<String>, &str)> {
    let Some(quoted) = rest.strip_prefix('"') else { return Some((None, rest)) };
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Some(name), quoted[at + 1..].strip_prefix(' ')?)),
            '\\' => name.push(chars.next()?.1),
            _ => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn foreign_lines_are_passed_over() {
        let words = "# header\n| nothing before\nhello\nm 1 <@a:b>: x\nmx 1 <@a:b>: x\nm1 09:00 @a:b: x\nm1 09:00 \"A: x";
        assert_eq!(read_back(words), ("# header", Vec::new()));
        assert_eq!(read_back("(retry)"), ("(retry)", Vec::new()));
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_panic(words in "(m1 |earlier |room |\\| |\"|\\\\|<|>|\\(|\\)|: |\n|\\PC){0,30}") {
            let (header, _) = read_back(&words);
            prop_assert!(words.starts_with(header));
            read_memories(&format!("# you remember\n{words}"));
        }
    }
}
