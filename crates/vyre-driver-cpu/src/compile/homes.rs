//! Values that later segments find in workgroup memory, because it was stored there anyway.
//!
//! What crosses a barrier has a slot. In `tile[lid.x] = sum; barrier; … sum …` it is in the tile as well, in the element of each
//! invocation: it need not be written twice. It stays there until somebody writes to the tile, which the segment that asks for it last may
//! do: a block reads what crosses before it does anything else, and no invocation writes to the element of another.

use super::fuse::{Touch, accesses};
use super::leaves::MachineLeaf;
use super::lower::Lower;
use super::segments::{Item, Segment, for_each_segment, ssa_retires};
use super::shape::Shape;
use super::shared::LocalForm;
use crate::faults::Fault;
use crate::machine::lir::Mem;
use crate::machine::reg::G;
use std::collections::HashMap;
use vyre_foundation::ir::{Access, DataType};
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstKind, Value};

/// An element of a workgroup's memory per invocation: the one of its number, and so many further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    buffer: BufferId,
    plus: u32,
}

impl Lower<'_> {
    /// The values that need no slot. `last_use`: by value the last segment that mentions it, counted from 1; `homes`: the one that makes it.
    pub fn find_homes(
        &self,
        phases: &[Vec<Item>],
        last_use: &HashMap<Value, usize>,
        homes: &HashMap<Value, (usize, usize)>,
    ) -> HashMap<Value, Home> {
        let mut found = HashMap::new();
        let [items] = phases else { return found };
        let total = self.geometry.total();
        if total != self.geometry.size[0] || self.geometry.has_tail() || ssa_retires(self.ssa) {
            return found;
        }
        // By number: the segments that everybody runs once, one after the other.
        let mut once: Vec<Option<&Segment>> = vec![None];
        for item in items {
            match item {
                Item::Segment(segment) => once.push(Some(segment)),
                Item::If { .. } | Item::Loop { .. } | Item::Break | Item::Continue | Item::Retire(_) => {
                    for_each_segment(std::slice::from_ref(item), &mut |_| once.push(None));
                }
            }
        }
        for (number, segment) in once.iter().enumerate() {
            let Some(segment) = segment else { continue };
            for (value, home) in self.stored_whole(segment) {
                let made_here = homes.get(&value).is_some_and(|(made, _)| *made == number);
                let last = last_use.get(&value).copied().unwrap_or(number);
                let stays = |between: usize| {
                    let Some(Some(segment)) = once.get(between) else { return false };
                    let touches = writes(self, segment, home.buffer);
                    if between == last { touches.iter().all(|form| *form == Some(home.form())) } else { touches.is_empty() }
                };
                if made_here && ((number + 1..=last).all(stays) || self.planted(Fault::KeptWhereOthersWrite)) {
                    found.insert(value, home);
                }
            }
        }
        found
    }

    /// Values of which every invocation stores its own to its own element, which nobody else writes to in this segment.
    fn stored_whole(&self, segment: &Segment) -> Vec<(Value, Home)> {
        let ssa = self.ssa;
        let mut found: Vec<(Value, Home)> = Vec::new();
        for id in &segment.insts {
            let InstKind::Store { access, buffer, index, value } = ssa.inst(*id).kind else { continue };
            let declared = ssa.kernel.buffer(buffer);
            let as_it_is = matches!(declared.element, DataType::U32 | DataType::I32 | DataType::F32);
            let form = LocalForm::of(ssa, index, 0).filter(|form| form.times == [1, 0, 0]);
            if let Some(form) = form
                && declared.access == Access::Workgroup
                && as_it_is
                && self.facts.bounds.is_proven(access)
                && self.shape(index) == Shape::Linear(1)
                && self.shape(value) == Shape::Varying
            {
                let home = Home { buffer, plus: form.plus };
                // What was stored to the same elements before is there no longer.
                found.retain(|(_, other)| other.buffer != buffer);
                if writes(self, segment, buffer).iter().all(|other| *other == Some(form)) {
                    found.push((value, home));
                }
            }
        }
        // A store under a condition may come last.
        found.retain(|(value, home)| {
            let is_store_of = |id| match ssa.inst(id).kind {
                InstKind::Store { buffer, value: stored, .. } => buffer == home.buffer && stored == *value,
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => false,
            };
            let after = segment.insts.iter().rev().take_while(|id| !is_store_of(**id));
            after.into_iter().all(|id| {
                let mut touches = Vec::new();
                accesses(ssa, *id, &mut touches);
                !touches.iter().any(|touch| touch.writes && touch.buffer == home.buffer)
            })
        });
        found
    }

    /// Where the values of a block are.
    pub fn home_at(&mut self, home: Home, block: Option<G>) -> Mem {
        let base = self.machine_leaf(MachineLeaf::Address(home.buffer));
        let at = match block {
            Some(block) => Mem::indexed(base, block, 4),
            None => Mem::at(base),
        };
        at.plus(4 * home.plus as usize)
    }
}

impl Home {
    fn form(self) -> LocalForm {
        LocalForm { times: [1, 0, 0], plus: self.plus }
    }
}

/// The forms of the indices at which a segment writes to a buffer.
fn writes(lower: &Lower, segment: &Segment, buffer: BufferId) -> Vec<Option<LocalForm>> {
    let mut touches: Vec<Touch> = Vec::new();
    segment.insts.iter().for_each(|id| accesses(lower.ssa, *id, &mut touches));
    let written = touches.iter().filter(|touch| touch.writes && touch.buffer == buffer);
    written.map(|touch| LocalForm::of(lower.ssa, touch.index, 0)).collect()
}
