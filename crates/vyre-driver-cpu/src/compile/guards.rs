//! Conditions that compare indices with limits: mostly they hold for all lanes of a block, or for none.
//!
//! `if gid.x < w && gid.y < h` is found out for the whole block by looking at its first or last lane. Where it holds for all, the arm's code
//! has no masks; code with masks stands beside it, for blocks at an edge.

use super::active::is_local_x;
use super::control::End;
use super::lower::Lower;
use super::places::Locs;
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, Label, Width};
use crate::machine::reg::G;
use vyre_foundation::ir::{BinaryOp, UnaryOp};
use vyre_foundation::ssa::{InstId, Op, RegionId, Value};
use vyre_spec::Scalar;

/// How many instructions an arm has at the most that is written twice, with and without masks.
pub(super) const MAX_GUARDED: usize = 96;

/// How deep a condition is looked into.
const MAX_DEPTH: u32 = 8;

/// How an index is compared with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Below,
    AtMost,
    AtLeast,
    Above,
}

impl Relation {
    fn opposite(self) -> Relation {
        match self {
            Relation::Below => Relation::AtLeast,
            Relation::AtMost => Relation::Above,
            Relation::AtLeast => Relation::Below,
            Relation::Above => Relation::AtMost,
        }
    }

    /// The same with the sides exchanged.
    fn turned(self) -> Relation {
        match self {
            Relation::Below => Relation::Above,
            Relation::AtMost => Relation::AtLeast,
            Relation::AtLeast => Relation::AtMost,
            Relation::Above => Relation::Below,
        }
    }
}

/// What a condition consists of.
enum Guard {
    /// All lanes have the same.
    Together,
    /// An index that grows by one from lane to lane, compared with what all have.
    Index(Value, Relation, Value),
    /// Holds if both do.
    Both(Value, Value),
    /// Holds if one does.
    Either(Value, Value),
    Not(Value),
}

