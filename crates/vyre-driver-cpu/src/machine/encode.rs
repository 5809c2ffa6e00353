//! Bytes of instructions, with registers in their places.
//!
//! **Frame**, from rsp up: the scratch area, slots of vectors and one to spare, slots of general registers, what calls save, and where rsp was. It begins at a
//! multiple of 32. **Registers**: r15 has the context; rax, rcx and rdx belong to single instructions; ymm14 and ymm15 too where
//! something lives in the frame. Code is called with the conventions of System V everywhere, which Rust can do on Windows too.

mod general;

use super::alloc::{Allocation, Saved};
use super::asm::{Addr, Asm, Bits, Map, Op, Prefix, Rm, Size, Target, Vex};
use super::lir::{Base, Fma, Inst, Label, LoadKind, Mem, Src, StoreKind, Width};
use super::reg::{G, Place, V};
use Bits::{B128, B256};
use std::collections::VecDeque;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R12: u8 = 12;
const R13: u8 = 13;
const R14: u8 = 14;
const R15: u8 = 15;
const Y14: u8 = 14;
const Y15: u8 = 15;

/// The registers that the caller finds as they were.
const KEPT: [u8; 6] = [RBX, RBP, R12, R13, R14, R15];

/// What the system may leave out between one touched byte of the stack and the next.
const PAGE: usize = 4096;

/// Machine code, and what belongs to it.
#[cfg_attr(not(any(test, feature = "listing")), allow(dead_code, reason = "listings read it"))]
pub(crate) struct Encoded {
    /// Code, and constants behind it. It has to be at a multiple of 32.
    pub bytes: Vec<u8>,
    /// Where the code ends.
    pub code_len: usize,
    /// By mark: where its code begins.
    pub marks: Vec<(usize, u32)>,
    /// Where addresses of functions are, eight bytes each, which are others in every process.
    pub addresses: Vec<usize>,
}

/// Encodes code.
pub(crate) fn encode(code: &[Inst], labels: u32, scratch: usize, pool: &[u8], allocation: &Allocation) -> Encoded {
    let vector_slots = scratch.next_multiple_of(32);
    // One more, for gathers of which nothing is in a register.
    let spare = usize::from(allocation.vector_slots > 0);
    let general_slots = vector_slots + 32 * (allocation.vector_slots as usize + spare);
    let saves = (general_slots + 8 * allocation.general_slots as usize).next_multiple_of(32);
    let saves_len = if allocation.saved.is_empty() { 0 } else { 16 * 32 + 8 * 8 };
    let size = (saves + saves_len + 8).next_multiple_of(32);
    let mut asm = Asm::new(64 + 8 * code.len() + pool.len());
    let labels = (0..labels).map(|_| asm.target()).collect();
    let mut encoder = Encoder {
        asm,
        labels,
        allocation,
        vector_slots,
        general_slots,
        saves,
        size,
        calls: 0,
        marks: Vec::new(),
        addresses: Vec::new(),
        flags: None,
    };
    encoder.enter();
    let mut parts = VecDeque::from([Part { code, calls: 0, cold: false, mark: None }]);
    while let Some(part) = parts.pop_front() {
        encoder.part(part, &mut parts);
    }
    let Encoder { asm, marks, addresses, .. } = encoder;
    let (bytes, code_len) = asm.finish(pool);
    Encoded { bytes, code_len, marks, addresses }
}

/// Whether the loop that begins before this code has none inside, apart from what is put elsewhere.
fn is_innermost(code: &[Inst]) -> bool {
    let mut cold = 0;
    for inst in code {
        cold += inst.cold_depth();
        if cold == 0 && matches!(inst, Inst::LoopBegin | Inst::LoopEnd) {
            return matches!(inst, Inst::LoopEnd);
        }
    }
    false
}

struct Encoder<'a> {
    asm: Asm,
    labels: Vec<Target>,
    allocation: &'a Allocation,
    vector_slots: usize,
    general_slots: usize,
    saves: usize,
    size: usize,
    calls: usize,
    marks: Vec<(usize, u32)>,
    addresses: Vec<usize>,
    /// The register, and how much of it, whose value the flags are about.
    flags: Option<(G, Width)>,
}

