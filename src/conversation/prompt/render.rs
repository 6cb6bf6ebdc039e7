//! A batch as one text block.

use std::borrow::Cow;

use ruma::{OwnedRoomId, RoomId};

use super::mark::{Labels, marks};
use super::{ContextLine, OLD, OVERTAKEN, SEAM, Surroundings, clean, memories, past, reminders, time, trim};
use crate::conversation::batch::{Batch, Delivery};
use crate::conversation::ids::{Lane, Millis, RegisterName};

/// The most earlier messages shown of a room.
const CONTEXT_LINES: usize = 20;

/// The most bytes of earlier messages shown of a room.
const CONTEXT_BYTES: usize = 16 * 1024;

/// The most bytes of one earlier message's text; mail is never cut.
const CONTEXT_TEXT: usize = 2 * 1024;

/// Renders a batch as one text block that begins with a line of the bridge (so never with `/`); withdrawn mail is left out.
///
/// What she is reminded of comes first, then what was said before her session was lost, then the mail. Rooms stand in the
/// order of their first mail. Earlier lines are shown only of rooms that have mail in the batch, so that no other lane's words
/// come in by them.
pub fn render(batch: &Batch, surroundings: &Surroundings) -> String {
    let labels = Labels::new(batch, &surroundings.labels);
    let rooms = by_room(batch);
    let mut words = String::new();
    if surroundings.begins_anew {
        words.push_str(SEAM);
        words.push('\n');
    }
    words.push_str(&memories::block(&surroundings.memories, surroundings.now));
    words.push_str(&past::block(surroundings));
    let header = match (surroundings.scheduled, rooms.is_empty() && !surroundings.reminders.is_empty()) {
        (true, _) => scheduled,
        (false, true) => reminded,
        (false, false) => header,
    };
    words.push_str(&header(batch, rooms.len(), surroundings.now));
    if batch.shown().any(|delivery| may_be_overtaken(delivery, surroundings.now)) {
        words.push('\n');
        words.push_str(OVERTAKEN);
    }
    for notice in &surroundings.notices {
        words.push_str(&format!("\n# {}", clean::one_line(notice)));
    }
    words.push_str(&reminders::block(surroundings));
    for (room, deliveries) in rooms {
        words.push_str(&format!("\nroom {}", room_label(room, surroundings)));
        let context = surroundings.context.get(room).map_or(&[][..], Vec::as_slice);
        let shown = context.iter().map(|line| earlier(line, surroundings.now));
        words.extend(newest(shown, String::len));
        for delivery in deliveries {
            words.push_str(&message(delivery, &labels, surroundings));
        }
    }
    words
}

fn may_be_overtaken(delivery: &Delivery, now: Millis) -> bool {
    delivery.addressed && time::known(delivery.said) && now.since(delivery.said) >= OLD
}

fn by_room(batch: &Batch) -> Vec<(&OwnedRoomId, Vec<&Delivery>)> {
    let mut rooms: Vec<(&OwnedRoomId, Vec<&Delivery>)> = Vec::new();
    for delivery in batch.shown() {
        match rooms.iter_mut().find(|(room, _)| **room == delivery.room) {
            Some((_, deliveries)) => deliveries.push(delivery),
            None => rooms.push((&delivery.room, vec![delivery])),
        }
    }
    rooms
}

/// How a register is called.
pub(super) fn register(name: &RegisterName) -> String {
    format!("register {}", clean::one_line(name.as_str()))
}

fn header(batch: &Batch, rooms: usize, now: Millis) -> String {
    let new = batch.shown().count();
    let (place, spread) = match &batch.lane {
        Lane::Direct(_) => ("a direct room".to_owned(), String::new()),
        Lane::Register(name) => {
            let spread = format!(" in {rooms} {}", if rooms == 1 { "room" } else { "rooms" });
            (register(name), spread)
        }
    };
    format!("# mail for you in {place}: {new} new{spread}, now {} UTC", time::full(now))
}

/// The line of a turn without mail.
fn scheduled(batch: &Batch, _: usize, now: Millis) -> String {
    format!("# a scheduled wake: nothing new was said in {}, now {} UTC", place(batch), time::full(now))
}

/// The line of a turn without mail in which she is reminded of something.
fn reminded(batch: &Batch, _: usize, now: Millis) -> String {
    format!("# a reminder of yours: nothing new was said in {}, now {} UTC", place(batch), time::full(now))
}

fn place(batch: &Batch) -> String {
    match &batch.lane {
        Lane::Direct(_) => "this direct room".to_owned(),
        Lane::Register(name) => register(name),
    }
}

/// The room's label, with its id where two rooms bear the same, or its id alone where it has none.
pub(super) fn room_label(room: &RoomId, surroundings: &Surroundings) -> String {
    let label =
        |id: &RoomId| surroundings.rooms.get(id).map(|label| clean::one_line(label)).unwrap_or_default();
    let own = label(room);
    let is_shared = surroundings.rooms.keys().filter(|other| label(other) == own).count() > 1;
    clean::room(&own, room, is_shared)
}

fn message(delivery: &Delivery, labels: &Labels<'_>, surroundings: &Surroundings) -> String {
    let mut marks = marks(delivery, labels);
    let part = surroundings.trims(delivery).map(|over| trim::trimmed(&delivery.text, over));
    let how = if surroundings.tight { "too long to be shown" } else { "in part" };
    marks.extend(part.as_ref().map(|(_, left_out)| format!("{how}, {left_out} characters left out")));
    let is_whole = !surroundings.tight && surroundings.whole.contains(&delivery.seq);
    marks.extend(is_whole.then(|| "in whole".to_owned()));
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join("; ")) };
    let head = format!(
        "m{} {} {}{marks}:",
        delivery.seq,
        time::short(delivery.said, surroundings.now),
        sender(delivery.sender_name.as_deref(), &delivery.sender),
    );
    lines(&head, part.as_ref().map_or(&delivery.text, |(text, _)| text))
}

/// A user as she is shown: her name in quotes, and her id.
pub(in crate::conversation) fn sender(name: Option<&str>, user: &ruma::UserId) -> String {
    let id = clean::id(user.as_str());
    match name.and_then(clean::name) {
        Some(name) => format!("{} <{id}>", clean::quoted(&name)),
        None => format!("<{id}>"),
    }
}

/// A text behind its head; each further line of it is prefixed.
pub(super) fn lines(head: &str, text: &str) -> String {
    let mut shown = String::with_capacity(head.len() + text.len() + 8);
    for (number, line) in clean::lines(text).enumerate() {
        shown.push('\n');
        shown.push_str(if number == 0 { head } else { "|" });
        if !line.is_empty() {
            shown.push(' ');
            shown.push_str(&line);
        }
    }
    shown
}

/// The newest of some earlier messages within the limits, oldest first.
pub(super) fn newest<T>(shown: impl DoubleEndedIterator<Item = T>, length: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = CONTEXT_BYTES;
    let fitting = shown.rev().take(CONTEXT_LINES).map_while(|shown| {
        left = left.checked_sub(length(&shown))?;
        Some(shown)
    });
    let mut kept: Vec<T> = fitting.collect();
    kept.reverse();
    kept
}

fn earlier(line: &ContextLine, now: Millis) -> String {
    let head = format!(
        "earlier {} {}:",
        time::short(line.said, now),
        sender(line.sender_name.as_deref(), &line.sender)
    );
    lines(&head, &cut(&line.text))
}

/// As much of an earlier message as is shown.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    let cut = text.floor_char_boundary(CONTEXT_TEXT);
    if cut == text.len() { text.into() } else { format!("{}…", &text[..cut]).into() }
}
