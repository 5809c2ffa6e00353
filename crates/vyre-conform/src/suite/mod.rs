//! The specs of the language: every op on every type, what invocations do together, and kernels that are made of them.

mod compositions;
pub mod elementwise;
mod shared;
mod thresholds;

pub use compositions::compositions;
pub use elementwise::elementwise;
pub use shared::shared;

use crate::spec::OpSpec;

/// All of them.
#[must_use]
pub fn all() -> Vec<OpSpec> {
    elementwise().into_iter().chain(shared()).chain(compositions()).collect()
}