/// Instructions with one use here, as the manual spells them.
mod vex {
    use super::{Map, Prefix, Vex};
    use Map::{M0F, M0F3A, M0F38};
    use Prefix::{None, P66, PF3};

    const fn vex(prefix: Prefix, map: Map, wide: bool, code: u8) -> Vex {
        Vex { prefix, map, wide, code }
    }
    pub const VMOVDQA_LOAD: Vex = vex(P66, M0F, false, 0x6F);
    pub const VMOVDQA_STORE: Vex = vex(P66, M0F, false, 0x7F);
    pub const VMOVDQU_LOAD: Vex = vex(PF3, M0F, false, 0x6F);
    pub const VMOVDQU_STORE: Vex = vex(PF3, M0F, false, 0x7F);
    pub const VMOVQ_LOAD: Vex = vex(PF3, M0F, false, 0x7E);
    pub const VMOVQ_STORE: Vex = vex(P66, M0F, false, 0xD6);
    pub const VMOVD_FROM: Vex = vex(P66, M0F, false, 0x6E);
    pub const VMOVD_TO: Vex = vex(P66, M0F, false, 0x7E);
    pub const VMOVQ_FROM: Vex = vex(P66, M0F, true, 0x6E);
    pub const VMOVQ_TO: Vex = vex(P66, M0F, true, 0x7E);
    pub const VPMOVZXBD: Vex = vex(P66, M0F38, false, 0x31);
    pub const VPMOVSXBW: Vex = vex(P66, M0F38, false, 0x20);
    pub const VPMOVSXBD: Vex = vex(P66, M0F38, false, 0x21);
    pub const VPMOVZXWD: Vex = vex(P66, M0F38, false, 0x33);
    pub const VPMOVSXWD: Vex = vex(P66, M0F38, false, 0x23);
    pub const VPBROADCASTD: Vex = vex(P66, M0F38, false, 0x58);
    pub const VPBROADCASTQ: Vex = vex(P66, M0F38, false, 0x59);
    pub const VPXOR: Vex = vex(P66, M0F, false, 0xEF);
    pub const VPCMPEQD: Vex = vex(P66, M0F, false, 0x76);
    pub const VINSERTI128: Vex = vex(P66, M0F3A, false, 0x38);
    pub const VEXTRACTI128: Vex = vex(P66, M0F3A, false, 0x39);
    pub const VCVTPS2PH: Vex = vex(P66, M0F3A, false, 0x1D);
    pub const VBLENDVPS: Vex = vex(P66, M0F3A, false, 0x4A);
    pub const VMOVMSKPS: Vex = vex(None, M0F, false, 0x50);

    /// Of 32 or 64 bits.
    pub const fn vpmaskmov_load(wide: bool) -> Vex {
        vex(P66, M0F38, wide, 0x8C)
    }
    pub const fn vpmaskmov_store(wide: bool) -> Vex {
        vex(P66, M0F38, wide, 0x8E)
    }
    pub const fn vpgather(wide: bool) -> Vex {
        vex(P66, M0F38, wide, 0x90)
    }
    /// reg = reg × rm + first.
    pub const fn vfmadd132(wide: bool) -> Vex {
        vex(P66, M0F38, wide, 0x98)
    }
    /// reg = first × reg + rm.
    pub const fn vfmadd213(wide: bool) -> Vex {
        vex(P66, M0F38, wide, 0xA8)
    }
    /// reg = first × rm + reg.
    pub const fn vfmadd231(wide: bool) -> Vex {
        vex(P66, M0F38, wide, 0xB8)
    }
}

const VZEROUPPER: [u8; 3] = [0xC5, 0xF8, 0x77];

/// Code that is encoded in one piece.
struct Part<'c> {
    code: &'c [Inst],
    /// The number of its first call.
    calls: usize,
    cold: bool,
    /// The statement that it begins within.
    mark: Option<u32>,
}

