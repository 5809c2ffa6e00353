//! Bytes of instructions, with registers in their places.
//!
//! **Frame**, from rsp up: the scratch area, slots of vectors, slots of general registers, what calls save, and where rsp was. It begins at a
//! multiple of 32. **Registers**: r15 has the context; rax, rcx and rdx belong to single instructions; ymm14 and ymm15 too where
//! something lives in the frame. Code is called with the conventions of System V everywhere, which Rust can do on Windows too.

use super::alloc::{Allocation, Saved};
use super::lir::{
    Base, Cond, Fma, G2, GLoadKind, GShift, GSrc, GStoreKind, Inst, Label, LoadKind, Mem, Narrow, Rmw, Shift, Src, StoreKind, V2,
    V2I, V3, V3I, Widen, Width, with_fma, with_g2, with_narrow, with_shift, with_v2, with_v2i, with_v3, with_v3i, with_widen,
};
use super::reg::{G, Place, V};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, VecAssembler, dynasm, x64::X64Relocation};

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RSP: u8 = 4;
const R15: u8 = 15;
const Y14: u8 = 14;
const Y15: u8 = 15;

/// Machine code, and what belongs to it.
pub(crate) struct Encoded {
    /// Code, and constants behind it. It has to be at a multiple of 32.
    pub bytes: Vec<u8>,
    /// Where the constants begin.
    pub code_len: usize,
    /// By mark: where its code begins.
    pub marks: Vec<(usize, u32)>,
}

/// Encodes code.
pub(crate) fn encode(code: &[Inst], labels: u32, scratch: usize, pool: &[u8], allocation: &Allocation) -> Encoded {
    let vector_slots = scratch.next_multiple_of(32);
    let general_slots = vector_slots + 32 * allocation.vector_slots as usize;
    let saves = (general_slots + 8 * allocation.general_slots as usize).next_multiple_of(32);
    let saves_len = if allocation.saved.is_empty() { 0 } else { 16 * 32 + 8 * 8 };
    let size = (saves + saves_len + 8).next_multiple_of(32);
    let mut ops = VecAssembler::new(0);
    let labels = (0..labels).map(|_| ops.new_dynamic_label()).collect();
    let mut encoder = Encoder {
        ops,
        labels,
        allocation,
        vector_slots,
        general_slots,
        saves,
        size,
        fixes: Vec::new(),
        calls: 0,
        marks: Vec::new(),
    };
    encoder.enter();
    code.iter().for_each(|inst| encoder.inst(inst));
    let Encoder { ops, fixes, marks, .. } = encoder;
    let mut bytes = ops.finalize().unwrap_or_default();
    let code_len = bytes.len();
    bytes.resize(code_len.next_multiple_of(32), 0xCC);
    let pool_start = bytes.len();
    bytes.extend_from_slice(pool);
    for Fix { at, end, disp } in fixes {
        let distance = (pool_start as i64 + i64::from(disp) - end as i64) as i32;
        bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    Encoded { bytes, code_len, marks }
}

/// An address in the pool that is not known yet.
struct Fix {
    at: usize,
    /// Where the instruction ends.
    end: usize,
    disp: i32,
}

/// An address with registers of the machine.
#[derive(Clone, Copy)]
enum Addr {
    Plain(u8, i32),
    Indexed(u8, u8, u8, i32),
    Pool(i32),
}

struct Encoder<'a> {
    ops: VecAssembler<X64Relocation>,
    labels: Vec<DynamicLabel>,
    allocation: &'a Allocation,
    vector_slots: usize,
    general_slots: usize,
    saves: usize,
    size: usize,
    fixes: Vec<Fix>,
    calls: usize,
    marks: Vec<(usize, u32)>,
}

macro_rules! asm {
    ($s:ident; $($code:tt)*) => { dynasm!($s.ops ; .arch x64 ; $($code)*) };
}

/// An instruction with a memory operand, written `@`, that has no index. `imm` is how many bytes follow the address.
macro_rules! plain {
    ($s:ident, $at:expr, $imm:literal; [$($before:tt)*] $hint:ident @ [$($after:tt)*]) => {
        match $at {
            Addr::Plain(base, disp) => asm!($s; $($before)* $hint [Rq(base) + disp] $($after)*),
            Addr::Pool(disp) => {
                asm!($s; $($before)* $hint [rip + 0] $($after)*);
                $s.fix(disp, $imm);
            }
            Addr::Indexed(..) => unreachable!("{}", "operands in memory have no index"),
        }
    };
}

/// An instruction with a memory operand, written `@`, that may have an index.
macro_rules! indexed {
    ($s:ident, $at:expr; [$($before:tt)*] $($hint:ident)? @ [$($after:tt)*]) => {
        match $at {
            Addr::Plain(base, disp) => asm!($s; $($before)* $($hint)? [Rq(base) + disp] $($after)*),
            Addr::Indexed(base, index, 1, disp) => asm!($s; $($before)* $($hint)? [Rq(base) + Rq(index) + disp] $($after)*),
            Addr::Indexed(base, index, 2, disp) => asm!($s; $($before)* $($hint)? [Rq(base) + 2 * Rq(index) + disp] $($after)*),
            Addr::Indexed(base, index, 4, disp) => asm!($s; $($before)* $($hint)? [Rq(base) + 4 * Rq(index) + disp] $($after)*),
            Addr::Indexed(base, index, _, disp) => asm!($s; $($before)* $($hint)? [Rq(base) + 8 * Rq(index) + disp] $($after)*),
            Addr::Pool(disp) => {
                asm!($s; $($before)* $($hint)? [rip + 0] $($after)*);
                $s.fix(disp, 0);
            }
        }
    };
}

