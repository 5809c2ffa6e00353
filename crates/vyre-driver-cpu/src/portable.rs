//! The portable tier: kernels on the bulk evaluator.

use vyre_driver::device::{Bytes, DeviceError, Execution};
use vyre_reference::bulk::{Bound, Evaluators};
use vyre_reference::{Limits, RunError};

/// Runs workgroups; gives the threads that took part.
pub(crate) fn execute(evaluators: &Evaluators, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
    let Execution { launch, groups, bindings, stop } = execution;
    evaluators.check_room(launch).map_err(|requested| DeviceError::OutOfMemory { requested })?;
    let limits = Limits { fuel: u64::MAX, deadline: stop.deadline, cancelled: stop.cancelled };
    let bound = bindings.iter_mut().map(|binding| match binding {
        Bytes::Read(bytes) => Bound::Read(bytes),
        Bytes::Write(bytes) => Bound::Write(bytes),
    });
    evaluators.run(launch, groups, bound, limits).map_err(failure)?;
    Ok(1)
}

fn failure(error: RunError) -> DeviceError {
    match error {
        RunError::Trap { tag, invocation, .. } => DeviceError::Trap { tag, invocation },
        RunError::Timeout => DeviceError::Timeout,
        RunError::Cancelled => DeviceError::Cancelled,
        RunError::Rejected(_) | RunError::OutOfFuel { .. } => DeviceError::Other(error.to_string()),
    }
}
