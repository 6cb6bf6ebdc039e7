//! What is to be done with a session: one pure function of what is known about it.
//!
//! It is asked at each turn boundary, when mail comes, and when [`next_look`] says so. It never waits and it cannot fail.
//! A new rule is one [`Reason`] and one line where its kind is decided; the order is that of the functions below.

use std::collections::BTreeSet;

use super::hazard::Gaps;
use super::ledger::margin;
use super::meter::Meter;
use super::price::{Price, Ttl, Usd};
use super::terms::{FLUSH, PING, Terms};
use crate::conversation::Millis;

/// When it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A turn has ended.
    Boundary,
    /// Nothing has come for so long that the cache is about to forget.
    IdleDeadline,
    /// Mail is about to be fed.
    Mail,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Go on as it is.
    Keep,
    /// Use the cache once, so that it stays warm.
    Ping,
    /// Let her write down what she must not forget, then ask again.
    Flush,
    /// Begin the next generation with the next mail.
    Refresh,
    /// End the process; the session goes on with the next mail.
    Close,
}

/// Why; the last ones are those of endings, of a turn that has cost too much and of the first session, which are decided
/// elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The session file cannot be trusted.
    Poisoned,
    /// She has heard what was redacted since.
    Tainted,
    /// Another version of the claude CLI.
    CliVersion,
    /// Another folder.
    Cwd,
    /// An operator said so.
    Operator,
    /// The context window is nearly full.
    Watermark,
    /// A longer prompt has a higher tariff.
    PriceStep,
    /// The cache has forgotten the session, and beginning anew writes less.
    Cold,
    /// It was begun with something else than is configured now.
    Stale,
    /// What its growth has cost has reached the price of beginning anew.
    Rental,
    /// The child uses too much memory.
    Memory,
    /// She holds open tasks that would be forgotten with the session.
    OpenTasks,
    /// A return is likely enough.
    ReturnLikely,
    /// A return is not likely enough, or not worth it.
    LetGo,
    /// Pings have cost what they could save.
    PingsSpent,
    /// All is well.
    Well,
    /// The prompt was too long for its window.
    TooLong,
    /// Its file is gone, or lacks what was said in it.
    Gone,
    /// The process died again and again at one line.
    Died,
    /// A turn failed in it for good.
    Final,
    /// The API refused what stands in it again and again.
    Rejected,
    /// No reply that can be used was given in it.
    Invalid,
    /// The turn has cost what one may.
    Budget,
    /// There was none before it.
    First,
}

/// What speaks against a session, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Its file cannot be trusted.
    Poisoned,
    /// It holds what was redacted.
    Tainted,
    /// It was begun by another version of the claude CLI.
    CliVersion,
    /// It was begun in another folder.
    Cwd,
    /// Something else that it was begun with is configured differently now.
    Stale,
}

/// What an operator asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The next generation.
    Refresh,
    /// A flush.
    Flush,
    /// To go on for as long as it can be.
    Keep,
}

/// The open tasks that she holds; once a flush was asked for they are safe, whatever came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tasks {
    /// None that is not remembered.
    #[default]
    Safe,
    /// Some are not remembered yet.
    Unremembered,
}

/// What is known about a session.
#[derive(Clone, Debug)]
pub struct Standing<'a> {
    /// The time.
    pub now: Millis,
    /// When a request last used it.
    pub used: Millis,
    /// Since when no mail has come.
    pub idle_since: Millis,
    /// How long the cache keeps it.
    pub ttl: Ttl,
    /// The model's price.
    pub price: &'a Price,
    /// Its context window as the CLI reports it, in tokens.
    pub window: u64,
    /// Its prefix (P), in tokens.
    pub prefix: u64,
    /// What the next turn is expected to add, in tokens.
    pub ahead: u64,
    /// Its meter.
    pub meter: Meter,
    /// Her gaps.
    pub gaps: &'a Gaps,
    /// The child's resident memory, in bytes; nothing without a child.
    pub rss: u64,
    /// Her open tasks.
    pub tasks: Tasks,
    /// What speaks against it.
    pub marks: BTreeSet<Mark>,
    /// What an operator asked for.
    pub word: Option<Word>,
}

/// Whether an expiring session is pinged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepWarm {
    /// Never.
    #[default]
    Off,
    /// Where her own gaps say that it pays.
    Auto,
}

/// Whether open tasks are written down before a session ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flushing {
    /// Where some are not remembered.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// When a change of what a session was begun with takes effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Apply {
    /// When the session is refreshed anyway.
    #[default]
    AtCheapPoint,
    /// At the next turn boundary.
    Now,
}

/// What becomes of a session that has heard what was taken back since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRedaction {
    /// The next one begins.
    #[default]
    Refresh,
    /// It goes on, and she is told that it was taken back.
    Note,
}

/// What the operator chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `keep_warm`
    pub keep_warm: KeepWarm,
    /// `flush`
    pub flush: Flushing,
    /// `apply`
    pub apply: Apply,
    /// `on_redaction`
    pub on_redaction: OnRedaction,
    /// How much of the window may be full, in hundredths.
    pub watermark: u64,
    /// Above this resident memory a child is closed, in bytes.
    pub recycle_rss: Option<u64>,
}

