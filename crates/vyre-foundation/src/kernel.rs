//! The resolved form of a valid program: names are numbers, every expression has its type, and everything has an id.
//!
//! Validation produces it once, and everything that runs or compiles programs reads it, so that no backend looks up names or works
//! out types for itself. Only a valid program has one. What is derived from it is not in it: see [`crate::analysis`], whose facts are
//! vectors by the ids of this file.
//!
//! **Layout.** Buffers, variables, expressions, statements and memory accesses each live in one vector, and their ids are indices
//! into it. Operands come before their users. Statements are in source order, a statement before those below it, so that everything
//! below a statement is one range of ids: [`Stmt::end`] is the first statement that is not. A [`Body`] is such a range, and the next
//! statement of a body is found at the end of the one before. A kernel is therefore walked without recursion where nesting does not
//! matter (`for stmt in &kernel.stmts`), and cloned and dropped without it always.

use crate::ir::{Access, AtomicOp, BinaryOp, Builtin, DataType, Name, NodeId, SubgroupOp, TernaryOp, UnaryOp};
use std::ops::{Deref, DerefMut};
use vyre_spec::{FloatMode, Scalar, ValueType};

macro_rules! handles {
    ($( $(#[$meta:meta])* $name:ident; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into the vector it numbers.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}
pub(crate) use handles;

handles! {
    /// A variable: an index into [`Kernel::vars`].
    VarId;
    /// A buffer: an index into [`Kernel::buffers`], which is the order of declaration.
    BufferId;
    /// An expression: an index into [`Kernel::exprs`].
    ExprId;
    /// A statement: an index into [`Kernel::stmts`].
    StmtId;
    /// A load, store or atomic: an index into [`Kernel::accesses`].
    AccessId;
}

/// A resolved program.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Every buffer, in the order of declaration.
    pub buffers: Vec<Buffer>,
    /// Every variable: one per `let`, loop and result.
    pub vars: Vec<Var>,
    /// Every expression.
    pub exprs: Vec<TypedExpr>,
    /// Every statement.
    pub stmts: Vec<Stmt>,
    /// Every load, store and atomic.
    pub accesses: Vec<MemoryAccess>,
    /// Invocations of one workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// What happens to tiny floats.
    pub floats: FloatMode,
    /// Lanes of a subgroup.
    pub subgroup: Option<u32>,
    /// What the program makes use of.
    pub uses: Uses,
}

/// A buffer whose type a kernel can use.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name.
    pub name: Name,
    /// What may be done with it.
    pub access: Access,
    /// Its binding; workgroup memory has none.
    pub binding: Option<u32>,
    /// The type of an element in memory.
    pub element: DataType,
    /// The type of an element once loaded.
    pub value: ValueType,
    /// The declared count.
    pub count: Option<u32>,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name; other variables may have the same in scopes that do not overlap.
    pub name: Name,
    /// Its type.
    pub ty: ValueType,
    /// What declares it.
    pub kind: VarKind,
    /// Whether nothing assigns to it after its declaration. A counter is never assigned.
    pub set_once: bool,
    /// The statement that declares it.
    pub declared: StmtId,
}

/// What declares a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VarKind {
    /// A `let`.
    Let,
    /// A loop; the variable counts its iterations.
    Counter,
    /// An atomic or subgroup operation, whose result it holds.
    Result,
}

/// An expression with its type.
#[derive(Clone, Copy, Debug)]
pub struct TypedExpr {
    /// What it is.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: ValueType,
    /// Where it stands in the program.
    pub node: NodeId,
}

/// What an expression is. Ops carry the scalar their type variable stands for.
#[derive(Clone, Copy, Debug)]
pub enum ExprKind {
    /// These bits.
    Lit {
        /// Canonical in the program's float mode.
        bits: u64,
    },
    /// The value of a variable.
    Var {
        /// The variable.
        var: VarId,
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
    /// One element of a buffer.
    Load {
        /// The access.
        access: AccessId,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: ExprId,
    },
    /// An op on one operand.
    Unary {
        /// The op.
        op: UnaryOp,
        /// What its type variable stands for.
        ty: Scalar,
        /// The operand.
        operand: ExprId,
    },
    /// An op on two operands.
    Binary {
        /// The op.
        op: BinaryOp,
        /// What its type variable stands for.
        ty: Scalar,
        /// The left operand.
        left: ExprId,
        /// The right operand.
        right: ExprId,
    },
    /// An op on three operands.
    Ternary {
        /// The op.
        op: TernaryOp,
        /// What its type variable stands for.
        ty: Scalar,
        /// The operands, in order.
        operands: [ExprId; 3],
    },
    /// A conversion.
    Cast {
        /// The type of the operand.
        from: Scalar,
        /// The type of the result.
        to: Scalar,
        /// The operand.
        value: ExprId,
    },
    /// The same bits as another type.
    Bitcast {
        /// The type of the operand.
        from: Scalar,
        /// The type of the result.
        to: Scalar,
        /// The operand.
        value: ExprId,
    },
    /// A vector.
    Vector {
        /// Its components, 2 to 4.
        components: Few<ExprId, 4>,
    },
    /// One component of a vector.
    Extract {
        /// The vector.
        vector: ExprId,
        /// Which component, from 0.
        component: u8,
    },
}

impl ExprKind {
    /// The expressions right below, in source order.
    #[must_use]
    pub fn operands(&self) -> Few<ExprId, 4> {
        match *self {
            ExprKind::Lit { .. } | ExprKind::Var { .. } | ExprKind::Builtin { .. } | ExprKind::Len { .. } => Few::of(&[]),
            ExprKind::Load { index: only, .. }
            | ExprKind::Unary { operand: only, .. }
            | ExprKind::Cast { value: only, .. }
            | ExprKind::Bitcast { value: only, .. }
            | ExprKind::Extract { vector: only, .. } => Few::of(&[only]),
            ExprKind::Binary { left, right, .. } => Few::of(&[left, right]),
            ExprKind::Ternary { operands, .. } => Few::of(&operands),
            ExprKind::Vector { components } => components,
        }
    }
}

/// Up to `N` ids, kept in place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Few<T, const N: usize> {
    ids: [T; N],
    len: u8,
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// These ids, of which there are at most `N`.
    #[must_use]
    pub fn of(list: &[T]) -> Few<T, N> {
        let mut ids = [T::default(); N];
        ids[..list.len()].copy_from_slice(list);
        Few { ids, len: list.len() as u8 }
    }

    /// As many ids, each changed.
    #[must_use]
    pub fn map<U: Copy + Default>(&self, mut change: impl FnMut(T) -> U) -> Few<U, N> {
        let mut ids = [U::default(); N];
        ids.iter_mut().zip(self.iter()).for_each(|(new, old)| *new = change(*old));
        Few { ids, len: self.len }
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.ids[..usize::from(self.len)]
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.ids[..usize::from(self.len)]
    }
}

impl<T, const N: usize> IntoIterator for Few<T, N> {
    type Item = T;
    type IntoIter = std::iter::Take<std::array::IntoIter<T, N>>;

    fn into_iter(self) -> Self::IntoIter {
        self.ids.into_iter().take(usize::from(self.len))
    }
}

/// A load, store or atomic.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess {
    /// What it does to its element.
    pub kind: AccessKind,
    /// The buffer.
    pub buffer: BufferId,
    /// The element.
    pub index: ExprId,
    /// The statement that does it, or whose expressions the load is part of.
    pub stmt: StmtId,
    /// The load expression, or the store or atomic, in the program. Its index is the next node.
    pub node: NodeId,
}

