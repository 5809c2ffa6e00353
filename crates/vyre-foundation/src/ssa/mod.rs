//! The structured SSA form: what compilers and passes read.
//!
//! Every value is defined once, and control keeps its structure. A *region* is a list of instructions with arguments in front and a
//! terminator behind. `if` and `loop` are instructions that hold regions. What a kernel keeps in variables flows here as values:
//!
//! ```text
//! let sum = 0.0                         %sum = loop %k from 0 to %n with (0.0) {      ; args: %k, %old
//! for k in 0..n {                         %x = load x[%k]
//!   sum = sum + x[k]              ⇒       %new = add %old, %x
//! }                                       yield %new
//! out[0] = sum                          }
//!                                       store out[0] = %sum
//! ```
//!
//! - `if` has a result for every variable that an arm assigns and that was declared before it; each arm that gets to its end *yields*
//!   their values.
//! - `loop` has a result, and its region an argument, for every variable that the body assigns and that was declared before it. The
//!   argument is the value at the start of an iteration; the terminators `yield` (the end of the body) and `continue` give the
//!   value for the next one, `break` the result. A loop that has no iteration, or whose last iteration ends by itself, results in
//!   what the next iteration would have started with. The first argument is the counter, and the bounds are evaluated once.
//! - `return` and `trap` retire the invocation. Code behind a terminator is not part of the form. Where every arm of an `if` ends
//!   some other way, the region around it ends in `unreachable`.
//! - Literals, ids and lengths are *leaves*: values without an instruction, the same everywhere, one value for each.
//! - Loads, stores and atomics keep the [`AccessId`] that they have in the kernel, and instructions the statement they come from, so
//!   that facts and diagnostics can be brought back. Scopes are gone, and names are hints.
//!
//! **Order.** Instructions that touch memory happen in the order of their region. A load is evaluated once and its value is then
//! held: no reader of this form may load again what was loaded, since other invocations may have written in between.
//!
//! Made from a kernel by [`build`](Ssa::of), checked by [`verify`](Ssa::verify), shown by `Display`, written back as a program by
//! [`to_program`](Ssa::to_program). Instructions, regions and values that a pass takes out stay in their vectors without being
//! mentioned; walk from [`Ssa::root`].

mod build;
mod print;
#[cfg(test)]
mod tests;
mod verify;
mod write;

use crate::hash::Table;
use crate::ir::{AtomicOp, BinaryOp, Builtin, SubgroupOp, TernaryOp, UnaryOp};
use crate::kernel::{AccessId, BufferId, Effect, ExprId, Few, Kernel, MAX_OPERANDS, StmtId, VarId, handles};
use smallvec::SmallVec;
use std::sync::Arc;
use vyre_spec::{Law, Scalar, ValueType};

handles! {
    /// A value: an index into [`Ssa::values`].
    Value;
    /// An instruction: an index into [`Ssa::insts`].
    InstId;
    /// A region: an index into [`Ssa::regions`].
    RegionId;
}

/// A kernel in SSA form.
#[derive(Clone)]
pub struct Ssa {
    /// What it was made from: buffers, variables for names, accesses, workgroup size and attributes.
    pub kernel: Arc<Kernel>,
    /// Every value.
    pub values: Vec<ValueInfo>,
    /// Every instruction.
    pub insts: Vec<Inst>,
    /// Every region.
    pub regions: Vec<Region>,
    /// The region of the whole program; it has no arguments and yields nothing.
    pub root: RegionId,
    /// By expression of the kernel: its value. `None` in code that is never reached.
    pub exprs: Vec<Option<Value>>,
    leaves: Table<(Leaf, ValueType), Value>,
    /// By variable: the statements at the top level after which it has another value, in order. For grid barriers.
    top_level: Vec<Vec<(StmtId, Value)>>,
}

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
pub struct ValueInfo {
    /// Its type.
    pub ty: ValueType,
    /// Where it comes from.
    pub def: Def,
    /// The variable that holds it in the kernel: a hint for its name.
    pub var: Option<VarId>,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// It is the same everywhere.
    Leaf(Leaf),
    /// The result of an instruction with this number.
    Result(InstId, u32),
    /// The argument of a region with this number.
    Argument(RegionId, u32),
}

/// A value without an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leaf {
    /// These bits.
    Lit {
        /// Canonical in the kernel's float mode.
        bits: u64,
    },
    /// An id or a count.
    Builtin {
        /// Which.
        builtin: Builtin,
    },
    /// The number of elements of a buffer.
    Len {
        /// The buffer.
        buffer: BufferId,
    },
}

