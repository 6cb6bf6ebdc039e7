//! How an attempt at a turn ends and what follows from it: the ladder of retries, with all its values.
//!
//! It never waits and never counts by itself: what went wrong before is an argument, and what is to be written down
//! comes back with the verdict. A new kind of ending is one variant and one rung; every rung must either lead out
//! within a bounded number of attempts or wait with a capped delay.

use std::time::Duration;

use super::session::Reason;

/// How one attempt at a turn ended, as the mind's typed fields say.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// She answered; the reply is the JSON text of her structured output.
    Answered {
        /// The structured output, as JSON text.
        reply: String,
    },
    /// It may work later: 429, 5xx, network, timeout, plan limit.
    Transient {
        /// A fixed phrase, never model or user text.
        reason: String,
        /// The delay the API asked for.
        retry_after: Option<Duration>,
    },
    /// It will not work as it is: refusal, 400, 404, 413, limits of output, turns or retries.
    Final {
        /// A fixed phrase.
        reason: String,
    },
    /// The API refuses the request as it is (400), which it may do because of what stands in the session.
    Rejected {
        /// A fixed phrase.
        reason: String,
    },
    /// There is a result without a usable structured output.
    Invalid {
        /// The fault, as it is told to her.
        fault: String,
    },
    /// The process was lost, silent or stopped in the middle; the same line is to be fed again.
    Lost {
        /// A fixed phrase.
        reason: String,
    },
    /// The line stands in the session without an answer and will not be run again; another is to ask for it.
    Stranded,
    /// The process ended by itself after it had heard the line.
    Died {
        /// A fixed phrase.
        reason: String,
    },
    /// The account cannot ask: 401, 403, billing.
    Refused {
        /// A fixed phrase.
        reason: String,
    },
    /// The prompt does not fit the window any more.
    TooLong,
    /// The session is spoilt, by the CLI or by what stands in its file, and must not be used again.
    Poisoned {
        /// A fixed phrase.
        reason: String,
    },
    /// The session is gone.
    SessionGone {
        /// A fixed phrase.
        reason: String,
    },
    /// It was only to be settled, and no reply to it stands in the session's file: nobody was asked.
    Unsettled {
        /// Why the session is not asked any more.
        why: Reason,
    },
}

impl Ending {
    /// Whether a session that is given up for it is lost: nothing was settled in it, and nobody chose its end.
    pub fn loses_session(&self) -> bool {
        match self {
            Self::SessionGone { .. }
            | Self::Poisoned { .. }
            | Self::Died { .. }
            | Self::Final { .. }
            | Self::Rejected { .. } => true,
            Self::Answered { .. }
            | Self::Transient { .. }
            | Self::Invalid { .. }
            | Self::Lost { .. }
            | Self::Stranded
            | Self::Refused { .. }
            | Self::TooLong
            | Self::Unsettled { .. } => false,
        }
    }
}

/// What went wrong with a turn so far, written down with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Transient endings since the last that was neither transient nor lost.
    pub transient: u32,
    /// Lost and stranded endings since the last that was neither of these nor transient.
    pub lost: u32,
    /// Deaths in this generation since the API last gave an ending.
    pub deaths: u32,
    /// Final endings in this generation; one that was begun for finals starts with its one repeat used up.
    pub finals: u32,
    /// Invalid replies in this generation.
    pub invalid: u32,
    /// Generations that were begun for this turn.
    pub generations: u32,
    /// Whether its one message is shown in part, since it is too long by itself.
    pub tight: bool,
    /// The fault line that the next attempt feeds instead of `(retry)`.
    pub fault: Option<String>,
}

/// What to do about an ending.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Commit the reply.
    Commit {
        /// The structured output, as JSON text.
        reply: String,
    },
    /// Write the next attempt and feed it after the delay.
    Again {
        /// How long to wait first.
        after: Duration,
        /// The troubles to write down with it.
        troubles: Troubles,
    },
    /// Feed the same line again after the delay.
    Same {
        /// How long to wait first.
        after: Duration,
        /// The troubles to write down with it.
        troubles: Troubles,
    },
    /// Begin the next generation and feed the whole batch there.
    NewGeneration {
        /// Why, by name.
        why: Reason,
        /// Why, for operators.
        reason: String,
        /// The troubles to write down with it.
        troubles: Troubles,
        /// Whether the file of the old one is not to be trusted any more.
        spoilt: bool,
    },
    /// Go on in the next generation with the part of this mail that [`shorter`] gives, and the rest in later turns; with one
    /// message alone, show it in part as [`tighter`] says; where that was done, put it aside.
    Shorten {
        /// Why, for operators.
        reason: String,
    },
    /// Put this mail aside with its reason; later mail goes on.
    Hold {
        /// Why, for operators.
        reason: String,
        /// Whether the session's file is not to be trusted any more, so that later mail goes to the next generation.
        spoilt: bool,
    },
    /// Stop asking until an operator has mended it; the turn stays open.
    StopAsking {
        /// Why, for operators and /ready.
        reason: String,
    },
}

