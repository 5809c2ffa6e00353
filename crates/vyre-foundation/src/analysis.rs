//! Facts.
use crate::kernel::{ExprId, Kernel, StmtId, VarId};

/// Who evaluates together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All.
    Dispatch,
    /// A workgroup.
    Workgroup,
    /// A subgroup.
    Subgroup,
}

/// Uniformity.
#[derive(Debug)]
pub struct Uniformity {}

impl Uniformity {
    /// Of.
    #[must_use]
    pub fn of(_: &Kernel) -> Uniformity {
        Uniformity {}
    }
    /// Whether an expression is uniform.
    #[must_use]
    pub fn is_uniform(&self, _: ExprId, _: Scope) -> bool {
        false
    }
    /// Whether the value of a variable at a grid barrier is the same in the workgroup.
    #[must_use]
    pub fn is_uniform_at(&self, _: StmtId, _: VarId) -> bool {
        false
    }
    /// Whether invocations part at this statement.
    #[must_use]
    pub fn diverges(&self, _: StmtId, _: Scope) -> bool {
        true
    }
}