/// What an access does to its element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AccessKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic that only reads.
    AtomicLoad,
    /// An atomic that can change the element. One that may leave it as it is, such as a compare-exchange, counts as changing it:
    /// devices lock the element, or write the old value back.
    Atomic,
}

impl AccessKind {
    /// What an atomic op does to its element.
    #[must_use]
    pub fn of_atomic(op: AtomicOp) -> AccessKind {
        match op.info().effect {
            vyre_spec::Effect::Pure | vyre_spec::Effect::AtomicRead => AccessKind::AtomicLoad,
            vyre_spec::Effect::AtomicWrite | vyre_spec::Effect::Convergent => AccessKind::Atomic,
        }
    }

    /// Whether it can change its element.
    #[must_use]
    pub fn writes(self) -> bool {
        match self {
            AccessKind::Load | AccessKind::AtomicLoad => false,
            AccessKind::Store | AccessKind::Atomic => true,
        }
    }
}

/// A statement.
#[derive(Clone, Copy, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands in the program.
    pub node: NodeId,
    /// The first statement behind it that is not below it.
    pub end: StmtId,
}

/// Consecutive statements and all that is below them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body {
    /// The first statement.
    pub first: StmtId,
    /// The first statement behind the body.
    pub end: StmtId,
}

impl Body {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.first == self.end
    }

    /// Whether a statement is in it, at any depth.
    #[must_use]
    pub fn contains(self, stmt: StmtId) -> bool {
        (self.first..self.end).contains(&stmt)
    }

    /// The statements in it, at any depth, as a range of indices.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        self.first.index()..self.end.index()
    }
}

