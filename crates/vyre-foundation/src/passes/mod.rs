//! Passes: plain functions from a valid program to a valid program that gives the same bytes with less work.
//!
//! [`PASSES`] is the list, in the order in which [`optimize`] runs them, round after round until nothing changes. Each pass is
//! useful by itself, may be left out, and is described on top of its file: what it does, why that is right, what it leaves alone.
//! A program that is not valid, or that a pass has nothing to say about, comes back as it is.
//!
//! **What "the same bytes" asks for.** A dispatch that is free of data races can give exactly what it could give before: outputs, or
//! the tag and invocation of a trap. A dispatch with races still gives what the plain interpreter gave for it: between two
//! rendezvous (barriers and subgroup operations) the interpreter runs one invocation without a pause, so what other invocations
//! write can only become visible at a rendezvous. Passes therefore treat a load of memory that can be written as a value that
//! holds until this invocation writes the buffer or meets others. Loads of `read` and `uniform` buffers never change.
//!
//! **What may change.** How many steps a run takes, where statements are (so a trap is reported at another place), and names that
//! the pass makes. What is *asked of a program before it runs* may change too, always towards more: code that is gone needs no
//! uniform control, no proof of determinism, no local ids. Launches are therefore planned, and determinism is told, for the
//! program as its author wrote it.
//!
//! **What never changes.** Buffers, workgroup size, attributes, the name of the root region, and whether there is one.
//!
//! **Effects.** Expressions are pure. For atomic and subgroup operations a pass asks the op's row for its
//! [`Effect`]; it never lists ops to decide what is safe. What an op *computes* is asked of `vyre-scalar`, so that
//! folding cannot disagree with running.
//!
//! **Cost.** A pass validates its input (once, the proof is kept with the program) and walks it a fixed number of times. Where sets
//! are needed at every loop or branch, the cost is that of the nesting, which is bounded. Rounds are bounded by [`MAX_ROUNDS`].
//!
//! [`bounds`] is no pass: it finds out which accesses are in bounds, and is the last thing to ask before code is made.
//!
//! [`Effect`]: vyre_spec::Effect

pub mod bounds;
mod common;
mod control;
mod dead;
mod fold;
mod number;

use crate::ir::{Body, Expr, Name, Node, NodeId, Parts, Program, Walk};
use crate::kernel::{ExprId, Kernel, Stmt, StmtKind, TypedExpr, VarId, for_each_stmt};
use std::collections::HashSet;
use vyre_host_floats::with_default_state;

pub use bounds::{InBounds, in_bounds};

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What people call it: in `vyre check --passes`, in check files.
    pub name: &'static str,
    /// The pass itself; [`Pass::apply`] calls it.
    run: fn(&Program) -> Program,
}

/// Every pass, in the order in which they run.
pub const PASSES: &[Pass] = &[
    Pass { name: "specialize", run: specialize },
    Pass { name: "fold", run: fold::fold },
    Pass { name: "control", run: control::control },
    Pass { name: "common", run: common::common },
    Pass { name: "dead", run: dead::dead },
];

/// How often the list is run at most. Nearly all programs are done after three rounds, the last of which finds nothing. A chain of
/// branches each of which is decided by the one before takes a round per link; what is left after this many stays.
pub const MAX_ROUNDS: u32 = 16;

impl Pass {
    /// The pass of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Pass> {
        PASSES.iter().find(|pass| pass.name == name)
    }

    /// Runs the pass; in debug builds also proves that a valid program stayed valid.
    #[must_use]
    pub fn apply(&self, program: &Program) -> Program {
        let after = with_default_state(|| (self.run)(program));
        if cfg!(debug_assertions)
            && program.validated().is_ok()
            && let Err(report) = after.validated()
        {
            panic!("the pass {} makes a program that is not valid\n{report}\nof\n{program}", self.name);
        }
        after
    }
}

/// The program after all passes. Constants that are still in it take their defaults: specialize it before.
#[must_use]
pub fn optimize(program: &Program) -> Program {
    optimize_with(program, |_, _| {})
}

/// The same as [`optimize`]; `changed` is called with the program after every pass that changed it.
#[must_use]
pub fn optimize_with(program: &Program, mut changed: impl FnMut(&Pass, &Program)) -> Program {
    let mut current = program.clone();
    for _ in 0..MAX_ROUNDS {
        let before = current.clone();
        for pass in PASSES {
            let after = pass.apply(&current);
            if after != current {
                changed(pass, &after);
                current = after;
            }
        }
        if current == before {
            break;
        }
    }
    current
}

/// The pass `specialize`: constants become their defaults, in expressions, sizes and element types. A dispatch that has other values
/// puts them in first, by [`crate::specialize()`]. It stands first because the passes that reason about values must not take a
/// default for a fact: they leave programs with constants alone.
fn specialize(program: &Program) -> Program {
    if program.validated().is_err() {
        return program.clone();
    }
    // Without values there is nothing that could be wrong with them.
    crate::specialize(program, []).unwrap_or_else(|_| program.clone())
}

