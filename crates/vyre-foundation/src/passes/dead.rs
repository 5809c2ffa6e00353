//! Dead code: what no result depends on goes.
//!
//! - Statements behind a `return`, `trap`, `break` or `continue` of the same body, or behind an `if` both of whose arms end so, are
//!   never reached.
//! - A variable is *useful* if something that matters reads it: a store, an atomic or subgroup operation, a condition, a bound, or
//!   the value of another useful variable. The rest goes, also when its variables read each other, round after round of a loop.
//! - An assignment to a useful variable goes if no path from it reads the variable before the next assignment. Liveness is computed
//!   backwards. For a loop it is not iterated: whatever some statement of the loop reads counts as live at the end of every round.
//!   That keeps a little too much, and makes the pass linear in the program times its nesting.
//! - A `let` goes if nothing that stays reads or assigns its variable.
//! - A result that nobody uses is not kept, so that the atomic is the plain statement, which more programs can be proven
//!   deterministic with. An operation that only reads (its row says [`Effect::AtomicRead`]) goes altogether.
//!
//! Expressions are pure, so nothing is lost with the value of what goes. Removing assignments only makes variables more uniform.
//!
//! What it leaves alone: stores and everything else that others can see, traps, all control and barriers, and subgroup operations
//! ([`Effect::Convergent`]) even if their result is unused: they are places where invocations meet, and the order of events in a
//! program that races depends on them. Empty arms and loops are left to pass `control`. The first value of a variable that is
//! always assigned before it is read stays, because the `let` is its declaration.

use super::{Places, rewrite};
use crate::ir::{AtomicOp, Node, NodeId, Program};
use crate::kernel::{ExprId, ExprKind, Kernel, Stmt, StmtKind, VarId};
use std::collections::HashSet;
use vyre_spec::Effect;

/// The pass.
pub(super) fn dead(program: &Program) -> Program {
    let Ok(validated) = program.validated() else { return program.clone() };
    let kernel = validated.kernel();
    let count = kernel.vars.len();
    let mut search = Search {
        kernel,
        gone: HashSet::new(),
        no_result: HashSet::new(),
        useful: vec![false; count],
        mentioned: vec![false; count],
    };
    search.unreachable(&kernel.body);
    search.find_useful();
    search.body(&kernel.body, VarSet::new(count), None);
    if search.gone.is_empty() && search.no_result.is_empty() {
        return program.clone();
    }
    let Search { gone, no_result, .. } = search;
    rewrite(program, |nodes, mut places| keep(nodes, &mut places, &gone, &no_result))
}

/// The statements that stay.
fn keep(nodes: &[Node], places: &mut Places, gone: &HashSet<NodeId>, no_result: &HashSet<NodeId>) -> Vec<Node> {
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        let place = places.enter();
        if gone.contains(&place) {
            places.skip_below(node);
            continue;
        }
        let mut new = node.without_bodies();
        node.exprs().for_each(|expr| {
            places.enter();
            places.skip_operands(expr);
        });
        for (new, old) in new.bodies_mut().zip(node.bodies()) {
            *new = keep(old, places, gone, no_result).into();
        }
        if let Node::Atomic { result, .. } = &mut new
            && no_result.contains(&place)
        {
            *result = None;
        }
        out.push(new);
    }
    out
}

/// A set of variables.
#[derive(Clone)]
struct VarSet(Vec<u64>);

impl VarSet {
    fn new(count: usize) -> VarSet {
        VarSet(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, var: VarId) {
        self.0[var.index() / 64] |= 1 << (var.index() % 64);
    }

    fn remove(&mut self, var: VarId) {
        self.0[var.index() / 64] &= !(1 << (var.index() % 64));
    }

    fn contains(&self, var: VarId) -> bool {
        self.0[var.index() / 64] >> (var.index() % 64) & 1 == 1
    }

    fn extend(&mut self, other: &VarSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }
}

/// What is live where a loop is left, and where a round of it ends.
struct LoopExits {
    after: VarSet,
    next_round: VarSet,
}

struct Search<'a> {
    kernel: &'a Kernel,
    /// Places of statements that go.
    gone: HashSet<NodeId>,
    /// Places of atomics whose result goes.
    no_result: HashSet<NodeId>,
    /// By variable.
    useful: Vec<bool>,
    /// By variable: whether a statement that stays, behind the current one, reads or assigns it.
    mentioned: Vec<bool>,
}

