//! What a workgroup does, as parts: segments between barriers, and the control around them.
//!
//! What all invocations of a workgroup do together, and has a barrier in it, is control of the workgroup: its conditions and bounds are
//! uniform. The rest is segments, each of which runs for one block of lanes after the other.
//!
//! **Phases.** A grid barrier ends a function: every workgroup of the dispatch runs one phase before any runs the next.

use super::fuse::Order;
use std::collections::HashMap;
use std::ops::Range;
use vyre_foundation::ssa::{InstId, InstKind, RegionId, Ssa, Terminator, Value};

/// A part of what a workgroup does.
#[derive(Debug)]
pub(crate) enum Item {
    Segment(Segment),
    If {
        cond: Value,
        then: Vec<Item>,
        otherwise: Vec<Item>,
    },
    Loop {
        inst: InstId,
        body: Vec<Item>,
    },
    Break,
    Continue,
    /// Everybody is done.
    Retire(Option<u32>),
}

/// Instructions without a barrier among them, and values that are handed on behind them.
#[derive(Default, Debug)]
pub(crate) struct Segment {
    pub insts: Vec<InstId>,
    pub copies: Vec<(Value, Value)>,
    /// The order in which its blocks have to run.
    pub order: Order,
}

/// The program as parts: one list per phase.
pub(crate) fn phases(ssa: &Ssa, escapes: &dyn Fn(InstId) -> bool) -> Vec<Vec<Item>> {
    let plan = Planner { ssa, escapes, syncs: syncs(ssa) };
    let mut phases = vec![Vec::new()];
    plan.region(ssa.root, &[], &mut phases);
    phases
}

/// By instruction: whether there is a barrier in it.
fn syncs(ssa: &Ssa) -> Vec<bool> {
    fn walk(ssa: &Ssa, region: RegionId, syncs: &mut Vec<bool>) -> bool {
        let mut any = false;
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            let mut own = matches!(inst.kind, InstKind::Barrier | InstKind::GridSync);
            for inner in inst.kind.regions() {
                own |= walk(ssa, inner, syncs);
            }
            syncs[id.index()] = own;
            any |= own;
        }
        any
    }
    let mut syncs = vec![false; ssa.insts.len()];
    walk(ssa, ssa.root, &mut syncs);
    syncs
}

struct Planner<'a> {
    ssa: &'a Ssa,
    escapes: &'a dyn Fn(InstId) -> bool,
    syncs: Vec<bool>,
}

impl Planner<'_> {
    /// `around`: the arguments of the workgroup's innermost loop.
    fn region(&self, region: RegionId, around: &[Value], phases: &mut Vec<Vec<Item>>) {
        let ssa = self.ssa;
        let mut open = Segment::default();
        let flush = |open: &mut Segment, phases: &mut Vec<Vec<Item>>| {
            let segment = std::mem::take(open);
            if let Some(phase) = phases.last_mut()
                && (phase.is_empty() || !segment.insts.is_empty() || !segment.copies.is_empty())
            {
                phase.push(Item::Segment(segment));
            }
        };
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            if !self.syncs[id.index()] && !(self.escapes)(*id) {
                open.insts.push(*id);
                continue;
            }
            match &inst.kind {
                InstKind::Barrier => flush(&mut open, phases),
                InstKind::GridSync => {
                    flush(&mut open, phases);
                    phases.push(Vec::new());
                }
                InstKind::If { cond, then, otherwise } => {
                    flush(&mut open, phases);
                    let arms = [*then, *otherwise].map(|arm| self.inner(arm, &inst.results, around));
                    let [then, otherwise] = arms;
                    if let Some(phase) = phases.last_mut() {
                        phase.push(Item::If { cond: *cond, then, otherwise });
                    }
                }
                InstKind::Loop { inits, body, .. } => {
                    let args = &ssa.region(*body).args[1..];
                    open.copies.extend(args.iter().copied().zip(inits.iter().copied()));
                    flush(&mut open, phases);
                    let args = args.to_vec();
                    let items = self.inner(*body, &args, &args);
                    if let Some(phase) = phases.last_mut() {
                        phase.push(Item::Loop { inst: *id, body: items });
                    }
                }
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. } => open.insts.push(*id),
            }
        }
        flush(&mut open, phases);
        if let (Some(phase), Some(end)) = (phases.last_mut(), ending(&ssa.region(region).end)) {
            phase.push(end);
        }
    }

    /// The parts of a region inside, which hands values on to `targets`.
    fn inner(&self, region: RegionId, targets: &[Value], around: &[Value]) -> Vec<Item> {
        let mut phases = vec![Vec::new()];
        self.region(region, around, &mut phases);
        let mut items: Vec<Item> = phases.into_iter().flatten().collect();
        let end = &self.ssa.region(region).end;
        let targets = match end {
            Terminator::Break(_) | Terminator::Continue(_) => around,
            Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => targets,
        };
        let copies: Vec<(Value, Value)> = targets.iter().copied().zip(end.values().iter().copied()).collect();
        if !copies.is_empty() {
            let at = items.len() - usize::from(ending(end).is_some());
            items.insert(at, Item::Segment(Segment { copies, ..Segment::default() }));
        }
        items
    }
}

