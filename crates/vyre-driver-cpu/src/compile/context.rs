//! What machine code is called with: addresses, lengths and the shape of the dispatch.

use crate::machine::lir::Mem;
use std::mem::offset_of;
use vyre_foundation::ir::Access;
use vyre_foundation::kernel::BufferId;
use vyre_foundation::ssa::Ssa;

/// The head of the context; the buffers follow.
#[repr(C)]
pub(crate) struct Context {
    /// Where the byte is that tells code to stop.
    pub stop: *const u8,
    /// Workgroups along x that are to run.
    pub first_group: u32,
    pub end_group: u32,
    pub group_y: u32,
    pub group_z: u32,
    /// Workgroups of the dispatch.
    pub grid: [u32; 3],
    /// Invocations of the dispatch.
    pub invocations: [u32; 3],
    /// Workgroup memory of this thread.
    pub shared: *mut u8,
    /// Values that a workgroup keeps across barriers.
    pub slots: *mut u8,
    /// The smallest invocation that trapped, as z, y and x in one number, and its tag.
    pub trapped: u64,
    pub tag: u32,
    /// Invocations of a workgroup.
    pub size: [u32; 3],
    /// Whether buffers that a thread may have for itself are its own.
    pub has_own: u32,
}

/// A buffer in the context.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BoundBuffer {
    pub address: *mut u8,
    pub length: u64,
}

/// Where the buffers begin.
pub(crate) const BUFFERS: usize = size_of::<Context>().next_multiple_of(16);

/// The trapping invocation if there is none.
pub(crate) const NO_TRAP: u64 = u64::MAX;

/// Where the address of a buffer is; that of workgroup memory is made of the thread's.
pub(crate) fn buffer_address(_: &Ssa, buffer: BufferId) -> Mem {
    Mem::context(BUFFERS + size_of::<BoundBuffer>() * buffer.index() + offset_of!(BoundBuffer, address))
}

/// Where the length of a buffer is, or what it is.
pub(crate) fn buffer_length(ssa: &Ssa, buffer: BufferId) -> Result<Mem, u32> {
    let declared = ssa.kernel.buffer(buffer);
    match (declared.access, declared.count) {
        (Access::Workgroup, Some(count)) => Err(count),
        (_, _) => Ok(Mem::context(BUFFERS + size_of::<BoundBuffer>() * buffer.index() + offset_of!(BoundBuffer, length))),
    }
}
