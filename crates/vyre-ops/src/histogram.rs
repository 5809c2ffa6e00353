//! Counting values.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../kernels/histogram.vyre"));
static WIDE: Template = Template::new(include_str!("../kernels/histogram_wide.vyre"));

/// Bins that every workgroup counts in its own memory first; 16 KiB of it, which every device has.
const LOCAL_BINS: u32 = 4096;

/// How often each value below `bins` is in a buffer. Others are not counted.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read u32 | |
/// | `bins` @1 | output u32, `bins` elements | |
///
/// Launch: any grid along x; a few workgroups for each processor are best. Up to 4096 bins are counted in workgroup memory and added up at
/// the end, one atomic a bin and workgroup; more are counted where they are, one atomic an element.
#[must_use]
pub fn histogram(workgroup: [u32; 3], bins: u32) -> Program {
    let kernel = if bins <= LOCAL_BINS { &KERNEL } else { &WIDE };
    kernel.program(workgroup, &[("count", SpecValue::U32(bins))]).with_name("histogram")
}

/// What [`histogram`] gives: how far apart the first and the last of equal values are once they are sorted.
#[must_use]
pub fn histogram_on_cpu(x: &[u32], bins: u32) -> Vec<u32> {
    let mut sorted = x.to_vec();
    sorted.sort_unstable();
    let below = |value: u32| sorted.partition_point(|x| *x < value) as u32;
    (0..bins).map(|bin| sorted.partition_point(|x| *x <= bin) as u32 - below(bin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        assert_eq!(histogram_on_cpu(&[3, 1, 3, 3, 0, 9, u32::MAX], 4), [1, 1, 0, 3]);
    }
}
