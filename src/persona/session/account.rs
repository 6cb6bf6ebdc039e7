//! A session's running account: what its requests were, one after the other, and whether the cache held what it should.

use std::time::Duration;

use super::hazard::Gaps;
use super::ledger::{self, CacheVerdict, Request};
use super::meter::Meter;
use super::price::{Price, Prices, Tokens, Ttl, Usd};
use super::tasks::Unnoted;
use crate::conversation::{Millis, TurnId};
use crate::persona::{RequestUsage, Usage};

/// What is kept of a session's requests, enough to judge the next one. Plain values, kept with the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its prefix: the tokens of the last prompt (P).
    pub prefix: u64,
    /// When a request last used it; none before the first.
    pub used: Option<Millis>,
    /// For how long the cache was last seen to keep it.
    pub ttl: Option<Ttl>,
    /// Its rent since it began.
    pub meter: Meter,
    /// The context window that the CLI last reported, in tokens.
    pub window: Option<u64>,
    /// The resident memory of its child in the last turn, in bytes.
    pub resident: Option<u64>,
    /// Her turns that were counted, through all her sessions.
    pub turns: u64,
    /// The last of them, and the last attempt at it that was counted.
    pub last: Option<(TurnId, u32)>,
    /// How long she was left alone between her mails.
    pub gaps: Gaps,
    /// When the last mail was taken up.
    pub mail: Option<Millis>,
    /// Where she has answered and noted nothing since.
    pub unnoted: Unnoted,
}

/// An attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The generation of the session.
    pub generation: u32,
    /// Its turn.
    pub turn: TurnId,
    /// Which attempt at its turn.
    pub attempt: u32,
    /// When its line was fed.
    pub fed: Millis,
    /// When it ended; of a reply that was read from the session's file, when it did at the earliest.
    pub ended: Millis,
    /// Whether its reply was read from the session's file, so that its requests may have been counted before.
    pub recalled: bool,
    /// What it used.
    pub usage: &'a Usage,
    /// For how long the cache keeps a prefix of which nothing was seen yet.
    pub ttl: Ttl,
    /// About how many tokens of its prompt are mail.
    pub mail: u64,
    /// About how many tokens sessions share, until that was measured.
    pub shared: u64,
    /// Whether the session had answered before.
    pub goes_on: bool,
    /// Why, where it is at a flush.
    pub flush: Option<&'a str>,
}

/// What an attempt came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its requests.
    pub requests: Vec<Request>,
    /// What the CLI counted and what the table says, where the two are not the same.
    pub differs: Option<(Usd, Usd)>,
    /// A model that the table does not know.
    pub unknown: Option<String>,
}

impl Account {
    /// Mail is taken up: the gap since the last one is counted, and the idle period is over.
    pub fn woken(&mut self, now: Millis) {
        if let Some(before) = self.mail.replace(now) {
            self.gaps.record(now.since(before));
        }
        self.meter.woken();
    }

    /// Counts a ping that ended at a time: its tokens, and what it cost where the price is known.
    pub fn pinged(&mut self, usage: &Usage, now: Millis, prices: &Prices) -> Option<(Tokens, Option<Usd>)> {
        let request = usage.requests.first()?;
        let (tokens, known) = usage.first_paid(prices)?;
        let cost = known.unwrap_or_else(|| Price::unknown(&request.model).cost(&tokens));
        self.meter.ping(cost);
        self.used = Some(now);
        Some((tokens, known))
    }

    /// What the account of the next session begins with: her habits, the count of her turns, and what was measured of what
    /// sessions share.
    pub fn carried(&self) -> Self {
        let meter = Meter { shared: self.meter.shared, ..Meter::default() };
        let (gaps, mail) = (self.gaps.clone(), self.mail);
        let Self { ttl, window, turns, last, .. } = *self;
        Self { meter, ttl, window, gaps, mail, turns, last, ..Self::default() }
    }

    /// Counts an attempt: a row for each of its requests.
    ///
    /// What the CLI counted for the whole attempt is shared out by what the table says of each request. Where it counted
    /// nothing, since the attempt ended without a result, each request costs what the table says; where that does not know
    /// the model, money is unknown.
    pub fn count(&mut self, attempt: &Attempt<'_>, prices: &Prices) -> Counted {
        let usage = attempt.usage;
        self.window = usage.window.or(self.window);
        self.resident = usage.resident.or(self.resident);
        let is_counted = attempt.recalled && self.last == Some((attempt.turn, attempt.attempt));
        if usage.requests.is_empty() || is_counted {
            return Counted::default();
        }
        if self.last.is_none_or(|(turn, _)| turn != attempt.turn) {
            self.turns += 1;
        }
        self.last = Some((attempt.turn, attempt.attempt));
        let mut counted = Counted::default();
        let mut by_table = Vec::new();
        for (number, request) in (1..).zip(&usage.requests) {
            let known = prices.find(&request.model);
            let is_known = known.is_some();
            if !is_known {
                counted.unknown = Some(request.model.clone());
            }
            let price = known.unwrap_or_else(|| Price::unknown(&request.model));
            let cost = price.cost(&tokens(request));
            let money = is_known.then_some(cost);
            by_table.push(cost);
            counted.requests.push(Request { money, ..self.request(attempt, number, request, &price) });
        }
        let whole = usage.money.filter(|_| counted.unknown.is_none()).map(Usd::of_dollars);
        if let Some(whole) = whole {
            share_out(whole, &by_table, &mut counted.requests);
            let sum: Usd = by_table.iter().copied().sum();
            counted.differs = (!ledger::tallies(whole, sum)).then_some((whole, sum));
        }
        counted
    }

