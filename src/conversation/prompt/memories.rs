//! What she is reminded of, before the mail.

use super::render::lines;
use super::{clean, render, time};
use crate::conversation::ids::{Lane, Millis};
use crate::conversation::memory::{Memory, Task};

/// The line before memories.
pub(super) const HEADER: &str = "# you remember";

/// Renders memories with the line before them and a break behind; nothing where there are none.
pub(super) fn block(memories: &[Memory], now: Millis) -> String {
    if memories.is_empty() {
        return String::new();
    }
    let lines: String = memories.iter().map(|memory| line(memory, now)).collect();
    format!("{HEADER}{lines}\n")
}

/// A memory as she and operators read it, its further lines prefixed.
pub fn memory_line(memory: &Memory, now: Millis) -> String {
    line(memory, now).trim_start_matches('\n').to_owned()
}

fn line(memory: &Memory, now: Millis) -> String {
    let (kept, origin) = (&memory.kept, &memory.origin);
    let mut marks = Vec::new();
    marks.extend(kept.task.map(|task| match task {
        Task::Open => "task".to_owned(),
        Task::Done => "done".to_owned(),
    }));
    marks.push(match &origin.lane {
        Lane::Direct(_) => "in a direct room".to_owned(),
        Lane::Register(name) => format!("in {}", render::register(name)),
    });
    let people = kept.people.iter().map(|person| format!("<{}>", clean::id(person.as_str())));
    let topics = kept.topics.iter().map(|topic| clean::quoted(&clean::one_line(topic)));
    let about: Vec<String> = people.chain(topics).collect();
    if !about.is_empty() {
        marks.push(format!("about {}", about.join(", ")));
    }
    let head = format!("{} {} ({}):", memory.number, time::short(origin.at, now), marks.join("; "));
    lines(&head, &kept.text)
}
