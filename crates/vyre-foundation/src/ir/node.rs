//! Statements and their builders.

use super::expr::{Child, Expr};
use super::name::Name;
use super::tree;
use crate::memory_model::MemoryOrdering;
use std::fmt;
use std::ops::{Deref, DerefMut};
use vyre_spec::{AtomicOp, SubgroupOp};

/// A statement: four words, so that long lists of them stay small. What would take more is in a box.
#[derive(Clone, PartialEq, Eq)]
pub enum Node {
    /// Declares a variable until the end of the enclosing scope.
    Let {
        /// The new name.
        name: Name,
        /// Its first value, which also gives its type.
        value: Child,
    },
    /// Changes a variable that a `Let` declared.
    Assign {
        /// The variable.
        name: Name,
        /// The new value, of the variable's type.
        value: Child,
    },
    /// Writes one element, narrowed to the buffer's type; dropped out of bounds.
    Store(Box<Store>),
    /// One atomic access; out of bounds it gives 0 and changes nothing.
    Atomic(Box<Atomic>),
    /// One exchange among the invocations of a subgroup; must be reached uniformly in the workgroup.
    Subgroup(Box<Subgroup>),
    /// Runs one of two bodies.
    If {
        /// A `bool`.
        cond: Child,
        /// Runs if it is true.
        then: Body,
        /// Runs if it is false.
        otherwise: Body,
    },
    /// Runs the body for each `u32` from `from` up to but not including `to`; both are evaluated once.
    Loop(Box<Loop>),
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next iteration of the innermost loop.
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

/// The parts of [`Node::Store`].
#[derive(Clone, PartialEq, Eq)]
pub struct Store {
    /// A buffer that can be written.
    pub buffer: Name,
    /// The element; `u32`.
    pub index: Expr,
    /// The value, of the buffer's value type.
    pub value: Expr,
}

/// The parts of [`Node::Atomic`].
#[derive(Clone, PartialEq, Eq)]
pub struct Atomic {
    /// The variable that gets the op's result, declared here.
    pub result: Option<Name>,
    /// The op; its table row has the types.
    pub op: AtomicOp,
    /// A `u32` or `i32` buffer that can be written.
    pub buffer: Name,
    /// The element; `u32`.
    pub index: Expr,
    /// What the op takes beside buffer and index.
    pub operands: Vec<Expr>,
}

/// The parts of [`Node::Subgroup`].
#[derive(Clone, PartialEq, Eq)]
pub struct Subgroup {
    /// The variable that gets the op's result, declared here.
    pub result: Option<Name>,
    /// The op; its table row has the types.
    pub op: SubgroupOp,
    /// The operands.
    pub operands: Vec<Expr>,
}

/// The parts of [`Node::Loop`].
#[derive(Clone, PartialEq, Eq)]
pub struct Loop {
    /// The counter, declared here for the body, never assignable.
    pub var: Name,
    /// The first value; `u32`.
    pub from: Expr,
    /// One past the last; `u32`.
    pub to: Expr,
    /// What is repeated.
    pub body: Body,
}

impl From<Store> for Node {
    fn from(parts: Store) -> Self {
        Node::Store(Box::new(parts))
    }
}

impl From<Atomic> for Node {
    fn from(parts: Atomic) -> Self {
        Node::Atomic(Box::new(parts))
    }
}

impl From<Subgroup> for Node {
    fn from(parts: Subgroup) -> Self {
        Node::Subgroup(Box::new(parts))
    }
}

impl From<Loop> for Node {
    fn from(parts: Loop) -> Self {
        Node::Loop(Box::new(parts))
    }
}

/// Statements in order; dropping and cloning them does not recurse, so any depth is safe.
///
/// One word, and nothing else if there are no statements.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "two words more in every statement with a body would be two words more in all")]
pub struct Body(Option<Box<Vec<Node>>>);

static EMPTY: Vec<Node> = Vec::new();

impl Body {
    /// The statements themselves.
    #[must_use]
    pub fn into_inner(mut self) -> Vec<Node> {
        self.0.take().map_or_else(Vec::new, |nodes| *nodes)
    }
}

impl From<Vec<Node>> for Body {
    fn from(nodes: Vec<Node>) -> Self {
        Body((!nodes.is_empty()).then(|| Box::new(nodes)))
    }
}

impl FromIterator<Node> for Body {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        nodes.into_iter().collect::<Vec<Node>>().into()
    }
}

impl Deref for Body {
    type Target = Vec<Node>;

