//! The CPU backend, `cpu`: kernels as machine code, spread over threads. Always there, nothing to install.
//!
//! A kernel goes through `compile`: from the SSA form of the foundation to vectors of invocations, to machine code for CPUs with AVX2 and
//! FMA. Other CPUs, and kernels that the compiler refuses, run on the bulk evaluator over the same threads; `Ran::lowering` says which:
//! `avx2`, or `portable: ` and why.
//!
//! `VYRE_CPU=portable` in the environment leaves every kernel to the bulk evaluator, `VYRE_CPU_THREADS=N` sets the number of threads.

#[cfg(target_arch = "x86_64")]
mod compile;
#[cfg(not(target_arch = "x86_64"))]
#[path = "elsewhere.rs"]
mod compile;
mod device;
mod dispatch;
#[doc(hidden)]
pub mod faults;
#[cfg(target_arch = "x86_64")]
mod machine;
mod options;
mod portable;
mod run;
mod scratch;
mod shared;
mod spread;
mod threads;
mod watchdog;

pub use compile::show::decisions;
#[cfg(feature = "listing")]
pub use compile::show::machine_code;
pub use options::Options;

use device::CpuKernels;
use std::sync::Arc;
use vyre_driver::backend::registry::BackendRegistration;
use vyre_driver::device::{Device, HostDevice, backend};

const ID: &str = "cpu";

inventory::submit! {
    BackendRegistration::single(ID, 100, "kernels as machine code of this CPU, over its threads", || {
        Ok(backend(cpu_device(Options::from_environment()?)))
    })
}

/// The CPU as a device of its own, for whoever wraps devices.
#[must_use]
pub fn cpu_device(options: Options) -> Arc<dyn Device> {
    Arc::new(HostDevice::new(CpuKernels::new(options, false, None)))
}

/// The same, with threads called to every dispatch of more than one workgroup, each for one workgroup at a time, worth it or not: so that
/// small dispatches test what otherwise only large ones meet.
#[doc(hidden)]
#[must_use]
pub fn eager_cpu_device(options: Options) -> Arc<dyn Device> {
    Arc::new(HostDevice::new(CpuKernels::new(options, true, None)))
}

/// A device that is like [`eager_cpu_device`] but for a fault of its compiler.
#[doc(hidden)]
#[must_use]
pub fn faulty_cpu_device(options: Options, fault: faults::Fault) -> Arc<dyn Device> {
    Arc::new(HostDevice::new(CpuKernels::new(options, true, Some(fault))))
}
