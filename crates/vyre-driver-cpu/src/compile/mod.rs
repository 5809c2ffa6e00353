//! From a kernel to machine code.
//!
//! ```text
//! Kernel ──▶ Ssa ──passes, hoist, unroll, rows──▶ Ssa ──shapes, facts──▶ phases of segments ──lower──▶ machine::lir ──▶ bytes
//! ```
//!
//! A workgroup's invocations become the lanes of *blocks*, 8, 16, 32 or 64 at a time ([`geometry`]). What is uniform is scalar code, the rest
//! vectors ([`shape`]); control that lanes take apart is masks ([`control`]); barriers cut the program into segments, each of which runs for
//! all blocks ([`group`]). What code needs to know of a dispatch it finds in a [`context`].

mod access;
mod active;
mod atomics;
mod bytes;
mod choose;
mod context;
mod control;
mod copies;
mod duplicate;
mod early;
mod facts;
mod function;
mod fuse;
mod geometry;
mod group;
mod guards;
mod helpers;
mod hoist;
mod homes;
mod leaves;
mod loops;
mod lower;
mod masks;
mod ops;
mod own;
mod places;
mod planted;
mod pressure;
mod rows;
mod segments;
mod shape;
mod shared;
pub(crate) mod show;
mod slots;
mod strength;
mod subgroups;
mod traps;
mod unroll;
mod width;

use crate::faults::Fault;
use crate::machine::memory::CodeMemory;
use crate::run::{Job, MachineCode, Scratch, Stopped};
use context::{BUFFERS, BoundBuffer, Context, NO_TRAP};
use own::{MAX_OWN, Own};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::ssa::Ssa;
use vyre_host_floats::with_default_state;

/// Why a kernel is left to the portable evaluator.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub String);

/// A kernel as machine code.
pub(crate) struct Machine {
    /// One function per phase.
    phases: Vec<CodeMemory>,
    bytes: u64,
    hash: [u8; 32],
    /// Where the workgroup memory of a buffer begins.
    shared: Vec<Option<usize>>,
    shared_bytes: usize,
    slots_bytes: usize,
    /// Buffers that a thread may have for itself.
    own: Vec<Own>,
}

/// Bytes that a thread has for a buffer of its own.
const OWN_BYTES: usize = 4 * MAX_OWN as usize;

impl Machine {
    /// Compiles a kernel.
    pub fn compile(kernel: &Arc<Kernel>, fault: Option<Fault>) -> Result<Machine, Refused> {
        if !is_supported() {
            return Err(Refused("this CPU has no AVX2, FMA or BMI".into()));
        }
        // How often registers are used is counted in floats.
        with_default_state(|| choose::choose(&prepared(kernel, fault), fault)?.attempt.finish(kernel))
    }

    /// The elements of its own that a thread has of a buffer, by its number among those.
    ///
    /// # Safety
    ///
    /// `memory` is a scratch of `scratch_bytes`, nobody else has these elements meanwhile, and there are no more than [`MAX_OWN`].
    unsafe fn own_elements<'a>(&self, memory: *mut u8, n: usize, count: u32) -> &'a mut [u32] {
        let start = self.scratch_bytes() - (n + 1) * OWN_BYTES;
        // SAFETY: the end of the scratch has room for them, at a multiple of 64.
        unsafe { std::slice::from_raw_parts_mut(memory.add(start).cast(), count as usize) }
    }

    /// Gives a thread buffers of its own, if that is worth it for so many workgroups; whether it has.
    fn begin_own(&self, job: &Job<'_>, groups: usize, memory: *mut u8, buffers: *mut BoundBuffer) -> bool {
        let bound = |own: &Own| job.buffers[own.buffer.index()];
        let lengths: u64 = self.own.iter().map(|own| u64::from(bound(own).length)).sum();
        let invocations = job.launch.workgroup_size.iter().map(|size| u64::from(*size)).product::<u64>() * groups as u64;
        let fits = |own: &Own| bound(own).length <= MAX_OWN && bound(own).data.cast::<u32>().is_aligned();
        if self.own.is_empty() || !self.own.iter().all(fits) || invocations < 4 * lengths {
            return false;
        }
        for (n, own) in self.own.iter().enumerate() {
            let length = bound(own).length;
            // SAFETY: it is the thread's scratch, and `fits` has looked at the length.
            let elements = unsafe { self.own_elements(memory, n, length) };
            own.begin(elements);
            let address = elements.as_mut_ptr().cast();
            // SAFETY: there is room for every buffer of the kernel.
            unsafe { buffers.add(own.buffer.index()).write(BoundBuffer { address, length: u64::from(length) }) };
        }
        true
    }

