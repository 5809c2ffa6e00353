//! What involves more than one invocation: subgroups and traps.

use super::helpers::{self, area};
use super::lower::Lower;
use super::places::Loc;
use crate::faults::Fault;
use crate::machine::lir::{GStoreKind, Inst, LoadKind, Mem, StoreKind, V3};
use vyre_foundation::ir::SubgroupOp;
use vyre_foundation::ssa::Value;
use vyre_spec::Scalar;

impl Lower<'_> {
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
        let [y, z] = match self.row {
            Some(row) => row,
            None => [self.imm(0), self.imm(0)],
        };
        for (n, a) in [bits, first, group, flat, y, z].into_iter().enumerate() {
            self.push(Inst::GStore { kind: GStoreKind::B4, to: Mem::frame(area::FIRST + 4 * n), a });
        }
        self.push(Inst::Call { helper: helpers::trap, argument: u64::from(tag) });
    }
}
