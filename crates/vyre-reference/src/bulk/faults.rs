//! Where a fault can be planted in the bulk evaluator: everything that runs a block has a parameter that tells which one is there.
//!
//! [`Faultless`] has none and is what everybody runs: each question is answered when the code is compiled and leaves nothing behind.

use crate::faults::BulkFault;

pub(super) trait Faults: Copy {
    /// Whether this fault is planted.
    fn has(self, fault: BulkFault) -> bool;
}

/// The evaluator as it is.
#[derive(Clone, Copy)]
pub(super) struct Faultless;

impl Faults for Faultless {
    #[inline(always)]
    fn has(self, _: BulkFault) -> bool {
        false
    }
}

/// The evaluator with one fault.
#[derive(Clone, Copy)]
pub(super) struct Planted(pub BulkFault);

impl Faults for Planted {
    fn has(self, fault: BulkFault) -> bool {
        self.0 == fault
    }
}
