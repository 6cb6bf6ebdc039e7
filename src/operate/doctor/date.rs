//! The time in an HTTP `Date` header.

/// Seconds since the Unix epoch of `Sun, 29 Nov 2026 21:20:00 GMT`.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut parts = text.split_once(", ")?.1.split(' ');
    let mut next = || parts.next();
    let day: i64 = next()?.parse().ok()?;
    let month = month(next()?)?;
    let year: i64 = next()?.parse().ok()?;
    let mut clock = next()?.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let fits = (1..=31).contains(&day) && (0..24).contains(&hour) && (0..60).contains(&minute);
    (fits && (1970..10_000).contains(&year))
        .then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn month(name: &str) -> Option<i64> {
    const NAMES: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let at = NAMES.find(name).filter(|at| at % 3 == 0 && name.len() == 3)?;
    i64::try_from(at / 3 + 1).ok()
}

/// Days since the Unix epoch in the Gregorian calendar, years counted from March so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Tue, 29 Feb 2000 12:00:00 GMT", Some(951_825_600)),
            ("Sun, 29 Nov 2026 21:20:00 GMT", Some(1_795_987_200)),
            ("Mon, 01 Mar 2100 00:00:00 GMT", Some(4_107_542_400)),
            ("Sun, 29 Foo 2026 21:20:00 GMT", None),
            ("Sun, 29 anF 2026 21:20:00 GMT", None),
            ("2026-11-29T21:20:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse(text), seconds, "{text}");
        }
    }
}
