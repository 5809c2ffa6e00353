//! From the SSA form to instructions of the machine: the state that all parts of lowering share, and how operands are found.
//!
//! **Where code goes.** What is the same for all workgroups (lengths, addresses, counts) is put in front of everything, what a workgroup has
//! in common behind the head of the loop over workgroups, what a block has behind that of the loop over blocks: three lists, which are joined
//! when the body is done. So a leaf costs nothing inside loops.
//!
//! **At least one.** Accesses only ever run with at least one active lane; facts about them hold only then. Every place where the last
//! lane may have gone (an arm, the next iteration, what follows an `if` that lanes left) is jumped over if it has, unless there is nothing
//! in it but ops.

use super::active::{Decided, Prefix};
use super::facts::Facts;
use super::geometry::Geometry;
use super::leaves::{MachineLeaf, VectorLeaf};
use super::places::{Locs, Mask, Parts, Places};
use super::slots::Slots;
use crate::faults::Fault;
use crate::machine::lir::{Base, G2, GSrc, Inst, Label, LoadKind, Mem, Src, V3, Width};
use crate::machine::reg::{G, V};
use std::collections::HashMap;
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstId, Ssa, Value};
use vyre_spec::{FloatMode, Scalar, ValueType};

/// What lanes leave: the iteration of a divergent loop, or the program.
pub(crate) struct Scope {
    /// The lanes that are still in the iteration; in the program for the outermost.
    pub here: Parts,
    /// The lanes that will begin the next one; `None` for the outermost.
    pub stay: Option<Parts>,
}

/// A loop that code is in.
pub(crate) struct InLoop {
    pub inst: InstId,
    /// Its place among the scopes if it is divergent.
    pub scope: Option<usize>,
    pub exit: Label,
    pub latch: Label,
    /// Where carried values are.
    pub args: Vec<Locs>,
    /// Where carried values wait for the next iteration: those that are not varying, which lanes that are still in this one read.
    pub waiting: Vec<Locs>,
    /// Whether results are collected in every iteration, because lanes end in any, or go on before its end.
    pub collects: bool,
    /// Which carried values are changed for all lanes, because nobody reads them after the loop.
    pub unmasked: Vec<bool>,
    /// Where the results of those that are not varying are collected, if lanes leave at different times and somebody wants them.
    pub results: Vec<Option<Locs>>,
    /// The `if` behind which it does not matter for the rest of the iteration whether anybody is left.
    pub late_exit: Option<InstId>,
}

/// An arm of an `if` that lanes take apart.
#[derive(Clone)]
pub(crate) struct Arm {
    /// Those who take it.
    pub taken: Parts,
    /// The condition, for them and others.
    pub cond: Parts,
    /// Those who were there.
    pub before: Parts,
    /// Whether it is the one for those whose condition does not hold.
    pub otherwise: bool,
}

