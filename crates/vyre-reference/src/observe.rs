//! Watching what invocations do, without the plain interpreter paying for it.

use vyre_foundation::ir::AtomicOp;
use vyre_foundation::kernel::{AccessId, BufferId, ExprId, StmtId, VarId};
use vyre_scalar::Value;

/// One access to one element.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    /// The load, store or atomic.
    pub id: AccessId,
    pub buffer: BufferId,
    pub element: u32,
}

/// What an atomic access did.
pub(crate) struct AtomicAccess {
    pub op: AtomicOp,
    /// The variable that takes the old value.
    pub result: Option<VarId>,
    pub old: u64,
    pub new: u64,
}

/// Is told of every access before it happens, and of what orders accesses.
///
/// Workgroups that are alive at the same time have different slots; a slot is used again for another workgroup. Implementations
/// that do nothing cost nothing.
pub(crate) trait Observer {
    /// A workgroup begins, or goes on after a grid barrier: its memory is zero.
    fn group_starts(&mut self, slot: usize);
    /// All invocations of the workgroup go on together.
    fn barrier(&mut self, slot: usize);
    /// All workgroups go on together; each is started again.
    fn grid_sync(&mut self);
    /// What follows is done by this invocation, numbered workgroup by workgroup.
    fn turn(&mut self, slot: usize, invocation: u32);
    /// A plain load.
    fn load(&mut self, access: Access);
    /// A plain store; `unchanged` tells whether the element already holds the value.
    fn store(&mut self, access: Access, unchanged: impl FnOnce() -> bool);
    /// An atomic.
    fn atomic(&mut self, access: Access, atomic: AtomicAccess);
    /// An access past the end of the buffer, which does nothing.
    fn out_of_bounds(&mut self, access: Access);
    /// A statement is about to be executed.
    #[inline(always)]
    fn statement(&mut self, _: StmtId) {}
    /// An expression was evaluated.
    #[inline(always)]
    fn expression(&mut self, _: ExprId, _: impl Into<Value>) {}
    /// A subgroup operation has given the invocation its result.
    #[inline(always)]
    fn exchanged(&mut self, _: impl Into<Value>) {}
    /// An iteration of a loop begins: its first, or the one after.
    #[inline(always)]
    fn iteration(&mut self, _loop: StmtId, _is_first: bool) {}
    /// A loop is left, by its bounds or by a `break`; also one that had no iteration. Not if the invocation is retired inside.
    #[inline(always)]
    fn loop_ends(&mut self, _loop: StmtId) {}
}

/// Nobody watches.
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    #[inline(always)]
    fn group_starts(&mut self, _: usize) {}
    #[inline(always)]
    fn barrier(&mut self, _: usize) {}
    #[inline(always)]
    fn grid_sync(&mut self) {}
    #[inline(always)]
    fn turn(&mut self, _: usize, _: u32) {}
    #[inline(always)]
    fn load(&mut self, _: Access) {}
    #[inline(always)]
    fn store(&mut self, _: Access, _: impl FnOnce() -> bool) {}
    #[inline(always)]
    fn atomic(&mut self, _: Access, _: AtomicAccess) {}
    #[inline(always)]
    fn out_of_bounds(&mut self, _: Access) {}
}