/// What is computed from values alone: the same operands give the same value, and nothing else happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// An op on one operand.
    Unary {
        /// The op.
        op: UnaryOp,
        /// What its type variable stands for.
        ty: Scalar,
        /// The operand.
        operand: Value,
    },
    /// An op on two operands.
    Binary {
        /// The op.
        op: BinaryOp,
        /// What its type variable stands for.
        ty: Scalar,
        /// The left operand.
        left: Value,
        /// The right operand.
        right: Value,
    },
    /// An op on three operands.
    Ternary {
        /// The op.
        op: TernaryOp,
        /// What its type variable stands for.
        ty: Scalar,
        /// The operands, in order.
        operands: [Value; 3],
    },
    /// A conversion.
    Cast {
        /// The type of the operand.
        from: Scalar,
        /// The type of the result.
        to: Scalar,
        /// The operand.
        value: Value,
    },
    /// The same bits as another type.
    Bitcast {
        /// The type of the operand.
        from: Scalar,
        /// The type of the result.
        to: Scalar,
        /// The operand.
        value: Value,
    },
    /// A vector.
    Vector {
        /// Its components, 2 to 4.
        components: Few<Value, 4>,
    },
    /// One component of a vector.
    Extract {
        /// The vector.
        vector: Value,
        /// Which component, from 0.
        component: u8,
    },
}

impl Op {
    /// The operands, in order.
    #[must_use]
    pub fn operands(&self) -> Few<Value, 4> {
        match *self {
            Op::Unary { operand: only, .. }
            | Op::Cast { value: only, .. }
            | Op::Bitcast { value: only, .. }
            | Op::Extract { vector: only, .. } => Few::of(&[only]),
            Op::Binary { left, right, .. } => Few::of(&[left, right]),
            Op::Ternary { operands, .. } => Few::of(&operands),
            Op::Vector { components } => components,
        }
    }

    fn operands_mut(&mut self) -> &mut [Value] {
        match self {
            Op::Unary { operand: only, .. }
            | Op::Cast { value: only, .. }
            | Op::Bitcast { value: only, .. }
            | Op::Extract { vector: only, .. } => std::slice::from_mut(only),
            // Two fields side by side cannot be borrowed as one slice; see `for_each_operand_mut`.
            Op::Binary { .. } => &mut [],
            Op::Ternary { operands, .. } => operands,
            Op::Vector { components } => components,
        }
    }

