//! Values that more than one segment uses.
//!
//! A workgroup's uniform value stays in its register, one that is cheap to compute again is computed again, one that is in workgroup memory
//! anyway is read from there ([homes](super::homes)), and anything else has a *slot* per block in the context of the workgroup. What crosses a
//! grid barrier is in slots too: each workgroup has a context of its own.

use super::homes::Home;
use super::leaves::MachineLeaf;
use super::lower::{Lower, components_of, is_float, is_wide, scalar_of};
use super::places::{Loc, Locs};
use super::segments::{Item, for_each_control, for_each_loop, for_each_segment, loop_ranges, ssa_retires, uses_below};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{G2, GLoadKind, GSrc, GStoreKind, Inst, LoadKind, Mem, StoreKind, Width};
use crate::machine::reg::G;
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use vyre_foundation::analysis::{Scope as UniformScope, Uniformity};
use vyre_foundation::ssa::{Def, InstKind, Leaf, Op, Value};

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
    pub alive: Option<usize>,
    /// Bytes of one block.
    pub block_bytes: usize,
    /// Vectors of one block.
    parts: usize,
    /// The slots of this block.
    pub base: Option<G>,
    /// The lanes of the part of a segment that is being written.
    pub known: Option<Range<u32>>,
    pub enabled: bool,
    /// Whether there are no grid barriers.
    one_phase: bool,
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
        if !self.slots.enabled || self.locs.get(value).is_some() {
            return;
        }
        let home = self.alias(value);
        if home != value {
            self.find_slot(home);
            if let Some(locs) = self.locs.get(home).cloned() {
                self.locs.set(value, locs);
            }
            return;
        }
        if let Some(home) = self.slots.homes.get(&value).copied() {
            let (block, parts) = (self.block, self.parts());
            let at = self.home_at(home, block);
            let load = |lower: &mut Self, n: usize| lower.load(LoadKind::Full, at.plus(32 * n));
            let parts = self.at_block(|lower| (0..parts).map(|n| load(lower, n)).collect());
            self.locs.set(value, smallvec![Loc::Parts(parts)]);
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
        self.locs.set(value, locs);
    }

    /// Where the slots of this block begin.
    pub fn slot_base(&mut self) -> G {
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
                && let Some(locs) = self.locs.get(*value).cloned()
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

    /// Copies to values that have slots.
    pub fn slot_copies(&mut self, copies: &[(Value, Value)]) {
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
    pub fn register_copies(&mut self, copies: &[(Value, Value)]) {
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
            let place = match self.locs.get(home) {
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
            self.locs.set(target, place);
        }
    }
}
