//! How many vectors a block may have.
//!
//! More vectors hide the time that an instruction takes until its result is there. Across blocks the machine does that by itself, except
//! where each block is in a loop for long: there, each iteration waits for the one before, and only other vectors of the block fill the time.
//! How many it takes to fill it follows from the longest way from one iteration to the next, and from how much there is to do for one vector.
//! Whether that many fit the registers is found by trying.

use super::bytes::Pieces;
use super::facts::Facts;
use super::geometry::{self, Geometry};
use super::lower::is_float;
use super::segments::ssa_retires;
use super::shape::{Shape, Shapes};
use std::collections::HashMap;
use vyre_foundation::ir::{BinaryOp, UnaryOp};
use vyre_foundation::ssa::{InstKind, Op, RegionId, Ssa, Terminator, Value};
use vyre_scalar::memory::byte_length;
use vyre_spec::{Scalar, TernaryOp};

/// Instructions on vectors that begin in one cycle.
const PER_CYCLE: u32 = 3;

/// Cycles until a line comes from a cache that is not the first, where nobody could know that it would be asked for. Of bytes, more lanes
/// use more of each.
const LINE: u32 = 40;

/// How many vectors a block may have, the most first, and how long iterations wait; by the geometry with one vector, and what is known of
/// the form with that.
///
/// They have to fit the workgroup: whole rows of it stay rows, and no block has lanes that are nobody which a smaller one would not have.
/// Lanes that go different ways waste the time of the others, so that where loops are left one by one there are no more than fill the time.
pub(crate) fn candidates(ssa: &Ssa, one: &Geometry, facts: &Facts) -> (Vec<u32>, Wait) {
    let kernel = &ssa.kernel;
    let size = kernel.workgroup_size;
    let least = if kernel.uses.subgroup { kernel.subgroup.unwrap_or(1).div_ceil(geometry::WIDTH).max(1) } else { 1 };
    let may_be_flat = kernel.size_matters().is_none();
    let mut diverges = false;
    ssa.for_each_inst(ssa.root, &mut |id, _| diverges |= facts.shapes.is_divergent(id));
    // What tells lanes by bits of 32-bit numbers is given no more of them.
    let wait = Wait::of(ssa, facts);
    let retires = ssa_retires(ssa);
    let wants = if kernel.uses.subgroup || retires { wait.vectors().min(4) } else { wait.vectors() };
    let mut parts: Vec<u32> = [8, 4, 2, 1]
        .into_iter()
        .filter(|parts| {
            let geometry = Geometry::new(size, *parts, may_be_flat);
            // What is left of a range is done one vector at a time.
            let no_more_masks = !geometry.has_tail() || one.has_tail() || geometry.flat;
            let fits = (geometry.rows || !one.rows) && no_more_masks;
            let not_wasted = geometry.flat || geometry.total().div_ceil(geometry::WIDTH) >= *parts;
            let most = if diverges { wants.clamp(2, 4) } else { wants.max(4) };
            *parts >= least && (*parts == least || fits && not_wasted && *parts <= most)
        })
        .collect();
    if parts.is_empty() {
        parts.push(least);
    }
    (parts, wait)
}

/// How iterations wait for each other, in the loop in which they do the most.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// Cycles from one iteration to the next.
    latency: u32,
    /// Instructions for one vector.
    work: u32,
}

impl Wait {
    fn of(ssa: &Ssa, facts: &Facts) -> Wait {
        let Facts { shapes, pieces, .. } = facts;
        let mut longest = Wait { latency: 0, work: 1 };
        ssa.for_each_inst(ssa.root, &mut |_, inst| {
            if let InstKind::Loop { body, .. } = inst.kind {
                let mut way = Way { ssa, shapes, pieces, late: HashMap::new(), work: 0, lines: 0, has_loop: false };
                way.late.extend(ssa.region(body).args[1..].iter().map(|arg| (*arg, 0)));
                way.region(body);
                let latency = way.latest(ssa.region(body).end.values()).max(way.lines);
                if !way.has_loop && latency * longest.work > longest.latency * way.work {
                    longest = Wait { latency, work: way.work.max(1) };
                }
            }
        });
        longest
    }

    /// How many vectors fill the time: 1, 2, 4 or 8.
    fn vectors(self) -> u32 {
        (self.latency * PER_CYCLE).div_ceil(self.work).next_power_of_two().min(8)
    }

    /// Cycles of an iteration for one of so many vectors, if there are so many more instructions.
    pub fn time(self, parts: u32, more: f32) -> f32 {
        let busy = (self.work * parts) as f32 * (1.0 + more) / PER_CYCLE as f32;
        busy.max(self.latency as f32) / parts as f32
    }
}