/// Calls `each` with every variable that an expression reads.
fn reads(kernel: &Kernel, id: ExprId, each: &mut impl FnMut(VarId)) {
    let kind = &kernel.expr(id).kind;
    if let ExprKind::Var(var) = kind {
        each(*var);
    }
    for operand in kind.operands() {
        reads(kernel, operand, each);
    }
}

/// Whether an operation has to happen even if nobody uses its result.
fn matters(op: AtomicOp) -> bool {
    match op.info().effect {
        Effect::Pure | Effect::AtomicRead => false,
        Effect::AtomicWrite | Effect::Convergent => true,
    }
}

impl<'a> Search<'a> {
    /// Marks what is never reached; gives whether control never reaches the end of the body.
    fn unreachable(&mut self, body: &'a [Stmt]) -> bool {
        let mut ended = false;
        for stmt in body {
            if ended {
                self.gone.insert(stmt.place);
                continue;
            }
            ended = match &stmt.kind {
                StmtKind::Break | StmtKind::Continue | StmtKind::Return | StmtKind::Trap(_) => true,
                StmtKind::If(_, then, otherwise) => {
                    let (then, otherwise) = (self.unreachable(then), self.unreachable(otherwise));
                    then && otherwise
                }
                StmtKind::Loop(_, _, _, body) => {
                    self.unreachable(body);
                    false
                }
                StmtKind::Scope(body) => self.unreachable(body),
                StmtKind::Let(..)
                | StmtKind::Assign(..)
                | StmtKind::Store(..)
                | StmtKind::Atomic { .. }
                | StmtKind::Subgroup { .. }
                | StmtKind::Barrier
                | StmtKind::GridSync => false,
            };
        }
        ended
    }

