//! How many of how many, and what that says about all.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Add;

/// Faults that were noticed, of those that were tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rate {
    /// Noticed.
    pub killed: u64,
    /// Tried.
    pub of: u64,
}

impl Rate {
    /// One more.
    pub fn count(&mut self, is_killed: bool) {
        self.of += 1;
        self.killed += u64::from(is_killed);
    }

    /// The share of faults like these that would be noticed, at 95 % confidence: Wilson's interval.
    #[must_use]
    pub fn interval(self) -> (f64, f64) {
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (n, z) = (self.of as f64, 1.959_964);
        let share = self.killed as f64 / n;
        let center = share + z * z / (2.0 * n);
        let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        (((center - half) / scale).max(0.0), ((center + half) / scale).min(1.0))
    }
}

impl Add for Rate {
    type Output = Rate;

    fn add(self, other: Rate) -> Rate {
        Rate { killed: self.killed + other.killed, of: self.of + other.of }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.interval();
        let percent = |share: f64| 100.0 * share;
        let share = self.killed as f64 / self.of.max(1) as f64;
        write!(f, "{} of {} ({:.1} %, {:.1} to {:.1})", self.killed, self.of, percent(share), percent(low), percent(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_share_and_are_those_of_the_books() {
        // Ten of ten: 72.2 % to 100 %. One half of a hundred: 40.4 % to 59.6 %.
        let (low, high) = Rate { killed: 10, of: 10 }.interval();
        assert!((low - 0.7225).abs() < 1e-3 && high == 1.0, "{low} {high}");
        let (low, high) = Rate { killed: 50, of: 100 }.interval();
        assert!((low - 0.4038).abs() < 1e-3 && (high - 0.5962).abs() < 1e-3, "{low} {high}");
        assert_eq!(Rate::default().interval(), (0.0, 1.0));
    }
}
