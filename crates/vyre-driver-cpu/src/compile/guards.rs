//! Conditions that compare an index with a limit: mostly they hold for all lanes of a block, or for none.

use super::active::is_local_x;
use super::control::End;
use super::lower::Lower;
use super::places::Locs;
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, Width};
use vyre_foundation::ir::BinaryOp;
use vyre_foundation::ssa::{InstId, Op, RegionId, Value};
use vyre_spec::Scalar;

/// How many instructions an arm has at the most that is written twice, with and without masks.
pub(super) const MAX_GUARDED: usize = 64;

/// How a condition compares an index with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Guard {
    Below,
    NotBelow,
}

impl Lower<'_> {
    /// The index and the limit of a condition `index < limit`, or `index >= limit`, that one comparison tells to hold for a whole block.
    fn guard(&self, cond: Value) -> Option<(Value, Value, Guard)> {
        let Op::Binary { op, ty: Scalar::U32, left, right } = *self.ssa.op(cond)? else { return None };
        let (index, limit, guard) = if op == BinaryOp::Lt {
            (left, right, Guard::Below)
        } else if op == BinaryOp::Gt {
            (right, left, Guard::Below)
        } else if op == BinaryOp::Ge {
            (left, right, Guard::NotBelow)
        } else if op == BinaryOp::Le {
            (right, left, Guard::NotBelow)
        } else {
            return None;
        };
        // The first lane is the smallest, unless numbers wrap.
        let wraps = self.facts.ranges.of_value(index).high > u32::MAX - self.geometry.lanes();
        let fits = self.shape(index) == Shape::Linear(1) && self.shape(limit) == Shape::Uniform;
        (fits && !(guard == Guard::NotBelow && wraps)).then_some((index, limit, guard))
    }

    /// The lane from which on a condition `lid.x >= number` holds.
    pub fn holds_from(&self, cond: Value) -> Option<u32> {
        let (index, limit, guard) = self.guard(cond)?;
        let holds = guard == Guard::NotBelow && is_local_x(self.ssa, index);
        self.ssa.literal(limit).filter(|_| holds).map(|limit| limit as u32)
    }

    /// A guard that mostly holds for all lanes: code for that without masks, and code with masks beside it.
    pub fn branch_on_guard(&mut self, id: InstId, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> Option<End> {
        let mut size = 0;
        self.ssa.for_each_inst(arms[0], &mut |_, _| size += 1);
        let plain = !self.facts.shapes.escapes(id).any() && self.ssa.region(arms[0]).end.is_yield();
        if self.mask.is_some() || !plain || size > MAX_GUARDED {
            return None;
        }
        let (index, limit, guard) = self.guard(cond)?;
        let known = self.holds_from(cond).and_then(|lane| self.is_known(lane)).map(|holds| arms[usize::from(!holds)]);
        if let Some(arm) = known.filter(|arm| self.ssa.region(*arm).end.is_yield()) {
            self.region(arm);
            self.yield_to(arm, places, &None);
            return Some(End::Reached);
        }
        let (some, done) = (self.new_label(), self.new_label());
        let (first, limit) = (self.g(index), self.g(limit));
        match guard {
            Guard::Below => {
                let lanes = self.geometry.lanes() as i32;
                let further = lanes - 1 - i32::from(self.planted(Fault::GuardOneShort));
                let last = self.g2(G2::add, Width::W64, first, GSrc::Imm(further));
                self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W64, a: last, b: limit.into(), to: some });
            }
            Guard::NotBelow => {
                self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: first, b: limit.into(), to: some });
            }
        }
        self.region(arms[0]);
        self.yield_to(arms[0], places, &None);
        self.forget_region(arms[0]);
        self.push(Inst::Jump(done));
        self.push(Inst::Label(some));
        // The condition is computed here once more, so that nobody needs it who does not get here.
        let known = self.locs.get(cond).cloned();
        let since = self.splatted.len();
        if let Some(op) = self.ssa.op(cond).copied() {
            self.op(cond, &op);
        }
        self.branch_apart(cond, arms, places);
        self.forget_splats(since);
        match known {
            Some(known) => self.locs.set(cond, known),
            None => self.locs.forget(cond),
        }
        self.push(Inst::Label(done));
        Some(End::Reached)
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
