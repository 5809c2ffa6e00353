//! Lane compaction: loops that few lanes are still in.
//!
//! A loop runs until its last lane has left it, and every op costs as much for one lane as for all of them. So when at least half of
//! a frame's lanes have left a loop, those that are still in it move to a smaller frame, side by side, with the variables that an
//! iteration may use; at the end of the loop what it assigned goes back to where they came from, as far as something behind the loop
//! uses it. Which those are is asked of [`Liveness`]. The smaller frame does the same, so that the work follows the iterations that
//! lanes take, within a factor of two, and not the longest.
//!
//! Moving a column costs about as much as [`COST`] ops on it. A frame moves when its iterations have cost as much as moving will: if
//! the loop ends right after, it has taken twice as long as it had to, never more.
//!
//! Lanes keep their order, and those in the loop stay in step, so that a loop is executed in the same order with and without.

use super::column::{Stack, Val, Word};
use super::faults::Faults;
use super::frame::Frame;
use super::is_group_memory;
use crate::faults::BulkFault;
use std::sync::Arc;
use vyre_foundation::analysis::{Liveness, LoopVariables};
use vyre_foundation::kernel::{Body, ExprKind, Kernel, StmtKind, VarId};
use vyre_foundation::ssa::Ssa;

/// Frames of fewer lanes stay as they are: a vector op has a cost that no lane can be taken off.
const FEW_LANES: usize = 32;

/// Ops on a column that cost as much as moving one: ops are vectorised.
const COST: usize = 8;

/// What is known about a loop before it runs.
pub(super) struct Loop {
    /// Variables of outside the loop that it assigns.
    pub assigned: Vec<VarId>,
    /// How its lanes are compacted, if they can be.
    pub compaction: Option<Compaction>,
}

/// What moves with the lanes of a loop.
pub(super) struct Compaction {
    /// Variables of outside the loop that an iteration may use.
    inward: Vec<VarId>,
    /// Those that the loop assigns and that are used behind it.
    outward: Vec<VarId>,
    /// Ops in an iteration.
    ops: usize,
}

/// By counter: its loop; `None` for other variables.
pub(super) fn loops(kernel: &Arc<Kernel>) -> Vec<Option<Loop>> {
    let mut all: Vec<Option<Loop>> = kernel.vars.iter().map(|_| None).collect();
    let mut any = false;
    for stmt in &kernel.stmts {
        if let StmtKind::Loop { counter, .. } = stmt.kind {
            // The SSA form has no loops that are never reached. They run only with a planted fault.
            all[counter.index()] = Some(Loop { assigned: Vec::new(), compaction: None });
            any = true;
        }
    }
    if !any {
        return all;
    }
    let ssa = Ssa::of(kernel);
    for LoopVariables { stmt, assigned, inward, outward } in Liveness::of(&ssa).loops(&ssa) {
        if let StmtKind::Loop { counter, body, .. } = kernel.stmt(stmt).kind {
            let compaction = ops(kernel, body).map(|ops| Compaction { inward, outward, ops });
            all[counter.index()] = Some(Loop { assigned, compaction });
        }
    }
    all
}

/// The ops of an iteration. `None` if its lanes exchange values or share memory of their workgroup: they must stay where the others of
/// it are.
fn ops(kernel: &Kernel, body: Body) -> Option<usize> {
    let (mut ops, mut stays) = (0, false);
    for stmt in &kernel.stmts[body.range()] {
        match &stmt.kind {
            StmtKind::Store { buffer, .. } | StmtKind::Atomic { buffer, .. } => stays |= is_group_memory(kernel, *buffer),
            StmtKind::Subgroup { .. } | StmtKind::Barrier | StmtKind::GridSync => stays = true,
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Trap { .. }
            | StmtKind::Scope { .. } => {}
        }
        for operand in stmt.kind.operands() {
            kernel.for_each_part(operand, &mut |_, part| {
                ops += 1;
                if let ExprKind::Load { buffer, .. } = part.kind {
                    stays |= is_group_memory(kernel, buffer);
                }
            });
        }
    }
    (!stays).then_some(ops)
}

impl Compaction {
    /// Whether `count` lanes of a frame should move, which has done so many iterations of the loop.
    pub fn pays(&self, count: usize, lanes: usize, iterations: usize) -> bool {
        let columns = self.inward.len() + self.outward.len();
        count <= lanes / 2 && lanes > FEW_LANES && iterations.saturating_mul(self.ops) >= COST * columns
    }
}

