//! Stencils over grids of cells.

use crate::floats::canonical;
use crate::template::Template;
use vyre_foundation::ir::Program;

static KERNEL: Template = Template::new(include_str!("../kernels/stencil.vyre"));

/// A weighted sum of the 3 × 3 cells around each cell of a grid; past an edge is the cell at the edge.
///
/// s ← s + weight · cell from +0, row by row from the upper left; each operation is rounded to f32.
///
/// | buffer | | |
/// |---|---|---|
/// | `width` @0 | uniform u32, 1 element | cells of a row |
/// | `weights` @1 | uniform f32, 9 elements | row by row |
/// | `cells` @2 | read f32 | row by row, whole rows |
/// | `next` @3 | output f32 | as long as `cells` |
///
/// Launch: an invocation for each cell, along x.
#[must_use]
pub fn stencil(workgroup: [u32; 3]) -> Program {
    KERNEL.program(workgroup, &[])
}

/// What [`stencil`] gives, weight by weight over the whole grid.
#[must_use]
pub fn stencil_on_cpu(width: usize, weights: &[f32; 9], cells: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; cells.len()];
    let height = cells.len() / width.max(1);
    for (k, weight) in weights.iter().enumerate() {
        let moved = |at: usize, by: usize, end: usize| (at as i64 + by as i64 - 1).clamp(0, end as i64 - 1) as usize;
        for y in 0..height {
            for x in 0..width {
                let cell = cells[moved(y, k / 3, height) * width + moved(x, k % 3, width)];
                sums[y * width + x] += weight * cell;
            }
        }
    }
    sums.into_iter().map(canonical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let left = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(stencil_on_cpu(3, &left, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [1.0, 1.0, 2.0, 4.0, 4.0, 5.0]);
        let below = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0];
        assert_eq!(stencil_on_cpu(3, &below, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [40.0, 50.0, 60.0, 40.0, 50.0, 60.0]);
    }
}
