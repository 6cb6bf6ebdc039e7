//! The price file: what is compiled in, and how such a file is read.

use std::path::Path;

use serde::Deserialize;

use super::error::{ConfigError, Place, Problem, ProblemKind};
use super::source::Source;
use crate::persona::session::price::{Price, Prices, Step, Tariff};

const SHIPPED: &str = include_str!("../../config/prices.toml");
const NAME: &str = "config/prices.toml";

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    source: String,
    date: String,
    models: Vec<Model>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    input: f64,
    output: f64,
    #[serde(default = "cache_read")]
    cache_read: f64,
    #[serde(default = "cache_write_5m")]
    cache_write_5m: f64,
    #[serde(default = "cache_write_1h")]
    cache_write_1h: f64,
    window: u64,
    minimum: u64,
    #[serde(default)]
    steps: Vec<LongPrompt>,
    #[serde(default)]
    assumed: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPrompt {
    above: u64,
    input: f64,
    output: f64,
}

fn cache_read() -> f64 {
    0.1
}

fn cache_write_5m() -> f64 {
    1.25
}

fn cache_write_1h() -> f64 {
    2.0
}

/// The prices that are compiled in.
///
/// # Errors
/// None, as long as the shipped file is well-formed, which a test holds.
pub fn shipped() -> Result<Prices, ConfigError> {
    read(Path::new(NAME), SHIPPED)
}

/// The prices that are compiled in, under those of an operator's own file.
///
/// # Errors
/// Everything that is wrong with that file.
pub fn with_own(path: &Path, text: &str) -> Result<Prices, ConfigError> {
    Ok(shipped()?.under(read(path, text)?))
}

/// Reads a price file's text; `path` is named where it is wrong.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(path: &Path, text: &str) -> Result<Prices, ConfigError> {
    let one = |problem: Problem| ConfigError::Invalid(vec![as_shipped(problem)]);
    let source = Source::parse(path, text.to_owned()).map_err(one)?;
    let file: File = source.read().map_err(one)?;
    let mut problems = Vec::new();
    let mut models: Vec<Price> = Vec::new();
    for (index, model) in file.models.iter().enumerate() {
        let mut fail = |key: &str, cause: String, remedy: &str| {
            let key = format!("models[{index}].{key}");
            let place = source.place(&key);
            problems.push(Problem { place, key, cause, remedy: remedy.into(), kind: ProblemKind::Config });
        };
        let price = price(model, &mut fail);
        let names = || std::iter::once(&price.model).chain(&price.aliases);
        let taken =
            |name: &&String| models.iter().any(|other| other.model == **name || other.aliases.contains(name));
        if let Some(name) = names().find(taken) {
            fail("name", format!("`{name}` stands here twice"), "keep one of the rows");
        }
        models.push(price);
    }
    if problems.is_empty() {
        Ok(Prices { source: file.source, date: file.date, models })
    } else {
        Err(ConfigError::Invalid(problems))
    }
}

fn price(model: &Model, fail: &mut impl FnMut(&str, String, &str)) -> Price {
    let mut tariff = |key: &str, input: f64, output: f64| {
        let mut exact = |dollars: f64| {
            let nanos = (dollars * 1000.0).round();
            if !(nanos >= 1.0 && (dollars * 1000.0 - nanos).abs() < 1e-6 && nanos < 1e9) {
                let cause = format!("a token kind would cost {dollars:.6} USD per million");
                fail(key, cause, "write prices and multipliers that give a multiple of 0.001 above zero");
            }
            nanos as u64
        };
        Tariff {
            input: exact(input),
            output: exact(output),
            read: exact(input * model.cache_read),
            write_5m: exact(input * model.cache_write_5m),
            write_1h: exact(input * model.cache_write_1h),
        }
    };
    let base = tariff("input", model.input, model.output);
    let steps: Vec<Step> = model
        .steps
        .iter()
        .map(|step| Step { above: step.above, tariff: tariff("steps", step.input, step.output) })
        .collect();
    if !steps.is_sorted_by(|one, next| one.above < next.above) {
        fail("steps", "they are not in the order of `above`".into(), "put the shortest prompts first");
    }
    if model.cache_read > model.cache_write_5m.min(model.cache_write_1h) {
        fail(
            "cache_read",
            "reading from the cache would cost more than writing to it".into(),
            "write the smaller multiplier here",
        );
    }
    if model.window == 0 {
        fail("window", "it is 0".into(), "write the model's context window in tokens");
    }
    Price {
        model: model.name.clone(),
        aliases: model.aliases.clone(),
        tariff: base,
        steps,
        window: model.window,
        minimum: model.minimum,
        assumed: model.assumed.clone(),
    }
}

