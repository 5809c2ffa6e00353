//! The parsed tree to IR, with the spans of all its parts.

use super::ast;
use super::ast::{ExprKind, OpenInt, StmtKind};
use super::declarations::{does_not_fit, with_conversion, with_suffix};
use super::infer::{self, Context};
use crate::diagnostic::{Location, Mistakes, Poison, Span, Spans};
use crate::ir::{Atomic, Body, Child, Expr, Literal, Loop, Node, NodeId, Parts, Size, Subgroup};
use vyre_spec::Scalar;
use vyre_spec::limits::SUBGROUP_SIZES;

/// The IR of a text.
pub(super) struct Lowered {
    pub(super) parts: Parts,
    pub(super) spans: Spans,
    /// Where mistakes were reported, here or by the parser.
    pub(super) poison: Poison,
    /// Those that were found here: integers that the types their contexts fix do not hold.
    pub(super) mistakes: Mistakes,
}

/// The IR of a program, as far as it was read.
pub(super) fn lower(program: ast::Program, text: &str) -> Lowered {
    let header = program.header;
    let mut lowering = Lowering { spans: Spans::default(), open: Vec::with_capacity(program.open), poison: header.poison };
    let poisoned_subgroup = lowering.poison.has(Location::Subgroup).then_some(SUBGROUP_SIZES[0]);
    let one = || ([Size::Lit(1), Size::Lit(1), Size::Lit(1)], program.name_span, [program.name_span; 3]);
    let (workgroup, workgroup_span, workgroup_axes) = header.workgroup.unwrap_or_else(one);
    let mut parts = Parts {
        workgroup,
        floats: header.floats.map_or_else(Default::default, |(mode, _)| mode),
        // One that is declared by a line that cannot be read is not missing.
        subgroup: header.subgroup.map(|(size, _)| size).or(poisoned_subgroup),
        consts: Vec::with_capacity(header.consts.len()),
        buffers: Vec::with_capacity(header.buffers.len()),
        body: Body::default(),
    };
    let spans = &mut lowering.spans;
    spans.tree.reserve_exact(program.nodes);
    spans.program = program.name_span;
    spans.workgroup = workgroup_span;
    spans.workgroup_axes = workgroup_axes;
    spans.subgroup = header.subgroup.map_or(program.name_span, |(_, span)| span);
    for (decl, span) in header.consts {
        parts.consts.push(decl);
        spans.consts.push(span);
    }
    for (decl, span) in header.buffers {
        parts.buffers.push(decl);
        spans.buffers.push(span);
    }
    parts.body = match program.name {
        Some(generator) => {
            lowering.place(program.span, program.name_span);
            vec![Node::Region { generator, body: lowering.body(program.body) }].into()
        }
        None => lowering.body(program.body),
    };
    let mistakes = if lowering.open.is_empty() { Mistakes::default() } else { lowering.decide(&mut parts, text) };
    Lowered { parts, spans: lowering.spans, poison: lowering.poison, mistakes }
}

struct Lowering {
    spans: Spans,
    /// The places of integers without a type, in order. They are many, so what each says is read again where it stands.
    open: Vec<u32>,
    poison: Poison,
}

impl Lowering {
    /// Puts the literals that the contexts fix in the places of open integers.
    fn decide(&mut self, parts: &mut Parts, text: &str) -> Mistakes {
        let is_open = |place, _| self.open.binary_search(&place).is_ok();
        let contexts = infer::contexts(parts, is_open, &self.poison);
        let mut patch = Patch {
            open: self.open.iter().copied().zip(contexts).peekable(),
            place: 0,
            text,
            spans: &self.spans,
            poison: &mut self.poison,
            mistakes: Mistakes::default(),
        };
        patch.body(&mut parts.body);
        patch.mistakes
    }

    /// Notes where the next statement or expression of the walk stands.
    fn place(&mut self, whole: Span, head: Span) -> u32 {
        self.spans.tree.push((whole, head));
        self.spans.tree.len() as u32 - 1
    }

