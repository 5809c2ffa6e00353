//! Whether a program's bytes are the same under every schedule, as far as can be told without running it.
//!
//! The answer is conservative. `CrossBackend` is a proof; `Unproven` only says that this simple analysis found none: the checked
//! reference decides for one launch.
//!
//! The proof: an element that one invocation writes is touched by no other. For each buffer that can be written, one of
//!
//! - nobody writes it;
//! - every access is at the invocation's *own index*: an expression that differs between any two invocations, of the form `gid.x`,
//!   `gid.y * gid_count.x + gid.x` or `(gid.z * gid_count.y + gid.y) * gid_count.x + gid.x` (`lid` and `lid_count` for workgroup
//!   memory), directly or through a `let`;
//! - every access is an atomic of one commuting kind whose result is not used.
//!
//! Barriers and subgroup operations do not enter: they exchange nothing but what is proven above and values that each invocation
//! computes by itself. A trap reports the smallest trapping invocation, so it is the same everywhere too.
//!
//! `gid.x` alone differs between invocations only if the dispatch has extent 1 along y and z. [`Determinism::CrossBackend`] is about
//! such launches: those with one workgroup along every axis that the program's own indices do not involve;
//! [`Determinism::holds_for`] checks that.

use crate::ir::{Access, AtomicOp, Axis, BinaryOp, Builtin, NodeId};
use crate::kernel::{BufferId, ExprId, ExprKind, Kernel, Stmt, StmtKind, VarId, for_each_stmt};
use std::fmt;

/// The static answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Determinism {
    /// The same bytes on every backend and under every schedule.
    CrossBackend {
        /// The axes along which the grid must have one workgroup for this to hold.
        flat: [bool; 3],
    },
    /// No proof was found.
    Unproven(Reason),
}

impl Determinism {
    /// Whether the answer is a proof.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        match self {
            Determinism::CrossBackend { .. } => true,
            Determinism::Unproven(_) => false,
        }
    }

    /// Whether the proof covers a launch with this grid.
    #[must_use]
    pub fn holds_for(&self, grid: [u32; 3]) -> bool {
        match self {
            Determinism::CrossBackend { flat } => flat.iter().zip(grid).all(|(flat, groups)| !flat || groups <= 1),
            Determinism::Unproven(_) => false,
        }
    }
}

/// Why no proof was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// In words.
    pub message: String,
    /// The access that stands in the way.
    pub place: NodeId,
}

impl fmt::Display for Determinism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Determinism::CrossBackend { .. } => f.write_str("cross-backend"),
            Determinism::Unproven(reason) => write!(f, "unproven: {}", reason.message),
        }
    }
}

/// One access to a buffer that can be written.
enum Touch {
    Load(ExprId),
    Store(ExprId),
    Atomic { op: AtomicOp, used: bool },
}

/// An own index: the axes it involves.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Own {
    axes: [bool; 3],
}

pub(crate) fn of_kernel(kernel: &Kernel) -> Determinism {
    let analysis = Analysis { kernel, definitions: definitions(kernel) };
    let mut touches: Vec<Vec<(Touch, NodeId)>> = kernel.buffers.iter().map(|_| Vec::new()).collect();
    let mut touch = |buffer: BufferId, touch: Touch, place: NodeId| {
        if kernel.buffer(buffer).access.is_writable() {
            touches[buffer.index()].push((touch, place));
        }
    };
    for expr in &kernel.exprs {
        if let ExprKind::Load(buffer, index) = expr.kind {
            touch(buffer, Touch::Load(index), expr.place);
        }
    }
    for_each_stmt(&kernel.body, &mut |stmt: &Stmt| match &stmt.kind {
        StmtKind::Store(buffer, index, _) => touch(*buffer, Touch::Store(*index), stmt.place),
        StmtKind::Atomic { op, buffer, result, .. } => {
            touch(*buffer, Touch::Atomic { op: *op, used: result.is_some() }, stmt.place);
        }
        StmtKind::Let(..)
        | StmtKind::Assign(..)
        | StmtKind::Subgroup { .. }
        | StmtKind::If(..)
        | StmtKind::Loop(..)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return
        | StmtKind::Barrier
        | StmtKind::GridSync
        | StmtKind::Trap(_)
        | StmtKind::Scope(_) => {}
    });
    let mut flat = [false; 3];
    for (i, touches) in touches.iter().enumerate() {
        match analysis.buffer(BufferId(i as u32), touches) {
            Ok(axes) => flat.iter_mut().zip(axes).for_each(|(flat, axis)| *flat |= axis),
            Err(reason) => return Determinism::Unproven(reason),
        }
    }
    Determinism::CrossBackend { flat }
}

struct Analysis<'a> {
    kernel: &'a Kernel,
    /// By variable: its value, if it is set exactly once.
    definitions: Vec<Option<ExprId>>,
}

fn definitions(kernel: &Kernel) -> Vec<Option<ExprId>> {
    let mut sets: Vec<(u32, Option<ExprId>)> = vec![(0, None); kernel.vars.len()];
    let mut set = |var: VarId, value: Option<ExprId>| {
        sets[var.index()].0 += 1;
        sets[var.index()].1 = value;
    };
    for_each_stmt(&kernel.body, &mut |stmt: &Stmt| match &stmt.kind {
        StmtKind::Let(var, value) | StmtKind::Assign(var, value) => set(*var, Some(*value)),
        StmtKind::Loop(var, ..) | StmtKind::Atomic { result: Some(var), .. } | StmtKind::Subgroup { result: Some(var), .. } => {
            set(*var, None)
        }
        StmtKind::Store(..)
        | StmtKind::Atomic { result: None, .. }
        | StmtKind::Subgroup { result: None, .. }
        | StmtKind::If(..)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return
        | StmtKind::Barrier
        | StmtKind::GridSync
        | StmtKind::Trap(_)
        | StmtKind::Scope(_) => {}
    });
    sets.into_iter().map(|(count, value)| value.filter(|_| count == 1)).collect()
}

