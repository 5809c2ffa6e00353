//! Which invocations have anything to do between two barriers.
//!
//! Much of what stands between barriers is for some of a workgroup only: `if lid.x < stride`, or the leader, `if lid.x == 0`. Where that is
//! all of a segment, only the blocks run that have such lanes. Where it is known which lanes they are, no masks are computed either: whole
//! blocks need none, and a few lanes at the start of a workgroup are a block of fewer vectors. What all do from a lane on, `if lid.x >= 16`,
//! is written without the condition for the blocks behind that lane, and without what is under it for those in front of it.

use super::control::End;
use super::geometry::WIDTH;
use super::guards::MAX_GUARDED;
use super::lower::Lower;
use super::places::{Mask, Parts};
use super::segments::Segment;
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Cond, G2, GSrc, Inst, LoadKind, StoreKind, Width};
use crate::machine::reg::G;
use std::ops::Range;
use vyre_foundation::ir::{Axis, BinaryOp, Builtin};
use vyre_foundation::ssa::{InstKind, Leaf, Op, RegionId, Ssa, Value};
use vyre_spec::Scalar;

/// How many instructions a segment has at the most that is written for several sizes of blocks.
const MAX_REPEATED: usize = 16;

/// Which lanes of a segment have anything to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// Any of them may.
    All,
    /// None from this one on.
    Below(G),
    /// These, which are those for which the condition holds; nothing is outside of its `if`.
    Known(Value, Range<u32>),
}

/// A condition whose outcome is known in every block of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decided {
    cond: Value,
    /// The lanes of the only block for which it holds; `None` if it holds for all of every block.
    lanes: Option<Range<u32>>,
}

/// The blocks that a segment runs for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocks {
    /// None.
    Nothing,
    /// The one that begins with this lane.
    One(u32),
    /// From the first up to a lane that is known.
    Several(u32),
    /// From one that is known up to a lane that is known.
    From(u32, u32),
    /// From the first up to a lane that is computed.
    UpTo(G),
}

/// A mask of which it is known that it is so many lanes at the start of a vector, and these are all there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    mask: Parts,
    lanes: u32,
}

/// The two sides of a condition `index < limit`, or `index == limit`, and whether it is the latter.
fn limited(ssa: &Ssa, cond: Value) -> Option<(Value, Value, bool)> {
    match *ssa.op(cond)? {
        Op::Binary { op: BinaryOp::Lt, ty: Scalar::U32, left, right } => Some((left, right, false)),
        Op::Binary { op: BinaryOp::Gt, ty: Scalar::U32, left, right } => Some((right, left, false)),
        // The leader of a workgroup, for one.
        Op::Binary { op: BinaryOp::Eq, ty: Scalar::U32, left, right } => Some((left, right, true)),
        Op::Unary { .. }
        | Op::Binary { .. }
        | Op::Ternary { .. }
        | Op::Cast { .. }
        | Op::Bitcast { .. }
        | Op::Vector { .. }
        | Op::Extract { .. } => None,
    }
}

/// Whether a value is the place of an invocation in its row.
pub(crate) fn is_local_x(ssa: &Ssa, value: Value) -> bool {
    ssa.leaf(value) == Some(Leaf::Builtin { builtin: Builtin::Local(Axis::X) })
}

/// Whether a segment may be one that only the first lanes have something to do in.
pub(crate) fn is_limited(ssa: &Ssa, segment: &Segment) -> bool {
    let Some(InstKind::If { cond, .. }) = segment.insts.last().map(|last| &ssa.inst(*last).kind) else { return false };
    limited(ssa, *cond).is_some_and(|(index, ..)| is_local_x(ssa, index))
}

