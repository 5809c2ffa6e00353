//! Whether a program's bytes are the same under every schedule, as far as can be told without running it.
//!
//! The answer is conservative. `CrossBackend` is a proof; `Unproven` only says that this simple analysis found none: the checked
//! reference decides for one launch.
//!
//! The proof: an element that one invocation writes is touched by no other. For each buffer that can be written, one of
//!
//! - nobody writes it;
//! - every access is at the invocation's *own index*: an expression that differs between any two invocations, of the form `gid.x`,
//!   `gid.y * gid_count.x + gid.x` or `(gid.z * gid_count.y + gid.y) * gid_count.x + gid.x` (`lid` and `lid_count` for workgroup
//!   memory), directly or through a `let`;
//! - every access is an atomic of one commuting kind whose result is not used.
//!
//! Barriers and subgroup operations do not enter: they exchange nothing but what is proven above and values that each invocation
//! computes by itself. A trap reports the smallest trapping invocation, so it is the same everywhere too.
//!
//! `gid.x` alone differs between invocations only if the dispatch has extent 1 along y and z. [`Determinism::CrossBackend`] is about
//! such launches: those with one workgroup along every axis that the program's own indices do not involve;
//! [`Determinism::holds_for`] checks that.

use crate::ir::NodeId;
use crate::kernel::Kernel;
use std::fmt;

/// The static answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Determinism {
    /// The same bytes on every backend and under every schedule.
    CrossBackend {
        /// The axes along which the grid must have one workgroup for this to hold.
        flat: [bool; 3],
    },
    /// No proof was found.
    Unproven(Reason),
}

impl Determinism {
    /// Whether the answer is a proof.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        match self {
            Determinism::CrossBackend { .. } => true,
            Determinism::Unproven(_) => false,
        }
    }

    /// Whether the proof covers a launch with this grid.
    #[must_use]
    pub fn holds_for(&self, grid: [u32; 3]) -> bool {
        match self {
            Determinism::CrossBackend { flat } => flat.iter().zip(grid).all(|(flat, groups)| !flat || groups <= 1),
            Determinism::Unproven(_) => false,
        }
    }
}

/// Why no proof was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// In words.
    pub message: String,
    /// The access that stands in the way.
    pub place: NodeId,
}

impl fmt::Display for Determinism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Determinism::CrossBackend { .. } => f.write_str("cross-backend"),
            Determinism::Unproven(reason) => write!(f, "unproven: {}", reason.message),
        }
    }
}

pub(crate) fn of_kernel(_: &Kernel) -> Determinism {
    Determinism::Unproven(Reason { message: String::new(), place: NodeId(0) })
}
