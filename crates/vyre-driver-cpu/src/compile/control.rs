//! Control within a segment: regions, `if`s and loops without barriers.
//!
//! What all lanes do together is a jump. What they do not is masks: an arm runs for the lanes that take it, a divergent loop for those that
//! are still in it. A lane that leaves early is taken out of the masks of the scopes that it leaves, and what follows an `if` goes on with
//! those that are still there.

use super::lower::{Arm, Lower};
use super::places::{Locs, Mask, Parts};
use super::shape::Shape;
use super::width;
use crate::faults::Fault;
use crate::machine::lir::{Cond, GSrc, Inst, V3, Width};
use vyre_foundation::ssa::{InstId, InstKind, RegionId, Terminator, Value};

/// How many instructions an arm has at the most that is not jumped over.
const LIGHT: u32 = 12;

/// What follows a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Some lanes get to its end.
    Reached,
    /// None does.
    Left,
}

impl Lower<'_> {
    /// The instructions of a region; its terminator is up to the caller, except where it leaves.
    pub fn region(&mut self, region: RegionId) -> End {
        let ssa = self.ssa;
        let since = self.splatted.len();
        let mut end = End::Reached;
        for id in &ssa.region(region).insts {
            if self.refused.is_some() {
                return End::Left;
            }
            if self.inst(*id) == End::Left {
                end = End::Left;
                break;
            }
        }
        if end == End::Reached {
            end = self.terminate(region);
        }
        // The values of a yield are read by the caller, who asks for them again.
        self.forget_splats(since);
        end
    }

    fn terminate(&mut self, region: RegionId) -> End {
        match &self.ssa.region(region).end {
            Terminator::Yield(_) => End::Reached,
            Terminator::Unreachable => End::Left,
            Terminator::Break(values) => {
                self.leave_loop(values, true);
                End::Left
            }
            Terminator::Continue(values) => {
                self.leave_loop(values, false);
                End::Left
            }
            Terminator::Return => {
                self.retire();
                End::Left
            }
            Terminator::Trap(tag) => {
                self.trap(*tag);
                self.retire();
                End::Left
            }
        }
    }

    pub fn inst(&mut self, id: InstId) -> End {
        let inst = self.ssa.inst(id);
        self.push(Inst::Mark(inst.stmt.0));
        if inst.results.first().is_some_and(|result| self.facts.pieces.skips(*result)) {
            return End::Reached;
        }
        match &inst.kind {
            InstKind::Op(op) => self.op(inst.results[0], op),
            InstKind::Load { access, buffer, index } => self.load_access(inst.results[0], *access, *buffer, *index),
            InstKind::Store { access, buffer, index, value } => self.store_access(*access, *buffer, *index, *value),
            InstKind::Atomic { access, op, buffer, index, operands } => {
                self.atomic(inst.results.first().copied(), *access, *op, *buffer, *index, operands);
            }
            InstKind::Subgroup { op, ty, operands } => self.subgroup(inst.results[0], *op, *ty, operands),
            InstKind::If { cond, then, otherwise } => return self.branch(id, *cond, [*then, *otherwise]),
            InstKind::Loop { from, to, inits, body } => return self.repeat(id, *from, *to, inits, *body),
            // All of the workgroup is in this block, and each instruction is a meeting.
            InstKind::Barrier => {}
            InstKind::GridSync => self.refuse("a grid barrier inside a segment"),
        }
        self.keep_in_slots(&inst.results);
        End::Reached
    }

    /// The lanes that are still here, after some may have left.
    pub fn mask_of_those_here(&mut self) -> Mask {
        if self.planted(Fault::RetiredGoOn) {
            return self.mask.clone();
        }
        let scope = self.scopes.last()?;
        let here = scope.here.clone();
        Some(match self.mask.clone() {
            // The same registers: who leaves from now on is taken out of the mask too.
            None => here,
            Some(mask) if mask == here => here,
            Some(mask) => mask.iter().zip(&here).map(|(a, b)| self.v3(V3::vpand, *a, *b)).collect(),
        })
    }

    pub fn copy_v(&mut self, a: crate::machine::reg::V) -> crate::machine::reg::V {
        let d = self.new_v();
        self.push(Inst::VMov { d, a });
        d
    }

    fn branch(&mut self, id: InstId, cond: Value, arms: [RegionId; 2]) -> End {
        let results: Vec<Value> = self.ssa.inst(id).results.to_vec();
        let places: Vec<Locs> = results.iter().map(|result| self.new_locs(*result)).collect();
        let end = match self.shape(cond) {
            Shape::Uniform => self.branch_together(cond, arms, &places),
            Shape::Linear(_) | Shape::Varying => {
                match self.branch_decided(cond, arms).or_else(|| self.branch_on_guard(id, cond, arms, &places)) {
                    Some(end) => end,
                    None => self.branch_apart(cond, arms, &places),
                }
            }
        };
        for (result, place) in results.iter().zip(places) {
            self.locs.set(*result, place);
        }
        if end == End::Left {
            return End::Left;
        }
        let escapes = self.facts.shapes.escapes(id);
        // Only where masks say who has left: uniform loops are left by jumps.
        let by_mask = escapes.retires || escapes.leaves_loop && self.loops.last().is_some_and(|around| around.scope.is_some());
        if by_mask {
            self.mask = self.mask_of_those_here();
            let late = self.loops.last().is_some_and(|around| around.late_exit == Some(id));
            if let (Some(mask), false) = (self.mask.clone(), late) {
                let next = self.nobody;
                self.jump_if_none(&mask, next);
            }
        }
        self.keep_in_slots(&results);
        End::Reached
    }

    fn is_empty_arm(&self, arm: RegionId) -> bool {
        let region = self.ssa.region(arm);
        region.insts.is_empty() && matches!(&region.end, Terminator::Yield(values) if values.is_empty())
    }

    fn branch_together(&mut self, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> End {
        let (other, done) = (self.new_label(), self.new_label());
        let cond = self.g(cond);
        self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: cond, b: GSrc::Imm(0), to: other });
        let before = self.mask.clone();
        let mut end = End::Left;
        for (arm, region) in arms.into_iter().enumerate() {
            if arm == 1 {
                self.push(Inst::Label(other));
            }
            self.mask = before.clone();
            if self.region(region) == End::Reached {
                end = End::Reached;
                self.yield_to(region, places, &None);
            }
            // Also if everybody has left: those who did so by masks are behind the `if` now.
            if arm == 0 {
                self.push(Inst::Jump(done));
            }
        }
        self.push(Inst::Label(done));
        self.mask = before;
        end
    }

    /// Whether an arm is done sooner than it is found out that nobody takes it: a few ops, which do no harm if nobody does. The machine
    /// cannot foresee who does, as a rule.
    fn is_light(&self, region: RegionId) -> bool {
        let region = self.ssa.region(region);
        let mut work = 0;
        let ops = region.insts.iter().all(|id| match &self.ssa.inst(*id).kind {
            InstKind::Op(op) => {
                work += width::cost(op).1;
                true
            }
            InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::If { .. }
            | InstKind::Loop { .. }
            | InstKind::Barrier
            | InstKind::GridSync => false,
        });
        let goes_on = match &region.end {
            Terminator::Yield(_) => true,
            Terminator::Break(_) | Terminator::Continue(_) => self.loops.last().is_some_and(|around| around.scope.is_some()),
            Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => false,
        };
        ops && goes_on && work * self.geometry.parts <= LIGHT
    }

    pub fn branch_apart(&mut self, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> End {
        let cond = self.vectors(cond, 0);
        let before = self.mask.clone();
        let mut end = End::Left;
        let mut written = false;
        for (arm, region) in arms.into_iter().enumerate() {
            if self.is_empty_arm(region) {
                end = End::Reached;
                continue;
            }
            let taken: Parts = match (arm, &before) {
                (0, None) => cond.clone(),
                (0, Some(before)) => cond.iter().zip(before.clone()).map(|(c, m)| self.v3(V3::vpand, *c, m)).collect(),
                (_, before) if before.is_none() || self.planted(Fault::OtherArmTakesAll) => {
                    let ones = self.ones();
                    cond.iter().map(|c| self.v3(V3::vpandn, *c, ones)).collect()
                }
                (_, before) => {
                    let before = before.clone().unwrap_or_default();
                    cond.iter().zip(before).map(|(c, m)| self.v3(V3::vpandn, *c, m)).collect()
                }
            };
            let skip = self.new_label();
            if !self.is_light(region) {
                self.jump_if_none(&taken, skip);
            }
            self.mask = Some(taken.clone());
            let around = std::mem::replace(&mut self.nobody, skip);
            let arm = before.clone().map(|before| Arm { taken: taken.clone(), cond: cond.clone(), before, otherwise: arm == 1 });
            let arm_around = std::mem::replace(&mut self.arm, arm);
            let reached = self.region(region);
            self.arm = arm_around;
            self.nobody = around;
            if reached == End::Reached {
                end = End::Reached;
                // The first arm writes everything; the second only its own lanes.
                let mask = (written && !self.planted(Fault::OtherArmWritesAll)).then_some(taken);
                self.yield_to(region, places, &mask);
                written = true;
            }
            self.push(Inst::Label(skip));
        }
        self.mask = before;
        end
    }
}
