//! Control within a segment: regions, `if`s and loops without barriers.
//!
//! What all lanes do together is a jump. What they do not is masks: an arm runs for the lanes that take it, a divergent loop for those that
//! are still in it. A lane that leaves early is taken out of the masks of the scopes that it leaves, and what follows an `if` goes on with
//! those that are still there.

use super::active::is_local_x;
use super::lower::{Arm, Lower, components_of, scalar_of};
use super::places::{Loc, Locs, Mask, Parts};
use super::shape::Shape;
use super::width;
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, Src, V3, Width};
use smallvec::SmallVec;
use vyre_foundation::ir::BinaryOp;
use vyre_foundation::ssa::{InstId, InstKind, Op, RegionId, Terminator, Value};
use vyre_spec::Scalar;

/// How many instructions an arm has at the most that is written twice, with and without masks.
pub(super) const MAX_GUARDED: usize = 64;

/// How a condition compares an index with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Guard {
    Below,
    NotBelow,
}
/// How many instructions an arm has at the most that is not jumped over.
const LIGHT: u32 = 12;

/// Ops that change nothing if their second operand is zero.
const STEPS: [(BinaryOp, V3); 4] =
    [(BinaryOp::Add, V3::vpaddd), (BinaryOp::Sub, V3::vpsubd), (BinaryOp::BitOr, V3::vpor), (BinaryOp::BitXor, V3::vpxor)];

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

    /// The index and the limit of a condition `index < limit`, or `index >= limit`, that one comparison tells to hold for a whole block.
    fn guard(&self, cond: Value) -> Option<(Value, Value, Guard)> {
        let Op::Binary { op, ty: Scalar::U32, left, right } = *self.ssa.op(cond)? else { return None };
        let (index, limit, guard) = match op {
            BinaryOp::Lt => (left, right, Guard::Below),
            BinaryOp::Gt => (right, left, Guard::Below),
            BinaryOp::Ge => (left, right, Guard::NotBelow),
            BinaryOp::Le => (right, left, Guard::NotBelow),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Mulhi
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::AbsDiff
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Rotl
            | BinaryOp::Rotr
            | BinaryOp::SatAdd
            | BinaryOp::SatSub
            | BinaryOp::Copysign
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Eq
            | BinaryOp::Ne => return None,
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
    fn branch_on_guard(&mut self, id: InstId, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> Option<End> {
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

    fn branch_apart(&mut self, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> End {
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

    /// Copies what a region yields to the results of its `if`.
    fn yield_to(&mut self, region: RegionId, places: &[Locs], mask: &Mask) {
        let Terminator::Yield(values) = &self.ssa.region(region).end else { return };
        for (value, place) in values.iter().zip(places) {
            self.copy_value(*value, place, mask);
        }
    }

    pub fn copy_value(&mut self, value: Value, place: &Locs, mask: &Mask) {
        let ty = self.ssa.value(value).ty;
        for component in 0..components_of(ty) {
            let from = self.loc(value, component);
            self.copy_to(scalar_of(ty), &place[usize::from(component)], &from, mask);
        }
    }

    /// Copies several values at once: places that others still read are read first.
    pub fn copy_all(&mut self, values: &[Value], places: &[Locs], mask: &Mask) {
        self.copy_all_under(values, places, mask, &[]);
    }

    /// The same; some of them for all lanes.
    pub fn copy_all_under(&mut self, values: &[Value], places: &[Locs], mask: &Mask, unmasked: &[bool]) {
        let mut from: Vec<Locs> = Vec::with_capacity(values.len());
        for (n, value) in values.iter().enumerate() {
            let ty = self.ssa.value(*value).ty;
            let mut locs: Locs = SmallVec::new();
            for component in 0..components_of(ty) {
                let loc = self.loc(*value, component);
                // Components of one vector may change places too.
                let shared = places.iter().enumerate().any(|(other, place)| {
                    let is_own = |at: usize| other == n && at == usize::from(component);
                    place.iter().enumerate().any(|(at, place)| !is_own(at) && overlap(place, &loc))
                });
                let shared = shared && !self.planted(Fault::CopiesInSequence);
                locs.push(if shared { self.fresh_copy(scalar_of(ty), &loc) } else { loc });
            }
            from.push(locs);
        }
        for (n, ((value, from), place)) in values.iter().zip(from).zip(places).enumerate() {
            let ty = self.ty(*value);
            let mask = if unmasked.get(n) == Some(&true) { &None } else { mask };
            for (from, to) in from.iter().zip(place) {
                if !same(to, from) && !self.step(*value, to, mask, places) {
                    self.copy_to(ty, to, from, mask);
                }
            }
        }
    }

    /// Changes a varying place under a mask if what it becomes is itself and something that is added to it, or the like: nothing
    /// is added for those who are not active. Whether it did.
    fn step(&mut self, value: Value, to: &Loc, mask: &Mask, places: &[Locs]) -> bool {
        let (Loc::Parts(to), Some(mask)) = (to, mask) else { return false };
        let Some(Op::Binary { op, ty: Scalar::U32 | Scalar::I32, left, right }) = self.ssa.op(value).copied() else {
            return false;
        };
        let Some((_, v3)) = STEPS.iter().find(|(step, _)| *step == op) else { return false };
        let is_place =
            |value: Value| matches!(self.locs.get(value).map(|locs| &locs[..]), Some([Loc::Parts(parts)]) if parts == to);
        let other = if is_place(left) {
            right
        } else if is_place(right) && op != BinaryOp::Sub {
            left
        } else {
            return false;
        };
        let loc = self.loc(other, 0);
        // Another carried value may have changed by now.
        if places.iter().flatten().any(|place| overlap(place, &loc)) {
            return false;
        }
        // A mask is -1.
        let by_mask = match (&loc, op) {
            (Loc::Lit(1), BinaryOp::Add) => Some(V3::vpsubd),
            (Loc::Lit(1), BinaryOp::Sub) => Some(V3::vpaddd),
            (Loc::Lit(_) | Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_), _) => None,
        };
        if let Some(op) = by_mask {
            to.iter().zip(mask).for_each(|(d, mask)| self.push(Inst::V3 { op, d: *d, a: *d, b: Src::Reg(*mask) }));
            return true;
        }
        let added = self.sources(other);
        for ((d, mask), added) in to.iter().zip(mask).zip(added) {
            let added = self.v3(V3::vpand, *mask, added);
            self.push(Inst::V3 { op: *v3, d: *d, a: *d, b: added.into() });
        }
        true
    }

    fn fresh_copy(&mut self, ty: Scalar, loc: &Loc) -> Loc {
        let shape = match loc {
            Loc::Lit(_) => return loc.clone(),
            Loc::G(_) | Loc::Splat(_) => Shape::Uniform,
            Loc::Linear(_, stride) => Shape::Linear(*stride),
            Loc::Parts(_) => Shape::Varying,
        };
        let copy = match loc {
            Loc::Parts(parts) => Loc::Parts(parts.iter().map(|_| self.new_v()).collect()),
            Loc::Lit(_) | Loc::G(_) | Loc::Splat(_) | Loc::Linear(..) => self.new_loc(ty, shape),
        };
        self.copy_to(ty, &copy, loc, &None);
        copy
    }
}

/// Whether two places have a register in common.
pub(super) fn overlap(one: &Loc, other: &Loc) -> bool {
    match (one, other) {
        (Loc::G(a) | Loc::Linear(a, _), Loc::G(b) | Loc::Linear(b, _)) => a == b,
        (Loc::Splat(a), Loc::Splat(b)) => a == b,
        (Loc::Parts(a), Loc::Parts(b)) => a.iter().any(|v| b.contains(v)),
        (Loc::Splat(a), Loc::Parts(b)) | (Loc::Parts(b), Loc::Splat(a)) => b.contains(a),
        _ => false,
    }
}

pub(super) fn same(one: &Loc, other: &Loc) -> bool {
    match (one, other) {
        (Loc::G(a) | Loc::Linear(a, _), Loc::G(b) | Loc::Linear(b, _)) => a == b,
        (Loc::Splat(a), Loc::Splat(b)) => a == b,
        (Loc::Parts(a), Loc::Parts(b)) => a == b,
        _ => false,
    }
}
