//! Everything that must work on trees of any depth: drop, clone, compare and walk keep their own stack instead of recursing.

use super::expr::{Child, Expr};
use super::node::{Body, Node, NodeParts};
use crate::wire;

/// Where in a program something is: the number of a statement or expression in the walk of [`Walk`], from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// One stop of a walk.
#[derive(Clone, Copy)]
pub enum Item<'a> {
    /// A statement.
    Node(&'a Node),
    /// An expression.
    Expr(&'a Expr),
}

/// A walk over statements and expressions in source order: a statement comes before its expressions, those before its bodies, and
/// an expression before its operands. Gives each item with its depth, counted from 1. It takes memory with the depth of the tree, not
/// with its width.
pub struct Walk<'a> {
    /// What is still to be visited, the next last.
    stack: Vec<(Rest<'a>, u32)>,
}

/// Neighbours that are still to be visited.
enum Rest<'a> {
    Nodes(std::slice::Iter<'a, Node>),
    Exprs(std::slice::Iter<'a, Expr>),
    Children(std::slice::Iter<'a, Child>),
    Expr(Option<&'a Expr>),
}

impl<'a> Walk<'a> {
    /// A walk over a body.
    #[must_use]
    pub fn body(nodes: &'a [Node]) -> Self {
        Walk { stack: vec![(Rest::Nodes(nodes.iter()), 1)] }
    }

    /// A walk over one expression.
    #[must_use]
    pub fn expr(expr: &'a Expr) -> Self {
        Walk { stack: vec![(Rest::Expr(Some(expr)), 1)] }
    }

    fn enter_node(&mut self, node: &'a Node, depth: u32) {
        let NodeParts { exprs, operands, bodies, .. } = node.parts();
        for body in bodies.into_iter().rev().flatten().filter(|body| !body.is_empty()) {
            self.stack.push((Rest::Nodes(body.iter()), depth));
        }
        if !operands.is_empty() {
            self.stack.push((Rest::Exprs(operands.iter()), depth));
        }
        self.stack.extend(exprs.into_iter().rev().flatten().map(|expr| (Rest::Expr(Some(expr)), depth)));
    }

    fn enter_expr(&mut self, expr: &'a Expr, depth: u32) {
        let (few, many) = expr.child_lists();
        if !many.is_empty() {
            self.stack.push((Rest::Children(many.iter()), depth));
        }
        self.stack.extend(few.into_iter().rev().flatten().map(|child| (Rest::Expr(Some(child)), depth)));
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (Item<'a>, u32);

    fn next(&mut self) -> Option<(Item<'a>, u32)> {
        loop {
            let (rest, depth) = self.stack.last_mut()?;
            let depth = *depth;
            let item = match rest {
                Rest::Nodes(nodes) => nodes.next().map(Item::Node),
                Rest::Exprs(exprs) => exprs.next().map(Item::Expr),
                Rest::Children(children) => children.next().map(|child| Item::Expr(child)),
                Rest::Expr(expr) => expr.take().map(Item::Expr),
            };
            match item {
                None => drop(self.stack.pop()),
                Some(item) => {
                    match item {
                        Item::Node(node) => self.enter_node(node, depth + 1),
                        Item::Expr(expr) => self.enter_expr(expr, depth + 1),
                    }
                    return Some((item, depth));
                }
            }
        }
    }
}

/// Drops an expression of any depth.
pub(super) fn drop_expr(mut root: Box<Expr>) {
    let mut pending = Vec::new();
    drop_below(&mut root, SHALLOW, &mut pending);
    while let Some(mut expr) = pending.pop() {
        drop_below(&mut expr, SHALLOW, &mut pending);
    }
}

/// Levels that are dropped by recursion, which is faster than a list.
const SHALLOW: u32 = 16;

/// Drops what is below an expression, or puts it on the list if it is more levels down.
fn drop_below(expr: &mut Expr, levels: u32, pending: &mut Vec<Expr>) {
    for mut child in expr.children_mut().filter_map(Child::take) {
        match levels {
            0 => pending.push(*child),
            _ => drop_below(&mut child, levels - 1, pending),
        }
    }
}

/// Drops statements of any depth: bodies are taken out of their statements first.
pub(super) fn drop_body(root: Vec<Node>) {
    let mut pending = vec![root];
    while let Some(mut nodes) = pending.pop() {
        let bodies = nodes.iter_mut().flat_map(Node::bodies_mut);
        pending.extend(bodies.filter(|body| !body.is_empty()).map(|body| std::mem::take(body).into_inner()));
    }
}

enum Step<T> {
    Enter(T),
    Exit(T),
}

pub(super) fn clone_expr(root: &Expr) -> Expr {
    let mut steps = vec![Step::Enter(root)];
    let mut done: Vec<Expr> = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(expr) if expr.is_leaf() => done.push(expr.with_children(Expr::clone)),
            Step::Enter(expr) => {
                steps.push(Step::Exit(expr));
                steps.extend(expr.children().rev().map(Step::Enter));
            }
            Step::Exit(expr) => {
                let mut children = done.split_off(done.len() - expr.children().count()).into_iter();
                let next = |_| children.next().expect("as many clones as children");
                done.push(expr.with_children(next));
            }
        }
    }
    done.pop().expect("the root was cloned")
}

pub(super) fn clone_body(root: &[Node]) -> Vec<Node> {
    let mut steps: Vec<Step<&Node>> = root.iter().rev().map(Step::Enter).collect();
    let mut done: Vec<Node> = Vec::with_capacity(root.len());
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(node) => {
                steps.push(Step::Exit(node));
                let inner = node.bodies().rev().flat_map(|body| body.iter().rev());
                steps.extend(inner.map(Step::Enter));
            }
            Step::Exit(node) => {
                let mut clone = node.without_bodies();
                let total: usize = node.bodies().map(|body| body.len()).sum();
                let mut inner = done.split_off(done.len() - total).into_iter();
                for (new, old) in clone.bodies_mut().zip(node.bodies()) {
                    *new = inner.by_ref().take(old.len()).collect::<Body>();
                }
                done.push(clone);
            }
        }
    }
    done
}

/// Equal trees have equal encodings: floats are compared by their bits.
pub(super) fn same_expr(a: &Expr, b: &Expr) -> bool {
    wire::encode_expr(a) == wire::encode_expr(b)
}

/// See [`same_expr`].
pub(super) fn same_body(a: &[Node], b: &[Node]) -> bool {
    a.len() == b.len() && wire::encode_nodes(a) == wire::encode_nodes(b)
}

#[cfg(test)]
mod tests {
    use super::super::*;

    const DEEP: usize = 1_000_000;

    fn deep_expr() -> Expr {
        (0..DEEP).fold(Expr::u32(1), |expr, i| match i % 4 {
            0 => Expr::neg(expr),
            1 => Expr::add(expr, Expr::u32(i as u32)),
            2 => Expr::vector([Expr::u32(0), expr]),
            _ => Expr::select(Expr::bool(true), expr, Expr::u32(2)),
        })
    }

    fn deep_nodes() -> Vec<Node> {
        (0..DEEP).fold(vec![Node::Return], |nodes, i| match i % 3 {
            0 => vec![Node::if_then_else(Expr::bool(true), vec![Node::Return], nodes)],
            1 => vec![Node::loop_for("i", Expr::u32(0), Expr::u32(1), nodes)],
            _ => vec![Node::Break, Node::block(nodes)],
        })
    }

    #[test]
    fn expressions_a_million_deep_are_cloned_compared_and_dropped() {
        let expr = deep_expr();
        let copy = expr.clone();
        assert!(expr == copy);
        assert!(Expr::neg(copy) != expr);
    }

    #[test]
    fn statements_a_million_deep_are_cloned_compared_and_dropped() {
        let program = Program::wrapped(vec![], [1, 1, 1], deep_nodes());
        let body = program.parts().body.clone();
        let copy = Program::new(vec![], [1, 1, 1], body.into_inner());
        assert_eq!(program.fingerprint(), copy.fingerprint());
        assert!(program == copy);
        assert!(program.walk().map(|(_, depth)| depth).max() > Some(DEEP as u32));
        assert!(program.validated().is_err());
        assert!(format!("{program}").len() < 1000);
    }

    #[test]
    fn element_types_a_million_deep_are_an_error_with_a_place() {
        use crate::diagnostic::{BufferPart, Location};
        let deep = || (0..DEEP).fold(DataType::U8, |element, _| DataType::Vec { element: Box::new(element), count: 2 });
        let buffers = vec![BufferDecl::read("a", 0, DataType::U32), BufferDecl::read("b", 1, deep())];
        let in_buffer = Program::wrapped(buffers, [1, 1, 1], vec![Node::store("b", Expr::u32(0), Expr::load("b", Expr::u32(0)))]);
        let in_const = Program::default().with_const("t", SpecValue::DType(deep()));
        let places = [Location::Buffer(1, BufferPart::Element), Location::Const(0)];
        for (program, place) in [in_buffer, in_const].into_iter().zip(places) {
            let report = program.validated().expect_err("nested too deep");
            let [mistake] = &report.diagnostics[..] else { panic!("one mistake is enough") };
            assert_eq!((mistake.code.name(), mistake.location), ("E0507", Some(place)));
            let copy = program.clone().edit(|_| ());
            assert!(copy == program && copy.fingerprint() == program.fingerprint());
            assert!(program.to_string().len() < 1000 && crate::wire::to_wire(&program).is_err());
            assert!(crate::specialize::specialize(&program, []).is_ok());
        }
    }

    #[test]
    fn a_walk_visits_statements_before_their_expressions_before_their_bodies() {
        let node = Node::if_then_else(
            Expr::lt(Expr::var("a"), Expr::u32(1)),
            vec![Node::store("x", Expr::u32(2), Expr::u32(3))],
            vec![Node::Return],
        );
        let seen: Vec<String> = Walk::body(&[node])
            .map(|(item, depth)| match item {
                Item::Node(Node::If { .. }) => format!("{depth} if"),
                Item::Node(node) => format!("{depth} {node}"),
                Item::Expr(expr) => format!("{depth} {expr}"),
            })
            .collect();
        assert_eq!(seen, ["1 if", "2 a < 1u", "3 a", "3 1u", "2 x[2u] = 3u", "3 2u", "3 3u", "2 return"]);
    }
}
