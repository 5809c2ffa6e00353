//! A workgroup: segments between barriers, each of which runs for one block of lanes after the other, and the control around them.
//!
//! What all invocations of a workgroup do together, and has a barrier in it, is control of the workgroup: its conditions and bounds are
//! uniform. The rest is segments. A value that a later segment reads is kept: a workgroup's uniform value in its register, one that is cheap
//! to compute again is computed again, and anything else has a *slot* per block in the context of the workgroup.
//!
//! Where a workgroup is a single block, barriers are nothing, and all of it is one segment.
//!
//! **Phases.** A grid barrier ends a function: every workgroup of the dispatch runs one phase before any runs the next. What crosses it is in
//! slots, and each workgroup has a context of its own.

use super::active::{Blocks, Extent};
use super::context::Context;
use super::control::End;
use super::fuse::Order;
use super::geometry::WIDTH;
use super::homes::Home;
use super::lower::{Loc, Locs, Lower, MachineLeaf, Parts, Scope, components_of, is_float, is_wide, scalar_of};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GLoadKind, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Src, StoreKind, V3, Width};
use crate::machine::reg::G;
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::ops::Range;
use vyre_foundation::analysis::{Scope as UniformScope, Uniformity};
use vyre_foundation::ssa::{Def, InstId, InstKind, Leaf, Op, RegionId, Ssa, Terminator, Value};
use vyre_spec::Scalar;

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

