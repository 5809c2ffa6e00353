//! Which variables the statements below an `if` or loop assign and read: what can meet behind it, and what has to be there before it.
//!
//! Each is one walk over the statements, linear in the kernel and, but for putting it in order, in what is found.

use crate::kernel::{ExprKind, Kernel, Stmt, StmtId, StmtKind, VarId};

/// By `if` and loop: the variables that were declared before it and that a statement below it assigns, in the order of
/// their declaration.
#[must_use]
pub fn assigned(kernel: &Kernel) -> Vec<Vec<VarId>> {
    below(kernel, |stmt, found| {
        if let StmtKind::Assign { var, .. } = stmt.kind {
            found(var);
        }
    })
}

/// By `if` and loop: the variables that were declared before it and that a statement below it reads, in the order of their
/// declaration. Condition and bounds are not below it.
#[must_use]
pub fn read(kernel: &Kernel) -> Vec<Vec<VarId>> {
    below(kernel, |stmt, found| {
        for operand in stmt.kind.operands() {
            kernel.for_each_part(operand, &mut |_, part| {
                if let ExprKind::Var { var } = part.kind {
                    found(var);
                }
            });
        }
    })
}

/// By `if` and loop: the variables that were declared before it and that `mentions` finds in a statement below it.
fn below(kernel: &Kernel, mentions: impl Fn(&Stmt, &mut dyn FnMut(VarId))) -> Vec<Vec<VarId>> {
    let mut all: Vec<Vec<VarId>> = vec![Vec::new(); kernel.stmts.len()];
    // By variable: the innermost statement around its latest mention. The statements around that one have the variable already.
    let mut latest: Vec<Option<StmtId>> = vec![None; kernel.vars.len()];
    let mut around: Vec<StmtId> = Vec::new();
    for (n, stmt) in kernel.stmts.iter().enumerate() {
        let id = StmtId(n as u32);
        while around.last().is_some_and(|outer| kernel.stmt(*outer).end <= id) {
            around.pop();
        }
        mentions(stmt, &mut |var| {
            let declared = kernel.var(var).declared;
            let latest = std::mem::replace(&mut latest[var.index()], around.last().copied());
            let has_it = |outer: StmtId| latest.is_some_and(|latest| (outer..kernel.stmt(outer).end).contains(&latest));
            for outer in around.iter().rev().take_while(|outer| declared < **outer && !has_it(**outer)) {
                all[outer.index()].push(var);
            }
        });
        match stmt.kind {
            StmtKind::If { .. } | StmtKind::Loop { .. } => around.push(id),
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier
            | StmtKind::GridSync
            | StmtKind::Trap { .. }
            | StmtKind::Scope { .. } => {}
        }
    }
    all.iter_mut().for_each(|found| found.sort_unstable());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_before_and_met_below() {
        let text = "program p {\n  workgroup 1\n  buffer out: output u32 @0\n\n  let a = 1\n  let b = 2\n  let c = 3\n  \
                    for i in 0..a {\n    let d = b\n    for k in 0..d {\n      d = d + i\n      c = k\n    }\n    \
                    if b < c {\n      c = d\n    }\n  }\n  out[0] = c\n}\n";
        let program = crate::text::parse("test", text).unwrap_or_else(|report| panic!("{report}"));
        let kernel = program.validated().unwrap_or_else(|report| panic!("{report}")).kernel();
        let spelled = |all: Vec<Vec<VarId>>| -> Vec<String> {
            let names = |vars: &Vec<VarId>| -> Vec<&str> { vars.iter().map(|var| kernel.var(*var).name.as_str()).collect() };
            let holds = |(_, stmt): &(&Vec<VarId>, &Stmt)| matches!(stmt.kind, StmtKind::If { .. } | StmtKind::Loop { .. });
            all.iter().zip(&kernel.stmts).filter(holds).map(|(vars, _)| names(vars).join(" ")).collect()
        };
        // The outer loop, the inner one, the `if`.
        assert_eq!(spelled(assigned(kernel)), ["c", "c d", "c"]);
        assert_eq!(spelled(read(kernel)), ["b c", "i d", "d"]);
    }
}
