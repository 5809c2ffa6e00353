//! One walk over a valid program that puts a fault into it: inner expressions before outer ones, expressions before their statement.
//!
//! A fault often needs an operand twice. It is then given a name in front of the statement ([`Site::bind`]), which changes nothing, since
//! expressions are pure and all operands are evaluated, and keeps the program from growing with the depth of its expressions. If what
//! comes out is not valid (control that was uniform may no longer be), the fault has no place in the program.

use std::sync::Arc;
use vyre_foundation::ir::{BinaryOp, Body, Expr, Node, Parts, Program, Scalar, TernaryOp, UnaryOp};
use vyre_foundation::kernel::{Buffer, ExprId, ExprKind, Kernel, StmtId, StmtKind, TypedExpr};

type OnExpr = dyn Fn(&mut Site<'_>, &Expr) -> Option<Expr> + Send + Sync;
type OnNode = dyn Fn(&mut Site<'_>, &Node) -> Option<Vec<Node>> + Send + Sync;
type OnParts = dyn Fn(&mut Parts, &Kernel) -> bool + Send + Sync;

/// A fault that is in the code of a program.
#[derive(Clone)]
pub(super) enum Change {
    /// In expressions: what stands in the place of this one, whose operands are already changed.
    Expr(Arc<OnExpr>),
    /// In statements: what stands in the place of this one, whose expressions and bodies are already changed.
    Node(Arc<OnNode>),
    /// In the program as a whole; whether it is changed.
    Parts(Arc<OnParts>),
}

/// Where the walk is.
pub(super) struct Site<'a> {
    /// The program as it was.
    pub kernel: &'a Kernel,
    /// Loops around this place.
    pub loops: u32,
    /// Conditions around this place.
    pub ifs: u32,
    /// Whether this expression is the index of a load, store or atomic, or a part of one.
    pub in_index: bool,
    /// What is counted by the fault itself: places met so far, for those that are about the first or the second.
    pub met: u32,
    by_place: Vec<Option<ExprId>>,
    stmts: Vec<Option<StmtId>>,
    typed: Option<ExprId>,
    stmt: Option<StmtId>,
    place: usize,
    lets: Vec<Node>,
    names: u32,
    changes: u32,
}

impl<'a> Site<'a> {
    /// The expression as it was, with its types.
    pub fn typed(&self) -> Option<&'a TypedExpr> {
        self.typed.map(|id| self.kernel.expr(id))
    }

    /// The scalar that the expression was a value of.
    pub fn scalar(&self) -> Option<Scalar> {
        self.typed()?.ty.scalar()
    }

    /// The type that the subgroup operation was on, which this statement was.
    pub fn subgroup_type(&self) -> Option<Scalar> {
        let StmtKind::Subgroup { ty, .. } = self.kernel.stmt(self.stmt?).kind else { return None };
        Some(ty)
    }

    /// The buffer with this name.
    pub fn buffer(&self, name: &vyre_foundation::ir::Name) -> Option<&'a Buffer> {
        self.kernel.buffers.iter().find(|buffer| buffer.name == *name)
    }

    /// The expression as something that can be used several times.
    pub fn bind(&mut self, value: Expr) -> Expr {
        match value {
            Expr::Lit(_) | Expr::Var(_) | Expr::Builtin(_) | Expr::Len(_) => value,
            Expr::Load(_)
            | Expr::Unary { .. }
            | Expr::Binary { .. }
            | Expr::Ternary { .. }
            | Expr::Cast { .. }
            | Expr::Bitcast { .. }
            | Expr::Vector { .. }
            | Expr::Extract { .. } => {
                let name = self.fresh();
                self.lets.push(Node::let_bind(&name[..], value));
                Expr::var(&name[..])
            }
        }
    }

    /// A name that nothing else has.
    pub fn fresh(&mut self) -> String {
        self.names += 1;
        format!("mutant {}", self.names)
    }

    fn body(&mut self, change: &Change, body: &mut Body) {
        for mut node in std::mem::take(body).into_inner() {
            let place = self.place;
            self.place += 1;
            let accesses = node.access().is_some();
            for (n, expr) in node.exprs_mut().enumerate() {
                self.in_index = accesses && n == 0;
                self.expr(change, expr);
            }
            self.in_index = false;
            let mut lets = std::mem::take(&mut self.lets);
            let (loops, ifs) = (u32::from(matches!(node, Node::Loop(_))), u32::from(matches!(node, Node::If { .. })));
            self.loops += loops;
            self.ifs += ifs;
            node.bodies_mut().for_each(|body| self.body(change, body));
            self.loops -= loops;
            self.ifs -= ifs;
            self.stmt = self.stmts.get(place).copied().flatten();
            let instead = match change {
                Change::Node(change) => change(self, &node),
                Change::Expr(_) | Change::Parts(_) => None,
            };
            lets.append(&mut self.lets);
            body.append(&mut lets);
            match instead {
                None => body.push(node),
                Some(nodes) => {
                    self.changes += 1;
                    body.extend(nodes);
                }
            }
        }
    }

    fn expr(&mut self, change: &Change, expr: &mut Expr) {
        let (place, in_index) = (self.place, self.in_index);
        self.place += 1;
        self.in_index |= matches!(expr, Expr::Load(_));
        expr.children_mut().for_each(|child| self.expr(change, child));
        self.in_index = in_index;
        let Change::Expr(change) = change else { return };
        self.typed = self.by_place.get(place).copied().flatten();
        if let Some(instead) = change(self, expr) {
            self.changes += 1;
            *expr = instead;
        }
    }
}

