//! Instructions on general registers and single elements of memory.

use super::super::asm::{Addr, Op, Prefix, Rm, Size, Vex};
use super::super::lir::{Cond, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, Mem, Rmw, Width};
use super::super::reg::{G, Place};
use super::{Bits, Encoder, Map, NOT_EQUAL, RAX, RCX, RDX};

const MOV_LOAD: Op = Op::plain(0x8B);
const MOV_STORE: Op = Op::plain(0x89);
const MOV_STORE_BYTE: Op = Op::plain(0x88);
const LEA: Op = Op::plain(0x8D);
const PREFETCH: Op = Op::escaped(0x18);
/// What the instruction has for a register: to the first cache.
const PREFETCH_TO_FIRST: u8 = 1;
const CMP: Op = Op::plain(0x3B);
const CMP_MEMORY: Op = Op::plain(0x39);
const TEST: Op = Op::plain(0x85);
const IMUL: Op = Op::escaped(0xAF);
const IMUL_IMM: Op = Op::plain(0x69);
const MOVZX_BYTE: Op = Op::escaped(0xB6);
const MOVZX_WORD: Op = Op::escaped(0xB7);
const MOVSX_BYTE: Op = Op::escaped(0xBE);
const MOVSX_WORD: Op = Op::escaped(0xBF);
const SHIFT_IMM: Op = Op::plain(0xC1);
const TZCNT: Op = Op::escaped(0xBC).with(Prefix::PF3);
const POPCNT: Op = Op::escaped(0xB8).with(Prefix::PF3);
const XADD: Op = Op::escaped(0xC1);
const XCHG: Op = Op::plain(0x87);
const CMPXCHG: Op = Op::escaped(0xB1);
/// With numbers at the end, the number of the operation is where a register would be.
const ARITHMETIC_IMM8: Op = Op::plain(0x83);
const ARITHMETIC_IMM32: Op = Op::plain(0x81);
const ARITHMETIC_BYTE: Op = Op::plain(0x80);
const CMP_NUMBER: u8 = 7;

/// `shlx` and its like; the amount is where first operands are.
const fn shift_by(op: GShift, width: Width) -> Vex {
    let (prefix, code) = match op {
        GShift::Left => (Prefix::P66, 0xF7),
        GShift::Right => (Prefix::PF2, 0xF7),
        GShift::ArithmeticRight => (Prefix::PF3, 0xF7),
    };
    Vex { prefix, map: Map::M0F38, wide: matches!(width, Width::W64), code }
}
const BLSR: Vex = Vex { prefix: Prefix::None, map: Map::M0F38, wide: true, code: 0xF3 };
const BLSR_NUMBER: u8 = 1;

impl Width {
    fn size(self) -> Size {
        match self {
            Width::W32 => Size::B4,
            Width::W64 => Size::B8,
        }
    }
}

impl Cond {
    /// As opcodes spell it. The opposite is the number with the other lowest bit.
    fn number(self) -> u8 {
        match self {
            Cond::Below => 2,
            Cond::AboveEqual => 3,
            Cond::Equal => 4,
            Cond::NotEqual => NOT_EQUAL,
            Cond::BelowEqual => 6,
            Cond::Above => 7,
            Cond::Less => 12,
            Cond::GreaterEqual => 13,
            Cond::LessEqual => 14,
            Cond::Greater => 15,
        }
    }
}

impl G2 {
    /// Register and operand.
    fn op(self) -> Op {
        Op::plain(self.number() << 3 | 3)
    }

    /// Memory and register.
    fn to_memory(self) -> Op {
        Op::plain(self.number() << 3 | 1)
    }

    fn number(self) -> u8 {
        match self {
            G2::add => 0,
            G2::or => 1,
            G2::and => 4,
            G2::sub => 5,
            G2::xor => 6,
        }
    }
}

/// The second operand of an instruction on general registers.
#[derive(Clone, Copy)]
enum Operand {
    Rm(Rm),
    Imm(i32),
}

impl Operand {
    /// Whether it is read from this register.
    fn touches(self, reg: u8) -> bool {
        match self {
            Operand::Rm(Rm::Reg(own) | Rm::Mem(Addr::Plain(own, _))) => own == reg,
            Operand::Rm(Rm::Mem(Addr::Indexed(base, index, ..))) => base == reg || index == reg,
            Operand::Rm(Rm::Mem(Addr::Pool(_) | Addr::Gather(..))) | Operand::Imm(_) => false,
        }
    }
}

