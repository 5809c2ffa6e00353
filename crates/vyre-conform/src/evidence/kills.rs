//! How many planted faults the suite finds, class by class.
//!
//! Rates are measured on mutants that nothing was tuned on, and recorded under the hash of the suite that found them: for another suite
//! nothing was measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Rates for one suite and tier. The file is this as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillRates {
    /// The hash of the suite that was measured.
    pub suite: String,
    /// The tier that was.
    pub tier: Option<String>,
    /// By class of mutants.
    pub classes: BTreeMap<String, Killed>,
}

/// So many of so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Killed {
    /// Mutants that were found out.
    pub killed: u64,
    /// Mutants that there were.
    pub of: u64,
}

impl Killed {
    /// The part that was found, from 0 to 1.
    #[must_use]
    pub fn rate(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.killed as f64 / self.of as f64 }
    }

    /// Between which rates the true one lies with 95 %: the interval of Wilson, which keeps to 0 … 1 also for few mutants.
    #[must_use]
    pub fn interval(self) -> (f64, f64) {
        const Z: f64 = 1.959_964;
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (self.of as f64, self.rate());
        let middle = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let whole = 1.0 + Z * Z / n;
        (((middle - half) / whole).max(0.0), ((middle + half) / whole).min(1.0))
    }
}

impl KillRates {
    /// Reads a file of rates.
    pub fn read(path: &Path) -> Result<KillRates, KillError> {
        let text = std::fs::read_to_string(path).map_err(|error| KillError::Unreadable(path.into(), error))?;
        let rates: KillRates =
            serde_json::from_str(&text).map_err(|error| KillError::Malformed(path.into(), error.to_string()))?;
        match rates.classes.iter().find(|(_, killed)| killed.killed > killed.of) {
            Some((class, Killed { killed, of })) => {
                Err(KillError::Malformed(path.into(), format!("{killed} of {of} mutants of the class `{class}` are killed")))
            }
            None => Ok(rates),
        }
    }

    /// Whether these are the rates of a run with this suite and tier.
    #[must_use]
    pub fn is_of(&self, suite: &str, tier: Option<&str>) -> bool {
        self.suite == suite && (self.tier.is_none() || self.tier.as_deref() == tier)
    }

    /// All classes together.
    #[must_use]
    pub fn all(&self) -> Killed {
        let add = |sum: Killed, class: &Killed| Killed { killed: sum.killed + class.killed, of: sum.of + class.of };
        self.classes.values().fold(Killed::default(), add)
    }
}

/// Why a file of rates cannot be used.
#[derive(Debug)]
pub enum KillError {
    /// It cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// It does not hold rates.
    Malformed(PathBuf, String),
}

impl fmt::Display for KillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KillError::Unreadable(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            KillError::Malformed(path, what) => write!(f, "{} does not hold kill rates: {what}", path.display()),
        }
    }
}

impl std::error::Error for KillError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_rate_and_shrink_with_more_mutants() {
        let few = Killed { killed: 9, of: 10 };
        let many = Killed { killed: 900, of: 1000 };
        let [(low, high), (lower, higher)] = [many, few].map(Killed::interval);
        assert!(lower < low && low < 0.9 && 0.9 < high && high < higher);
        // The textbook's values for 9 of 10.
        assert!((lower - 0.5958).abs() < 1e-3 && (higher - 0.9821).abs() < 1e-3, "{lower} {higher}");
        assert!(Killed { killed: 10, of: 10 }.interval().0 < 0.75);
        assert_eq!(Killed::default().interval(), (0.0, 1.0));
    }
}