/// Where values are that more than one segment uses.
#[derive(Default)]
pub(crate) struct Slots {
    /// By value: its place in the context of a block.
    pub places: HashMap<Value, usize>,
    /// Values that are in workgroup memory anyway.
    homes: HashMap<Value, Home>,
    /// Values that are computed again.
    again: HashSet<Value>,
    /// Values of the workgroup, which stay in their registers.
    pub kept: HashSet<Value>,
    /// Arguments of loops whose slot another value writes, and those values; a value is written to one slot only.
    shared: HashSet<Value>,
    in_place: HashSet<(Value, Value)>,
    /// A value that stands for another: the result of a loop is what its argument was last.
    alias: HashMap<Value, Value>,
    /// Where the lanes of a block that are not retired are.
    alive: Option<usize>,
    /// Bytes of one block.
    pub block_bytes: usize,
    /// Vectors of one block.
    parts: usize,
    /// The slots of this block.
    base: Option<G>,
    /// The lanes of the part of a segment that is being written.
    pub known: Option<Range<u32>>,
    enabled: bool,
    /// Whether there are no grid barriers.
    one_phase: bool,
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

/// A loop of the workgroup.
struct GroupLoop {
    exit: Label,
    latch: Label,
}

impl Lower<'_> {
    /// Finds out what has to be kept between segments.
    pub fn plan_slots(&mut self, phases: &[Vec<Item>]) {
        let uniformity = Uniformity::of(self.ssa);
        self.slots.one_phase = phases.len() == 1;
        self.slots.parts = self.parts();
        let ssa = self.ssa;
        // Where values are made: the segment and the phase. Targets of copies belong to no segment.
        let mut homes: HashMap<Value, (usize, usize)> = HashMap::new();
        let mut crossing: HashMap<Value, bool> = HashMap::new();
        let mut is_target: HashSet<Value> = HashSet::new();
        let mut number = 0;
        for (phase, items) in phases.iter().enumerate() {
            for_each_segment(items, &mut |segment| {
                number += 1;
                for id in &segment.insts {
                    for value in &ssa.inst(*id).results {
                        homes.insert(*value, (number, phase));
                    }
                }
                for (target, _) in &segment.copies {
                    homes.insert(*target, (usize::MAX, phase));
                    crossing.insert(*target, false);
                    is_target.insert(*target);
                }
            });
            for_each_loop(items, &mut |inst| {
                let InstKind::Loop { body, .. } = ssa.inst(inst).kind else { return };
                self.slots.kept.insert(ssa.region(body).args[0]);
                for (result, arg) in ssa.inst(inst).results.iter().zip(&ssa.region(body).args[1..]) {
                    self.slots.alias.insert(*result, *arg);
                }
            });
        }
        // By value: the last segment that mentions it by itself, and not what a loop made of it.
        let mut last_use: HashMap<Value, usize> = HashMap::new();
        let mut handed_on: Vec<(Value, Value)> = Vec::new();
        let mut number = 0;
        for (phase, items) in phases.iter().enumerate() {
            let of_workgroup =
                |value| uniformity.is_uniform(value, UniformScope::Workgroup) && self.shape(value) == Shape::Uniform;
            let mut uses = |value: Value, number: usize| {
                let value = *self.slots.alias.get(&value).unwrap_or(&value);
                if let Some((home, of_phase)) = homes.get(&value)
                    && *home != number
                {
                    *crossing.entry(value).or_default() |= *of_phase != phase;
                }
            };
            for_each_segment(items, &mut |segment| {
                number += 1;
                for id in &segment.insts {
                    uses_below(ssa, *id, &mut |value| {
                        last_use.insert(value, number);
                        uses(value, number);
                    });
                }
                for (target, source) in &segment.copies {
                    last_use.insert(*source, number);
                    handed_on.push((*target, *source));
                    // What the workgroup keeps is copied behind the segment.
                    uses(*source, if of_workgroup(*target) { 0 } else { number });
                }
            });
            for_each_control(ssa, items, &mut |value| uses(value, 0));
        }
        let stored = self.find_homes(phases, &last_use, &homes);
        let mut offset = 0;
        let mut order: Vec<(Value, bool)> = crossing.into_iter().collect();
        order.sort_unstable_by_key(|(value, _)| *value);
        for (value, crosses_phase) in order {
            let of_workgroup = uniformity.is_uniform(value, UniformScope::Workgroup) && self.shape(value) == Shape::Uniform;
            if of_workgroup && !crosses_phase {
                self.slots.kept.insert(value);
            } else if !is_target.contains(&value) && self.can_be_made_again(value, 0) {
                self.slots.again.insert(value);
            } else if let Some(home) = stored.get(&value) {
                self.slots.homes.insert(value, *home);
            } else {
                self.slots.places.insert(value, offset);
                offset += self.component_bytes(value) * usize::from(components_of(ssa.value(value).ty));
            }
        }
        let mut ranges: HashMap<Value, Range<usize>> = HashMap::new();
        let mut number = 0;
        phases.iter().for_each(|items| loop_ranges(ssa, items, &mut number, &mut ranges));
        // What is handed to the next iteration can be written where the argument is, if nobody reads that any more.
        for (target, source) in handed_on {
            let is_argument = matches!(ssa.value(target).def, Def::Argument(..));
            let after = homes.get(&source).map(|(segment, _)| *segment);
            let read_later =
                last_use.get(&target).copied().unwrap_or(0) > after.unwrap_or(0) && !self.planted(Fault::SlotTakenEarly);
            let same_kind = self.shape(target) == self.shape(source);
            let of_this_loop = |after: usize| ranges.get(&target).is_some_and(|range| range.contains(&after));
            if let (true, false, true, Some(place), Some(after)) =
                (is_argument, read_later, same_kind, self.slots.places.get(&target).copied(), after)
                && of_this_loop(after)
                && self.slots.places.contains_key(&source)
                && !self.slots.shared.contains(&target)
                && !self.slots.shared.contains(&source)
            {
                self.slots.places.insert(source, place);
                self.slots.shared.extend([target, source]);
                self.slots.in_place.insert((target, source));
            }
        }
        let retires = ssa_retires(ssa);
        if retires {
            self.slots.alive = Some(offset);
            offset += 32 * self.parts();
        }
        self.slots.block_bytes = offset.next_multiple_of(32 * self.parts());
        self.slots.enabled = true;
    }

    /// Bytes of a component of a value in the context of a block.
    fn component_bytes(&self, value: Value) -> usize {
        match self.shape(value) {
            Shape::Uniform | Shape::Linear(_) => 32,
            Shape::Varying if is_wide(self.ty(value)) => 64 * self.slots.parts,
            Shape::Varying => 32 * self.slots.parts,
        }
    }

    /// Whether a later segment finds a value.
    pub fn is_kept(&self, value: Value) -> bool {
        let slots = &self.slots;
        slots.kept.contains(&value) || slots.places.contains_key(&value) || slots.homes.contains_key(&value)
    }

    /// Whether lanes may be retired before a segment.
    pub fn retires(&self) -> bool {
        self.slots.alive.is_some()
    }

