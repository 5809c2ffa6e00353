//! Adapters as devices: generated programs, what drivers are wrong about, and what is the device's own.

mod faults;
mod generated;
mod memory;
mod raw;

use std::sync::Arc;
use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_driver_wgpu as _;
use vyre_foundation::case::Case;
use vyre_foundation::ir::Program;
use vyre_foundation::text;
use vyre_reference::RunError;

type Outcome = Result<Vec<Vec<u8>>, BackendError>;

/// Vulkan in software, by two implementations that share no code.
const DEVICES: [&str; 2] = ["wgpu:llvmpipe", "wgpu:swiftshader"];

fn open(id: &str) -> Arc<dyn VyreBackend> {
    Arc::from(acquire(id).unwrap_or_else(|error| panic!("{error}; scripts/test installs the drivers that the tests need")))
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

fn grid(x: u32) -> DispatchConfig {
    DispatchConfig { grid_override: Some([x, 1, 1]), ..DispatchConfig::default() }
}