    /// The same op; one whose operands may change places has them in the order of their numbers.
    #[must_use]
    pub fn in_one_order(self) -> Op {
        match self {
            Op::Binary { op, ty, left, right } if right < left && op.info().law == Law::Commutes => {
                Op::Binary { op, ty, left: right, right: left }
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Ternary { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Vector { .. }
            | Op::Extract { .. } => self,
        }
    }

    /// Calls `each` with every operand, to change it.
    pub fn for_each_operand_mut(&mut self, each: &mut impl FnMut(&mut Value)) {
        if let Op::Binary { left, right, .. } = self {
            each(left);
            each(right);
        } else {
            self.operands_mut().iter_mut().for_each(each);
        }
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// What it is.
    pub kind: InstKind,
    /// The values it defines: one, or as many as an `if` or loop has, or none.
    pub results: SmallVec<[Value; 4]>,
    /// The statement of the kernel that it comes from.
    pub stmt: StmtId,
}

/// What an instruction is.
#[derive(Clone, Debug)]
pub enum InstKind {
    /// Computes a value.
    Op(Op),
    /// Reads one element.
    Load {
        /// The access.
        access: AccessId,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: Value,
    },
    /// Writes one element.
    Store {
        /// The access.
        access: AccessId,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: Value,
        /// What is written.
        value: Value,
    },
    /// One atomic access; its result is the old value.
    Atomic {
        /// The access.
        access: AccessId,
        /// The op.
        op: AtomicOp,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: Value,
        /// What the op takes beside buffer and index.
        operands: Few<Value, MAX_OPERANDS>,
    },
    /// One exchange among the lanes of a subgroup.
    Subgroup {
        /// The op.
        op: SubgroupOp,
        /// What the op's type variable stands for.
        ty: Scalar,
        /// The operands.
        operands: Few<Value, MAX_OPERANDS>,
    },
    /// Runs one of two regions, which have no arguments.
    If {
        /// A `bool`.
        cond: Value,
        /// Runs if it is true.
        then: RegionId,
        /// Runs if it is false.
        otherwise: RegionId,
    },
    /// Runs the region for each `u32` from `from` to before `to`. Its arguments are the counter and one per initial value.
    Loop {
        /// The first value of the counter.
        from: Value,
        /// One past its last.
        to: Value,
        /// What the arguments are in the first iteration.
        inits: Vec<Value>,
        /// What is repeated.
        body: RegionId,
    },
    /// Waits for the workgroup.
    Barrier,
    /// Waits for the grid.
    GridSync,
}

impl InstKind {
    /// Calls `each` with the operands, in order; not with those of regions below.
    pub fn for_each_operand(&self, each: &mut impl FnMut(Value)) {
        match self {
            InstKind::Op(op) => op.operands().iter().for_each(|operand| each(*operand)),
            InstKind::Load { index, .. } => each(*index),
            InstKind::Store { index, value, .. } => {
                each(*index);
                each(*value);
            }
            InstKind::Atomic { index, operands, .. } => {
                each(*index);
                operands.iter().for_each(|operand| each(*operand));
            }
            InstKind::Subgroup { operands, .. } => operands.iter().for_each(|operand| each(*operand)),
            InstKind::If { cond, .. } => each(*cond),
            InstKind::Loop { from, to, inits, .. } => {
                each(*from);
                each(*to);
                inits.iter().for_each(|init| each(*init));
            }
            InstKind::Barrier | InstKind::GridSync => {}
        }
    }

    /// Calls `each` with the operands, in order, to change them.
    pub fn for_each_operand_mut(&mut self, each: &mut impl FnMut(&mut Value)) {
        match self {
            InstKind::Op(op) => op.for_each_operand_mut(each),
            InstKind::Load { index, .. } => each(index),
            InstKind::Store { index, value, .. } => {
                each(index);
                each(value);
            }
            InstKind::Atomic { index, operands, .. } => {
                each(index);
                operands.iter_mut().for_each(each);
            }
            InstKind::Subgroup { operands, .. } => operands.iter_mut().for_each(each),
            InstKind::If { cond, .. } => each(cond),
            InstKind::Loop { from, to, inits, .. } => {
                each(from);
                each(to);
                inits.iter_mut().for_each(each);
            }
            InstKind::Barrier | InstKind::GridSync => {}
        }
    }

    /// The regions right below, in order.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = RegionId> + use<> {
        let regions = match self {
            InstKind::If { then, otherwise, .. } => [Some(*then), Some(*otherwise)],
            InstKind::Loop { body, .. } => [Some(*body), None],
            InstKind::Op(_)
            | InstKind::Load { .. }
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Subgroup { .. }
            | InstKind::Barrier
            | InstKind::GridSync => [None, None],
        };
        regions.into_iter().flatten()
    }

    /// What the instruction itself does, not those below it.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            InstKind::Store { buffer, .. } => Effect::Write(*buffer),
            InstKind::Atomic { op, buffer, .. } => Effect::of_atomic(*op, *buffer),
            InstKind::Subgroup { .. } => Effect::Subgroup,
            InstKind::Barrier => Effect::Workgroup,
            InstKind::GridSync => Effect::Grid,
            InstKind::Op(_) | InstKind::Load { .. } | InstKind::If { .. } | InstKind::Loop { .. } => Effect::None,
        }
    }
}

/// Instructions in order.
#[derive(Clone, Debug)]
pub struct Region {
    /// Values that the instruction around it provides. Only loops have any: the counter, and what is carried.
    pub args: Vec<Value>,
    /// The instructions.
    pub insts: Vec<InstId>,
    /// How it ends.
    pub end: Terminator,
    /// The statement of the kernel that its terminator comes from: `break`, `return`, or the `if` or loop that it is part of.
    pub stmt: StmtId,
}

/// How a region ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terminator {
    /// Control reaches the end: of an arm, with the results of the `if`; of a loop body, with what is carried to the next iteration.
    Yield(Vec<Value>),
    /// Leaves the innermost loop with these results.
    Break(Vec<Value>),
    /// Goes on with the next iteration of the innermost loop, with these arguments.
    Continue(Vec<Value>),
    /// Retires the invocation.
    Return,
    /// Retires the invocation and makes the dispatch an error.
    Trap(u32),
    /// Never reached.
    Unreachable,
}