    /// Whether a value is a cheap function of leaves.
    pub fn can_be_made_again(&self, value: Value, depth: u32) -> bool {
        if let Some(leaf) = self.ssa.leaf(value) {
            return match leaf {
                Leaf::Lit { .. } | Leaf::Len { .. } | Leaf::Builtin { .. } => true,
            };
        }
        // A register is nothing in another phase.
        if depth > 0 && self.slots.one_phase && self.slots.kept.contains(&value) {
            return true;
        }
        let ssa = self.ssa;
        match ssa.op(value) {
            Some(op) if depth < 4 && self.shape(value) != Shape::Varying => {
                !matches!(op, Op::Vector { .. })
                    && op.operands().iter().all(|operand| self.can_be_made_again(*operand, depth + 1))
            }
            Some(_) | None => false,
        }
    }

    /// Whether the program is run in segments.
    pub fn is_planned(&self) -> bool {
        self.slots.enabled
    }

    fn alias(&self, value: Value) -> Value {
        *self.slots.alias.get(&value).unwrap_or(&value)
    }

    /// Brings a value that an earlier segment has computed.
    pub fn find_slot(&mut self, value: Value) {
        if !self.slots.enabled || self.locs[value.index()].is_some() {
            return;
        }
        let home = self.alias(value);
        if home != value {
            self.find_slot(home);
            self.locs[value.index()] = self.locs[home.index()].clone();
            return;
        }
        if let Some(home) = self.slots.homes.get(&value).copied() {
            let (block, parts) = (self.block, self.parts());
            let at = self.home_at(home, block);
            let load = |lower: &mut Self, n: usize| lower.load(LoadKind::Full, at.plus(32 * n));
            let parts = self.at_block(|lower| (0..parts).map(|n| load(lower, n)).collect());
            self.locs[value.index()] = Some(smallvec![Loc::Parts(parts)]);
            return;
        }
        if self.slots.again.contains(&value) || !self.slots.places.contains_key(&value) && self.can_be_made_again(value, 0) {
            if let Some(op) = self.ssa.op(value).copied() {
                self.at_block(|lower| lower.op(value, &op));
            }
            return;
        }
        let Some(place) = self.slots.places.get(&value).copied() else { return };
        let locs = self.new_locs(value);
        let base = self.slot_base();
        let bytes = self.component_bytes(value);
        self.at_block(|lower| {
            for (component, loc) in locs.iter().enumerate() {
                let at = Mem::at(base).plus(place + bytes * component);
                match loc {
                    Loc::G(d) | Loc::Linear(d, _) => lower.push(Inst::GLoad { kind: GLoadKind::W64, d: *d, from: at }),
                    Loc::Splat(d) => lower.push(Inst::Load { kind: LoadKind::Full, d: *d, from: at }),
                    Loc::Parts(parts) => {
                        for (n, d) in parts.iter().enumerate() {
                            lower.push(Inst::Load { kind: LoadKind::Full, d: *d, from: at.plus(32 * n) });
                        }
                    }
                    Loc::Lit(_) => {}
                }
            }
        });
        self.locs[value.index()] = Some(locs);
    }

    fn slot_base(&mut self) -> G {
        if let Some(base) = self.slots.base {
            return base;
        }
        let start = self.machine_leaf(MachineLeaf::Slots);
        let (block, lanes, bytes) = (self.block, self.geometry.lanes() as usize, self.slots.block_bytes);
        let base = self.at_block(|lower| match block {
            None => start,
            Some(block) => {
                // Bytes of a block are a multiple of 32 for each of its vectors, so lanes divide them.
                let each = bytes / lanes;
                if let 1 | 2 | 4 | 8 = each {
                    let d = lower.new_g();
                    lower.push(Inst::Lea { d, from: Mem::indexed(start, block, each as u8) });
                    return d;
                }
                let offset = lower.new_g();
                lower.push(Inst::GMul { width: Width::W64, d: offset, a: block, b: GSrc::Imm(each as i32) });
                lower.g2(G2::add, Width::W64, start, offset)
            }
        });
        self.slots.base = Some(base);
        base
    }

    /// Writes values that later segments read to their slots.
    pub fn keep_in_slots(&mut self, values: &[Value]) {
        if !self.slots.enabled {
            return;
        }
        for value in values {
            if let Some(place) = self.slots.places.get(value).copied()
                && let Some(locs) = self.locs[value.index()].clone()
            {
                self.write_slot(*value, place, &locs);
            }
        }
    }