/// The part of the window that may be full, in hundredths, unless the operator chose another.
pub const WATERMARK: u64 = 75;

impl Default for Policy {
    fn default() -> Self {
        Self {
            keep_warm: KeepWarm::default(),
            flush: Flushing::default(),
            apply: Apply::default(),
            on_redaction: OnRedaction::default(),
            watermark: WATERMARK,
            recycle_rss: None,
        }
    }
}

/// Decides what is to be done with a session, and says why.
pub fn care(standing: &Standing<'_>, moment: Moment, policy: &Policy) -> (Care, Reason) {
    if let Some(decided) = stop(standing, policy) {
        return decided;
    }
    match moment {
        Moment::Boundary => {
            between_turns(standing, policy).unwrap_or_else(|| lighten(standing, policy, Reason::Well))
        }
        Moment::Mail => between_turns(standing, policy).unwrap_or((Care::Keep, Reason::Well)),
        Moment::IdleDeadline => idle(standing, policy),
    }
}

/// When to ask again at [`Moment::IdleDeadline`], if nothing else happens; none where there is nothing to decide then. A child
/// that may grow too large is looked at behind the deadline too, once a time to live.
pub fn next_look(standing: &Standing<'_>, policy: &Policy) -> Option<Millis> {
    let deadline = standing.deadline();
    let may_ping = policy.keep_warm == KeepWarm::Auto;
    let may_flush = flush_is_due(standing, policy) && standing.prefix > standing.meter.rehydrated;
    let may_grow = policy.recycle_rss.is_some() && standing.rss > 0;
    if standing.now < deadline {
        (may_ping || may_flush || may_grow).then_some(deadline)
    } else {
        may_grow.then(|| standing.now.plus(standing.ttl.duration()))
    }
}

/// Whether a session may not take a turn of `ahead` tokens where a new one might, and why.
pub fn must_end(terms: &Terms<'_>, window: u64, watermark: u64, prefix: u64, ahead: u64) -> Option<Reason> {
    if prefix <= terms.rehydrated {
        None
    } else if prefix + ahead > window / 100 * watermark {
        Some(Reason::Watermark)
    } else if terms.tariff(prefix + ahead).input > terms.tariff(terms.rehydrated + ahead).input {
        Some(Reason::PriceStep)
    } else {
        None
    }
}

/// The rules that hold at any moment.
fn stop(standing: &Standing<'_>, policy: &Policy) -> Option<(Care, Reason)> {
    let counts = |mark: &&Mark| **mark != Mark::Tainted || policy.on_redaction == OnRedaction::Refresh;
    match standing.marks.iter().find(counts) {
        Some(Mark::Poisoned) => return Some((Care::Refresh, Reason::Poisoned)),
        Some(Mark::Tainted) => return Some((Care::Refresh, Reason::Tainted)),
        Some(Mark::CliVersion) => return Some((Care::Refresh, Reason::CliVersion)),
        Some(Mark::Cwd) => return Some((Care::Refresh, Reason::Cwd)),
        Some(Mark::Stale) if policy.apply == Apply::Now => return Some(end(standing, policy, Reason::Stale)),
        Some(Mark::Stale) | None => {}
    }
    match standing.word {
        Some(Word::Refresh) => return Some(end(standing, policy, Reason::Operator)),
        Some(Word::Flush) if standing.is_warm() => return Some((Care::Flush, Reason::Operator)),
        Some(Word::Flush | Word::Keep) | None => {}
    }
    let reason =
        must_end(&standing.terms(), standing.window, policy.watermark, standing.prefix, standing.ahead)?;
    Some(end(standing, policy, reason))
}

/// The rules between two turns: cold, and rental.
fn between_turns(standing: &Standing<'_>, policy: &Policy) -> Option<(Care, Reason)> {
    let stale = standing.marks.contains(&Mark::Stale);
    if !standing.is_warm() {
        if stale {
            return Some((Care::Refresh, Reason::Stale));
        }
        return (standing.prefix > standing.meter.rehydrated).then_some((Care::Refresh, Reason::Cold));
    }
    if standing.word == Some(Word::Keep) || !rent_is_due(standing, policy) {
        return None;
    }
    Some(end(standing, policy, Reason::Rental))
}

/// Whether the rent, with that of the next turn, is more than beginning anew would cost now.
fn rent_is_due(standing: &Standing<'_>, policy: &Policy) -> bool {
    let (terms, meter) = (standing.terms(), &standing.meter);
    let next = meter.rent_of(standing.prefix, terms.tariff(standing.prefix + standing.ahead));
    let flush =
        if flush_is_due(standing, policy) { terms.warm(standing.prefix, FLUSH) } else { Usd::default() };
    next > Usd::default() && meter.rent + next > terms.rebuild() + flush
}