/// A jump to a label for each condition.
macro_rules! on_cond {
    ($s:ident, $cond:expr; $equal:ident $not_equal:ident $below:ident $above_equal:ident $above:ident $below_equal:ident $less:ident $greater_equal:ident $greater:ident $less_equal:ident; $($rest:tt)*) => {
        match $cond {
            Cond::Equal => asm!($s; $equal $($rest)*),
            Cond::NotEqual => asm!($s; $not_equal $($rest)*),
            Cond::Below => asm!($s; $below $($rest)*),
            Cond::AboveEqual => asm!($s; $above_equal $($rest)*),
            Cond::Above => asm!($s; $above $($rest)*),
            Cond::BelowEqual => asm!($s; $below_equal $($rest)*),
            Cond::Less => asm!($s; $less $($rest)*),
            Cond::GreaterEqual => asm!($s; $greater_equal $($rest)*),
            Cond::Greater => asm!($s; $greater $($rest)*),
            Cond::LessEqual => asm!($s; $less_equal $($rest)*),
        }
    };
}

impl Encoder<'_> {
    fn fix(&mut self, disp: i32, imm: usize) {
        let end = self.ops.offset().0;
        self.fixes.push(Fix { at: end - 4 - imm, end, disp });
    }

    fn enter(&mut self) {
        let size = self.size as i32;
        asm!(self; push rbx; push rbp; push r12; push r13; push r14; push r15);
        asm!(self; mov r15, rdi; mov rax, rsp; and rsp, -32; sub rsp, size; mov [rsp + size - 8], rax);
    }

    fn leave(&mut self) {
        let size = self.size as i32;
        asm!(self; vzeroupper; mov rsp, [rsp + size - 8]);
        asm!(self; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx; ret);
    }

    fn label(&self, label: Label) -> DynamicLabel {
        self.labels[label.0 as usize]
    }

    fn vector_slot(&self, slot: u32) -> i32 {
        (self.vector_slots + 32 * slot as usize) as i32
    }

    fn general_slot(&self, slot: u32) -> i32 {
        (self.general_slots + 8 * slot as usize) as i32
    }

    /// The register that has a vector; one from the frame is brought to `scratch`.
    fn read_v(&mut self, reg: V, scratch: u8) -> u8 {
        match self.allocation.v(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(slot) => {
                let at = self.vector_slot(slot);
                asm!(self; vmovdqa Ry(scratch), [rsp + at]);
                scratch
            }
            Place::Nowhere => scratch,
        }
    }

    /// The register that a vector is to be written to, until [`Self::done_v`].
    fn write_v(&self, reg: V) -> u8 {
        match self.allocation.v(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(_) | Place::Nowhere => Y14,
        }
    }

    fn done_v(&mut self, reg: V) {
        if let Place::Slot(slot) = self.allocation.v(reg) {
            let at = self.vector_slot(slot);
            asm!(self; vmovdqa [rsp + at], Ry(Y14));
        }
    }

    fn read_g(&mut self, reg: G, scratch: u8) -> u8 {
        match self.allocation.g(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(slot) => {
                let at = self.general_slot(slot);
                asm!(self; mov Rq(scratch), [rsp + at]);
                scratch
            }
            Place::Nowhere => scratch,
        }
    }

    /// Puts the value of rax into a register.
    fn take_rax(&mut self, reg: G) {
        match self.allocation.g(reg) {
            Place::Reg(reg) => asm!(self; mov Rq(reg), rax),
            Place::Slot(slot) => {
                let at = self.general_slot(slot);
                asm!(self; mov [rsp + at], rax);
            }
            Place::Nowhere => {}
        }
    }

    /// The register that a result is computed in, rax if it lives in the frame; [`Self::done_g`] brings it there.
    fn write_g(&self, reg: G) -> u8 {
        match self.allocation.g(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(_) | Place::Nowhere => RAX,
        }
    }

    fn done_g(&mut self, reg: G) {
        if let Place::Slot(slot) = self.allocation.g(reg) {
            let at = self.general_slot(slot);
            asm!(self; mov [rsp + at], rax);
        }
    }

    /// An address; registers from the frame come to rcx and rdx.
    fn addr(&mut self, mem: Mem) -> Addr {
        let base = match mem.base {
            Base::Reg(reg) => self.read_g(reg, RCX),
            Base::Context => R15,
            Base::Frame => RSP,
            Base::Pool => return Addr::Pool(mem.disp),
        };
        match mem.index {
            Some((index, scale)) => Addr::Indexed(base, self.read_g(index, RDX), scale, mem.disp),
            None => Addr::Plain(base, mem.disp),
        }
    }

    /// An operand in memory, which has no index: one with an index becomes an address in rcx.
    fn plain_addr(&mut self, mem: Mem) -> Addr {
        let at = self.addr(mem);
        if let Addr::Indexed(..) = at {
            indexed!(self, at; [lea rcx,] @ []);
            return Addr::Plain(RCX, 0);
        }
        at
    }

    /// A vector operand: a register, or an address.
    fn src(&mut self, src: Src) -> Result<u8, Addr> {
        match src {
            Src::Reg(reg) => match self.allocation.v(reg) {
                Place::Reg(reg) => Ok(reg),
                Place::Slot(slot) => Err(Addr::Plain(RSP, self.vector_slot(slot))),
                Place::Nowhere => Ok(Y15),
            },
            Src::Mem(mem) => Err(self.plain_addr(mem)),
        }
    }

    fn v3(&mut self, op: V3, d: u8, a: u8, b: Result<u8, Addr>) {
        macro_rules! arms {
            ($($name:ident)*) => { match (op, b) { $(
                (V3::$name, Ok(b)) => asm!(self; $name Ry(d), Ry(a), Ry(b)),
                (V3::$name, Err(at)) => plain!(self, at, 0; [$name Ry(d), Ry(a),] YWORD @ []),
            )* } };
        }
        with_v3!(arms!());
    }

    fn v3i(&mut self, op: V3I, d: u8, a: u8, b: Result<u8, Addr>, imm: u8) {
        let imm = imm as i8;
        macro_rules! arms {
            ($($name:ident)*) => { match (op, b) { $(
                (V3I::$name, Ok(b)) => asm!(self; $name Ry(d), Ry(a), Ry(b), imm),
                (V3I::$name, Err(at)) => plain!(self, at, 1; [$name Ry(d), Ry(a),] YWORD @ [, imm]),
            )* } };
        }
        with_v3i!(arms!());
    }

    fn v2(&mut self, op: V2, d: u8, a: Result<u8, Addr>) {
        macro_rules! arms {
            ($($name:ident)*) => { match (op, a) { $(
                (V2::$name, Ok(a)) => asm!(self; $name Ry(d), Ry(a)),
                (V2::$name, Err(at)) => plain!(self, at, 0; [$name Ry(d),] YWORD @ []),
            )* } };
        }
        with_v2!(arms!());
    }

    fn v2i(&mut self, op: V2I, d: u8, a: Result<u8, Addr>, imm: u8) {
        let imm = imm as i8;
        macro_rules! arms {
            ($($name:ident)*) => { match (op, a) { $(
                (V2I::$name, Ok(a)) => asm!(self; $name Ry(d), Ry(a), imm),
                (V2I::$name, Err(at)) => plain!(self, at, 1; [$name Ry(d),] YWORD @ [, imm]),
            )* } };
        }
        with_v2i!(arms!());
    }

    fn shift(&mut self, op: Shift, d: u8, a: u8, imm: u8) {
        let imm = imm as i8;
        macro_rules! arms {
            ($($name:ident)*) => { match op { $( Shift::$name => asm!(self; $name Ry(d), Ry(a), imm), )* } };
        }
        with_shift!(arms!());
    }

    fn widen(&mut self, op: Widen, d: u8, a: Result<u8, Addr>) {
        macro_rules! arms {
            ($($name:ident)*) => { match (op, a) { $(
                (Widen::$name, Ok(a)) => asm!(self; $name Ry(d), Rx(a)),
                (Widen::$name, Err(at)) => plain!(self, at, 0; [$name Ry(d),] OWORD @ []),
            )* } };
        }
        with_widen!(arms!());
    }

    fn narrow(&mut self, op: Narrow, d: u8, a: u8) {
        macro_rules! arms {
            ($($name:ident)*) => { match op { $( Narrow::$name => asm!(self; $name Rx(d), Ry(a)), )* } };
        }
        with_narrow!(arms!());
    }

    fn fma(&mut self, op: Fma, d: u8, a: u8, b: u8, c: Result<u8, Addr>) {
        macro_rules! arms {
            ($($name:ident)*) => { match op { $( Fma::$name => self.$name(d, a, b, c), )* } };
        }
        with_fma!(arms!());
    }

    /// One instruction.
    fn inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::V3 { op, d, a, b } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                let b = self.src(b);
                self.v3(op, to, a, b);
                self.done_v(d);
            }
            Inst::V3I { op, d, a, b, imm } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                let b = self.src(b);
                self.v3i(op, to, a, b, imm);
                self.done_v(d);
            }
            Inst::V2 { op, d, a } => {
                let (to, a) = (self.write_v(d), self.src(a));
                self.v2(op, to, a);
                self.done_v(d);
            }
            Inst::V2I { op, d, a, imm } => {
                let (to, a) = (self.write_v(d), self.src(a));
                self.v2i(op, to, a, imm);
                self.done_v(d);
            }
            Inst::Shift { op, d, a, imm } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                self.shift(op, to, a, imm);
                self.done_v(d);
            }
            Inst::Widen { op, d, a } => {
                let (to, a) = (self.write_v(d), self.src(a));
                self.widen(op, to, a);
                self.done_v(d);
            }
            Inst::Narrow { op, d, a } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                self.narrow(op, to, a);
                self.done_v(d);
            }
            Inst::ToHalf { d, a } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                asm!(self; vcvtps2ph Rx(to), Ry(a), 0);
                self.done_v(d);
            }
            Inst::Blend { d, a, b, mask } => {
                let (to, a, mask) = (self.write_v(d), self.read_v(a, Y14), self.read_v(mask, Y15));
                match self.src(b) {
                    Ok(b) => asm!(self; vblendvps Ry(to), Ry(a), Ry(b), Ry(mask)),
                    Err(at) => plain!(self, at, 1; [vblendvps Ry(to), Ry(a),] YWORD @ [, Ry(mask)]),
                }
                self.done_v(d);
            }
            Inst::Fma { op, d, a, b, c } => {
                let (to, a, b) = (self.write_v(d), self.read_v(a, Y14), self.read_v(b, Y15));
                let c = self.src(c);
                self.fma(op, to, a, b, c);
                self.done_v(d);
            }
            Inst::VMov { d, a } => self.move_v(d, a),
            Inst::Zero { d } => {
                let to = self.write_v(d);
                asm!(self; vpxor Rx(to), Rx(to), Rx(to));
                self.done_v(d);
            }
            Inst::Ones { d } => {
                let to = self.write_v(d);
                asm!(self; vpcmpeqd Ry(to), Ry(to), Ry(to));
                self.done_v(d);
            }
            Inst::Join { d, low, high } => {
                let (to, low) = (self.write_v(d), self.read_v(low, Y14));
                match self.src(high.into()) {
                    Ok(high) => asm!(self; vinserti128 Ry(to), Ry(low), Rx(high), 1),
                    Err(at) => plain!(self, at, 1; [vinserti128 Ry(to), Ry(low),] OWORD @ [, 1]),
                }
                self.done_v(d);
            }
            Inst::High { d, a } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                asm!(self; vextracti128 Rx(to), Ry(a), 1);
                self.done_v(d);
            }
            Inst::Load { kind, d, from } => {
                let (to, at) = (self.write_v(d), self.addr(from));
                match kind {
                    LoadKind::Full => indexed!(self, at; [vmovdqu Ry(to),] YWORD @ []),
                    LoadKind::Half => indexed!(self, at; [vmovdqu Rx(to),] OWORD @ []),
                    LoadKind::Quarter => indexed!(self, at; [vmovq Rx(to),] QWORD @ []),
                    LoadKind::Eighth => indexed!(self, at; [vmovd Rx(to),] DWORD @ []),
                    LoadKind::U8 => {
                        indexed!(self, at; [vmovq Rx(to),] QWORD @ []);
                        asm!(self; vpmovzxbd Ry(to), Rx(to));
                    }
                    LoadKind::I8 => {
                        indexed!(self, at; [vmovq Rx(to),] QWORD @ []);
                        asm!(self; vpmovsxbd Ry(to), Rx(to));
                    }
                    LoadKind::U16 => indexed!(self, at; [vpmovzxwd Ry(to),] OWORD @ []),
                    LoadKind::I16 => indexed!(self, at; [vpmovsxwd Ry(to),] OWORD @ []),
                    LoadKind::Splat32 => indexed!(self, at; [vpbroadcastd Ry(to),] DWORD @ []),
                    LoadKind::Splat64 => indexed!(self, at; [vpbroadcastq Ry(to),] QWORD @ []),
                }
                self.done_v(d);
            }
            Inst::Store { kind, to, v } => {
                let (v, at) = (self.read_v(v, Y14), self.addr(to));
                match kind {
                    StoreKind::Full => indexed!(self, at; [vmovdqu] YWORD @ [, Ry(v)]),
                    StoreKind::Half => indexed!(self, at; [vmovdqu] OWORD @ [, Rx(v)]),
                    StoreKind::Quarter => indexed!(self, at; [vmovq] QWORD @ [, Rx(v)]),
                    StoreKind::Eighth => indexed!(self, at; [vmovd] DWORD @ [, Rx(v)]),
                }
            }
            Inst::MaskStore { wide, to, mask, v } => {
                let (v, mask, at) = (self.read_v(v, Y14), self.read_v(mask, Y15), self.plain_addr(to));
                match wide {
                    false => plain!(self, at, 0; [vpmaskmovd] YWORD @ [, Ry(mask), Ry(v)]),
                    true => plain!(self, at, 0; [vpmaskmovq] YWORD @ [, Ry(mask), Ry(v)]),
                }
            }
            Inst::MaskLoad { wide, d, mask, from } => {
                let (to, mask, at) = (self.write_v(d), self.read_v(mask, Y15), self.plain_addr(from));
                match wide {
                    false => plain!(self, at, 0; [vpmaskmovd Ry(to), Ry(mask),] YWORD @ []),
                    true => plain!(self, at, 0; [vpmaskmovq Ry(to), Ry(mask),] YWORD @ []),
                }
                self.done_v(d);
            }
            Inst::Gather { d, base, index, mask } => self.gather(false, d, base, index, mask),
            Inst::GatherWide { d, base, index, mask } => self.gather(true, d, base, index, mask),
            Inst::Splat { width, d, a } => {
                let (to, a) = (self.write_v(d), self.read_g(a, RAX));
                match width {
                    Width::W32 => asm!(self; vmovd Rx(to), Rd(a); vpbroadcastd Ry(to), Rx(to)),
                    Width::W64 => asm!(self; vmovq Rx(to), Rq(a); vpbroadcastq Ry(to), Rx(to)),
                }
                self.done_v(d);
            }
            Inst::First { width, d, a } => {
                let (to, a) = (self.write_g(d), self.read_v(a, Y14));
                match width {
                    Width::W32 => asm!(self; vmovd Rd(to), Rx(a)),
                    Width::W64 => asm!(self; vmovq Rq(to), Rx(a)),
                }
                self.done_g(d);
            }
            Inst::Signs { d, a } => {
                let (to, a) = (self.write_g(d), self.read_v(a, Y14));
                // The assembler has no form of vmovmskps for 256 bits.
                let registers =
                    [0xC4, !(to >> 3) << 7 | 0x40 | (!(a >> 3) & 1) << 5 | 1, 0x7C, 0x50, 0xC0 | (to & 7) << 3 | a & 7];
                self.ops.extend(registers);
                self.done_g(d);
            }
            Inst::Label(label) => {
                let label = self.label(label);
                asm!(self; =>label);
            }
            Inst::Jump(label) => {
                let label = self.label(label);
                asm!(self; jmp =>label);
            }
            Inst::JumpIf { cond, width, a, b, to } => {
                self.compare(width, a, b);
                let to = self.label(to);
                on_cond!(self, cond; je jne jb jae ja jbe jl jge jg jle; =>to);
            }
            Inst::JumpIfByte { at, to } => {
                let at = self.addr(at);
                indexed!(self, at; [mov rax,] QWORD @ []);
                let to = self.label(to);
                asm!(self; cmp BYTE [rax], 0; jne =>to);
            }
            Inst::Call { helper, argument } => {
                let saved = self.allocation.saved[self.calls];
                self.calls += 1;
                self.save(saved);
                let address = helper as usize as i64;
                asm!(self; vzeroupper; mov rdi, rsp; mov rsi, r15; mov rdx, QWORD argument as i64; mov rax, QWORD address; call rax);
                self.restore(saved);
            }
            Inst::Mark(stmt) => self.marks.push((self.ops.offset().0, stmt)),
            Inst::LoopBegin | Inst::LoopEnd => {}
            Inst::Return => self.leave(),
            ref general => self.general(general),
        }
    }

    fn move_v(&mut self, d: V, a: V) {
        match (self.allocation.v(d), self.allocation.v(a)) {
            (Place::Reg(d), Place::Reg(a)) if d == a => {}
            (Place::Reg(d), Place::Reg(a)) => asm!(self; vmovdqa Ry(d), Ry(a)),
            (Place::Slot(_), _) => {
                let a = self.read_v(a, Y14);
                if let Place::Slot(slot) = self.allocation.v(d) {
                    let at = self.vector_slot(slot);
                    asm!(self; vmovdqa [rsp + at], Ry(a));
                }
            }
            (Place::Reg(d), Place::Slot(slot)) => {
                let at = self.vector_slot(slot);
                asm!(self; vmovdqa Ry(d), [rsp + at]);
            }
            (Place::Nowhere, _) | (_, Place::Nowhere) => {}
        }
    }

    fn gather(&mut self, wide: bool, d: V, base: G, index: V, mask: V) {
        let base = self.read_g(base, RCX);
        // The three vectors must be different registers. One that lives in the frame borrows a register that is none of the others.
        let places = [self.allocation.v(d), self.allocation.v(index), self.allocation.v(mask)];
        let mut taken: Vec<u8> = Vec::new();
        for place in places {
            if let Place::Reg(reg) = place {
                taken.push(reg);
            }
        }
        let mut borrowed: Vec<u8> = Vec::new();
        let [to, index_in, mask_in] = places.map(|place| match place {
            Place::Reg(reg) => reg,
            Place::Slot(_) | Place::Nowhere => {
                // The last two belong to the encoder where anything is in the frame; a third is put back.
                let reg = [Y14, Y15].into_iter().chain(0..14).find(|reg| !taken.contains(reg)).unwrap_or(0);
                taken.push(reg);
                borrowed.push(reg);
                reg
            }
        });
        let third = borrowed.iter().copied().find(|reg| *reg < Y14);
        if let Some(reg) = third {
            asm!(self; vmovdqu [rsp - 32], Ry(reg));
        }
        for (place, reg) in [(places[1], index_in), (places[2], mask_in)] {
            if let Place::Slot(slot) = place {
                let at = self.vector_slot(slot);
                asm!(self; vmovdqa Ry(reg), [rsp + at]);
            }
        }
        asm!(self; vpxor Rx(to), Rx(to), Rx(to));
        match wide {
            false => asm!(self; vpgatherdd Ry(to), [Rq(base) + 4 * Ry(index_in)], Ry(mask_in)),
            true => asm!(self; vpgatherdq Ry(to), [Rq(base) + 8 * Rx(index_in)], Ry(mask_in)),
        }
        if let Place::Slot(slot) = places[0] {
            let at = self.vector_slot(slot);
            asm!(self; vmovdqa [rsp + at], Ry(to));
        }
        if let Some(reg) = third {
            asm!(self; vmovdqu Ry(reg), [rsp - 32]);
        }
    }

    fn save(&mut self, saved: Saved) {
        let mut at = self.saves as i32;
        for reg in 0..16u8 {
            if saved.vectors >> reg & 1 == 1 {
                asm!(self; vmovdqa [rsp + at], Ry(reg));
                at += 32;
            }
        }
        for reg in 0..16u8 {
            if saved.general >> reg & 1 == 1 {
                asm!(self; mov [rsp + at], Rq(reg));
                at += 8;
            }
        }
    }

    fn restore(&mut self, saved: Saved) {
        let mut at = self.saves as i32;
        for reg in 0..16u8 {
            if saved.vectors >> reg & 1 == 1 {
                asm!(self; vmovdqa Ry(reg), [rsp + at]);
                at += 32;
            }
        }
        for reg in 0..16u8 {
            if saved.general >> reg & 1 == 1 {
                asm!(self; mov Rq(reg), [rsp + at]);
                at += 8;
            }
        }
    }
}

