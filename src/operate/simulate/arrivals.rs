//! When mail comes: a trace file, or drawn.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Mail that begins a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, since the beginning.
    pub at: Duration,
    /// How many deliveries it is.
    pub deliveries: u64,
}

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("{path}: {source}; name a readable file of arrivals", path = path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it is wrong.
    #[error("{path}:{line}: {cause}; {remedy}", path = path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Nothing is in it.
    #[error("{path}: no arrival is in it; write one a line: seconds since the beginning, then the number of deliveries", path = path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
}

const FORM: &str = "write seconds since the beginning, and after a space how many deliveries";
const MOST_SECONDS: u64 = 100 * 366 * 86_400;
const MOST_DELIVERIES: u64 = 1_000;

/// Reads a trace file. `deliveries` is for lines that do not say how many.
///
/// # Errors
/// It cannot be read, a line of it is wrong, or there is none.
pub fn read(path: &Path, deliveries: u64) -> Result<Vec<Arrival>, TraceError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| TraceError::Read { path: path.into(), source })?;
    parse(path, &text, deliveries)
}

fn parse(path: &Path, text: &str, deliveries: u64) -> Result<Vec<Arrival>, TraceError> {
    let mut arrivals: Vec<Arrival> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        let arrival = match words.as_slice() {
            [] => continue,
            [seconds] => arrival(seconds, None, deliveries),
            [seconds, count] => arrival(seconds, Some(count), deliveries),
            _ => Err((format!("{} words", words.len()), FORM)),
        };
        let earlier = arrivals.last().map_or(Duration::ZERO, |last| last.at);
        let arrival = arrival.and_then(|arrival| {
            let fault = format!("{} s is before the line above", arrival.at.as_secs());
            if arrival.at < earlier { Err((fault, "put the lines in order of time")) } else { Ok(arrival) }
        });
        let wrong = |(cause, remedy)| TraceError::Line { path: path.into(), line: index + 1, cause, remedy };
        arrivals.push(arrival.map_err(wrong)?);
    }
    if arrivals.is_empty() { Err(TraceError::Empty { path: path.into() }) } else { Ok(arrivals) }
}

fn arrival(seconds: &str, count: Option<&&str>, deliveries: u64) -> Result<Arrival, (String, &'static str)> {
    let whole = |word: &str, most: u64| {
        let number = word.parse::<u64>().map_err(|_| (format!("`{word}` is not a whole number"), FORM))?;
        if number <= most { Ok(number) } else { Err((format!("{number} is more than {most}"), FORM)) }
    };
    let at = Duration::from_secs(whole(seconds, MOST_SECONDS)?);
    match count.map_or(Ok(deliveries), |count| whole(count, MOST_DELIVERIES))? {
        0 => Err(("0 deliveries are no mail".into(), "leave the line out")),
        deliveries => Ok(Arrival { at, deliveries }),
    }
}

/// Draws arrivals at random moments, `per_day` a day on average, for so many days.
pub fn draw(per_day: u64, days: u64, deliveries: u64, seed: u64) -> Vec<Arrival> {
    let end = Duration::from_secs(days * 86_400);
    let mut chance = Chance(seed);
    let mut arrivals = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at = at.saturating_add(chance.wait(per_day));
        if at >= end {
            return arrivals;
        }
        arrivals.push(Arrival { at, deliveries });
    }
}

/// A generator with little state and a good spread (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The time to the next of so many a day, in whole milliseconds.
    fn wait(&mut self, per_day: u64) -> Duration {
        let open = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        Duration::from_millis((86_400_000.0 / per_day as f64 * -open.ln()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let said = match parse(Path::new("t.trace"), text, 3) {
            Ok(arrivals) => arrivals
                .iter()
                .map(|arrival| format!("{}x{} ", arrival.at.as_secs(), arrival.deliveries))
                .collect(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said.trim_end(), expected, "{text:?}");
    }

    #[test]
    fn a_trace_is_one_arrival_a_line() {
        check("# a day\n0 1\n\n  60\t2  # two\n60\n86400 1000\n", "0x1 60x2 60x3 86400x1000");
        check(
            "# nothing\n",
            "t.trace: no arrival is in it; write one a line: seconds since the beginning, then the number of deliveries",
        );
    }

    #[test]
    fn a_wrong_line_is_named_with_what_to_do() {
        let form = "write seconds since the beginning, and after a space how many deliveries";
        check("0\nx 1\n", &format!("t.trace:2: `x` is not a whole number; {form}"));
        check("1.5\n", &format!("t.trace:1: `1.5` is not a whole number; {form}"));
        check("1 2 3\n", &format!("t.trace:1: 3 words; {form}"));
        check("1 1001\n", &format!("t.trace:1: 1001 is more than 1000; {form}"));
        check("9\n\n8\n", "t.trace:3: 8 s is before the line above; put the lines in order of time");
        check("9 0\n", "t.trace:1: 0 deliveries are no mail; leave the line out");
    }

    #[test]
    fn drawn_arrivals_hang_on_the_seed_alone_and_are_as_many_as_asked_for() {
        let drawn = draw(100, 30, 3, 1);
        assert_eq!(drawn, draw(100, 30, 3, 1));
        assert_ne!(drawn, draw(100, 30, 3, 2));
        assert!((2_800..3_200).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn.is_sorted_by_key(|arrival| arrival.at));
        assert!(
            drawn
                .iter()
                .all(|arrival| arrival.at < Duration::from_secs(30 * 86_400) && arrival.deliveries == 3)
        );
        assert!(draw(0, 30, 3, 1).is_empty());
    }
}