/// The program with other statements. `change` gets them without the root region, and the place of the first.
fn rewrite(program: &Program, change: impl FnOnce(&[Node], Places) -> Vec<Node>) -> Program {
    let parts = program.parts();
    let body = match &parts.body[..] {
        [Node::Region { generator, body }] => {
            vec![Node::Region { generator: generator.clone(), body: change(body, Places(1)).into() }]
        }
        nodes => {
            let mut nodes = change(nodes, Places(0));
            // A raw program whose other statements went would turn into a wrapped one.
            if matches!(nodes[..], [Node::Region { .. }]) {
                nodes.push(Node::Block(Body::default()));
            }
            nodes
        }
    };
    let rewritten = Program::from_parts(Parts {
        buffers: parts.buffers.clone(),
        consts: parts.consts.clone(),
        workgroup: parts.workgroup.clone(),
        floats: parts.floats,
        subgroup: parts.subgroup,
        body: body.into(),
    });
    // The old program keeps its text and its proof.
    if rewritten == *program { program.clone() } else { rewritten }
}

/// Counts places while a tree is walked in source order.
struct Places(u32);

impl Places {
    /// The place of the statement or expression that is entered now.
    fn enter(&mut self) -> NodeId {
        let place = NodeId(self.0);
        self.0 += 1;
        place
    }

    /// Goes past what is below an expression that was entered.
    fn skip_operands(&mut self, expr: &Expr) {
        self.0 += Walk::expr(expr).count() as u32 - 1;
    }

    /// Goes past what is below a statement that was entered.
    fn skip_below(&mut self, node: &Node) {
        self.0 += Walk::body(std::slice::from_ref(node)).count() as u32 - 1;
    }
}

/// The kernel's expressions, and the variables that statements set, by place.
struct ByPlace<'a> {
    kernel: &'a Kernel,
    exprs: Vec<Option<ExprId>>,
    vars: Vec<Option<VarId>>,
}

impl<'a> ByPlace<'a> {
    fn of(kernel: &'a Kernel) -> ByPlace<'a> {
        let mut last = kernel.exprs.iter().map(|expr| expr.place.0).max().unwrap_or(0);
        for_each_stmt(&kernel.body, &mut |stmt: &Stmt| last = last.max(stmt.place.0));
        let mut by_place = ByPlace { kernel, exprs: vec![None; last as usize + 1], vars: vec![None; last as usize + 1] };
        for (n, expr) in kernel.exprs.iter().enumerate() {
            by_place.exprs[expr.place.0 as usize] = Some(ExprId(n as u32));
        }
        for_each_stmt(&kernel.body, &mut |stmt: &Stmt| by_place.vars[stmt.place.0 as usize] = variable_set_by(stmt));
        by_place
    }

    fn expr(&self, place: NodeId) -> Option<&'a TypedExpr> {
        self.exprs.get(place.0 as usize).copied().flatten().map(|id| self.kernel.expr(id))
    }

    fn var(&self, place: NodeId) -> Option<VarId> {
        self.vars.get(place.0 as usize).copied().flatten()
    }
}

/// The variable that a statement gives a value to.
fn variable_set_by(stmt: &Stmt) -> Option<VarId> {
    match &stmt.kind {
        StmtKind::Let(var, _) | StmtKind::Assign(var, _) | StmtKind::Loop(var, ..) => Some(*var),
        StmtKind::Atomic { result, .. } | StmtKind::Subgroup { result, .. } => *result,
        StmtKind::Store(..)
        | StmtKind::If(..)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return
        | StmtKind::Barrier
        | StmtKind::GridSync
        | StmtKind::Trap(_)
        | StmtKind::Scope(_) => None,
    }
}

/// By variable: whether some assignment changes it after its declaration.
fn assigned(kernel: &Kernel) -> Vec<bool> {
    let mut assigned = vec![false; kernel.vars.len()];
    for_each_stmt(&kernel.body, &mut |stmt: &Stmt| {
        if let StmtKind::Assign(var, _) = stmt.kind {
            assigned[var.index()] = true;
        }
    });
    assigned
}

/// Makes names that nothing in the program has.
struct Fresh {
    stem: &'static str,
    next: u32,
    taken: HashSet<Name>,
}

impl Fresh {
    fn new(program: &Program, stem: &'static str) -> Fresh {
        let parts = program.parts();
        let mut taken: HashSet<Name> = parts.buffers.iter().map(|decl| decl.name.clone()).collect();
        taken.extend(parts.consts.iter().map(|decl| decl.name.clone()));
        if let Ok(validated) = program.validated() {
            taken.extend(validated.kernel().vars.iter().map(|var| var.name.clone()));
        }
        Fresh { stem, next: 0, taken }
    }

    fn name(&mut self) -> Name {
        loop {
            let name = Name::from(format!("{}{}", self.stem, self.next));
            self.next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}
