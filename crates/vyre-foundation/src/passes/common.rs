//! Common subexpressions: what was computed before is not computed again.
//!
//! Expressions with the same value number (see [`super::number`]) have the same value where one dominates the other: where its
//! statement comes earlier in the same body or in a body around it. The later one becomes the name of the earlier one: the variable
//! it is the whole value of, if that is never assigned again, or a new `let` right before the statement it stands in. New names are
//! `cse0`, `cse1`, … as far as the program does not use them.
//!
//! Right before is early enough and not too early: a statement's expressions are evaluated before it does anything, and nothing
//! another invocation does can come between, but for the operands of subgroup operations, which the interpreter evaluates when all
//! lanes have arrived; of those, what reads memory that can be written is not moved. A load of such memory is the same value until
//! this invocation writes the buffer, or meets others at a barrier or subgroup operation.
//!
//! Of several candidates the largest wins, since a replaced expression is not looked into; it is then found again in smaller ones.
//! What the new `let` stands in is the body of the first occurrence, and all uses are in that body. So its scope is right, and if
//! the body's control diverges, everything below it was already bound by that. Where it does not, a uniform expression is only
//! ever replaced by the name of a uniform one.
//!
//! What it leaves alone: names, literals, ids, lengths, and components of a named vector, which cost nothing; expressions in two
//! arms of one `if`, neither of which dominates the other; anything on the two sides of a store, atomic, barrier or subgroup
//! operation that may change it; `a + b` and `b + a`. It hoists nothing out of loops. A program with specialization constants is
//! left alone: a constant that happens to have the value of a literal is not the literal.

use super::number::{Loads, Number, Numbers};
use super::{Fresh, Places, assigned, rewrite};
use crate::ir::{Expr, Name, Node, NodeId, Program};
use crate::kernel::{ExprId, ExprKind, Kernel, Stmt, StmtKind, TypedExpr};
use std::collections::{HashMap, HashSet};

/// The pass.
pub(super) fn common(program: &Program) -> Program {
    let Ok(validated) = program.validated() else { return program.clone() };
    if !program.parts().consts.is_empty() {
        return program.clone();
    }
    let kernel = validated.kernel();
    let mut search = Search {
        kernel,
        numbers: Numbers::of(kernel, Loads::SameUntilWritten),
        assigned: assigned(kernel),
        reads_writable: reads_writable(kernel),
        available: HashMap::new(),
        log: Vec::new(),
        replaced: HashMap::new(),
        named: HashSet::new(),
    };
    search.body(&kernel.body);
    if search.replaced.is_empty() {
        return program.clone();
    }
    let mut change = Change {
        replaced: search.replaced,
        named: search.named,
        names: HashMap::new(),
        fresh: Fresh::new(program, "cse"),
        lets: Vec::new(),
        places: Places(0),
    };
    rewrite(program, |nodes, places| {
        change.places = places;
        change.body(nodes)
    })
}

/// By expression: whether it loads from memory that can be written.
fn reads_writable(kernel: &Kernel) -> Vec<bool> {
    let mut reads: Vec<bool> = Vec::with_capacity(kernel.exprs.len());
    for expr in &kernel.exprs {
        let own = matches!(expr.kind, ExprKind::Load(buffer, _) if kernel.buffer(buffer).access.is_writable());
        // Operands come before what they are operands of.
        reads.push(own || expr.kind.operands().iter().any(|operand| reads[operand.index()]));
    }
    reads
}

/// Where a value can be had.
#[derive(Clone)]
enum Holder {
    /// This variable holds it.
    Variable(Name),
    /// It is computed at this place, and could be given a name there.
    Occurrence(NodeId),
}

#[derive(Clone)]
struct Available {
    holder: Holder,
    uniform: bool,
}

struct Search<'a> {
    kernel: &'a Kernel,
    numbers: Numbers,
    assigned: Vec<bool>,
    reads_writable: Vec<bool>,
    /// What dominates the current statement.
    available: HashMap<Number, Available>,
    /// What `available` had before each change.
    log: Vec<(Number, Option<Available>)>,
    /// By place of an expression: what takes its place.
    replaced: HashMap<NodeId, Holder>,
    /// Places of expressions that get a name.
    named: HashSet<NodeId>,
}