/// The forms of fused multiply-add: whichever operand is where the result goes.
macro_rules! fma_forms {
    ($name:ident: $first:ident $third:ident) => {
        impl Encoder<'_> {
            fn $name(&mut self, d: u8, a: u8, b: u8, c: Result<u8, Addr>) {
                match c {
                    Ok(c) if d == c && d != a && d != b => asm!(self; $third Ry(d), Ry(a), Ry(b)),
                    Ok(c) if d == a && d != c => asm!(self; $first Ry(d), Ry(b), Ry(c)),
                    Ok(c) if d == b && d != c => asm!(self; $first Ry(d), Ry(a), Ry(c)),
                    // d is nothing that is still needed, or all of it.
                    Ok(c) if d != a && d != b => asm!(self; vmovdqa Ry(d), Ry(a); $first Ry(d), Ry(b), Ry(c)),
                    Ok(c) => {
                        // d is c and a factor.
                        let other = if d == a { b } else { a };
                        asm!(self; $first Ry(d), Ry(other), Ry(c));
                    }
                    Err(at) if d == a => plain!(self, at, 0; [$first Ry(d), Ry(b),] YWORD @ []),
                    Err(at) if d == b => plain!(self, at, 0; [$first Ry(d), Ry(a),] YWORD @ []),
                    Err(at) => {
                        asm!(self; vmovdqa Ry(d), Ry(a));
                        plain!(self, at, 0; [$first Ry(d), Ry(b),] YWORD @ []);
                    }
                }
            }
        }
    };
}
fma_forms! { ps: vfmadd213ps vfmadd231ps }
fma_forms! { pd: vfmadd213pd vfmadd231pd }