/// The first wait after a transient ending; it doubles with each further one.
pub const TRANSIENT_FIRST: Duration = Duration::from_secs(2);
/// The longest wait after a transient ending, unless the API asked for more.
pub const TRANSIENT_CAP: Duration = Duration::from_secs(600);
/// The longest delay that is taken from the API: a weekly limit's.
pub const RETRY_AFTER_CAP: Duration = Duration::from_secs(7 * 24 * 3600);
/// The wait after the second lost ending (there is none after the first); it doubles with each further one.
pub const LOST_FIRST: Duration = Duration::from_secs(1);
/// The longest wait after a lost ending.
pub const LOST_CAP: Duration = Duration::from_secs(60);
/// The wait before a final ending is tried once more.
pub const FINAL_PAUSE: Duration = Duration::from_secs(1);
/// How often a final ending is tried once more in a generation that was not begun for finals.
pub const FINAL_REPEATS: u32 = 1;
/// So many deaths at one line speak against the session, and in the next one against the line.
pub const DEATHS: u32 = 5;
/// How often a generation is told its fault.
pub const INVALID_REPEATS: u32 = 2;
/// How many generations are begun for one turn because its session was gone.
pub const GONE_GENERATIONS: u32 = 3;

/// Decides what follows from an ending, given what went wrong with this turn before.
///
/// | ending | verdict |
/// |---|---|
/// | answered | commit |
/// | transient | again after the larger of what the API asked (at most 7 days) and 2, 4, 8 … 600 s; for ever |
/// | lost | the same line after 0, 1, 2, 4 … 60 s; for ever |
/// | stranded | again after 0, 1, 2, 4 … 60 s, counted with the lost; for ever |
/// | died | like lost, but at the fifth death a new generation; at its fifth, hold |
/// | final, rejected | again after 1 s; then a new generation; then hold |
/// | poisoned | a new generation; then hold |
/// | invalid | again at once with the fault, twice; then a new generation; there twice more; then hold |
/// | too long | a new generation; then half of its mail in a new generation, and so on; one message alone: in part; then hold |
/// | session gone | a new generation, at most three for a turn; then hold |
/// | unsettled | a new generation, which counts for none of these |
/// | refused | stop asking; the turn stays open |
///
/// Final, invalid and too long lead to a new generation only where none was begun for this turn: what fails in a
/// fresh session would fail in the next one too.
pub fn verdict(ending: Ending, before: &Troubles) -> Verdict {
    match ending {
        Ending::Answered { reply } => Verdict::Commit { reply },
        Ending::Transient { reason: _, retry_after } => transient(retry_after, before),
        Ending::Final { reason } => final_ending(reason, before, false),
        Ending::Rejected { reason } => final_ending(reason, before, true),
        Ending::Invalid { fault } => invalid(fault, before),
        Ending::Lost { reason: _ } => lost(before),
        Ending::Stranded => stranded(before),
        Ending::Died { reason } => died(reason, before),
        Ending::Poisoned { reason } => {
            Fresh { spoilt: true, ..Fresh::of(Reason::Poisoned) }.or_hold(reason, before)
        }
        Ending::Refused { reason } => Verdict::StopAsking { reason },
        Ending::TooLong => too_long(before),
        Ending::SessionGone { reason } => {
            Fresh { most: GONE_GENERATIONS, ..Fresh::of(Reason::Gone) }.or_hold(reason, before)
        }
        Ending::Unsettled { why } => unsettled(why, before),
    }
}

/// The wait after a transient ending when `before` of them came before it.
pub fn transient_backoff(before: u32) -> Duration {
    doubled(TRANSIENT_FIRST, before, TRANSIENT_CAP)
}

/// The wait after a lost ending when `before` of them came before it.
pub fn lost_backoff(before: u32) -> Duration {
    before.checked_sub(1).map_or(Duration::ZERO, |doublings| doubled(LOST_FIRST, doublings, LOST_CAP))
}

/// `first`, doubled so often, at most `cap`.
pub fn doubled(first: Duration, doublings: u32, cap: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(doublings)).min(cap)
}

fn transient(retry_after: Option<Duration>, before: &Troubles) -> Verdict {
    let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_CAP);
    let after = asked.max(transient_backoff(before.transient));
    Verdict::Again {
        after,
        troubles: Troubles { transient: before.transient.saturating_add(1), deaths: 0, ..before.clone() },
    }
}

