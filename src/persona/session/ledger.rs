//! The ledger of API requests: what each one was, what it cost, and whether the cache held what it should.

use std::fmt;
use std::time::Duration;

use super::identity::Fingerprint;
use super::price::{Price, Tokens, Ttl, Usd};
use crate::conversation::{Millis, PersonaId};

/// One API request, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which generation of the session.
    pub generation: u32,
    /// Which of her turns, counted through all her sessions.
    pub turn: u64,
    /// Which attempt at the turn.
    pub attempt: u32,
    /// Which request of the attempt, counted from 1.
    pub number: u32,
    /// The model that answered.
    pub model: String,
    /// What it used; its prompt is the session's prefix from now on.
    pub tokens: Tokens,
    /// Tokens of the prompt that no request before it had.
    pub new: u64,
    /// Tokens of the prompt that should have been in the cache.
    pub expected: u64,
    /// How long nothing had used the session, if it was used before.
    pub gap: Option<Duration>,
    /// How long the cache keeps it.
    pub ttl: Ttl,
    /// Whether the cache held it.
    pub verdict: CacheVerdict,
    /// What it cost: its part of what the claude CLI counted, else what the price table says; none where that does not know
    /// the model.
    pub money: Option<Usd>,
    /// From the request to the first token of its answer, where the CLI told it.
    pub first_token: Option<Duration>,
    /// The resident memory of the child's process group when its newest answer began, in bytes.
    pub rss: Option<u64>,
    /// Why, where it was a flush: a turn in which she only notes what would be lost with her session.
    pub flush: Option<String>,
}

/// One entry of the Personas' ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose session it is about.
    pub persona: PersonaId,
    /// When it was written down.
    pub at: Millis,
    /// What it tells.
    pub kind: EntryKind,
}

/// What an entry tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A request was answered.
    Request(Request),
    /// The cache was used to keep a session warm.
    Ping {
        /// The generation of the session.
        generation: u32,
        /// What it used.
        tokens: Tokens,
        /// What it cost, where the model's price is known.
        money: Option<Usd>,
    },
    /// An account that had been refused was asked about.
    Probe {
        /// What that used.
        tokens: Tokens,
        /// What it cost, where the model's price is known.
        money: Option<Usd>,
        /// Whether the account is taken again.
        answered: bool,
    },
    /// An idle period with pings is over.
    Warmth {
        /// The generation of the session.
        generation: u32,
        /// How many pings there were.
        pings: u32,
        /// What they cost.
        paid: Usd,
        /// What the mail that came saved by them: nothing where it came too late.
        saved: Usd,
    },
    /// A generation began.
    Begun {
        /// Which.
        generation: u32,
        /// Why, without words of users.
        why: String,
    },
}

/// Whether the cache held what it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheVerdict {
    /// A Persona's first request: nothing could be there.
    First,
    /// The first request of a later generation: its prefix was written anew, as it must.
    Rebuilt,
    /// It held it.
    Hit,
    /// It held it no longer, after a gap as long as its time to live.
    Expired,
    /// It should have held it and did not: something in the prefix is not as it was.
    Broken,
}

/// What may have broken a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// These parts of what the session was begun with are different, by name.
    Changed(Vec<String>),
    /// Nothing here is different.
    ApiSide,
}

/// Of this many fifths of the expected prefix at least four must have been read.
const FIFTHS: u64 = 5;
const READ_FIFTHS: u64 = 4;
/// Money is right within this part of it.
const TOLERANCE: u64 = 50;

impl CacheVerdict {
    /// Judges a request. `gap` is the time since the session was last used, none for the first request of a generation.
    pub fn of(generation: u32, gap: Option<Duration>, ttl: Ttl, expected: u64, read: u64) -> Self {
        let Some(gap) = gap else { return if generation <= 1 { Self::First } else { Self::Rebuilt } };
        if read * FIFTHS >= expected * READ_FIFTHS {
            return Self::Hit;
        }
        if gap < ttl.duration() - margin(ttl) { Self::Broken } else { Self::Expired }
    }

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Rebuilt => "rebuilt",
            Self::Hit => "hit",
            Self::Expired => "expired",
            Self::Broken => "broken",
        }
    }
}