/// Closes a child that uses too much memory; else it is kept for this reason.
fn lighten(standing: &Standing<'_>, policy: &Policy, kept: Reason) -> (Care, Reason) {
    match policy.recycle_rss {
        Some(most) if standing.rss > most => (Care::Close, Reason::Memory),
        Some(_) | None => (Care::Keep, kept),
    }
}

/// The rules for a session that is about to be forgotten by the cache.
fn idle(standing: &Standing<'_>, policy: &Policy) -> (Care, Reason) {
    if !standing.is_warm() || standing.now < standing.deadline() {
        return lighten(standing, policy, Reason::Well);
    }
    let reason = match policy.keep_warm {
        KeepWarm::Off => Reason::LetGo,
        KeepWarm::Auto => match worth_a_ping(standing) {
            Ok(()) => return (Care::Ping, Reason::ReturnLikely),
            Err(reason) => reason,
        },
    };
    if flush_is_due(standing, policy) && standing.prefix > standing.meter.rehydrated {
        return (Care::Flush, Reason::OpenTasks);
    }
    lighten(standing, policy, reason)
}

/// A ping is worth it where its price is less than what warmth would save, times the odds of a return before the next
/// one; and only while all pings of this idle period together cost no more than that. Else why not.
fn worth_a_ping(standing: &Standing<'_>) -> Result<(), Reason> {
    let terms = standing.terms();
    let (cost, saved) = (terms.warm(standing.prefix, PING), terms.saved_by_warmth(standing.prefix));
    if standing.meter.pinged + cost > saved {
        return Err(if standing.meter.pings > 0 { Reason::PingsSpent } else { Reason::LetGo });
    }
    let idle = standing.now.since(standing.idle_since);
    let odds = standing.gaps.odds(idle, standing.ttl.duration()).ok_or(Reason::LetGo)?;
    let gain = u128::from(saved.0) * u128::from(odds.returned);
    if gain > u128::from(cost.0) * u128::from(odds.at_risk) { Ok(()) } else { Err(Reason::LetGo) }
}

/// Ends a generation, after a flush if one is due.
fn end(standing: &Standing<'_>, policy: &Policy, reason: Reason) -> (Care, Reason) {
    if flush_is_due(standing, policy) { (Care::Flush, reason) } else { (Care::Refresh, reason) }
}

/// Whether open tasks are to be written down before the session ends: never in a cold one, which would be written whole.
fn flush_is_due(standing: &Standing<'_>, policy: &Policy) -> bool {
    policy.flush == Flushing::Auto && standing.tasks == Tasks::Unremembered && standing.is_warm()
}

impl Word {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Refresh, Self::Flush, Self::Keep];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refresh => "refresh",
            Self::Flush => "flush",
            Self::Keep => "keep",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.name() == name)
    }
}

impl Standing<'_> {
    /// What its turns cost.
    pub fn terms(&self) -> Terms<'_> {
        let Meter { rehydrated, shared, .. } = self.meter;
        Terms { price: self.price, ttl: self.ttl, rehydrated, shared }
    }

    /// What a turn now saves by finding it warm: nothing where it is not.
    pub fn saved_by_warmth(&self) -> Usd {
        if self.is_warm() { self.terms().saved_by_warmth(self.prefix) } else { Usd::default() }
    }

    /// Whether the cache still holds it.
    pub fn is_warm(&self) -> bool {
        self.now.since(self.used) < self.ttl.duration()
    }

    /// The last moment at which a ping still arrives in time.
    fn deadline(&self) -> Millis {
        self.used.plus(self.ttl.duration().saturating_sub(margin(self.ttl)))
    }
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Poisoned,
        Self::Tainted,
        Self::CliVersion,
        Self::Cwd,
        Self::Operator,
        Self::Watermark,
        Self::PriceStep,
        Self::Cold,
        Self::Stale,
        Self::Rental,
        Self::Memory,
        Self::OpenTasks,
        Self::ReturnLikely,
        Self::LetGo,
        Self::PingsSpent,
        Self::Well,
        Self::TooLong,
        Self::Gone,
        Self::Died,
        Self::Final,
        Self::Rejected,
        Self::Invalid,
        Self::Budget,
        Self::First,
    ];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisoned => "poisoned",
            Self::Tainted => "tainted",
            Self::CliVersion => "cli-version",
            Self::Cwd => "cwd",
            Self::Operator => "operator",
            Self::Watermark => "watermark",
            Self::PriceStep => "price-step",
            Self::Cold => "cold",
            Self::Stale => "stale",
            Self::Rental => "rental",
            Self::Memory => "memory",
            Self::OpenTasks => "open-tasks",
            Self::ReturnLikely => "return-likely",
            Self::LetGo => "let-go",
            Self::PingsSpent => "pings-spent",
            Self::Well => "well",
            Self::TooLong => "too-long",
            Self::Gone => "gone",
            Self::Died => "died",
            Self::Final => "final",
            Self::Rejected => "rejected",
            Self::Invalid => "invalid",
            Self::Budget => "budget",
            Self::First => "first",
        }
    }
}

#[cfg(test)]
mod tests;