impl Terminator {
    /// The values it hands on.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        match self {
            Terminator::Yield(values) | Terminator::Break(values) | Terminator::Continue(values) => values,
            Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => &[],
        }
    }

    /// The values it hands on, to change them.
    pub fn values_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Terminator::Yield(values) | Terminator::Break(values) | Terminator::Continue(values) => Some(values),
            Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => None,
        }
    }

    /// Whether control goes on behind the instruction that the region belongs to.
    #[must_use]
    pub fn is_yield(&self) -> bool {
        match self {
            Terminator::Yield(_) => true,
            Terminator::Break(_)
            | Terminator::Continue(_)
            | Terminator::Return
            | Terminator::Trap(_)
            | Terminator::Unreachable => false,
        }
    }
}

impl Ssa {
    /// An instruction.
    #[must_use]
    pub fn inst(&self, id: InstId) -> &Inst {
        &self.insts[id.index()]
    }

    /// A region.
    #[must_use]
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// What is known of a value.
    #[must_use]
    pub fn value(&self, value: Value) -> &ValueInfo {
        &self.values[value.index()]
    }

    /// The leaf that a value is.
    #[must_use]
    pub fn leaf(&self, value: Value) -> Option<Leaf> {
        match self.value(value).def {
            Def::Leaf(leaf) => Some(leaf),
            Def::Result(..) | Def::Argument(..) => None,
        }
    }

    /// The bits of a value that is a literal.
    #[must_use]
    pub fn literal(&self, value: Value) -> Option<u64> {
        match self.leaf(value)? {
            Leaf::Lit { bits } => Some(bits),
            Leaf::Builtin { .. } | Leaf::Len { .. } => None,
        }
    }

    /// The op that computes a value.
    #[must_use]
    pub fn op(&self, value: Value) -> Option<&Op> {
        match self.value(value).def {
            Def::Result(inst, _) => match &self.inst(inst).kind {
                InstKind::Op(op) => Some(op),
                InstKind::Load { .. }
                | InstKind::Store { .. }
                | InstKind::Atomic { .. }
                | InstKind::Subgroup { .. }
                | InstKind::If { .. }
                | InstKind::Loop { .. }
                | InstKind::Barrier
                | InstKind::GridSync => None,
            },
            Def::Leaf(_) | Def::Argument(..) => None,
        }
    }

    /// The value of a leaf.
    pub fn leaf_value(&mut self, leaf: Leaf, ty: ValueType) -> Value {
        let values = &mut self.values;
        *self.leaves.entry((leaf, ty)).or_insert_with(|| {
            values.push(ValueInfo { ty, def: Def::Leaf(leaf), var: None });
            Value(values.len() as u32 - 1)
        })
    }

    /// The value of a literal.
    pub fn lit(&mut self, ty: Scalar, bits: u64) -> Value {
        self.leaf_value(Leaf::Lit { bits }, ty.into())
    }

    fn new_value(&mut self, ty: ValueType, def: Def, var: Option<VarId>) -> Value {
        self.values.push(ValueInfo { ty, def, var });
        Value(self.values.len() as u32 - 1)
    }

    /// Calls `each` with every instruction that is reached from a region, outer before inner, in order.
    pub fn for_each_inst(&self, region: RegionId, each: &mut impl FnMut(InstId, &Inst)) {
        for id in &self.region(region).insts {
            let inst = self.inst(*id);
            each(*id, inst);
            for inner in inst.kind.regions() {
                self.for_each_inst(inner, each);
            }
        }
    }

    /// Calls `each` with every region that is reached from a region, itself first.
    pub fn for_each_region(&self, region: RegionId, each: &mut impl FnMut(RegionId, &Region)) {
        each(region, self.region(region));
        for id in &self.region(region).insts {
            for inner in self.inst(*id).kind.regions() {
                self.for_each_region(inner, each);
            }
        }
    }

    /// The value of an expression of the kernel; `None` in code that is never reached.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> Option<Value> {
        self.exprs[id.index()]
    }

    /// What a variable holds at a statement of the top level, such as a grid barrier.
    #[must_use]
    pub fn value_at(&self, stmt: StmtId, var: VarId) -> Option<Value> {
        let changes = &self.top_level[var.index()];
        let before = changes.partition_point(|(at, _)| *at < stmt);
        Some(changes[before.checked_sub(1)?].1)
    }
}
