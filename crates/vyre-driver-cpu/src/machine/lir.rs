//! Instructions of the machine over virtual registers: what lowering makes and register allocation and the encoder read.
//!
//! Code is one list. Labels and jumps are instructions; [`Inst::LoopBegin`] and [`Inst::LoopEnd`] stand around every stretch that a
//! jump backwards repeats, which is all that allocation needs to know of control. Registers are written as often as one likes, but
//! every path to a read has to write first.
//!
//! Vector registers hold 32 bytes. Whole registers are read and written unless the op says otherwise.

pub(crate) use super::families::{Fma, G2, Narrow, Shift, V2, V2I, V3, V3I, Widen};
use super::reg::{G, V};

/// Where an instruction finds memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mem {
    pub base: Base,
    /// A 64-bit register times 1, 2, 4 or 8.
    pub index: Option<(G, u8)>,
    pub disp: i32,
}

/// What an address begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Reg(G),
    /// The context that the code was called with.
    Context,
    /// The scratch area of the frame.
    Frame,
    /// The constants behind the code.
    Pool,
}

impl Mem {
    pub fn context(offset: usize) -> Mem {
        Mem { base: Base::Context, index: None, disp: offset as i32 }
    }

    pub fn frame(offset: usize) -> Mem {
        Mem { base: Base::Frame, index: None, disp: offset as i32 }
    }

    pub fn at(base: G) -> Mem {
        Mem { base: Base::Reg(base), index: None, disp: 0 }
    }

    pub fn indexed(base: G, index: G, scale: u8) -> Mem {
        Mem { base: Base::Reg(base), index: Some((index, scale)), disp: 0 }
    }

    pub fn plus(self, bytes: usize) -> Mem {
        Mem { disp: self.disp + bytes as i32, ..self }
    }
}

/// A vector operand that may be in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Src {
    Reg(V),
    Mem(Mem),
}

impl From<V> for Src {
    fn from(reg: V) -> Src {
        Src::Reg(reg)
    }
}

/// An operand of the general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GSrc {
    Reg(G),
    Imm(i32),
    Mem(Mem),
}

impl From<G> for GSrc {
    fn from(reg: G) -> GSrc {
        GSrc::Reg(reg)
    }
}

/// The width of an operation on a general register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    W32,
    W64,
}

/// What a comparison has to find for a jump to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cond {
    Equal,
    NotEqual,
    /// Unsigned.
    Below,
    AboveEqual,
    Above,
    BelowEqual,
    /// Signed.
    Less,
    GreaterEqual,
    Greater,
    LessEqual,
}

/// A place in the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(pub u32);

/// How elements are read from memory to a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoadKind {
    /// 32 bytes.
    Full,
    /// 16 bytes, and zeros.
    Half,
    /// 8 bytes, and zeros.
    Quarter,
    /// 4 bytes, and zeros.
    Eighth,
    /// 8 bytes to 8 × 32 bits.
    U8,
    I8,
    /// 16 bytes to 8 × 32 bits.
    U16,
    I16,
    /// 8 bytes to 8 × 16 bits with their sign, and zeros.
    Halves,
    /// The same 4 bytes everywhere.
    Splat32,
    /// The same 8 bytes everywhere.
    Splat64,
}

/// How much of a vector is written to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreKind {
    Full,
    Half,
    Quarter,
    Eighth,
}

/// How a general register is read from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GLoadKind {
    U8,
    I8,
    U16,
    I16,
    W32,
    W64,
}

/// How many low bytes of a general register are written to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GStoreKind {
    B1,
    B2,
    B4,
    B8,
}

/// A shift of a general register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GShift {
    Left,
    Right,
    ArithmeticRight,
}

/// What happens to one element of 4 bytes, as one step for all threads if `locked`; the old value is the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rmw {
    Add,
    Exchange,
    And,
    Or,
    Xor,
    MinU,
    MaxU,
    MinS,
    MaxS,
}

