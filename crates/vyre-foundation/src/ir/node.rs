//! Statements and their builders.

use super::expr::Expr;
use super::name::Name;
use super::tree;
use crate::memory_model::MemoryOrdering;
use std::fmt;
use std::ops::{Deref, DerefMut};
use vyre_spec::{AtomicOp, SubgroupOp};

/// A statement.
#[derive(Clone, PartialEq, Eq)]
pub enum Node {
    /// Declares a variable until the end of the enclosing scope.
    Let {
        /// The new name.
        name: Name,
        /// Its first value, which also gives its type.
        value: Expr,
    },
    /// Changes a variable that a `Let` declared.
    Assign {
        /// The variable.
        name: Name,
        /// The new value, of the variable's type.
        value: Expr,
    },
    /// Writes one element, narrowed to the buffer's type; dropped out of bounds.
    Store {
        /// A buffer that can be written.
        buffer: Name,
        /// The element; `u32`.
        index: Expr,
        /// The value, of the buffer's value type.
        value: Expr,
    },
    /// One atomic access; out of bounds it gives 0 and changes nothing.
    Atomic {
        /// The variable that gets the op's result, declared here.
        result: Option<Name>,
        /// The op; its table row has the types.
        op: AtomicOp,
        /// A `u32` or `i32` buffer that can be written.
        buffer: Name,
        /// The element; `u32`.
        index: Expr,
        /// What the op takes beside buffer and index.
        operands: Vec<Expr>,
    },
    /// One exchange among the invocations of a subgroup; must be reached uniformly in the workgroup.
    Subgroup {
        /// The variable that gets the op's result, declared here.
        result: Option<Name>,
        /// The op; its table row has the types.
        op: SubgroupOp,
        /// The operands.
        operands: Vec<Expr>,
    },
    /// Runs one of two bodies.
    If {
        /// A `bool`.
        cond: Expr,
        /// Runs if it is true.
        then: Body,
        /// Runs if it is false.
        otherwise: Body,
    },
    /// Runs the body for each `u32` from `from` up to but not including `to`; both are evaluated once.
    Loop {
        /// The counter, declared here for the body, never assignable.
        var: Name,
        /// The first value; `u32`.
        from: Expr,
        /// One past the last; `u32`.
        to: Expr,
        /// What is repeated.
        body: Body,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next round of the innermost loop.
    Continue,
    /// Retires the invocation.
    Return,
    /// Waits for the workgroup, or for the whole grid; must be reached uniformly.
    Barrier {
        /// What is ordered.
        ordering: MemoryOrdering,
    },
    /// Retires the invocation and makes the dispatch an error that carries the tag.
    Trap {
        /// A number for the host.
        tag: u32,
    },
    /// A scope.
    Block(Body),
    /// A scope that remembers what made it.
    Region {
        /// Who made it, for people and tools.
        generator: Name,
        /// The statements.
        body: Body,
    },
}

/// Statements in order; dropping and cloning them does not recurse, so any depth is safe.
#[derive(Default)]
pub struct Body(Vec<Node>);

impl Body {
    /// The statements themselves.
    #[must_use]
    pub fn into_inner(mut self) -> Vec<Node> {
        std::mem::take(&mut self.0)
    }
}

impl From<Vec<Node>> for Body {
    fn from(nodes: Vec<Node>) -> Self {
        Body(nodes)
    }
}

impl FromIterator<Node> for Body {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        Body(nodes.into_iter().collect())
    }
}

impl Deref for Body {
    type Target = Vec<Node>;

    fn deref(&self) -> &Vec<Node> {
        &self.0
    }
}

impl DerefMut for Body {
    fn deref_mut(&mut self) -> &mut Vec<Node> {
        &mut self.0
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        tree::drop_body(&mut self.0);
    }
}

impl Clone for Body {
    fn clone(&self) -> Self {
        Body(tree::clone_body(&self.0))
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        tree::same_body(&self.0, &other.0)
    }
}

impl Eq for Body {}

