//! Whether every register is written before it is read.
//!
//! Code is a list in which nothing jumps over what it goes back to later: whatever path gets to an instruction, all that ran before it for
//! the first time stands above it. So a register whose first mention is a read has no value on any path. Lowering never means that; if it
//! happens all the same, what it would compute is anybody's guess, and the kernel is left to the evaluator.

use super::lir::{AnyReg, Inst, Role};

/// The first instruction that reads a register which nothing above it writes.
pub(crate) fn read_unwritten(code: &mut [Inst], general: u32, vectors: u32) -> Option<Inst> {
    let mut written = [vec![false; general as usize], vec![false; vectors as usize]];
    for inst in code {
        let mut found = false;
        for pass in [[Role::Read, Role::Clobber], [Role::Write, Role::Early]] {
            inst.for_each_reg(&mut |reg, role| {
                if pass.contains(&role) {
                    let written = match reg {
                        AnyReg::G(reg) => &mut written[0][reg.0 as usize],
                        AnyReg::V(reg) => &mut written[1][reg.0 as usize],
                    };
                    if pass[0] == Role::Read {
                        found |= !*written;
                    } else {
                        *written = true;
                    }
                }
            });
        }
        if found {
            return Some(*inst);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::lir::{G2, GSrc, Width};
    use crate::machine::reg::G;

    #[test]
    fn a_register_that_only_something_below_writes_is_found() {
        let (a, b) = (G(0), G(1));
        let sum = Inst::G2 { op: G2::add, width: Width::W32, d: b, a: b, b: GSrc::Reg(a) };
        let mut code = vec![Inst::GImm { d: a, imm: 1 }, Inst::GImm { d: b, imm: 2 }, sum];
        assert!(read_unwritten(&mut code, 2, 0).is_none());
        code.swap(1, 2);
        assert!(matches!(read_unwritten(&mut code, 2, 0), Some(Inst::G2 { .. })));
    }
}
