//! Control within a segment: regions, `if`s and loops without barriers.
//!
//! What all lanes do together is a jump. What they do not is masks: an arm runs for the lanes that take it, a divergent loop for those that
//! are still in it. A lane that leaves early is taken out of the masks of the scopes that it leaves, and what follows an `if` goes on with
//! those that are still there.

use super::lower::{InLoop, Loc, Locs, Lower, Mask, Parts, Scope, components_of, scalar_of};
use super::shape::{Shape, ends_of_loop};
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, Src, V3, Width};
use smallvec::SmallVec;
use vyre_foundation::ir::BinaryOp;
use vyre_foundation::ssa::{InstId, InstKind, Op, RegionId, Terminator, Value};
use vyre_spec::Scalar;

/// How many instructions an arm has at the most that is written twice, with and without masks.
const MAX_GUARDED: usize = 64;

/// How a condition compares an index with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Guard {
    Below,
    NotBelow,
}

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
    fn mask_of_those_here(&mut self) -> Mask {
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

    fn copy_v(&mut self, a: crate::machine::reg::V) -> crate::machine::reg::V {
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
            self.locs[result.index()] = Some(place);
        }
        if end == End::Left {
            return End::Left;
        }
        let escapes = self.facts.shapes.escapes(id);
        // Only where masks say who has left: uniform loops are left by jumps.
        let by_mask = escapes.retires || escapes.leaves_loop && self.loops.last().is_some_and(|around| around.scope.is_some());
        if by_mask {
            self.mask = self.mask_of_those_here();
            if let Some(mask) = self.mask.clone() {
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

    /// A guard that mostly holds for all lanes: code for that without masks, and code with masks beside it.
    fn branch_on_guard(&mut self, id: InstId, cond: Value, arms: [RegionId; 2], places: &[Locs]) -> Option<End> {
        let mut size = 0;
        self.ssa.for_each_inst(arms[0], &mut |_, _| size += 1);
        let plain = !self.facts.shapes.escapes(id).any() && self.ssa.region(arms[0]).end.is_yield();
        if self.mask.is_some() || !plain || size > MAX_GUARDED {
            return None;
        }
        let (index, limit, guard) = self.guard(cond)?;
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
        let known = self.locs[cond.index()].clone();
        let since = self.splatted.len();
        if let Some(op) = self.ssa.op(cond).copied() {
            self.op(cond, &op);
        }
        self.branch_apart(cond, arms, places);
        self.forget_splats(since);
        self.locs[cond.index()] = known;
        self.push(Inst::Label(done));
        Some(End::Reached)
    }

    /// Forgets where the values of a region are, which is about to be written once more.
    fn forget_region(&mut self, region: RegionId) {
        let ssa = self.ssa;
        ssa.for_each_region(region, &mut |_, region| {
            region.args.iter().for_each(|arg| self.locs[arg.index()] = None);
            for id in &region.insts {
                ssa.inst(*id).results.iter().for_each(|result| self.locs[result.index()] = None);
            }
        });
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
            self.jump_if_none(&taken, skip);
            self.mask = Some(taken.clone());
            let around = std::mem::replace(&mut self.nobody, skip);
            let reached = self.region(region);
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

    fn copy_value(&mut self, value: Value, place: &Locs, mask: &Mask) {
        let ty = self.ssa.value(value).ty;
        for component in 0..components_of(ty) {
            let from = self.loc(value, component);
            self.copy_to(scalar_of(ty), &place[usize::from(component)], &from, mask);
        }
    }

    /// Copies several values at once: places that others still read are read first.
    fn copy_all(&mut self, values: &[Value], places: &[Locs], mask: &Mask) {
        self.copy_all_under(values, places, mask, &[]);
    }

    /// The same; some of them for all lanes.
    fn copy_all_under(&mut self, values: &[Value], places: &[Locs], mask: &Mask, unmasked: &[bool]) {
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
                if !same(to, from) {
                    self.copy_to(ty, to, from, mask);
                }
            }
        }
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

    fn repeat(&mut self, id: InstId, from: Value, to: Value, inits: &[Value], body: RegionId) -> End {
        let ssa = self.ssa;
        let results: Vec<Value> = ssa.inst(id).results.to_vec();
        let args = &ssa.region(body).args;
        self.splat_before_loop(body);
        let since = self.splatted.len();
        // Carried values.
        let places: Vec<Locs> = args[1..].iter().map(|arg| self.new_locs(*arg)).collect();
        for (init, place) in inits.iter().zip(&places) {
            self.copy_value(*init, place, &None);
        }
        for (arg, place) in args[1..].iter().zip(&places) {
            self.locs[arg.index()] = Some(place.clone());
        }
        let end = match self.facts.shapes.is_divergent(id) {
            false => self.repeat_together(id, from, to, body, &places),
            true => self.repeat_apart(id, from, to, inits, body, &places),
        };
        self.forget_splats(since);
        if !self.facts.shapes.is_divergent(id) {
            for (result, place) in results.iter().zip(places) {
                self.locs[result.index()] = Some(place);
            }
        }
        if end == End::Reached {
            self.keep_in_slots(&results);
        }
        end
    }

    /// Makes vectors of uniform values that a loop needs as such in front of it.
    fn splat_before_loop(&mut self, body: RegionId) {
        let ssa = self.ssa;
        let mut wanted: Vec<Value> = Vec::new();
        ssa.for_each_inst(body, &mut |_, inst| {
            let varies = match inst.kind {
                InstKind::Op(_) => inst.results.iter().any(|result| self.shape(*result) == Shape::Varying),
                InstKind::Store { index, .. } => self.shape(index) != Shape::Uniform,
                InstKind::Load { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => false,
            };
            if varies {
                inst.kind.for_each_operand(&mut |operand| {
                    let there = ssa.leaf(operand).is_none() && self.locs[operand.index()].is_some();
                    if there && self.shape(operand) != Shape::Varying && components_of(ssa.value(operand).ty) == 1 {
                        wanted.push(operand);
                    }
                });
            }
        });
        for value in wanted {
            self.vectors(value, 0);
        }
    }

    fn poll(&mut self, id: InstId) {
        // Loops that are known to be short are left to those around them.
        let short = self.facts.loops.trips(id).is_some_and(|trips| trips.at_most <= 1024);
        if !short {
            let at = crate::machine::lir::Mem::context(std::mem::offset_of!(super::context::Context, stop));
            let to = self.bail;
            self.push(Inst::JumpIfByte { at, to });
        }
    }

    fn repeat_together(&mut self, id: InstId, from: Value, to: Value, body: RegionId, places: &[Locs]) -> End {
        let (head, latch, exit) = (self.new_label(), self.new_label(), self.new_label());
        let trips = self.facts.loops.trips(id);
        let counter = self.new_g();
        let start = self.loc(from, 0);
        self.copy_to(Scalar::U32, &Loc::G(counter), &start, &None);
        let limit = self.g_src(to);
        if trips.is_none_or(|trips| trips.at_least == 0) && !self.planted(Fault::EmptyLoopRuns) {
            self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W32, a: counter, b: limit, to: exit });
        }
        let argument = self.ssa.region(body).args[0];
        self.set(argument, Loc::G(counter));
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(head));
        self.poll(id);
        let mask = self.mask.clone();
        self.loops.push(InLoop {
            scope: None,
            exit,
            latch,
            args: places.to_vec(),
            waiting: Vec::new(),
            collects: false,
            unmasked: Vec::new(),
            results: Vec::new(),
        });
        let end = self.region(body);
        if let (End::Reached, Terminator::Yield(values)) = (end, &self.ssa.region(body).end) {
            self.copy_all(values, places, &None);
        }
        self.loops.pop();
        self.mask = mask;
        self.push(Inst::Label(latch));
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: counter, a: counter, b: GSrc::Imm(1) });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: counter, b: limit, to: head });
        self.push(Inst::LoopEnd);
        self.push(Inst::Label(exit));
        End::Reached
    }

    fn repeat_apart(&mut self, id: InstId, from: Value, to: Value, inits: &[Value], body: RegionId, places: &[Locs]) -> End {
        let ssa = self.ssa;
        let (head, latch, exit) = (self.new_label(), self.new_label(), self.new_label());
        let results = ssa.inst(id).results.to_vec();
        let args = ssa.region(body).args.clone();
        // What those who leave take along, of values that are not varying inside.
        let mut collected: Vec<Option<Locs>> = Vec::new();
        for (n, result) in results.iter().enumerate() {
            let varies = matches!(places[n][0], Loc::Parts(_));
            let wanted = self.facts.uses[result.index()] > 0;
            if varies {
                self.locs[result.index()] = Some(places[n].clone());
                collected.push(None);
            } else if wanted {
                let (ty, count) = (self.ty(*result), components_of(ssa.value(*result).ty));
                let mut parts = Locs::new();
                for component in 0..count {
                    let place = self.new_loc(ty, Shape::Varying);
                    let init = self.loc(inits[n], component);
                    self.copy_to(ty, &place, &init, &None);
                    parts.push(place);
                }
                self.locs[result.index()] = Some(parts.clone());
                collected.push(Some(parts));
            } else {
                collected.push(None);
            }
        }
        // The counter.
        let counter = self.new_loc(Scalar::U32, self.shape(args[0]));
        let start = self.loc(from, 0);
        self.copy_to(Scalar::U32, &counter, &start, &None);
        self.set(args[0], counter.clone());
        let limits = match self.shape(to) {
            Shape::Uniform => None,
            Shape::Linear(_) | Shape::Varying => Some(self.sources(to)),
        };
        let limit = if limits.is_none() { Some(self.g_src(to)) } else { None };
        let before = self.mask.clone();
        let entering = self.mask_vectors();
        let stay: Parts = entering.iter().map(|v| self.copy_v(*v)).collect();
        let mut ends = Vec::new();
        ends_of_loop(ssa, body, &mut ends);
        // Without `continue`, whoever is in the iteration begins the next.
        let yields = usize::from(ssa.region(body).end.is_yield());
        let continues = ends.iter().filter(|(_, is_break)| !is_break).count() > yields;
        let here: Parts = if continues { stay.iter().map(|_| self.new_v()).collect() } else { stay.clone() };
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(head));
        self.poll(id);
        // Whoever enters the loop is there; afterwards those are looked at who may have left.
        let mut some_may_end = false;
        match (&counter, limits, limit) {
            (Loc::G(counter), None, Some(limit)) => {
                self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W32, a: *counter, b: limit, to: exit });
            }
            (_, limits, _) => {
                some_may_end = true;
                let limits = match limits {
                    Some(limits) => limits,
                    None => self.sources(to),
                };
                let counters = self.as_vectors(Scalar::U32, &counter);
                for (n, (counter, limit)) in counters.into_iter().zip(limits).enumerate() {
                    // Not below: the larger of the two is the counter.
                    let larger = self.v3(V3::vpmaxud, counter, limit);
                    let over = self.v3(V3::vpcmpeqd, larger, counter);
                    self.push(Inst::V3 { op: V3::vpandn, d: stay[n], a: over, b: stay[n].into() });
                }
            }
        }
        if some_may_end {
            self.jump_if_none(&stay, exit);
        }
        for (here, stay) in here.iter().zip(&stay) {
            if here != stay {
                self.push(Inst::VMov { d: *here, a: *stay });
            }
        }
        self.scopes.push(Scope { here: here.clone(), stay: Some(stay.clone()) });
        let around = std::mem::replace(&mut self.nobody, if continues { latch } else { exit });
        let scope = Some(self.scopes.len() - 1);
        self.mask = Some(here.clone());
        let waiting: Vec<Locs> = places
            .iter()
            .zip(&args[1..])
            .map(|(place, arg)| {
                if let (true, Loc::G(_) | Loc::Linear(..) | Loc::Splat(_)) = (continues, &place[0]) {
                    self.new_locs(*arg)
                } else {
                    place.clone()
                }
            })
            .collect();
        // What nobody asks for afterwards may change for those who have left, too.
        let unmasked: Vec<bool> = results
            .iter()
            .map(|result| !continues && self.facts.uses[result.index()] == 0 || self.planted(Fault::LeaversChange))
            .collect();
        let collected_places = collected.clone();
        let (args, results) = (places.to_vec(), collected);
        self.loops.push(InLoop {
            collects: continues || some_may_end,
            unmasked,
            scope,
            exit,
            latch,
            args,
            waiting: waiting.clone(),
            results,
        });
        let end = self.region(body);
        if let (End::Reached, Terminator::Yield(values)) = (end, &ssa.region(body).end) {
            let values = values.clone();
            self.carry(&values);
        }
        self.loops.pop();
        self.scopes.pop();
        self.nobody = around;
        self.push(Inst::Label(latch));
        for ((place, waiting), init) in places.iter().zip(&waiting).zip(inits) {
            for (to, from) in place.iter().zip(waiting) {
                if !same(to, from) {
                    self.copy_to(self.ty(*init), to, from, &None);
                }
            }
        }
        match &counter {
            Loc::G(counter) | Loc::Linear(counter, _) => {
                self.push(Inst::G2 { op: G2::add, width: Width::W32, d: *counter, a: *counter, b: GSrc::Imm(1) });
            }
            Loc::Parts(parts) => {
                let one = self.constant32(1);
                for v in parts {
                    self.push(Inst::V3 { op: V3::vpaddd, d: *v, a: *v, b: one });
                }
            }
            Loc::Lit(_) | Loc::Splat(_) => self.refuse("a counter that cannot count"),
        }
        if continues || end == End::Left {
            self.jump_if_none(&stay, exit);
        }
        self.push(Inst::Jump(head));
        self.push(Inst::LoopEnd);
        self.push(Inst::Label(exit));
        if !continues && !some_may_end {
            for (n, init) in inits.iter().enumerate() {
                if let Some(collected) = &collected_places[n] {
                    let (ty, mask) = (self.ty(*init), Some(stay.clone()));
                    for (to, from) in collected.iter().zip(&places[n]) {
                        self.copy_to(ty, to, from, &mask);
                    }
                }
            }
        }
        self.mask = before;
        if self.facts.shapes.escapes(id).retires {
            self.mask = self.mask_of_those_here();
            if let Some(mask) = self.mask.clone() {
                let next = self.nobody;
                self.jump_if_none(&mask, next);
            }
        }
        End::Reached
    }

    /// Hands values to the next iteration of the innermost loop, which is divergent, for the active lanes.
    fn carry(&mut self, values: &[Value]) {
        let mask = self.mask.clone();
        let Some(around) = self.loops.last() else { return };
        let (places, results, unmasked) = (around.waiting.clone(), around.results.clone(), around.unmasked.clone());
        let collects = around.collects;
        // Where all who stay stay to the end, what they have is collected there.
        if collects {
            for (n, value) in values.iter().enumerate() {
                if let Some(place) = &results[n] {
                    self.copy_value(*value, place, &mask);
                }
            }
        }
        self.copy_all_under(values, &places, &mask, &unmasked);
    }

    fn leave_loop(&mut self, values: &[Value], is_break: bool) {
        let Some(around) = self.loops.last() else { return };
        let (exit, latch, args, results, scope) =
            (around.exit, around.latch, around.args.clone(), around.results.clone(), around.scope);
        let Some(scope) = scope else {
            // Everybody leaves.
            self.copy_all(values, &args, &None);
            let to = if is_break { exit } else { latch };
            self.push(Inst::Jump(to));
            return;
        };
        if is_break {
            // Values that are the same for those who stay are left to them.
            let mask = self.mask.clone();
            for (n, value) in values.iter().enumerate() {
                if let Some(place) = &results[n] {
                    self.copy_value(*value, place, &mask);
                }
            }
            let varying = |n: &usize| matches!(args[*n][0], Loc::Parts(_));
            let some: Vec<usize> = (0..values.len()).filter(varying).collect();
            let places: Vec<Locs> = some.iter().map(|n| args[*n].clone()).collect();
            let values: Vec<Value> = some.iter().map(|n| values[*n]).collect();
            self.copy_all(&values, &places, &mask);
        } else {
            let values = values.to_vec();
            self.carry(&values);
        }
        self.take_out(scope, is_break);
    }

    /// Takes the active lanes out of an iteration, or out of the loop.
    fn take_out(&mut self, scope: usize, for_good: bool) {
        let for_good = for_good && !self.planted(Fault::BreakComesBack) || self.planted(Fault::ContinueLeaves);
        let Some(mask) = self.mask.clone() else { return };
        let Scope { here, stay, .. } = &self.scopes[scope];
        let (here, stay) = (here.clone(), stay.clone());
        // Those who are here come last, since the mask may be them.
        for (n, v) in mask.iter().enumerate() {
            if let (true, Some(stay)) = (for_good, &stay)
                && stay[n] != here[n]
            {
                self.push(Inst::V3 { op: V3::vpandn, d: stay[n], a: *v, b: Src::Reg(stay[n]) });
            }
            self.push(Inst::V3 { op: V3::vpandn, d: here[n], a: *v, b: Src::Reg(here[n]) });
        }
    }

    /// The active lanes are done.
    fn retire(&mut self) {
        if self.mask.is_none() {
            // All lanes of the block.
            let mask = self.mask_vectors();
            self.mask = Some(mask);
        }
        let outermost = if self.planted(Fault::RetiredFromInnermost) { self.scopes.len().saturating_sub(1) } else { 0 };
        for scope in outermost..self.scopes.len() {
            self.take_out(scope, true);
        }
    }
}

/// Whether two places have a register in common.
fn overlap(one: &Loc, other: &Loc) -> bool {
    match (one, other) {
        (Loc::G(a) | Loc::Linear(a, _), Loc::G(b) | Loc::Linear(b, _)) => a == b,
        (Loc::Splat(a), Loc::Splat(b)) => a == b,
        (Loc::Parts(a), Loc::Parts(b)) => a.iter().any(|v| b.contains(v)),
        (Loc::Splat(a), Loc::Parts(b)) | (Loc::Parts(b), Loc::Splat(a)) => b.contains(a),
        _ => false,
    }
}

fn same(one: &Loc, other: &Loc) -> bool {
    match (one, other) {
        (Loc::G(a) | Loc::Linear(a, _), Loc::G(b) | Loc::Linear(b, _)) => a == b,
        (Loc::Splat(a), Loc::Splat(b)) => a == b,
        (Loc::Parts(a), Loc::Parts(b)) => a == b,
        _ => false,
    }
}
