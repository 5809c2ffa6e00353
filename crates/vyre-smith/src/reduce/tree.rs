//! Changes to a tree of statements by place, and the repair of what a change leaves dangling.
//!
//! The repair is what makes reduction cheap: any statements can be taken out of a valid program, and what used them gets a zero, so
//! that nearly every candidate is valid and one question decides about many statements.

use super::literal::zero;
use std::collections::{HashMap, HashSet};
use vyre_foundation::ir::{Body, Expr, Name, Node, NodeId, Parts, ValueType, Walk};
use vyre_foundation::kernel::Kernel;

/// Statements and expressions of a statement with everything below it.
pub(super) fn node_size(node: &Node) -> u32 {
    Walk::body(std::slice::from_ref(node)).count() as u32
}

/// Expressions of an expression with everything below it.
pub(super) fn expr_size(expr: &Expr) -> u32 {
    Walk::expr(expr).count() as u32
}

type OnNode<'a> = &'a mut dyn FnMut(NodeId, &Node) -> Option<Vec<Node>>;
type OnExpr<'a> = &'a mut dyn FnMut(NodeId, &Expr) -> Option<Expr>;

/// Changes a body in place. Each statement and each expression is shown once, outer before inner; one that is replaced is not
/// looked into. Places are those of the body before the change.
pub(crate) fn rewrite(body: &mut Body, node: OnNode<'_>, expr: OnExpr<'_>) {
    Rewriter { next: 0, node, expr }.body(body);
}

/// [`rewrite`] for statements alone.
pub(super) fn rewrite_nodes(body: &mut Body, node: OnNode<'_>) {
    rewrite(body, node, &mut |_, _| None);
}

/// [`rewrite`] for expressions alone.
pub(super) fn rewrite_exprs(body: &mut Body, expr: OnExpr<'_>) {
    rewrite(body, &mut |_, _| None, expr);
}

struct Rewriter<'a> {
    next: u32,
    node: OnNode<'a>,
    expr: OnExpr<'a>,
}

impl Rewriter<'_> {
    fn body(&mut self, body: &mut Body) {
        for mut node in std::mem::take(body).into_inner() {
            if let Some(instead) = (self.node)(NodeId(self.next), &node) {
                self.next += node_size(&node);
                body.extend(instead);
                continue;
            }
            self.next += 1;
            for expr in node.exprs_mut() {
                self.expr(expr);
            }
            for body in node.bodies_mut() {
                self.body(body);
            }
            body.push(node);
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        if let Some(instead) = (self.expr)(NodeId(self.next), expr) {
            self.next += expr_size(expr);
            *expr = instead;
            return;
        }
        self.next += 1;
        for child in expr.children_mut() {
            self.expr(child);
        }
    }
}

/// Replaces every use of a variable.
pub(super) fn substitute(body: &mut Body, name: &Name, value: &Expr) {
    rewrite_exprs(body, &mut |_, expr| match expr {
        Expr::Var(used) if used == name => Some(value.clone()),
        Expr::Var(_)
        | Expr::Lit(_)
        | Expr::Builtin(_)
        | Expr::Len(_)
        | Expr::Load { .. }
        | Expr::Unary { .. }
        | Expr::Binary { .. }
        | Expr::Ternary { .. }
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. }
        | Expr::Extract { .. } => None,
    });
}

/// The variable that a statement declares in the scope it stands in; a loop's counter lives in its body alone.
pub(crate) fn declared(node: &Node) -> Option<&Name> {
    match node {
        Node::Let { name, .. } => Some(name),
        Node::Atomic(_) | Node::Subgroup(_) => node.result(),
        Node::Assign { .. }
        | Node::Store(_)
        | Node::If { .. }
        | Node::Loop(_)
        | Node::Break
        | Node::Continue
        | Node::Return
        | Node::Barrier { .. }
        | Node::Trap { .. }
        | Node::Block(_)
        | Node::Region { .. } => None,
    }
}

