//! The IR: a program is buffers, constants, a workgroup size, attributes and a tree of statements.
//!
//! - A [`Program`] is immutable and shared; it is built by constructors and taken apart by [`Program::parts`].
//! - [`Node`]s are statements: they change variables and memory, direct control, and synchronise.
//! - [`Expr`]s are pure: they read variables, ids and memory and change nothing, so the order of their evaluation cannot be seen.
//!   All operands of `&&`, `||` and `select` are evaluated.
//! - Names are the only references. A name has one meaning at every point: nothing may be declared twice in overlapping scopes.
//!   `if` arms, loop bodies, blocks and regions are scopes.
//!
//! The tree is plain data, as deep as its builder made it. Dropping, cloning, comparing and encoding it do not recurse; everything
//! else works on validated programs, whose nesting is bounded.
//!
//! Facts about parts of a program (source spans, diagnostics) are kept beside it, by [`NodeId`]: the number of the statement or
//! expression in a walk in source order (see [`Program::walk`]).

mod buffer;
mod expr;
mod literal;
mod name;
mod node;
mod operators;
mod program;
mod tree;

pub use buffer::{Access, BufferDecl, Element, Size};
pub use expr::{Child, Expr, Load};
pub use literal::{F32Bits, F64Bits, Literal};
pub use name::Name;
pub use node::{Atomic, Body, Loop, Node, Store, Subgroup};
pub(crate) use program::Counts;
pub use program::{ConstDecl, Fingerprint, Parts, Program};
pub use tree::{Item, NodeId, Walk};

pub use crate::specialize::SpecValue;
pub use vyre_spec::{
    AtomicOp, Axis, BinaryOp, Builtin, DataType, FloatMode, OpId, Scalar, SubgroupOp, TernaryOp, UnaryOp, ValueType,
};
