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
use super::context::{Context, buffer_address, buffer_length};
use super::facts::Facts;
use super::geometry::{Geometry, WIDTH};
use super::shape::Shape;
use crate::faults::Fault;
use crate::machine::lir::{Base, Cond, G2, GLoadKind, GShift, GSrc, Inst, Label, LoadKind, Mem, Src, V3, Width};
use crate::machine::reg::{G, V};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::mem::offset_of;
use vyre_foundation::ir::{Axis, Builtin};
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::{InstId, Leaf, Ssa, Value};
use vyre_spec::{FloatMode, Scalar, ValueType};

/// The vectors of a varying value: one per part, two where elements have 64 bits.
pub(crate) type Parts = SmallVec<[V; 8]>;

/// Where the value of a scalar is.
#[derive(Clone, Debug)]
pub(crate) enum Loc {
    /// It is a literal.
    Lit(u64),
    /// Uniform, an integer or a `bool`, which is 0 or 1.
    G(G),
    /// Linear: the value of lane 0.
    Linear(G, u32),
    /// Uniform, a float: in every element of one vector.
    Splat(V),
    /// Varying; a `bool` is all ones or all zeros in 32 bits.
    Parts(Parts),
}

/// Where a value is: the components of a vector, or the only one.
pub(crate) type Locs = SmallVec<[Loc; 1]>;

/// A mask: active lanes are all ones. `None` if all of them are.
pub(crate) type Mask = Option<Parts>;

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
    pub locs: Vec<Option<Locs>>,
    /// Uniform and linear values as vectors, and since when, by value and component.
    pub splats: HashMap<(Value, u8), Parts>,
    /// What was added to `splats`, to be forgotten when the region ends that it was added in.
    pub splatted: Vec<(Value, u8)>,
    /// Leaves of the machine that are found once.
    pub leaves: HashMap<MachineLeaf, G>,
    pub vector_leaves: HashMap<VectorLeaf, Parts>,
    /// Lengths of buffers that indices are compared with, and whether with their sign.
    pub lengths: HashMap<(BufferId, bool), V>,
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
    pub slots: super::group::Slots,
    /// Whether code goes to the start of the block.
    pub in_block_head: bool,
    /// Whether code hardly ever runs, so that nothing is prepared for it.
    pub in_cold: bool,
    /// A condition whose outcome is known in this segment.
    pub decided: Option<Decided>,
    /// A mask that is the beginning of a vector.
    pub prefix: Option<Prefix>,
    pub refused: Option<String>,
    /// A mistake that is made on purpose.
    pub fault: Option<Fault>,
}

/// Something that every workgroup finds in the same place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MachineLeaf {
    Address(BufferId),
    Length(BufferId),
    /// Where contiguous accesses of a block may begin: below this.
    Limit(BufferId, u32),
    /// The same for pieces of words, of which a word has 2 to this power; 64 bits.
    PieceLimit(BufferId, u32, u8),
    Context(usize),
    /// First invocation of the block along an axis, in its workgroup.
    LocalBase(Axis),
    GlobalBase(Axis),
    GroupTimesSize(Axis),
    Slots,
}