    fn write_slot(&mut self, value: Value, place: usize, locs: &Locs) {
        let ty = scalar_of(self.ssa.value(value).ty);
        let (shape, bytes) = (self.shape(value), self.component_bytes(value));
        let first = Mem::at(self.slot_base()).plus(place);
        for (component, loc) in locs.iter().enumerate() {
            let at = first.plus(bytes * component);
            match shape {
                Shape::Uniform if is_float(ty) => {
                    let v = self.as_vectors(ty, loc)[0];
                    self.push(Inst::Store { kind: StoreKind::Full, to: at, v });
                }
                Shape::Uniform | Shape::Linear(_) => {
                    let a = match loc {
                        Loc::Lit(bits) => self.imm(*bits),
                        Loc::G(a) | Loc::Linear(a, _) => *a,
                        Loc::Splat(_) | Loc::Parts(_) => {
                            self.refuse("a slot of a uniform value is given a varying one");
                            return;
                        }
                    };
                    self.push(Inst::GStore { kind: GStoreKind::B8, to: at, a });
                }
                Shape::Varying => {
                    for (n, v) in self.as_vectors(ty, loc).into_iter().enumerate() {
                        self.push(Inst::Store { kind: StoreKind::Full, to: at.plus(32 * n), v });
                    }
                }
            }
        }
    }

    /// The code of a phase, over blocks.
    pub fn items(&mut self, items: &[Item], is_first: bool) {
        let mut loops = Vec::new();
        let end = self.new_label();
        // Between segments there is no block: what is needed is made where it is needed.
        self.in_block_head = true;
        self.item_list(items, &mut loops, end, is_first);
        self.in_block_head = false;
        self.push(Inst::Label(end));
    }

