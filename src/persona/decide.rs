//! The one decision: what a Persona does next, from everything that is known of her.
//!
//! It keeps no memory and reads no clock: whoever calls it again with the same situation gets the same step, so a
//! step that was lost in a crash is simply decided again. It must never wait for a time that is not ahead. A new
//! rule is one more early return in [`decide`], at the place in the order where it wins over what follows.

use std::collections::BTreeSet;
use std::time::Duration;

use ruma::{OwnedRoomId, OwnedUserId};

use super::ending::Troubles;
use super::session::Usd;
use crate::conversation::notices::News;
use crate::conversation::{Lane, LineId, Millis, TurnId};

/// Everything that bears on a Persona's next step.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The time now.
    pub now: Millis,
    /// Whether the service is stopping.
    pub shutting_down: bool,
    /// Whether a stopping service has waited long enough for the line that is being thought about.
    pub grace_over: bool,
    /// Whether somebody (an operator's brake, a refused account) has stopped the asking.
    pub held: Option<Hold>,
    /// Her mind.
    pub mind: MindState,
    /// Her open turn.
    pub open_turn: Option<OpenTurn>,
    /// Whether mail of the open turn is of a room in which she is stopped.
    pub stopped: bool,
    /// Mail waiting outside the open turn, a row for each lane that has any.
    pub lanes: Vec<LaneMail>,
    /// How long a room must have been quiet, and the longest wait for that.
    pub settle: Settle,
    /// Where her next reminder is told, and when it is due.
    pub reminder: Option<(Lane, Millis)>,
    /// The turn that a beat grants her, if one does.
    pub grant: Option<(Lane, Wake)>,
}

/// What stops the asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// An operator: nothing is asked until something happens, and a line in the works is ended.
    Brake,
    /// Nothing is begun or fed until that time, or until something happens; a line in the works is not touched.
    Until(Option<Millis>),
}

/// When mail that wakes her is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settle {
    /// Quiet time of the room.
    pub quiet: Duration,
    /// The longest wait since the first message that wakes her.
    pub cap: Duration,
}

/// The state of a mind as its events tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MindState {
    /// No process; the next feed starts one.
    Closed,
    /// A process waits for a line.
    Idle,
    /// A line is being thought about.
    Busy(LineId),
    /// It was told to stop and has not ended yet.
    Stopping,
    /// No process, and every place for a live one is taken by a thinking one.
    NoSlot,
    /// A process waits for a line, while as many others think as may.
    Queued,
}

/// A turn that is written down and not yet closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its id.
    pub id: TurnId,
    /// The lane of its mail.
    pub lane: Lane,
    /// What it was begun for.
    pub wake: Wake,
    /// The deliveries in it.
    pub seqs: Vec<u64>,
    /// The attempt that is written down, counted from 1.
    pub attempt: u32,
    /// Not to be fed before.
    pub not_before: Millis,
    /// As of when its words are put: fed again, they are the same, so that what a cache has of them is used.
    pub as_of: Millis,
    /// What its attempts have cost so far.
    pub spent: Usd,
    /// Why, where it is a flush: without mail, she only notes what would be lost with her session.
    pub flush: Option<String>,
    /// The numbers of her reminders that it tells.
    pub reminders: Vec<u64>,
    /// What it tells beside the mail; fed again to the same session, the same.
    pub news: Option<News>,
    /// What went wrong so far.
    pub troubles: Troubles,
}

/// What a turn is begun for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// Mail that wakes her.
    #[default]
    Mail,
    /// The beat: she hears what nobody woke her for.
    Beat,
    /// The beat, without any mail.
    Silence,
    /// A reminder of her own.
    Reminder,
}

/// Mail waiting in one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMail {
    /// The lane.
    pub lane: Lane,
    /// When its oldest waiting mail was heard.
    pub oldest: Millis,
    /// When the oldest of it was heard that is worth a turn at a beat: of all but redactions.
    pub unheard: Option<Millis>,
    /// One row for each of its rooms with waiting mail that wakes her.
    pub waking: Vec<RoomMail>,
}

/// Mail that wakes her, waiting in one room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMail {
    /// The room.
    pub room: OwnedRoomId,
    /// When the first of it was heard.
    pub first: Millis,
    /// When the newest mail of any kind in that room was heard.
    pub newest: Millis,
    /// Whose mail it is that wakes her.
    pub senders: BTreeSet<OwnedUserId>,
    /// Until when one of them is believed to go on typing there.
    pub typing: Option<Millis>,
    /// When the room bears one more event of Personas, if it bears none now.
    pub full: Option<Millis>,
}

/// What she does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing until something happens, or until the time if there is one (always ahead of now).
    Sleep(Option<Millis>),
    /// Write down a turn with all waiting mail of the lane, begun for that.
    BeginTurn(Lane, Wake),
    /// Feed the open turn's current attempt.
    Feed(TurnId),
    /// Close the open turn; its mail waits again.
    PutBack(TurnId),
    /// Stop the mind.
    StopMind(Stop),
    /// All is at rest: the loop may end.
    Leave,
}

