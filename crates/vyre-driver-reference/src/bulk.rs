//! The bulk evaluator as a device: kernels over slices of the host's memory, on the thread that asks.
//!
//! A kernel made ready is a pool of evaluators ([`Evaluators`]).

use std::sync::Arc;
use vyre_driver::backend::registry::BackendRegistration;
use vyre_driver::device::{
    Bytes, Capabilities, CodeOptions, Device, DeviceError, DeviceInfo, Execution, Generation, HostCode, HostDevice, HostKernels,
    Limits, backend,
};
use vyre_foundation::kernel::Kernel;
use vyre_reference::RunError;
use vyre_reference::bulk::{Bound, Evaluators};

const ID: &str = "bulk";

inventory::submit! {
    BackendRegistration::single(ID, 800, "the bulk evaluator: the reference's bytes, vectorised", || {
        Ok(backend(bulk_device()))
    })
}

/// The bulk evaluator as a device of its own, for whoever wraps devices.
#[must_use]
pub fn bulk_device() -> Arc<dyn Device> {
    Arc::new(HostDevice::new(BulkKernels))
}

struct BulkKernels;

impl HostKernels for BulkKernels {
    type Code = Evaluators;

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            id: ID,
            name: "bulk evaluator".into(),
            // Nothing that it keeps depends on the machine.
            fingerprint: ID.into(),
            build: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities::host(),
            limits: Limits::host(),
            profiles: Vec::new(),
            generation: Generation::default(),
        }
    }

    fn compile(&self, kernel: &Arc<Kernel>, _: &CodeOptions) -> Result<HostCode<Evaluators>, DeviceError> {
        let code = Evaluators::new(kernel);
        Ok(HostCode { bytes: code.bytes(), code, lowering: Arc::from(ID), hash: None, ulp: None })
    }

    fn execute(&self, code: &Evaluators, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        let Execution { launch, groups, bindings, stop } = execution;
        code.check_room(launch).map_err(|requested| DeviceError::OutOfMemory { requested })?;
        let limits = vyre_reference::Limits { fuel: u64::MAX, deadline: stop.deadline, cancelled: stop.cancelled };
        let bound = bindings.iter_mut().map(|binding| match binding {
            Bytes::Read(bytes) => Bound::Read(bytes),
            Bytes::Write(bytes) => Bound::Write(bytes),
        });
        match code.run(launch, groups, bound, limits) {
            Ok(()) => Ok(1),
            Err(RunError::Trap { tag, invocation, .. }) => Err(DeviceError::Trap { tag, invocation }),
            Err(RunError::Timeout) => Err(DeviceError::Timeout),
            Err(RunError::Cancelled) => Err(DeviceError::Cancelled),
            Err(error @ (RunError::Rejected(_) | RunError::OutOfFuel { .. })) => Err(DeviceError::Other(error.to_string())),
        }
    }
}
