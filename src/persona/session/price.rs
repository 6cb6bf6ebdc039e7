//! What tokens cost: whole billionths of a dollar, so that sums and comparisons are exact.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// Money, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(pub u64);

/// How long the prompt cache keeps what was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// Five minutes.
    FiveMinutes,
    /// One hour.
    OneHour,
}

/// What one token of each kind costs, in billionths of a dollar: a thousand is one dollar per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tariff {
    /// Uncached input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Read from the prompt cache.
    pub read: u64,
    /// Written to the prompt cache for five minutes.
    pub write_5m: u64,
    /// Written to the prompt cache for one hour.
    pub write_1h: u64,
}

/// Another tariff for requests whose whole prompt is longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// It is for prompts of more tokens than this.
    pub above: u64,
    /// It is for all tokens of such a request.
    pub tariff: Tariff,
}

/// What a model costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// The model's name.
    pub model: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// What its tokens cost.
    pub tariff: Tariff,
    /// Where longer prompts cost more, the shortest first.
    pub steps: Vec<Step>,
    /// Its context window, in tokens.
    pub window: u64,
    /// The shortest prompt that is cached, in tokens.
    pub minimum: u64,
    /// What of this is assumed, by the names of the price file.
    pub assumed: Vec<String>,
}

/// Tokens of one API request, by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Uncached input.
    pub input: u64,
    /// Read from the prompt cache.
    pub read: u64,
    /// Written to the prompt cache for five minutes.
    pub written_5m: u64,
    /// Written to the prompt cache for one hour.
    pub written_1h: u64,
    /// Output.
    pub output: u64,
}

/// The price table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Where it is from.
    pub source: String,
    /// When it was read there.
    pub date: String,
    /// A row a model.
    pub models: Vec<Price>,
}

/// The context window that the suffix `[1m]` of a model's name asks for.
const LONG_WINDOW: u64 = 1_000_000;
const LONG_SUFFIX: &str = "[1m]";

impl Usd {
    /// An amount as the claude CLI reports it; what is not a number, or less than nothing, is nothing.
    pub fn of_dollars(dollars: f64) -> Self {
        let nanos = (dollars.max(0.0) * 1e9).round() as u64;
        Self(nanos)
    }

    /// The amount in dollars.
    pub fn dollars(self) -> f64 {
        let nanos = self.0 as f64;
        nanos / 1e9
    }

    /// What is left of it after `less`, nothing if that is more.
    pub fn minus(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} USD", self.dollars())
    }
}

impl Ttl {
    /// How long it is.
    pub fn duration(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_secs(300),
            Self::OneHour => Duration::from_secs(3600),
        }
    }

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::OneHour => "1h",
        }
    }
}

impl Tariff {
    /// Writing a token to the cache for so long.
    pub fn write(&self, ttl: Ttl) -> u64 {
        match ttl {
            Ttl::FiveMinutes => self.write_5m,
            Ttl::OneHour => self.write_1h,
        }
    }

    /// What such tokens cost.
    pub fn cost(&self, tokens: &Tokens) -> Usd {
        let parts = [
            (tokens.input, self.input),
            (tokens.read, self.read),
            (tokens.written_5m, self.write_5m),
            (tokens.written_1h, self.write_1h),
            (tokens.output, self.output),
        ];
        parts.into_iter().map(|(tokens, price)| Usd(tokens.saturating_mul(price))).sum()
    }
}

impl Tokens {
    /// The whole prompt.
    pub fn prompt(&self) -> u64 {
        self.input + self.read + self.written_5m + self.written_1h
    }

    /// Adds tokens that are written to the cache for so long.
    pub fn written(mut self, tokens: u64, ttl: Ttl) -> Self {
        match ttl {
            Ttl::FiveMinutes => self.written_5m += tokens,
            Ttl::OneHour => self.written_1h += tokens,
        }
        self
    }
}

impl Price {
    /// Whether this is its name or one of its aliases.
    fn is_called(&self, name: &str) -> bool {
        self.model == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// The price of a model that no table knows: the usual ratios to an input token, which costs one dollar a million.
    /// Good to decide by, never to be shown as money.
    pub fn unknown(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            aliases: Vec::new(),
            tariff: Tariff { input: 1000, output: 5000, read: 100, write_5m: 1250, write_1h: 2000 },
            steps: Vec::new(),
            window: 200_000,
            minimum: 4096,
            assumed: vec!["everything".to_owned()],
        }
    }

    /// The tariff of a request with a prompt of so many tokens.
    pub fn tariff(&self, prompt: u64) -> &Tariff {
        let step = self.steps.iter().rev().find(|step| prompt > step.above);
        step.map_or(&self.tariff, |step| &step.tariff)
    }

    /// What a request costs.
    pub fn cost(&self, tokens: &Tokens) -> Usd {
        self.tariff(tokens.prompt()).cost(tokens)
    }