impl Cause {
    /// The likely cause of a broken prefix.
    pub fn of(begun_with: &Fingerprint, resumed_with: &Fingerprint) -> Self {
        let differences = begun_with.differences(resumed_with);
        if differences.is_empty() { Self::ApiSide } else { Self::Changed(differences) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(names) => f.write_str(&names.join(", ")),
            Self::ApiSide => f.write_str("API side"),
        }
    }
}

/// How long before a cache entry expires it is no longer relied on: a request takes its time to get there.
pub fn margin(ttl: Ttl) -> Duration {
    (ttl.duration() / 50).max(Duration::from_secs(10))
}

/// How much of a session's prefix should be in the cache: all of it, unless it is too short to be cached.
pub fn expected(prefix: u64, price: &Price) -> u64 {
    if prefix < price.minimum { 0 } else { prefix }
}

/// What was spent between two readings of a counter that begins anew with some processes.
pub fn spent(before: Usd, now: Usd) -> Usd {
    if now < before { now } else { now.minus(before) }
}

/// Whether what the CLI counted is what the price table says.
pub fn tallies(counted: Usd, by_table: Usd) -> bool {
    counted.0.abs_diff(by_table.0) <= counted.0.max(by_table.0) / TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;

    #[track_caller]
    fn check(generation: u32, gap: Option<u64>, expected: u64, read: u64, verdict: CacheVerdict) {
        let gap = gap.map(Duration::from_secs);
        assert_eq!(CacheVerdict::of(generation, gap, Ttl::OneHour, expected, read), verdict);
    }

    #[test]
    fn the_first_request_of_a_generation_is_no_miss() {
        check(1, None, 0, 0, CacheVerdict::First);
        check(2, None, 0, 0, CacheVerdict::Rebuilt);
        check(2, None, 20_000, 12_000, CacheVerdict::Rebuilt);
    }

    #[test]
    fn four_fifths_of_the_expected_prefix_are_a_hit_whenever() {
        for gap in [0, 59 * MINUTE, 300 * MINUTE] {
            check(1, Some(gap), 10_000, 8_000, CacheVerdict::Hit);
        }
        check(1, Some(MINUTE), 0, 0, CacheVerdict::Hit);
    }

    #[test]
    fn a_miss_is_broken_within_the_time_to_live_and_expired_after() {
        check(1, Some(0), 10_000, 7_999, CacheVerdict::Broken);
        check(1, Some(58 * MINUTE + 47), 10_000, 0, CacheVerdict::Broken);
        check(1, Some(58 * MINUTE + 48), 10_000, 0, CacheVerdict::Expired);
        check(3, Some(300 * MINUTE), 10_000, 7_999, CacheVerdict::Expired);
    }

    #[test]
    fn the_margin_is_a_fiftieth_and_never_under_ten_seconds() {
        assert_eq!(margin(Ttl::FiveMinutes), Duration::from_secs(10));
        assert_eq!(margin(Ttl::OneHour), Duration::from_secs(72));
    }

    #[test]
    fn the_cause_is_what_differs_or_the_api() {
        let print = |parts: &[(&str, &str)]| {
            Fingerprint(parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let begun = print(&[("model", "a"), ("schema", "1")]);
        assert_eq!(Cause::of(&begun, &begun).to_string(), "API side");
        assert_eq!(
            Cause::of(&begun, &print(&[("model", "b"), ("schema", "2")])).to_string(),
            "model, schema"
        );
    }

    #[test]
    fn a_prompt_too_short_to_be_cached_is_not_expected_there() {
        let price = Price { minimum: 512, ..Price::unknown("x") };
        assert_eq!([511, 512].map(|prefix| expected(prefix, &price)), [0, 512]);
    }

    #[test]
    fn a_counter_that_began_anew_counts_from_nothing() {
        assert_eq!(spent(Usd(5), Usd(7)), Usd(2));
        assert_eq!(spent(Usd(7), Usd(3)), Usd(3));
    }

    #[test]
    fn two_of_a_hundred_may_be_rounding() {
        assert!(tallies(Usd(1_000), Usd(980)) && tallies(Usd(980), Usd(1_000)) && tallies(Usd(0), Usd(0)));
        assert!(!tallies(Usd(1_000), Usd(979)) && !tallies(Usd(0), Usd(1)));
    }
}
