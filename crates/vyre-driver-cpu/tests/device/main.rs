//! The CPU as a device: the same bytes on any number of threads, under limits, and beside everything else that a process does. What holds
//! for every backend is in `conformance.rs`.

mod floats;
mod grid_sync;
#[cfg(target_os = "linux")]
mod guards;
mod limits;
mod sizes;
mod threads;
mod together;
mod warm;

use std::num::NonZero;
use std::sync::Arc;
use vyre_driver::device::{Device, backend};
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_driver_cpu::{Options, cpu_device, eager_cpu_device};
use vyre_foundation::case::Case;
use vyre_foundation::ir::Program;
use vyre_foundation::text;
use vyre_reference::RunError;
use vyre_smith::generate::{Preset, dna, generate};

type Outcome = Result<Vec<Vec<u8>>, BackendError>;

/// Both tiers.
const TIERS: [bool; 2] = [false, true];

fn options(threads: u32, portable: bool) -> Options {
    Options { threads: NonZero::new(threads), portable }
}

fn cpu(threads: u32, portable: bool) -> Arc<dyn VyreBackend> {
    Arc::from(backend(cpu_device(options(threads, portable))))
}

/// One that calls its threads to the smallest dispatches.
fn eager_device(threads: u32, portable: bool) -> Arc<dyn Device> {
    eager_cpu_device(options(threads, portable))
}

fn eager(threads: u32, portable: bool) -> Arc<dyn VyreBackend> {
    Arc::from(backend(eager_device(threads, portable)))
}

fn program(source: &str) -> Program {
    text::parse("test", source).unwrap_or_else(|report| panic!("{report}"))
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// What a dispatch means.
fn meaning(case: &Case) -> Outcome {
    vyre_reference::run(&case.program, &case.input_slices(), &vyre_reference::Options::from(case)).map_err(|error| match error {
        RunError::Rejected(report) => BackendError::Rejected(report),
        RunError::Trap { tag, invocation, .. } => BackendError::Trap { tag, invocation },
        error @ (RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => panic!("{error}"),
    })
}

/// A generated dispatch whose bytes do not depend on the schedule, of every preset in turn.
fn generated(seed: u64, number: u64) -> Case {
    let dna = dna(seed, number);
    generate(Preset::mixed(number), &dna).case(&dna)
}

/// How many generated programs to take: what `VYRE_CPU_PROGRAMS` says, or so many.
fn programs(otherwise: u64) -> u64 {
    std::env::var("VYRE_CPU_PROGRAMS").map_or(otherwise, |count| count.parse().expect("VYRE_CPU_PROGRAMS is a number"))
}

fn dispatch(backend: &dyn VyreBackend, case: &Case) -> Outcome {
    backend.dispatch_borrowed(&case.program, &case.input_slices(), &case.config)
}

fn grid(x: u32) -> DispatchConfig {
    DispatchConfig { grid_override: Some([x, 1, 1]), ..DispatchConfig::default() }
}
