//! Prefix sums of whole buffers.
//!
//! Three phases with grid barriers between them: every workgroup scans its share, the first workgroup scans the totals, and what stands
//! before a share is added to it. Totals are kept where they belong, in the last element of every share, so that no other memory is
//! needed. Within a workgroup it is the scan of Brent and Kung, which takes as many steps as there are elements, twice over.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../kernels/scan.vyre"));
static SEGMENTED: Template = Template::new(include_str!("../kernels/segmented_scan.vyre"));

/// The sum of every element and all before it, wrapping.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read u32 | |
/// | `sums` @1 | output u32 | as long as `x` |
///
/// Launch: any grid along x; a few workgroups for each processor are best. Two grid barriers, about 4 additions an element.
#[must_use]
pub fn inclusive_sum(workgroup: [u32; 3]) -> Program {
    KERNEL.program(workgroup, &[("shift", SpecValue::U32(0))]).with_name("inclusive_sum")
}

/// The sum of all before an element, wrapping; 0 for the first.
///
/// Buffers, launch and cost are those of [`inclusive_sum`].
#[must_use]
pub fn exclusive_sum(workgroup: [u32; 3]) -> Program {
    KERNEL.program(workgroup, &[("shift", SpecValue::U32(1))]).with_name("exclusive_sum")
}

/// The sum of every element and those before it up to the head of its segment, wrapping; and how many heads there are up to it.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read u32 | |
/// | `heads` @1 | read u32 | not zero where a segment begins |
/// | `sums` @2 | output u32 | as long as `x` |
/// | `segments` @3 | output u32 | as long as `x`: 0 before the first head, 1 from there, and so on |
///
/// Launch: any grid along x. Two grid barriers, about 8 additions an element.
#[must_use]
pub fn segmented_sum(workgroup: [u32; 3]) -> Program {
    SEGMENTED.program(workgroup, &[]).with_name("segmented_sum")
}

/// What [`inclusive_sum`] gives.
#[must_use]
pub fn inclusive_sum_on_cpu(x: &[u32]) -> Vec<u32> {
    let mut sum = 0u32;
    x.iter()
        .map(|value| {
            sum = sum.wrapping_add(*value);
            sum
        })
        .collect()
}

/// What [`exclusive_sum`] gives.
#[must_use]
pub fn exclusive_sum_on_cpu(x: &[u32]) -> Vec<u32> {
    inclusive_sum_on_cpu(x).iter().zip(x).map(|(sum, value)| sum.wrapping_sub(*value)).collect()
}

/// What [`segmented_sum`] gives: sums and numbers of segments.
#[must_use]
pub fn segmented_sum_on_cpu(x: &[u32], heads: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut sum, mut segment) = (0u32, 0);
    x.iter()
        .zip(heads)
        .map(|(value, head)| {
            if *head != 0 {
                (sum, segment) = (0, segment + 1);
            }
            sum = sum.wrapping_add(*value);
            (sum, segment)
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        assert_eq!(inclusive_sum_on_cpu(&[3, 1, 4, 1, 5]), [3, 4, 8, 9, 14]);
        assert_eq!(exclusive_sum_on_cpu(&[3, 1, 4, 1, 5]), [0, 3, 4, 8, 9]);
        assert_eq!(segmented_sum_on_cpu(&[3, 1, 4, 1, 5], &[0, 0, 7, 0, 1]), (vec![3, 4, 4, 5, 5], vec![0, 0, 1, 1, 2]));
        assert_eq!(inclusive_sum_on_cpu(&[u32::MAX, 2]), [u32::MAX, 1]);
    }
}
