//! What involves more than one invocation: atomics, subgroups, traps.

use super::access::lane_at;
use super::helpers::{self, area};
use super::lower::{Loc, Lower, Parts};
use crate::faults::Fault;
use crate::machine::lir::{GLoadKind, GStoreKind, Inst, LoadKind, Mem, Rmw, StoreKind, V3};
use vyre_foundation::ir::{Access, AtomicOp, SubgroupOp};
use vyre_foundation::kernel::{AccessId, BufferId};
use vyre_foundation::ssa::Value;
use vyre_spec::Scalar;

impl Lower<'_> {
    /// One lane after the other: what they find of each other is as good as any order.
    pub fn atomic(
        &mut self,
        result: Option<Value>,
        access: AccessId,
        op: AtomicOp,
        buffer: BufferId,
        index: Value,
        operands: &[Value],
    ) {
        self.frame(area::BYTES);
        let declared = self.ssa.kernel.buffer(buffer);
        let signed = declared.value.scalar().is_some_and(Scalar::is_signed_int);
        // Only the thread that runs a workgroup touches its memory.
        let locked = declared.access != Access::Workgroup;
        let wanted = result.is_some_and(|result| self.facts.uses[result.index()] > 0);
        for (n, operand) in operands.iter().enumerate() {
            let area = if n == 0 { area::FIRST } else { area::SECOND };
            let parts = self.vectors(*operand, 0);
            for (part, v) in parts.into_iter().enumerate() {
                let v = if op == AtomicOp::Sub {
                    let zero = self.zero();
                    self.v3(V3::vpsubd, zero, v)
                } else {
                    v
                };
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area + 32 * part), v });
            }
        }
        let parts = self.parts();
        if wanted {
            let zero = self.zero();
            for part in 0..parts {
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area::RESULT + 32 * part), v: zero });
            }
        }
        let proven = self.facts.bounds.is_proven(access);
        let bits = self.lanes_inside(proven, buffer, index);
        self.each_lane(bits, |lower, lane| {
            let index = lower.load_g(GLoadKind::W32, lane_at(area::INDEX, lane, 4));
            let at = lower.word_at(buffer, index);
            let first = |lower: &mut Self| lower.load_g(GLoadKind::W32, lane_at(area::FIRST, lane, 4));
            let rmw = match (op, signed) {
                (AtomicOp::Load, _) => {
                    let old = lower.load_g(GLoadKind::W32, at);
                    lower.push(Inst::GStore { kind: GStoreKind::B4, to: lane_at(area::RESULT, lane, 4), a: old });
                    return;
                }
                (AtomicOp::Store, _) => {
                    let a = first(lower);
                    lower.push(Inst::GStore { kind: GStoreKind::B4, to: at, a });
                    return;
                }
                (AtomicOp::CompareExchange, _) => {
                    let expected = first(lower);
                    let new = lower.load_g(GLoadKind::W32, lane_at(area::SECOND, lane, 4));
                    let d = lower.new_g();
                    lower.push(Inst::CompareExchange { locked, d, at, expected, new });
                    if wanted {
                        lower.push(Inst::GStore { kind: GStoreKind::B4, to: lane_at(area::RESULT, lane, 4), a: d });
                    }
                    return;
                }
                (AtomicOp::Exchange, _) => Rmw::Exchange,
                (AtomicOp::Add | AtomicOp::Sub, _) => Rmw::Add,
                (AtomicOp::And, _) => Rmw::And,
                (AtomicOp::Or, _) => Rmw::Or,
                (AtomicOp::Xor, _) => Rmw::Xor,
                (AtomicOp::Min, false) => Rmw::MinU,
                (AtomicOp::Max, false) => Rmw::MaxU,
                (AtomicOp::Min, true) => Rmw::MinS,
                (AtomicOp::Max, true) => Rmw::MaxS,
            };
            let (a, d) = (first(lower), lower.new_g());
            lower.push(Inst::Rmw { op: rmw, locked, d, at, a });
            if wanted {
                lower.push(Inst::GStore { kind: GStoreKind::B4, to: lane_at(area::RESULT, lane, 4), a: d });
            }
        });
        if let Some(result) = result {
            let parts: Parts = if wanted || op == AtomicOp::Load {
                (0..parts).map(|part| self.load(LoadKind::Full, Mem::frame(area::RESULT + 32 * part))).collect()
            } else {
                (0..parts).map(|_| self.zero()).collect()
            };
            self.set(result, Loc::Parts(parts));
        }
    }

    pub fn subgroup(&mut self, result: Value, op: SubgroupOp, ty: Scalar, operands: &[Value]) {
        self.frame(area::BYTES);
        for (n, operand) in operands.iter().enumerate() {
            let area = if n == 0 { area::FIRST } else { area::SECOND };
            for (part, v) in self.vectors(*operand, 0).into_iter().enumerate() {
                self.push(Inst::Store { kind: StoreKind::Full, to: Mem::frame(area + 32 * part), v });
            }
        }
        let mask = if self.planted(Fault::SubgroupTakesAll) { None } else { self.mask.clone() };
        let bits = self.mask_bits(&mask);
        self.push(Inst::GStore { kind: GStoreKind::B4, to: Mem::frame(area::INDEX), a: bits });
        let lanes = self.geometry.lanes();
        let size = self.ssa.kernel.subgroup.unwrap_or(1);
        let argument = helpers::subgroup_argument(op, ty, self.mode, size, lanes);
        self.push(Inst::Call { helper: helpers::subgroup, argument });
        let to = self.ty(result);
        let count = self.vectors_of(to);
        let parts = (0..count)
            .map(|n| {
                let v = self.load(LoadKind::Full, Mem::frame(area::RESULT + 32 * n));
                if to == Scalar::Bool {
                    let zero = self.zero();
                    self.v3(V3::vpsubd, zero, v)
                } else {
                    v
                }
            })
            .collect();
        self.set(result, Loc::Parts(parts));
    }

    /// Notes which lanes trap.
    pub fn trap(&mut self, tag: u32) {
        self.frame(area::BYTES);
        let mask = if self.planted(Fault::TrapInFirstLane) { None } else { self.mask.clone() };
        let bits = self.mask_bits(&mask);
        let first = match self.block {
            Some(block) => block,
            None => self.imm(0),
        };
        let group = match self.group {
            Some(group) => group,
            None => self.imm(0),
        };
        let flat = self.imm(u64::from(self.geometry.flat));
        for (n, a) in [bits, first, group, flat].into_iter().enumerate() {
            self.push(Inst::GStore { kind: GStoreKind::B4, to: Mem::frame(area::FIRST + 4 * n), a });
        }
        self.push(Inst::Call { helper: helpers::trap, argument: u64::from(tag) });
    }
}
