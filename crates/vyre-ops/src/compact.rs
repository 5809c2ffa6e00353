//! Stream compaction.

use crate::template::Template;
use vyre_foundation::ir::Program;

static KERNEL: Template = Template::renaming(include_str!("../kernels/compact.vyre"), &[("sums", "places")]);

/// The elements whose flag is not zero, in their order, one behind the other.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read u32 | |
/// | `keep` @1 | read u32 | as long as `x`: a flag for each element |
/// | `kept` @2 | output u32 | as long as `x`: what is kept, then zeros |
/// | `places` @3 | output u32 | as long as `x`: how many are kept before each element |
/// | `count` @4 | output u32, 1 element | how many are kept |
///
/// Launch: any grid along x; a few workgroups for each processor are best. A scan of the flags ([`crate::scan`]), which takes three grid
/// barriers here, then one store an element.
#[must_use]
pub fn compact(workgroup: [u32; 3]) -> Program {
    KERNEL.program(workgroup, &[])
}

/// What [`compact`] gives: `kept`, `places` and the count.
#[must_use]
pub fn compact_on_cpu(x: &[u32], keep: &[u32]) -> (Vec<u32>, Vec<u32>, u32) {
    let mut kept: Vec<u32> = x.iter().zip(keep).filter(|(_, keep)| **keep != 0).map(|(x, _)| *x).collect();
    let count = kept.len() as u32;
    kept.resize(x.len(), 0);
    let places = (0..x.len()).map(|n| count - keep[n..].iter().filter(|keep| **keep != 0).count() as u32).collect();
    (kept, places, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let found = compact_on_cpu(&[5, 6, 7, 8], &[0, 9, 0, 1]);
        assert_eq!(found, (vec![6, 8, 0, 0], vec![0, 0, 1, 1], 2));
    }
}
