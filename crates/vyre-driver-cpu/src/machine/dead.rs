//! Takes out instructions whose results nobody reads, and labels that nobody jumps to.
//!
//! Lowering makes a value where it is defined, and then finds that an address has it as a displacement, or that only a path needs it that
//! computes it by itself.

use super::lir::{AnyReg, Inst, Role};
use std::collections::HashSet;

/// Takes out what nobody reads, backwards, so that what only that has read goes too.
pub(crate) fn remove_dead(code: &mut Vec<Inst>, general: u32, vectors: u32) {
    let mut g = vec![0u32; general as usize];
    let mut v = vec![0u32; vectors as usize];
    for inst in code.iter_mut() {
        inst.for_each_reg(&mut |reg, role| {
            if let Role::Read | Role::Clobber = role {
                match reg {
                    AnyReg::G(reg) => g[reg.0 as usize] += 1,
                    AnyReg::V(reg) => v[reg.0 as usize] += 1,
                }
            }
        });
    }
    let mut kept = vec![true; code.len()];
    let targets: HashSet<u32> = code.iter().filter_map(Inst::target).map(|label| label.0).collect();
    for (n, inst) in code.iter().enumerate() {
        if let Inst::Label(label) = inst {
            kept[n] = targets.contains(&label.0);
        }
    }
    for (n, inst) in code.iter_mut().enumerate().rev() {
        if !is_pure(inst) {
            continue;
        }
        let mut wanted = false;
        inst.for_each_reg(&mut |reg, role| {
            if let Role::Write | Role::Early = role {
                wanted |= match reg {
                    AnyReg::G(reg) => g[reg.0 as usize] > 0,
                    AnyReg::V(reg) => v[reg.0 as usize] > 0,
                };
            }
        });
        if wanted {
            continue;
        }
        kept[n] = false;
        inst.for_each_reg(&mut |reg, role| {
            if let Role::Read | Role::Clobber = role {
                match reg {
                    AnyReg::G(reg) => g[reg.0 as usize] -= 1,
                    AnyReg::V(reg) => v[reg.0 as usize] -= 1,
                }
            }
        });
    }
    let mut kept = kept.into_iter();
    code.retain(|_| kept.next() == Some(true));
}

/// Whether an instruction does nothing but write registers. Loads are among these: they read what was checked.
fn is_pure(inst: &Inst) -> bool {
    match inst {
        Inst::V3 { .. }
        | Inst::V3I { .. }
        | Inst::V2 { .. }
        | Inst::V2I { .. }
        | Inst::Shift { .. }
        | Inst::Widen { .. }
        | Inst::Narrow { .. }
        | Inst::ToHalf { .. }
        | Inst::Blend { .. }
        | Inst::Fma { .. }
        | Inst::VMov { .. }
        | Inst::Zero { .. }
        | Inst::Ones { .. }
        | Inst::Join { .. }
        | Inst::High { .. }
        | Inst::Load { .. }
        | Inst::MaskLoad { .. }
        | Inst::Gather { .. }
        | Inst::GatherWide { .. }
        | Inst::Splat { .. }
        | Inst::First { .. }
        | Inst::Signs { .. }
        | Inst::G2 { .. }
        | Inst::GMul { .. }
        | Inst::GShift { .. }
        | Inst::GShiftBy { .. }
        | Inst::GMov { .. }
        | Inst::GImm { .. }
        | Inst::GLoad { .. }
        | Inst::Lea { .. }
        | Inst::Set { .. }
        | Inst::Choose { .. }
        | Inst::LowestBit { .. }
        | Inst::ClearLowest { .. }
        | Inst::PopCount { .. } => true,
        Inst::Prefetch { .. }
        | Inst::Store { .. }
        | Inst::MaskStore { .. }
        | Inst::GStore { .. }
        | Inst::Rmw { .. }
        | Inst::Change { .. }
        | Inst::CompareExchange { .. }
        | Inst::Label(_)
        | Inst::Jump(_)
        | Inst::JumpIf { .. }
        | Inst::JumpIfByte { .. }
        | Inst::LoopBegin
        | Inst::LoopEnd
        | Inst::ColdBegin
        | Inst::ColdEnd
        | Inst::Call { .. }
        | Inst::Mark(_)
        | Inst::Return => false,
    }
}
