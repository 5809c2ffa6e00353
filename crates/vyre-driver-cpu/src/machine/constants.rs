//! Finds general registers that hold a number that is known, or the same as another register, and lets instructions do without them.
//!
//! Lowering adds up addresses from where a block begins, and some of these beginnings are always zero. A register that one instruction alone
//! writes holds what that wrote wherever it is read, since every path to a read writes first. So where it is a number, those that read it
//! have the number instead; and where it is a copy of another one that is written once, they read that: no path leads from a new value of
//! that one to a read of the copy without copying again.
//!
//! Instructions that nobody reads any more are left for [`super::dead`]. One walk to count writes, and one over the code.

use super::lir::{AnyReg, G2, GLoadKind, GShift, GSrc, Inst, Mem, Role, Src, Width};
use super::reg::G;

/// Replaces registers by numbers and copies by what they are copies of.
pub(crate) fn fold_constants(code: &mut [Inst], general: u32) {
    let mut known = vec![Known::default(); general as usize];
    for inst in code.iter_mut() {
        inst.for_each_reg(&mut |reg, role| {
            if let (AnyReg::G(reg), Role::Write | Role::Early | Role::Clobber) = (reg, role) {
                known[reg.0 as usize].writes += 1;
            }
        });
    }
    let mut walk = Walk { known };
    for inst in code {
        walk.inst(inst);
    }
}

/// What is known of a register.
#[derive(Clone, Copy, Default)]
struct Known {
    writes: u32,
    /// Whether its upper half is zero.
    is_short: bool,
    value: Option<Holds>,
}

#[derive(Clone, Copy)]
enum Holds {
    Number(u64),
    /// The same as another register.
    Copy(G),
}

struct Walk {
    known: Vec<Known>,
}

impl Walk {
    fn inst(&mut self, inst: &mut Inst) {
        inst.for_each_reg(&mut |reg, role| {
            if let (AnyReg::G(reg), Role::Read) = (reg, role)
                && let Some(Holds::Copy(other)) = self.known[reg.0 as usize].value
            {
                *reg = other;
            }
        });
        if let Some(mem) = memory(inst) {
            self.shorten(mem);
        }
        if let Inst::G2 { width, b, .. }
        | Inst::GMul { width, b, .. }
        | Inst::Set { width, b, .. }
        | Inst::Choose { width, b, .. }
        | Inst::JumpIf { width, b, .. } = inst
        {
            self.to_number(*width, b);
        }
        self.simplify(inst);
        self.remember(inst);
    }

    fn number(&self, reg: G) -> Option<u64> {
        match self.known[reg.0 as usize].value {
            Some(Holds::Number(number)) => Some(number),
            Some(Holds::Copy(_)) | None => None,
        }
    }

    /// An index that is known becomes part of the displacement.
    fn shorten(&self, mem: &mut Mem) {
        if let Some((index, scale)) = mem.index
            && let Some(number) = self.number(index)
            && let Some(bytes) = i64::try_from(number).ok().and_then(|number| number.checked_mul(i64::from(scale)))
            && let Some(disp) = bytes.checked_add(i64::from(mem.disp)).and_then(|disp| i32::try_from(disp).ok())
        {
            *mem = Mem { index: None, disp, ..*mem };
        }
    }

    fn to_number(&self, width: Width, src: &mut GSrc) {
        if let GSrc::Reg(reg) = src
            && let Some(imm) = self.number(*reg).and_then(|number| as_immediate(width, number))
        {
            *src = GSrc::Imm(imm);
        }
    }

    /// Does at once what can be done now.
    fn simplify(&self, inst: &mut Inst) {
        if let Inst::G2 { op, width, d, a, b: b @ GSrc::Reg(_) } = inst
            && *op != G2::sub
            && let Some(imm) = self.number(*a).and_then(|number| as_immediate(*width, number))
            && let GSrc::Reg(other) = *b
        {
            *inst = Inst::G2 { op: *op, width: *width, d: *d, a: other, b: GSrc::Imm(imm) };
        }
        if let Inst::G2 { op: G2::add | G2::sub | G2::or | G2::xor, width, d, a, b: GSrc::Imm(0) }
        | Inst::GShift { op: GShift::Left | GShift::Right, width, d, a, imm: 0 } = *inst
        {
            *inst = Inst::GMov { width, d, a };
        }
        let (width, d, result) = if let Inst::G2 { op, width, d, a, b: GSrc::Imm(imm) } = *inst {
            (width, d, self.number(a).map(|number| compute(op, number, i64::from(imm) as u64)))
        } else if let Inst::GMul { width, d, a, b: GSrc::Imm(imm) } = *inst {
            (width, d, self.number(a).map(|number| number.wrapping_mul(i64::from(imm) as u64)))
        } else if let Inst::GMov { width, d, a } = *inst {
            (width, d, self.number(a))
        } else {
            return;
        };
        if let Some(result) = result {
            *inst = Inst::GImm { d, imm: cut(width, result) };
        }
    }