/// Most operands that an atomic or subgroup operation takes beside buffer and index.
pub const MAX_OPERANDS: usize =
    if AtomicOp::MAX_OPERANDS > SubgroupOp::MAX_OPERANDS { AtomicOp::MAX_OPERANDS } else { SubgroupOp::MAX_OPERANDS };

/// What a statement is.
#[derive(Clone, Copy, Debug)]
pub enum StmtKind {
    /// Gives a variable its first value.
    Let {
        /// The variable.
        var: VarId,
        /// The value.
        value: ExprId,
    },
    /// Gives a variable another value.
    Assign {
        /// The variable.
        var: VarId,
        /// The value.
        value: ExprId,
    },
    /// Writes one element.
    Store {
        /// The access.
        access: AccessId,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: ExprId,
        /// What is written.
        value: ExprId,
    },
    /// One atomic access.
    Atomic {
        /// The access.
        access: AccessId,
        /// Where the old value goes.
        result: Option<VarId>,
        /// The op.
        op: AtomicOp,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: ExprId,
        /// What the op takes beside buffer and index.
        operands: Few<ExprId, MAX_OPERANDS>,
    },
    /// One exchange among the lanes of a subgroup.
    Subgroup {
        /// Where the result goes.
        result: Option<VarId>,
        /// The op.
        op: SubgroupOp,
        /// What the op's type variable stands for.
        ty: Scalar,
        /// The operands.
        operands: Few<ExprId, MAX_OPERANDS>,
    },
    /// Runs one of two bodies.
    If {
        /// A `bool`.
        cond: ExprId,
        /// Runs if it is true.
        then: Body,
        /// Runs if it is false.
        otherwise: Body,
    },
    /// Runs the body with the counter going from the first bound to before the second; both are evaluated once.
    Loop {
        /// The counter.
        counter: VarId,
        /// Its first value.
        from: ExprId,
        /// One past its last.
        to: ExprId,
        /// What is repeated.
        body: Body,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next iteration of the innermost loop.
    Continue,
    /// Retires the invocation.
    Return,
    /// Waits for the workgroup.
    Barrier,
    /// Waits for the grid.
    GridSync,
    /// Retires the invocation and makes the dispatch an error.
    Trap {
        /// A number for the host.
        tag: u32,
    },
    /// A scope; names are resolved, so it only groups.
    Scope {
        /// The statements.
        body: Body,
    },
}

/// What a statement does beside giving a variable a value and deciding where control goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing that anybody else can see.
    None,
    /// It writes an element of the buffer.
    Write(BufferId),
    /// It reads an element of the buffer atomically: where one looks for what others have written.
    AtomicRead(BufferId),
    /// It changes an element of the buffer atomically.
    AtomicWrite(BufferId),
    /// It waits for the lanes of its subgroup.
    Subgroup,
    /// It waits for its workgroup.
    Workgroup,
    /// It waits for the grid.
    Grid,
    /// It ends the dispatch with an error.
    Trap,
}