impl Frame {
    /// Makes this the frame of the lanes of `whole` that are in the mask, `count` of them, at the start of an iteration. It gets room
    /// for `room` lanes: whatever number is in a loop next time, a frame that was used does not allocate.
    pub fn compact(
        &mut self,
        whole: &Frame,
        mask: usize,
        count: usize,
        room: usize,
        compaction: &Compaction,
        faults: impl Faults,
    ) {
        self.start(count, room, 0);
        self.picked.clear();
        self.picked.reserve_exact(room);
        let mask = whole.narrow.column(mask);
        self.picked.extend((0..).zip(mask).filter(|(_, bit)| **bit != 0).map(|(lane, _): (u32, _)| lane));
        self.origin.clear();
        self.origin.reserve_exact(room);
        let origin = |lane: &u32| whole.origin.get(*lane as usize).copied().unwrap_or(*lane);
        self.origin.extend(self.picked.iter().map(origin));
        for (_, column) in &whole.ids {
            if faults.has(BulkFault::CompactIds) {
                self.narrow.column_mut(*column).copy_from_slice(&whole.narrow.column(*column)[..count]);
                continue;
            }
            gather(&whole.narrow, *column, &self.picked, &mut self.narrow, *column);
        }
        for var in &compaction.inward {
            self.vars[var.index()] = whole.vars[var.index()];
            // A variable has the same columns in every frame.
            for value in self.vars[var.index()] {
                match value {
                    Val::Splat(_) => {}
                    Val::Narrow(column) => gather(&whole.narrow, column, &self.picked, &mut self.narrow, column),
                    Val::Wide(column) => gather(&whole.wide, column, &self.picked, &mut self.wide, column),
                }
            }
        }
    }

    /// The value of `whole` in the lanes of this frame.
    pub fn compact_value(&mut self, whole: &Frame, value: Val, faults: impl Faults) -> Val {
        match value {
            Val::Splat(bits) => Val::Splat(bits),
            Val::Narrow(column) => {
                let own = self.narrow.push();
                if faults.has(BulkFault::CompactBounds) {
                    let lanes = self.lanes;
                    self.narrow.column_mut(own).copy_from_slice(&whole.narrow.column(column)[..lanes]);
                    return Val::Narrow(own);
                }
                gather(&whole.narrow, column, &self.picked, &mut self.narrow, own);
                Val::Narrow(own)
            }
            Val::Wide(column) => {
                let own = self.wide.push();
                gather(&whole.wide, column, &self.picked, &mut self.wide, own);
                Val::Wide(own)
            }
        }
    }

    /// Brings what the lanes of this frame have changed back to where they came from.
    pub fn expand(&mut self, whole: &mut Frame, compaction: &Compaction, faults: impl Faults) {
        if faults.has(BulkFault::CompactLanes) {
            self.picked.reverse();
        }
        let kept = usize::from(faults.has(BulkFault::CompactLost)).min(compaction.outward.len());
        for var in &compaction.outward[kept..] {
            let components = self.components[var.index()];
            for n in 0..components.count {
                let (new, old, own) = (self.vars[var.index()][n], whole.vars[var.index()][n], components.first + n);
                if new == old && matches!(new, Val::Splat(_)) {
                    continue;
                }
                whole.vars[var.index()][n] = if components.wide {
                    scatter(&self.wide, new, &self.picked, &mut whole.wide, old, own);
                    Val::Wide(own)
                } else {
                    scatter(&self.narrow, new, &self.picked, &mut whole.narrow, old, own);
                    Val::Narrow(own)
                };
            }
        }
        if self.live_count < self.lanes && !faults.has(BulkFault::CompactLive) {
            let live = whole.narrow.column_mut(whole.live);
            for (lane, bit) in self.picked.iter().zip(self.narrow.column(self.live)) {
                live[*lane as usize] = *bit;
            }
            whole.live_count = live.iter().sum::<u32>() as usize;
        }
    }
}

fn gather<W: Word>(from: &Stack<W>, column: usize, picked: &[u32], to: &mut Stack<W>, own: usize) {
    let from = from.column(column);
    for (out, lane) in to.column_mut(own).iter_mut().zip(picked) {
        *out = from[*lane as usize];
    }
}

fn scatter<W: Word>(from: &Stack<W>, new: Val, picked: &[u32], to: &mut Stack<W>, old: Val, own: usize) {
    let to = to.column_mut(own);
    if let Val::Splat(bits) = old {
        to.fill(W::from_bits(bits));
    }
    match new {
        Val::Splat(bits) => picked.iter().for_each(|lane| to[*lane as usize] = W::from_bits(bits)),
        Val::Narrow(column) | Val::Wide(column) => {
            for (lane, word) in picked.iter().zip(from.column(column)) {
                to[*lane as usize] = *word;
            }
        }
    }
}