/// A remedy that points to the example config is of no use here.
fn as_shipped(problem: Problem) -> Problem {
    if !problem.remedy.contains("example-config") {
        return problem;
    }
    let remedy = if matches!(problem.place, Place::File(_)) {
        format!("write every key that a row of {NAME} has")
    } else {
        format!("write it as {NAME} does")
    };
    Problem { remedy, ..problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "source = \"s\"\ndate = \"d\"\n[[models]]\nname = \"m\"\ninput = 3.0\noutput = 15.0\nwindow = 9\nminimum = 1\n";

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let said = match read(Path::new("p.toml"), text) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn the_shipped_file_has_its_source_its_date_and_the_models() {
        let prices = shipped().expect("well-formed");
        assert!(prices.source.contains("2.1.332") && prices.date.len() == 10);
        let opus = prices.find("claude-opus-5-5").expect("known");
        assert_eq!(
            opus.tariff,
            Tariff { input: 4000, output: 20_000, read: 200, write_5m: 5000, write_1h: 8000 }
        );
        let haiku = prices.find("claude-haiku-5-5").expect("known");
        let long = Tariff { input: 500, output: 2500, read: 50, write_5m: 625, write_1h: 1000 };
        assert_eq!(haiku.steps, [Step { above: 100_000, tariff: long }]);
        let sonnet = prices.find("claude-sonnet-4-6").expect("known");
        assert_eq!((sonnet.tariff.read, sonnet.tariff.write_1h, sonnet.window), (300, 6000, 200_000));
        assert_eq!(prices.find("sonnet"), prices.find("claude-sonnet-5-5"));
        assert_eq!(prices.find("claude-haiku-4-5-20251001").map(|price| price.minimum), Some(4096));
        assert_eq!(prices.find("gpt-6"), None);
    }

    #[test]
    fn every_model_that_claude_knows_is_priced() {
        let prices = shipped().expect("well-formed");
        for family in ["opus-4-0", "opus-4-8", "opus-5", "sonnet-4-5", "sonnet-5", "fable-5-2", "mythos-5"] {
            assert!(prices.find(&format!("claude-{family}")).is_some(), "{family}");
        }
        assert!(prices.models.len() >= 20);
    }

    #[test]
    fn an_own_row_takes_the_place_of_the_shipped_one_with_its_aliases_and_adds_to_the_others() {
        let row = |name: &str, input: &str| {
            ROW.replace("\"m\"", &format!("\"{name}\"")).replace("input = 3.0", &format!("input = {input}"))
        };
        let own = |text: &str| with_own(Path::new("p.toml"), text).expect("well-formed");
        let input = |prices: &Prices, model: &str| prices.find(model).map(|price| price.tariff.input);
        let prices = own(&row("claude-opus-5-5", "7.0"));
        assert_eq!((prices.source.as_str(), prices.date.as_str()), ("s", "d"));
        for name in ["claude-opus-5-5", "opus", "claude-opus-5-5-20261001", "opus[1m]"] {
            assert_eq!(input(&prices, name), Some(7_000), "{name}");
        }
        assert_eq!(input(&prices, "sonnet"), input(&shipped().unwrap(), "sonnet"));
        let prices = own(&row("house-model", "1.0").replace("output", "aliases = [\"opus\"]\noutput"));
        assert_eq!((input(&prices, "house-model"), input(&prices, "opus")), (Some(1_000), Some(1_000)));
        assert_eq!(input(&prices, "claude-opus-5-5"), Some(4_000));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        check(ROW, &[]);
        check(
            &format!("{ROW}cache_raed = 0.1\n"),
            &["p.toml:9: models[0].cache_raed: unknown key `cache_raed`; did you mean `cache_read`?"],
        );
        check(
            &format!("{ROW}window_ = \"x\"\n"),
            &["p.toml:9: models[0].window_: unknown key `window_`; did you mean `window`?"],
        );
        check(
            &ROW.replace("3.0", "\"three\""),
            &[
                "p.toml:5: models[0].input: invalid type: string \"three\", expected a number; write it as config/prices.toml does",
            ],
        );
        check(
            &ROW.replace("minimum = 1\n", ""),
            &["p.toml:3: models[0]: missing field `minimum`; write it as config/prices.toml does"],
        );
    }

    #[test]
    fn prices_that_cannot_be_are_refused() {
        let fine = "a token kind would cost 0.000150 USD per million; write prices and multipliers that give a multiple of 0.001 above zero";
        check(&format!("{ROW}cache_read = 0.00005\n"), &[&format!("p.toml:5: models[0].input: {}", fine)]);
        let dearer =
            "reading from the cache would cost more than writing to it; write the smaller multiplier here";
        let of_models = format!("p.toml:9: models[0].cache_read: {dearer}");
        check(&format!("{ROW}cache_read = 1.5\n"), &[&of_models]);
        check(&format!("{ROW}cache_read = 1.25\n"), &[]);
        check(&format!("{ROW}cache_read = 2.0\ncache_write_5m = 3.0\ncache_write_1h = 1.0\n"), &[&of_models]);
        check(
            &format!(
                "{ROW}steps = [{{ above = 9, input = 1.0, output = 1.0 }}, {{ above = 5, input = 1.0, output = 1.0 }}]\n"
            ),
            &[
                "p.toml:9: models[0].steps: they are not in the order of `above`; put the shortest prompts first",
            ],
        );
        let twice = format!(
            "{ROW}[[models]]\nname = \"n\"\naliases = [\"m\"]\ninput = 1\noutput = 1\nwindow = 0\nminimum = 1\n"
        );
        check(
            &twice,
            &[
                "p.toml:14: models[1].window: it is 0; write the model's context window in tokens",
                "p.toml:10: models[1].name: `m` stands here twice; keep one of the rows",
            ],
        );
    }
}