/// The text form.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_node(f, self)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Node {
    /// The expressions of this statement, in source order; not those of statements below it.
    pub fn exprs(&self) -> impl DoubleEndedIterator<Item = &Expr> {
        let (few, many) = self.expr_lists();
        few.into_iter().flatten().chain(many)
    }

    /// The expressions of this statement: first those that each have a field, then those in a list.
    pub(super) fn expr_lists(&self) -> ([Option<&Expr>; 2], &[Expr]) {
        match self {
            Node::Let { value, .. } | Node::Assign { value, .. } => ([Some(value), None], &[]),
            Node::Store { index, value, .. } => ([Some(index), Some(value)], &[]),
            Node::Atomic { index, operands, .. } => ([Some(index), None], operands),
            Node::Subgroup { operands, .. } => ([None, None], operands),
            Node::If { cond, .. } => ([Some(cond), None], &[]),
            Node::Loop { from, to, .. } => ([Some(from), Some(to)], &[]),
            Node::Break
            | Node::Continue
            | Node::Return
            | Node::Barrier { .. }
            | Node::Trap { .. }
            | Node::Block(_)
            | Node::Region { .. } => ([None, None], &[]),
        }
    }

    /// The expressions of this statement, in source order, to change them.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (few, many): ([Option<&mut Expr>; 2], &mut [Expr]) = match self {
            Node::Let { value, .. } | Node::Assign { value, .. } => ([Some(value), None], &mut []),
            Node::Store { index, value, .. } => ([Some(index), Some(value)], &mut []),
            Node::Atomic { index, operands, .. } => ([Some(index), None], operands),
            Node::Subgroup { operands, .. } => ([None, None], operands),
            Node::If { cond, .. } => ([Some(cond), None], &mut []),
            Node::Loop { from, to, .. } => ([Some(from), Some(to)], &mut []),
            Node::Break
            | Node::Continue
            | Node::Return
            | Node::Barrier { .. }
            | Node::Trap { .. }
            | Node::Block(_)
            | Node::Region { .. } => ([None, None], &mut []),
        };
        few.into_iter().flatten().chain(many)
    }

    /// The bodies below this statement, in source order.
    pub fn bodies(&self) -> impl DoubleEndedIterator<Item = &Body> {
        let few: [Option<&Body>; 2] = match self {
            Node::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Node::Loop { body, .. } | Node::Block(body) | Node::Region { body, .. } => [Some(body), None],
            Node::Let { .. }
            | Node::Assign { .. }
            | Node::Store { .. }
            | Node::Atomic { .. }
            | Node::Subgroup { .. }
            | Node::Break
            | Node::Continue
            | Node::Return
            | Node::Barrier { .. }
            | Node::Trap { .. } => [None, None],
        };
        few.into_iter().flatten()
    }

    /// The bodies below this statement, in source order, to change them.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Body> {
        let few: [Option<&mut Body>; 2] = match self {
            Node::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Node::Loop { body, .. } | Node::Block(body) | Node::Region { body, .. } => [Some(body), None],
            Node::Let { .. }
            | Node::Assign { .. }
            | Node::Store { .. }
            | Node::Atomic { .. }
            | Node::Subgroup { .. }
            | Node::Break
            | Node::Continue
            | Node::Return
            | Node::Barrier { .. }
            | Node::Trap { .. } => [None, None],
        };
        few.into_iter().flatten()
    }

    /// The same statement over empty bodies.
    pub(crate) fn without_bodies(&self) -> Node {
        match self {
            Node::If { cond, .. } => Node::If { cond: cond.clone(), then: Body::default(), otherwise: Body::default() },
            Node::Loop { var, from, to, .. } => {
                Node::Loop { var: var.clone(), from: from.clone(), to: to.clone(), body: Body::default() }
            }
            Node::Block(_) => Node::Block(Body::default()),
            Node::Region { generator, .. } => Node::Region { generator: generator.clone(), body: Body::default() },
            Node::Let { .. }
            | Node::Assign { .. }
            | Node::Store { .. }
            | Node::Atomic { .. }
            | Node::Subgroup { .. }
            | Node::Break
            | Node::Continue
            | Node::Return
            | Node::Barrier { .. }
            | Node::Trap { .. } => self.clone(),
        }
    }

    /// `let name = value`
    #[must_use]
    pub fn let_bind(name: impl Into<Name>, value: Expr) -> Node {
        Node::Let { name: name.into(), value }
    }

    /// `name = value`
    #[must_use]
    pub fn assign(name: impl Into<Name>, value: Expr) -> Node {
        Node::Assign { name: name.into(), value }
    }

    /// `buffer[index] = value`
    #[must_use]
    pub fn store(buffer: impl Into<Name>, index: Expr, value: Expr) -> Node {
        Node::Store { buffer: buffer.into(), index, value }
    }

    /// `if cond { then }`
    #[must_use]
    pub fn if_then(cond: Expr, then: Vec<Node>) -> Node {
        Node::If { cond, then: then.into(), otherwise: Body::default() }
    }

    /// `if cond { then } else { otherwise }`
    #[must_use]
    pub fn if_then_else(cond: Expr, then: Vec<Node>, otherwise: Vec<Node>) -> Node {
        Node::If { cond, then: then.into(), otherwise: otherwise.into() }
    }

    /// `for var in from..to { body }`
    #[must_use]
    pub fn loop_for(var: impl Into<Name>, from: Expr, to: Expr, body: Vec<Node>) -> Node {
        Node::Loop { var: var.into(), from, to, body: body.into() }
    }

    /// `barrier`
    #[must_use]
    pub fn barrier() -> Node {
        Node::Barrier { ordering: MemoryOrdering::SeqCst }
    }

    /// `barrier.acquire`, `barrier.grid`, …
    #[must_use]
    pub fn barrier_with_ordering(ordering: MemoryOrdering) -> Node {
        Node::Barrier { ordering }
    }

    /// `return`
    #[must_use]
    pub fn return_() -> Node {
        Node::Return
    }

    /// `trap(tag)`
    #[must_use]
    pub fn trap(tag: u32) -> Node {
        Node::Trap { tag }
    }

    /// `{ body }`
    #[must_use]
    pub fn block(body: Vec<Node>) -> Node {
        Node::Block(body.into())
    }

    /// `region "generator" { body }`
    #[must_use]
    pub fn region(generator: impl Into<Name>, body: Vec<Node>) -> Node {
        Node::Region { generator: generator.into(), body: body.into() }
    }

    /// `atomic.op(buffer, index, operands…)`
    #[must_use]
    pub fn atomic(op: AtomicOp, buffer: impl Into<Name>, index: Expr, operands: Vec<Expr>) -> Node {
        Node::Atomic { result: None, op, buffer: buffer.into(), index, operands }
    }

    /// `let result = atomic.op(buffer, index, operands…)`
    #[must_use]
    pub fn let_atomic(result: impl Into<Name>, op: AtomicOp, buffer: impl Into<Name>, index: Expr, operands: Vec<Expr>) -> Node {
        Node::Atomic { result: Some(result.into()), op, buffer: buffer.into(), index, operands }
    }

    /// `let result = subgroup.op(operands…)`
    #[must_use]
    pub fn let_subgroup(result: impl Into<Name>, op: SubgroupOp, operands: Vec<Expr>) -> Node {
        Node::Subgroup { result: Some(result.into()), op, operands }
    }
}
