//! Traps.

use super::helpers::{self, area};
use super::lower::Lower;
use crate::faults::Fault;
use crate::machine::lir::{GStoreKind, Inst, Mem};

impl Lower<'_> {
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