/// The way through one iteration.
struct Way<'a> {
    ssa: &'a Ssa,
    shapes: &'a Shapes,
    pieces: &'a Pieces,
    /// By value that depends on the iteration before: cycles since that was done.
    late: HashMap<Value, u32>,
    /// Instructions for one vector.
    work: u32,
    /// Cycles that it waits for memory, whatever the iteration before has done.
    lines: u32,
    has_loop: bool,
}

impl Way<'_> {
    fn latest(&self, values: &[Value]) -> u32 {
        values.iter().filter_map(|value| self.late.get(value)).copied().max().unwrap_or(0)
    }

    fn region(&mut self, region: RegionId) {
        let ssa = self.ssa;
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            let mut operands = Vec::new();
            inst.kind.for_each_operand(&mut |value| operands.push(value));
            let is = |test: &dyn Fn(Value) -> bool| inst.results.first().is_some_and(|result| test(*result));
            if let InstKind::Load { buffer, index, .. } = inst.kind
                && self.shapes.shape(index) == Shape::Linear(1)
                && byte_length(&ssa.kernel.buffer(buffer).element, 1) == Some(1)
            {
                self.lines = LINE;
            }
            let (latency, work) = match &inst.kind {
                InstKind::Op(_) | InstKind::Load { .. } if is(&|result| self.pieces.skips(result)) => (0, 0),
                InstKind::Op(_) if is(&|result| self.pieces.get(result).is_some()) => (7, 1),
                InstKind::Op(Op::Binary { op: BinaryOp::Mul, ty, right, .. })
                    if !is_float(*ty) && ssa.literal(*right).is_some_and(u64::is_power_of_two) =>
                {
                    (1, 1)
                }
                InstKind::Op(op) if self.shapes.shape(inst.results[0]) == Shape::Varying => cost(op),
                InstKind::Op(_) => (1, 0),
                InstKind::Load { index, .. } => match self.shapes.shape(*index) {
                    Shape::Uniform => (6, 0),
                    Shape::Linear(_) => (7, 1),
                    // As measured: eight at a time hardly wait for each other, four do.
                    Shape::Varying => (28, 12),
                },
                InstKind::Store { .. } => (0, 1),
                InstKind::Atomic { .. } | InstKind::Subgroup { .. } => (30, 30),
                InstKind::If { then, otherwise, .. } => {
                    for arm in [*then, *otherwise] {
                        self.region(arm);
                        if let Terminator::Yield(values) = &ssa.region(arm).end {
                            operands.extend(values);
                        }
                    }
                    (1, 1)
                }
                InstKind::Loop { .. } => {
                    self.has_loop = true;
                    (1, 1)
                }
                InstKind::Barrier | InstKind::GridSync => (0, 0),
            };
            self.work += work;
            let is_late = operands.iter().any(|value| self.late.contains_key(value));
            if is_late {
                let done = self.latest(&operands) + latency;
                self.late.extend(inst.results.iter().map(|result| (*result, done)));
            }
        }
    }
}

/// Cycles until the result of an op is there, and how many instructions it is.
pub(crate) fn cost(op: &Op) -> (u32, u32) {
    let simple = |ty: Scalar| match ty {
        Scalar::F32 => (4, 1),
        Scalar::F64 => (4, 2),
        Scalar::U64 | Scalar::I64 => (1, 2),
        Scalar::Bool | Scalar::U32 | Scalar::I32 => (1, 1),
    };
    match *op {
        Op::Binary { op, ty, .. } => match (op, ty) {
            (BinaryOp::Mul, Scalar::U32 | Scalar::I32) => (10, 2),
            (BinaryOp::Mul, Scalar::U64 | Scalar::I64) | (BinaryOp::Mulhi, _) => (15, 8),
            (BinaryOp::Div | BinaryOp::Rem | BinaryOp::Pow, _) => (40, 20),
            (BinaryOp::Rotl | BinaryOp::Rotr | BinaryOp::SatAdd | BinaryOp::SatSub | BinaryOp::AbsDiff, _) => (3, 3),
            (BinaryOp::Min | BinaryOp::Max | BinaryOp::Copysign, Scalar::F32 | Scalar::F64) => (8, 4),
            (
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
                | BinaryOp::Shl
                | BinaryOp::Shr
                | BinaryOp::Copysign
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge,
                ty,
            ) => simple(ty),
        },
        Op::Unary { op: UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not, .. } => (1, 1),
        // Counting bits, roots and elementary functions are all many instructions.
        Op::Unary { .. } => (30, 20),
        Op::Ternary { op: TernaryOp::Select, .. } => (2, 2),
        Op::Ternary { op: TernaryOp::Fma, ty, .. } => simple(ty),
        Op::Cast { .. } => (4, 2),
        Op::Bitcast { .. } | Op::Vector { .. } | Op::Extract { .. } => (0, 0),
    }
}
