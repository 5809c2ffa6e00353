//! The reference as a device, and as a backend with nothing but what it must have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_driver::device::{
    Bytes, Capabilities, CodeOptions, DeviceError, DeviceInfo, Execution, Generation, HostCode, HostDevice, HostKernels, Limits,
    backend,
};
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::check_inputs;
use vyre_reference::bulk::Bulk;
use vyre_reference::{Options, RunError};

/// The bulk evaluator without grid barriers, made anew for every dispatch.
pub struct Kernels {
    pub info: DeviceInfo,
}

/// A backend over a device that has everything but grid barriers.
pub fn device() -> Box<dyn VyreBackend> {
    backend(Arc::new(host()))
}

/// The device itself.
pub fn host() -> HostDevice<Kernels> {
    HostDevice::new(Kernels { info: info() })
}

/// What the device says of itself.
pub fn info() -> DeviceInfo {
    DeviceInfo {
        id: "device",
        name: "a device for tests".into(),
        fingerprint: "device".into(),
        build: "1",
        capabilities: Capabilities { grid_sync: false, ..Capabilities::host() },
        limits: Limits::host(),
        profiles: vec!["fast"],
        generation: Generation::default(),
    }
}

impl HostKernels for Kernels {
    type Code = Arc<Kernel>;

    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn compile(&self, kernel: &Arc<Kernel>, _: &CodeOptions) -> Result<HostCode<Arc<Kernel>>, DeviceError> {
        Ok(HostCode { code: kernel.clone(), bytes: 1000, lowering: Arc::from("bulk"), hash: Some([7; 32]), ulp: None })
    }

    fn execute(&self, kernel: &Arc<Kernel>, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        let Execution { launch, groups, bindings, stop } = execution;
        let bound = vyre_foundation::interface::Interface::of_kernel(kernel).bound;
        let (mut inputs, mut outputs): (Vec<&[u8]>, Vec<&mut [u8]>) = (Vec::new(), Vec::new());
        for (binding, i) in bindings.iter_mut().zip(bound) {
            match binding {
                Bytes::Read(bytes) => inputs.push(bytes),
                Bytes::Write(bytes) => {
                    if kernel.buffers[i].access.is_input() {
                        inputs.push(&[]);
                    }
                    outputs.push(bytes);
                }
            }
        }
        let limits = vyre_reference::Limits { fuel: u64::MAX, deadline: stop.deadline, cancelled: stop.cancelled };
        match Bulk::new(kernel).run_groups(launch, groups, &inputs, &mut outputs, limits) {
            Ok(()) => Ok(1),
            Err(RunError::Trap { tag, invocation, .. }) => Err(DeviceError::Trap { tag, invocation }),
            Err(RunError::Timeout) => Err(DeviceError::Timeout),
            Err(RunError::Cancelled) => Err(DeviceError::Cancelled),
            Err(error @ (RunError::Rejected(_) | RunError::OutOfFuel { .. })) => Err(DeviceError::Other(error.to_string())),
        }
    }
}

pub fn run(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
    let program = config.specialization.apply(program)?;
    check_inputs(&program, &inputs.iter().map(|input| input.len() as u64).collect::<Vec<_>>())?;
    vyre_reference::run(&program, inputs, &Options { launch: config.launch(), ..Options::default() }).map_err(failure)
}

pub fn failure(error: RunError) -> BackendError {
    match error {
        RunError::Rejected(report) => BackendError::Rejected(report),
        RunError::Trap { tag, invocation, .. } => BackendError::Trap { tag, invocation },
        RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled => BackendError::new(error.to_string()),
    }
}

/// The reference with nothing but what a backend must have.
#[derive(Default)]
pub struct Plain {
    pub calls: AtomicU64,
}

impl VyreBackend for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        run(program, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), config)
    }
}

/// Inputs and outputs in the order of binding numbers, by their place among the declarations.
pub fn bound_buffers(program: &Program) -> Vec<usize> {
    let mut bound: Vec<usize> = (0..program.buffers().len())
        .filter(|i| program.interface().inputs.contains(i) || program.interface().outputs.contains(i))
        .collect();
    bound.sort_by_key(|i| program.buffers()[*i].binding);
    bound
}
