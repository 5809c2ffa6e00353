//! The portable tier: kernels on the bulk evaluator, which several threads have one of each.
//!
//! Threads share what the kernel writes as atomics ([`Shared`](vyre_reference::bulk::Shared)), so that it does not matter whether the
//! program has data races. One thread alone works in plain memory, which is faster for it: for small dispatches, for kernels with grid
//! barriers, whose workgroups the evaluator keeps under way together, and for buffers that are not aligned.

use crate::shared::share;
use crate::spread::{Cost, Spread, Threads};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use vyre_driver::device::{Bytes, DeviceError, Execution};
use vyre_foundation::interface::Interface;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;
use vyre_reference::bulk::{Bound, Evaluators, Unit};
use vyre_reference::{Limits, RunError};

/// What an op of one invocation takes, about.
const OP_PICOSECONDS: u64 = 1000;

/// A kernel made ready for the bulk evaluator.
pub(crate) struct Portable {
    evaluators: Evaluators,
    /// By binding.
    units: Vec<Unit>,
    cost: Cost,
}

impl Portable {
    pub fn new(kernel: &Arc<Kernel>) -> Portable {
        let units = Interface::of_kernel(kernel).bound.iter().map(|i| Unit::of(&kernel.buffers[*i].element)).collect();
        Portable { evaluators: Evaluators::new(kernel), units, cost: Cost::of(kernel, OP_PICOSECONDS) }
    }

    /// About the bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.evaluators.bytes()
    }

    /// Runs workgroups on so many threads at most; gives those that took part.
    pub fn execute(&self, execution: Execution<'_, '_>, threads: Threads) -> Result<u32, DeviceError> {
        let Execution { launch, groups, bindings, stop } = execution;
        self.evaluators.check_room(launch).map_err(|requested| DeviceError::OutOfMemory { requested })?;
        let limits = Limits { fuel: u64::MAX, deadline: stop.deadline, cancelled: stop.cancelled };
        let spread = Spread { groups: groups.clone(), workgroup_size: launch.workgroup_size, cost: self.cost, threads, stop };
        let is_whole = self.evaluators.kernel().uses.grid_sync;
        if !is_whole
            && !spread.is_alone()
            && bindings.iter_mut().zip(&self.units).all(|(bytes, unit)| can_be_shared(bytes, *unit))
        {
            return self.shared(launch, bindings, &spread, limits);
        }
        let bound = bindings.iter_mut().map(|binding| match binding {
            Bytes::Read(bytes) => Bound::Read(bytes),
            Bytes::Write(bytes) => Bound::Write(bytes),
        });
        self.evaluators.run(launch, groups, bound, limits).map_err(failure)?;
        Ok(1)
    }

    /// Runs workgroups on several threads.
    fn shared(
        &self,
        launch: &Launch,
        bindings: &mut [Bytes<'_>],
        spread: &Spread<'_>,
        limits: Limits<'_>,
    ) -> Result<u32, DeviceError> {
        let bound: SmallVec<[Bound<'_>; 8]> = bindings
            .iter_mut()
            .zip(&self.units)
            .map(|(binding, unit)| match binding {
                Bytes::Read(bytes) => Bound::Read(bytes),
                Bytes::Write(bytes) => Bound::Shared(share(bytes, *unit).expect("it was looked at")),
            })
            .collect();
        let trap: Mutex<Option<(u64, [u32; 3], u32)>> = Mutex::new(None);
        let threads = spread.run(|groups: Range<u32>| {
            let again = bound.iter().map(|bound| match bound {
                Bound::Read(bytes) => Bound::Read(bytes),
                Bound::Shared(shared) => Bound::Shared(*shared),
                Bound::Write(_) => unreachable!("what is written is shared"),
            });
            match self.evaluators.run(launch, groups, again, limits) {
                Err(RunError::Trap { tag, invocation, .. }) => {
                    let found = (order(launch, invocation), invocation, tag);
                    let mut smallest = trap.lock().unwrap_or_else(PoisonError::into_inner);
                    *smallest = Some(smallest.map_or(found, |smallest| smallest.min(found)));
                    Ok(())
                }
                result => result.map_err(failure),
            }
        })?;
        match trap.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, invocation, tag)) => Err(DeviceError::Trap { tag, invocation }),
            None => Ok(threads),
        }
    }
}

fn can_be_shared(bytes: &mut Bytes<'_>, unit: Unit) -> bool {
    match bytes {
        Bytes::Read(_) => true,
        Bytes::Write(bytes) => share(bytes, unit).is_some(),
    }
}

/// The place of an invocation in the order of all of a dispatch.
fn order(launch: &Launch, [x, y, z]: [u32; 3]) -> u64 {
    let size = |axis: usize| u64::from(launch.grid[axis]) * u64::from(launch.workgroup_size[axis]);
    (u64::from(z) * size(1) + u64::from(y)) * size(0) + u64::from(x)
}

fn failure(error: RunError) -> DeviceError {
    match error {
        RunError::Trap { tag, invocation, .. } => DeviceError::Trap { tag, invocation },
        RunError::Timeout => DeviceError::Timeout,
        RunError::Cancelled => DeviceError::Cancelled,
        RunError::Rejected(_) | RunError::OutOfFuel { .. } => DeviceError::Other(error.to_string()),
    }
}
