//! What the parser reads: the program with every span, and with integers whose type is not decided yet.
//!
//! Declarations have their final form already. Statements and expressions mirror the IR; parentheses leave a trace in the spans only.

use super::number;
use crate::diagnostic::{Poison, Span};
use crate::ir::{BufferDecl, ConstDecl, FloatMode, Literal, Name, Size};
use crate::memory_model::MemoryOrdering;
use vyre_spec::{AtomicOp, BinaryOp, Builtin, Scalar, SubgroupOp, TernaryOp, UnaryOp};

/// A program.
pub(super) struct Program {
    /// The name; `None` for a raw program.
    pub(super) name: Option<Name>,
    /// The name, or the word `raw`.
    pub(super) name_span: Span,
    /// From the first word to the closing brace.
    pub(super) span: Span,
    pub(super) header: Header,
    pub(super) body: Vec<Stmt>,
    /// How many statements and expressions there are at most.
    pub(super) nodes: usize,
    /// How many integers without a type there are at most.
    pub(super) open: usize,
}

/// The declarations.
#[derive(Default)]
pub(super) struct Header {
    /// With the spans of the whole and of the axes.
    pub(super) workgroup: Option<([Size; 3], Span, [Span; 3])>,
    pub(super) floats: Option<(FloatMode, Span)>,
    pub(super) subgroup: Option<(u32, Span)>,
    /// Each with the span of its name.
    pub(super) consts: Vec<(ConstDecl, Span)>,
    /// Each with its spans as [`crate::diagnostic::Spans::buffers`] has them.
    pub(super) buffers: Vec<(BufferDecl, [Span; 5])>,
    /// The parts of them that have a mistake.
    pub(super) poison: Poison,
}

/// A statement.
pub(super) struct Stmt {
    pub(super) kind: StmtKind,
    pub(super) span: Span,
    pub(super) head: Span,
}

/// Two words, because lists of statements can be long.
pub(super) enum StmtKind {
    Let(Box<(Name, Expr)>),
    Assign(Box<(Name, Expr)>),
    Store(Box<(Name, [Expr; 2])>),
    Atomic(Box<Atomic>),
    Subgroup(Box<Subgroup>),
    If(Box<(Expr, [Vec<Stmt>; 2])>),
    Loop(Box<Loop>),
    Break,
    Continue,
    Return,
    Barrier(MemoryOrdering),
    Trap(u32),
    /// One without statements is not boxed.
    #[expect(clippy::box_collection, reason = "all statements are as large as the largest")]
    Block(Option<Box<Vec<Stmt>>>),
    Region(Box<(Name, Vec<Stmt>)>),
}

/// An atomic operation.
pub(super) struct Atomic {
    pub(super) result: Option<(Name, Span)>,
    pub(super) op: AtomicOp,
    /// Where the op stands.
    pub(super) function: Span,
    pub(super) buffer: Name,
    pub(super) index: Expr,
    pub(super) operands: Vec<Expr>,
}

/// A subgroup operation.
pub(super) struct Subgroup {
    pub(super) result: Option<(Name, Span)>,
    pub(super) op: SubgroupOp,
    pub(super) operands: Vec<Expr>,
}

/// A loop.
pub(super) struct Loop {
    pub(super) var: Name,
    pub(super) bounds: [Expr; 2],
    pub(super) body: Vec<Stmt>,
}

/// An expression.
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    /// Without parentheses around it.
    pub(super) span: Span,
    /// With them.
    pub(super) outer: Span,
    pub(super) head: Span,
    /// How many expressions are on the longest path from here downwards, this one included; as [`crate::ir::Walk`] will count them.
    pub(super) height: u32,
}

/// Three words: only a vector needs them all, and the capacities that no vector has tell the variants apart.
pub(super) enum ExprKind {
    Lit(Literal),
    /// An integer whose type its context decides; what it says is at its span.
    Open,
    Var(Name),
    Builtin(Builtin),
    Len(Name),
    Load(Box<(Name, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<[Expr; 2]>),
    Ternary(TernaryOp, Box<[Expr; 3]>),
    Cast(Scalar, Box<Expr>),
    Bitcast(Scalar, Box<Expr>),
    Vector(Vec<Expr>),
    Extract(Box<Expr>, u8),
    /// Something with a mistake that was reported, over these operands.
    #[expect(clippy::box_collection, reason = "all expressions are as large as the largest")]
    Unknown(Box<Vec<Expr>>),
}

/// An integer without suffix.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct OpenInt {
    pub(super) negative: bool,
    /// `None` if it is too large for every type.
    pub(super) magnitude: Option<u64>,
}

impl OpenInt {
    /// The integer without suffix at this span of a text. Between its sign and its digits there may be space and comments.
    pub(super) fn at(text: &str) -> OpenInt {
        let digits = text.rsplit(char::is_whitespace).next().unwrap_or_default().trim_start_matches('-');
        OpenInt { negative: text.starts_with('-'), magnitude: number::int(digits).flatten() }
    }

    /// The integer as a constant of type `scalar`; `None` if that is no integer type or the number does not fit.
    pub(super) fn of_type(self, scalar: Scalar) -> Option<Literal> {
        let magnitude = i128::from(self.magnitude?);
        let value = if self.negative { -magnitude } else { magnitude };
        match scalar {
            Scalar::U32 => value.try_into().ok().map(Literal::U32),
            Scalar::I32 => value.try_into().ok().map(Literal::I32),
            Scalar::U64 => value.try_into().ok().map(Literal::U64),
            Scalar::I64 => value.try_into().ok().map(Literal::I64),
            Scalar::Bool | Scalar::F32 | Scalar::F64 => None,
        }
    }
}
