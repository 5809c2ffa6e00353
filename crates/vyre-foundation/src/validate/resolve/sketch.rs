//! A kernel that will not be handed out, because there are mistakes in its text: only the check of uniformity reads it.
//!
//! Of statements, those are kept that choose, declare, assign or meet. Uniformity asks an expression for the variables and the divergent things below it, so nothing else is kept, and all uses of a variable are
//! one expression. A literal is kept while messages may be written about it: until the op or the statement that has it is done. So a
//! text with mistakes takes hardly more memory than its tree, however dense it is.

use super::super::uniformity::divergence_source;
use super::{Resolver, Typed};
use crate::ir::NodeId;
use crate::kernel::{ExprId, ExprKind, Few, StmtKind, TypedExpr, VarId};
use vyre_spec::{Scalar, ValueType};

/// The expression of each variable.
pub(super) struct Sketch(Vec<ExprId>);

/// An expression of which nothing needs to be known.
const NOTHING: ExprId = ExprId(0);

/// Whether uniformity has nothing to do with a statement, those below it aside, with so many `if`s and loops around it.
pub(super) fn is_unasked(kind: &StmtKind, control: u32) -> bool {
    match kind {
        StmtKind::Store { .. } | StmtKind::Return | StmtKind::Trap { .. } | StmtKind::GridSync => true,
        // One with statements is never made.
        StmtKind::Scope { .. } => true,
        StmtKind::Let { value, .. } | StmtKind::Assign { value, .. } => control == 0 && *value == NOTHING,
        StmtKind::Atomic { .. }
        | StmtKind::Subgroup { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Barrier => false,
    }
}

impl Resolver<'_> {
    pub(super) fn begin_sketch(&mut self) {
        self.sketch = Some(Sketch(Vec::new()));
        self.draw(ExprKind::Lit { bits: 0 }, NodeId(0));
    }

    fn draw(&mut self, kind: ExprKind, node: NodeId) -> ExprId {
        self.kernel.exprs.push(TypedExpr { kind, ty: ValueType::Scalar(Scalar::U32), node });
        ExprId(self.kernel.exprs.len() as u32 - 1)
    }

    /// A variable was declared.
    pub(super) fn sketch_var(&mut self, var: VarId, node: NodeId) {
        if self.sketch.is_some() {
            let id = self.draw(ExprKind::Var { var }, node);
            self.sketch.iter_mut().for_each(|sketch| sketch.0.push(id));
        }
    }

    /// What is kept of an expression; `None` if all is.
    pub(super) fn sketched(&mut self, kind: ExprKind, node: NodeId) -> Option<ExprId> {
        let Sketch(vars) = self.sketch.as_ref()?;
        let is_literal = match kind {
            ExprKind::Var { var } => return Some(vars[var.index()]),
            ExprKind::Lit { .. } => true,
            ExprKind::Builtin { .. }
            | ExprKind::Len { .. }
            | ExprKind::Load { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Ternary { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Bitcast { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => false,
        };
        if is_literal || divergence_source(&self.kernel, kind) {
            return Some(self.draw(kind, node));
        }
        let operands = kind.operands();
        for operand in operands.iter().rev() {
            if self.is_literal(*operand) && operand.index() + 1 == self.kernel.exprs.len() && *operand != NOTHING {
                self.kernel.exprs.pop();
            }
        }
        Some(operands.iter().fold(NOTHING, |all, operand| self.joined(all, *operand, node)))
    }

    /// Whether the expression is a literal, or one that was dropped.
    fn is_literal(&self, id: ExprId) -> bool {
        self.kernel.exprs.get(id.index()).is_none_or(|expr| matches!(expr.kind, ExprKind::Lit { .. }))
    }

    /// What is kept of two expressions.
    fn joined(&mut self, one: ExprId, other: ExprId, node: NodeId) -> ExprId {
        if one == other || self.is_literal(other) {
            return one;
        }
        if self.is_literal(one) {
            return other;
        }
        let last = self.kernel.exprs.len() - 1;
        if let ExprKind::Vector { components } = &mut self.kernel.exprs[one.index()].kind {
            if components.contains(&other) {
                return one;
            }
            if one.index() == last && components.len() < 4 {
                *components = Few::of(&[&components[..], &[other]].concat());
                return one;
            }
        }
        self.draw(ExprKind::Vector { components: Few::of(&[one, other]) }, node)
    }

    /// The value of a statement whose expressions begin with number `first`, when all was said about it.
    pub(super) fn settled(&mut self, first: usize, value: ExprId) -> ExprId {
        if self.sketch.is_some() && value.index() >= first && self.is_literal(value) {
            self.kernel.exprs.truncate(first);
            return NOTHING;
        }
        value
    }

    /// Drops the expressions from this number on, none of which is asked for.
    pub(super) fn unasked(&mut self, first: usize) {
        if self.sketch.is_some() {
            self.kernel.exprs.truncate(first);
        }
    }

    /// Operands that messages about divergence point at: each is an expression of its own.
    pub(super) fn apart(&mut self, mut operands: Vec<Typed>) -> Vec<Typed> {
        if self.sketch.is_some() {
            for operand in &mut operands {
                operand.id = self.draw(ExprKind::Vector { components: Few::of(&[operand.id]) }, operand.place);
            }
        }
        operands
    }
}
