//! A dispatch of machine code: its job, its phases, its threads.

use crate::run::{Buffer, Job, MachineCode, Stopped};
use crate::scratch::{Lines, Scratch};
use crate::spread::{Cost, Spread, Threads, still_wanted};
use crate::watchdog::watch;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use vyre_driver::device::{Bytes, DeviceError, Execution, Stop};
use vyre_foundation::interface::Interface;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;

/// What workgroups that wait for each other at grid barriers may keep together.
const MAX_CONTEXT_BYTES: u64 = 1 << 30;

/// Contexts of fewer bytes together are kept by the thread.
const FEW_CONTEXT_BYTES: usize = 1 << 20;

/// What an op of one invocation takes, about: some vectors of eight at a time.
const OP_PICOSECONDS: u64 = 100;

/// Machine code with what the runner knows about its kernel.
pub(crate) struct Ready {
    machine: Box<dyn MachineCode>,
    /// By buffer: its place among the bindings.
    places: Vec<Option<usize>>,
    cost: Cost,
}

impl Ready {
    pub fn new(kernel: &Arc<Kernel>, machine: Box<dyn MachineCode>) -> Ready {
        let bound = Interface::of_kernel(kernel).bound;
        let places = (0..kernel.buffers.len()).map(|i| bound.iter().position(|other| *other == i)).collect();
        Ready { machine, places, cost: Cost::of(kernel, OP_PICOSECONDS) }
    }

    /// Runs workgroups on so many threads at most; gives those that took part.
    pub fn execute(&self, execution: Execution<'_, '_>, threads: Threads) -> Result<u32, DeviceError> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let stop = execution.stop;
        match stop.deadline {
            // Only loops can take long between two looks at the clock.
            Some(at) if self.cost.has_loops() => {
                still_wanted(stop)?;
                watch(at, stop.cancelled, |flag| self.dispatch(execution, threads, flag))
            }
            Some(_) | None => self.dispatch(execution, threads, stop.cancelled.unwrap_or(&NEVER)),
        }
    }

    fn dispatch(&self, execution: Execution<'_, '_>, threads: Threads, flag: &AtomicBool) -> Result<u32, DeviceError> {
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
        let count = u64::from(groups.end - groups.start);
        let mut contexts = contexts(machine.context_bytes(), count)?;
        let trap: Mutex<Option<(u64, u32)>> = Mutex::new(None);
        let mut took_part = 0;
        for phase in 0..machine.phases() {
            let job = Job {
                launch,
                buffers: &buffers,
                phase,
                contexts: contexts.bytes_mut().as_mut_ptr(),
                first_group: groups.start,
                stop: flag,
            };
            let spread = Spread { groups: groups.clone(), workgroup_size: launch.workgroup_size, cost: self.cost, threads, stop };
            let in_phase = spread.run(|groups| {
                let bytes = machine.scratch_bytes();
                let mut scratch = Scratch::take(bytes).ok_or(DeviceError::OutOfMemory { requested: bytes as u64 })?;
                let result = machine.run(&job, groups, &mut scratch);
                if let Some(found) = scratch.trap() {
                    let mut smallest = trap.lock().unwrap_or_else(PoisonError::into_inner);
                    *smallest = Some(smallest.map_or(found, |smallest| smallest.min(found)));
                }
                scratch.keep();
                result.map_err(|Stopped| why(stop))
            });
            took_part = took_part.max(in_phase?);
        }
        keep(contexts);
        match trap.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((order, tag)) => Err(DeviceError::Trap { tag, invocation: invocation(launch, order) }),
            None => Ok(took_part),
        }
    }
}

/// Why machine code was told to stop. The watchdog's clock may be ahead of this thread's by a moment.
fn why(stop: Stop<'_>) -> DeviceError {
    match still_wanted(stop) {
        Err(error) => error,
        Ok(()) => DeviceError::Timeout,
    }
}

/// The contexts of so many workgroups, all zero.
fn contexts(bytes: usize, count: u64) -> Result<Lines, DeviceError> {
    let requested = (bytes as u64).saturating_mul(count);
    if requested > MAX_CONTEXT_BYTES {
        return Err(DeviceError::OutOfMemory { requested });
    }
    // It fits, as it is not more than the limit.
    let bytes = requested as usize;
    if bytes == 0 {
        return Ok(Lines::default());
    }
    if bytes <= FEW_CONTEXT_BYTES {
        let mut scratch = Scratch::take(0).ok_or(DeviceError::OutOfMemory { requested })?;
        let kept = std::mem::take(&mut scratch.contexts);
        scratch.keep();
        if kept.len() >= bytes {
            let mut kept = kept;
            kept.bytes_mut()[..bytes].fill(0);
            return Ok(kept);
        }
    }
    Lines::zeroed(bytes).ok_or(DeviceError::OutOfMemory { requested })
}

/// Keeps contexts for the next dispatch of this thread, where they are few.
fn keep(contexts: Lines) {
    if contexts.len() > 0
        && contexts.len() <= FEW_CONTEXT_BYTES
        && let Some(mut scratch) = Scratch::take(0)
    {
        scratch.contexts = contexts;
        scratch.keep();
    }
}

#[cfg(test)]
mod tests;

/// The id of an invocation by its place in the order of all.
fn invocation(launch: &Launch, order: u64) -> [u32; 3] {
    let size = |axis: usize| u64::from(launch.grid[axis]) * u64::from(launch.workgroup_size[axis]);
    [order % size(0), order / size(0) % size(1), order / size(0) / size(1)].map(|id| id as u32)
}