    fn item_list(&mut self, items: &[Item], loops: &mut Vec<GroupLoop>, end: Label, mut is_first: bool) {
        for item in items {
            if self.refused.is_some() {
                return;
            }
            match item {
                Item::Segment(segment) => self.segment(segment, is_first, end, None),
                Item::If { cond, then, otherwise } => {
                    let (other, done) = (self.new_label(), self.new_label());
                    let cond = self.g(*cond);
                    self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: cond, b: GSrc::Imm(0), to: other });
                    self.item_list(then, loops, end, false);
                    self.push(Inst::Jump(done));
                    self.push(Inst::Label(other));
                    self.item_list(otherwise, loops, end, false);
                    self.push(Inst::Label(done));
                }
                Item::Loop { inst, body } => self.group_loop(*inst, body, loops, end),
                Item::Break => {
                    if let Some(around) = loops.last() {
                        let to = around.exit;
                        self.push(Inst::Jump(to));
                    }
                }
                Item::Continue => {
                    if let Some(around) = loops.last() {
                        let to = around.latch;
                        self.push(Inst::Jump(to));
                    }
                }
                Item::Retire(tag) => {
                    self.segment(&Segment::default(), is_first, end, Some(*tag));
                    self.push(Inst::Jump(end));
                }
            }
            is_first = false;
        }
    }

    fn group_loop(&mut self, id: InstId, items: &[Item], loops: &mut Vec<GroupLoop>, end: Label) {
        let ssa = self.ssa;
        let InstKind::Loop { from, to, body, .. } = ssa.inst(id).kind else { return };
        let (head, latch, exit) = (self.new_label(), self.new_label(), self.new_label());
        let counter = self.new_g();
        let start = self.loc(from, 0);
        self.copy_to(Scalar::U32, &Loc::G(counter), &start, &None);
        let limit = self.g_src(to);
        let args = &ssa.region(body).args;
        self.set(args[0], Loc::G(counter));
        self.push(Inst::JumpIf { cond: Cond::AboveEqual, width: Width::W32, a: counter, b: limit, to: exit });
        self.push(Inst::LoopBegin);
        self.push(Inst::Label(head));
        let at = Mem::context(offset_of!(Context, stop));
        let bail = self.bail;
        self.push(Inst::JumpIfByte { at, to: bail });
        loops.push(GroupLoop { exit, latch });
        self.item_list(items, loops, end, false);
        loops.pop();
        self.push(Inst::Label(latch));
        self.push(Inst::G2 { op: G2::add, width: Width::W32, d: counter, a: counter, b: GSrc::Imm(1) });
        self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: counter, b: limit, to: head });
        self.push(Inst::LoopEnd);
        self.push(Inst::Label(exit));
        for (result, arg) in ssa.inst(id).results.iter().zip(&args[1..]) {
            if self.slots.kept.contains(arg) {
                self.locs[result.index()] = self.locs[arg.index()].clone();
                self.slots.kept.insert(*result);
            }
        }
    }

    /// A segment: a loop over blocks. `retire` ends all lanes, with a trap if it says so.
    fn segment(&mut self, segment: &Segment, is_first: bool, end: Label, retire: Option<Option<u32>>) {
        match self.decided_from(segment).filter(|_| retire.is_none()) {
            None => self.segment_blocks(segment, is_first, end, retire, None),
            Some((from, size)) => {
                let whole = self.geometry.parts;
                let mut ranges = self.ranges(from, size);
                if segment.order == Order::Descending {
                    ranges.reverse();
                }
                for range in ranges {
                    // What is less than a block is a block of fewer vectors.
                    self.set_parts((range.len() as u32 / WIDTH).min(whole));
                    self.slots.known = Some(range.clone());
                    self.segment_blocks(segment, is_first, end, None, Some(range));
                    self.set_parts(whole);
                }
                self.slots.known = None;
            }
        }
        self.register_copies(&segment.copies);
    }

    /// The blocks of a segment, or those that begin in a range.
    fn segment_blocks(
        &mut self,
        segment: &Segment,
        is_first: bool,
        end: Label,
        retire: Option<Option<u32>>,
        range: Option<Range<u32>>,
    ) {
        self.forget_blocks();
        let several = self.geometry.blocks() > 1;
        let before = std::mem::take(&mut self.code);
        let outer_head = std::mem::take(&mut self.block_head);
        let extent = if retire.is_none() && several { self.extent(segment) } else { Extent::All };
        let before_blocks = std::mem::take(&mut self.code);
        self.forget_blocks();
        self.in_block_head = false;
        let whole = self.geometry.parts;
        let blocks = match (range, self.begin_extent(&extent)) {
            (Some(range), Blocks::Several(_)) if range.len() == self.geometry.lanes() as usize => Blocks::One(range.start),
            (Some(range), Blocks::Several(_)) => Blocks::From(range.start, range.end),
            (_, blocks) => blocks,
        };
        // The block that begins with the workgroup has no register for where it begins.
        let block = (several && blocks != Blocks::One(0)).then(|| self.new_g());
        self.block = block;
        let next = self.new_label();
        let alive_any = (self.slots.alive.is_some() && self.slots.enabled).then(|| self.new_g());
        self.enter_block(is_first, next);
        let mut ended = End::Reached;
        for id in &segment.insts {
            if self.inst(*id) == End::Left {
                ended = End::Left;
                break;
            }
        }
        if let (End::Reached, Some(tag)) = (ended, retire) {
            if let Some(tag) = tag {
                self.trap(tag);
            }
            if let Some(scope) = self.scopes.last() {
                for v in scope.here.clone() {
                    self.push(Inst::Zero { d: v });
                }
            }
        }
        if ended == End::Reached {
            self.slot_copies(&segment.copies);
        }
        self.push(Inst::Label(next));
        self.leave_block(alive_any);
        let body = std::mem::replace(&mut self.code, before);
        let head = std::mem::replace(&mut self.block_head, outer_head);
        // What only moves values that stay where they are has nothing to do for any block.
        let is_idle = alive_any.is_none() && body.iter().all(|inst| matches!(inst, Inst::Label(_) | Inst::Mark(_)));
        let blocks = if is_idle { Blocks::Nothing } else { blocks };
        self.in_block_head = true;
        self.block = None;
        self.code.extend(before_blocks);
        if let Some(any) = alive_any {
            self.push(Inst::GImm { d: any, imm: 0 });
        }
        match (block, blocks) {
            (_, Blocks::Nothing) => {}
            (None, _) => {
                self.code.extend(head);
                self.code.extend(body);
            }
            (Some(block), Blocks::One(first)) => {
                self.push(Inst::GImm { d: block, imm: u64::from(first) });
                self.code.extend(head);
                self.code.extend(body);
            }
            (Some(block), Blocks::Several(end) | Blocks::From(_, end)) if segment.order == Order::Descending => {
                let (again, lanes) = (self.new_label(), self.geometry.lanes());
                let first = if let Blocks::From(first, _) = blocks { first as i32 } else { 0 };
                self.push(Inst::GImm { d: block, imm: u64::from((end - 1) / lanes * lanes) });
                self.push(Inst::LoopBegin);
                self.push(Inst::Label(again));
                self.code.extend(head);
                self.code.extend(body);
                self.push(Inst::G2 { op: G2::sub, width: Width::W64, d: block, a: block, b: GSrc::Imm(lanes as i32) });
                let (cond, b) = (Cond::GreaterEqual, GSrc::Imm(first));
                self.push(Inst::JumpIf { cond, width: Width::W64, a: block, b, to: again });
                self.push(Inst::LoopEnd);
            }
            (Some(block), Blocks::Several(_) | Blocks::From(..) | Blocks::UpTo(_)) => {
                let (again, over) = (self.new_label(), self.new_label());
                let lanes = self.geometry.lanes() as i32;
                let first = if let Blocks::From(first, _) = blocks { first } else { 0 };
                self.push(Inst::GImm { d: block, imm: u64::from(first) });
                let end = match blocks {
                    Blocks::UpTo(end) => {
                        let (cond, width) = (Cond::AboveEqual, Width::W32);
                        self.push(Inst::JumpIf { cond, width, a: block, b: end.into(), to: over });
                        GSrc::Reg(end)
                    }
                    Blocks::Several(end) | Blocks::From(_, end) => GSrc::Imm(end as i32),
                    Blocks::Nothing | Blocks::One(_) => GSrc::Imm(0),
                };
                self.push(Inst::LoopBegin);
                self.push(Inst::Label(again));
                self.code.extend(head);
                self.code.extend(body);
                self.push(Inst::G2 { op: G2::add, width: Width::W32, d: block, a: block, b: GSrc::Imm(lanes) });
                self.push(Inst::JumpIf { cond: Cond::Below, width: Width::W32, a: block, b: end, to: again });
                self.push(Inst::LoopEnd);
                self.push(Inst::Label(over));
            }
        }
        self.end_extent(whole);
        self.forget_blocks();
        if let Some(any) = alive_any {
            self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: any, b: GSrc::Imm(0), to: end });
        }
    }

    /// The mask that a block begins with.
    pub fn enter_block(&mut self, is_first: bool, next: Label) {
        // Where it is known who has something to do, nobody else does anything that can be seen.
        let tail = if self.geometry.has_tail() && !self.is_decided() && !self.planted(Fault::TailIsThere) {
            Some(self.tail_mask())
        } else {
            None
        };
        self.mask = tail;
        if !ssa_retires(self.ssa) {
            return;
        }
        let kept = self.slots.alive.filter(|_| self.slots.enabled && !is_first);
        let here: Parts = match kept {
            Some(place) => {
                let at = Mem::at(self.slot_base()).plus(place);
                (0..self.parts()).map(|part| self.load(LoadKind::Full, at.plus(32 * part))).collect()
            }
            None => {
                let mask = self.mask_vectors();
                mask.iter()
                    .map(|v| {
                        let d = self.new_v();
                        self.push(Inst::VMov { d, a: *v });
                        d
                    })
                    .collect()
            }
        };
        if kept.is_some() {
            self.jump_if_none(&here, next);
            self.mask = Some(here.clone());
        }
        self.scopes.push(Scope { here, stay: None });
        self.nobody = next;
    }

    fn leave_block(&mut self, alive_any: Option<G>) {
        if let Some(scope) = self.scopes.pop()
            && let (Some(place), Some(any), true) = (self.slots.alive, alive_any, self.slots.enabled)
        {
            let at = Mem::at(self.slot_base()).plus(place);
            if self.planted(Fault::RetiredReturn) {
                scope.here.iter().for_each(|v| self.push(Inst::Ones { d: *v }));
            }
            for (part, v) in scope.here.iter().enumerate() {
                self.push(Inst::Store { kind: StoreKind::Full, to: at.plus(32 * part), v: *v });
            }
            let bits = self.mask_bits(&Some(scope.here));
            self.push(Inst::G2 { op: G2::or, width: Width::W32, d: any, a: any, b: bits.into() });
        }
        self.mask = None;
    }

    /// The lanes of a block that are somebody.
    fn tail_mask(&mut self) -> Parts {
        let left = self.lanes_left();
        let left = self.splat_g(Width::W32, left);
        (0..self.geometry.parts)
            .map(|part| {
                let numbers = std::array::from_fn(|n| part * WIDTH + n as u32);
                let numbers = Src::Mem(self.pool.place(numbers));
                self.v3(V3::vpcmpgtd, left, numbers)
            })
            .collect()
    }

    /// How many lanes the block has at the most, of those that follow its first.
    fn lanes_left(&mut self) -> G {
        let total = self.geometry.total();
        if self.geometry.flat {
            // The end is below 2³² + 2¹⁰, the difference is cut to what a block has.
            let end = self.flat_end;
            let Some((block, end)) = self.block.zip(end) else { return self.imm(u64::from(total)) };
            let left = self.g2(G2::sub, Width::W64, end, block);
            let lanes = self.imm(u64::from(self.geometry.lanes()));
            let d = self.new_g();
            let (cond, width) = (Cond::Below, Width::W64);
            self.push(Inst::Choose { cond, width, a: left, b: lanes.into(), d, x: left, y: lanes });
            return d;
        }
        let all = self.imm(u64::from(total));
        match self.block {
            None => all,
            Some(block) => self.g2(G2::sub, Width::W32, all, block),
        }
    }

    /// What belongs to one block is not known in the next.
    pub fn forget_blocks(&mut self) {
        self.leaves.retain(|leaf, _| !matches!(leaf, MachineLeaf::LocalBase(_) | MachineLeaf::GlobalBase(_)));
        self.vector_leaves.clear();
        self.splats.retain(|(value, _), _| matches!(self.ssa.leaf(*value), Some(Leaf::Len { .. } | Leaf::Lit { .. })));
        self.splatted.clear();
        self.slots.base = None;
        for n in 0..self.locs.len() {
            let value = Value(n as u32);
            if self.locs[n].is_some() && !self.slots.kept.contains(&value) {
                self.locs[n] = None;
            }
        }
    }

    /// Copies to values that have slots.
    fn slot_copies(&mut self, copies: &[(Value, Value)]) {
        let mut moves: Vec<(Value, usize, Locs)> = Vec::new();
        for (target, source) in copies {
            let home = self.alias(*target);
            let Some(place) = self.slots.places.get(&home).copied() else { continue };
            if self.slots.in_place.contains(&(home, *source)) {
                continue;
            }
            let count = components_of(self.ssa.value(*source).ty);
            let locs: Locs = (0..count).map(|component| self.loc(*source, component)).collect();
            moves.push((home, place, locs));
        }
        for (target, place, locs) in moves {
            self.write_slot(target, place, &locs);
        }
    }

    /// Copies to values that the workgroup keeps in registers.
    fn register_copies(&mut self, copies: &[(Value, Value)]) {
        let mut moves: Vec<(Value, Locs, Locs)> = Vec::new();
        for (target, source) in copies {
            let home = self.alias(*target);
            if !self.slots.kept.contains(&home) {
                continue;
            }
            let count = components_of(self.ssa.value(*source).ty);
            let ty = scalar_of(self.ssa.value(*source).ty);
            let mut locs: Locs = SmallVec::new();
            for component in 0..count {
                let from = self.loc(*source, component);
                // Through a new register: another target may be its source.
                let through = self.new_loc(ty, Shape::Uniform);
                self.copy_to(ty, &through, &from, &None);
                locs.push(through);
            }
            let place = match &self.locs[home.index()] {
                Some(place) => place.clone(),
                None => self.new_locs(home),
            };
            moves.push((home, place, locs));
        }
        for (target, place, locs) in moves {
            let ty = scalar_of(self.ssa.value(target).ty);
            for (to, from) in place.iter().zip(&locs) {
                self.copy_to(ty, to, from, &None);
            }
            self.locs[target.index()] = Some(place);
        }
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
fn loop_ranges(ssa: &Ssa, items: &[Item], number: &mut usize, ranges: &mut HashMap<Value, Range<usize>>) {
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

fn for_each_loop(items: &[Item], each: &mut dyn FnMut(InstId)) {
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

fn for_each_control(ssa: &Ssa, items: &[Item], each: &mut dyn FnMut(Value)) {
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
fn uses_below(ssa: &Ssa, id: InstId, each: &mut dyn FnMut(Value)) {
    let inst = ssa.inst(id);
    inst.kind.for_each_operand(&mut |value| each(value));
    for region in inst.kind.regions() {
        for inner in &ssa.region(region).insts {
            uses_below(ssa, *inner, each);
        }
        ssa.region(region).end.values().iter().for_each(|value| each(*value));
    }
}