impl Analysis<'_> {
    /// The axes along which the grid must be flat, or what stands in the way.
    fn buffer(&self, id: BufferId, touches: &[(Touch, NodeId)]) -> Result<[bool; 3], Reason> {
        let buffer = self.kernel.buffer(id);
        let no = |place: NodeId, message: String| Err(Reason { message, place });
        let written = touches.iter().any(|(touch, _)| match touch {
            Touch::Load(_) => false,
            Touch::Store(_) => true,
            Touch::Atomic { op, .. } => *op != AtomicOp::Load,
        });
        if !written {
            return Ok([false; 3]);
        }
        let mut own = None;
        let mut kind = None;
        for (touch, place) in touches {
            match touch {
                Touch::Load(index) | Touch::Store(index) => {
                    let Some(found) = self.own_index(*index, buffer.access) else {
                        return no(
                            *place,
                            format!("`{}` is written, and this access is not at the invocation's own index", buffer.name),
                        );
                    };
                    if own.is_some_and(|own| own != found) {
                        return no(*place, format!("`{}` is accessed at two different indices", buffer.name));
                    }
                    own = Some(found);
                }
                Touch::Atomic { op, used } => {
                    if *used {
                        return no(
                            *place,
                            format!("the result of this atomic on `{}` depends on the order of invocations", buffer.name),
                        );
                    }
                    let Some(found) = commuting_kind(*op) else {
                        return no(*place, format!("`atomic.{op}` on `{}` depends on the order of invocations", buffer.name));
                    };
                    if kind.is_some_and(|kind| kind != found) {
                        return no(*place, format!("`{}` is changed by atomics that do not commute", buffer.name));
                    }
                    kind = Some(found);
                }
            }
        }
        match (own, kind) {
            (Some(_), Some(_)) => no(touches[0].1, format!("`{}` is accessed both by atomics and without them", buffer.name)),
            (None, _) => Ok([false; 3]),
            (Some(own), None) => self.flat_axes(own, buffer.access, touches[0].1, &buffer.name),
        }
    }

    /// The axes an own index leaves out must have extent 1: in the workgroup now, in the grid at the launch.
    fn flat_axes(&self, own: Own, access: Access, place: NodeId, name: &str) -> Result<[bool; 3], Reason> {
        for axis in Axis::ALL {
            if !own.axes[axis as usize] && self.kernel.workgroup_size[axis as usize] != 1 {
                let message = format!("the index into `{name}` is the same for invocations that differ along {}", axis.name());
                return Err(Reason { message, place });
            }
        }
        Ok(match access {
            Access::Workgroup => [false; 3],
            Access::Read | Access::ReadWrite | Access::Output | Access::Uniform => own.axes.map(|involved| !involved),
        })
    }

    /// The expression itself, or what a variable that is set once holds.
    fn value(&self, mut id: ExprId) -> &ExprKind {
        // A definition precedes its uses, so this ends.
        while let ExprKind::Var(var) = self.kernel.expr(id).kind {
            match self.definitions[var.index()] {
                Some(value) => id = value,
                None => break,
            }
        }
        &self.kernel.expr(id).kind
    }

    fn own_index(&self, index: ExprId, access: Access) -> Option<Own> {
        let local = access == Access::Workgroup;
        let id = |axis| if local { Builtin::Local(axis) } else { Builtin::Invocation(axis) };
        let count = |axis| if local { Builtin::LocalCount(axis) } else { Builtin::InvocationCount(axis) };
        if self.is(index, id(Axis::X)) {
            return Some(Own { axes: [true, false, false] });
        }
        let rest = self.times_plus(index, count(Axis::X), id(Axis::X))?;
        if self.is(rest, id(Axis::Y)) {
            return Some(Own { axes: [true, true, false] });
        }
        let rest = self.times_plus(rest, count(Axis::Y), id(Axis::Y))?;
        self.is(rest, id(Axis::Z)).then_some(Own { axes: [true; 3] })
    }

    fn is(&self, id: ExprId, builtin: Builtin) -> bool {
        matches!(self.value(id), ExprKind::Builtin(found) if *found == builtin)
    }

    /// `rest` of an expression `rest * factor + summand`, operands in any order.
    fn times_plus(&self, id: ExprId, factor: Builtin, summand: Builtin) -> Option<ExprId> {
        let ExprKind::Binary(BinaryOp::Add, _, a, b) = *self.value(id) else { return None };
        let product = if self.is(a, summand) {
            b
        } else if self.is(b, summand) {
            a
        } else {
            return None;
        };
        let ExprKind::Binary(BinaryOp::Mul, _, a, b) = *self.value(product) else { return None };
        if self.is(b, factor) {
            Some(a)
        } else if self.is(a, factor) {
            Some(b)
        } else {
            None
        }
    }
}

/// Atomics of one kind give the same memory in every order; `None` for those that do not commute with themselves.
fn commuting_kind(op: AtomicOp) -> Option<AtomicOp> {
    match op {
        AtomicOp::Add | AtomicOp::Sub => Some(AtomicOp::Add),
        AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => Some(op),
        AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange | AtomicOp::CompareExchange => None,
    }
}
