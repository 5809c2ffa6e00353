//! Loops within a segment, which have no barriers.
//!
//! A loop that all lanes go through together is jumps. In a divergent one lanes leave, or go on with the next iteration, at different times:
//! it runs until nobody is left, with a mask of those who are. Who leaves keeps what he has: carried values change under the mask,
//! unless nobody asks for them afterwards.

use super::context::Context;
use super::control::End;
use super::copies::{overlap, same};
use super::lower::{Arm, InLoop, Lower, Scope, components_of};
use super::places::{Loc, Locs, Parts};
use super::shape::{Shape, ends_of_loop};
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, Mem, Src, V3, Width};
use std::mem::offset_of;
use vyre_foundation::ssa::{InstId, InstKind, RegionId, Terminator, Value};
use vyre_spec::Scalar;

impl Lower<'_> {
    pub fn repeat(&mut self, id: InstId, from: Value, to: Value, inits: &[Value], body: RegionId) -> End {
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
            self.locs.set(*arg, place.clone());
        }
        let end = match self.facts.shapes.is_divergent(id) {
            false => self.repeat_together(id, from, to, body, &places),
            true => self.repeat_apart(id, from, to, inits, body, &places),
        };
        self.forget_splats(since);
        if !self.facts.shapes.is_divergent(id) {
            for (result, place) in results.iter().zip(places) {
                self.locs.set(*result, place);
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
                    let there = ssa.leaf(operand).is_none() && self.locs.get(operand).is_some();
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
            self.stop_if_asked();
        }
    }

    /// Leaves everything if the dispatch is to stop.
    pub fn stop_if_asked(&mut self) {
        if !self.planted(Fault::NeverStops) {
            let at = Mem::context(offset_of!(Context, stop));
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
            inst: id,
            scope: None,
            exit,
            latch,
            args: places.to_vec(),
            waiting: Vec::new(),
            collects: false,
            unmasked: Vec::new(),
            results: Vec::new(),
            late_exit: None,
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
                self.locs.set(*result, places[n].clone());
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
                self.locs.set(*result, parts.clone());
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
        // What all lanes count together is looked at behind an iteration, and in front of the first only if there may be none.
        let together = match (&counter, limit) {
            (Loc::G(counter), Some(limit)) => Some((*counter, limit)),
            (Loc::G(_) | Loc::Linear(..) | Loc::Parts(_) | Loc::Lit(_) | Loc::Splat(_), _) => None,
        };
        if let Some((a, b)) = together
            && self.facts.loops.trips(id).is_none_or(|trips| trips.at_least == 0)
        {
            self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W32, a, b, to: exit });
        }
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(head));
        self.poll(id);
        // Whoever enters the loop is there; afterwards those are looked at who may have left.
        let mut some_may_end = false;
        match (together, limits) {
            (Some(_), _) => {}
            (None, limits) => {
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
        let late_exit = if continues { None } else { self.late_exit(body) };
        let collected_places = collected.clone();
        let (args, results) = (places.to_vec(), collected);
        self.loops.push(InLoop {
            inst: id,
            collects: continues || some_may_end,
            unmasked,
            scope,
            exit,
            latch,
            args,
            waiting: waiting.clone(),
            results,
            late_exit,
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
        let some_may_have_left = continues || end == End::Left || late_exit.is_some();
        match together {
            Some((a, b)) if some_may_have_left => {
                self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W32, a, b, to: exit });
                self.jump_if_some(&stay, head);
            }
            Some((a, b)) => self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a, b, to: head }),
            None if some_may_have_left => self.jump_if_some(&stay, head),
            None => self.push(Inst::Jump(head)),
        }
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

    /// The `if` behind which those who are left need not be looked at before the end of the iteration: what follows is ops, which
    /// do no harm if nobody is.
    fn late_exit(&self, body: RegionId) -> Option<InstId> {
        let region = self.ssa.region(body);
        let is_op = |id: &&InstId| matches!(self.ssa.inst(**id).kind, InstKind::Op(_));
        let last = region.insts.iter().rev().find(|id| !is_op(id)).copied()?;
        let escapes = self.facts.shapes.escapes(last);
        let is_if = matches!(self.ssa.inst(last).kind, InstKind::If { .. });
        (region.end.is_yield() && is_if && escapes.leaves_loop && !escapes.retires).then_some(last)
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

    pub fn leave_loop(&mut self, values: &[Value], is_break: bool) {
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
        // A condition that was a carried value is not what it was.
        let is_carried = |cond: &Parts| args.iter().flatten().any(|place| overlap(place, &Loc::Parts(cond.clone())));
        self.arm = self.arm.take().filter(|arm| !is_carried(&arm.cond));
        self.take_out(scope, is_break);
    }

    /// Takes the active lanes out of an iteration, or out of the loop.
    fn take_out(&mut self, scope: usize, for_good: bool) {
        let for_good = for_good && !self.planted(Fault::BreakComesBack) || self.planted(Fault::ContinueLeaves);
        let Some(mask) = self.mask.clone() else { return };
        let Scope { here, stay, .. } = &self.scopes[scope];
        let (here, stay) = (here.clone(), stay.clone());
        // Who is here and takes an arm is found by the condition as well as by the mask of the arm.
        let arm = self.arm.clone().filter(|arm| arm.taken == mask && arm.before == here);
        // Those who are here come last, since the mask may be them.
        for (n, v) in mask.iter().enumerate() {
            if let (true, Some(stay)) = (for_good, &stay)
                && stay[n] != here[n]
            {
                self.push(Inst::V3 { op: V3::vpandn, d: stay[n], a: *v, b: Src::Reg(stay[n]) });
            }
            let (op, a) = match &arm {
                None => (V3::vpandn, *v),
                Some(Arm { cond, otherwise: false, .. }) => (V3::vpandn, cond[n]),
                Some(Arm { cond, otherwise: true, .. }) => (V3::vpand, cond[n]),
            };
            self.push(Inst::V3 { op, d: here[n], a, b: Src::Reg(here[n]) });
        }
    }

    /// The active lanes are done.
    pub fn retire(&mut self) {
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