/// General registers.
impl Encoder<'_> {
    fn general(&mut self, inst: &Inst) {
        match *inst {
            Inst::G2 { op, width, d, a, b } => {
                // Computed in rax where the result must not touch the second operand before it is read.
                let a = self.read_g(a, RDX);
                let b = self.gsrc(b);
                let to = self.write_g(d);
                let to = if b.touches(to) && to != a { RAX } else { to };
                if to != a {
                    asm!(self; mov Rq(to), Rq(a));
                }
                self.g2(op, width, to, b);
                self.finish_g(d, to);
            }
            Inst::GMul { width, d, a, b } => {
                let a = self.read_g(a, RDX);
                let b = self.gsrc(b);
                match (width, b) {
                    (Width::W32, Operand::Reg(b)) => asm!(self; mov eax, Rd(a); imul eax, Rd(b)),
                    (Width::W64, Operand::Reg(b)) => asm!(self; mov rax, Rq(a); imul rax, Rq(b)),
                    (Width::W32, Operand::Imm(imm)) => asm!(self; imul eax, Rd(a), imm),
                    (Width::W64, Operand::Imm(imm)) => asm!(self; imul rax, Rq(a), imm),
                    (Width::W32, Operand::At(at)) => {
                        asm!(self; mov eax, Rd(a));
                        plain!(self, at, 0; [imul eax,] DWORD @ []);
                    }
                    (Width::W64, Operand::At(at)) => {
                        asm!(self; mov rax, Rq(a));
                        plain!(self, at, 0; [imul rax,] QWORD @ []);
                    }
                }
                self.take_rax(d);
            }
            Inst::GShift { op, width, d, a, imm } => {
                let a = self.read_g(a, RAX);
                let to = self.write_g(d);
                let imm = imm as i8;
                match width {
                    Width::W32 => {
                        asm!(self; mov Rd(to), Rd(a));
                        match op {
                            GShift::Left => asm!(self; shl Rd(to), imm),
                            GShift::Right => asm!(self; shr Rd(to), imm),
                            GShift::ArithmeticRight => asm!(self; sar Rd(to), imm),
                        }
                    }
                    Width::W64 => {
                        asm!(self; mov Rq(to), Rq(a));
                        match op {
                            GShift::Left => asm!(self; shl Rq(to), imm),
                            GShift::Right => asm!(self; shr Rq(to), imm),
                            GShift::ArithmeticRight => asm!(self; sar Rq(to), imm),
                        }
                    }
                }
                self.done_g(d);
            }
            Inst::GShiftBy { op, width, d, a, by } => {
                let (a, by, to) = (self.read_g(a, RAX), self.read_g(by, RCX), self.write_g(d));
                match (width, op) {
                    (Width::W32, GShift::Left) => asm!(self; shlx Rd(to), Rd(a), Rd(by)),
                    (Width::W32, GShift::Right) => asm!(self; shrx Rd(to), Rd(a), Rd(by)),
                    (Width::W32, GShift::ArithmeticRight) => asm!(self; sarx Rd(to), Rd(a), Rd(by)),
                    (Width::W64, GShift::Left) => asm!(self; shlx Rq(to), Rq(a), Rq(by)),
                    (Width::W64, GShift::Right) => asm!(self; shrx Rq(to), Rq(a), Rq(by)),
                    (Width::W64, GShift::ArithmeticRight) => asm!(self; sarx Rq(to), Rq(a), Rq(by)),
                }
                self.done_g(d);
            }
            Inst::GMov { width, d, a } => {
                let (a, to) = (self.read_g(a, RAX), self.write_g(d));
                match width {
                    Width::W32 => asm!(self; mov Rd(to), Rd(a)),
                    Width::W64 if a != to => asm!(self; mov Rq(to), Rq(a)),
                    Width::W64 => {}
                }
                self.done_g(d);
            }
            Inst::GImm { d, imm } => {
                let to = self.write_g(d);
                match (imm, u32::try_from(imm)) {
                    (0, _) => asm!(self; xor Rd(to), Rd(to)),
                    (_, Ok(small)) => asm!(self; mov Rd(to), small as i32),
                    (_, Err(_)) => asm!(self; mov Rq(to), QWORD imm as i64),
                }
                self.done_g(d);
            }
            Inst::GLoad { kind, d, from } => {
                let (to, at) = (self.write_g(d), self.addr(from));
                match kind {
                    GLoadKind::U8 => indexed!(self, at; [movzx Rd(to),] BYTE @ []),
                    GLoadKind::I8 => indexed!(self, at; [movsx Rd(to),] BYTE @ []),
                    GLoadKind::U16 => indexed!(self, at; [movzx Rd(to),] WORD @ []),
                    GLoadKind::I16 => indexed!(self, at; [movsx Rd(to),] WORD @ []),
                    GLoadKind::W32 => indexed!(self, at; [mov Rd(to),] DWORD @ []),
                    GLoadKind::W64 => indexed!(self, at; [mov Rq(to),] QWORD @ []),
                }
                self.done_g(d);
            }
            Inst::GStore { kind, to, a } => {
                let (a, at) = (self.read_g(a, RAX), self.addr(to));
                match kind {
                    GStoreKind::B1 => indexed!(self, at; [mov] BYTE @ [, Rb(a)]),
                    GStoreKind::B2 => indexed!(self, at; [mov] WORD @ [, Rw(a)]),
                    GStoreKind::B4 => indexed!(self, at; [mov] DWORD @ [, Rd(a)]),
                    GStoreKind::B8 => indexed!(self, at; [mov] QWORD @ [, Rq(a)]),
                }
            }
            Inst::Lea { d, from } => {
                let (to, at) = (self.write_g(d), self.addr(from));
                indexed!(self, at; [lea Rq(to),] @ []);
                self.done_g(d);
            }
            Inst::Set { cond, width, d, a, b } => {
                self.compare(width, a, b);
                on_cond!(self, cond; sete setne setb setae seta setbe setl setge setg setle; al);
                asm!(self; movzx eax, al);
                self.take_rax(d);
            }
            Inst::Choose { cond, width, a, b, d, x, y } => {
                self.compare(width, a, b);
                // Moves leave the flags as they are.
                let y = self.read_g(y, RAX);
                asm!(self; mov rax, Rq(y));
                let x = self.read_g(x, RDX);
                on_cond!(self, cond; cmove cmovne cmovb cmovae cmova cmovbe cmovl cmovge cmovg cmovle; rax, Rq(x));
                self.take_rax(d);
            }
            Inst::LowestBit { d, a } => {
                let (a, to) = (self.read_g(a, RAX), self.write_g(d));
                asm!(self; tzcnt Rd(to), Rd(a));
                self.done_g(d);
            }
            Inst::ClearLowest { d, a } => {
                let (a, to) = (self.read_g(a, RAX), self.write_g(d));
                asm!(self; blsr Rd(to), Rd(a));
                self.done_g(d);
            }
            Inst::PopCount { width, d, a } => {
                let (a, to) = (self.read_g(a, RAX), self.write_g(d));
                match width {
                    Width::W32 => asm!(self; popcnt Rd(to), Rd(a)),
                    Width::W64 => asm!(self; popcnt Rq(to), Rq(a)),
                }
                self.done_g(d);
            }
            Inst::Rmw { op, locked, d, at, a } => self.rmw(op, locked, d, at, a),
            Inst::CompareExchange { locked, d, at, expected, new } => {
                let at = self.plain_addr(at);
                let expected = self.read_g(expected, RAX);
                asm!(self; mov eax, Rd(expected));
                let new = self.read_g(new, RDX);
                match locked {
                    true => plain!(self, at, 0; [lock cmpxchg] DWORD @ [, Rd(new)]),
                    false => plain!(self, at, 0; [cmpxchg] DWORD @ [, Rd(new)]),
                }
                self.take_rax(d);
            }
            ref other => unreachable!("{other:?} is encoded elsewhere"),
        }
    }

    /// Brings a result that was computed in `at` to its place.
    fn finish_g(&mut self, d: G, at: u8) {
        match self.allocation.g(d) {
            Place::Reg(reg) if reg == at => {}
            Place::Reg(reg) => asm!(self; mov Rq(reg), Rq(at)),
            Place::Slot(slot) => {
                let slot = self.general_slot(slot);
                asm!(self; mov [rsp + slot], Rq(at));
            }
            Place::Nowhere => {}
        }
    }

    fn gsrc(&mut self, src: GSrc) -> Operand {
        match src {
            GSrc::Reg(reg) => match self.allocation.g(reg) {
                Place::Reg(reg) => Operand::Reg(reg),
                Place::Slot(slot) => Operand::At(Addr::Plain(RSP, self.general_slot(slot))),
                Place::Nowhere => Operand::Imm(0),
            },
            GSrc::Imm(imm) => Operand::Imm(imm),
            GSrc::Mem(mem) => Operand::At(self.plain_addr(mem)),
        }
    }

    fn g2(&mut self, op: G2, width: Width, d: u8, b: Operand) {
        macro_rules! arms {
            ($($name:ident)*) => { match (op, width, b) { $(
                (G2::$name, Width::W32, Operand::Reg(b)) => asm!(self; $name Rd(d), Rd(b)),
                (G2::$name, Width::W64, Operand::Reg(b)) => asm!(self; $name Rq(d), Rq(b)),
                (G2::$name, Width::W32, Operand::Imm(imm)) => asm!(self; $name Rd(d), imm),
                (G2::$name, Width::W64, Operand::Imm(imm)) => asm!(self; $name Rq(d), imm),
                (G2::$name, Width::W32, Operand::At(at)) => plain!(self, at, 0; [$name Rd(d),] DWORD @ []),
                (G2::$name, Width::W64, Operand::At(at)) => plain!(self, at, 0; [$name Rq(d),] QWORD @ []),
            )* } };
        }
        with_g2!(arms!());
    }

    fn compare(&mut self, width: Width, a: G, b: GSrc) {
        let a = self.read_g(a, RAX);
        let b = self.gsrc(b);
        match (width, b) {
            (Width::W32, Operand::Imm(0)) => asm!(self; test Rd(a), Rd(a)),
            (Width::W64, Operand::Imm(0)) => asm!(self; test Rq(a), Rq(a)),
            (Width::W32, Operand::Imm(imm)) => asm!(self; cmp Rd(a), imm),
            (Width::W64, Operand::Imm(imm)) => asm!(self; cmp Rq(a), imm),
            (Width::W32, Operand::Reg(b)) => asm!(self; cmp Rd(a), Rd(b)),
            (Width::W64, Operand::Reg(b)) => asm!(self; cmp Rq(a), Rq(b)),
            (Width::W32, Operand::At(at)) => plain!(self, at, 0; [cmp Rd(a),] DWORD @ []),
            (Width::W64, Operand::At(at)) => plain!(self, at, 0; [cmp Rq(a),] QWORD @ []),
        }
    }

    fn rmw(&mut self, op: Rmw, locked: bool, d: G, at: Mem, a: G) {
        // The address ends up in rcx at the most, so that rax and rdx are free.
        let at = self.plain_addr(at);
        match op {
            Rmw::Add => {
                let a = self.read_g(a, RAX);
                asm!(self; mov eax, Rd(a));
                match locked {
                    true => plain!(self, at, 0; [lock xadd] DWORD @ [, eax]),
                    false => plain!(self, at, 0; [xadd] DWORD @ [, eax]),
                }
            }
            Rmw::Exchange => {
                let a = self.read_g(a, RAX);
                asm!(self; mov eax, Rd(a));
                plain!(self, at, 0; [xchg] DWORD @ [, eax]);
            }
            Rmw::And | Rmw::Or | Rmw::Xor | Rmw::MinU | Rmw::MaxU | Rmw::MinS | Rmw::MaxS => {
                let again = self.ops.new_dynamic_label();
                plain!(self, at, 0; [mov eax,] DWORD @ []);
                asm!(self; =>again);
                // A value from the frame is read again each time: it is combined where the exchange wants it.
                let a = self.gsrc(a.into());
                macro_rules! combine {
                    ($name:ident) => {
                        match a {
                            Operand::Reg(a) => asm!(self; mov edx, eax; $name edx, Rd(a)),
                            Operand::Imm(imm) => asm!(self; mov edx, eax; $name edx, imm),
                            Operand::At(value) => {
                                asm!(self; mov edx, eax);
                                plain!(self, value, 0; [$name edx,] DWORD @ []);
                            }
                        }
                    };
                }
                macro_rules! keep {
                    ($name:ident) => {{
                        match a {
                            Operand::Reg(a) => asm!(self; mov edx, Rd(a)),
                            Operand::Imm(imm) => asm!(self; mov edx, imm),
                            Operand::At(value) => plain!(self, value, 0; [mov edx,] DWORD @ []),
                        }
                        asm!(self; cmp eax, edx; $name edx, eax);
                    }};
                }
                match op {
                    Rmw::And => combine!(and),
                    Rmw::Or => combine!(or),
                    Rmw::Xor => combine!(xor),
                    Rmw::MinU => keep!(cmovb),
                    Rmw::MaxU => keep!(cmova),
                    Rmw::MinS => keep!(cmovl),
                    Rmw::MaxS | Rmw::Add | Rmw::Exchange => keep!(cmovg),
                }
                match locked {
                    true => plain!(self, at, 0; [lock cmpxchg] DWORD @ [, edx]),
                    false => plain!(self, at, 0; [cmpxchg] DWORD @ [, edx]),
                }
                asm!(self; jne =>again);
            }
        }
        self.take_rax(d);
    }
}

/// The second operand of an instruction on general registers.
#[derive(Clone, Copy)]
enum Operand {
    Reg(u8),
    Imm(i32),
    At(Addr),
}

impl Operand {
    /// Whether it is read from this register.
    fn touches(self, reg: u8) -> bool {
        match self {
            Operand::Reg(own) => own == reg,
            Operand::Imm(_) => false,
            Operand::At(Addr::Plain(base, _)) => base == reg,
            Operand::At(Addr::Indexed(base, index, ..)) => base == reg || index == reg,
            Operand::At(Addr::Pool(_)) => false,
        }
    }
}
