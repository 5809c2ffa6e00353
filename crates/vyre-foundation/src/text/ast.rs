//! What the parser reads: the IR, with integers whose type is not decided yet.
//!
//! Most of a text becomes IR at once, because whatever stands between the two has to be held in memory beside both. What the IR has no
//! place for is said beside it: which integers have no type yet, and what stands in for something that could not be read.

use crate::diagnostic::{Poison, Span};
use crate::ir::{BufferDecl, ConstDecl, Expr, FloatMode, Literal, Name, Node, Size};
use vyre_spec::Scalar;

/// A program.
pub(super) struct Program {
    /// The name; `None` for a raw program.
    pub(super) name: Option<Name>,
    /// The name, or the word `raw`.
    pub(super) name_span: Span,
    pub(super) header: Header,
    pub(super) body: Vec<Node>,
    /// What is said beside the body about each of its literals and vectors, in the order of the walk.
    pub(super) readings: Vec<Reading>,
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

/// An expression, and what is around it in the text.
pub(super) struct Built {
    pub(super) expr: Expr,
    /// Where it stands, with the parentheses around it.
    pub(super) outer: Span,
    /// How many expressions are on the longest path from here downwards, this one included; as [`crate::ir::Walk`] will count them.
    pub(super) height: u32,
}

/// What the tree does not say about a literal or a vector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reading {
    /// Nothing: it is what it is.
    Plain,
    /// It is an integer whose type its context decides. Its magnitude stands there.
    Open,
    /// The same with a minus.
    OpenNegative,
    /// The same for an integer that is too large for every type.
    OpenTooLarge,
    /// It is something with a mistake that was reported, as a vector of its operands.
    Unknown,
}

impl Reading {
    /// The integer whose type is open, which stands in the tree as this.
    pub(super) fn open(self, magnitude: u64) -> Option<OpenInt> {
        let open = |negative, magnitude| Some(OpenInt { negative, magnitude });
        match self {
            Reading::Open => open(false, Some(magnitude)),
            Reading::OpenNegative => open(true, Some(magnitude)),
            Reading::OpenTooLarge => open(false, None),
            Reading::Plain | Reading::Unknown => None,
        }
    }
}

/// An integer without suffix.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct OpenInt {
    pub(super) negative: bool,
    /// `None` if it is too large for every type.
    pub(super) magnitude: Option<u64>,
}

impl OpenInt {
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
