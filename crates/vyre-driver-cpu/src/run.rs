//! Running machine code: the joint between compiled kernels and the device.
//!
//! A kernel as [`MachineCode`] is run by calling [`MachineCode::run`] with ranges of workgroups, on any thread and on several at once. What
//! all calls of a dispatch share is the [`Job`]; what a thread has for itself is its [`Scratch`].
//!
//! **Grid barriers.** A kernel with grid barriers has several phases. Phase p of all workgroups ends before phase p + 1 of any begins;
//! what a workgroup keeps in between is in its context, zero before the first phase. The runner allocates the contexts of all workgroups
//! at once.
//!
//! **Stopping.** [`Job::stop`] is looked at by machine code at the heads of loops, and between workgroups where it likes. Once it is set, `run`
//! returns [`Stopped`] soon; what it has written until then nobody looks at.
//!
//! **Traps.** An invocation that traps is noted in the scratch ([`Scratch::note_trap`]) and retired, and all others go on. The smallest of a
//! dispatch is the error.
//!
//! **Floats.** `run` is called under the default float state, and leaves it.

use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use vyre_driver::device::{Bytes, DeviceError, Execution};
use vyre_foundation::interface::Interface;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;
use vyre_host_floats::with_default_state;

/// What workgroups that wait for each other at grid barriers may keep together.
const MAX_CONTEXT_BYTES: u64 = 1 << 30;

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

/// What a thread has for itself while it runs machine code.
#[derive(Default)]
pub(crate) struct Scratch {
    lines: Vec<Line>,
    trap: Option<(u64, u32)>,
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

#[allow(dead_code, reason = "machine code calls it")]
impl Scratch {
    /// So many bytes at least, aligned to 64, of any content: `scratch_bytes` of the kernel.
    pub fn memory(&mut self) -> &mut [u8] {
        let bytes = self.lines.len() * size_of::<Line>();
        // SAFETY: lines are bytes without gaps, and borrowed for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), bytes) }
    }

    /// Notes that an invocation trapped. `order` is its place in the order of all invocations of the dispatch, x fastest.
    pub fn note_trap(&mut self, order: u64, tag: u32) {
        if self.trap.is_none_or(|(smallest, _)| order < smallest) {
            self.trap = Some((order, tag));
        }
    }

    fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(size_of::<Line>());
        if self.lines.len() < lines {
            self.lines.resize(lines, Line([0; 64]));
        }
    }
}

/// Machine code with what the runner knows about its kernel.
pub(crate) struct Ready {
    machine: Box<dyn MachineCode>,
    /// By buffer: its place among the bindings.
    places: Vec<Option<usize>>,
}

impl Ready {
    pub fn new(kernel: &Arc<Kernel>, machine: Box<dyn MachineCode>) -> Ready {
        let bound = Interface::of_kernel(kernel).bound;
        let places = (0..kernel.buffers.len()).map(|i| bound.iter().position(|other| *other == i)).collect();
        Ready { machine, places }
    }

    /// Runs workgroups; gives the threads that took part.
    pub fn execute(&self, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let Execution { launch, groups, bindings, stop } = execution;
        let machine = &*self.machine;
        let buffers: SmallVec<[Buffer; 8]> = self
            .places
            .iter()
            .zip(&launch.lengths)
            .map(|(place, length)| match place.map(|place| &mut bindings[place]) {
                None => Buffer { data: std::ptr::null_mut(), length: *length },
                Some(Bytes::Read(bytes)) => Buffer { data: bytes.as_ptr().cast_mut(), length: *length },
                Some(Bytes::Write(bytes)) => Buffer { data: bytes.as_mut_ptr(), length: *length },
            })
            .collect();
        let count = groups.end - groups.start;
        let context_bytes = machine.context_bytes() as u64 * u64::from(count);
        if context_bytes > MAX_CONTEXT_BYTES {
            return Err(DeviceError::OutOfMemory { requested: context_bytes });
        }
        let mut contexts: Vec<Line> = Vec::new();
        let lines = context_bytes as usize / size_of::<Line>();
        contexts.try_reserve_exact(lines).map_err(|_| DeviceError::OutOfMemory { requested: context_bytes })?;
        contexts.resize(lines, Line([0; 64]));
        let mut scratch = Scratch::default();
        scratch.reserve(machine.scratch_bytes());
        let mut job = Job {
            launch,
            buffers: &buffers,
            phase: 0,
            contexts: contexts.as_mut_ptr().cast(),
            first_group: groups.start,
            stop: stop.cancelled.unwrap_or(&NEVER),
        };
        with_default_state(|| {
            for phase in 0..machine.phases() {
                job.phase = phase;
                for group in groups.clone() {
                    if stop.deadline.is_some_and(|at| Instant::now() >= at) {
                        return Err(DeviceError::Timeout);
                    }
                    machine.run(&job, group..group + 1, &mut scratch).map_err(|Stopped| DeviceError::Cancelled)?;
                    if job.stop.load(Relaxed) {
                        return Err(DeviceError::Cancelled);
                    }
                }
            }
            Ok(())
        })?;
        match scratch.trap {
            Some((order, tag)) => Err(DeviceError::Trap { tag, invocation: invocation(launch, order) }),
            None => Ok(1),
        }
    }
}

/// The id of an invocation by its place in the order of all.
fn invocation(launch: &Launch, order: u64) -> [u32; 3] {
    let size = |axis: usize| u64::from(launch.grid[axis]) * u64::from(launch.workgroup_size[axis]);
    [order % size(0), order / size(0) % size(1), order / size(0) / size(1)].map(|id| id as u32)
}
