//! The specs of the language: every op on every type, and what invocations do together.

pub mod elementwise;
mod thresholds;

pub use elementwise::elementwise;

use crate::spec::OpSpec;

/// All of them.
#[must_use]
pub fn all() -> Vec<OpSpec> {
    elementwise()
}
