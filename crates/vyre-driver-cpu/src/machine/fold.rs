//! Makes a load part of the only instruction that reads it.
//!
//! Most instructions on vectors can have their last operand in memory. Lowering loads a value where it is defined; if one instruction alone
//! reads it, in the same straight code, and neither memory nor the registers of the address change in between, it reads the memory itself,
//! and no register is held on the way.

use super::lir::{AnyReg, Base, Inst, LoadKind, Mem, Role, Src};
use super::order::Memory;
use super::reg::{G, V};

/// Folds loads into the instructions that read them.
pub(crate) fn fold_loads(code: &mut Vec<Inst>, vectors: u32) {
    let (mut reads, mut writes) = (vec![0u32; vectors as usize], vec![0u32; vectors as usize]);
    for inst in code.iter_mut() {
        inst.for_each_reg(&mut |reg, role| {
            if let AnyReg::V(reg) = reg {
                let counted = if role == Role::Read { &mut reads } else { &mut writes };
                counted[reg.0 as usize] += 1;
                // What is changed in place is read and written.
                reads[reg.0 as usize] += u32::from(role == Role::Clobber);
            }
        });
    }
    let mut loads: Vec<Pending> = Vec::new();
    let mut folded = vec![false; code.len()];
    for (n, inst) in code.iter_mut().enumerate() {
        if inst.is_control() || matches!(inst, Inst::Call { .. }) {
            loads.clear();
            continue;
        }
        if let Some(operand) = operand(inst)
            && let Src::Reg(reg) = *operand
            && let Some(found) = loads.iter().position(|load| load.to == reg)
        {
            let load = loads.remove(found);
            *operand = Src::Mem(load.from);
            folded[load.at] = true;
        }
        // What is only moved on is loaded to where it goes.
        if let Inst::VMov { d, a } = *inst
            && writes[d.0 as usize] == 1
            && let Some(found) = loads.iter().position(|load| load.to == a)
        {
            let load = loads.remove(found);
            *inst = Inst::Load { kind: LoadKind::Full, d, from: load.from };
            folded[load.at] = true;
        }
        if let Memory::Written = inst.memory() {
            loads.retain(|load| load.from.base == Base::Pool);
        }
        inst.for_each_reg(&mut |reg, role| {
            if let (AnyReg::G(reg), Role::Write | Role::Early | Role::Clobber) = (reg, role) {
                loads.retain(|load| !load.needs(*reg));
            }
        });
        if let Inst::Load { kind: LoadKind::Full, d, from } = *inst
            && (reads[d.0 as usize], writes[d.0 as usize]) == (1, 1)
        {
            loads.push(Pending { to: d, from, at: n });
            // What has not been read for so long may as well be where it is.
            if loads.len() > MOST {
                loads.remove(0);
            }
        }
    }
    let mut folded = folded.into_iter();
    code.retain(|_| folded.next() == Some(false));
}

/// The operand of an instruction that may be in memory, all 32 bytes of it.
pub(super) fn operand(inst: &mut Inst) -> Option<&mut Src> {
    match inst {
        Inst::V3 { b, .. } | Inst::V3I { b, .. } | Inst::Blend { b, .. } | Inst::Fma { c: b, .. } => Some(b),
        Inst::V2 { a, .. } | Inst::V2I { a, .. } => Some(a),
        Inst::Widen { .. }
        | Inst::Shift { .. }
        | Inst::Narrow { .. }
        | Inst::ToHalf { .. }
        | Inst::VMov { .. }
        | Inst::Zero { .. }
        | Inst::Ones { .. }
        | Inst::Join { .. }
        | Inst::High { .. }
        | Inst::Load { .. }
        | Inst::Store { .. }
        | Inst::MaskStore { .. }
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
        | Inst::GStore { .. }
        | Inst::Lea { .. }
        | Inst::Prefetch { .. }
        | Inst::Set { .. }
        | Inst::Choose { .. }
        | Inst::LowestBit { .. }
        | Inst::ClearLowest { .. }
        | Inst::PopCount { .. }
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
        | Inst::Return => None,
    }
}

/// How many loads are remembered at once.
const MOST: usize = 16;

/// A load that nobody has read yet.
struct Pending {
    to: V,
    from: Mem,
    at: usize,
}

impl Pending {
    fn needs(&self, reg: G) -> bool {
        self.from.base == Base::Reg(reg) || self.from.index.is_some_and(|(index, _)| index == reg)
    }
}
