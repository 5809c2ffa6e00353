//! The bulk evaluator as a device: kernels over slices of the host's memory, on the thread that asks.
//!
//! A kernel made ready is a pool of evaluators: a dispatch takes one or makes one, so that threads do not wait for each other, and one
//! that finds an evaluator warm allocates nothing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use vyre_driver::backend::registry::BackendRegistration;
use vyre_driver::device::{
    Bytes, Capabilities, CodeOptions, Device, DeviceError, DeviceInfo, Execution, Generation, HostCode, HostDevice, HostKernels,
    Limits, backend,
};
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::OpId;
use vyre_foundation::kernel::Kernel;
use vyre_reference::RunError;
use vyre_reference::bulk::Bulk;
use vyre_spec::limits::MAX_WORKGROUP_INVOCATIONS;

const ID: &str = "bulk";

/// Memory that the invocations of a kernel with grid barriers may take together: all of them are under way at the same time.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// An evaluator that has so much memory for invocations is not kept: getting it again is little beside filling it.
const KEPT_STATE_BYTES: u64 = 64 << 20;

/// Evaluators of one kernel that are kept; more threads than this at a time make their own, and drop it.
const KEPT_EVALUATORS: usize = 32;

/// Invocations that the evaluator runs at a time where workgroups are small.
const BLOCK_LANES: u64 = 512;

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

struct BulkCode {
    kernel: Arc<Kernel>,
    /// By binding: whether it is an input, and whether it is an output.
    roles: Vec<(bool, bool)>,
    idle: Mutex<Vec<Bulk>>,
}

impl HostKernels for BulkKernels {
    type Code = BulkCode;

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            id: ID,
            name: "bulk evaluator".into(),
            // Nothing that it keeps depends on the machine.
            fingerprint: ID.into(),
            build: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities {
                ops: OpId::all().collect::<HashSet<_>>(),
                subgroups: true,
                f16: true,
                bf16: true,
                f64: true,
                grid_sync: true,
                tensor_cores: false,
                host_memory: true,
                interruptible: true,
            },
            limits: Limits {
                workgroup_size: [MAX_WORKGROUP_INVOCATIONS; 3],
                workgroup_invocations: MAX_WORKGROUP_INVOCATIONS,
                groups_per_axis: u32::MAX,
                groups_per_call: u64::from(u32::MAX),
                buffer_bytes: u64::from(u32::MAX),
                span_alignment: 1,
                subgroup_size: None,
            },
            profiles: Vec::new(),
            generation: Generation::default(),
        }
    }

    fn compile(&self, kernel: &Arc<Kernel>, _: &CodeOptions) -> Result<HostCode<BulkCode>, DeviceError> {
        let bound = Interface::of_kernel(kernel).bound;
        let access = |i: &usize| kernel.buffers[*i].access;
        let roles = bound.iter().map(|i| (access(i).is_input(), access(i).is_output())).collect();
        let code = BulkCode { kernel: kernel.clone(), roles, idle: Mutex::new(vec![Bulk::new(kernel)]) };
        Ok(HostCode { bytes: state_bytes(kernel, BLOCK_LANES), code, lowering: Arc::from(ID), hash: None, ulp: None })
    }

    fn execute(&self, code: &BulkCode, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        let Execution { launch, groups, bindings, stop } = execution;
        let requested = match code.kernel.uses.grid_sync {
            true => state_bytes(&code.kernel, launch.invocations()),
            false => 0,
        };
        if requested > MAX_STATE_BYTES {
            return Err(DeviceError::OutOfMemory { requested });
        }
        // The evaluator has a list of inputs and one of outputs; what is both is in the second.
        let mut inputs: smallvec::SmallVec<[&[u8]; 8]> = smallvec::SmallVec::new();
        let mut outputs: smallvec::SmallVec<[&mut [u8]; 8]> = smallvec::SmallVec::new();
        for (binding, (is_input, is_output)) in bindings.iter_mut().zip(&code.roles) {
            match binding {
                Bytes::Read(bytes) if !is_output => inputs.push(bytes),
                Bytes::Read(_) => {
                    return Err(DeviceError::Other("a buffer that is written is bound to bytes that are not".into()));
                }
                Bytes::Write(bytes) => {
                    if *is_input {
                        inputs.push(&[]);
                    }
                    outputs.push(bytes);
                }
            }
        }
        let idle = || code.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut bulk = kept.unwrap_or_else(|| Bulk::new(&code.kernel));
        let limits = vyre_reference::Limits { fuel: u64::MAX, deadline: stop.deadline, cancelled: stop.cancelled };
        let result = bulk.run_groups(launch, groups, &inputs, &mut outputs, limits);
        if requested <= KEPT_STATE_BYTES {
            let mut idle = idle();
            if idle.len() < KEPT_EVALUATORS {
                idle.push(bulk);
            }
        }
        match result {
            Ok(()) => Ok(1),
            Err(RunError::Trap { tag, invocation, .. }) => Err(DeviceError::Trap { tag, invocation }),
            Err(RunError::Timeout) => Err(DeviceError::Timeout),
            Err(RunError::Cancelled) => Err(DeviceError::Cancelled),
            Err(error @ (RunError::Rejected(_) | RunError::OutOfFuel { .. })) => Err(DeviceError::Other(error.to_string())),
        }
    }
}

/// About what so many invocations take at the same time.
fn state_bytes(kernel: &Kernel, invocations: u64) -> u64 {
    invocations.saturating_mul(16 * (kernel.vars.len() as u64 + 8))
}
