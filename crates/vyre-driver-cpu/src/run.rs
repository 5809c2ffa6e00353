//! Running machine code: the joint between compiled kernels and the device.
//!
//! A kernel as [`MachineCode`] is run by calling [`MachineCode::run`] with ranges of workgroups, on any thread and on several at once. What
//! all calls of a dispatch share is the [`Job`]; what a thread has for itself is its [`Scratch`].
//!
//! **Grid barriers.** A kernel with grid barriers has several phases. Phase p of all workgroups ends before phase p + 1 of any begins;
//! what a workgroup keeps in between is in its context, zero before the first phase. The runner allocates the contexts of all workgroups
//! at once. (`dispatch.rs` is the runner.)
//!
//! **Stopping.** [`Job::stop`] is looked at by machine code at the heads of loops, and between workgroups where it likes. Once it is set, `run`
//! returns [`Stopped`] soon; what it has written until then nobody looks at.
//!
//! **Traps.** An invocation that traps is noted in the scratch ([`Scratch::note_trap`]) and retired, and all others go on. The smallest of a
//! dispatch is the error.
//!
//! **Floats.** `run` is called under the default float state, and leaves it.

pub(crate) use crate::scratch::Scratch;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use vyre_foundation::launch::Launch;

/// A kernel as machine code.
pub(crate) trait MachineCode: Send + Sync {
    /// Parts between grid barriers, at least 1.
    fn phases(&self) -> u32;

    /// Bytes that a workgroup keeps from one phase to the next, a multiple of 64; 0 with one phase.
    fn context_bytes(&self) -> usize;

    /// Bytes of [`Scratch::memory`] that a thread needs: workgroup memory, what lives across barriers.
    fn scratch_bytes(&self) -> usize;

    /// Bytes of the code.
    fn bytes(&self) -> u64;

    /// The hash of the code.
    fn hash(&self) -> [u8; 32];

    /// Runs one phase of some workgroups, numbered with x fastest over the grid of the launch.
    fn run(&self, job: &Job<'_>, groups: Range<u32>, scratch: &mut Scratch) -> Result<(), Stopped>;
}

/// It was told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stopped;

/// What all calls of a dispatch share.
#[allow(dead_code, reason = "machine code reads it")]
pub(crate) struct Job<'a> {
    /// The shape of the whole dispatch.
    pub launch: &'a Launch,
    /// By buffer of the kernel, in the order of declaration; workgroup buffers have nothing.
    pub buffers: &'a [Buffer],
    /// The phase that runs.
    pub phase: u32,
    /// The context of workgroup `first_group`; those of the others follow, `context_bytes` apart. Aligned to 64 bytes.
    pub contexts: *mut u8,
    /// The first workgroup of the dispatch.
    pub first_group: u32,
    /// Set if it is to stop. Machine code reads the byte at its address.
    pub stop: &'a AtomicBool,
}

// SAFETY: what a job points to is there for as long as the job is (see `Buffer`). Threads that read and write it at the same time do so
// through machine code only, for which a data race is an unspecified value and not undefined behaviour.
unsafe impl Sync for Job<'_> {}

/// The bytes of a buffer.
///
/// They can be read for as long as the [`Job`] is there, and written if the kernel writes the buffer. Nobody but the calls of the dispatch
/// touches those that are written.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "machine code reads it")]
#[repr(C)]
pub(crate) struct Buffer {
    /// The first byte. Not aligned to anything.
    pub data: *mut u8,
    /// Elements that the kernel sees.
    pub length: u32,
}