/// The program with the fault in it; `None` if the fault has no place in it.
pub(super) fn rewritten(program: &Program, change: &Change) -> Option<Program> {
    let kernel = program.validated().ok()?.kernel();
    let last = kernel.exprs.iter().map(|expr| expr.node.0 as usize + 1).max().unwrap_or(0);
    let mut by_place = vec![None; last];
    for (n, expr) in kernel.exprs.iter().enumerate() {
        by_place[expr.node.0 as usize] = Some(ExprId(n as u32));
    }
    let last = kernel.stmts.iter().map(|stmt| stmt.node.0 as usize + 1).max().unwrap_or(0);
    let mut stmts = vec![None; last];
    for (n, stmt) in kernel.stmts.iter().enumerate() {
        stmts[stmt.node.0 as usize] = Some(StmtId(n as u32));
    }
    let mut site = Site {
        kernel,
        loops: 0,
        ifs: 0,
        in_index: false,
        met: 0,
        by_place,
        stmts,
        typed: None,
        stmt: None,
        place: 0,
        lets: Vec::new(),
        names: 0,
        changes: 0,
    };
    let mut changed = false;
    let new = program.clone().edit(|parts| match change {
        Change::Parts(change) => changed = change(parts, kernel),
        Change::Expr(_) | Change::Node(_) => {
            site.body(change, &mut parts.body);
            changed = site.changes > 0;
        }
    });
    (changed && new.validated().is_ok()).then_some(new)
}

/// A change of expressions.
pub(super) fn on_expr(change: impl Fn(&mut Site<'_>, &Expr) -> Option<Expr> + Send + Sync + 'static) -> Change {
    Change::Expr(Arc::new(change))
}

/// A change of statements.
pub(super) fn on_node(change: impl Fn(&mut Site<'_>, &Node) -> Option<Vec<Node>> + Send + Sync + 'static) -> Change {
    Change::Node(Arc::new(change))
}

/// A change of a program as a whole.
pub(super) fn on_parts(change: impl Fn(&mut Parts, &Kernel) -> bool + Send + Sync + 'static) -> Change {
    Change::Parts(Arc::new(change))
}

/// A change of one op on one type, from its operand.
pub(super) fn on_unary(op: UnaryOp, ty: Scalar, change: impl Fn(&mut Site<'_>, Expr) -> Expr + Send + Sync + 'static) -> Change {
    on_expr(move |site, expr| {
        let ExprKind::Unary { op: here, ty: of, .. } = site.typed()?.kind else { return None };
        let Expr::Unary { operand, .. } = expr else { return None };
        (here == op && of == ty).then(|| change(site, Expr::clone(operand)))
    })
}

/// A change of one op on one type, from its two operands.
pub(super) fn on_binary(
    op: BinaryOp,
    ty: Scalar,
    change: impl Fn(&mut Site<'_>, Expr, Expr) -> Expr + Send + Sync + 'static,
) -> Change {
    on_expr(move |site, expr| {
        let ExprKind::Binary { op: here, ty: of, .. } = site.typed()?.kind else { return None };
        let Expr::Binary { left, right, .. } = expr else { return None };
        (here == op && of == ty).then(|| change(site, Expr::clone(left), Expr::clone(right)))
    })
}

/// A change of one op on one type, from its three operands.
pub(super) fn on_ternary(
    op: TernaryOp,
    ty: Scalar,
    change: impl Fn(&mut Site<'_>, [Expr; 3]) -> Expr + Send + Sync + 'static,
) -> Change {
    on_expr(move |site, expr| {
        let ExprKind::Ternary { op: here, ty: of, .. } = site.typed()?.kind else { return None };
        let Expr::Ternary { operands, .. } = expr else { return None };
        (here == op && of == ty).then(|| change(site, operands.each_ref().map(|operand| Expr::clone(operand))))
    })
}

/// A change of one conversion, from its operand.
pub(super) fn on_cast(from: Scalar, to: Scalar, change: impl Fn(&mut Site<'_>, Expr) -> Expr + Send + Sync + 'static) -> Change {
    on_expr(move |site, expr| {
        let ExprKind::Cast { from: of, to: into, .. } = site.typed()?.kind else { return None };
        let Expr::Cast { value, .. } = expr else { return None };
        ((of, into) == (from, to)).then(|| change(site, Expr::clone(value)))
    })
}
