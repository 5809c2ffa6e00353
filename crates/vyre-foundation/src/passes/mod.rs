//! Passes.
use crate::ir::{NodeId, Program};
use crate::kernel::BufferId;
use crate::validate::Validated;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name.
    pub name: &'static str,
    /// Run.
    pub run: fn(&Program) -> Program,
}
/// Every pass.
pub const PASSES: &[Pass] = &[];
impl Pass {
    /// Named.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Pass> {
        PASSES.iter().find(|pass| pass.name == name)
    }
    /// Apply.
    #[must_use]
    pub fn apply(&self, program: &Program) -> Program {
        (self.run)(program)
    }
}
/// Optimize.
#[must_use]
pub fn optimize(program: &Program) -> Program {
    program.clone()
}
/// Optimize.
#[must_use]
pub fn optimize_with(program: &Program, _: impl FnMut(&Pass, &Program)) -> Program {
    program.clone()
}
/// One access to a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Place.
    pub place: NodeId,
    /// Buffer.
    pub buffer: BufferId,
    /// Proven.
    pub proven: bool,
}
/// Bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InBounds {
    accesses: Vec<Access>,
}
impl InBounds {
    /// Accesses.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }
    /// Spelled.
    #[must_use]
    pub fn spelled(&self, _: &Program) -> Vec<(String, bool)> {
        Vec::new()
    }
    /// Proven.
    #[must_use]
    pub fn is_proven(&self, _: NodeId) -> bool {
        false
    }
}
/// Bounds.
#[must_use]
pub fn in_bounds(_: &Validated) -> InBounds {
    InBounds { accesses: Vec::new() }
}
