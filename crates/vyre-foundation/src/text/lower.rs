//! The parsed program to IR: integers get their types.

use super::ast::{self, OpenInt, Reading};
use super::declarations::{does_not_fit, with_conversion, with_suffix};
use super::infer::{self, Context};
use crate::diagnostic::{Location, MAX_DIAGNOSTICS, Mistakes, Poison, Source, Spans};
use crate::ir::{Body, Expr, Item, Literal, Node, NodeId, Parts, Size, Walk};
use vyre_spec::Scalar;
use vyre_spec::limits::SUBGROUP_SIZES;

/// The IR of a text.
pub(super) struct Lowered {
    pub(super) parts: Parts,
    pub(super) spans: Spans,
    /// Where mistakes were reported, by the parser or as misfits.
    pub(super) poison: Poison,
    pub(super) misfits: Misfits,
}

/// The IR of a program, as far as it was read.
pub(super) fn lower(program: ast::Program) -> Lowered {
    let mut header = program.header;
    let poisoned_subgroup = header.poison.has(Location::Subgroup).then_some(SUBGROUP_SIZES[0]);
    let one = || ([Size::Lit(1), Size::Lit(1), Size::Lit(1)], program.name_span, [program.name_span; 3]);
    let (workgroup, workgroup_span, workgroup_axes) = header.workgroup.unwrap_or_else(one);
    let mut parts = Parts {
        workgroup,
        floats: header.floats.map_or_else(Default::default, |(mode, _)| mode),
        // One that is declared by a line that cannot be read is not missing.
        subgroup: header.subgroup.map(|(size, _)| size).or(poisoned_subgroup),
        consts: Vec::with_capacity(header.consts.len()),
        buffers: Vec::with_capacity(header.buffers.len()),
        body: match program.name {
            Some(generator) => vec![Node::Region { generator, body: program.body.into() }].into(),
            None => program.body.into(),
        },
    };
    let mut spans = Spans {
        program: program.name_span,
        workgroup: workgroup_span,
        workgroup_axes,
        subgroup: header.subgroup.map_or(program.name_span, |(_, span)| span),
        ..Spans::default()
    };
    for (decl, span) in header.consts {
        parts.consts.push(decl);
        spans.consts.push(span);
    }
    for (decl, span) in header.buffers {
        parts.buffers.push(decl);
        spans.buffers.push(span);
    }
    let misfits = decide(&mut parts, &program.readings, &mut header.poison);
    Lowered { parts, spans, poison: header.poison, misfits }
}

/// Puts the literals that the contexts fix in the places of open integers, and notes what is unknown.
fn decide(parts: &mut Parts, readings: &[Reading], poison: &mut Poison) -> Misfits {
    if readings.contains(&Reading::Unknown) {
        let mut readings = readings.iter();
        for (place, (item, _)) in (0..).zip(Walk::body(&parts.body)) {
            if let Item::Expr(Expr::Lit(_) | Expr::Vector { .. }) = item
                && readings.next() == Some(&Reading::Unknown)
            {
                poison.add(Location::Tree(NodeId(place)));
            }
        }
    }
    let is_open = |reading: &Reading| reading.open(0).is_some();
    let count = readings.iter().filter(|reading| is_open(reading)).count();
    if count == 0 {
        return Misfits::default();
    }
    let contexts = infer::contexts(parts, |listed, _| readings.get(listed).is_some_and(is_open), poison, count);
    let mut patch =
        Patch { contexts: contexts.into_iter(), readings: readings.iter(), place: 0, poison, misfits: Misfits::default() };
    patch.body(&mut parts.body);
    patch.misfits
}

/// Integers that the types their contexts fix do not hold: so many as are shown, and how many more there are.
#[derive(Default)]
pub(super) struct Misfits {
    shown: Vec<(NodeId, OpenInt, Context, Scalar)>,
    more: usize,
}

impl Misfits {
    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// The mistakes that they are, in their text.
    pub(super) fn mistakes(self, source: &Source) -> Mistakes {
        let mut mistakes = Mistakes::default();
        for (place, value, context, scalar) in self.shown {
            let span = source.span(Location::Tree(place));
            let digits = &source.text[span.start as usize..span.end as usize];
            let mistake = does_not_fit(digits, scalar, span);
            let advised = if context == Context::Free { with_suffix } else { with_conversion };
            mistakes.push(advised(mistake, value, scalar, digits, span));
        }
        mistakes.count_more(self.more);
        mistakes
    }
}

/// Gives open integers their types, each in its place of the walk.
struct Patch<'a> {
    /// Of those that are left.
    contexts: std::vec::IntoIter<Context>,
    readings: std::slice::Iter<'a, Reading>,
    place: u32,
    poison: &'a mut Poison,
    misfits: Misfits,
}

impl Patch<'_> {
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
        let reading = match expr {
            Expr::Lit(_) | Expr::Vector { .. } => self.readings.next().copied().unwrap_or(Reading::Plain),
            Expr::Var(_)
            | Expr::Builtin(_)
            | Expr::Len(_)
            | Expr::Load(_)
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Extract { .. } => Reading::Plain,
        };
        if let Expr::Lit(literal) = expr
            && let Some(value) = reading.open(literal.bits())
            && let Some(context) = self.contexts.next()
        {
            match context.literal(value) {
                Ok(decided) => *literal = decided,
                Err(scalar) => {
                    *literal = Literal::U32(0);
                    self.misfit(value, context, scalar);
                }
            }
        }
        self.place += 1;
        for child in expr.children_mut() {
            self.expr(child);
        }
    }

    #[cold]
    fn misfit(&mut self, value: OpenInt, context: Context, scalar: Scalar) {
        let place = NodeId(self.place);
        self.poison.add(Location::Tree(place));
        match self.misfits.shown.len() < MAX_DIAGNOSTICS {
            true => self.misfits.shown.push((place, value, context, scalar)),
            false => self.misfits.more += 1,
        }
    }
}
