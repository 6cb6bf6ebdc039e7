//! The rent meter: what a session's growth has cost since it was last rehydrated.

use super::price::{Tariff, Tokens, Usd};

/// Plain values, kept with the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// The prefix right after the rehydration, in tokens, without the mail that came with it (R).
    pub rehydrated: u64,
    /// How much of it a later generation would share and find in the cache (the static prefix).
    pub shared: u64,
    /// What was paid to read more than that since.
    pub rent: Usd,
    /// Pings in this idle period.
    pub pings: u32,
    /// What they cost.
    pub pinged: Usd,
}

impl Meter {
    /// Begins a generation with what its first request was measured to be: its prompt without the mail. What it read from
    /// the cache is shared; where nothing could be there, or the mail itself was read (the request had been made before, and
    /// its answer was lost), `shared` is what is believed to be.
    pub fn begun(first: &Tokens, mail: u64, shared: u64) -> Self {
        let rehydrated = first.prompt().saturating_sub(mail);
        let is_measured = (1..=rehydrated).contains(&first.read);
        let shared = if is_measured { first.read } else { shared }.min(rehydrated);
        Self { rehydrated, shared, ..Self::default() }
    }

    /// Counts a request that read a prefix of so many tokens from the cache.
    pub fn read(&mut self, prefix: u64, tariff: &Tariff) {
        self.rent += self.rent_of(prefix, tariff);
    }

    /// What one request with such a prefix pays beyond one right after a rehydration.
    pub fn rent_of(&self, prefix: u64, tariff: &Tariff) -> Usd {
        Usd(tariff.read * prefix.saturating_sub(self.rehydrated))
    }

    /// Counts a ping.
    pub fn ping(&mut self, cost: Usd) {
        self.pings += 1;
        self.pinged += cost;
    }

    /// Ends the idle period: mail came.
    pub fn woken(&mut self) {
        (self.pings, self.pinged) = (0, Usd::default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TARIFF: Tariff = Tariff { input: 100, output: 500, read: 10, write_5m: 125, write_1h: 200 };

    #[test]
    fn a_generation_begins_with_what_its_first_request_was_measured_to_be() {
        let cold = Tokens { written_1h: 16_000, input: 10, ..Tokens::default() };
        let begun = Meter::begun(&cold, 110, 12_000);
        assert_eq!((begun.rehydrated, begun.shared, begun.rent), (15_900, 12_000, Usd(0)));
        let warm = Tokens { read: 11_500, written_1h: 4_510, ..Tokens::default() };
        let begun = Meter::begun(&warm, 110, 12_000);
        assert_eq!((begun.rehydrated, begun.shared), (15_900, 11_500));
        let repeated = Tokens { read: 16_010, ..Tokens::default() };
        let begun = Meter::begun(&repeated, 110, 12_000);
        assert_eq!((begun.rehydrated, begun.shared), (15_900, 12_000));
        assert_eq!(Meter::begun(&Tokens::default(), 5, 9), Meter::default());
    }

    #[test]
    fn pings_are_counted_until_mail_comes() {
        let mut meter = Meter::default();
        meter.ping(Usd(3));
        meter.ping(Usd(4));
        assert_eq!((meter.pings, meter.pinged), (2, Usd(7)));
        meter.woken();
        assert_eq!(meter, Meter::default());
    }

    proptest! {
        #[test]
        fn rent_only_rises_between_rehydrations(rehydrated in 0_u64..30_000, prefixes in prop::collection::vec(0_u64..400_000, 0..20)) {
            let mut meter = Meter { rehydrated, ..Meter::default() };
            for prefix in prefixes {
                let before = meter.rent;
                meter.read(prefix, &TARIFF);
                prop_assert!(meter.rent >= before);
                prop_assert_eq!(meter.rent == before, prefix <= rehydrated);
            }
        }
    }
}
