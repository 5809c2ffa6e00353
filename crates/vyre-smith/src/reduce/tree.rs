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
    rewrite_exprs(body, &mut |_, expr| matches!(expr, Expr::Var(used) if used == name).then(|| value.clone()));
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
            if matches!(&node, Node::Assign { name, .. } if !self.visible.contains(name))
                || matches!(&node, Node::Break | Node::Continue if self.loops == 0)
            {
                continue;
            }
            if let Some((buffer, _)) = node.access()
                && !self.declared.contains(buffer)
            {
                let Some((name, ty)) = node.result().zip(self.buffers.get(buffer)) else { continue };
                node = Node::let_bind(name, zero(*ty));
            }
            let (inside, counter) = (self.visible.len(), node.counter().cloned());
            let loops = u32::from(counter.is_some());
            self.visible.extend(counter);
            self.loops += loops;
            node.bodies_mut().for_each(|body| self.body(body));
            self.loops -= loops;
            self.visible.truncate(inside);
            self.visible.extend(node.declares().cloned());
            body.push(node);
        }
        self.visible.truncate(outside);
    }

    fn expr(&mut self, expr: &mut Expr) {
        let gone = match expr.name() {
            Some(name) if matches!(expr, Expr::Var(_)) => {
                self.vars.get(name).copied().flatten().filter(|_| !self.visible.contains(name))
            }
            Some(buffer) if self.declared.contains(buffer) => None,
            Some(_) if matches!(expr, Expr::Len(_)) => Some(vyre_foundation::ir::Scalar::U32.into()),
            Some(buffer) => self.buffers.get(buffer).copied(),
            None => None,
        };
        match gone {
            Some(ty) => *expr = zero(ty),
            None => expr.children_mut().for_each(|child| self.expr(child)),
        }
    }
}
