//! Where cases come from.
//!
//! A space is random-access: case n is computed from n, so that nothing is kept, a run can begin anywhere, and any case can be made
//! again by whoever doubts it.

mod boundary;
mod exhaustive;
mod layout;
mod strata;

pub use boundary::{Boundary, MOST_COMBINATIONS};
pub use exhaustive::{Exhaustive, MOST_BITS};
pub use layout::{Kind, Layout, Unit};
pub use strata::Sampled;
#[cfg(test)]
pub(crate) use strata::mix;

use crate::spec::OpSpec;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What it says about an op that all cases of a space pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Every value that the operands can have is among them.
    Exhaustive,
    /// Every combination of the values at which ops go wrong is among them.
    Boundary,
    /// They are drawn at random.
    Sampled,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Evidence::Exhaustive => "exhaustive",
            Evidence::Boundary => "boundary",
            Evidence::Sampled => "sampled",
        })
    }
}

/// What the cases of a space are made from, beside their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// The run's seed. Spaces that are not sampled do not look at it.
    pub seed: u64,
    /// Invocations along x of the workgroups that the cases run in.
    pub workgroup: u32,
}

/// Cases of an op, by number.
pub trait Space: Send + Sync {
    /// One word, unlike that of any other space of the op.
    fn name(&self) -> &str;

    /// How many cases there are.
    fn cases(&self, workgroup: u32) -> u64;

    /// What it proves.
    fn evidence(&self) -> Evidence;

    /// Puts the cases of the range behind what the columns hold, one column for each input. If a case is a dispatch, the range has one
    /// case, and the columns become its buffers.
    fn fill(&self, draw: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]);
}

/// The spaces that an op's signature gives: all values if those are few enough, combinations of boundary values, and samples. None if a
/// case is a dispatch, whose lengths no signature tells.
#[must_use]
pub fn derived(spec: &OpSpec) -> Vec<Arc<dyn Space>> {
    let Some(layout) = Layout::of(spec) else { return Vec::new() };
    let mut spaces: Vec<Arc<dyn Space>> = Vec::new();
    if let Some(exhaustive) = Exhaustive::of(&layout) {
        spaces.push(Arc::new(exhaustive));
    }
    spaces.push(Arc::new(Boundary::of(&layout, spec.boundary())));
    spaces.push(Arc::new(Sampled::of(&layout)));
    spaces
}