    /// Calls `each` with every statement that is reached.
    fn reached(&self, body: &'a [Stmt], each: &mut impl FnMut(&'a Stmt)) {
        for stmt in body.iter().filter(|stmt| !self.gone.contains(&stmt.place)) {
            each(stmt);
            match &stmt.kind {
                StmtKind::If(_, then, otherwise) => {
                    self.reached(then, each);
                    self.reached(otherwise, each);
                }
                StmtKind::Loop(_, _, _, body) | StmtKind::Scope(body) => self.reached(body, each),
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

    /// The variable that alone profits from a statement's expressions; `None` if the statement matters by itself.
    fn beneficiary(stmt: &Stmt) -> Option<VarId> {
        match &stmt.kind {
            StmtKind::Let(var, _) | StmtKind::Assign(var, _) => Some(*var),
            StmtKind::Atomic { op, result: Some(var), .. } if !matters(*op) => Some(*var),
            StmtKind::Atomic { .. }
            | StmtKind::Store(..)
            | StmtKind::Subgroup { .. }
            | StmtKind::If(..)
            | StmtKind::Loop(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier
            | StmtKind::GridSync
            | StmtKind::Trap(_)
            | StmtKind::Scope(_) => None,
        }
    }

    fn find_useful(&mut self) {
        let kernel = self.kernel;
        // By variable: what its values read.
        let mut feeds: Vec<Vec<VarId>> = vec![Vec::new(); kernel.vars.len()];
        let mut pending: Vec<VarId> = Vec::new();
        self.reached(&kernel.body, &mut |stmt| {
            let into = match Self::beneficiary(stmt) {
                Some(var) => &mut feeds[var.index()],
                None => &mut pending,
            };
            stmt.kind.exprs().into_iter().for_each(|id| reads(kernel, id, &mut |var| into.push(var)));
        });
        while let Some(var) = pending.pop() {
            if !std::mem::replace(&mut self.useful[var.index()], true) {
                pending.append(&mut feeds[var.index()]);
            }
        }
    }

    /// Goes backwards through a body from what is live behind it; gives what is live before it.
    fn body(&mut self, body: &'a [Stmt], mut live: VarSet, exits: Option<&LoopExits>) -> VarSet {
        for stmt in body.iter().rev() {
            if !self.gone.contains(&stmt.place) {
                live = self.stmt(stmt, live, exits);
            }
        }
        live
    }

    fn stmt(&mut self, stmt: &'a Stmt, mut live: VarSet, exits: Option<&LoopExits>) -> VarSet {
        let count = self.kernel.vars.len();
        let nothing = || VarSet::new(count);
        match &stmt.kind {
            StmtKind::Let(var, _) => {
                if !self.mentioned[var.index()] {
                    self.gone.insert(stmt.place);
                    return live;
                }
                live.remove(*var);
            }
            StmtKind::Assign(var, _) => {
                if !live.contains(*var) {
                    self.gone.insert(stmt.place);
                    return live;
                }
                self.mentioned[var.index()] = true;
                live.remove(*var);
            }
            StmtKind::Atomic { op, result, .. } => {
                let used = result.is_some_and(|var| self.mentioned[var.index()]);
                if !used && !matters(*op) {
                    self.gone.insert(stmt.place);
                    return live;
                }
                if let Some(var) = result {
                    live.remove(*var);
                    if !used {
                        self.no_result.insert(stmt.place);
                    }
                }
            }
            StmtKind::Subgroup { result, .. } => {
                if let Some(var) = result {
                    live.remove(*var);
                }
            }
            StmtKind::If(_, then, otherwise) => {
                let before = self.body(then, live.clone(), exits);
                live = self.body(otherwise, live, exits);
                live.extend(&before);
            }
            StmtKind::Loop(_, _, _, body) => {
                let mut next_round = live.clone();
                next_round.extend(&self.read_in_round(body));
                let exits = LoopExits { after: live.clone(), next_round: next_round.clone() };
                let before = self.body(body, next_round, Some(&exits));
                live.extend(&before);
            }
            StmtKind::Break => live = exits.map_or_else(nothing, |exits| exits.after.clone()),
            StmtKind::Continue => live = exits.map_or_else(nothing, |exits| exits.next_round.clone()),
            StmtKind::Return | StmtKind::Trap(_) => live = nothing(),
            StmtKind::Scope(body) => live = self.body(body, live, exits),
            StmtKind::Store(..) | StmtKind::Barrier | StmtKind::GridSync => {}
        }
        for id in stmt.kind.exprs() {
            let mentioned = &mut self.mentioned;
            reads(self.kernel, id, &mut |var| {
                live.insert(var);
                mentioned[var.index()] = true;
            });
        }
        live
    }

    /// What a round of a loop may read that a round before may have set: everything that is read in it for something useful, but
    /// for what it declares itself.
    fn read_in_round(&self, body: &'a [Stmt]) -> VarSet {
        let mut read = VarSet::new(self.kernel.vars.len());
        let mut declared = Vec::new();
        self.reached(body, &mut |stmt| {
            if Self::beneficiary(stmt).is_none_or(|var| self.useful[var.index()]) {
                stmt.kind.exprs().into_iter().for_each(|id| reads(self.kernel, id, &mut |var| read.insert(var)));
            }
            match &stmt.kind {
                StmtKind::Let(var, _)
                | StmtKind::Loop(var, ..)
                | StmtKind::Atomic { result: Some(var), .. }
                | StmtKind::Subgroup { result: Some(var), .. } => declared.push(*var),
                StmtKind::Assign(..)
                | StmtKind::Store(..)
                | StmtKind::Atomic { result: None, .. }
                | StmtKind::Subgroup { result: None, .. }
                | StmtKind::If(..)
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return
                | StmtKind::Barrier
                | StmtKind::GridSync
                | StmtKind::Trap(_)
                | StmtKind::Scope(_) => {}
            }
        });
        declared.into_iter().for_each(|var| read.remove(var));
        read
    }
}
