//! When two results are the same.

use std::fmt;
use std::sync::Arc;

/// Given the device's bytes and the expected ones, why they do not agree.
pub type Agree = Arc<dyn Fn(&[u8], &[u8]) -> Result<(), String> + Send + Sync>;

/// When a device's result of a case agrees with the expected one.
#[derive(Clone)]
pub enum Comparator {
    /// All bytes are equal; what the language promises, and the only one that the suite itself uses.
    Exact,
    /// What a user's op needs: given the device's bytes and the expected ones, why they do not agree.
    Custom(Agree),
}

impl Comparator {
    /// Whether `found` is as good as `expected`.
    ///
    /// # Errors
    ///
    /// Why it is not: the first difference.
    pub fn compare(&self, found: &[u8], expected: &[u8]) -> Result<(), String> {
        match self {
            Comparator::Exact if found == expected => Ok(()),
            Comparator::Exact if found.len() != expected.len() => {
                Err(format!("{} bytes, and {} are expected", found.len(), expected.len()))
            }
            Comparator::Exact => {
                let at = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or_default();
                Err(format!("byte {at} is {:#04x}, and {:#04x} is expected", found[at], expected[at]))
            }
            Comparator::Custom(agree) => agree(found, expected),
        }
    }
}

impl fmt::Debug for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparator::Exact => "Exact",
            Comparator::Custom(_) => "Custom",
        })
    }
}
