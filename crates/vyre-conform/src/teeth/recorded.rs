//! Rates that were measured, by suite and tier.

use super::Rate;
use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a tier of a suite notices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// The hash of the suite at this tier.
    pub suite: Digest,
    /// The tier.
    pub tier: String,
    /// All mutants together.
    pub all: Rate,
    /// Those that nothing was tuned on.
    pub held_out: Rate,
    /// The held-out ones by class.
    pub classes: BTreeMap<String, Rate>,
}

/// The rates that were measured for this suite, if they were.
#[must_use]
pub fn recorded(suite: Digest) -> Option<Recorded> {
    let all: Vec<Recorded> = serde_json::from_str(include_str!("recorded.json")).unwrap_or_default();
    all.into_iter().find(|recorded| recorded.suite == suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read() {
        assert!(serde_json::from_str::<Vec<Recorded>>(include_str!("recorded.json")).is_ok());
    }
}
