//! Branch and loop simplification: control that is already decided goes.
//!
//! - `if` on `true` or `false` is the arm that is taken.
//! - A loop whose bounds leave no round goes; one whose bounds leave exactly one is its body, with the counter replaced by its one
//!   value, unless a `break` or `continue` leaves that round.
//! - An `if` with two empty arms, a loop with an empty body and an empty scope go. Conditions and bounds are pure, so nothing is
//!   lost with them.
//! - `continue` where the round ends anyway, and `return` where the program does, go.
//! - A block is taken apart into the statements around it where that changes no scope: it declares nothing itself, or it is the last
//!   of its body, so that what it declares ends there either way.
//!
//! It looks at the tree only, and only at literals: making conditions into literals is the business of pass `fold`. Nothing gets
//! evaluated more often, and nothing gets under control that it was not under before, so every rule about uniform control holds
//! after as it did before. The nesting never grows.
//!
//! What it leaves alone: regions, which say who made them, unless they are empty; arms that declare names and are not last, which
//! stay blocks, because the names may be used again below; loops of several rounds; conditions that are equal to others around them.

use super::rewrite;
use crate::ir::{Expr, Literal, Name, Node, Program};

/// The pass.
pub(super) fn control(program: &Program) -> Program {
    // A valid program has bounded nesting, so recursion is safe.
    if program.validated().is_err() {
        return program.clone();
    }
    rewrite(program, |nodes, _| body(nodes, Some(&Node::Return)))
}

/// The statements of a body. `last` is what goes where nothing comes after it: `return` at the end of the program, `continue` at the
/// end of a round.
fn body(nodes: &[Node], last: Option<&Node>) -> Vec<Node> {
    // From the end, so that what becomes the last statement is known to be.
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes.iter().rev() {
        let last = last.filter(|_| out.is_empty());
        if last == Some(node) {
            continue;
        }
        let is_last = out.is_empty();
        let simplified = simplify(node, last, is_last);
        out.extend(simplified.into_iter().rev());
    }
    out.reverse();
    out
}

fn simplify(node: &Node, last: Option<&Node>, is_last: bool) -> Vec<Node> {
    match node {
        Node::If { cond: Expr::Lit(Literal::Bool(taken)), then, otherwise } => {
            scope(body(if *taken { then } else { otherwise }, last), is_last)
        }
        Node::If { cond, then, otherwise } => {
            let (then, otherwise) = (body(then, last), body(otherwise, last));
            if then.is_empty() && otherwise.is_empty() {
                return Vec::new();
            }
            vec![Node::If { cond: cond.clone(), then: then.into(), otherwise: otherwise.into() }]
        }
        Node::Loop { var, from, to, body: old } => {
            let rounds = rounds(from, to);
            if rounds == Some(0) {
                return Vec::new();
            }
            let mut new = body(old, Some(&Node::Continue));
            if new.is_empty() {
                return Vec::new();
            }
            if rounds == Some(1) && !leaves_its_loop(&new) {
                new.iter_mut().for_each(|node| replace(node, var, from));
                return scope(new, is_last);
            }
            vec![Node::Loop { var: var.clone(), from: from.clone(), to: to.clone(), body: new.into() }]
        }
        Node::Block(old) => scope(body(old, last), is_last),
        Node::Region { generator, body: old } => {
            let new = body(old, last);
            if new.is_empty() {
                return Vec::new();
            }
            vec![Node::Region { generator: generator.clone(), body: new.into() }]
        }
        Node::Let { .. }
        | Node::Assign { .. }
        | Node::Store { .. }
        | Node::Atomic { .. }
        | Node::Subgroup { .. }
        | Node::Break
        | Node::Continue
        | Node::Return
        | Node::Barrier { .. }
        | Node::Trap { .. } => vec![node.clone()],
    }
}

/// Statements in a scope of their own, if they need one. What the last one declares ends where the body does.
fn scope(nodes: Vec<Node>, is_last: bool) -> Vec<Node> {
    if !is_last && nodes.iter().any(declares) { vec![Node::Block(nodes.into())] } else { nodes }
}

/// Whether the statement declares a variable in the scope it stands in.
fn declares(node: &Node) -> bool {
    match node {
        Node::Let { .. } | Node::Atomic { result: Some(_), .. } | Node::Subgroup { result: Some(_), .. } => true,
        Node::Atomic { result: None, .. }
        | Node::Subgroup { result: None, .. }
        | Node::Assign { .. }
        | Node::Store { .. }
        | Node::If { .. }
        | Node::Loop { .. }
        | Node::Break
        | Node::Continue
        | Node::Return
        | Node::Barrier { .. }
        | Node::Trap { .. }
        | Node::Block(_)
        | Node::Region { .. } => false,
    }
}

/// How often a loop with these bounds runs, if that can be told.
fn rounds(from: &Expr, to: &Expr) -> Option<u32> {
    match (from, to) {
        (Expr::Lit(Literal::U32(from)), Expr::Lit(Literal::U32(to))) => Some(to.saturating_sub(*from)),
        (_, Expr::Lit(Literal::U32(0))) | (Expr::Lit(Literal::U32(u32::MAX)), _) => Some(0),
        // Two names side by side have one value; two loads may not.
        (Expr::Var(from), Expr::Var(to)) | (Expr::Len(from), Expr::Len(to)) if from == to => Some(0),
        (Expr::Builtin(from), Expr::Builtin(to)) if from == to => Some(0),
        _ => None,
    }
}

/// Whether a `break` or `continue` of the loop around `nodes` is among them.
fn leaves_its_loop(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Break | Node::Continue => true,
        Node::If { then, otherwise, .. } => leaves_its_loop(then) || leaves_its_loop(otherwise),
        Node::Block(body) | Node::Region { body, .. } => leaves_its_loop(body),
        // Those inside leave that loop.
        Node::Loop { .. }
        | Node::Let { .. }
        | Node::Assign { .. }
        | Node::Store { .. }
        | Node::Atomic { .. }
        | Node::Subgroup { .. }
        | Node::Return
        | Node::Barrier { .. }
        | Node::Trap { .. } => false,
    })
}

/// Puts `value` where `var` is read; nothing in its scope can have the same name.
fn replace(node: &mut Node, var: &Name, value: &Expr) {
    fn in_expr(expr: &mut Expr, var: &Name, value: &Expr) {
        if matches!(expr, Expr::Var(name) if name == var) {
            *expr = value.clone();
        } else {
            expr.children_mut().for_each(|child| in_expr(child, var, value));
        }
    }
    node.exprs_mut().for_each(|expr| in_expr(expr, var, value));
    node.bodies_mut().flat_map(|body| body.iter_mut()).for_each(|node| replace(node, var, value));
}