impl Encoder<'_> {
    /// Encodes a part, without the cold ones inside, which are put off.
    fn part<'c>(&mut self, Part { code, calls, cold, mut mark }: Part<'c>, later: &mut VecDeque<Part<'c>>) {
        let mut n = 0;
        self.calls = calls;
        // Nothing comes from what is above.
        self.flags = None;
        self.marks.extend(mark.map(|mark| (self.asm.len(), mark)));
        while n < code.len() {
            let inst = &code[n];
            // Marks, and what stands around loops, are not encoded, so that the flags stay.
            if let Inst::Mark(stmt) = inst {
                self.marks.push((self.asm.len(), *stmt));
                mark = Some(*stmt);
            } else if let Inst::LoopBegin | Inst::LoopEnd | Inst::ColdEnd = inst {
                if matches!(inst, Inst::LoopBegin) && !cold && is_innermost(&code[n + 1..]) {
                    self.asm.align(32);
                }
            } else if let Inst::ColdBegin = inst {
                let inside = &code[n + 1..][..cold_length(&code[n + 1..])];
                later.push_back(Part { code: inside, calls: self.calls, cold: true, mark });
                self.calls += inside.iter().filter(|inst| matches!(inst, Inst::Call { .. })).count();
                n += inside.len();
            } else {
                let flags = self.flags.take();
                self.inst(inst, flags);
            }
            n += 1;
        }
    }
}

/// How much of the code is up to the end of the cold part that has just begun.
fn cold_length(code: &[Inst]) -> usize {
    let mut open = 1;
    let end = code.iter().position(|inst| {
        open += inst.cold_depth();
        open == 0
    });
    end.unwrap_or(code.len())
}