/// A function outside that code calls, by its address: it takes the scratch area of the frame and the context, gives nothing, and does
/// not unwind.
pub(crate) type Helper = extern "sysv64" fn(frame: *mut u8, context: *mut u8, argument: u64);

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inst {
    V3 {
        op: V3,
        d: V,
        a: V,
        b: Src,
    },
    V3I {
        op: V3I,
        d: V,
        a: V,
        b: Src,
        imm: u8,
    },
    V2 {
        op: V2,
        d: V,
        a: Src,
    },
    V2I {
        op: V2I,
        d: V,
        a: Src,
        imm: u8,
    },
    Shift {
        op: Shift,
        d: V,
        a: V,
        imm: u8,
    },
    Widen {
        op: Widen,
        d: V,
        a: Src,
    },
    Narrow {
        op: Narrow,
        d: V,
        a: V,
    },
    /// f32 to f16, nearest-even: 8 halves in the low 16 bytes.
    ToHalf {
        d: V,
        a: V,
    },
    /// Bytes of `b` where the highest bit of `mask`'s 32-bit elements is one, else of `a`.
    Blend {
        d: V,
        a: V,
        b: Src,
        mask: V,
    },
    /// a × b + c.
    Fma {
        op: Fma,
        d: V,
        a: V,
        b: V,
        c: Src,
    },
    VMov {
        d: V,
        a: V,
    },
    /// All zeros; needs no constant.
    Zero {
        d: V,
    },
    /// All ones.
    Ones {
        d: V,
    },
    /// The low half of the first and the low half of the second.
    Join {
        d: V,
        low: V,
        high: V,
    },
    /// The high half of a vector as the low half.
    High {
        d: V,
        a: V,
    },
    Load {
        kind: LoadKind,
        d: V,
        from: Mem,
    },
    Store {
        kind: StoreKind,
        to: Mem,
        v: V,
    },
    /// Elements whose mask is zero are not touched.
    MaskStore {
        wide: bool,
        to: Mem,
        mask: V,
        v: V,
    },
    /// Elements whose mask is zero are not touched and become zero.
    MaskLoad {
        wide: bool,
        d: V,
        mask: V,
        from: Mem,
    },
    /// 8 × 32 bits at `base + index × 4` where the mask is set, zero elsewhere. The mask is used up. Result, indices and
    /// mask are three registers.
    Gather {
        d: V,
        base: G,
        index: V,
        mask: V,
    },
    /// 4 × 64 bits at `base + index × 8`, with 32-bit indices in the low half.
    GatherWide {
        d: V,
        base: G,
        index: V,
        mask: V,
    },
    /// A general register to every element.
    Splat {
        width: Width,
        d: V,
        a: G,
    },
    /// The first element.
    First {
        width: Width,
        d: G,
        a: V,
    },
    /// The highest bits of the 32-bit elements.
    Signs {
        d: G,
        a: V,
    },

    G2 {
        op: G2,
        width: Width,
        d: G,
        a: G,
        b: GSrc,
    },
    /// The low half of the product.
    GMul {
        width: Width,
        d: G,
        a: G,
        b: GSrc,
    },
    GShift {
        op: GShift,
        width: Width,
        d: G,
        a: G,
        imm: u8,
    },
    /// By the amount modulo the width.
    GShiftBy {
        op: GShift,
        width: Width,
        d: G,
        a: G,
        by: G,
    },
    /// A 32-bit move clears the upper half.
    GMov {
        width: Width,
        d: G,
        a: G,
    },
    GImm {
        d: G,
        imm: u64,
    },
    GLoad {
        kind: GLoadKind,
        d: G,
        from: Mem,
    },
    GStore {
        kind: GStoreKind,
        to: Mem,
        a: G,
    },
    /// The address itself.
    Lea {
        d: G,
        from: Mem,
    },
    /// Says that a line of memory will be read soon. Any address will do: one that is nothing is passed over.
    Prefetch {
        from: Mem,
    },
    /// 1 or 0.
    Set {
        cond: Cond,
        width: Width,
        d: G,
        a: G,
        b: GSrc,
    },
    /// `x` if the comparison holds, else `y`.
    Choose {
        cond: Cond,
        width: Width,
        a: G,
        b: GSrc,
        d: G,
        x: G,
        y: G,
    },
    /// How many zero bits are below the lowest one, of 64.
    LowestBit {
        d: G,
        a: G,
    },
    /// Without the lowest one bit, of 64.
    ClearLowest {
        d: G,
        a: G,
    },
    /// How many bits are one.
    PopCount {
        width: Width,
        d: G,
        a: G,
    },

    /// One element of memory changed.
    Rmw {
        op: Rmw,
        locked: bool,
        d: G,
        at: Mem,
        a: G,
    },
    /// 4 bytes of memory changed, as one step for all threads if `locked`; `a` is not in memory.
    Change {
        op: G2,
        locked: bool,
        at: Mem,
        a: GSrc,
    },
    /// `new` is written if the element equals `expected`; the old value.
    CompareExchange {
        locked: bool,
        d: G,
        at: Mem,
        expected: G,
        new: G,
    },

    Label(Label),
    Jump(Label),
    /// Compares and jumps.
    JumpIf {
        cond: Cond,
        width: Width,
        a: G,
        b: GSrc,
        to: Label,
    },
    /// Jumps if a byte in memory is not zero; `at` is where its address is.
    JumpIfByte {
        at: Mem,
        to: Label,
    },
    /// The label that is jumped back to follows.
    LoopBegin,
    LoopEnd,
    /// Up to the end, code that hardly ever runs: it is put behind the rest. One gets into it and out of it by jumps only; what comes from
    /// above goes on behind it.
    ColdBegin,
    ColdEnd,
    Call {
        helper: Helper,
        argument: u64,
    },
    /// Remembers where the code of a statement begins; nothing else.
    Mark(u32),
    /// Leaves the function.
    Return,
}

