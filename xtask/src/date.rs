//! Days of the calendar, as names of files.

use std::time::{SystemTime, UNIX_EPOCH};

/// Days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(pub(crate) i64);

const SECONDS: u64 = 86_400;

impl Day {
    /// By the wall clock, in UTC.
    pub(crate) fn today() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self(i64::try_from(seconds / SECONDS).unwrap_or(i64::MAX))
    }

    /// `YYYY-MM-DD`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let found = Self(days_before(year, month) + day - 1);
        ((1..=12).contains(&month) && found.name() == text).then_some(found)
    }

    /// `YYYY-MM-DD`.
    pub(crate) fn name(self) -> String {
        let mut year = 1970 + self.0 / 366;
        while days_before(year + 1, 1) <= self.0 {
            year += 1;
        }
        let month = (1..=12).rev().find(|month| days_before(year, *month) <= self.0).unwrap_or(1);
        format!("{year:04}-{month:02}-{:02}", self.0 - days_before(year, month) + 1)
    }
}

/// From 1970-01-01 to the first of that month.
fn days_before(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let is_leap = leaps(year) > leaps(year - 1);
    let month = usize::try_from(month - 1).unwrap_or(0).min(11);
    let extra = i64::from(is_leap && month > 1);
    365 * (year - 1970) + leaps(year - 1) - leaps(1969) + BEFORE[month] + extra
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_names_and_names_have_days() {
        for (day, name) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_788, "2026-12-01"),
        ] {
            assert_eq!((Day(day).name().as_str(), Day::parse(name)), (name, Some(Day(day))));
        }
        for day in 0..60_000 {
            assert_eq!(Day::parse(&Day(day).name()), Some(Day(day)));
        }
    }

    #[test]
    fn what_is_no_day_is_none() {
        for name in ["2026-02-30", "2026-13-01", "2026-1-1", "yesterday", ""] {
            assert_eq!(Day::parse(name), None, "{name}");
        }
    }
}