impl Effect {
    /// Whether it has to happen even if nobody uses its result.
    #[must_use]
    pub fn has_side_effect(self) -> bool {
        match self {
            Effect::None | Effect::AtomicRead(_) => false,
            Effect::Write(_) | Effect::AtomicWrite(_) | Effect::Subgroup | Effect::Workgroup | Effect::Grid | Effect::Trap => {
                true
            }
        }
    }

    /// Whether it is a rendezvous: a statement that all invocations of a workgroup reach together.
    #[must_use]
    pub fn is_rendezvous(self) -> bool {
        match self {
            Effect::Subgroup | Effect::Workgroup | Effect::Grid => true,
            Effect::None | Effect::Write(_) | Effect::AtomicRead(_) | Effect::AtomicWrite(_) | Effect::Trap => false,
        }
    }

    /// Whether what this invocation reads from the buffer may be another value after it.
    #[must_use]
    pub fn may_change(self, kernel: &Kernel, buffer: BufferId) -> bool {
        match self {
            Effect::None | Effect::Trap => false,
            Effect::Write(changed) | Effect::AtomicRead(changed) | Effect::AtomicWrite(changed) => changed == buffer,
            Effect::Subgroup | Effect::Workgroup | Effect::Grid => kernel.buffer(buffer).access.is_writable(),
        }
    }

    /// The effect of an atomic op on a buffer.
    #[must_use]
    pub fn of_atomic(op: AtomicOp, buffer: BufferId) -> Effect {
        match AccessKind::of_atomic(op) {
            AccessKind::Load | AccessKind::AtomicLoad => Effect::AtomicRead(buffer),
            AccessKind::Store | AccessKind::Atomic => Effect::AtomicWrite(buffer),
        }
    }
}

/// What a statement is made of, whatever its kind.
struct StmtParts {
    operands: Few<ExprId, { 1 + MAX_OPERANDS }>,
    bodies: [Option<Body>; 2],
    defines: Option<VarId>,
    ends: bool,
    effect: Effect,
}

impl StmtKind {
    /// What all the questions below are answered from.
    #[inline(always)]
    fn parts(&self) -> StmtParts {
        let of = |operands: &[ExprId]| StmtParts {
            operands: Few::of(operands),
            bodies: [None, None],
            defines: None,
            ends: false,
            effect: Effect::None,
        };
        match *self {
            StmtKind::Let { var, value } | StmtKind::Assign { var, value } => StmtParts { defines: Some(var), ..of(&[value]) },
            StmtKind::Store { access: _, buffer, index, value } => {
                StmtParts { effect: Effect::Write(buffer), ..of(&[index, value]) }
            }
            StmtKind::Atomic { access: _, result, op, buffer, index, operands } => {
                let mut all = Few { ids: [index; 1 + MAX_OPERANDS], len: 1 + operands.len };
                all.ids[1..].copy_from_slice(&operands.ids);
                StmtParts { operands: all, defines: result, effect: Effect::of_atomic(op, buffer), ..of(&[]) }
            }
            StmtKind::Subgroup { result, op: _, ty: _, operands } => {
                StmtParts { defines: result, effect: Effect::Subgroup, ..of(&operands) }
            }
            StmtKind::If { cond, then, otherwise } => StmtParts { bodies: [Some(then), Some(otherwise)], ..of(&[cond]) },
            StmtKind::Loop { counter, from, to, body } => {
                StmtParts { defines: Some(counter), bodies: [Some(body), None], ..of(&[from, to]) }
            }
            StmtKind::Scope { body } => StmtParts { bodies: [Some(body), None], ..of(&[]) },
            StmtKind::Break | StmtKind::Continue | StmtKind::Return => StmtParts { ends: true, ..of(&[]) },
            StmtKind::Barrier => StmtParts { effect: Effect::Workgroup, ..of(&[]) },
            StmtKind::GridSync => StmtParts { effect: Effect::Grid, ..of(&[]) },
            StmtKind::Trap { tag: _ } => StmtParts { ends: true, effect: Effect::Trap, ..of(&[]) },
        }
    }