    fn request(
        &mut self,
        attempt: &Attempt<'_>,
        number: u32,
        request: &RequestUsage,
        price: &Price,
    ) -> Request {
        let tokens = tokens(request);
        self.ttl = ttl_of(&tokens).or(self.ttl);
        let ttl = self.ttl.unwrap_or(attempt.ttl);
        let gap = self.used.map(|used| if number == 1 { attempt.fed.since(used) } else { Duration::ZERO });
        let expected = if gap.is_some() { ledger::expected(self.prefix, price) } else { 0 };
        let verdict = CacheVerdict::of(attempt.generation, gap, ttl, expected, tokens.read);
        let tariff = price.tariff(tokens.prompt());
        let new = tokens.prompt().saturating_sub(self.prefix);
        if gap.is_some() {
            self.meter.read(tokens.read, tariff);
        } else {
            let shared = if self.meter.shared > 0 { self.meter.shared } else { attempt.shared };
            let begun = Meter::begun(&tokens, attempt.mail, shared);
            // What a session reads that nothing was counted of yet may be its own.
            let shared = if attempt.goes_on { shared.min(begun.rehydrated) } else { begun.shared };
            self.meter = Meter { shared, ..begun };
        }
        self.prefix = tokens.prompt();
        self.used = self.used.max(Some(attempt.ended));
        Request {
            generation: attempt.generation,
            turn: self.turns,
            attempt: attempt.attempt,
            number,
            model: request.model.clone(),
            tokens,
            new,
            expected,
            gap,
            ttl,
            verdict,
            money: None,
            first_token: request.first_token,
            rss: attempt.usage.resident,
            flush: attempt.flush.map(str::to_owned),
        }
    }
}

impl Usage {
    /// The tokens of the first request, and what they cost where the price is known; none where nothing was asked.
    pub fn first_paid(&self, prices: &Prices) -> Option<(Tokens, Option<Usd>)> {
        let request = self.requests.first()?;
        let tokens = tokens(request);
        Some((tokens, prices.find(&request.model).map(|price| price.cost(&tokens))))
    }
}

fn tokens(request: &RequestUsage) -> Tokens {
    Tokens {
        input: request.input,
        read: request.cache_read,
        written_5m: request.written_5m,
        written_1h: request.written_1h,
        output: request.output,
    }
}

/// For how long a request wrote to the cache; none where it wrote nothing.
fn ttl_of(tokens: &Tokens) -> Option<Ttl> {
    match (tokens.written_1h, tokens.written_5m) {
        (1.., _) => Some(Ttl::OneHour),
        (0, 1..) => Some(Ttl::FiveMinutes),
        (0, 0) => None,
    }
}

