//! Days of the calendar, in UTC.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A day. Its text is `2026-11-30`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Date {
    year: i64,
    month: u8,
    day: u8,
}

impl Date {
    /// The day on which so many seconds have passed since 1970.
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Date {
        // Days are counted from the 1st of March of year 0, so that the day that comes every four years is the last of its year
        // (Howard Hinnant's algorithm).
        let days = (seconds / 86_400) as i64 + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Date { year: year_of_era + era * 400 + i64::from(month <= 2), month: month as u8, day: day as u8 }
    }

    /// Today.
    #[must_use]
    pub fn today() -> Date {
        Date::of_seconds(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()))
    }
}

/// A moment as people read it: `2026-11-30 14:05 UTC`.
pub(crate) fn moment(seconds: u64) -> String {
    let of_day = seconds % 86_400;
    format!("{} {:02}:{:02} UTC", Date::of_seconds(seconds), of_day / 3600, of_day % 3600 / 60)
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Date, String> {
        let wrong = || format!("`{text}` is not a day such as 2026-11-30");
        let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let number = |text: &str, digits: usize| {
            let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse::<u16>().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        let (year, month, day) = (i64::from(number(year, 4)?), number(month, 2)?, number(day, 2)?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if is_leap => 29,
            2 => 28,
            _ => return Err(wrong()),
        };
        if day == 0 || day > days { Err(wrong()) } else { Ok(Date { year, month: month as u8, day: day as u8 }) }
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (20_774, "2026-11-17"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(Date::of_seconds(days * 86_400 + 86_399).to_string(), text);
        }
        // Every day is the one after the day before it, and is read back.
        let mut before = Date::of_seconds(0);
        for day in 1..60_000 {
            let date = Date::of_seconds(day * 86_400);
            assert!(date > before);
            assert_eq!(date.to_string().parse(), Ok(date));
            before = date;
        }
        for text in
            ["2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "2026-04-31", "26-01-01", "2026-01-01-", "+026-01-01", ""]
        {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}
