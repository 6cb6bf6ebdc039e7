//! Times as she reads them: UTC, without a clock of our own.

use crate::conversation::ids::Millis;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// The last day with a four-digit year, in days since the epoch; what lies beyond is not shown.
const LAST_DAY: u64 = 2_932_896;

/// The time of day, with its date where that is another than today's; `--:--` where it is unknown.
pub(super) fn short(at: Millis, now: Millis) -> String {
    match (known(at), at.0 / DAY == now.0 / DAY) {
        (false, _) => "--:--".to_owned(),
        (true, true) => clock(at),
        (true, false) => full(at),
    }
}

/// Date and time of day.
pub(super) fn full(at: Millis) -> String {
    let (year, month, day) = date(at.0 / DAY);
    format!("{year:04}-{month:02}-{day:02} {}", clock(at))
}

/// A day counted from the epoch, with its weekday.
pub(in crate::conversation) fn day(days: u64) -> String {
    // The epoch was a Thursday.
    const WEEKDAYS: [&str; 7] =
        ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let weekday = WEEKDAYS.get(usize::try_from(days % 7).unwrap_or_default()).copied().unwrap_or_default();
    let (year, month, day) = date(days.min(LAST_DAY));
    format!("{weekday}, {year:04}-{month:02}-{day:02}")
}

/// Date and time in the form of RFC 3339, to the millisecond.
pub(super) fn stamp(at: Millis) -> String {
    let (year, month, day) = date(at.0 / DAY);
    let (seconds, millis) = (at.0 % MINUTE / 1_000, at.0 % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{}:{seconds:02}.{millis:03}Z", clock(at))
}

/// Whether the time was readable (zero is not) and can be shown.
pub(super) fn known(at: Millis) -> bool {
    at.is_known() && at.0 / DAY <= LAST_DAY
}

fn clock(at: Millis) -> String {
    let minutes = at.0 % DAY / MINUTE;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Year, month and day of a day counted from the epoch, by counting in eras of 400 years that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let from_march_0 = days + 719_468;
    let (era, day_of_era) = (from_march_0 / ERA, from_march_0 % ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-10-31 12:00 UTC.
    const NOON: u64 = 1_793_448_000_000;

    #[test]
    fn dates_fit_the_calendar() {
        for (millis, expect) in [
            (0, "1970-01-01 00:00"),
            (951_782_399_999, "2000-02-28 23:59"),
            (951_782_400_000, "2000-02-29 00:00"),
            (951_868_800_000, "2000-03-01 00:00"),
            (1_793_436_000_000, "2026-10-31 08:40"),
            (4_107_542_399_000, "2100-02-28 23:59"),
            (4_107_542_400_000, "2100-03-01 00:00"),
            (253_402_300_799_999, "9999-12-31 23:59"),
        ] {
            assert_eq!(full(Millis(millis)), expect);
        }
    }

    #[test]
    fn a_day_has_its_weekday() {
        assert_eq!(day(0), "Thursday, 1970-01-01");
        assert_eq!(day(NOON / DAY), "Saturday, 2026-10-31");
        assert_eq!(day(NOON / DAY + 1), "Sunday, 2026-11-01");
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(date(days), (year, month, day), "day {days}");
            let length = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn the_date_is_shown_only_where_it_is_another() {
        let noon = Millis(1_793_448_000_000);
        for (millis, expect) in [
            (noon.0, "12:00"),
            (noon.0 - 12 * 60 * MINUTE, "00:00"),
            (noon.0 - 12 * 60 * MINUTE - 1, "2026-10-30 23:59"),
            (noon.0 + 12 * 60 * MINUTE, "2026-11-01 00:00"),
            (0, "--:--"),
            (u64::MAX, "--:--"),
            ((LAST_DAY + 1) * DAY, "--:--"),
        ] {
            assert_eq!(short(Millis(millis), noon), expect);
        }
    }
}