impl Lower<'_> {
    /// What the blocks of a segment have to do: in a segment that is all under `if lid.x < limit`, or under `if lid.x == number`.
    pub fn extent(&mut self, segment: &Segment) -> Extent {
        let ssa = self.ssa;
        let total = self.geometry.total();
        if total != self.geometry.size[0] || self.retires() || !segment.copies.is_empty() {
            return Extent::All;
        }
        let Some((last, ops)) = segment.insts.split_last() else { return Extent::All };
        let InstKind::If { cond, otherwise, .. } = ssa.inst(*last).kind else { return Extent::All };
        let nothing_else = ssa.region(otherwise).insts.is_empty() && ssa.inst(*last).results.is_empty();
        // What is computed on the way is for this segment alone.
        let private = ops.iter().all(|id| {
            let inst = ssa.inst(*id);
            matches!(inst.kind, InstKind::Op(_)) && !inst.results.iter().any(|result| self.is_kept(*result))
        });
        let Some((index, limit, is_only)) = limited(ssa, cond) else { return Extent::All };
        let by_id = is_local_x(ssa, index);
        if !nothing_else || !private || !by_id || !self.can_be_made_again(limit, 0) || self.shape(limit) != Shape::Uniform {
            return Extent::All;
        }
        if let Some(limit) = ssa.literal(limit) {
            let limit = (limit as u32).min(total);
            let known = match is_only {
                true => limit..(limit + u32::from(!self.planted(Fault::LeaderLeftOut))).min(total),
                false => 0..limit,
            };
            return Extent::Known(cond, known);
        }
        let (limit, total) = (self.g(limit), self.imm(u64::from(total)));
        let limit = if is_only && !self.planted(Fault::LeaderLeftOut) {
            self.g2(G2::add, Width::W64, limit, GSrc::Imm(1))
        } else {
            limit
        };
        let d = self.new_g();
        let (cond, width) = (Cond::Below, Width::W64);
        self.push(Inst::Choose { cond, width, a: limit, b: total.into(), d, x: limit, y: total });
        Extent::Below(d)
    }

    /// The lane from which on conditions such as `lid.x >= 16` hold: blocks in front of it and behind it are written apart, without them.
    /// Also how many instructions that is for each.
    pub fn decided_from(&self, segment: &Segment) -> Option<(u32, usize)> {
        let (ssa, total) = (self.ssa, self.geometry.total());
        let fits = total == self.geometry.size[0] && !self.geometry.has_tail() && !self.retires();
        if !fits || total == self.geometry.lanes() || is_limited(ssa, segment) {
            return None;
        }
        let mut from = 0;
        let mut kept = false;
        let mut size = segment.insts.len();
        for id in &segment.insts {
            let inst = ssa.inst(*id);
            inst.kind.regions().for_each(|region| ssa.for_each_inst(region, &mut |_, _| size += 1));
            if let InstKind::If { cond, .. } = inst.kind {
                from = from.max(self.holds_from(cond).unwrap_or(0));
            }
            // What the workgroup keeps is made in one place.
            kept |= inst.results.iter().any(|result| self.slots.kept.contains(result));
        }
        (!kept && size <= MAX_GUARDED && from > 0 && from < total).then_some((from, size))
    }

    /// The lanes of a workgroup in parts, each of which is whole blocks or a block of fewer vectors. None but the one that has the lane
    /// before `from` in it lies on both sides of it.
    pub fn ranges(&self, from: u32, size: usize) -> Vec<Range<u32>> {
        let (total, lanes) = (self.geometry.total(), self.geometry.lanes());
        let (down, up) = (from / lanes * lanes, from.next_multiple_of(lanes));
        // Slots are laid out for whole blocks, and subgroups are not divided.
        let narrow = self.slots.places.is_empty() && !self.ssa.kernel.uses.subgroup && size <= MAX_REPEATED;
        let mut edges = vec![0, down];
        if narrow && down < up {
            // From half a block down to the one vector around, and up again.
            let (mut low, mut high) = (down, up);
            let mut above = vec![up];
            while high - low > WIDTH {
                let middle = low + (high - low) / 2;
                if from >= middle {
                    low = middle;
                    edges.push(low);
                } else {
                    high = middle;
                    above.push(high);
                }
            }
            edges.extend(above.into_iter().rev());
        }
        edges.extend([up, total]);
        edges.dedup();
        edges.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    /// Whether a condition that holds from a lane on does so for this part of a segment, if that is known.
    pub fn is_known(&self, holds_from: u32) -> Option<bool> {
        let known = self.slots.known.as_ref()?;
        if holds_from <= known.start + u32::from(self.planted(Fault::HoldsALaneEarly)) {
            return Some(true);
        }
        (known.end <= holds_from).then_some(false)
    }

    /// Chooses the blocks of a segment, and how many vectors they have; until [`Lower::end_extent`].
    pub fn begin_extent(&mut self, extent: &Extent) -> Blocks {
        let (cond, active) = match extent {
            Extent::All => return Blocks::Several(self.geometry.total()),
            Extent::Below(limit) => return Blocks::UpTo(*limit),
            Extent::Known(_, active) if active.is_empty() => return Blocks::Nothing,
            Extent::Known(cond, active) => (*cond, active.clone()),
        };
        // Slots are laid out for whole blocks, the first vectors of which are the first of the workgroup.
        let narrow = active.end.div_ceil(WIDTH).next_power_of_two();
        if narrow < self.geometry.parts {
            self.set_parts(narrow);
        }
        let lanes = self.geometry.lanes();
        let first = active.start / lanes * lanes;
        let decided = |lanes| Some(Decided { cond, lanes });
        if active.end <= first + lanes {
            let inside = active.start - first..active.end - first;
            self.decided = decided((inside != (0..lanes)).then_some(inside));
            return Blocks::One(first);
        }
        if active.end.is_multiple_of(lanes) {
            self.decided = decided(None);
        }
        Blocks::Several(active.end)
    }

    /// Goes back to whole blocks.
    pub fn end_extent(&mut self, parts: u32) {
        self.decided = None;
        self.prefix = None;
        self.set_parts(parts);
    }

    pub fn set_parts(&mut self, parts: u32) {
        if self.geometry.parts != parts {
            self.geometry.parts = parts;
            // They have as many vectors as a block had.
            self.splats.clear();
            self.splatted.clear();
        }
    }

    /// An `if` whose condition is known: no comparison, and no masks for whole blocks.
    pub fn branch_decided(&mut self, cond: Value, arms: [RegionId; 2]) -> Option<End> {
        let decided = self.decided.clone().filter(|decided| decided.cond == cond)?;
        if let Some(lanes) = decided.lanes {
            let mask: Parts = (0..self.geometry.parts)
                .map(|part| {
                    let lane = |n: usize| part * WIDTH + n as u32;
                    let words = std::array::from_fn(|n| if lanes.contains(&lane(n)) { u32::MAX } else { 0 });
                    let from = self.pool.place(words);
                    self.load(LoadKind::Full, from)
                })
                .collect();
            self.mask = Some(mask.clone());
            self.prefix = (lanes.start == 0 && mask.len() == 1).then_some(Prefix { mask, lanes: lanes.end });
        }
        self.region(arms[0]);
        (self.mask, self.prefix) = (None, None);
        Some(End::Reached)
    }

    /// Whether there is a condition that is known.
    pub fn is_decided(&self) -> bool {
        self.decided.is_some()
    }

    fn prefix_lanes(&self) -> Option<u32> {
        let prefix = self.prefix.as_ref()?;
        let is_mask = |mask: &Mask| mask.as_ref() == Some(&prefix.mask);
        is_mask(&self.mask).then_some(prefix.lanes)
    }

    /// How the words of the active lanes are read if they are half a vector or less, and those of no others.
    pub fn prefix_load(&self) -> Option<LoadKind> {
        match self.prefix_lanes()? {
            4 => Some(LoadKind::Half),
            2 => Some(LoadKind::Quarter),
            1 => Some(LoadKind::Eighth),
            _ => None,
        }
    }

    /// How the words of the active lanes are written if they are half a vector or less, and those of no others.
    pub fn prefix_store(&self) -> Option<StoreKind> {
        match self.prefix_lanes()? {
            4 => Some(StoreKind::Half),
            2 => Some(StoreKind::Quarter),
            1 => Some(StoreKind::Eighth),
            _ => None,
        }
    }
}