    /// Changes buffers by what a thread has of them.
    fn end_own(&self, job: &Job<'_>, memory: *mut u8) {
        for (n, own) in self.own.iter().enumerate() {
            let buffer = job.buffers[own.buffer.index()];
            // SAFETY: code is done with them; the buffer has as many, aligned as they have to be, and code of all threads changes it by
            // atomics only, since the kernel does nothing else with it.
            unsafe { own.end(self.own_elements(memory, n, buffer.length), buffer.data) };
        }
    }

    fn context_size(&self) -> usize {
        (BUFFERS + self.shared.len() * size_of::<BoundBuffer>()).next_multiple_of(64)
    }
}

/// The form that code is made from.
fn prepared(kernel: &Arc<Kernel>, fault: Option<Fault>) -> Ssa {
    let mut ssa = Ssa::of(kernel);
    ssa.optimize();
    early::early_returns(&mut ssa);
    strength::divide_by_shifts(&mut ssa);
    hoist::hoist(&mut ssa, fault);
    unroll::unroll(&mut ssa, fault);
    // By numbers that were a matter of the counter.
    strength::divide_by_shifts(&mut ssa);
    rows::several(ssa, fault)
}

/// Whether this CPU has what code is made of.
fn is_supported() -> bool {
    macro_rules! all {
        ($($name:tt)*) => { true $(&& std::is_x86_feature_detected!($name))* };
    }
    all!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt")
}

impl MachineCode for Machine {
    fn phases(&self) -> u32 {
        self.phases.len() as u32
    }

    fn context_bytes(&self) -> usize {
        if self.phases.len() > 1 { self.slots_bytes.next_multiple_of(64) } else { 0 }
    }

    fn scratch_bytes(&self) -> usize {
        let slots = if self.phases.len() > 1 { 0 } else { self.slots_bytes };
        self.context_size() + self.shared_bytes.next_multiple_of(64) + slots + self.own.len() * OWN_BYTES
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn hash(&self) -> [u8; 32] {
        self.hash
    }

    fn run(&self, job: &Job<'_>, groups: Range<u32>, scratch: &mut Scratch) -> Result<(), Stopped> {
        let launch = job.launch;
        let memory = scratch.memory().as_mut_ptr();
        let shared = self.context_size();
        let slots = shared + self.shared_bytes.next_multiple_of(64);
        let invocations: [u32; 3] = std::array::from_fn(|axis| launch.grid[axis].wrapping_mul(launch.workgroup_size[axis]));
        let mut context = Context {
            stop: job.stop.as_ptr().cast(),
            first_group: 0,
            end_group: 0,
            group_y: 0,
            group_z: 0,
            grid: launch.grid,
            invocations,
            shared: memory.wrapping_add(shared),
            slots: memory.wrapping_add(slots),
            trapped: NO_TRAP,
            tag: 0,
            size: launch.workgroup_size,
            has_own: 0,
        };
        // SAFETY: the scratch has `scratch_bytes`, of which the context and its buffers are the beginning.
        let buffers = unsafe { memory.add(BUFFERS).cast::<BoundBuffer>() };
        for (n, (buffer, offset)) in job.buffers.iter().zip(&self.shared).enumerate() {
            let address = match offset {
                Some(offset) => memory.wrapping_add(shared + offset),
                None => buffer.data,
            };
            // SAFETY: there is room for every buffer of the kernel.
            unsafe { buffers.add(n).write(BoundBuffer { address, length: u64::from(buffer.length) }) };
        }
        let own = self.begin_own(job, groups.len(), memory, buffers);
        context.has_own = u32::from(own);
        let [nx, ny, _] = launch.grid;
        let phased = self.phases.len() > 1;
        let mut next = groups.start;
        let entry = self.phases[job.phase as usize].entry();
        while next < groups.end {
            // Code runs workgroups that follow each other along x; one at a time where each has a context of its own.
            let x = next % nx;
            let count = if phased { 1 } else { (groups.end - next).min(nx - x) };
            (context.first_group, context.end_group) = (x, x + count);
            (context.group_y, context.group_z) = (next / nx % ny, next / nx / ny);
            if phased {
                let number = (next - job.first_group) as usize;
                context.slots = job.contexts.wrapping_add(number * self.context_bytes());
            }
            // SAFETY: the context is as code expects it: it is at the beginning of the scratch, and the buffers follow. Code touches
            // nothing else but the buffers inside their lengths, the scratch and its own frame.
            unsafe {
                memory.cast::<Context>().write(std::ptr::read(&context));
                let function: extern "sysv64" fn(*mut u8) = std::mem::transmute(entry);
                function(memory);
                let Context { trapped, tag, .. } = memory.cast::<Context>().read();
                (context.trapped, context.tag) = (trapped, tag);
            }
            if job.stop.load(Relaxed) {
                return Err(Stopped);
            }
            next += count;
        }
        if own {
            self.end_own(job, memory);
        }
        if context.trapped != NO_TRAP {
            scratch.note_trap(context.trapped, context.tag);
        }
        Ok(())
    }
}