pub(crate) struct Lower<'a> {
    pub ssa: &'a Ssa,
    pub facts: &'a Facts,
    pub geometry: Geometry,
    pub mode: FloatMode,
    /// In front of everything.
    pub entry: Vec<Inst>,
    /// At the start of each workgroup.
    pub group_head: Vec<Inst>,
    /// At the start of each block.
    pub block_head: Vec<Inst>,
    /// The code that is being made.
    pub code: Vec<Inst>,
    pub generals: u32,
    pub vectors: u32,
    pub labels: u32,
    pub pool: Pool,
    /// Tables that are in the pool.
    pub tables: HashMap<Vec<u32>, Mem>,
    /// By value, where it is.
    pub locs: Places,
    /// Uniform and linear values as vectors, and since when, by value and component.
    pub splats: HashMap<(Value, u8), Parts>,
    /// What was added to `splats`, to be forgotten when the region ends that it was added in.
    pub splatted: Vec<(Value, u8)>,
    /// Leaves of the machine that are found once.
    pub leaves: HashMap<MachineLeaf, G>,
    pub vector_leaves: HashMap<VectorLeaf, Parts>,
    /// Lengths of buffers that indices are compared with, and whether with their sign.
    pub lengths: HashMap<(BufferId, bool), V>,
    /// How many whole words buffers of smaller elements have.
    pub word_counts: HashMap<BufferId, V>,
    pub mask: Mask,
    pub scopes: Vec<Scope>,
    /// The arm that code is in, of the innermost `if` with masks.
    pub arm: Option<Arm>,
    /// Where to go on when no lane is active any more: behind the arm or the iteration that the last one has left.
    pub nobody: Label,
    pub loops: Vec<InLoop>,
    /// Where code goes that is to stop.
    pub bail: Label,
    /// The first invocation of the block: its number in the workgroup, or along x if workgroups are one range.
    pub block: Option<G>,
    /// Where the range of invocations ends, if workgroups are one range.
    pub flat_end: Option<G>,
    /// The row of a workgroup along y and z, if its rows are parts of such ranges.
    pub row: Option<[G; 2]>,
    /// The workgroup's id along x.
    pub group: Option<G>,
    /// Bytes of the frame that instructions use.
    pub scratch: usize,
    /// Values that later segments find in memory: by value and component, the place of its slot.
    pub slots: Slots,
    /// Buffers that the segment writes to.
    pub rewritten: Vec<BufferId>,
    /// Whether code goes to the start of the block.
    pub in_block_head: bool,
    /// Whether code hardly ever runs, so that nothing is prepared for it.
    pub in_cold: bool,
    /// Whether all lanes of the block are somebody, although those of others may not be.
    pub is_whole: bool,
    /// A condition whose outcome is known in this segment.
    pub decided: Option<Decided>,
    /// A mask that is the beginning of a vector.
    pub prefix: Option<Prefix>,
    pub refused: Option<String>,
    /// A mistake that is made on purpose.
    pub fault: Option<Fault>,
}

/// Constants behind the code.
#[derive(Default)]
pub(crate) struct Pool {
    pub bytes: Vec<u8>,
    known: HashMap<[u32; 8], i32>,
}

impl Pool {
    pub fn place(&mut self, words: [u32; 8]) -> Mem {
        let bytes = &mut self.bytes;
        let disp = *self.known.entry(words).or_insert_with(|| {
            let at = bytes.len();
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            at as i32
        });
        Mem { base: Base::Pool, index: None, disp }
    }

    /// Bytes that vectors are read from at places that code computes.
    pub fn table(&mut self, words: &[u32]) -> Mem {
        let at = self.bytes.len();
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.bytes.resize(self.bytes.len().next_multiple_of(32), 0);
        Mem { base: Base::Pool, index: None, disp: at as i32 }
    }
}

pub(crate) fn is_wide(ty: Scalar) -> bool {
    ty.bits() == 64
}

pub(crate) fn width_of(ty: Scalar) -> Width {
    if is_wide(ty) { Width::W64 } else { Width::W32 }
}

pub(crate) fn is_float(ty: Scalar) -> bool {
    matches!(ty, Scalar::F32 | Scalar::F64)
}

/// The scalar of a value or of its components.
pub(crate) fn scalar_of(ty: ValueType) -> Scalar {
    match ty {
        ValueType::Scalar(scalar) | ValueType::Vector(scalar, _) => scalar,
    }
}

pub(crate) fn components_of(ty: ValueType) -> u8 {
    match ty {
        ValueType::Scalar(_) => 1,
        ValueType::Vector(_, count) => count,
    }
}