    /// What is known of the result from now on.
    fn remember(&mut self, inst: &Inst) {
        let is_once = |known: &[Known], reg: G| known[reg.0 as usize].writes == 1;
        let (d, is_short, value) = if let Inst::GImm { d, imm } = *inst {
            (d, u32::try_from(imm).is_ok(), Some(Holds::Number(imm)))
        } else if let Inst::GMov { width, d, a } = *inst {
            let is_copy = is_once(&self.known, a) && (width == Width::W64 || self.known[a.0 as usize].is_short);
            (d, width == Width::W32 || is_copy && self.known[a.0 as usize].is_short, is_copy.then_some(Holds::Copy(a)))
        } else if let Inst::G2 { width, d, .. } | Inst::GMul { width, d, .. } | Inst::GShift { width, d, .. } = *inst {
            (d, width == Width::W32, None)
        } else if let Inst::GLoad { kind: GLoadKind::W32 | GLoadKind::U8 | GLoadKind::U16, d, .. } = *inst {
            (d, true, None)
        } else {
            return;
        };
        if is_once(&self.known, d) {
            let known = &mut self.known[d.0 as usize];
            (known.is_short, known.value) = (is_short, value);
        }
    }
}

fn compute(op: G2, a: u64, b: u64) -> u64 {
    match op {
        G2::add => a.wrapping_add(b),
        G2::sub => a.wrapping_sub(b),
        G2::and => a & b,
        G2::or => a | b,
        G2::xor => a ^ b,
    }
}

/// What an operation of a width leaves in the register.
fn cut(width: Width, number: u64) -> u64 {
    match width {
        Width::W32 => u64::from(number as u32),
        Width::W64 => number,
    }
}

/// A number as an operand of an instruction, which is extended with its sign.
fn as_immediate(width: Width, number: u64) -> Option<i32> {
    match width {
        Width::W32 => Some(number as u32 as i32),
        Width::W64 => i32::try_from(number as i64).ok(),
    }
}

/// Where an instruction finds memory.
fn memory(inst: &mut Inst) -> Option<&mut Mem> {
    match inst {
        Inst::V3 { b, .. }
        | Inst::V3I { b, .. }
        | Inst::Blend { b, .. }
        | Inst::Fma { c: b, .. }
        | Inst::V2 { a: b, .. }
        | Inst::V2I { a: b, .. }
        | Inst::Widen { a: b, .. } => match b {
            Src::Mem(mem) => Some(mem),
            Src::Reg(_) => None,
        },
        Inst::G2 { b, .. } | Inst::GMul { b, .. } | Inst::Set { b, .. } | Inst::Choose { b, .. } | Inst::JumpIf { b, .. } => {
            match b {
                GSrc::Mem(mem) => Some(mem),
                GSrc::Reg(_) | GSrc::Imm(_) => None,
            }
        }
        Inst::Load { from: mem, .. }
        | Inst::MaskLoad { from: mem, .. }
        | Inst::GLoad { from: mem, .. }
        | Inst::Lea { from: mem, .. }
        | Inst::Store { to: mem, .. }
        | Inst::MaskStore { to: mem, .. }
        | Inst::GStore { to: mem, .. }
        | Inst::Rmw { at: mem, .. }
        | Inst::Change { at: mem, .. }
        | Inst::CompareExchange { at: mem, .. }
        | Inst::Prefetch { from: mem }
        | Inst::JumpIfByte { at: mem, .. } => Some(mem),
        Inst::Shift { .. }
        | Inst::Narrow { .. }
        | Inst::ToHalf { .. }
        | Inst::VMov { .. }
        | Inst::Zero { .. }
        | Inst::Ones { .. }
        | Inst::Join { .. }
        | Inst::High { .. }
        | Inst::Gather { .. }
        | Inst::GatherWide { .. }
        | Inst::Splat { .. }
        | Inst::First { .. }
        | Inst::Signs { .. }
        | Inst::GShift { .. }
        | Inst::GShiftBy { .. }
        | Inst::GMov { .. }
        | Inst::GImm { .. }
        | Inst::LowestBit { .. }
        | Inst::ClearLowest { .. }
        | Inst::PopCount { .. }
        | Inst::Label(_)
        | Inst::Jump(_)
        | Inst::LoopBegin
        | Inst::LoopEnd
        | Inst::ColdBegin
        | Inst::ColdEnd
        | Inst::Call { .. }
        | Inst::Mark(_)
        | Inst::Return => None,
    }
}