impl Lower<'_> {
    fn guard(&self, cond: Value) -> Option<Guard> {
        if self.shape(cond) == Shape::Uniform {
            return Some(Guard::Together);
        }
        match *self.ssa.op(cond)? {
            Op::Binary { op: BinaryOp::And, ty: Scalar::Bool, left, right } => Some(Guard::Both(left, right)),
            Op::Binary { op: BinaryOp::Or, ty: Scalar::Bool, left, right } => Some(Guard::Either(left, right)),
            Op::Unary { op: UnaryOp::Not, ty: Scalar::Bool, operand } => Some(Guard::Not(operand)),
            Op::Binary { op, ty: Scalar::U32, left, right } => {
                let (_, relation) = RELATIONS.iter().find(|(compared, _)| *compared == op)?;
                match (self.shape(left), self.shape(right)) {
                    (Shape::Linear(1), Shape::Uniform) => Some(Guard::Index(left, *relation, right)),
                    (Shape::Uniform, Shape::Linear(1)) => Some(Guard::Index(right, relation.turned(), left)),
                    (_, _) => None,
                }
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => None,
        }
    }

    /// Whether it can be found out without vectors that a condition is `wanted` for all lanes.
    fn is_told(&self, cond: Value, wanted: bool, depth: u32) -> bool {
        let told = |cond, wanted| depth < MAX_DEPTH && self.is_told(cond, wanted, depth + 1);
        match self.guard(cond) {
            None => false,
            Some(Guard::Together | Guard::Index(..)) => true,
            Some(Guard::Not(cond)) => told(cond, !wanted),
            // One side may be enough, but mostly both sides are the rule or none.
            Some(Guard::Both(left, right) | Guard::Either(left, right)) => told(left, wanted) && told(right, wanted),
        }
    }

    /// Jumps unless a condition is surely `wanted` for all lanes of the block.
    fn jump_unless_told(&mut self, cond: Value, wanted: bool, to: Label) {
        match self.guard(cond) {
            None => self.push(Inst::Jump(to)),
            Some(Guard::Together) => {
                let (a, cond) = (self.g(cond), if wanted { Cond::Equal } else { Cond::NotEqual });
                self.push(Inst::JumpIf { cond, width: Width::W32, a, b: GSrc::Imm(0), to });
            }
            Some(Guard::Not(cond)) => self.jump_unless_told(cond, !wanted, to),
            Some(Guard::Both(left, right) | Guard::Either(left, right))
                if wanted == matches!(self.guard(cond), Some(Guard::Both(..))) =>
            {
                self.jump_unless_told(left, wanted, to);
                self.jump_unless_told(right, wanted, to);
            }
            Some(Guard::Both(left, right) | Guard::Either(left, right)) => {
                // One side is enough.
                let (other, done) = (self.new_label(), self.new_label());
                self.jump_unless_told(left, wanted, other);
                self.push(Inst::Jump(done));
                self.push(Inst::Label(other));
                self.jump_unless_told(right, wanted, to);
                self.push(Inst::Label(done));
            }
            Some(Guard::Index(index, relation, limit)) => {
                let relation = if wanted { relation } else { relation.opposite() };
                self.jump_unless_in(index, relation, limit, to);
            }
        }
    }

    fn jump_unless_in(&mut self, index: Value, relation: Relation, limit: Value, to: Label) {
        let may_wrap = self.facts.ranges.of_value(index).high > u32::MAX - self.geometry.lanes();
        let first = self.g(index);
        let further = self.geometry.lanes() as i32 - 1 - i32::from(self.planted(Fault::GuardOneShort));
        let limit = self.g(limit);
        let jump = |lower: &mut Self, cond: Cond, width: Width, a: G, b: G| {
            lower.push(Inst::JumpIf { cond, width, a, b: b.into(), to });
        };
        match relation {
            // With 64 bits the last lane is above every limit if lanes wrap.
            Relation::Below | Relation::AtMost => {
                let last = self.g2(G2::add, Width::W64, first, GSrc::Imm(further));
                let cond = if relation == Relation::Below { Cond::AboveEqual } else { Cond::Above };
                jump(self, cond, Width::W64, last, limit);
            }
            // The first lane is the smallest, unless they wrap.
            Relation::AtLeast | Relation::Above => {
                let cond = if relation == Relation::AtLeast { Cond::Below } else { Cond::BelowEqual };
                jump(self, cond, Width::W32, first, limit);
                if may_wrap {
                    let last = self.g2(G2::add, Width::W32, first, GSrc::Imm(further));
                    jump(self, Cond::Below, Width::W32, last, first);
                }
            }
        }
    }

    /// The lane from which on a condition `lid.x >= number` holds.
    pub fn holds_from(&self, cond: Value) -> Option<u32> {
        match self.guard(cond)? {
            Guard::Index(index, Relation::AtLeast, limit) if is_local_x(self.ssa, index) => {
                self.ssa.literal(limit).map(|limit| limit as u32)
            }
            Guard::Together | Guard::Index(..) | Guard::Both(..) | Guard::Either(..) | Guard::Not(_) => None,
        }
    }

    /// A guard that mostly holds for all lanes: code for that without masks, and code with masks beside it.
    pub fn branch_on_guard(&mut self, id: InstId, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> Option<End> {
        if self.mask.is_some() || self.facts.shapes.escapes(id).any() {
            return None;
        }
        let known = self.holds_from(cond).and_then(|lane| self.is_known(lane)).map(|holds| arms[usize::from(!holds)]);
        // The arm that has something to do.
        let wanted = !self.ssa.region(arms[0]).insts.is_empty() || self.ssa.region(arms[1]).insts.is_empty();
        let arm = known.unwrap_or(arms[usize::from(!wanted)]);
        if !self.ssa.region(arm).end.is_yield() {
            return None;
        }
        if known.is_some() {
            self.region(arm);
            self.yield_to(arm, places, &None);
            return Some(End::Reached);
        }
        let mut size = 0;
        self.ssa.for_each_inst(arm, &mut |_, _| size += 1);
        if size > MAX_GUARDED || !self.is_told(cond, wanted, 0) {
            return None;
        }
        let (some, done) = (self.new_label(), self.new_label());
        self.jump_unless_told(cond, wanted, some);
        self.region(arm);
        self.yield_to(arm, places, &None);
        self.forget_region(arm);
        self.push(Inst::Jump(done));
        self.push(Inst::Label(some));
        // The condition is computed here once more, so that nobody needs it who does not get here.
        let since = self.splatted.len();
        let mut parts = Vec::new();
        self.parts_of_guard(cond, &mut parts);
        let known: Vec<Option<Locs>> = parts.iter().map(|part| self.locs.get(*part).cloned()).collect();
        let around = std::mem::replace(&mut self.in_cold, true);
        for part in &parts {
            if let Some(op) = self.ssa.op(*part).copied() {
                self.op(*part, &op);
            }
        }
        self.in_cold = around;
        self.branch_apart(cond, arms, places);
        self.forget_splats(since);
        for (part, known) in parts.into_iter().zip(known) {
            match known {
                Some(known) => self.locs.set(part, known),
                None => self.locs.forget(part),
            }
        }
        self.push(Inst::Label(done));
        Some(End::Reached)
    }

    /// The values that a condition is put together from and that are vectors, operands first.
    fn parts_of_guard(&self, cond: Value, parts: &mut Vec<Value>) {
        match self.guard(cond) {
            None | Some(Guard::Together) => return,
            Some(Guard::Index(..)) => {}
            Some(Guard::Not(operand)) => self.parts_of_guard(operand, parts),
            Some(Guard::Both(left, right) | Guard::Either(left, right)) => {
                self.parts_of_guard(left, parts);
                self.parts_of_guard(right, parts);
            }
        }
        if !parts.contains(&cond) {
            parts.push(cond);
        }
    }

    /// Forgets where the values of a region are, which is about to be written once more.
    fn forget_region(&mut self, region: RegionId) {
        let ssa = self.ssa;
        ssa.for_each_region(region, &mut |_, region| {
            region.args.iter().for_each(|arg| self.locs.forget(*arg));
            for id in &region.insts {
                ssa.inst(*id).results.iter().for_each(|result| self.locs.forget(*result));
            }
        });
    }
}

/// Comparisons of an index on the left.
const RELATIONS: [(BinaryOp, Relation); 4] = [
    (BinaryOp::Lt, Relation::Below),
    (BinaryOp::Le, Relation::AtMost),
    (BinaryOp::Ge, Relation::AtLeast),
    (BinaryOp::Gt, Relation::Above),
];
