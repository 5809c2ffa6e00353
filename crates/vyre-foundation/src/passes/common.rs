//! Common subexpressions: what was computed before is not computed again.
//!
//! An op on the same values gives the same value, so wherever the first one dominates the second (it comes earlier in the same region
//! or in a region around it) the second is replaced by the first. Operands of ops whose row says that they commute are taken in one
//! order.
//!
//! A load is the same value as an earlier load of the same element if the buffer cannot have changed in between for this invocation:
//! nothing stored to it, no atomic touched it, nobody was met at a barrier or subgroup operation. Every buffer has a *version*, a
//! number that is new after each of these. Behind an `if`, what an arm changed has a new version, unless only one arm gets there. In a
//! loop, and again after it, whatever some instruction of the loop may change has a new version.
//!
//! What it leaves alone: values in two arms of one `if`, neither of which dominates the other; atomics and subgroup operations. It
//! hoists nothing out of loops.

use crate::hash::Table;
use crate::kernel::{BufferId, Effect};
use crate::ssa::{InstId, InstKind, Op, RegionId, Ssa, Value};

/// The pass.
pub(super) fn common(ssa: &mut Ssa) -> bool {
    let slots = ssa.kernel.buffers.len() as u32 + 1;
    let mut search = Search {
        instead: (0..ssa.values.len() as u32).map(Value).collect(),
        first: Table::with_capacity_and_hasher(ssa.insts.len(), Default::default()),
        open: vec![false; ssa.regions.len()],
        versions: (0..slots).collect(),
        changes: Vec::new(),
        next_version: slots,
        changed: false,
    };
    search.region(ssa, ssa.root);
    search.changed
}

/// What makes two instructions the same.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Op(Op),
    /// A buffer, its version, how often others were met, and the index.
    Load(BufferId, u32, u32, Value),
}

struct Search {
    /// By value: what it is replaced by, which may be itself.
    instead: Vec<Value>,
    /// The latest first value of its kind, and the region that computes it.
    first: Table<Key, (Value, RegionId)>,
    /// By region: whether it is the current one or around it. What is computed there dominates the current instruction.
    open: Vec<bool>,
    /// By buffer; and, last, a version that is new wherever others are met.
    versions: Vec<u32>,
    /// What versions were before each change.
    changes: Vec<(usize, u32)>,
    next_version: u32,
    changed: bool,
}

impl Search {
    fn set_version(&mut self, slot: usize, version: u32) {
        self.changes.push((slot, self.versions[slot]));
        self.versions[slot] = version;
    }

    fn new_version(&mut self, slot: usize) {
        self.set_version(slot, self.next_version);
        self.next_version += 1;
    }

    /// The version that an effect changes.
    fn slot(&self, effect: Effect) -> Option<usize> {
        match effect {
            Effect::None | Effect::Trap => None,
            Effect::Write(buffer) | Effect::AtomicRead(buffer) | Effect::AtomicWrite(buffer) => Some(buffer.index()),
            Effect::Subgroup | Effect::Workgroup | Effect::Grid => Some(self.versions.len() - 1),
        }
    }

    /// Gives new versions to everything that a region may change.
    fn effects_of(&mut self, ssa: &Ssa, region: RegionId) {
        let mut slots: Vec<usize> = Vec::new();
        ssa.for_each_inst(region, &mut |_, inst| slots.extend(self.slot(inst.kind.effect())));
        slots.sort_unstable();
        slots.dedup();
        slots.into_iter().for_each(|slot| self.new_version(slot));
    }

    fn region(&mut self, ssa: &mut Ssa, id: RegionId) {
        self.open[id.index()] = true;
        let mut insts = std::mem::take(&mut ssa.regions[id.index()].insts);
        insts.retain(|inst| self.inst(ssa, id, *inst));
        ssa.regions[id.index()].insts = insts;
        if let Some(values) = ssa.regions[id.index()].end.values_mut() {
            values.iter_mut().for_each(|value| *value = self.instead[value.index()]);
        }
        self.open[id.index()] = false;
    }

    /// Whether the instruction stays.
    fn inst(&mut self, ssa: &mut Ssa, region: RegionId, id: InstId) -> bool {
        let instead = &self.instead;
        ssa.insts[id.index()].kind.for_each_operand_mut(&mut |operand| *operand = instead[operand.index()]);
        let inst = &ssa.insts[id.index()];
        let key = match &inst.kind {
            InstKind::Op(op) => Key::Op(op.in_one_order()),
            InstKind::Load { buffer, index, .. } => {
                let met = if ssa.kernel.buffer(*buffer).access.is_writable() { self.versions.last().copied() } else { None };
                Key::Load(*buffer, self.versions[buffer.index()], met.unwrap_or(0), *index)
            }
            InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => {
                if let Some(slot) = self.slot(inst.kind.effect()) {
                    self.new_version(slot);
                }
                return true;
            }
            InstKind::If { then, otherwise, .. } => {
                let (then, otherwise) = (*then, *otherwise);
                self.branch(ssa, [then, otherwise]);
                return true;
            }
            InstKind::Loop { body, .. } => {
                let body = *body;
                self.effects_of(ssa, body);
                self.region(ssa, body);
                self.effects_of(ssa, body);
                return true;
            }
        };
        let result = inst.results[0];
        let first = self.first.entry(key).or_insert((result, region));
        if !self.open[first.1.index()] {
            *first = (result, region);
        }
        let earlier = first.0;
        if earlier == result {
            return true;
        }
        self.instead[result.index()] = earlier;
        self.changed = true;
        // The name that people gave the value stays known.
        let hint = ssa.values[result.index()].var;
        let info = &mut ssa.values[earlier.index()];
        info.var = info.var.or(hint);
        false
    }

    fn branch(&mut self, ssa: &mut Ssa, arms: [RegionId; 2]) {
        let mut arrives = 0;
        let mut changed: Vec<(usize, u32)> = Vec::new();
        for arm in arms {
            let mark = self.changes.len();
            self.region(ssa, arm);
            let goes_on = ssa.region(arm).end.is_yield();
            arrives += u32::from(goes_on);
            for (slot, old) in self.changes.split_off(mark).into_iter().rev() {
                if goes_on {
                    changed.push((slot, self.versions[slot]));
                }
                self.versions[slot] = old;
            }
        }
        changed.sort_unstable_by_key(|(slot, _)| *slot);
        changed.dedup_by_key(|(slot, _)| *slot);
        for (slot, version) in changed {
            match arrives {
                1 => self.set_version(slot, version),
                _ => self.new_version(slot),
            }
        }
    }
}