/// What an instruction does with a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Read,
    Write,
    /// Writes it before everything is read, so that it must not be where an operand is.
    Early,
    /// Reads it, and leaves something else in it.
    Clobber,
}

/// A register of either kind, to be changed.
pub(crate) enum AnyReg<'a> {
    G(&'a mut G),
    V(&'a mut V),
}

impl Inst {
    /// Whether it jumps, is jumped to, or stands at the edge of a loop.
    pub fn is_control(&self) -> bool {
        matches!(
            self,
            Inst::Label(_)
                | Inst::Jump(_)
                | Inst::JumpIf { .. }
                | Inst::JumpIfByte { .. }
                | Inst::LoopBegin
                | Inst::LoopEnd
                | Inst::ColdBegin
                | Inst::ColdEnd
                | Inst::Return
        )
    }

    /// Where it may jump to.
    pub fn target(&self) -> Option<Label> {
        if let Inst::Jump(to) | Inst::JumpIf { to, .. } | Inst::JumpIfByte { to, .. } = self { Some(*to) } else { None }
    }

    /// How much further inside of cold parts the code behind it is.
    pub fn cold_depth(&self) -> i32 {
        i32::from(matches!(self, Inst::ColdBegin)) - i32::from(matches!(self, Inst::ColdEnd))
    }

    /// Calls `each` with every register, reads before writes.
    pub fn for_each_reg(&mut self, each: &mut impl FnMut(AnyReg<'_>, Role)) {
        use Role::{Clobber, Early, Read, Write};
        fn mem(mem: &mut Mem, each: &mut impl FnMut(AnyReg<'_>, Role)) {
            if let Base::Reg(base) = &mut mem.base {
                each(AnyReg::G(base), Read);
            }
            if let Some((index, _)) = &mut mem.index {
                each(AnyReg::G(index), Read);
            }
        }
        fn src(src: &mut Src, each: &mut impl FnMut(AnyReg<'_>, Role)) {
            match src {
                Src::Reg(reg) => each(AnyReg::V(reg), Read),
                Src::Mem(at) => mem(at, each),
            }
        }
        fn gsrc(src: &mut GSrc, each: &mut impl FnMut(AnyReg<'_>, Role)) {
            match src {
                GSrc::Reg(reg) => each(AnyReg::G(reg), Read),
                GSrc::Imm(_) => {}
                GSrc::Mem(at) => mem(at, each),
            }
        }
        match self {
            Inst::V3 { d, a, b, .. } | Inst::V3I { d, a, b, .. } => {
                each(AnyReg::V(a), Read);
                src(b, each);
                each(AnyReg::V(d), Write);
            }
            Inst::V2 { d, a, .. } | Inst::V2I { d, a, .. } | Inst::Widen { d, a, .. } => {
                src(a, each);
                each(AnyReg::V(d), Write);
            }
            Inst::Shift { d, a, .. }
            | Inst::Narrow { d, a, .. }
            | Inst::ToHalf { d, a }
            | Inst::VMov { d, a }
            | Inst::High { d, a } => {
                each(AnyReg::V(a), Read);
                each(AnyReg::V(d), Write);
            }
            Inst::Blend { d, a, b, mask } => {
                each(AnyReg::V(a), Read);
                src(b, each);
                each(AnyReg::V(mask), Read);
                each(AnyReg::V(d), Write);
            }
            Inst::Fma { d, a, b, c, .. } => {
                each(AnyReg::V(a), Read);
                each(AnyReg::V(b), Read);
                src(c, each);
                each(AnyReg::V(d), Write);
            }
            Inst::Zero { d } | Inst::Ones { d } => each(AnyReg::V(d), Write),
            Inst::Join { d, low, high } => {
                each(AnyReg::V(low), Read);
                each(AnyReg::V(high), Read);
                each(AnyReg::V(d), Write);
            }
            Inst::Load { d, from, .. } => {
                mem(from, each);
                each(AnyReg::V(d), Write);
            }
            Inst::Store { to, v, .. } => {
                mem(to, each);
                each(AnyReg::V(v), Read);
            }
            Inst::MaskStore { to, mask, v, .. } => {
                mem(to, each);
                each(AnyReg::V(mask), Read);
                each(AnyReg::V(v), Read);
            }
            Inst::MaskLoad { d, mask, from, .. } => {
                each(AnyReg::V(mask), Read);
                mem(from, each);
                each(AnyReg::V(d), Write);
            }
            Inst::Gather { d, base, index, mask } | Inst::GatherWide { d, base, index, mask } => {
                each(AnyReg::G(base), Read);
                each(AnyReg::V(index), Read);
                each(AnyReg::V(mask), Clobber);
                each(AnyReg::V(d), Early);
            }
            Inst::Splat { d, a, .. } => {
                each(AnyReg::G(a), Read);
                each(AnyReg::V(d), Write);
            }
            Inst::First { d, a, .. } | Inst::Signs { d, a } => {
                each(AnyReg::V(a), Read);
                each(AnyReg::G(d), Write);
            }
            Inst::G2 { d, a, b, .. } | Inst::GMul { d, a, b, .. } | Inst::Set { d, a, b, .. } => {
                each(AnyReg::G(a), Read);
                gsrc(b, each);
                each(AnyReg::G(d), Write);
            }
            Inst::GShift { d, a, .. }
            | Inst::GMov { d, a, .. }
            | Inst::LowestBit { d, a }
            | Inst::ClearLowest { d, a }
            | Inst::PopCount { d, a, .. } => {
                each(AnyReg::G(a), Read);
                each(AnyReg::G(d), Write);
            }
            Inst::GShiftBy { d, a, by, .. } => {
                each(AnyReg::G(a), Read);
                each(AnyReg::G(by), Read);
                each(AnyReg::G(d), Write);
            }
            Inst::GImm { d, .. } => each(AnyReg::G(d), Write),
            Inst::GLoad { d, from, .. } | Inst::Lea { d, from } => {
                mem(from, each);
                each(AnyReg::G(d), Write);
            }
            Inst::GStore { to, a, .. } => {
                mem(to, each);
                each(AnyReg::G(a), Read);
            }
            Inst::Choose { a, b, d, x, y, .. } => {
                each(AnyReg::G(a), Read);
                gsrc(b, each);
                each(AnyReg::G(x), Read);
                each(AnyReg::G(y), Read);
                each(AnyReg::G(d), Write);
            }
            Inst::Rmw { d, at, a, .. } => {
                mem(at, each);
                each(AnyReg::G(a), Read);
                each(AnyReg::G(d), Write);
            }
            Inst::Change { at, a, .. } => {
                mem(at, each);
                gsrc(a, each);
            }
            Inst::CompareExchange { d, at, expected, new, .. } => {
                mem(at, each);
                each(AnyReg::G(expected), Read);
                each(AnyReg::G(new), Read);
                each(AnyReg::G(d), Write);
            }
            Inst::JumpIf { a, b, .. } => {
                each(AnyReg::G(a), Read);
                gsrc(b, each);
            }
            Inst::JumpIfByte { at, .. } | Inst::Prefetch { from: at } => mem(at, each),
            Inst::Label(_)
            | Inst::Jump(_)
            | Inst::LoopBegin
            | Inst::LoopEnd
            | Inst::ColdBegin
            | Inst::ColdEnd
            | Inst::Call { .. }
            | Inst::Mark(_)
            | Inst::Return => {}
        }
    }
}
