//! The resolved form of a valid program: names are numbers, every expression has its type, and what varies is known.
//!
//! Validation produces it once and everything that runs or compiles programs reads it, so that no backend looks up names or works
//! out types and uniformity for itself. Only a valid program has one. Expressions live in one vector, operands before their users;
//! statements are a tree whose depth is bounded by [`vyre_spec::limits::MAX_NESTING`].

use crate::ir::{Access, AtomicOp, BinaryOp, Builtin, DataType, Name, NodeId, SubgroupOp, TernaryOp, UnaryOp};
use vyre_spec::{FloatMode, Scalar, ValueType};

macro_rules! handles {
    ($( $(#[$meta:meta])* $name:ident; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

handles! {
    /// A variable: an index into [`Kernel::vars`].
    VarId;
    /// A buffer: an index into [`Kernel::buffers`], which is the order of declaration.
    BufferId;
    /// An expression: an index into [`Kernel::exprs`].
    ExprId;
}

/// A resolved program.
#[derive(Debug)]
pub struct Kernel {
    /// Every buffer, in the order of declaration.
    pub buffers: Vec<Buffer>,
    /// Every variable: one per `let`, loop and result.
    pub vars: Vec<Var>,
    /// Every expression.
    pub exprs: Vec<TypedExpr>,
    /// The statements.
    pub body: Vec<Stmt>,
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
    /// Whether all invocations of a workgroup that are not retired hold the same value.
    pub uniform: bool,
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct TypedExpr {
    /// What it is.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: ValueType,
    /// Where it stands in the program.
    pub place: NodeId,
    /// Whether all invocations of a workgroup that are not retired get the same value.
    pub uniform: bool,
}

/// What an expression is. Ops carry the scalar their type variable stands for.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// These bits.
    Lit(u64),
    /// The value of a variable.
    Var(VarId),
    /// An id or a count.
    Builtin(Builtin),
    /// The number of elements of a buffer.
    Len(BufferId),
    /// One element of a buffer.
    Load(BufferId, ExprId),
    /// An op on one operand.
    Unary(UnaryOp, Scalar, ExprId),
    /// An op on two operands.
    Binary(BinaryOp, Scalar, ExprId, ExprId),
    /// An op on three operands.
    Ternary(TernaryOp, Scalar, [ExprId; 3]),
    /// A conversion from the first scalar to the second.
    Cast(Scalar, Scalar, ExprId),
    /// The bits of the first scalar as the second.
    Bitcast(Scalar, Scalar, ExprId),
    /// A vector of these components.
    Vector(Vec<ExprId>),
    /// One component of a vector.
    Extract(ExprId, u8),
}

impl ExprKind {
    /// The expressions right below, in source order.
    #[must_use]
    pub fn operands(&self) -> Vec<ExprId> {
        match self {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Builtin(_) | ExprKind::Len(_) => Vec::new(),
            ExprKind::Load(_, only)
            | ExprKind::Unary(_, _, only)
            | ExprKind::Cast(_, _, only)
            | ExprKind::Bitcast(_, _, only)
            | ExprKind::Extract(only, _) => vec![*only],
            ExprKind::Binary(_, _, left, right) => vec![*left, *right],
            ExprKind::Ternary(_, _, operands) => operands.to_vec(),
            ExprKind::Vector(components) => components.clone(),
        }
    }
}

/// A statement.
#[derive(Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands in the program.
    pub place: NodeId,
}

/// What a statement is.
#[derive(Debug)]
pub enum StmtKind {
    /// Gives a variable its first value.
    Let(VarId, ExprId),
    /// Gives a variable another value.
    Assign(VarId, ExprId),
    /// Writes one element.
    Store(BufferId, ExprId, ExprId),
    /// One atomic access.
    Atomic {
        /// Where the old value goes.
        result: Option<VarId>,
        /// The op.
        op: AtomicOp,
        /// The buffer.
        buffer: BufferId,
        /// The element.
        index: ExprId,
        /// What the op takes beside buffer and index.
        operands: Vec<ExprId>,
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
        operands: Vec<ExprId>,
    },
    /// Runs one of two bodies.
    If(ExprId, Vec<Stmt>, Vec<Stmt>),
    /// Runs the body with the variable counting from the first to before the second.
    Loop(VarId, ExprId, ExprId, Vec<Stmt>),
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next round of the innermost loop.
    Continue,
    /// Retires the invocation.
    Return,
    /// Waits for the workgroup.
    Barrier,
    /// Waits for the grid.
    GridSync,
    /// Retires the invocation and makes the dispatch an error.
    Trap(u32),
    /// A scope; names are resolved, so it only groups.
    Scope(Vec<Stmt>),
}

impl StmtKind {
    /// The expressions of this statement, in source order; not those of statements below it.
    #[must_use]
    pub fn exprs(&self) -> Vec<ExprId> {
        match self {
            StmtKind::Let(_, value) | StmtKind::Assign(_, value) => vec![*value],
            StmtKind::Store(_, index, value) => vec![*index, *value],
            StmtKind::Atomic { index, operands, .. } => [*index].into_iter().chain(operands.iter().copied()).collect(),
            StmtKind::Subgroup { operands, .. } => operands.clone(),
            StmtKind::If(cond, ..) => vec![*cond],
            StmtKind::Loop(_, from, to, _) => vec![*from, *to],
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier
            | StmtKind::GridSync
            | StmtKind::Trap(_)
            | StmtKind::Scope(_) => Vec::new(),
        }
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

    /// A buffer.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// Invocations of one workgroup.
    #[must_use]
    pub fn workgroup_invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }
}

/// Calls `each` with every statement, outer before inner, in source order.
pub fn for_each_stmt<'a>(body: &'a [Stmt], each: &mut impl FnMut(&'a Stmt)) {
    for stmt in body {
        each(stmt);
        match &stmt.kind {
            StmtKind::If(_, then, otherwise) => {
                for_each_stmt(then, each);
                for_each_stmt(otherwise, each);
            }
            StmtKind::Loop(_, _, _, body) | StmtKind::Scope(body) => for_each_stmt(body, each),
            StmtKind::Let(..)
            | StmtKind::Assign(..)
            | StmtKind::Store(..)
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier
            | StmtKind::GridSync
            | StmtKind::Trap(_) => {}
        }
    }
}