impl Lower<'_> {
    pub fn new_g(&mut self) -> G {
        self.generals += 1;
        G(self.generals - 1)
    }

    pub fn new_v(&mut self) -> V {
        self.vectors += 1;
        V(self.vectors - 1)
    }

    pub fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub fn push(&mut self, inst: Inst) {
        self.code.push(inst);
    }

    pub fn parts(&self) -> usize {
        self.geometry.parts as usize
    }

    /// How many vectors a varying value of the type has.
    pub fn vectors_of(&self, ty: Scalar) -> usize {
        self.parts() * if is_wide(ty) { 2 } else { 1 }
    }

    pub fn refuse(&mut self, why: impl Into<String>) {
        self.refused.get_or_insert(why.into());
    }

    // Small instructions.

    pub fn v3(&mut self, op: V3, a: V, b: impl Into<Src>) -> V {
        let d = self.new_v();
        let b = b.into();
        self.push(Inst::V3 { op, d, a, b });
        d
    }

    pub fn g2(&mut self, op: G2, width: Width, a: G, b: impl Into<GSrc>) -> G {
        let d = self.new_g();
        let b = b.into();
        self.push(Inst::G2 { op, width, d, a, b });
        d
    }

    pub fn imm(&mut self, imm: u64) -> G {
        let d = self.new_g();
        self.push(Inst::GImm { d, imm });
        d
    }

    pub fn blend(&mut self, a: V, b: impl Into<Src>, mask: V) -> V {
        let d = self.new_v();
        let b = b.into();
        self.push(Inst::Blend { d, a, b, mask });
        d
    }

    pub fn load(&mut self, kind: LoadKind, from: Mem) -> V {
        let d = self.new_v();
        self.push(Inst::Load { kind, d, from });
        d
    }

    pub fn zero(&mut self) -> V {
        let d = self.new_v();
        self.push(Inst::Zero { d });
        d
    }

    pub fn ones(&mut self) -> V {
        let d = self.new_v();
        self.push(Inst::Ones { d });
        d
    }

    /// A constant with these bits in every element, as an operand.
    pub fn constant(&mut self, ty: Scalar, bits: u64) -> Src {
        let words = if is_wide(ty) {
            std::array::from_fn(|n| (bits >> (32 * (n % 2))) as u32)
        } else if ty == Scalar::Bool {
            [if bits == 0 { 0 } else { u32::MAX }; 8]
        } else {
            [bits as u32; 8]
        };
        Src::Mem(self.pool.place(words))
    }

    pub fn constant32(&mut self, bits: u32) -> Src {
        self.constant(Scalar::U32, u64::from(bits))
    }

    pub fn constant64(&mut self, bits: u64) -> Src {
        self.constant(Scalar::U64, bits)
    }

    /// A constant in a register.
    pub fn constant_v(&mut self, ty: Scalar, bits: u64) -> V {
        if bits == 0 {
            return self.zero();
        }
        match self.constant(ty, bits) {
            Src::Mem(from) => self.load(LoadKind::Full, from),
            Src::Reg(reg) => reg,
        }
    }

    pub fn in_reg(&mut self, src: Src) -> V {
        match src {
            Src::Reg(reg) => reg,
            Src::Mem(from) => self.load(LoadKind::Full, from),
        }
    }

    // Places that code goes to.

    /// Runs `make` with code going to the front of everything.
    pub fn at_entry<R>(&mut self, make: impl FnOnce(&mut Self) -> R) -> R {
        std::mem::swap(&mut self.code, &mut self.entry);
        let result = make(self);
        std::mem::swap(&mut self.code, &mut self.entry);
        result
    }

    pub fn at_group<R>(&mut self, make: impl FnOnce(&mut Self) -> R) -> R {
        std::mem::swap(&mut self.code, &mut self.group_head);
        let result = make(self);
        std::mem::swap(&mut self.code, &mut self.group_head);
        result
    }

    pub fn at_block<R>(&mut self, make: impl FnOnce(&mut Self) -> R) -> R {
        if std::mem::replace(&mut self.in_block_head, true) {
            return make(self);
        }
        std::mem::swap(&mut self.code, &mut self.block_head);
        let result = make(self);
        std::mem::swap(&mut self.code, &mut self.block_head);
        self.in_block_head = false;
        result
    }

    pub fn splat_g(&mut self, width: Width, a: G) -> V {
        let d = self.new_v();
        self.push(Inst::Splat { width, d, a });
        d
    }

    /// Whether the compiler is to make this mistake.
    pub fn planted(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Space in the frame that single instructions use.
    pub fn frame(&mut self, bytes: usize) {
        self.scratch = self.scratch.max(bytes);
    }
}