fn ending(end: &Terminator) -> Option<Item> {
    match end {
        Terminator::Break(_) => Some(Item::Break),
        Terminator::Continue(_) => Some(Item::Continue),
        Terminator::Return => Some(Item::Retire(None)),
        Terminator::Trap(tag) => Some(Item::Retire(Some(*tag))),
        Terminator::Yield(_) | Terminator::Unreachable => None,
    }
}

/// Whether invocations may be done before the end.
pub(crate) fn ssa_retires(ssa: &Ssa) -> bool {
    let mut retires = false;
    ssa.for_each_region(ssa.root, &mut |id, region| {
        let is_end = id == ssa.root && matches!(region.end, Terminator::Return);
        retires |= !is_end && matches!(region.end, Terminator::Return | Terminator::Trap(_));
    });
    retires
}

/// Every segment, in order.
pub(super) fn for_each_segment<'a>(items: &'a [Item], each: &mut dyn FnMut(&'a Segment)) {
    for item in items {
        match item {
            Item::Segment(segment) => each(segment),
            Item::If { then, otherwise, .. } => {
                for_each_segment(then, each);
                for_each_segment(otherwise, each);
            }
            Item::Loop { body, .. } => for_each_segment(body, each),
            Item::Break | Item::Continue | Item::Retire(_) => {}
        }
    }
}

/// By argument of a loop: the segments in it.
pub(super) fn loop_ranges(ssa: &Ssa, items: &[Item], number: &mut usize, ranges: &mut HashMap<Value, Range<usize>>) {
    for item in items {
        match item {
            Item::Segment(_) => *number += 1,
            Item::If { then, otherwise, .. } => {
                loop_ranges(ssa, then, number, ranges);
                loop_ranges(ssa, otherwise, number, ranges);
            }
            Item::Loop { inst, body } => {
                let first = *number + 1;
                loop_ranges(ssa, body, number, ranges);
                if let InstKind::Loop { body, .. } = ssa.inst(*inst).kind {
                    ranges.extend(ssa.region(body).args.iter().map(|arg| (*arg, first..*number + 1)));
                }
            }
            Item::Break | Item::Continue | Item::Retire(_) => {}
        }
    }
}

/// Every loop of the workgroup.
pub(super) fn for_each_loop(items: &[Item], each: &mut dyn FnMut(InstId)) {
    for item in items {
        match item {
            Item::If { then, otherwise, .. } => {
                for_each_loop(then, each);
                for_each_loop(otherwise, each);
            }
            Item::Loop { inst, body } => {
                each(*inst);
                for_each_loop(body, each);
            }
            Item::Segment(_) | Item::Break | Item::Continue | Item::Retire(_) => {}
        }
    }
}

/// Every value that control of the workgroup depends on.
pub(super) fn for_each_control(ssa: &Ssa, items: &[Item], each: &mut dyn FnMut(Value)) {
    for item in items {
        match item {
            Item::If { cond, then, otherwise } => {
                each(*cond);
                for_each_control(ssa, then, each);
                for_each_control(ssa, otherwise, each);
            }
            Item::Loop { inst, body } => {
                if let InstKind::Loop { from, to, .. } = ssa.inst(*inst).kind {
                    each(from);
                    each(to);
                }
                for_each_control(ssa, body, each);
            }
            Item::Segment(_) | Item::Break | Item::Continue | Item::Retire(_) => {}
        }
    }
}

/// Everything that an instruction and those below it read, and that is from outside.
pub(super) fn uses_below(ssa: &Ssa, id: InstId, each: &mut dyn FnMut(Value)) {
    let inst = ssa.inst(id);
    inst.kind.for_each_operand(&mut |value| each(value));
    for region in inst.kind.regions() {
        for inner in &ssa.region(region).insts {
            uses_below(ssa, *inner, each);
        }
        ssa.region(region).end.values().iter().for_each(|value| each(*value));
    }
}
