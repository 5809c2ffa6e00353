//! Facts about a form, which code generation relies on.
//!
//! They do not depend on how many vectors a block has, apart from whether its lanes follow each other along x, so that they are found once for
//! all the numbers that are tried.

use super::bytes::Pieces;
use super::geometry::Geometry;
use super::own::Own;
use super::shape::Shapes;
use crate::faults::Fault;
use vyre_foundation::analysis::{Bounds, Floats, Loops, Ranges};
use vyre_foundation::ssa::Ssa;

/// Facts about a form.
pub(crate) struct Facts {
    pub shapes: Shapes,
    pub bounds: Bounds,
    pub ranges: Ranges,
    pub floats: Floats,
    pub loops: Loops,
    pub pieces: Pieces,
    /// Buffers that a thread may have for itself.
    pub own: Vec<Own>,
    /// By value: how often it is mentioned.
    pub uses: Vec<u32>,
    /// Whether lanes follow each other along x, which shapes follow from.
    rows: bool,
}

impl Facts {
    pub fn of(ssa: &Ssa, geometry: &Geometry, fault: Option<Fault>) -> Facts {
        let uses = count_uses(ssa);
        let shapes = Shapes::of(ssa, geometry, fault);
        Facts {
            pieces: Pieces::of(ssa, &shapes, &uses),
            own: Own::all(ssa, &uses),
            shapes,
            bounds: Bounds::of(ssa),
            ranges: Ranges::of(ssa),
            floats: Floats::of(ssa),
            loops: Loops::of(ssa),
            uses,
            rows: geometry.rows,
        }
    }

    /// Makes them those for another number of vectors.
    pub fn adapt(&mut self, ssa: &Ssa, geometry: &Geometry, fault: Option<Fault>) {
        if self.rows != geometry.rows {
            self.rows = geometry.rows;
            self.shapes = Shapes::of(ssa, geometry, fault);
            self.pieces = Pieces::of(ssa, &self.shapes, &self.uses);
        }
    }
}

/// By value: how often it is mentioned.
pub(crate) fn count_uses(ssa: &Ssa) -> Vec<u32> {
    let mut uses = vec![0; ssa.values.len()];
    ssa.for_each_inst(ssa.root, &mut |_, inst| inst.kind.for_each_operand(&mut |value| uses[value.index()] += 1));
    ssa.for_each_region(ssa.root, &mut |_, region| region.end.values().iter().for_each(|value| uses[value.index()] += 1));
    uses
}
