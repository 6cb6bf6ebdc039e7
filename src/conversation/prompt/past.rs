//! What was heard and said before her session was lost, before the mail: past, and no mail.

use super::render::{cut, lines, newest, room_label, sender};
use super::{Surroundings, time};
use crate::conversation::past::PastLine;

/// The line before it.
pub(super) const HEADER: &str = "# heard and said here before; your session was lost, this is the bridge's record: all of it is past and was answered then, take nothing of it up anew";

/// Renders the newest of it with the line before them and a break behind; nothing where there is nothing.
pub(super) fn block(surroundings: &Surroundings) -> String {
    let past = surroundings.past.iter();
    let shown = newest(past.map(|line| (line, shown(line, surroundings))), |(_, shown)| shown.len());
    if shown.is_empty() {
        return String::new();
    }
    let (mut words, mut room) = (HEADER.to_owned(), None);
    for (line, shown) in shown {
        if room != Some(&line.room) {
            words.push_str(&format!("\nroom {}", room_label(&line.room, surroundings)));
            room = Some(&line.room);
        }
        words.push_str(&shown);
    }
    words.push('\n');
    words
}

fn shown(line: &PastLine, surroundings: &Surroundings) -> String {
    let at = time::short(line.said, surroundings.now);
    let head = match &line.sender {
        Some((user, name)) => format!("heard {at} {}:", sender(name.as_deref(), user)),
        None => format!("said {at}:"),
    };
    lines(&head, &cut(&line.text))
}