/// How a mind is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is idle: close its input and wait.
    Idle,
    /// It is busy: SIGTERM, then SIGKILL.
    Busy,
}

/// Decides the next step; level-triggered, so start-up, recovery and normal running are one path.
///
/// The rules, the first that applies wins:
/// 1. The service stops: a line in the works gets its grace, then the mind is stopped, then she leaves.
/// 2. Somebody holds her: nothing is begun or fed, and the brake ends a line in the works.
/// 3. Mail of the open turn is of a room in which she is stopped: a line in the works is ended, then the mail waits again, so
///    that she goes on elsewhere.
/// 4. Her mind is busy, stopping, or has no place to live or to think: an event will wake her.
/// 5. A turn is open: it is fed as soon as its time has come.
/// 6. A lane is due: a turn begins with all its mail; of several, the one whose mail is oldest.
/// 7. A reminder of hers is due: a turn begins in its lane.
/// 8. A beat grants her a turn: it begins, unless nothing waits there any more that it was for.
/// 9. Else she sleeps until the first lane or reminder is due.
pub fn decide(situation: &Situation) -> Step {
    if situation.shutting_down {
        return wind_down(situation);
    }
    if situation.stopped && situation.held != Some(Hold::Brake) {
        match (&situation.mind, &situation.open_turn) {
            (MindState::Busy(_), Some(_)) => return Step::StopMind(Stop::Busy),
            (MindState::Closed | MindState::Idle | MindState::NoSlot | MindState::Queued, Some(turn)) => {
                return Step::PutBack(turn.id);
            }
            (MindState::Stopping, _) | (_, None) => {}
        }
    }
    match (&situation.mind, situation.held) {
        (MindState::Busy(_), Some(Hold::Brake)) => return Step::StopMind(Stop::Busy),
        (MindState::Busy(_) | MindState::Stopping | MindState::NoSlot | MindState::Queued, _)
        | (_, Some(Hold::Brake)) => return Step::Sleep(None),
        (MindState::Closed | MindState::Idle, Some(Hold::Until(until))) => {
            if until.is_none_or(|until| until > situation.now) {
                return Step::Sleep(until);
            }
        }
        (MindState::Closed | MindState::Idle, None) => {}
    }
    match &situation.open_turn {
        Some(turn) if turn.not_before > situation.now => Step::Sleep(Some(turn.not_before)),
        Some(turn) => Step::Feed(turn.id),
        None => begin(situation),
    }
}

fn wind_down(situation: &Situation) -> Step {
    match situation.mind {
        MindState::Busy(_) if situation.grace_over => Step::StopMind(Stop::Busy),
        MindState::Busy(_) | MindState::Stopping => Step::Sleep(None),
        MindState::Idle | MindState::Queued => Step::StopMind(Stop::Idle),
        MindState::Closed | MindState::NoSlot => Step::Leave,
    }
}

fn begin(situation: &Situation) -> Step {
    let now = situation.now;
    let dues =
        || situation.lanes.iter().filter_map(|mail| Some((mail, lane_due(mail, now, situation.settle)?)));
    let ready = dues().filter(|(_, due)| *due <= now).map(|(mail, _)| mail);
    if let Some(mail) = ready.min_by_key(|mail| (mail.oldest, &mail.lane)) {
        return Step::BeginTurn(mail.lane.clone(), Wake::Mail);
    }
    let reminder = situation.reminder.as_ref();
    if let Some((lane, _)) = reminder.filter(|(_, due)| *due <= now) {
        return Step::BeginTurn(lane.clone(), Wake::Reminder);
    }
    match granted(situation) {
        Some((lane, wake)) => Step::BeginTurn(lane.clone(), wake),
        None => Step::Sleep(dues().map(|(_, due)| due).chain(reminder.map(|(_, due)| *due)).min()),
    }
}

/// The turn that a beat grants, while there is a cause for it.
fn granted(situation: &Situation) -> Option<(&Lane, Wake)> {
    let (lane, wake) = situation.grant.as_ref()?;
    let waits = situation.lanes.iter().any(|mail| mail.lane == *lane && mail.unheard.is_some());
    (*wake == Wake::Silence || waits).then_some((lane, *wake))
}

/// When the lane is due: as soon as one of its rooms is; never while it has no mail that wakes her.
fn lane_due(mail: &LaneMail, now: Millis, settle: Settle) -> Option<Millis> {
    mail.waking.iter().map(|room| room_due(room, now, settle)).min()
}

/// When the room is due: once it is quiet and no sender of such mail goes on typing, at the latest `cap` after its first message that wakes her.
///
/// Mail from the future means that the clock was set back; it is due at once, so that no one waits for the old time. Never
/// while the room is full.
fn room_due(room: &RoomMail, now: Millis, settle: Settle) -> Millis {
    let full = room.full.unwrap_or_default();
    if room.first > now {
        return now.max(full);
    }
    let quiet = room.newest.plus(settle.quiet).max(room.typing.unwrap_or_default());
    quiet.min(room.first.plus(settle.cap)).max(full)
}

#[cfg(test)]
mod tests;
