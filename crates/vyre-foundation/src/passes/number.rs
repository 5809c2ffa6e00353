//! Value numbers: what is known to be the same value gets the same number.
//!
//! One walk in source order gives every expression its number. An expression's number follows from what it is and the numbers of
//! its operands; literals, ids, lengths and loads of memory that nobody writes need nothing else. The rest is a matter of *when*:
//!
//! - A variable that is never assigned after its `let` has the number of its value. One that is gets a new number with every
//!   assignment, also where the value is known: a proof about the variable (uniformity, an own index) is about all its values, so
//!   it must not be exchanged for an expression.
//! - After an `if`, what an arm changed has a new number, unless the other arm never gets there (it ends in `return`, `trap`,
//!   `break` or `continue`). In a loop, and again after it, everything that some statement of the loop changes has a new number.
//! - Memory has a version per buffer, treated like a variable that stores and atomics assign to. Barriers and subgroup operations
//!   change all memory that can be written. The interpreter evaluates the operands of a subgroup operation when all lanes have
//!   arrived, so the change comes before the operands too.
//!
//! Numbers mean equal values wherever one of the expressions dominates the other and both are evaluated in the same rounds of the
//! loops around both. Everything that uses them forgets at the end of a body what it learned inside.
//!
//! [`Loads::EachItsOwn`] gives every load of memory that can be written a number of its own. Without it equality rests on there
//! being no data race. With it equality is about registers only and holds even for programs that race: what a proof of memory
//! safety needs.

use crate::ir::{BinaryOp, Builtin, NodeId, OpId, Scalar, TernaryOp, UnaryOp, ValueType};
use crate::kernel::{BufferId, ExprId, ExprKind, Kernel, Stmt, StmtKind, VarId, for_each_stmt};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use vyre_spec::Effect;

/// A number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Number(u32);

/// When two loads of memory that can be written are the same value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loads {
    /// When no statement between them may have changed the buffer.
    SameUntilWritten,
    /// Never.
    EachItsOwn,
}

/// The numbers of a kernel.
pub(super) struct Numbers {
    exprs: Vec<Number>,
    given: HashMap<NodeId, Number>,
}

impl Numbers {
    pub(super) fn of(kernel: &Kernel, loads: Loads) -> Numbers {
        let mut walk = Walk {
            kernel,
            loads,
            assigned: super::assigned(kernel),
            exprs: vec![Number(0); kernel.exprs.len()],
            given: HashMap::new(),
            table: HashMap::new(),
            next: 0,
            state: Vec::new(),
            log: Vec::new(),
        };
        walk.state = (0..kernel.vars.len() + kernel.buffers.len()).map(|_| walk.fresh()).collect();
        walk.body(&kernel.body);
        Numbers { exprs: walk.exprs, given: walk.given }
    }

    /// The number of an expression.
    pub(super) fn expr(&self, id: ExprId) -> Number {
        self.exprs[id.index()]
    }

    /// The number that the variable gets which the statement at `place` sets.
    pub(super) fn given(&self, place: NodeId) -> Option<Number> {
        self.given.get(&place).copied()
    }
}

/// What an expression is, over numbers.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Lit(ValueType, u64),
    Builtin(Builtin),
    Len(BufferId),
    /// A buffer, its version and the index.
    Load(BufferId, Number, Number),
    Unary(UnaryOp, Scalar, Number),
    Binary(BinaryOp, Scalar, Number, Number),
    Ternary(TernaryOp, Scalar, [Number; 3]),
    Cast(Scalar, Scalar, Number),
    Bitcast(Scalar, Scalar, Number),
    Vector(Vec<Number>),
    Extract(Number, u8),
}

struct Walk<'a> {
    kernel: &'a Kernel,
    loads: Loads,
    assigned: Vec<bool>,
    exprs: Vec<Number>,
    given: HashMap<NodeId, Number>,
    table: HashMap<Key, Number>,
    next: u32,
    /// The number of every variable, then the version of every buffer.
    state: Vec<Number>,
    /// What `state` was before each change.
    log: Vec<(usize, Number)>,
}

