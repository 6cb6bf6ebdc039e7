//! What she asked to be reminded of, between the header and the mail.

use super::render::{lines, register, room_label};
use super::{Surroundings, clean, time};
use crate::conversation::ids::Lane;
use crate::conversation::reminder::Reminder;

/// Renders those that are due, a line each, and the others that are open on one line.
pub(super) fn block(surroundings: &Surroundings) -> String {
    let due = surroundings.reminders.iter().map(|reminder| {
        let room = reminder.remind.room.as_ref();
        let about = room.map(|room| format!("; about {}", room_label(room, surroundings)));
        let (label, set) = (reminder.number, time::full(reminder.set));
        let head = format!("reminder {label} (you set it {set}{}):", about.unwrap_or_default());
        lines(&head, &reminder.remind.text)
    });
    let due: String = due.collect();
    if surroundings.agenda.is_empty() {
        return due;
    }
    let open = surroundings.agenda.iter().map(|reminder| {
        let text = clean::quoted(&clean::one_line(&reminder.remind.text));
        format!("{} at {} {text}", reminder.number, time::full(reminder.remind.due))
    });
    format!("{due}\n# open reminders of yours here: {}", open.collect::<Vec<_>>().join("; "))
}

/// A reminder as operators read it, on one line.
pub fn reminder_line(reminder: &Reminder) -> String {
    let place = match &reminder.lane {
        Lane::Direct(room) => format!("the direct room {room}"),
        Lane::Register(name) => register(name),
    };
    let (label, due, set) = (reminder.number, time::full(reminder.remind.due), time::full(reminder.set));
    format!("{label} {due} UTC (in {place}; set {set}): {}", clean::one_line(&reminder.remind.text))
}