fn lost(before: &Troubles) -> Verdict {
    Verdict::Same { after: lost_backoff(before.lost), troubles: lost_once_more(before) }
}

fn stranded(before: &Troubles) -> Verdict {
    Verdict::Again { after: lost_backoff(before.lost), troubles: lost_once_more(before) }
}

fn lost_once_more(before: &Troubles) -> Troubles {
    Troubles { lost: before.lost.saturating_add(1), ..before.clone() }
}

fn died(reason: String, before: &Troubles) -> Verdict {
    let (deaths, lost) = (before.deaths.saturating_add(1), before.lost.saturating_add(1));
    if deaths >= DEATHS {
        // The waits go on growing: it may be the host's fault.
        let troubles = Troubles { lost, ..Troubles::default() };
        return Fresh { spoilt: true, troubles, ..Fresh::of(Reason::Died) }.or_hold(reason, before);
    }
    let troubles = Troubles { deaths, lost, ..before.clone() };
    Verdict::Same { after: lost_backoff(before.lost), troubles }
}

fn final_ending(reason: String, before: &Troubles, spoilt: bool) -> Verdict {
    if before.finals >= FINAL_REPEATS {
        let troubles = Troubles { finals: FINAL_REPEATS, ..Troubles::default() };
        let why = if spoilt { Reason::Rejected } else { Reason::Final };
        return Fresh { spoilt, troubles, ..Fresh::of(why) }.or_hold(reason, before);
    }
    let troubles = Troubles { finals: before.finals + 1, transient: 0, lost: 0, deaths: 0, ..before.clone() };
    Verdict::Again { after: FINAL_PAUSE, troubles }
}

fn invalid(fault: String, before: &Troubles) -> Verdict {
    if before.invalid >= INVALID_REPEATS {
        // The fault quotes what she wrote; operators need not read that.
        let reason = "she gave no reply that can be used".to_owned();
        return Fresh::of(Reason::Invalid).or_hold(reason, before);
    }
    let (invalid, fault) = (before.invalid + 1, Some(fault));
    let troubles = Troubles { invalid, fault, transient: 0, lost: 0, deaths: 0, ..before.clone() };
    Verdict::Again { after: Duration::ZERO, troubles }
}

fn too_long(before: &Troubles) -> Verdict {
    let reason = "the prompt is too long".to_owned();
    match before.generations {
        0 => Fresh::of(Reason::TooLong).or_hold(reason, before),
        1.. => Verdict::Shorten { reason },
    }
}

/// The part of a turn's mail that is tried alone where all of it was too long for a fresh session: the older half. None
/// where it is one message. What is left climbs a ladder of its own, with one generation used up.
pub fn shorter(seqs: &[u64]) -> Option<(Vec<u64>, Troubles)> {
    let half = seqs[..seqs.len().div_ceil(2)].to_vec();
    (seqs.len() > 1).then(|| (half, Troubles { generations: 1, ..Troubles::default() }))
}

/// How one message goes on that alone was too long for a fresh session, of so many bytes where `most` are shown of such: in
/// part, once. None where that would not make it shorter.
pub fn tighter(before: &Troubles, bytes: usize, most: usize) -> Option<Troubles> {
    let troubles = Troubles { generations: 1, tight: true, ..Troubles::default() };
    (!before.tight && bytes > most).then_some(troubles)
}

/// Nobody was asked, so the waits go on and no generation is used up. It comes again only after the next one has waited so
/// long that it is not asked either.
fn unsettled(why: Reason, before: &Troubles) -> Verdict {
    let Troubles { transient, lost, generations, tight, .. } = *before;
    let troubles = Troubles { transient, lost, generations, tight, ..Troubles::default() };
    Verdict::NewGeneration { why, reason: why.name().to_owned(), troubles, spoilt: false }
}

/// How a new generation is begun, where one may be.
struct Fresh {
    /// Why, by name.
    why: Reason,
    /// How many may be begun for one turn.
    most: u32,
    /// Whether the file of the session before is not to be trusted.
    spoilt: bool,
    /// What is counted in it from the start; its number is filled in.
    troubles: Troubles,
}

impl Fresh {
    fn of(why: Reason) -> Self {
        Self { why, most: 1, spoilt: false, troubles: Troubles::default() }
    }

    fn or_hold(self, reason: String, before: &Troubles) -> Verdict {
        let Self { why, most, spoilt, troubles } = self;
        if before.generations >= most {
            return Verdict::Hold { reason, spoilt };
        }
        let (generations, tight) = (before.generations + 1, before.tight);
        let troubles = Troubles { generations, tight, ..troubles };
        Verdict::NewGeneration { why, reason, troubles, spoilt }
    }
}

#[cfg(test)]
mod tests;