    fn body(&mut self, body: Vec<ast::Stmt>) -> Body {
        body.into_iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn result(&mut self, place: u32, result: Option<(crate::ir::Name, Span)>) -> Option<crate::ir::Name> {
        result.map(|(name, span)| {
            self.spans.results.push((NodeId(place), span));
            name
        })
    }

    fn stmt(&mut self, stmt: ast::Stmt) -> Node {
        let place = self.place(stmt.span, stmt.head);
        match stmt.kind {
            StmtKind::Let(parts) => {
                let (name, value) = *parts;
                Node::Let { name, value: self.child(value) }
            }
            StmtKind::Assign(parts) => {
                let (name, value) = *parts;
                Node::Assign { name, value: self.child(value) }
            }
            StmtKind::Store(parts) => {
                let (buffer, operands) = *parts;
                let [index, value] = operands.map(|operand| self.expr(operand));
                Node::store(buffer, index, value)
            }
            StmtKind::Atomic(atomic) => {
                let ast::Atomic { result, op, function, buffer, index, operands } = *atomic;
                self.spans.operations.push((NodeId(place), function));
                let result = self.result(place, result);
                let index = self.expr(index);
                let operands = operands.into_iter().map(|operand| self.expr(operand)).collect();
                Atomic { result, op, buffer, index, operands }.into()
            }
            StmtKind::Subgroup(subgroup) => {
                let ast::Subgroup { result, op, operands } = *subgroup;
                let result = self.result(place, result);
                Subgroup { result, op, operands: operands.into_iter().map(|operand| self.expr(operand)).collect() }.into()
            }
            StmtKind::If(parts) => {
                let (cond, [then, otherwise]) = *parts;
                let cond = self.child(cond);
                let then = self.body(then);
                Node::If { cond, then, otherwise: self.body(otherwise) }
            }
            StmtKind::Loop(repeat) => {
                let ast::Loop { var, bounds, body } = *repeat;
                let [from, to] = bounds.map(|bound| self.expr(bound));
                Loop { var, from, to, body: self.body(body) }.into()
            }
            StmtKind::Break => Node::Break,
            StmtKind::Continue => Node::Continue,
            StmtKind::Return => Node::Return,
            StmtKind::Barrier(ordering) => Node::Barrier { ordering },
            StmtKind::Trap(tag) => Node::Trap { tag },
            StmtKind::Block(body) => Node::Block(body.map_or_else(Body::default, |body| self.body(*body))),
            StmtKind::Region(parts) => {
                let (generator, body) = *parts;
                Node::Region { generator, body: self.body(body) }
            }
        }
    }

    fn child(&mut self, expr: ast::Expr) -> Child {
        self.expr(expr).into()
    }

    fn expr(&mut self, expr: ast::Expr) -> Expr {
        let place = self.place(expr.span, expr.head);
        match expr.kind {
            ExprKind::Lit(literal) => Expr::Lit(literal),
            ExprKind::Open => {
                self.open.push(place);
                Expr::Lit(Literal::U32(0))
            }
            ExprKind::Var(name) => Expr::Var(name),
            ExprKind::Builtin(builtin) => Expr::Builtin(builtin),
            ExprKind::Len(buffer) => Expr::Len(buffer),
            ExprKind::Load(parts) => {
                let (buffer, index) = *parts;
                Expr::Load { buffer, index: self.child(index) }
            }
            ExprKind::Unary(op, operand) => Expr::Unary { op, operand: self.child(*operand) },
            ExprKind::Binary(op, operands) => {
                let [left, right] = operands.map(|operand| self.child(operand));
                Expr::Binary { op, left, right }
            }
            ExprKind::Ternary(op, operands) => Expr::Ternary { op, operands: operands.map(|operand| self.child(operand)) },
            ExprKind::Cast(to, value) => Expr::Cast { to, value: self.child(*value) },
            ExprKind::Bitcast(to, value) => Expr::Bitcast { to, value: self.child(*value) },
            ExprKind::Vector(components) => {
                Expr::Vector { components: components.into_iter().map(|component| self.child(component)).collect() }
            }
            ExprKind::Extract(vector, component) => Expr::Extract { vector: self.child(*vector), component },
            ExprKind::Unknown(operands) => {
                self.poison.add(Location::Tree(NodeId(place)));
                Expr::Vector { components: operands.into_iter().map(|operand| self.child(operand)).collect() }
            }
        }
    }
}

/// Gives open integers their types, each in its place of the walk.
struct Patch<'a, I: Iterator<Item = (u32, Context)>> {
    open: std::iter::Peekable<I>,
    place: u32,
    text: &'a str,
    spans: &'a Spans,
    poison: &'a mut Poison,
    mistakes: Mistakes,
}

impl<I: Iterator<Item = (u32, Context)>> Patch<'_, I> {
    fn body(&mut self, body: &mut Body) {
        for node in body.iter_mut() {
            self.place += 1;
            for expr in node.exprs_mut() {
                self.expr(expr);
            }
            for body in node.bodies_mut() {
                self.body(body);
            }
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        if let Some((place, context)) = self.open.next_if(|(place, _)| *place == self.place) {
            let (span, _) = self.spans.tree[place as usize];
            let digits = &self.text[span.start as usize..span.end as usize];
            match context.literal(OpenInt::at(digits)) {
                Ok(literal) => *expr = Expr::Lit(literal),
                Err(scalar) => self.does_not_fit(digits, context, scalar, span),
            }
        }
        self.place += 1;
        for child in expr.children_mut() {
            self.expr(child);
        }
    }

    #[cold]
    fn does_not_fit(&mut self, digits: &str, context: Context, scalar: Scalar, span: Span) {
        let mistake = does_not_fit(digits, scalar, span);
        let advised = if context == Context::Free { with_suffix } else { with_conversion };
        self.mistakes.push(advised(mistake, OpenInt::at(digits), scalar, digits, span));
        self.poison.add(Location::Tree(NodeId(self.place)));
    }
}