    /// The expressions of this statement, in source order; not those of statements below it.
    #[must_use]
    pub fn operands(&self) -> Few<ExprId, { 1 + MAX_OPERANDS }> {
        self.parts().operands
    }

    /// The bodies right below, in source order.
    pub fn bodies(&self) -> impl DoubleEndedIterator<Item = Body> + use<> {
        self.parts().bodies.into_iter().flatten()
    }

    /// The variable that the statement gives a value to, by declaring or by assigning it.
    #[must_use]
    pub fn defines(&self) -> Option<VarId> {
        self.parts().defines
    }

    /// Whether control never goes on behind the statement. What follows from the statements below it is not asked.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.parts().ends
    }

    /// What the statement itself does, not those below it.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.parts().effect
    }
}

/// What a program makes use of, for capabilities, launch rules and choices of strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Uses {
    /// `barrier` within the workgroup.
    pub barrier: bool,
    /// `barrier.grid`.
    pub grid_sync: bool,
    /// Subgroup operations, `subgroup.lane` or `subgroup.size`.
    pub subgroup: bool,
    /// Atomic operations.
    pub atomics: bool,
    /// Workgroup memory.
    pub workgroup_memory: bool,
    /// Local or workgroup ids, or their counts.
    pub group_shape: bool,
    /// `f64` values or buffers.
    pub f64: bool,
    /// `u64` or `i64` values or buffers.
    pub int64: bool,
    /// `trap`.
    pub trap: bool,
    /// Whether an id along x, y or z is read.
    pub axes: [bool; 3],
}

impl Kernel {
    /// An expression.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &TypedExpr {
        &self.exprs[id.index()]
    }

    /// A statement.
    #[must_use]
    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.index()]
    }

    /// A buffer.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// A variable.
    #[must_use]
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    /// An access.
    #[must_use]
    pub fn access(&self, id: AccessId) -> &MemoryAccess {
        &self.accesses[id.index()]
    }

    /// All statements of the program.
    #[must_use]
    pub fn body(&self) -> Body {
        Body { first: StmtId(0), end: StmtId(self.stmts.len() as u32) }
    }

    /// The statements of a body, not those below them, in order.
    #[must_use]
    pub fn stmts_of(&self, body: Body) -> StmtsOf<'_> {
        StmtsOf { kernel: self, body }
    }

    /// Calls `each` with an expression and every expression below it; users before their operands.
    pub fn for_each_part(&self, expr: ExprId, each: &mut impl FnMut(ExprId, &TypedExpr)) {
        let typed = self.expr(expr);
        each(expr, typed);
        for operand in typed.kind.operands() {
            self.for_each_part(operand, each);
        }
    }

    /// Why a launch cannot run the kernel with another workgroup size than the declared one: the program can tell. `None` if it
    /// can, and then nothing may rest on the declared size.
    #[must_use]
    pub fn size_matters(&self) -> Option<&'static str> {
        let reasons = [
            (self.uses.workgroup_memory, "it has workgroup memory"),
            (self.uses.barrier || self.uses.grid_sync, "it has barriers"),
            (self.uses.subgroup, "it uses subgroups"),
            (self.uses.group_shape, "it reads local or workgroup ids or counts"),
        ];
        reasons.iter().find(|(applies, _)| *applies).map(|(_, reason)| *reason)
    }

    /// Invocations of one workgroup.
    #[must_use]
    pub fn workgroup_invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }
}

/// The statements of a body, in order.
#[derive(Clone)]
pub struct StmtsOf<'k> {
    kernel: &'k Kernel,
    body: Body,
}

impl<'k> Iterator for StmtsOf<'k> {
    type Item = (StmtId, &'k Stmt);

    fn next(&mut self) -> Option<(StmtId, &'k Stmt)> {
        if self.body.is_empty() {
            return None;
        }
        let id = self.body.first;
        let stmt = self.kernel.stmt(id);
        self.body.first = stmt.end;
        Some((id, stmt))
    }
}