    /// The longest prompt that still has the tariff of a prompt of so many tokens.
    pub fn step_above(&self, prompt: u64) -> Option<u64> {
        self.steps.iter().map(|step| step.above).find(|above| *above >= prompt)
    }
}

impl Prices {
    /// The price of a model: by its name or an alias; else without the suffix `[1m]`, which asks for the long window; else
    /// without the date at its end.
    pub fn find(&self, model: &str) -> Option<Price> {
        if let Some(price) = self.exactly(model) {
            return Some(price.clone());
        }
        if let Some(name) = model.strip_suffix(LONG_SUFFIX) {
            return self.find(name).map(|price| Price { window: LONG_WINDOW, ..price });
        }
        let (name, date) = model.rsplit_once('-')?;
        let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
        is_date.then(|| self.exactly(name).cloned()).flatten()
    }

    /// These prices with others before them: a row of theirs takes the place of ours of the same name, and inherits its
    /// aliases.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        let mut models = over.models;
        let named = |models: &[Price], name: &String| models.iter().any(|row| row.is_called(name));
        for mut ours in self.models {
            ours.aliases.retain(|alias| !named(&models, alias));
            match models.iter_mut().find(|row| row.is_called(&ours.model)) {
                Some(theirs) => theirs.aliases.append(&mut ours.aliases),
                None => models.push(ours),
            }
        }
        Self { source: over.source, date: over.date, models }
    }

    fn exactly(&self, model: &str) -> Option<&Price> {
        self.models.iter().find(|price| price.is_called(model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Tariff = Tariff { input: 100, output: 500, read: 10, write_5m: 125, write_1h: 200 };
    const HIGH: Tariff = Tariff { input: 500, output: 2500, read: 50, write_5m: 625, write_1h: 1000 };

    fn table() -> Prices {
        let stepped = Price {
            model: "claude-haiku-5-5".into(),
            aliases: vec!["haiku".into()],
            tariff: LOW,
            steps: vec![Step { above: 100_000, tariff: HIGH }],
            ..Price::unknown("")
        };
        Prices { source: "test".into(), date: "today".into(), models: vec![stepped] }
    }

    #[track_caller]
    fn check(model: &str, expected: Option<u64>) {
        let found = table().find(model);
        assert_eq!(found.as_ref().map(|price| price.window), expected, "{model}");
        assert!(found.is_none_or(|price| price.tariff == LOW), "{model}");
    }

    #[test]
    fn a_model_is_found_by_name_alias_suffix_and_date() {
        check("claude-haiku-5-5", Some(200_000));
        check("haiku", Some(200_000));
        check("claude-haiku-5-5[1m]", Some(1_000_000));
        check("claude-haiku-5-5-20261007", Some(200_000));
        check("claude-haiku-5-5-20261007[1m]", Some(1_000_000));
        for unknown in
            ["claude-haiku-5", "claude-haiku-5-5-2026", "claude-haiku-5-5-x0261007", "", "[1m]", "Haiku"]
        {
            check(unknown, None);
        }
    }

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let price = table().find("haiku").expect("known");
        let tokens = Tokens { input: 1, read: 10, written_5m: 100, written_1h: 1_000, output: 10_000 };
        assert_eq!(price.cost(&tokens), Usd(100 + 10 * 10 + 100 * 125 + 1_000 * 200 + 10_000 * 500));
    }

    #[test]
    fn a_step_is_for_the_whole_request_whose_prompt_is_longer() {
        let price = table().find("haiku").expect("known");
        let at = Tokens { read: 99_000, output: 7, ..Tokens::default() }.written(1_000, Ttl::OneHour);
        assert_eq!(price.cost(&at), Usd(99_000 * 10 + 1_000 * 200 + 7 * 500));
        let above = Tokens { input: 1, ..at };
        assert_eq!(price.cost(&above), Usd(500 + 99_000 * 50 + 1_000 * 1_000 + 7 * 2_500));
        let ahead = [0, 100_000, 100_001].map(|prompt| price.step_above(prompt));
        assert_eq!(ahead, [Some(100_000), Some(100_000), None]);
    }

    #[test]
    fn the_usual_ratios_stand_in_for_an_unknown_model() {
        let tariff = Price::unknown("x").tariff;
        assert_eq!((tariff.read * 10, tariff.write_5m * 4, tariff.write_1h), (1000, 5000, 2000));
    }

    #[test]
    fn money_comes_from_dollars_and_goes_there() {
        assert_eq!(Usd::of_dollars(0.064_9), Usd(64_900_000));
        assert_eq!(Usd(64_900_000).to_string(), "0.0649 USD");
        assert_eq!([f64::NAN, -1.0].map(Usd::of_dollars), [Usd(0), Usd(0)]);
    }
}
