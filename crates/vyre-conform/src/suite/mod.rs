//! The ops of the suite.

use crate::spec::OpSpec;

/// All of them.
#[must_use]
pub fn all() -> Vec<OpSpec> {
    Vec::new()
}