impl Encoder<'_> {
    fn enter(&mut self) {
        KEPT.iter().for_each(|reg| self.asm.op_short(0x50, Size::B4, *reg));
        self.mov(R15, Rm::Reg(RDI));
        self.mov(RAX, Rm::Reg(RSP));
        self.asm.op_imm8(Op::plain(0x83), Size::B8, 4, Rm::Reg(RSP), -32i8 as u8);
        // A stack grows by the page below the last one that was touched.
        if self.size > PAGE {
            self.mov_imm(RCX, (self.size / PAGE) as u64);
            let again = self.asm.target();
            self.asm.place(again);
            self.asm.op_imm32(Op::plain(0x81), Size::B8, 5, Rm::Reg(RSP), PAGE as i32);
            self.asm.op(Op::plain(0x89), Size::B8, RAX, Rm::Mem(Addr::Plain(RSP, 0)));
            self.asm.op_imm8(Op::plain(0x83), Size::B4, 5, Rm::Reg(RCX), 1);
            self.asm.jump_if(NOT_EQUAL, again);
        }
        let rest = if self.size > PAGE { self.size % PAGE } else { self.size };
        self.asm.op_imm32(Op::plain(0x81), Size::B8, 5, Rm::Reg(RSP), rest as i32);
        self.asm.op(Op::plain(0x89), Size::B8, RAX, Rm::Mem(Addr::Plain(RSP, self.size as i32 - 8)));
    }

    fn leave(&mut self) {
        self.asm.raw(&VZEROUPPER);
        self.mov(RSP, Rm::Mem(Addr::Plain(RSP, self.size as i32 - 8)));
        KEPT.iter().rev().for_each(|reg| self.asm.op_short(0x58, Size::B4, *reg));
        self.asm.raw(&[0xC3]);
    }

    fn label(&self, label: Label) -> Target {
        self.labels[label.0 as usize]
    }

    fn vector_slot(&self, slot: u32) -> Addr {
        Addr::Plain(RSP, (self.vector_slots + 32 * slot as usize) as i32)
    }

    fn general_slot(&self, slot: u32) -> Addr {
        Addr::Plain(RSP, (self.general_slots + 8 * slot as usize) as i32)
    }

    /// An instruction with no first operand.
    fn v(&mut self, op: Vex, bits: Bits, reg: u8, rm: Rm) {
        self.asm.vex(op, bits, reg, 0, rm);
    }

    fn load_slot(&mut self, reg: u8, slot: u32) {
        let at = self.vector_slot(slot);
        self.v(vex::VMOVDQA_LOAD, B256, reg, Rm::Mem(at));
    }

    fn store_slot(&mut self, slot: u32, reg: u8) {
        let at = self.vector_slot(slot);
        self.v(vex::VMOVDQA_STORE, B256, reg, Rm::Mem(at));
    }

    fn is_in_frame(&self, reg: V) -> bool {
        matches!(self.allocation.v(reg), Place::Slot(_))
    }

    /// The register that has a vector; one from the frame is brought to `scratch`.
    fn read_v(&mut self, reg: V, scratch: u8) -> u8 {
        match self.allocation.v(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(slot) => {
                self.load_slot(scratch, slot);
                scratch
            }
            Place::Nowhere => unreachable!("a register that is read has a place"),
        }
    }

    /// The register that a vector is to be written to, until [`Self::done_v`].
    fn write_v(&self, reg: V) -> u8 {
        match self.allocation.v(reg) {
            Place::Reg(reg) => reg,
            Place::Slot(_) => Y14,
            Place::Nowhere => unreachable!("a register that is written has a place"),
        }
    }

    fn done_v(&mut self, reg: V) {
        if let Place::Slot(slot) = self.allocation.v(reg) {
            self.store_slot(slot, Y14);
        }
    }

    /// An address; registers from the frame come to rcx and rdx.
    fn addr(&mut self, mem: Mem) -> Addr {
        let base = match mem.base {
            Base::Reg(reg) => self.read_g(reg, RCX),
            Base::Context => R15,
            Base::Frame => RSP,
            Base::Pool => match mem.index {
                None => return Addr::Pool(mem.disp),
                // Only an address without registers can count from the code.
                Some((index, scale)) => {
                    self.lea(RCX, Addr::Pool(mem.disp));
                    return Addr::Indexed(RCX, self.read_g(index, RDX), scale, 0);
                }
            },
        };
        match mem.index {
            Some((index, scale)) => Addr::Indexed(base, self.read_g(index, RDX), scale, mem.disp),
            None => Addr::Plain(base, mem.disp),
        }
    }

    /// A vector operand, in a register or in memory.
    fn src(&mut self, src: Src) -> Rm {
        match src {
            Src::Reg(reg) => match self.allocation.v(reg) {
                Place::Reg(reg) => Rm::Reg(reg),
                Place::Slot(slot) => Rm::Mem(self.vector_slot(slot)),
                Place::Nowhere => unreachable!("a register that is read has a place"),
            },
            Src::Mem(mem) => Rm::Mem(self.addr(mem)),
        }
    }

    /// One instruction, after one that may have left flags about its result.
    fn inst(&mut self, inst: &Inst, flags: Option<(G, Width)>) {
        match *inst {
            Inst::V3 { op, d, a, b } => {
                // Only the second operand can be in memory.
                let (a, b) = match b {
                    Src::Reg(b) if op.commutes() && !self.is_in_frame(b) && self.is_in_frame(a) => (b, Src::Reg(a)),
                    Src::Reg(_) | Src::Mem(_) => (a, b),
                };
                let (to, a, b) = (self.write_v(d), self.read_v(a, Y14), self.src(b));
                self.asm.vex(op.vex(), B256, to, a, b);
                self.done_v(d);
            }
            Inst::V3I { op, d, a, b, imm } => {
                let (to, a, b) = (self.write_v(d), self.read_v(a, Y14), self.src(b));
                self.asm.vex_imm(op.vex(), B256, to, a, b, imm);
                self.done_v(d);
            }
            Inst::V2 { op, d, a } => {
                let (to, a) = (self.write_v(d), self.src(a));
                self.v(op.vex(), B256, to, a);
                self.done_v(d);
            }
            Inst::V2I { op, d, a, imm } => {
                let (to, a) = (self.write_v(d), self.src(a));
                self.asm.vex_imm(op.vex(), B256, to, 0, a, imm);
                self.done_v(d);
            }
            Inst::Shift { op, d, a, imm } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                self.asm.vex_imm(op.vex(), B256, op.extension(), to, Rm::Reg(a), imm);
                self.done_v(d);
            }
            Inst::Widen { op, d, a } => {
                let (to, a) = (self.write_v(d), self.src(a));
                self.v(op.vex(), B256, to, a);
                self.done_v(d);
            }
            Inst::Narrow { op, d, a } => {
                let (to, a) = (self.write_v(d), self.src(a.into()));
                self.v(op.vex(), B256, to, a);
                self.done_v(d);
            }
            Inst::ToHalf { d, a } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                self.asm.vex_imm(vex::VCVTPS2PH, B256, a, 0, Rm::Reg(to), 0);
                self.done_v(d);
            }
            Inst::Blend { d, a, b, mask } => {
                let (to, a, mask, b) = (self.write_v(d), self.read_v(a, Y14), self.read_v(mask, Y15), self.src(b));
                self.asm.vex_imm(vex::VBLENDVPS, B256, to, a, b, mask << 4);
                self.done_v(d);
            }
            Inst::Fma { op, d, a, b, c } => {
                let (to, c) = (self.write_v(d), self.src(c));
                match (self.src(a.into()), self.src(b.into()), c) {
                    (factor @ Rm::Mem(_), Rm::Reg(other), Rm::Reg(c)) | (Rm::Reg(other), factor @ Rm::Mem(_), Rm::Reg(c)) => {
                        self.fma_with_factor(op, to, factor, other, c);
                    }
                    _ => {
                        let (a, b) = (self.read_v(a, Y14), self.read_v(b, Y15));
                        self.fma(op, to, a, b, c);
                    }
                }
                self.done_v(d);
            }
            Inst::VMov { d, a } => self.move_v(d, a),
            Inst::Zero { d } => {
                let to = self.write_v(d);
                self.zero(to);
                self.done_v(d);
            }
            Inst::Ones { d } => {
                let to = self.write_v(d);
                self.asm.vex(vex::VPCMPEQD, B256, to, to, Rm::Reg(to));
                self.done_v(d);
            }
            Inst::Join { d, low, high } => {
                let (to, low, high) = (self.write_v(d), self.read_v(low, Y14), self.src(high.into()));
                self.asm.vex_imm(vex::VINSERTI128, B256, to, low, high, 1);
                self.done_v(d);
            }
            Inst::High { d, a } => {
                let (to, a) = (self.write_v(d), self.read_v(a, Y14));
                self.asm.vex_imm(vex::VEXTRACTI128, B256, a, 0, Rm::Reg(to), 1);
                self.done_v(d);
            }
            Inst::Load { kind, d, from } => {
                let (to, at) = (self.write_v(d), self.addr(from));
                let (op, bits) = match kind {
                    LoadKind::Full => (vex::VMOVDQU_LOAD, B256),
                    LoadKind::Half => (vex::VMOVDQU_LOAD, B128),
                    LoadKind::Quarter => (vex::VMOVQ_LOAD, B128),
                    LoadKind::Eighth => (vex::VMOVD_FROM, B128),
                    LoadKind::U8 => (vex::VPMOVZXBD, B256),
                    LoadKind::I8 => (vex::VPMOVSXBD, B256),
                    LoadKind::U16 => (vex::VPMOVZXWD, B256),
                    LoadKind::I16 => (vex::VPMOVSXWD, B256),
                    LoadKind::Halves => (vex::VPMOVSXBW, B128),
                    LoadKind::Splat32 => (vex::VPBROADCASTD, B256),
                    LoadKind::Splat64 => (vex::VPBROADCASTQ, B256),
                };
                self.v(op, bits, to, Rm::Mem(at));
                self.done_v(d);
            }
            Inst::Store { kind, to, v } => {
                let (v, at) = (self.read_v(v, Y14), self.addr(to));
                let (op, bits) = match kind {
                    StoreKind::Full => (vex::VMOVDQU_STORE, B256),
                    StoreKind::Half => (vex::VMOVDQU_STORE, B128),
                    StoreKind::Quarter => (vex::VMOVQ_STORE, B128),
                    StoreKind::Eighth => (vex::VMOVD_TO, B128),
                };
                self.v(op, bits, v, Rm::Mem(at));
            }
            Inst::MaskStore { wide, to, mask, v } => {
                let (v, mask, at) = (self.read_v(v, Y14), self.read_v(mask, Y15), self.addr(to));
                self.asm.vex(vex::vpmaskmov_store(wide), B256, v, mask, Rm::Mem(at));
            }
            Inst::MaskLoad { wide, d, mask, from } => {
                let (to, mask, at) = (self.write_v(d), self.read_v(mask, Y15), self.addr(from));
                self.asm.vex(vex::vpmaskmov_load(wide), B256, to, mask, Rm::Mem(at));
                self.done_v(d);
            }
            Inst::Gather { d, base, index, mask } => self.gather(false, d, base, index, mask),
            Inst::GatherWide { d, base, index, mask } => self.gather(true, d, base, index, mask),
            Inst::Splat { width, d, a } => {
                let (to, a) = (self.write_v(d), self.read_g(a, RAX));
                let (from, broadcast) = match width {
                    Width::W32 => (vex::VMOVD_FROM, vex::VPBROADCASTD),
                    Width::W64 => (vex::VMOVQ_FROM, vex::VPBROADCASTQ),
                };
                self.v(from, B128, to, Rm::Reg(a));
                self.v(broadcast, B256, to, Rm::Reg(to));
                self.done_v(d);
            }
            Inst::First { width, d, a } => {
                let (to, a) = (self.write_g(d), self.read_v(a, Y14));
                let op = match width {
                    Width::W32 => vex::VMOVD_TO,
                    Width::W64 => vex::VMOVQ_TO,
                };
                self.v(op, B128, a, Rm::Reg(to));
                self.done_g(d, to);
            }
            Inst::Signs { d, a } => {
                let (to, a) = (self.write_g(d), self.read_v(a, Y14));
                self.v(vex::VMOVMSKPS, B256, to, Rm::Reg(a));
                self.done_g(d, to);
            }
            Inst::Label(label) => {
                let target = self.label(label);
                self.asm.place(target);
            }
            Inst::Jump(label) => {
                let target = self.label(label);
                self.asm.jump(target);
            }
            Inst::Call { helper, argument } => {
                let saved = self.allocation.saved[self.calls];
                self.calls += 1;
                self.save(saved);
                self.asm.raw(&VZEROUPPER);
                self.mov(RDI, Rm::Reg(RSP));
                self.mov(RSI, Rm::Reg(R15));
                self.mov_imm(RDX, argument);
                self.address(helper as usize as u64);
                self.asm.op(Op::plain(0xFF), Size::B4, 2, Rm::Reg(RAX));
                self.restore(saved);
            }
            Inst::Return => self.leave(),
            Inst::G2 { .. }
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
            | Inst::JumpIf { .. }
            | Inst::JumpIfByte { .. } => self.general(inst, flags),
            Inst::Mark(_) | Inst::LoopBegin | Inst::LoopEnd | Inst::ColdBegin | Inst::ColdEnd => {
                unreachable!("{inst:?} is not encoded")
            }
        }
    }

    fn zero(&mut self, reg: u8) {
        self.asm.vex(vex::VPXOR, B128, reg, reg, Rm::Reg(reg));
    }

    fn move_v(&mut self, d: V, a: V) {
        match (self.allocation.v(d), self.allocation.v(a)) {
            (Place::Reg(d), Place::Reg(a)) if d == a => {}
            (Place::Reg(d), Place::Reg(a)) => self.v(vex::VMOVDQA_LOAD, B256, d, Rm::Reg(a)),
            (Place::Reg(d), Place::Slot(a)) => self.load_slot(d, a),
            (Place::Slot(d), Place::Reg(a)) => self.store_slot(d, a),
            (Place::Slot(d), Place::Slot(a)) if d == a => {}
            (Place::Slot(d), Place::Slot(a)) => {
                self.load_slot(Y14, a);
                self.store_slot(d, Y14);
            }
            (Place::Nowhere, _) | (_, Place::Nowhere) => unreachable!("registers of a move have places"),
        }
    }

    /// a × b + c. The forms of the instruction differ in which operand is where the result goes.
    fn fma(&mut self, op: Fma, d: u8, a: u8, b: u8, c: Rm) {
        let wide = op == Fma::pd;
        let (factor, other) = if d == b { (b, a) } else { (a, b) };
        if c == Rm::Reg(d) {
            self.asm.vex(vex::vfmadd231(wide), B256, d, a, Rm::Reg(b));
            return;
        }
        if factor != d {
            self.v(vex::VMOVDQA_LOAD, B256, d, Rm::Reg(factor));
        }
        self.asm.vex(vex::vfmadd213(wide), B256, d, other, c);
    }

    /// factor × other + c, where the factor is in memory.
    fn fma_with_factor(&mut self, op: Fma, d: u8, factor: Rm, other: u8, c: u8) {
        let wide = op == Fma::pd;
        if d == other && d != c {
            self.asm.vex(vex::vfmadd132(wide), B256, d, c, factor);
            return;
        }
        if d != c {
            self.v(vex::VMOVDQA_LOAD, B256, d, Rm::Reg(c));
        }
        self.asm.vex(vex::vfmadd231(wide), B256, d, other, factor);
    }

    fn gather(&mut self, wide: bool, d: V, base: G, index: V, mask: V) {
        debug_assert!(d != index && d != mask && index != mask, "the vectors of a gather are three");
        let base = self.read_g(base, RCX);
        // They have to be three registers. One that lives in the frame borrows a register that is none of the others: the encoder's own
        // two, and for the third one that is put back afterwards.
        let places = [d, index, mask].map(|reg| self.allocation.v(reg));
        let mut taken = places.iter().fold(0u16, |bits, place| match place {
            Place::Reg(reg) => bits | 1 << reg,
            Place::Slot(_) | Place::Nowhere => bits,
        });
        let mut third = None;
        let [to, index, mask] = places.map(|place| match place {
            Place::Reg(reg) => reg,
            Place::Slot(_) | Place::Nowhere => {
                let free = if taken >> Y14 == 3 { (!taken).trailing_zeros() as u8 } else { Y14 + (taken >> Y14 & 1) as u8 };
                taken |= 1 << free;
                third = if free < Y14 { Some(free) } else { third };
                free
            }
        });
        let spare = self.allocation.vector_slots;
        if let Some(reg) = third {
            self.store_slot(spare, reg);
        }
        for (place, reg) in [(places[1], index), (places[2], mask)] {
            if let Place::Slot(slot) = place {
                self.load_slot(reg, slot);
            }
        }
        self.zero(to);
        let scale = if wide { 8 } else { 4 };
        self.asm.vex(vex::vpgather(wide), B256, to, mask, Rm::Mem(Addr::Gather(base, index, scale)));
        if let Place::Slot(slot) = places[0] {
            self.store_slot(slot, to);
        }
        if let Some(reg) = third {
            self.load_slot(reg, spare);
        }
    }

    fn save(&mut self, saved: Saved) {
        let mut at = self.saves as i32;
        for reg in bits(saved.vectors) {
            self.v(vex::VMOVDQA_STORE, B256, reg, Rm::Mem(Addr::Plain(RSP, at)));
            at += 32;
        }
        for reg in bits(saved.general) {
            self.asm.op(Op::plain(0x89), Size::B8, reg, Rm::Mem(Addr::Plain(RSP, at)));
            at += 8;
        }
    }

    fn restore(&mut self, saved: Saved) {
        let mut at = self.saves as i32;
        for reg in bits(saved.vectors) {
            self.v(vex::VMOVDQA_LOAD, B256, reg, Rm::Mem(Addr::Plain(RSP, at)));
            at += 32;
        }
        for reg in bits(saved.general) {
            self.mov(reg, Rm::Mem(Addr::Plain(RSP, at)));
            at += 8;
        }
    }
}

/// The numbers of the bits that are one.
fn bits(set: u16) -> impl Iterator<Item = u8> {
    (0..16u8).filter(move |reg| set >> reg & 1 == 1)
}

/// Conditions, as opcodes spell them.
const NOT_EQUAL: u8 = 5;