/// Something that every block finds as vectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum VectorLeaf {
    Builtin(Builtin),
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

    // Leaves of the machine.

    /// Runs `make` with code going to the front of everything.
    pub fn at_entry<R>(&mut self, make: impl FnOnce(&mut Self) -> R) -> R {
        std::mem::swap(&mut self.code, &mut self.entry);
        let result = make(self);
        std::mem::swap(&mut self.code, &mut self.entry);
        result
    }

    fn at_group<R>(&mut self, make: impl FnOnce(&mut Self) -> R) -> R {
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

    pub fn machine_leaf(&mut self, leaf: MachineLeaf) -> G {
        if let Some(known) = self.leaves.get(&leaf) {
            return *known;
        }
        let reg = match leaf {
            MachineLeaf::Address(buffer) => {
                let from = buffer_address(self.ssa, buffer);
                self.at_entry(|lower| lower.load_g(GLoadKind::W64, from))
            }
            MachineLeaf::Length(buffer) => {
                let from = buffer_length(self.ssa, buffer);
                self.at_entry(|lower| match from {
                    Ok(from) => lower.load_g(GLoadKind::W32, from),
                    Err(count) => lower.imm(u64::from(count)),
                })
            }
            MachineLeaf::Limit(buffer, lanes) => {
                let length = self.machine_leaf(MachineLeaf::Length(buffer));
                self.at_entry(|lower| {
                    let (limit, none) = (lower.new_g(), lower.imm(0));
                    let further = lanes as i32 - 1 - i32::from(lower.planted(Fault::LimitOneMore));
                    let less = lower.g2(G2::sub, Width::W32, length, GSrc::Imm(further));
                    let (cond, width, b) = (Cond::Below, Width::W32, GSrc::Imm(lanes as i32));
                    lower.push(Inst::Choose { cond, width, a: length, b, d: limit, x: none, y: less });
                    limit
                })
            }
            MachineLeaf::PieceLimit(buffer, lanes, log) => {
                let length = self.machine_leaf(MachineLeaf::Length(buffer));
                self.at_entry(|lower| {
                    // An index has 32 bits, and none of the block's may wrap.
                    let (pieces, end, limit) = (lower.new_g(), lower.new_g(), lower.new_g());
                    lower.push(Inst::GShift { op: GShift::Left, width: Width::W64, d: pieces, a: length, imm: log });
                    let (all, none) = (lower.imm(1 << 32), lower.imm(0));
                    let (cond, width) = (Cond::Below, Width::W64);
                    lower.push(Inst::Choose { cond, width, a: pieces, b: all.into(), d: end, x: pieces, y: all });
                    let less = lower.g2(G2::sub, Width::W64, end, GSrc::Imm(lanes as i32 - 1));
                    lower.push(Inst::Choose { cond, width, a: end, b: GSrc::Imm(lanes as i32), d: limit, x: none, y: less });
                    limit
                })
            }
            MachineLeaf::Context(offset) => self.at_entry(|lower| lower.load_g(GLoadKind::W32, Mem::context(offset))),
            MachineLeaf::Slots => {
                let from = Mem::context(offset_of!(Context, slots));
                self.at_entry(|lower| lower.load_g(GLoadKind::W64, from))
            }
            MachineLeaf::GroupTimesSize(axis) => {
                let size = self.geometry.size[axis as usize];
                let id = self.group_id(axis);
                self.at_group(|lower| {
                    let d = lower.new_g();
                    lower.push(Inst::GMul { width: Width::W32, d, a: id, b: GSrc::Imm(size as i32) });
                    d
                })
            }
            MachineLeaf::LocalBase(axis) => self.local_base(axis),
            MachineLeaf::GlobalBase(axis) => {
                let local = self.machine_leaf(MachineLeaf::LocalBase(axis));
                if self.geometry.flat && axis == Axis::X {
                    local
                } else {
                    let group = self.machine_leaf(MachineLeaf::GroupTimesSize(axis));
                    self.at_block(|lower| lower.g2(G2::add, Width::W32, local, group))
                }
            }
        };
        self.leaves.insert(leaf, reg);
        reg
    }

    /// Where the block begins along an axis, where all of its lanes lie along x.
    fn local_base(&mut self, axis: Axis) -> G {
        let [nx, ny, _] = self.geometry.size;
        let Some(block) = self.block else { return self.at_block(|lower| lower.imm(0)) };
        if self.geometry.flat || self.geometry.total() == nx {
            return match (axis, self.row) {
                (Axis::X, _) => block,
                (Axis::Y, Some([y, _])) => y,
                (Axis::Z, Some([_, z])) => z,
                (Axis::Y | Axis::Z, None) => self.at_block(|lower| lower.imm(0)),
            };
        }
        let lanes = self.geometry.lanes();
        if nx.is_power_of_two() && ny.is_power_of_two() {
            // Its bits are those of x, then those of y, then those of z.
            let (below, own) = match axis {
                Axis::X => (0, nx),
                Axis::Y => (nx.trailing_zeros(), ny),
                Axis::Z => (nx.trailing_zeros() + ny.trailing_zeros(), 1 << 10),
            };
            if axis == Axis::X && nx == lanes {
                return self.at_block(|lower| lower.imm(0));
            }
            // The block's number is less than the size, so that nothing is above the bits of the last axis.
            let is_last = 1 << below << own.trailing_zeros() >= self.geometry.total();
            return self.at_block(|lower| {
                let shifted = lower.new_g();
                let op = GShift::Right;
                lower.push(Inst::GShift { op, width: Width::W32, d: shifted, a: block, imm: below as u8 });
                if is_last {
                    return shifted;
                }
                lower.g2(G2::and, Width::W32, shifted, GSrc::Imm(own as i32 - 1))
            });
        }
        // A table by block: where it begins along x, y and z.
        let starts: Vec<u32> = (0..self.geometry.blocks())
            .map(|n| {
                let first = n * lanes;
                match axis {
                    Axis::X => first % nx,
                    Axis::Y => first / nx % ny,
                    Axis::Z => first / nx / ny,
                }
            })
            .collect();
        let table = self.pool.table(&starts);
        self.at_block(|lower| {
            let start = lower.new_g();
            lower.push(Inst::Lea { d: start, from: table });
            let shift = lanes.trailing_zeros() as u8;
            let number = lower.new_g();
            let op = GShift::Right;
            lower.push(Inst::GShift { op, width: Width::W32, d: number, a: block, imm: shift });
            lower.load_g(GLoadKind::W32, Mem::indexed(start, number, 4))
        })
    }

    fn group_id(&mut self, axis: Axis) -> G {
        match (axis, self.group) {
            (Axis::X, Some(group)) => group,
            (Axis::X, None) => self.machine_leaf(MachineLeaf::Context(offset_of!(Context, first_group))),
            (Axis::Y, _) => self.machine_leaf(MachineLeaf::Context(offset_of!(Context, group_y))),
            (Axis::Z, _) => self.machine_leaf(MachineLeaf::Context(offset_of!(Context, group_z))),
        }
    }

    pub fn load_g(&mut self, kind: GLoadKind, from: Mem) -> G {
        let d = self.new_g();
        self.push(Inst::GLoad { kind, d, from });
        d
    }

    fn builtin(&mut self, builtin: Builtin) -> Loc {
        match builtin {
            Builtin::Invocation(axis) => match (self.facts_shape_of_axis(axis), self.geometry.size[axis as usize]) {
                (Shape::Linear(stride), _) => Loc::Linear(self.machine_leaf(MachineLeaf::GlobalBase(axis)), stride),
                (Shape::Uniform, 1) => Loc::G(self.group_id(axis)),
                (Shape::Uniform, _) => Loc::G(self.machine_leaf(MachineLeaf::GlobalBase(axis))),
                (Shape::Varying, _) => Loc::Parts(self.vector_leaf(VectorLeaf::Builtin(builtin))),
            },
            Builtin::Local(axis) => match (self.facts_shape_of_axis(axis), self.geometry.size[axis as usize]) {
                (Shape::Linear(stride), _) => Loc::Linear(self.machine_leaf(MachineLeaf::LocalBase(axis)), stride),
                (Shape::Uniform, 1) => Loc::Lit(0),
                (Shape::Uniform, _) => Loc::G(self.machine_leaf(MachineLeaf::LocalBase(axis))),
                (Shape::Varying, _) => Loc::Parts(self.vector_leaf(VectorLeaf::Builtin(builtin))),
            },
            Builtin::SubgroupLane => Loc::Parts(self.vector_leaf(VectorLeaf::Builtin(builtin))),
            Builtin::Workgroup(axis) => Loc::G(self.group_id(axis)),
            Builtin::WorkgroupCount(axis) => {
                Loc::G(self.machine_leaf(MachineLeaf::Context(offset_of!(Context, grid) + 4 * axis as usize)))
            }
            Builtin::InvocationCount(axis) => {
                Loc::G(self.machine_leaf(MachineLeaf::Context(offset_of!(Context, invocations) + 4 * axis as usize)))
            }
            Builtin::LocalCount(axis) => Loc::Lit(u64::from(self.geometry.size[axis as usize])),
            Builtin::SubgroupSize => Loc::Lit(u64::from(self.ssa.kernel.subgroup.unwrap_or(1))),
        }
    }

    fn facts_shape_of_axis(&self, axis: Axis) -> Shape {
        match axis {
            Axis::X if self.geometry.rows => Shape::Linear(1),
            Axis::X => Shape::Varying,
            Axis::Y | Axis::Z if self.geometry.rows || self.geometry.size[axis as usize] == 1 => Shape::Uniform,
            Axis::Y | Axis::Z => Shape::Varying,
        }
    }

    fn vector_leaf(&mut self, leaf: VectorLeaf) -> Parts {
        if let Some(known) = self.vector_leaves.get(&leaf) {
            return known.clone();
        }
        let VectorLeaf::Builtin(builtin) = leaf;
        let [nx, ny, _] = self.geometry.size;
        let position = |n: u32| -> u32 {
            match builtin {
                Builtin::Local(axis) | Builtin::Invocation(axis) => match axis {
                    Axis::X => n % nx,
                    Axis::Y => n / nx % ny,
                    Axis::Z => n / nx / ny,
                },
                Builtin::Workgroup(_)
                | Builtin::InvocationCount(_)
                | Builtin::WorkgroupCount(_)
                | Builtin::LocalCount(_)
                | Builtin::SubgroupLane
                | Builtin::SubgroupSize => n % self.ssa.kernel.subgroup.unwrap_or(1),
            }
        };
        let positions: Vec<u32> = (0..self.geometry.blocks() * self.geometry.lanes()).map(position).collect();
        let table = self.pool.table(&positions);
        let group = match builtin {
            Builtin::Invocation(axis) => Some(self.machine_leaf(MachineLeaf::GroupTimesSize(axis))),
            Builtin::Workgroup(_)
            | Builtin::Local(_)
            | Builtin::InvocationCount(_)
            | Builtin::WorkgroupCount(_)
            | Builtin::LocalCount(_)
            | Builtin::SubgroupLane
            | Builtin::SubgroupSize => None,
        };
        let (block, parts) = (self.block, self.parts());
        let result: Parts = self.at_block(|lower| {
            let start = lower.new_g();
            lower.push(Inst::Lea { d: start, from: table });
            let group = group.map(|group| lower.splat_g(Width::W32, group));
            (0..parts)
                .map(|part| {
                    let from = match block {
                        Some(block) => Mem::indexed(start, block, 4),
                        None => Mem::at(start),
                    };
                    let own = lower.load(LoadKind::Full, from.plus(32 * part));
                    match group {
                        Some(group) => lower.v3(V3::vpaddd, own, group),
                        None => own,
                    }
                })
                .collect()
        });
        self.vector_leaves.insert(leaf, result.clone());
        result
    }

    pub fn splat_g(&mut self, width: Width, a: G) -> V {
        let d = self.new_v();
        self.push(Inst::Splat { width, d, a });
        d
    }

    // Values.

    /// Where a component of a value is.
    pub fn loc(&mut self, value: Value, component: u8) -> Loc {
        if let Some(leaf) = self.ssa.leaf(value) {
            return match leaf {
                Leaf::Lit { bits } => Loc::Lit(bits),
                Leaf::Builtin { builtin } => self.builtin(builtin),
                Leaf::Len { buffer } => Loc::G(self.machine_leaf(MachineLeaf::Length(buffer))),
            };
        }
        self.find_slot(value);
        match &self.locs[value.index()] {
            Some(locs) => locs[usize::from(component)].clone(),
            None => {
                self.refuse("a value is used where it is not there");
                Loc::Lit(0)
            }
        }
    }

    pub fn set(&mut self, value: Value, loc: Loc) {
        self.locs[value.index()] = Some(smallvec![loc]);
    }

    pub fn ty(&self, value: Value) -> Scalar {
        scalar_of(self.ssa.value(value).ty)
    }

    /// A uniform integer or `bool`, or the value of lane 0 of a linear one, in a general register.
    pub fn g(&mut self, value: Value) -> G {
        match self.loc(value, 0) {
            Loc::Lit(bits) => self.imm(bits),
            Loc::G(reg) | Loc::Linear(reg, _) => reg,
            Loc::Splat(v) => {
                let d = self.new_g();
                let width = width_of(self.ty(value));
                self.push(Inst::First { width, d, a: v });
                d
            }
            Loc::Parts(parts) => {
                let d = self.new_g();
                self.push(Inst::First { width: width_of(self.ty(value)), d, a: parts[0] });
                d
            }
        }
    }

    /// The same, as an operand that may be a number.
    pub fn g_src(&mut self, value: Value) -> GSrc {
        match self.loc(value, 0) {
            Loc::Lit(bits) => match (is_wide(self.ty(value)), i32::try_from(bits as i64)) {
                (false, _) => GSrc::Imm(bits as u32 as i32),
                (true, Ok(small)) => GSrc::Imm(small),
                (true, Err(_)) => GSrc::Reg(self.imm(bits)),
            },
            Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_) => GSrc::Reg(self.g(value)),
        }
    }

    /// A value as vectors.
    pub fn vectors(&mut self, value: Value, component: u8) -> Parts {
        let ty = self.ty(value);
        match self.loc(value, component) {
            Loc::Parts(parts) => parts,
            Loc::Lit(bits) => {
                let v = self.constant_v(ty, bits);
                smallvec![v; self.vectors_of(ty)]
            }
            loc @ (Loc::G(_) | Loc::Linear(..) | Loc::Splat(_)) => {
                // What hardly ever runs makes its own, so that nobody keeps them for it.
                if self.in_cold {
                    return self.as_vectors(ty, &loc);
                }
                if let Some(known) = self.splats.get(&(value, component)) {
                    return known.clone();
                }
                // Vectors of leaves are made where the leaves are, and stay.
                let parts = match self.ssa.leaf(value) {
                    Some(Leaf::Len { .. } | Leaf::Lit { .. }) => self.at_entry(|lower| lower.as_vectors(ty, &loc)),
                    Some(Leaf::Builtin { .. }) => self.at_block(|lower| lower.as_vectors(ty, &loc)),
                    None => {
                        self.splatted.push((value, component));
                        self.as_vectors(ty, &loc)
                    }
                };
                self.splats.insert((value, component), parts.clone());
                parts
            }
        }
    }

    /// A value as operands, which may be constants in memory.
    pub fn sources(&mut self, value: Value) -> SmallVec<[Src; 8]> {
        match self.loc(value, 0) {
            Loc::Lit(bits) => {
                let ty = self.ty(value);
                let src = self.constant(ty, bits);
                smallvec![src; self.vectors_of(ty)]
            }
            Loc::G(_) | Loc::Linear(..) | Loc::Splat(_) | Loc::Parts(_) => {
                self.vectors(value, 0).into_iter().map(Src::Reg).collect()
            }
        }
    }

    pub fn as_vectors(&mut self, ty: Scalar, loc: &Loc) -> Parts {
        match loc {
            Loc::Parts(parts) => parts.clone(),
            Loc::Lit(bits) => {
                let v = self.constant_v(ty, *bits);
                smallvec![v; self.vectors_of(ty)]
            }
            Loc::Splat(v) => smallvec![*v; self.vectors_of(ty)],
            Loc::G(reg) => {
                let v = self.splat_scalar(ty, *reg);
                smallvec![v; self.vectors_of(ty)]
            }
            Loc::Linear(base, stride) => {
                let base = self.splat_g(Width::W32, *base);
                (0..self.geometry.parts)
                    .map(|part| {
                        let first = if self.planted(Fault::PartsAlike) { 0 } else { part * WIDTH };
                        let steps = std::array::from_fn(|n| (first + n as u32).wrapping_mul(*stride));
                        let steps = Src::Mem(self.pool.place(steps));
                        self.v3(V3::vpaddd, base, steps)
                    })
                    .collect()
            }
        }
    }

    /// A uniform integer or `bool` in every element.
    pub fn splat_scalar(&mut self, ty: Scalar, reg: G) -> V {
        if ty == Scalar::Bool {
            let none = self.imm(0);
            let all = self.g2(G2::sub, Width::W32, none, reg);
            return self.splat_g(Width::W32, all);
        }
        self.splat_g(width_of(ty), reg)
    }

    /// Forgets vectors of uniform values that were made since.
    pub fn forget_splats(&mut self, since: usize) {
        for key in self.splatted.drain(since..) {
            self.splats.remove(&key);
        }
    }

    /// The shape of a value.
    pub fn shape(&self, value: Value) -> Shape {
        self.facts.shapes.shape(value)
    }

    /// A new place of the shape that the value has.
    pub fn new_loc(&mut self, ty: Scalar, shape: Shape) -> Loc {
        match shape {
            Shape::Uniform if is_float(ty) => Loc::Splat(self.new_v()),
            Shape::Uniform => Loc::G(self.new_g()),
            Shape::Linear(stride) => Loc::Linear(self.new_g(), stride),
            Shape::Varying => Loc::Parts((0..self.vectors_of(ty)).map(|_| self.new_v()).collect()),
        }
    }

    pub fn new_locs(&mut self, value: Value) -> Locs {
        let (ty, shape) = (self.ssa.value(value).ty, self.shape(value));
        (0..components_of(ty)).map(|_| self.new_loc(scalar_of(ty), shape)).collect()
    }

    /// Copies a value to a place that has its shape, or a more general one; under a mask only active lanes of a varying one.
    pub fn copy_to(&mut self, ty: Scalar, to: &Loc, from: &Loc, mask: &Mask) {
        match to {
            Loc::Lit(_) => {}
            Loc::G(d) | Loc::Linear(d, _) => match from {
                Loc::Lit(bits) => self.push(Inst::GImm { d: *d, imm: *bits }),
                Loc::G(a) | Loc::Linear(a, _) => self.push(Inst::GMov { width: Width::W64, d: *d, a: *a }),
                Loc::Splat(_) | Loc::Parts(_) => self.refuse("a uniform place is given a varying value"),
            },
            Loc::Splat(d) => match from {
                Loc::Lit(bits) => {
                    let a = self.constant_v(ty, *bits);
                    self.push(Inst::VMov { d: *d, a });
                }
                Loc::Splat(a) => self.push(Inst::VMov { d: *d, a: *a }),
                Loc::G(_) | Loc::Linear(..) | Loc::Parts(_) => self.refuse("a uniform float is given something else"),
            },
            Loc::Parts(to) => {
                let from = self.as_vectors(ty, from);
                let masks = mask.as_ref().map(|mask| self.masks_for(ty, mask));
                for n in 0..to.len() {
                    match &masks {
                        None => self.push(Inst::VMov { d: to[n], a: from[n] }),
                        Some(masks) => self.push(Inst::Blend { d: to[n], a: to[n], b: from[n].into(), mask: masks[n] }),
                    }
                }
            }
        }
    }

    /// A mask for elements of a type: as it is for 32 bits, widened for 64.
    pub fn masks_for(&mut self, ty: Scalar, mask: &Parts) -> Parts {
        if !is_wide(ty) {
            return mask.clone();
        }
        mask.iter().copied().collect::<Parts>().into_iter().flat_map(|part| self.widen_mask(part)).collect()
    }

    pub fn widen_mask(&mut self, mask: V) -> [V; 2] {
        use crate::machine::lir::Widen;
        let (low, upper, high) = (self.new_v(), self.new_v(), self.new_v());
        self.push(Inst::Widen { op: Widen::vpmovsxdq, d: low, a: mask.into() });
        self.push(Inst::High { d: upper, a: mask });
        self.push(Inst::Widen { op: Widen::vpmovsxdq, d: high, a: upper.into() });
        [low, high]
    }

    /// The low 32 bits of the elements of two vectors of 64-bit elements, as one.
    pub fn narrow_pair(&mut self, low: V, high: V) -> V {
        use crate::machine::lir::{V2I, V3I};
        let (mixed, d) = (self.new_v(), self.new_v());
        self.push(Inst::V3I { op: V3I::vshufps, d: mixed, a: low, b: high.into(), imm: 0x88 });
        self.push(Inst::V2I { op: V2I::vpermq, d, a: mixed.into(), imm: 0xD8 });
        d
    }

    /// Jumps if no lane of the mask is active.
    pub fn jump_if_none(&mut self, mask: &Parts, to: Label) {
        let bits = self.any_bits(mask);
        self.push(Inst::JumpIf { cond: Cond::Equal, width: Width::W32, a: bits, b: GSrc::Imm(0), to });
    }

    /// Jumps if a lane of the mask is active.
    pub fn jump_if_some(&mut self, mask: &Parts, to: Label) {
        let bits = self.any_bits(mask);
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: bits, b: GSrc::Imm(0), to });
    }

    /// A number that is zero iff no lane is active.
    fn any_bits(&mut self, mask: &Parts) -> G {
        let mut any = mask[0];
        for part in &mask[1..] {
            any = self.v3(V3::vpor, any, *part);
        }
        let bits = self.new_g();
        self.push(Inst::Signs { d: bits, a: any });
        bits
    }

    /// Jumps if a lane of the mask is not active.
    pub fn jump_unless_all(&mut self, mask: &Parts, to: Label) {
        let mut all = mask[0];
        for part in &mask[1..] {
            all = self.v3(V3::vpand, all, *part);
        }
        let bits = self.new_g();
        self.push(Inst::Signs { d: bits, a: all });
        self.push(Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: bits, b: GSrc::Imm(0xFF), to });
    }

    /// One bit per lane that is active.
    pub fn mask_bits(&mut self, mask: &Mask) -> G {
        let Some(mask) = mask else { return self.imm(u64::MAX >> (64 - self.geometry.lanes())) };
        let mut all: Option<G> = None;
        for (part, v) in mask.clone().into_iter().enumerate() {
            let bits = self.new_g();
            self.push(Inst::Signs { d: bits, a: v });
            all = Some(match all {
                None => bits,
                Some(all) => {
                    let shifted = self.new_g();
                    let op = GShift::Left;
                    self.push(Inst::GShift { op, width: Width::W64, d: shifted, a: bits, imm: 8 * part as u8 });
                    self.g2(G2::or, Width::W64, all, shifted)
                }
            });
        }
        all.unwrap_or_else(|| self.imm(0))
    }

    /// The active lanes as vectors.
    pub fn mask_vectors(&mut self) -> Parts {
        match self.mask.clone() {
            Some(mask) => mask,
            None => {
                let ones = self.ones();
                smallvec![ones; self.parts()]
            }
        }
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
