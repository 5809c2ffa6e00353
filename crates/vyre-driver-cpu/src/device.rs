//! The device: which tier a kernel goes to, and what is said about it.

use crate::ID;
use crate::compile::Machine;
use crate::dispatch::Ready;
use crate::faults::Fault;
use crate::options::Options;
use crate::portable::Portable;
use crate::run::MachineCode;
use crate::spread::Threads;
use std::sync::Arc;
use vyre_driver::device::{
    Capabilities, CodeOptions, DeviceError, DeviceInfo, Execution, Generation, HostCode, HostKernels, Limits,
};
use vyre_foundation::kernel::Kernel;

/// Kernels on this CPU.
pub(crate) struct CpuKernels {
    options: Options,
    threads: Threads,
    /// A mistake that the compiler makes on purpose.
    fault: Option<Fault>,
}

/// A kernel made ready.
pub(crate) enum CpuCode {
    Machine(Ready),
    Portable(Portable),
}

impl CpuKernels {
    pub fn new(options: Options, eager: bool, fault: Option<Fault>) -> CpuKernels {
        CpuKernels { options, threads: Threads { count: options.thread_count(), eager }, fault }
    }

    /// Machine code for a kernel, or why there is none.
    fn machine(&self, kernel: &Arc<Kernel>) -> Result<Box<dyn MachineCode>, String> {
        if self.options.portable {
            return Err("asked for".into());
        }
        match Machine::compile(kernel, self.fault) {
            Ok(machine) => Ok(Box::new(machine)),
            Err(refused) => Err(refused.0),
        }
    }
}

impl HostKernels for CpuKernels {
    type Code = CpuCode;

    fn info(&self) -> DeviceInfo {
        let features = if self.options.portable { "portable".into() } else { features() };
        let threads = self.threads.count;
        DeviceInfo {
            id: ID,
            name: format!("{} {features}, {threads} {}", std::env::consts::ARCH, if threads == 1 { "thread" } else { "threads" }),
            fingerprint: format!("{ID} {} {features}", std::env::consts::ARCH),
            build: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities::host(),
            limits: Limits::host(),
            profiles: Vec::new(),
            generation: Generation::default(),
        }
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<HostCode<CpuCode>, DeviceError> {
        let kernel = match options.workgroup {
            Some(size) if size != kernel.workgroup_size => &Arc::new(Kernel { workgroup_size: size, ..Kernel::clone(kernel) }),
            Some(_) | None => kernel,
        };
        Ok(match self.machine(kernel) {
            Ok(machine) => {
                let (bytes, hash) = (machine.bytes(), Some(machine.hash()));
                let code = CpuCode::Machine(Ready::new(kernel, machine));
                HostCode { code, bytes, lowering: Arc::from("avx2"), hash, ulp: None }
            }
            Err(reason) => {
                let portable = Portable::new(kernel);
                let (bytes, lowering) = (portable.bytes(), Arc::from(format!("portable: {reason}")));
                HostCode { code: CpuCode::Portable(portable), bytes, lowering, hash: None, ulp: None }
            }
        })
    }

    fn execute(&self, code: &CpuCode, execution: Execution<'_, '_>) -> Result<u32, DeviceError> {
        match code {
            CpuCode::Machine(ready) => ready.execute(execution, self.threads),
            CpuCode::Portable(portable) => portable.execute(execution, self.threads),
        }
    }
}

/// What this CPU has of what machine code may depend on.
#[cfg(target_arch = "x86_64")]
fn features() -> String {
    macro_rules! those_there {
        ($($name:tt)*) => { [$(($name, std::is_x86_feature_detected!($name))),*] };
    }
    let all =
        those_there!("sse4.2" "avx" "avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt" "movbe" "avx512f" "avx512bw" "avx512vl");
    let there: Vec<&str> = all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect();
    there.join("+")
}

/// Machine code is for x86-64.
#[cfg(not(target_arch = "x86_64"))]
fn features() -> String {
    "portable".into()
}
