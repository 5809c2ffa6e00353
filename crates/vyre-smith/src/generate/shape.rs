//! Workgroup sizes and grids: one, primes, powers of two and their neighbours, in one to three dimensions; small, since the plain
//! interpreter runs them all.

use crate::dna::Dna;

/// The shape of a dispatch.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub size: [u32; 3],
    pub grid: [u32; 3],
}

const FLAT: [u32; 16] = [1, 2, 3, 4, 5, 7, 8, 8, 11, 13, 16, 16, 31, 32, 33, 64];
const BOXES: [[u32; 3]; 10] =
    [[2, 2, 1], [4, 2, 1], [3, 2, 2], [1, 4, 1], [2, 1, 3], [5, 3, 1], [8, 4, 1], [2, 2, 2], [1, 1, 7], [4, 4, 2]];
const GRIDS: [[u32; 3]; 6] = [[1, 1, 1], [2, 1, 1], [1, 2, 1], [2, 2, 1], [1, 1, 2], [3, 1, 2]];
/// Workgroups that 4, 8, 16 and 32 lanes divide.
const IN_SUBGROUPS: [[u32; 3]; 8] = [[4, 1, 1], [8, 1, 1], [12, 1, 1], [4, 2, 1], [16, 1, 1], [32, 1, 1], [2, 4, 4], [64, 1, 1]];

impl Shape {
    /// Draws a shape, and a subgroup size that divides it if one is wanted.
    pub fn draw(dna: &mut Dna<'_>, dimensions: bool, subgroup: bool) -> (Shape, Option<u32>) {
        let size = match (subgroup, dimensions) {
            (true, true) => dna.pick(&IN_SUBGROUPS),
            (true, false) => [dna.pick(&[4, 8, 12, 16, 32, 64]), 1, 1],
            (false, true) => dna.pick(&BOXES),
            (false, false) => [dna.pick(&FLAT), 1, 1],
        };
        let group: u32 = size.iter().product();
        let grid = match dimensions {
            true if group > 16 => dna.pick(&GRIDS[..3]),
            true => dna.pick(&GRIDS),
            false if group > 16 => [1 + dna.below(2), 1, 1],
            false => [1 + dna.below(4), 1, 1],
        };
        let sizes: Vec<u32> =
            vyre_spec::limits::SUBGROUP_SIZES.into_iter().filter(|lanes| group.is_multiple_of(*lanes)).collect();
        let lanes = (subgroup && !sizes.is_empty()).then(|| dna.pick(&sizes));
        (Shape { size, grid }, lanes)
    }

    /// Invocations of one workgroup.
    pub fn group(&self) -> u32 {
        self.size.iter().product()
    }

    /// Invocations of the whole grid.
    pub fn invocations(&self) -> u32 {
        self.group() * self.grid.iter().product::<u32>()
    }

    /// Whether x is the only dimension.
    pub fn flat(&self) -> bool {
        [self.size, self.grid].iter().all(|extent| extent[1] == 1 && extent[2] == 1)
    }
}