    fn deref(&self) -> &Vec<Node> {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for Body {
    fn deref_mut(&mut self) -> &mut Vec<Node> {
        self.0.get_or_insert_default()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(nodes) = self.0.take() {
            tree::drop_body(*nodes);
        }
    }
}

impl Clone for Body {
    fn clone(&self) -> Self {
        tree::clone_body(self).into()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        tree::same_body(self, other)
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

/// What a statement is made of, whatever its kind, as shared or as mutable references.
pub(super) struct NodeParts<Expr, Exprs, Body, Name, Result> {
    /// The variable that it declares in the scope it stands in; see `result` for those of operations.
    pub(super) declares: Option<Name>,
    /// The variable that it declares for its bodies alone.
    pub(super) counter: Option<Name>,
    /// The variable that it changes.
    pub(super) assigns: Option<Name>,
    /// The buffer that it accesses itself; the index is then the first expression.
    pub(super) buffer: Option<Name>,
    /// Where an operation puts its result.
    pub(super) result: Option<Result>,
    /// The expressions in source order, first those that each have a field.
    pub(super) exprs: [Option<Expr>; 2],
    /// Then those in a list.
    pub(super) operands: Exprs,
    /// Whether the last of those with a field is the value that a variable or an element gets.
    pub(super) has_value: bool,
    /// The bodies in source order.
    pub(super) bodies: [Option<Body>; 2],
}

/// The parts of a statement. Everything below that asks for some of them, for any statement, is read off this list.
macro_rules! parts {
    ($node:expr $(, $mut:tt)?) => {{
        let none = NodeParts {
            declares: None,
            counter: None,
            assigns: None,
            buffer: None,
            result: None,
            exprs: [None, None],
            operands: &$($mut)? [][..],
            has_value: false,
            bodies: [None, None],
        };
        match $node {
            Node::Let { name, value } => {
                NodeParts { declares: Some(name), exprs: [None, Some(&$($mut)? **value)], has_value: true, ..none }
            }
            Node::Assign { name, value } => {
                NodeParts { assigns: Some(name), exprs: [None, Some(&$($mut)? **value)], has_value: true, ..none }
            }
            Node::Store(store) => {
                let Store { buffer, index, value } = &$($mut)? **store;
                NodeParts { buffer: Some(buffer), exprs: [Some(index), Some(value)], has_value: true, ..none }
            }
            Node::Atomic(atomic) => {
                let Atomic { result, op: _, buffer, index, operands } = &$($mut)? **atomic;
                NodeParts { result: Some(result), buffer: Some(buffer), exprs: [Some(index), None], operands, ..none }
            }
            Node::Subgroup(subgroup) => {
                let Subgroup { result, op: _, operands } = &$($mut)? **subgroup;
                NodeParts { result: Some(result), operands, ..none }
            }
            Node::If { cond, then, otherwise } => {
                NodeParts { exprs: [Some(&$($mut)? **cond), None], bodies: [Some(then), Some(otherwise)], ..none }
            }
            Node::Loop(repeat) => {
                let Loop { var, from, to, body } = &$($mut)? **repeat;
                NodeParts { counter: Some(var), exprs: [Some(from), Some(to)], bodies: [Some(body), None], ..none }
            }
            Node::Block(body) | Node::Region { generator: _, body } => NodeParts { bodies: [Some(body), None], ..none },
            Node::Break | Node::Continue | Node::Return | Node::Barrier { ordering: _ } | Node::Trap { tag: _ } => none,
        }
    }};
}

impl Node {
    /// For those who ask for several: one look at the kind of the statement.
    #[inline(always)]
    pub(super) fn parts(&self) -> NodeParts<&Expr, &[Expr], &Body, &Name, &Option<Name>> {
        parts!(self)
    }

    #[inline(always)]
    fn parts_mut(&mut self) -> NodeParts<&mut Expr, &mut [Expr], &mut Body, &mut Name, &mut Option<Name>> {
        parts!(self, mut)
    }

    /// The expressions of this statement, in source order; not those of statements below it.
    pub fn exprs(&self) -> impl DoubleEndedIterator<Item = &Expr> {
        let NodeParts { exprs, operands, .. } = self.parts();
        exprs.into_iter().flatten().chain(operands)
    }

    /// The expressions of this statement, in source order, to change them.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let NodeParts { exprs, operands, .. } = self.parts_mut();
        exprs.into_iter().flatten().chain(operands)
    }

    /// The bodies below this statement, in source order.
    pub fn bodies(&self) -> impl DoubleEndedIterator<Item = &Body> {
        self.parts().bodies.into_iter().flatten()
    }

    /// The bodies below this statement, in source order, to change them.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Body> {
        self.parts_mut().bodies.into_iter().flatten()
    }

    /// The buffer that this statement accesses itself, beside what its expressions load, and the element.
    #[must_use]
    pub fn access(&self) -> Option<(&Name, &Expr)> {
        let NodeParts { buffer, exprs: [index, _], .. } = self.parts();
        buffer.zip(index)
    }

    /// The value that this statement gives to a variable or an element, to change it.
    #[must_use]
    pub fn value_mut(&mut self) -> Option<&mut Expr> {
        let NodeParts { has_value, exprs: [_, value], .. } = self.parts_mut();
        value.filter(|_| has_value)
    }

    /// The variable that this statement declares in the scope it stands in.
    #[must_use]
    pub fn declares(&self) -> Option<&Name> {
        let NodeParts { declares, result, .. } = self.parts();
        declares.or(result.and_then(Option::as_ref))
    }

    /// The same, to change it.
    #[must_use]
    pub fn declares_mut(&mut self) -> Option<&mut Name> {
        let NodeParts { declares, result, .. } = self.parts_mut();
        declares.or(result.and_then(Option::as_mut))
    }

    /// The variable that this statement declares for its bodies alone.
    #[must_use]
    pub fn counter(&self) -> Option<&Name> {
        self.parts().counter
    }

    /// The same, to change it.
    #[must_use]
    pub fn counter_mut(&mut self) -> Option<&mut Name> {
        self.parts_mut().counter
    }

    /// The variable that this statement changes, to name another.
    #[must_use]
    pub fn assigns_mut(&mut self) -> Option<&mut Name> {
        self.parts_mut().assigns
    }

    /// Every variable and buffer that this statement names itself, beside those in its expressions, to name others.
    pub fn names_mut(&mut self) -> impl Iterator<Item = &mut Name> {
        let NodeParts { declares, counter, assigns, buffer, result, .. } = self.parts_mut();
        [declares, counter, assigns, buffer, result.and_then(Option::as_mut)].into_iter().flatten()
    }

    /// Where an atomic or subgroup operation puts its result.
    #[must_use]
    pub fn result(&self) -> Option<&Name> {
        self.parts().result.and_then(Option::as_ref)
    }

    /// Where an atomic or subgroup operation puts its result, to change it.
    #[must_use]
    pub fn result_mut(&mut self) -> Option<&mut Option<Name>> {
        self.parts_mut().result
    }

    /// The operands of an atomic or subgroup operation, beside buffer and index.
    #[must_use]
    pub fn operands(&self) -> &[Expr] {
        self.parts().operands
    }

    /// The same statement over empty bodies.
    pub(crate) fn without_bodies(&self) -> Node {
        match self {
            Node::If { cond, .. } => Node::If { cond: cond.clone(), then: Body::default(), otherwise: Body::default() },
            Node::Loop(repeat) => {
                let Loop { var, from, to, .. } = &**repeat;
                Node::loop_for(var, from.clone(), to.clone(), Vec::new())
            }
            Node::Block(_) => Node::Block(Body::default()),
            Node::Region { generator, .. } => Node::Region { generator: generator.clone(), body: Body::default() },
            Node::Let { .. }
            | Node::Assign { .. }
            | Node::Store(_)
            | Node::Atomic(_)
            | Node::Subgroup(_)
            | Node::Break
            | Node::Continue
            | Node::Return
            | Node::Barrier { .. }
            | Node::Trap { .. } => self.clone(),
        }
    }

    /// `let name = value`
    #[must_use]
    pub fn let_bind(name: impl Into<Name>, value: impl Into<Expr>) -> Node {
        Node::Let { name: name.into(), value: value.into().into() }
    }

    /// `name = value`
    #[must_use]
    pub fn assign(name: impl Into<Name>, value: impl Into<Expr>) -> Node {
        Node::Assign { name: name.into(), value: value.into().into() }
    }

    /// `buffer[index] = value`
    #[must_use]
    pub fn store(buffer: impl Into<Name>, index: impl Into<Expr>, value: impl Into<Expr>) -> Node {
        Store { buffer: buffer.into(), index: index.into(), value: value.into() }.into()
    }

    /// `if cond { then }`
    #[must_use]
    pub fn if_then(cond: impl Into<Expr>, then: Vec<Node>) -> Node {
        Node::If { cond: cond.into().into(), then: then.into(), otherwise: Body::default() }
    }

    /// `if cond { then } else { otherwise }`
    #[must_use]
    pub fn if_then_else(cond: impl Into<Expr>, then: Vec<Node>, otherwise: Vec<Node>) -> Node {
        Node::If { cond: cond.into().into(), then: then.into(), otherwise: otherwise.into() }
    }

    /// `for var in from..to { body }`
    #[must_use]
    pub fn loop_for(var: impl Into<Name>, from: impl Into<Expr>, to: impl Into<Expr>, body: Vec<Node>) -> Node {
        Loop { var: var.into(), from: from.into(), to: to.into(), body: body.into() }.into()
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
    pub fn atomic(op: AtomicOp, buffer: impl Into<Name>, index: impl Into<Expr>, operands: Vec<Expr>) -> Node {
        Atomic { result: None, op, buffer: buffer.into(), index: index.into(), operands }.into()
    }

    /// `let result = atomic.op(buffer, index, operands…)`
    #[must_use]
    pub fn let_atomic(
        result: impl Into<Name>,
        op: AtomicOp,
        buffer: impl Into<Name>,
        index: impl Into<Expr>,
        operands: Vec<Expr>,
    ) -> Node {
        Atomic { result: Some(result.into()), op, buffer: buffer.into(), index: index.into(), operands }.into()
    }

    /// `let result = subgroup.op(operands…)`
    #[must_use]
    pub fn let_subgroup(result: impl Into<Name>, op: SubgroupOp, operands: Vec<Expr>) -> Node {
        Subgroup { result: Some(result.into()), op, operands }.into()
    }
}
