//! How often loops go round, for drivers that end them without a word.
//!
//! llvmpipe ends every loop once all loops of a shader have gone round 65,535 times, those of eight invocations counted together. There
//! every round is counted, unless the facts say that there are few, and a dispatch with too many says so instead of having a result. A
//! shader that is made once more, with [`Target::copies`](crate::Target::copies), has the body of each innermost loop several times in one round.

use super::Emitter;
use crate::floats::FloatOp;
use vyre_foundation::analysis::Scope;
use vyre_foundation::ir::{Access, AtomicOp};
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstId, InstKind, Op, RegionId, Terminator};
use vyre_spec::Scalar;

impl Emitter<'_> {
    /// Counts a round of a loop that has its body so many times.
    pub(super) fn count_round(&mut self, body: RegionId, copies: u32) {
        let Some(most) = self.rounds.filter(|_| self.counts_rounds) else { return };
        let weight = self.rounds_inside(body).saturating_mul(copies).saturating_add(1).min(most);
        self.line(format!("vyk_rounds = vyk_rounds + {weight}u;"));
        self.line(format!("if (vyk_rounds > {most}u) {{ atomicMax(&vyk_traps[VYK_ROUNDS], 1u); }}"));
    }

    /// How often the body of a loop stands in one round of it.
    pub(super) fn copies(&self, body: RegionId, synchronous: bool) -> u32 {
        if self.counts_rounds && !synchronous && !self.has_loop(body) { self.target.copies.max(1) } else { 1 }
    }

    /// Whether control leaves a body before its end.
    pub(super) fn jumps_out(&self, region: RegionId) -> bool {
        let region = self.ssa.region(region);
        let ends = match region.end {
            Terminator::Yield(_) | Terminator::Unreachable => false,
            Terminator::Break(_) | Terminator::Continue(_) | Terminator::Return | Terminator::Trap(_) => true,
        };
        ends || region.insts.iter().any(|id| self.ssa.inst(*id).kind.regions().any(|inner| self.jumps_out(inner)))
    }

    /// Whether loops may go round more often than the driver allows, as far as the facts tell.
    pub(super) fn may_run_out_of_rounds(&self) -> bool {
        self.rounds.is_some_and(|most| self.rounds_of(self.ssa.root) > most.into())
    }

    /// The rounds that one invocation may make. Those that are counted together may make different ones, unless all loops are the same for
    /// all.
    pub(super) fn rounds_allowed(&self) -> Option<u32> {
        let rounds = self.target.rounds?;
        // What is not in a loop of the kernel's, and the loops that clear memory.
        let buffers = (0..self.kernel.buffers.len()).map(|i| (BufferId(i as u32), &self.kernel.buffers[i]));
        let cells = buffers.filter(|(_, buffer)| buffer.access == Access::Workgroup).map(|(id, buffer)| {
            let cells = self.places[id.index()].cells(buffer.count.unwrap_or(0));
            cells.div_ceil(self.size.iter().product::<u32>().max(1)) + 1
        });
        let own = cells.sum::<u32>().saturating_add(self.rounds_inside(self.ssa.root));
        let most = rounds.most.saturating_sub(own).saturating_sub(1);
        Some(if self.parts(self.ssa.root) { most / rounds.together } else { most })
    }

    /// Whether invocations of a workgroup may go different ways around a loop.
    fn parts(&self, region: RegionId) -> bool {
        self.ssa.region(region).insts.iter().any(|id| {
            let inst = self.ssa.inst(*id);
            match &inst.kind {
                InstKind::Loop { body, .. } => self.uniformity.diverges(inst.stmt, Scope::Workgroup) || self.parts(*body),
                InstKind::If { then, otherwise, .. } => [*then, *otherwise]
                    .into_iter()
                    .any(|arm| self.parts(arm) || self.has_loop(arm) && self.uniformity.diverges(inst.stmt, Scope::Workgroup)),
                InstKind::Op(_)
                | InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::Barrier
                | InstKind::GridSync => false,
            }
        })
    }

    fn has_loop(&self, region: RegionId) -> bool {
        self.ssa.region(region).insts.iter().any(|id| {
            let kind = &self.ssa.inst(*id).kind;
            matches!(kind, InstKind::Loop { .. }) || kind.regions().any(|inner| self.has_loop(inner))
        })
    }

    /// Rounds of the shader's own loops each time that control goes through a region, without those of the kernel's loops in it.
    fn rounds_inside(&self, region: RegionId) -> u32 {
        let retires = self.control.flagged && matches!(self.ssa.region(region).end, Terminator::Return | Terminator::Trap(_));
        let mut sum = u32::from(retires);
        for id in &self.ssa.region(region).insts {
            let own = match &self.ssa.inst(*id).kind {
                InstKind::Op(op) => self.rounds_of_op(op),
                InstKind::Subgroup { .. } => self.subgroup(),
                InstKind::Atomic { op: AtomicOp::CompareExchange, .. } => 1,
                // What retires lies in a loop that runs once.
                InstKind::If { then, otherwise, .. } => {
                    let arms = self.rounds_inside(*then).saturating_add(self.rounds_inside(*otherwise));
                    arms.saturating_add(u32::from(self.control.flagged))
                }
                InstKind::Loop { .. } => u32::from(self.control.flagged),
                InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Barrier
                | InstKind::GridSync => 0,
            };
            sum = sum.saturating_add(own);
        }
        sum
    }

    fn rounds_of_op(&self, op: &Op) -> u32 {
        let op = match *op {
            Op::Unary { op, ty: Scalar::F32, .. } => FloatOp::Unary(op),
            Op::Binary { op, ty: Scalar::F32, .. } => FloatOp::Binary(op),
            Op::Ternary { op, ty: Scalar::F32, .. } => FloatOp::Ternary(op),
            Op::Cast { from, to, .. } if from == Scalar::F32 || to == Scalar::F32 => FloatOp::Cast { from, to },
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => return 0,
        };
        self.floats.rounds(op)
    }

    /// Rounds of all loops when control goes through a region, as far as the facts tell.
    fn rounds_of(&self, region: RegionId) -> u64 {
        u64::from(self.rounds_inside(region)).saturating_add(self.rounds_of_loops(region))
    }

    fn rounds_of_loops(&self, region: RegionId) -> u64 {
        let of = |id: &InstId| match &self.ssa.inst(*id).kind {
            InstKind::Loop { body, .. } => {
                let most = self.loops.trips(*id).map_or(u32::MAX, |trips| trips.at_most);
                u64::from(most).saturating_mul(self.rounds_of(*body).saturating_add(1))
            }
            InstKind::If { then, otherwise, .. } => self.rounds_of_loops(*then).saturating_add(self.rounds_of_loops(*otherwise)),
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => 0,
        };
        self.ssa.region(region).insts.iter().map(of).fold(0, u64::saturating_add)
    }
}