impl Search<'_> {
    fn provide(&mut self, number: Number, holder: Holder, uniform: bool) {
        let old = self.available.insert(number, Available { holder, uniform });
        self.log.push((number, old));
    }

    /// The statements of a body; what they compute is not available after it.
    fn body(&mut self, body: &[Stmt]) {
        let mark = self.log.len();
        for stmt in body {
            self.stmt(stmt);
        }
        for (number, old) in self.log.split_off(mark).into_iter().rev() {
            match old {
                Some(old) => self.available.insert(number, old),
                None => self.available.remove(&number),
            };
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let rendezvous = matches!(stmt.kind, StmtKind::Subgroup { .. });
        for id in stmt.kind.exprs() {
            self.expr(id, rendezvous);
        }
        match &stmt.kind {
            StmtKind::Let(var, value) if !self.assigned[var.index()] => {
                let expr = self.kernel.expr(*value);
                if is_worth_it(self.kernel, expr) && !self.replaced.contains_key(&expr.place) {
                    let name = self.kernel.vars[var.index()].name.clone();
                    self.provide(self.numbers.expr(*value), Holder::Variable(name), expr.uniform);
                }
            }
            StmtKind::If(_, then, otherwise) => {
                self.body(then);
                self.body(otherwise);
            }
            StmtKind::Loop(_, _, _, body) | StmtKind::Scope(body) => self.body(body),
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

    fn expr(&mut self, id: ExprId, rendezvous: bool) {
        let expr = self.kernel.expr(id);
        if is_worth_it(self.kernel, expr) && !(rendezvous && self.reads_writable[id.index()]) {
            let number = self.numbers.expr(id);
            match self.available.get(&number) {
                Some(available) if available.uniform || !expr.uniform => {
                    if let Holder::Occurrence(place) = available.holder {
                        self.named.insert(place);
                    }
                    self.replaced.insert(expr.place, available.holder.clone());
                    return;
                }
                Some(_) | None => self.provide(number, Holder::Occurrence(expr.place), expr.uniform),
            }
        }
        for operand in expr.kind.operands() {
            self.expr(operand, rendezvous);
        }
    }
}

/// Whether there is anything to be saved.
fn is_worth_it(kernel: &Kernel, expr: &TypedExpr) -> bool {
    match &expr.kind {
        ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Builtin(_) | ExprKind::Len(_) => false,
        ExprKind::Extract(vector, _) => !matches!(kernel.expr(*vector).kind, ExprKind::Var(_)),
        ExprKind::Load(..)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Ternary(..)
        | ExprKind::Cast(..)
        | ExprKind::Bitcast(..)
        | ExprKind::Vector(_) => true,
    }
}

struct Change {
    replaced: HashMap<NodeId, Holder>,
    named: HashSet<NodeId>,
    /// The names given so far, by place.
    names: HashMap<NodeId, Name>,
    fresh: Fresh,
    /// What goes before the current statement.
    lets: Vec<Node>,
    places: Places,
}

impl Change {
    fn body(&mut self, nodes: &[Node]) -> Vec<Node> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.places.enter();
            let mut new = node.without_bodies();
            for expr in new.exprs_mut() {
                *expr = self.expr(expr);
            }
            out.append(&mut self.lets);
            for (new, old) in new.bodies_mut().zip(node.bodies()) {
                *new = self.body(old).into();
            }
            out.push(new);
        }
        out
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        let place = self.places.enter();
        if let Some(holder) = self.replaced.get(&place) {
            self.places.skip_operands(expr);
            let name = match holder {
                Holder::Variable(name) => name,
                // The first occurrence comes first in this walk too.
                Holder::Occurrence(first) => &self.names[first],
            };
            return Expr::Var(name.clone());
        }
        let new = expr.with_children(|child| self.expr(child));
        if !self.named.contains(&place) {
            return new;
        }
        let name = self.fresh.name();
        self.names.insert(place, name.clone());
        self.lets.push(Node::Let { name: name.clone(), value: new });
        Expr::Var(name)
    }
}