/// The name that a leaf of an expression or a load refers to.
pub(super) fn mentioned(expr: &Expr) -> Option<&Name> {
    match expr {
        Expr::Var(name) | Expr::Len(name) | Expr::Load { buffer: name, .. } => Some(name),
        Expr::Lit(_)
        | Expr::Builtin(_)
        | Expr::Unary { .. }
        | Expr::Binary { .. }
        | Expr::Ternary { .. }
        | Expr::Cast { .. }
        | Expr::Bitcast { .. }
        | Expr::Vector { .. }
        | Expr::Extract { .. } => None,
    }
}

/// Mends what is left of a program after something was taken out: uses of a variable or buffer that is gone become zero, writes to it
/// go, and so do `break` and `continue` that are in no loop any more. `before` is the program it was, which knows the types.
pub(super) fn repair(parts: &mut Parts, before: &Kernel) {
    let mut vars: HashMap<&Name, Option<ValueType>> = HashMap::new();
    for var in &before.vars {
        // Of two variables with one name and different types it cannot be known which is meant; then nothing is mended.
        vars.entry(&var.name).and_modify(|ty| *ty = ty.filter(|ty| *ty == var.ty)).or_insert(Some(var.ty));
    }
    let buffers = before.buffers.iter().map(|buffer| (&buffer.name, buffer.value)).collect();
    let declared: HashSet<&Name> = parts.buffers.iter().map(|decl| &decl.name).collect();
    let visible = parts.consts.iter().map(|decl| decl.name.clone()).collect();
    Repair { vars, buffers, declared, visible, loops: 0 }.body(&mut parts.body);
}

struct Repair<'a> {
    vars: HashMap<&'a Name, Option<ValueType>>,
    buffers: HashMap<&'a Name, ValueType>,
    declared: HashSet<&'a Name>,
    visible: Vec<Name>,
    loops: u32,
}

impl Repair<'_> {
    fn body(&mut self, body: &mut Body) {
        let outside = self.visible.len();
        for mut node in std::mem::take(body).into_inner() {
            for expr in node.exprs_mut() {
                self.expr(expr);
            }
            match &mut node {
                Node::Assign { name, .. } if !self.visible.contains(name) => continue,
                Node::Break | Node::Continue if self.loops == 0 => continue,
                Node::Store(store) if !self.declared.contains(&store.buffer) => continue,
                Node::Atomic(atomic) if !self.declared.contains(&atomic.buffer) => {
                    let ty = self.buffers.get(&atomic.buffer);
                    let Some((name, ty)) = atomic.result.take().zip(ty) else { continue };
                    node = Node::let_bind(name, zero(*ty));
                }
                Node::Loop(repeat) => {
                    self.loops += 1;
                    self.visible.push(repeat.var.clone());
                    self.body(&mut repeat.body);
                    self.visible.pop();
                    self.loops -= 1;
                }
                Node::Let { .. }
                | Node::Assign { .. }
                | Node::Store(_)
                | Node::Atomic(_)
                | Node::Subgroup(_)
                | Node::If { .. }
                | Node::Break
                | Node::Continue
                | Node::Return
                | Node::Barrier { .. }
                | Node::Trap { .. }
                | Node::Block(_)
                | Node::Region { .. } => node.bodies_mut().for_each(|body| self.body(body)),
            }
            self.visible.extend(declared(&node).cloned());
            body.push(node);
        }
        self.visible.truncate(outside);
    }

    fn expr(&mut self, expr: &mut Expr) {
        let gone = match expr {
            Expr::Var(name) if !self.visible.contains(name) => self.vars.get(name).copied().flatten(),
            Expr::Load { buffer, .. } if !self.declared.contains(buffer) => self.buffers.get(buffer).copied(),
            Expr::Len(buffer) if !self.declared.contains(buffer) => Some(vyre_foundation::ir::Scalar::U32.into()),
            Expr::Var(_)
            | Expr::Lit(_)
            | Expr::Builtin(_)
            | Expr::Len(_)
            | Expr::Load { .. }
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Vector { .. }
            | Expr::Extract { .. } => None,
        };
        match gone {
            Some(ty) => *expr = zero(ty),
            None => expr.children_mut().for_each(|child| self.expr(child)),
        }
    }
}
