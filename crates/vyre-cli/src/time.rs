//! Times on the command line, written in one way everywhere: `500ms`, `10s`, `2m`, `1h`.

use std::time::Duration;

const WRITE: &str = "write a time like 500ms, 10s, 2m or 1h";

/// Units with their seconds, the longest first.
const UNITS: [(&str, f64); 4] = [("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// The time that is written; a number alone is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit || (unit.is_empty() && *name == "s")).ok_or(WRITE)?;
    let number: f64 = number.parse().map_err(|_| WRITE.to_string())?;
    Duration::try_from_secs_f64(number * unit.1).map_err(|_| format!("{text} is too long"))
}

/// A time as [`duration`] reads it.
pub fn written(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds < 1.0 {
        true => format!("{}ms", seconds * 1e3),
        false => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_unit_and_written_back() {
        for (text, milliseconds) in
            [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1.5h", 5_400_000), ("0.5", 500), ("7", 7000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
            let time = Duration::from_millis(milliseconds);
            assert_eq!(duration(&written(time)), Ok(time), "{text}");
        }
        for text in ["", "s", "soon", "10 s", "1d", "-1s", "1.2.3s", "µs", "10S"] {
            assert_eq!(duration(text), Err(WRITE.into()), "{text}");
        }
        assert_eq!(duration("99999999999999999999h"), Err("99999999999999999999h is too long".into()));
    }
}