/// Shares money out in proportion; what rounding leaves is the last one's.
fn share_out(whole: Usd, shares: &[Usd], requests: &mut [Request]) {
    let sum: u128 = shares.iter().map(|share| u128::from(share.0)).sum();
    let mut left = whole;
    let last = requests.len().saturating_sub(1);
    for (index, (request, share)) in requests.iter_mut().zip(shares).enumerate() {
        let part = u128::from(whole.0) * u128::from(share.0) / sum.max(1);
        let part = if index == last { left } else { Usd(u64::try_from(part).unwrap_or(u64::MAX)) };
        left = left.minus(part);
        request.money = Some(part);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::super::price::Tariff;
    use super::*;

    const TARIFF: Tariff =
        Tariff { input: 1_000, output: 5_000, read: 100, write_5m: 1_250, write_1h: 2_000 };

    fn prices() -> Prices {
        let known = Price { model: "known".into(), tariff: TARIFF, minimum: 512, ..Price::unknown("") };
        Prices { source: "test".into(), date: "today".into(), models: vec![known] }
    }

    fn request(read: u64, written_1h: u64) -> RequestUsage {
        RequestUsage {
            model: "known".into(),
            cache_read: read,
            written_1h,
            output: 10,
            ..RequestUsage::default()
        }
    }

    fn used(requests: &[RequestUsage], money: Option<f64>) -> Usage {
        Usage { requests: requests.to_vec(), money, ..Usage::default() }
    }

    /// Counts the only attempt at a turn, which was fed at this second and took one.
    fn count(account: &mut Account, at: u64, usage: &Usage) -> Counted {
        count_attempt(account, at, (at.into(), 1), usage)
    }

    fn count_attempt(account: &mut Account, at: u64, which: (u128, u32), usage: &Usage) -> Counted {
        account.count(&attempt_at(at, which, usage), &prices())
    }

    fn attempt(at: u64, usage: &Usage) -> Attempt<'_> {
        attempt_at(at, (at.into(), 1), usage)
    }

    fn attempt_at(at: u64, (turn, attempt): (u128, u32), usage: &Usage) -> Attempt<'_> {
        let (fed, ended) = (Millis(at * 1_000), Millis((at + 1) * 1_000));
        let turn = TurnId(Uuid::from_u128(turn));
        Attempt {
            generation: 1,
            turn,
            attempt,
            fed,
            ended,
            recalled: false,
            usage,
            ttl: Ttl::FiveMinutes,
            mail: 100,
            shared: 4_000,
            goes_on: false,
            flush: None,
        }
    }

    #[test]
    fn a_reply_that_is_read_from_the_file_is_counted_once_and_warms_nothing() {
        let mut account = Account::default();
        count(&mut account, 100, &used(&[request(0, 10_000)], None));
        let usage = used(&[request(10_000, 300)], None);
        let recalled = Attempt { recalled: true, ..attempt_at(90, (7, 1), &usage) };
        let counted = account.count(&recalled, &prices());
        assert_eq!((counted.requests.len(), account.prefix), (1, 10_300));
        assert_eq!(account.used, Some(Millis(101_000)), "it was used then at the latest that is known");
        assert_eq!(account.count(&recalled, &prices()), Counted::default());
        let other = Attempt { attempt: 2, ..recalled };
        assert_eq!(account.count(&other, &prices()).requests.len(), 1);
    }

    #[test]
    fn each_request_is_judged_by_the_one_before() {
        let mut account = Account::default();
        let mut check = |at, requests: &[RequestUsage], verdicts: &[CacheVerdict]| {
            let counted = count(&mut account, at, &used(requests, None));
            let found: Vec<CacheVerdict> = counted.requests.iter().map(|request| request.verdict).collect();
            assert_eq!(found, verdicts, "{:?}", counted.requests);
        };
        check(0, &[request(0, 10_000)], &[CacheVerdict::First]);
        check(60, &[request(10_000, 300), request(10_300, 50)], &[CacheVerdict::Hit, CacheVerdict::Hit]);
        check(120, &[request(2_000, 8_500)], &[CacheVerdict::Broken]);
        check(120 + 3_700, &[request(0, 10_600)], &[CacheVerdict::Expired]);
    }

    #[test]
    fn the_prefix_is_the_last_prompt_and_what_is_new_is_beyond_it() {
        let mut account = Account::default();
        count(&mut account, 0, &used(&[request(0, 10_000)], None));
        let counted = count(&mut account, 9, &used(&[request(10_000, 300), request(10_300, 50)], None));
        let rows: Vec<_> = counted.requests.iter().map(|row| (row.number, row.expected, row.new)).collect();
        assert_eq!(rows, [(1, 10_000, 300), (2, 10_300, 50)]);
        assert_eq!((account.prefix, account.used), (10_350, Some(Millis(10_000))));
        let gaps: Vec<_> = counted.requests.iter().map(|row| row.gap.map(|gap| gap.as_secs())).collect();
        assert_eq!(gaps, [Some(8), Some(0)]);
        assert_eq!((account.meter.rehydrated, account.meter.rent), (9_900, Usd((100 + 400) * 100)));
        assert_eq!((account.ttl, counted.requests[0].turn), (Some(Ttl::OneHour), 2));
    }

    #[test]
    fn a_turn_is_one_however_often_it_is_tried_and_in_whichever_sessions() {
        let mut account = Account::default();
        let usage = used(&[request(0, 10_000)], None);
        let number = |account: &mut Account, at, attempt| {
            let counted = count_attempt(account, at, attempt, &usage);
            (counted.requests[0].turn, counted.requests[0].attempt)
        };
        assert_eq!([number(&mut account, 0, (7, 1)), number(&mut account, 9, (7, 2))], [(1, 1), (1, 2)]);
        let mut next = account.carried();
        assert_eq!([number(&mut next, 19, (7, 3)), number(&mut next, 29, (8, 1))], [(1, 3), (2, 1)]);
    }

    #[test]
    fn what_sessions_share_is_believed_until_a_next_one_has_read_it() {
        let mut account = Account::default();
        count(&mut account, 0, &used(&[request(0, 10_000)], None));
        assert_eq!(account.meter.shared, 4_000);
        let mut next = account.carried();
        count(&mut next, 9_000, &used(&[request(0, 10_000)], None));
        assert_eq!((next.meter.rehydrated, next.meter.shared), (9_900, 4_000));
        let mut third = next.carried();
        count(&mut third, 9_100, &used(&[request(6_000, 4_000)], None));
        assert_eq!((third.meter.rehydrated, third.meter.shared), (9_900, 6_000));
        assert_eq!(third.carried().meter.shared, 6_000);
    }

    #[test]
    fn each_request_has_its_own_time_to_the_first_token_or_none() {
        let tokens = [Some(628), None, Some(347)].map(|ms| ms.map(Duration::from_millis));
        let requests = tokens.map(|first_token| RequestUsage { first_token, ..request(9_000, 10) });
        let counted = count(&mut Account::default(), 0, &used(&requests, None));
        assert_eq!(counted.requests.iter().map(|row| row.first_token).collect::<Vec<_>>(), tokens);
    }

    #[test]
    fn what_a_session_reads_that_went_on_uncounted_is_not_taken_for_shared() {
        let usage = used(&[request(9_500, 500)], None);
        for (goes_on, shared) in [(true, 4_000), (false, 9_500)] {
            let mut account = Account::default();
            account.count(&Attempt { goes_on, ..attempt(0, &usage) }, &prices());
            assert_eq!((account.meter.rehydrated, account.meter.shared), (9_900, shared));
        }
    }

    #[test]
    fn gaps_are_counted_from_mail_to_mail_through_all_sessions() {
        let mut account = Account::default();
        account.meter.ping(Usd(5));
        account.woken(Millis(1_000));
        assert_eq!((account.meter.pings, account.gaps.clone()), (0, Gaps::default()));
        let mut next = account.carried();
        next.woken(Millis(61_000));
        let mut expected = Gaps::default();
        expected.record(Duration::from_secs(60));
        assert_eq!((next.gaps, next.mail), (expected, Some(Millis(61_000))));
    }

    #[test]
    fn an_attempt_without_a_request_counts_for_nothing_but_its_memory() {
        let mut account = Account::default();
        let usage = Usage { resident: Some(7), window: Some(9), ..Usage::default() };
        assert_eq!(count(&mut account, 0, &usage), Counted::default());
        assert_eq!(account, Account { resident: Some(7), window: Some(9), ..Account::default() });
    }

    #[test]
    fn a_model_that_no_table_knows_has_no_money_and_is_named() {
        let strange = RequestUsage { model: "strange".into(), ..request(0, 9_000) };
        let counted = count(&mut Account::default(), 0, &used(&[strange], Some(0.5)));
        assert_eq!(counted.unknown.as_deref(), Some("strange"));
        assert_eq!((counted.requests[0].money, counted.differs), (None, None));
    }

    #[test]
    fn where_the_cli_counted_nothing_a_request_costs_what_the_table_says() {
        let strange = RequestUsage { model: "strange".into(), ..request(0, 9_000) };
        let counted =
            count(&mut Account::default(), 0, &used(&[request(0, 9_000), strange, request(9_000, 10)], None));
        let money: Vec<_> = counted.requests.iter().map(|request| request.money).collect();
        let [first, last] = [9_000 * 2_000 + 10 * 5_000, 9_000 * 100 + 10 * 2_000 + 10 * 5_000].map(Usd);
        assert_eq!((money, counted.differs), (vec![Some(first), None, Some(last)], None));
    }

    #[test]
    fn money_that_the_table_reckons_otherwise_is_told() {
        let by_table = Usd(9_000 * 2_000 + 10 * 5_000);
        let same = count(&mut Account::default(), 0, &used(&[request(0, 9_000)], Some(by_table.dollars())));
        assert_eq!((same.differs, same.requests[0].money), (None, Some(by_table)));
        let other = count(&mut Account::default(), 0, &used(&[request(0, 9_000)], Some(0.5)));
        assert_eq!(other.differs, Some((Usd(500_000_000), by_table)));
    }

    proptest! {
        #[test]
        fn shares_come_to_the_whole(whole in 0_u64..1_000_000_000_000, writes in prop::collection::vec(0_u64..100_000, 1..6)) {
            let requests: Vec<RequestUsage> = writes.iter().map(|written| request(0, *written)).collect();
            let counted = count(&mut Account::default(), 0, &used(&requests, Some(Usd(whole).dollars())));
            let sum: Usd = counted.requests.iter().filter_map(|request| request.money).sum();
            prop_assert_eq!(sum, Usd::of_dollars(Usd(whole).dollars()));
        }
    }
}
