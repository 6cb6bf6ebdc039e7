//! What each way to take a turn costs: the one cost model, for deciding and for simulating.
//!
//! A turn adds its mail and its reply to the prefix; both are counted as written to the cache with it. A prefix that is
//! warm is read, one that is cold is written again. A new generation writes what it is rehydrated with, but for the part
//! that generations share, which it reads while that is warm.

use super::price::{Price, Tariff, Tokens, Ttl, Usd};

/// What a session's turns are priced by.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The model's price.
    pub price: &'a Price,
    /// How long the cache keeps what was not used.
    pub ttl: Ttl,
    /// The prefix right after a rehydration (R).
    pub rehydrated: u64,
    /// The part of it that generations share.
    pub shared: u64,
}

/// What a turn adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Tokens of its mail.
    pub mail: u64,
    /// Tokens of its reply.
    pub reply: u64,
}

/// A ping: asked in a throw-away fork of the session, so that the session does not grow by it.
pub const PING: Added = Added { mail: 40, reply: 10 };
/// A turn in which she only writes down what she must not forget.
pub const FLUSH: Added = Added { mail: 80, reply: 400 };

/// About how many bytes of text are one token.
const BYTES: usize = 4;
/// Bytes of a message's head in a batch: label, time, sender.
const HEAD: usize = 80;
/// Tokens of a usual reply.
const REPLY: u64 = 250;

/// About how many tokens a text of so many bytes is.
pub fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES)).unwrap_or(u64::MAX)
}

impl Added {
    /// What a turn with messages of so many bytes each is expected to add.
    pub fn expected(messages: impl Iterator<Item = usize>) -> Self {
        Self { mail: tokens_of(messages.map(|bytes| bytes + HEAD).sum()), reply: REPLY }
    }

    /// What the prefix grows by.
    pub fn tokens(self) -> u64 {
        self.mail + self.reply
    }
}

impl Terms<'_> {
    /// The tariff of a request with a prompt of so many tokens.
    pub fn tariff(&self, prompt: u64) -> &Tariff {
        self.price.tariff(prompt)
    }

    /// A turn of a warm session.
    pub fn warm(&self, prefix: u64, added: Added) -> Usd {
        self.cost(prefix, 0, added)
    }

    /// A turn of a cold session that is resumed all the same.
    pub fn cold(&self, prefix: u64, added: Added) -> Usd {
        self.cost(0, prefix, added)
    }

    /// The first turn of a generation that begins while the one before is warm.
    pub fn refresh_warm(&self, added: Added) -> Usd {
        self.cost(self.shared, self.rehydrated.saturating_sub(self.shared), added)
    }

    /// The first turn of a generation that begins when nothing is warm.
    pub fn refresh_cold(&self, added: Added) -> Usd {
        self.cost(0, self.rehydrated, added)
    }

    /// What a refresh while warm costs beyond reading what it leaves in the cache (B).
    pub fn rebuild(&self) -> Usd {
        let nothing = Added::default();
        self.refresh_warm(nothing).minus(self.warm(self.rehydrated, nothing))
    }

    /// What a session of so many tokens saves by being warm when mail comes.
    pub fn saved_by_warmth(&self, prefix: u64) -> Usd {
        let nothing = Added::default();
        let warm = self.warm(prefix, nothing).min(self.refresh_warm(nothing));
        self.refresh_cold(nothing).minus(warm)
    }

    fn cost(&self, read: u64, written: u64, added: Added) -> Usd {
        let tokens = Tokens { read, output: added.reply, ..Tokens::default() };
        self.price.cost(&tokens.written(written + added.tokens(), self.ttl))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Added = Added { mail: 240, reply: 250 };

    #[test]
    fn a_turn_is_expected_to_add_its_messages_and_a_reply() {
        assert_eq!([0, 1, 4, 5].map(tokens_of), [0, 1, 1, 2]);
        assert_eq!(Added::expected([].into_iter()), Added { mail: 0, reply: 250 });
        assert_eq!(Added::expected([20, 300].into_iter()), Added { mail: 120, reply: 250 });
    }

    #[test]
    fn the_ways_of_a_turn_cost_what_the_tariff_says() {
        let price = Price::unknown("x");
        let terms = Terms { price: &price, ttl: Ttl::OneHour, rehydrated: 16_000, shared: 12_000 };
        let turn = 490 * 2000 + 250 * 5000;
        assert_eq!(terms.warm(20_000, TURN), Usd(20_000 * 100 + turn));
        assert_eq!(terms.cold(20_000, TURN), Usd(20_000 * 2000 + turn));
        assert_eq!(terms.refresh_warm(TURN), Usd(12_000 * 100 + 4_000 * 2000 + turn));
        assert_eq!(terms.refresh_cold(TURN), Usd(16_000 * 2000 + turn));
        assert_eq!(terms.rebuild(), Usd(4_000 * 1900));
        assert_eq!(terms.saved_by_warmth(16_000), Usd(16_000 * 1900));
        assert_eq!(terms.saved_by_warmth(1_000_000), Usd(12_000 * 1900));
    }
}