impl Encoder<'_> {
    /// All 64 bits.
    pub(super) fn mov(&mut self, to: u8, from: Rm) {
        self.asm.op(MOV_LOAD, Size::B8, to, from);
    }

    pub(super) fn mov_imm(&mut self, to: u8, imm: u64) {
        if let Ok(small) = u32::try_from(imm) {
            self.asm.op_short(0xB8, Size::B4, to);
            self.asm.raw(&small.to_le_bytes());
        } else if let Ok(small) = i32::try_from(imm as i64) {
            self.asm.op_imm32(Op::plain(0xC7), Size::B8, 0, Rm::Reg(to), small);
        } else {
            self.asm.op_short(0xB8, Size::B8, to);
            self.asm.raw(&imm.to_le_bytes());
        }
    }

    /// The address of a function to rax, whole whatever it is, so that it is known where it stands.
    pub(super) fn address(&mut self, address: u64) {
        self.asm.op_short(0xB8, Size::B8, RAX);
        self.asm.raw(&address.to_le_bytes());
        self.addresses.push(self.asm.len() - 8);
    }

    pub(super) fn lea(&mut self, to: u8, at: Addr) {
        self.asm.op(LEA, Size::B8, to, Rm::Mem(at));
    }

    /// The register that has a value; one from the frame is brought to `scratch`.
    pub(super) fn read_g(&mut self, reg: G, scratch: u8) -> u8 {
        match self.rm(reg) {
            Rm::Reg(reg) => reg,
            at @ Rm::Mem(_) => {
                self.mov(scratch, at);
                scratch
            }
        }
    }

    /// Where a value is.
    fn rm(&self, reg: G) -> Rm {
        match self.allocation.g(reg) {
            Place::Reg(reg) => Rm::Reg(reg),
            Place::Slot(slot) => Rm::Mem(self.general_slot(slot)),
            Place::Nowhere => unreachable!("a register that is read has a place"),
        }
    }

    /// The register that a result is computed in, rax if it lives in the frame; [`Self::done_g`] brings it there.
    pub(super) fn write_g(&self, reg: G) -> u8 {
        match self.allocation.g(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(_) => RAX,
            Place::Nowhere => unreachable!("a register that is written has a place"),
        }
    }

    /// Brings a result that was computed in `at` to its place.
    pub(super) fn done_g(&mut self, d: G, at: u8) {
        match self.rm(d) {
            Rm::Reg(reg) if reg == at => {}
            Rm::Reg(reg) => self.mov(reg, Rm::Reg(at)),
            slot @ Rm::Mem(_) => self.asm.op(MOV_STORE, Size::B8, at, slot),
        }
    }

    /// An address that needs no more than rcx beside registers that are given out, so that rax and rdx are free.
    fn narrow_addr(&mut self, mem: Mem) -> Addr {
        let at = self.addr(mem);
        match at {
            Addr::Indexed(..) => {
                self.lea(RCX, at);
                Addr::Plain(RCX, 0)
            }
            Addr::Plain(..) | Addr::Pool(_) | Addr::Gather(..) => at,
        }
    }

    /// May use rcx and rdx.
    fn gsrc(&mut self, src: GSrc) -> Operand {
        match src {
            GSrc::Reg(reg) => Operand::Rm(self.rm(reg)),
            GSrc::Imm(imm) => Operand::Imm(imm),
            GSrc::Mem(mem) => Operand::Rm(Rm::Mem(self.addr(mem))),
        }
    }

    pub(super) fn general(&mut self, inst: &Inst, flags: Option<(G, Width)>) {
        match *inst {
            Inst::G2 { op, width, d, a, b } => {
                let (b, to) = (self.gsrc(b), self.write_g(d));
                let a = self.read_first(a, to, b);
                // An address can be a sum, and its registers stay.
                let sum = match b {
                    Operand::Imm(imm) => Some(Addr::Plain(a, imm)),
                    Operand::Rm(Rm::Reg(b)) => Some(Addr::Indexed(a, b, 1, 0)),
                    Operand::Rm(Rm::Mem(_)) => None,
                };
                if let Some(sum) = sum.filter(|_| op == G2::add && to != a) {
                    self.asm.op(LEA, width.size(), to, Rm::Mem(sum));
                    return self.done_g(d, to);
                }
                let to = self.begin(to, a, b);
                match b {
                    Operand::Rm(b) => self.asm.op(op.op(), width.size(), to, b),
                    Operand::Imm(imm) => self.arithmetic_imm(op.number(), width.size(), Rm::Reg(to), imm),
                }
                self.done_g(d, to);
                self.flags = Some((d, width));
            }
            Inst::GMul { width, d, a, b } => {
                let (b, to) = (self.gsrc(b), self.write_g(d));
                let a = self.read_first(a, to, b);
                match b {
                    Operand::Imm(imm) => {
                        self.asm.op_imm32(IMUL_IMM, width.size(), to, Rm::Reg(a), imm);
                        self.done_g(d, to);
                    }
                    Operand::Rm(rm) => {
                        let to = self.begin(to, a, b);
                        self.asm.op(IMUL, width.size(), to, rm);
                        self.done_g(d, to);
                    }
                }
            }
            Inst::GShift { op, width, d, a, imm } => {
                let (a, to) = (self.read_g(a, RAX), self.write_g(d));
                // A shift by nothing leaves the upper half of a register alone, so that the move clears it.
                if to != a || width == Width::W32 && imm & 31 == 0 {
                    self.asm.op(MOV_LOAD, width.size(), to, Rm::Reg(a));
                }
                let number = match op {
                    GShift::Left => 4,
                    GShift::Right => 5,
                    GShift::ArithmeticRight => 7,
                };
                self.asm.op_imm8(SHIFT_IMM, width.size(), number, Rm::Reg(to), imm);
                self.done_g(d, to);
            }
            Inst::GShiftBy { op, width, d, a, by } => {
                let (a, by, to) = (self.rm(a), self.read_g(by, RCX), self.write_g(d));
                self.asm.vex(shift_by(op, width), Bits::B128, to, by, a);
                self.done_g(d, to);
            }
            Inst::GMov { width, d, a } => match (width, self.rm(d), self.rm(a)) {
                (Width::W64, d, a) if d == a => {}
                (_, Rm::Reg(to), a) => self.asm.op(MOV_LOAD, width.size(), to, a),
                (Width::W64, to @ Rm::Mem(_), Rm::Reg(a)) => self.asm.op(MOV_STORE, Size::B8, a, to),
                (_, Rm::Mem(_), a) => {
                    self.asm.op(MOV_LOAD, width.size(), RAX, a);
                    self.done_g(d, RAX);
                }
            },
            Inst::GImm { d, imm } => {
                let to = self.write_g(d);
                match imm {
                    0 => self.asm.op(G2::xor.op(), Size::B4, to, Rm::Reg(to)),
                    imm => self.mov_imm(to, imm),
                }
                self.done_g(d, to);
            }
            Inst::GLoad { kind, d, from } => {
                let (to, at) = (self.write_g(d), Rm::Mem(self.addr(from)));
                let (op, size) = match kind {
                    GLoadKind::U8 => (MOVZX_BYTE, Size::B4),
                    GLoadKind::I8 => (MOVSX_BYTE, Size::B4),
                    GLoadKind::U16 => (MOVZX_WORD, Size::B4),
                    GLoadKind::I16 => (MOVSX_WORD, Size::B4),
                    GLoadKind::W32 => (MOV_LOAD, Size::B4),
                    GLoadKind::W64 => (MOV_LOAD, Size::B8),
                };
                self.asm.op(op, size, to, at);
                self.done_g(d, to);
            }
            Inst::GStore { kind, to, a } => {
                let (a, at) = (self.read_g(a, RAX), Rm::Mem(self.addr(to)));
                let (op, size) = match kind {
                    GStoreKind::B1 => (MOV_STORE_BYTE, Size::B1),
                    GStoreKind::B2 => (MOV_STORE.with(Prefix::P66), Size::B2),
                    GStoreKind::B4 => (MOV_STORE, Size::B4),
                    GStoreKind::B8 => (MOV_STORE, Size::B8),
                };
                self.asm.op(op, size, a, at);
            }
            Inst::Lea { d, from } => {
                let (to, at) = (self.write_g(d), self.addr(from));
                self.lea(to, at);
                self.done_g(d, to);
            }
            Inst::Prefetch { from } => {
                let at = Rm::Mem(self.addr(from));
                self.asm.op(PREFETCH, Size::B4, PREFETCH_TO_FIRST, at);
            }
            Inst::Set { cond, width, d, a, b } => {
                self.compare(cond, width, a, b, flags);
                let to = self.write_g(d);
                self.asm.op(Op::escaped(0x90 | cond.number()), Size::B1, 0, Rm::Reg(to));
                self.asm.op(MOVZX_BYTE, Size::B1, to, Rm::Reg(to));
                self.done_g(d, to);
            }
            Inst::Choose { cond, width, a, b, d, x, y } => {
                self.compare(cond, width, a, b, flags);
                // Moves leave the flags as they are.
                let (x, y, to) = (self.rm(x), self.rm(y), self.write_g(d));
                let choose = |condition| Op::escaped(0x40 | condition);
                if x == Rm::Reg(to) {
                    self.asm.op(choose(cond.number() ^ 1), Size::B8, to, y);
                } else {
                    if y != Rm::Reg(to) {
                        self.mov(to, y);
                    }
                    self.asm.op(choose(cond.number()), Size::B8, to, x);
                }
                self.done_g(d, to);
            }
            Inst::LowestBit { d, a } => {
                let (a, to) = (self.rm(a), self.write_g(d));
                self.asm.op(TZCNT, Size::B8, to, a);
                self.done_g(d, to);
            }
            Inst::ClearLowest { d, a } => {
                let (a, to) = (self.rm(a), self.write_g(d));
                self.asm.vex(BLSR, Bits::B128, BLSR_NUMBER, to, a);
                self.done_g(d, to);
            }
            Inst::PopCount { width, d, a } => {
                let (a, to) = (self.rm(a), self.write_g(d));
                self.asm.op(POPCNT, width.size(), to, a);
                self.done_g(d, to);
            }
            Inst::Rmw { op, locked, d, at, a } => {
                let at = Rm::Mem(self.narrow_addr(at));
                match locked {
                    true => self.rmw_locked(op, at, a),
                    false => self.rmw(op, at, a),
                }
                self.done_g(d, RAX);
            }
            Inst::Change { op, locked, at, a } => {
                let at = Rm::Mem(self.addr(at));
                let a = match a {
                    GSrc::Imm(imm) => Err(imm),
                    // Addresses leave rax alone.
                    GSrc::Reg(a) => Ok(self.read_g(a, RAX)),
                    GSrc::Mem(_) => unreachable!("memory is not changed by memory"),
                };
                if locked {
                    self.asm.lock();
                }
                match a {
                    Ok(a) => self.asm.op(op.to_memory(), Size::B4, a, at),
                    Err(imm) => self.arithmetic_imm(op.number(), Size::B4, at, imm),
                }
            }
            Inst::CompareExchange { locked, d, at, expected, new } => {
                let at = Rm::Mem(self.narrow_addr(at));
                let (expected, new) = (self.rm(expected), self.read_g(new, RDX));
                self.asm.op(MOV_LOAD, Size::B4, RAX, expected);
                self.compare_exchange(locked, at, new);
                self.done_g(d, RAX);
            }
            Inst::JumpIf { cond, width, a, b, to } => {
                self.compare(cond, width, a, b, flags);
                let to = self.label(to);
                self.asm.jump_if(cond.number(), to);
            }
            Inst::JumpIfByte { at, to } => {
                let at = self.addr(at);
                self.mov(RAX, Rm::Mem(at));
                self.asm.op_imm8(ARITHMETIC_BYTE, Size::B1, CMP_NUMBER, Rm::Mem(Addr::Plain(RAX, 0)), 0);
                let to = self.label(to);
                self.asm.jump_if(NOT_EQUAL, to);
            }
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
            | Inst::Store { .. }
            | Inst::MaskStore { .. }
            | Inst::MaskLoad { .. }
            | Inst::Gather { .. }
            | Inst::GatherWide { .. }
            | Inst::Splat { .. }
            | Inst::First { .. }
            | Inst::Signs { .. }
            | Inst::Label(_)
            | Inst::Jump(_)
            | Inst::LoopBegin
            | Inst::LoopEnd
            | Inst::ColdBegin
            | Inst::ColdEnd
            | Inst::Call { .. }
            | Inst::Mark(_)
            | Inst::Return => unreachable!("{inst:?} is encoded elsewhere"),
        }
    }

    /// The register that has the first operand; one from the frame is brought to where the result is computed, if it may.
    fn read_first(&mut self, a: G, to: u8, b: Operand) -> u8 {
        self.read_g(a, if b.touches(to) { RAX } else { to })
    }

    /// Puts the first operand where the result is computed, which is rax if the second would be lost.
    fn begin(&mut self, to: u8, a: u8, b: Operand) -> u8 {
        let to = if to != a && b.touches(to) { RAX } else { to };
        if to != a {
            self.mov(to, Rm::Reg(a));
        }
        to
    }

    fn arithmetic_imm(&mut self, number: u8, size: Size, to: Rm, imm: i32) {
        match i8::try_from(imm) {
            Ok(imm) => self.asm.op_imm8(ARITHMETIC_IMM8, size, number, to, imm as u8),
            Err(_) => self.asm.op_imm32(ARITHMETIC_IMM32, size, number, to, imm),
        }
    }

    /// Sets the flags for a condition, unless they have it from the instruction before. The upper half of a result of 32 bits is zero.
    fn compare(&mut self, cond: Cond, width: Width, a: G, b: GSrc, flags: Option<(G, Width)>) {
        let known = flags == Some((a, width)) || flags == Some((a, Width::W32));
        if known && b == GSrc::Imm(0) && matches!(cond, Cond::Equal | Cond::NotEqual) {
            return;
        }
        let (a, b) = (self.rm(a), self.gsrc(b));
        match (a, b) {
            (Rm::Reg(reg), Operand::Imm(0)) => self.asm.op(TEST, width.size(), reg, a),
            (_, Operand::Imm(imm)) => self.arithmetic_imm(CMP_NUMBER, width.size(), a, imm),
            (Rm::Reg(reg), Operand::Rm(b)) => self.asm.op(CMP, width.size(), reg, b),
            (Rm::Mem(_), Operand::Rm(Rm::Reg(b))) => self.asm.op(CMP_MEMORY, width.size(), b, a),
            (Rm::Mem(_), Operand::Rm(b @ Rm::Mem(_))) => {
                self.mov(RAX, a);
                self.asm.op(CMP, width.size(), RAX, b);
            }
        }
    }

    fn compare_exchange(&mut self, locked: bool, at: Rm, new: u8) {
        if locked {
            self.asm.lock();
        }
        self.asm.op(CMPXCHG, Size::B4, new, at);
    }

    /// What no other thread can see half done; the old value is in rax. Only rdx is changed beside.
    fn rmw_locked(&mut self, op: Rmw, at: Rm, a: G) {
        let a = self.rm(a);
        match op {
            Rmw::Add => {
                self.asm.op(MOV_LOAD, Size::B4, RAX, a);
                self.asm.lock();
                self.asm.op(XADD, Size::B4, RAX, at);
            }
            Rmw::Exchange => {
                // Locked even without saying so.
                self.asm.op(MOV_LOAD, Size::B4, RAX, a);
                self.asm.op(XCHG, Size::B4, RAX, at);
            }
            Rmw::And | Rmw::Or | Rmw::Xor | Rmw::MinU | Rmw::MaxU | Rmw::MinS | Rmw::MaxS => {
                let again = self.asm.target();
                self.asm.op(MOV_LOAD, Size::B4, RAX, at);
                self.asm.place(again);
                self.combine(op, a);
                self.compare_exchange(true, at, RDX);
                self.asm.jump_if(NOT_EQUAL, again);
            }
        }
    }

    /// What no other thread looks at; the old value is in rax. Only rdx is changed beside.
    fn rmw(&mut self, op: Rmw, at: Rm, a: G) {
        let a = self.rm(a);
        self.asm.op(MOV_LOAD, Size::B4, RAX, at);
        self.combine(op, a);
        self.asm.op(MOV_STORE, Size::B4, RDX, at);
    }

    /// What rax becomes, in rdx.
    fn combine(&mut self, op: Rmw, a: Rm) {
        let from_a = match op {
            Rmw::Exchange => Err(None),
            Rmw::MinU => Err(Some(Cond::Below)),
            Rmw::MaxU => Err(Some(Cond::Above)),
            Rmw::MinS => Err(Some(Cond::Less)),
            Rmw::MaxS => Err(Some(Cond::Greater)),
            Rmw::Add => Ok(G2::add),
            Rmw::And => Ok(G2::and),
            Rmw::Or => Ok(G2::or),
            Rmw::Xor => Ok(G2::xor),
        };
        match from_a {
            Ok(op) => {
                self.asm.op(MOV_LOAD, Size::B4, RDX, Rm::Reg(RAX));
                self.asm.op(op.op(), Size::B4, RDX, a);
            }
            Err(kept_if) => {
                self.asm.op(MOV_LOAD, Size::B4, RDX, a);
                if let Some(cond) = kept_if {
                    self.asm.op(CMP, Size::B4, RAX, Rm::Reg(RDX));
                    self.asm.op(Op::escaped(0x40 | cond.number()), Size::B4, RDX, Rm::Reg(RAX));
                }
            }
        }
    }
}
