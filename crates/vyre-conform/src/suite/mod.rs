//! The specs of the language: every op on every type, what invocations do together, memory and geometry, and
//! kernels that are made of all that.

mod algebra;
mod compositions;
mod dispatches;
pub mod elementwise;
mod identities;
pub(crate) mod random;
mod shared;
mod thresholds;

pub use algebra::algebra;
pub use compositions::compositions;
pub use dispatches::dispatches;
pub use elementwise::elementwise;
pub use identities::identities;
pub use shared::shared;

use crate::spec::OpSpec;

/// All of them.
#[must_use]
pub fn all() -> Vec<OpSpec> {
    elementwise()
        .into_iter()
        .chain(algebra())
        .chain(identities())
        .chain(shared())
        .chain(dispatches())
        .chain(compositions())
        .collect()
}
