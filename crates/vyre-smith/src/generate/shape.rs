//! Workgroup sizes and grids: one, primes, powers of two and their neighbours, in one to three dimensions.
//!
//! Most are small, since the plain interpreter runs them all. Those of many invocations are made for what evaluators do in blocks
//! and vectors: more lanes than a block of the bulk evaluator has, workgroups larger than a block, numbers that no vector divides.

use crate::dna::Dna;
use vyre_spec::limits::MAX_WORKGROUP_INVOCATIONS;

/// How many invocations a dispatch has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Up to about 30.
    Few,
    /// Up to about 130.
    Usual,
    /// Hundreds to thousands.
    Many,
}

/// The shape of a dispatch.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub size: [u32; 3],
    pub grid: [u32; 3],
}

const FLAT: [[u32; 3]; 16] = along_x([1, 2, 3, 4, 5, 7, 8, 8, 11, 13, 16, 16, 31, 32, 33, 64]);
const BOXES: [[u32; 3]; 10] =
    [[2, 2, 1], [1, 4, 1], [2, 1, 3], [1, 1, 7], [4, 2, 1], [2, 2, 2], [3, 2, 2], [5, 3, 1], [8, 4, 1], [4, 4, 2]];
const GRIDS: [[u32; 3]; 6] = [[1, 1, 1], [2, 1, 1], [1, 2, 1], [2, 2, 1], [1, 1, 2], [3, 1, 2]];
/// Workgroups that 4, 8, 16 and 32 lanes divide.
const IN_SUBGROUPS: [[u32; 3]; 9] =
    [[4, 1, 1], [8, 1, 1], [4, 2, 1], [2, 2, 2], [12, 1, 1], [16, 1, 1], [2, 4, 4], [32, 1, 1], [64, 1, 1]];
const FLAT_IN_SUBGROUPS: [[u32; 3]; 6] = along_x([4, 8, 12, 16, 32, 64]);

const LARGE_FLAT: [[u32; 3]; 20] =
    along_x([61, 64, 97, 127, 128, 129, 251, 255, 256, 257, 384, 509, 512, 513, 521, 769, 1000, 1021, 1023, 1024]);
const LARGE_BOXES: [[u32; 3]; 16] = [
    [16, 16, 1],
    [32, 32, 1],
    [31, 33, 1],
    [7, 11, 13],
    [10, 10, 10],
    [2, 256, 2],
    [64, 16, 1],
    [1, 509, 2],
    [3, 17, 19],
    [1, 1, 251],
    [13, 1, 61],
    [8, 8, 8],
    [5, 103, 1],
    [128, 2, 4],
    [1, 1024, 1],
    [4, 4, 64],
];
const LARGE_IN_SUBGROUPS: [[u32; 3]; 10] = [
    [64, 1, 1],
    [256, 1, 1],
    [512, 1, 1],
    [1024, 1, 1],
    [32, 32, 1],
    [16, 16, 4],
    [8, 8, 16],
    [4, 33, 2],
    [12, 1, 43],
    [96, 5, 2],
];

const fn along_x<const N: usize>(sizes: [u32; N]) -> [[u32; 3]; N] {
    let mut all = [[1; 3]; N];
    let mut n = 0;
    while n < N {
        all[n][0] = sizes[n];
        n += 1;
    }
    all
}

impl Shape {
    /// Draws a shape, and a subgroup size that divides it if one is wanted.
    pub fn draw(dna: &mut Dna<'_>, extent: Extent, dimensions: bool, subgroup: bool) -> (Shape, Option<u32>) {
        let shape = match extent {
            Extent::Few => Shape::small(dna, 20, dimensions, subgroup),
            Extent::Usual => Shape::small(dna, 64, dimensions, subgroup),
            Extent::Many => Shape::large(dna, dimensions, subgroup),
        };
        let group = shape.group();
        let sizes: Vec<u32> =
            vyre_spec::limits::SUBGROUP_SIZES.into_iter().filter(|lanes| group.is_multiple_of(*lanes)).collect();
        let lanes = (subgroup && !sizes.is_empty()).then(|| dna.pick(&sizes));
        (shape, lanes)
    }

    /// A workgroup of at most so many invocations, and few of them.
    fn small(dna: &mut Dna<'_>, most: u32, dimensions: bool, subgroup: bool) -> Shape {
        let all: &[[u32; 3]] = match (subgroup, dimensions) {
            (true, true) => &IN_SUBGROUPS,
            (true, false) => &FLAT_IN_SUBGROUPS,
            (false, true) => &BOXES,
            (false, false) => &FLAT,
        };
        // Each list grows.
        let fit = all.iter().take_while(|size| size.iter().product::<u32>() <= most).count();
        let size = dna.pick(&all[..fit]);
        let group: u32 = size.iter().product();
        let grid = match dimensions {
            true if group > 16 => dna.pick(&GRIDS[..3]),
            true => dna.pick(&GRIDS),
            false if group > 16 => [1 + dna.below(2), 1, 1],
            false => [1 + dna.below(4), 1, 1],
        };
        Shape { size, grid }
    }

    fn large(dna: &mut Dna<'_>, dimensions: bool, subgroup: bool) -> Shape {
        // Small workgroups as well, of which a block has many.
        let size = match (subgroup, dimensions) {
            (true, _) => dna.pick(&LARGE_IN_SUBGROUPS),
            (false, true) => dna.pick(&LARGE_BOXES),
            (false, false) if dna.chance(15) => dna.pick(&FLAT[3..]),
            (false, false) => dna.pick(&LARGE_FLAT),
        };
        let group: u32 = size.iter().product();
        let wanted = match dna.below(8) {
            0..=4 => 500 + dna.below(1100),
            5 => 1 + dna.below(500),
            6 => 1600 + dna.below(1600),
            _ => 3200 + dna.below(5000),
        };
        let groups = wanted.div_ceil(group);
        let grid = match (dimensions, dna.below(4)) {
            (false, _) | (true, 0) => [groups, 1, 1],
            (true, 1) => [1, groups, 1],
            (true, 2) => [groups.div_ceil(2), 1, 2],
            (true, _) => [groups.div_ceil(6), 3, 2],
        };
        Shape { size, grid }
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

    /// Another workgroup size that divides the invocations along every axis.
    pub fn regrouped(&self, dna: &mut Dna<'_>) -> [u32; 3] {
        let mut left = MAX_WORKGROUP_INVOCATIONS;
        [0, 1, 2].map(|axis| {
            let all = self.size[axis] * self.grid[axis];
            let sizes: Vec<u32> = (1..=all.min(left)).filter(|size| all.is_multiple_of(*size)).collect();
            let size = dna.pick(&sizes);
            left /= size;
            size
        })
    }
}
