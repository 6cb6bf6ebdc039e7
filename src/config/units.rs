//! Durations and sizes as operators write them.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::persona::Limit;

/// A duration: `"300ms"`, `"2s"`, `"15m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A number of bytes: `"256MiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// So many in any span of a length, `"20 per 10m"`, or any number, `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub Option<Limit>);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a limit such as \"20 per 10m\", or \"off\"", parse_rate))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a duration such as \"300ms\", \"2s\" or \"15m\"", |text: &str| {
            humantime::parse_duration(text).ok().map(Self)
        }))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_str(Text("a size such as \"64KiB\", \"256MiB\" or \"2GiB\"", |text: &str| {
                parse_size(text).map(Self)
            }))
    }
}

struct Text<F>(&'static str, F);

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).ok_or_else(|| E::custom(format_args!("`{text}` is not {}", self.0)))
    }
}

fn parse_rate(text: &str) -> Option<Rate> {
    if text == "off" {
        return Some(Rate(None));
    }
    let (most, within) = text.split_once(" per ")?;
    let limit = Limit {
        most: most.trim().parse().ok().filter(|most| *most > 0)?,
        within: humantime::parse_duration(within.trim()).ok().filter(|within| !within.is_zero())?,
    };
    Some(Rate(Some(limit)))
}

fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "B" => 1,
        "kB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_a_number_per_span_or_off() {
        let limit = |most, secs| Some(Rate(Some(Limit { most, within: Duration::from_secs(secs) })));
        for (text, rate) in [
            ("20 per 10m", limit(20, 600)),
            ("1 per 1h 30m", limit(1, 5_400)),
            ("off", Some(Rate(None))),
            ("0 per 10m", None),
            ("20 per 0s", None),
            ("20", None),
            ("20/10m", None),
            ("-1 per 10m", None),
            ("20 per ten", None),
            ("OFF", None),
        ] {
            assert_eq!(parse_rate(text), rate, "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        for (text, bytes) in [
            ("0B", Some(0)),
            ("1kB", Some(1_000)),
            ("64KiB", Some(65_536)),
            ("256MiB", Some(268_435_456)),
            ("256 MiB", Some(268_435_456)),
            ("2GB", Some(2_000_000_000)),
            ("2GiB", Some(2_147_483_648)),
            ("256", None),
            ("MiB", None),
            ("-1MiB", None),
            ("1.5MiB", None),
            ("99999999999999999999B", None),
            ("18446744073709551615GiB", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }
}