impl<'a> Walk<'a> {
    fn fresh(&mut self) -> Number {
        self.next += 1;
        Number(self.next)
    }

    fn var_slot(var: VarId) -> usize {
        var.index()
    }

    fn memory_slot(&self, buffer: BufferId) -> usize {
        self.kernel.vars.len() + buffer.index()
    }

    fn set(&mut self, slot: usize, number: Number) {
        self.log.push((slot, self.state[slot]));
        self.state[slot] = number;
    }

    fn change(&mut self, slot: usize) {
        let number = self.fresh();
        self.set(slot, number);
    }

    /// The memory that a statement may change, its own or, where invocations meet, that of all others.
    fn memory_changed_by(&self, stmt: &Stmt) -> Vec<usize> {
        let writable = || {
            let buffers = (0..self.kernel.buffers.len()).filter(|n| self.kernel.buffers[*n].access.is_writable());
            buffers.map(|n| self.memory_slot(BufferId(n as u32))).collect()
        };
        let by_effect = |op: OpId, buffer: Option<BufferId>| match (op.info().effect, buffer) {
            (Effect::Pure, _) => Vec::new(),
            // An atomic read is where one looks for what others have written.
            (Effect::AtomicRead | Effect::AtomicWrite, Some(buffer)) => vec![self.memory_slot(buffer)],
            (Effect::AtomicRead | Effect::AtomicWrite, None) | (Effect::Convergent, _) => writable(),
        };
        match &stmt.kind {
            StmtKind::Store(buffer, ..) => vec![self.memory_slot(*buffer)],
            StmtKind::Atomic { op, buffer, .. } => by_effect(OpId::Atomic(*op), Some(*buffer)),
            StmtKind::Subgroup { op, .. } => by_effect(OpId::Subgroup(*op), None),
            StmtKind::Barrier | StmtKind::GridSync => writable(),
            StmtKind::Let(..)
            | StmtKind::Assign(..)
            | StmtKind::If(..)
            | StmtKind::Loop(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Trap(_)
            | StmtKind::Scope(_) => Vec::new(),
        }
    }

    /// Everything that some statement of a body changes.
    fn changed_in(&self, body: &[Stmt]) -> BTreeSet<usize> {
        let mut slots = BTreeSet::new();
        for_each_stmt(body, &mut |stmt: &Stmt| {
            slots.extend(super::variable_set_by(stmt).map(Self::var_slot));
            slots.extend(self.memory_changed_by(stmt));
        });
        slots
    }

    /// Numbers a body; gives whether control never reaches its end.
    fn body(&mut self, body: &'a [Stmt]) -> bool {
        let mut ended = false;
        for stmt in body {
            ended |= self.stmt(stmt);
        }
        ended
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> bool {
        match &stmt.kind {
            StmtKind::If(cond, then, otherwise) => {
                self.expr(*cond);
                let (then, then_ends) = self.arm(then);
                let (otherwise, otherwise_ends) = self.arm(otherwise);
                match (then_ends, otherwise_ends) {
                    (true, false) => otherwise.into_iter().for_each(|(slot, number)| self.set(slot, number)),
                    (false, true) => then.into_iter().for_each(|(slot, number)| self.set(slot, number)),
                    (true, true) | (false, false) => {
                        let slots: BTreeSet<usize> = then.into_keys().chain(otherwise.into_keys()).collect();
                        slots.into_iter().for_each(|slot| self.change(slot));
                    }
                }
                then_ends && otherwise_ends
            }
            StmtKind::Loop(var, from, to, body) => {
                self.expr(*from);
                self.expr(*to);
                let changed = self.changed_in(body);
                changed.iter().for_each(|slot| self.change(*slot));
                let counter = self.fresh();
                self.set(Self::var_slot(*var), counter);
                self.given.insert(stmt.place, counter);
                self.body(body);
                changed.iter().for_each(|slot| self.change(*slot));
                false
            }
            StmtKind::Scope(body) => self.body(body),
            StmtKind::Break | StmtKind::Continue | StmtKind::Return | StmtKind::Trap(_) => true,
            StmtKind::Let(var, value) | StmtKind::Assign(var, value) => {
                let value = self.expr(*value);
                let number = if self.assigned[var.index()] { self.fresh() } else { value };
                self.set(Self::var_slot(*var), number);
                self.given.insert(stmt.place, number);
                false
            }
            StmtKind::Store(..)
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::Barrier
            | StmtKind::GridSync => {
                let changed = self.memory_changed_by(stmt);
                if let StmtKind::Subgroup { .. } = stmt.kind {
                    changed.iter().for_each(|slot| self.change(*slot));
                }
                for id in stmt.kind.exprs() {
                    self.expr(id);
                }
                changed.iter().for_each(|slot| self.change(*slot));
                if let Some(var) = super::variable_set_by(stmt) {
                    let number = self.fresh();
                    self.set(Self::var_slot(var), number);
                    self.given.insert(stmt.place, number);
                }
                false
            }
        }
    }

    /// Numbers an arm of an `if` and goes back to the state before it; gives what it changed, and whether it never ends.
    fn arm(&mut self, body: &'a [Stmt]) -> (BTreeMap<usize, Number>, bool) {
        let mark = self.log.len();
        let ends = self.body(body);
        let changed = self.log[mark..].iter().map(|(slot, _)| (*slot, self.state[*slot])).collect();
        for (slot, number) in self.log.drain(mark..).rev() {
            self.state[slot] = number;
        }
        (changed, ends)
    }

    fn expr(&mut self, id: ExprId) -> Number {
        let expr = self.kernel.expr(id);
        let key = match &expr.kind {
            ExprKind::Var(var) => return self.found(id, self.state[Self::var_slot(*var)]),
            ExprKind::Lit(bits) => Some(Key::Lit(expr.ty, *bits)),
            ExprKind::Builtin(builtin) => Some(Key::Builtin(*builtin)),
            ExprKind::Len(buffer) => Some(Key::Len(*buffer)),
            ExprKind::Load(buffer, index) => {
                let index = self.expr(*index);
                let its_own = self.loads == Loads::EachItsOwn && self.kernel.buffer(*buffer).access.is_writable();
                (!its_own).then(|| Key::Load(*buffer, self.state[self.memory_slot(*buffer)], index))
            }
            ExprKind::Unary(op, ty, a) => {
                let a = self.expr(*a);
                pure(OpId::Unary(*op)).then_some(Key::Unary(*op, *ty, a))
            }
            ExprKind::Binary(op, ty, a, b) => {
                let (a, b) = (self.expr(*a), self.expr(*b));
                pure(OpId::Binary(*op)).then_some(Key::Binary(*op, *ty, a, b))
            }
            ExprKind::Ternary(op, ty, operands) => {
                let operands = operands.map(|operand| self.expr(operand));
                pure(OpId::Ternary(*op)).then_some(Key::Ternary(*op, *ty, operands))
            }
            ExprKind::Cast(from, to, a) => Some(Key::Cast(*from, *to, self.expr(*a))),
            ExprKind::Bitcast(from, to, a) => Some(Key::Bitcast(*from, *to, self.expr(*a))),
            ExprKind::Vector(components) => Some(Key::Vector(components.iter().map(|component| self.expr(*component)).collect())),
            ExprKind::Extract(vector, component) => Some(Key::Extract(self.expr(*vector), *component)),
        };
        let number = match key {
            Some(key) => {
                let next = &mut self.next;
                *self.table.entry(key).or_insert_with(|| {
                    *next += 1;
                    Number(*next)
                })
            }
            None => self.fresh(),
        };
        self.found(id, number)
    }

    fn found(&mut self, id: ExprId, number: Number) -> Number {
        self.exprs[id.index()] = number;
        number
    }
}

/// Whether the same operands always give the same value.
fn pure(op: OpId) -> bool {
    match op.info().effect {
        Effect::Pure => true,
        Effect::AtomicRead | Effect::AtomicWrite | Effect::Convergent => false,
    }
}
