//! Every value that the operands can have.

use super::layout::Layout;
use super::{Draw, Evidence, Space};
use std::ops::Range;

/// The most bits that the operands of an op may have together for all of their values to be tried.
pub const MOST_BITS: u32 = 32;

/// All values of all operands; the bits of the case's number are those of the operands, first operand lowest.
pub struct Exhaustive {
    /// Bytes that a case has of each input.
    bytes: Vec<u32>,
}

impl Exhaustive {
    /// Of the operands of an op whose cases are elements, if they have few enough bits.
    #[must_use]
    pub fn of(layout: &Layout) -> Option<Exhaustive> {
        let bytes: Vec<u32> = layout.counts(1).iter().zip(layout.units()).map(|(count, unit)| count * unit.bytes).collect();
        (layout.is_fixed() && bytes.iter().sum::<u32>() * 8 <= MOST_BITS).then_some(Exhaustive { bytes })
    }
}

impl Space for Exhaustive {
    fn name(&self) -> &str {
        "exhaustive"
    }

    fn cases(&self, _: u32) -> u64 {
        1 << (self.bytes.iter().sum::<u32>() * 8)
    }

    fn evidence(&self) -> Evidence {
        Evidence::Exhaustive
    }

    fn fill(&self, _: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]) {
        let mut below = 0;
        for (bytes, column) in self.bytes.iter().zip(columns) {
            match bytes {
                4 => column.extend(cases.clone().flat_map(|n| ((n >> below) as u32).to_le_bytes())),
                2 => column.extend(cases.clone().flat_map(|n| ((n >> below) as u16).to_le_bytes())),
                1 => column.extend(cases.clone().map(|n| (n >> below) as u8)),
                _ => column.extend(cases.clone().flat_map(|n| (n >> below).to_le_bytes().into_iter().take(*bytes as usize))),
            }
            below += bytes * 8;
        }
    }
}
