//! The reference as two backends: `reference`, the plain interpreter that defines what programs mean, and `bulk`, the evaluator that
//! gives the same bytes faster. Both are always there and need no device.
//!
//! This is also the example of how to write a backend; `docs/backends.md` walks through it. This file is a whole one that keeps
//! nothing between dispatches; `bulk.rs` is a device.

mod bulk;

pub use bulk::bulk_device;

use std::time::Instant;
use vyre_driver::backend::registry::BackendRegistration;
use vyre_driver::launch::{Planned, require_determinism};
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_foundation::launch::{check_inputs, plan};
use vyre_reference::{Options, RunError};

struct Reference;

// Who depends on this crate has the backend. Opening it costs nothing.
inventory::submit! {
    BackendRegistration::single("reference", 900, "the plain interpreter: what programs mean", || Ok(Box::new(Reference)))
}

impl VyreBackend for Reference {
    fn id(&self) -> &'static str {
        "reference"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        self.dispatch_borrowed(program, &inputs, config)
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let start = Instant::now();
        // Constants first: they may change counts, sizes and types, against which the bytes are checked.
        let program = config.specialization.apply(program)?;
        let sizes: Vec<u64> = inputs.iter().map(|input| input.len() as u64).collect();
        check_inputs(&program, &sizes)?;
        let launch = plan(&program, &sizes, &config.launch())?;
        require_determinism(&program, Planned::Launch(&launch, inputs), config)?;
        in_time(start, config)?;
        let deadline = config.timeout.and_then(|limit| start.checked_add(limit));
        let options = Options { launch: config.launch(), deadline, ..Options::default() };
        vyre_reference::run(&program, inputs, &options).map_err(|error| failure(error, config))
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn supports_grid_sync(&self) -> bool {
        true
    }
}

/// Whether a call that began at `start` has time left.
fn in_time(start: Instant, config: &DispatchConfig) -> Result<(), BackendError> {
    match config.timeout {
        Some(limit) if start.elapsed() >= limit => Err(BackendError::Timeout { limit }),
        Some(_) | None => Ok(()),
    }
}

fn failure(error: RunError, config: &DispatchConfig) -> BackendError {
    match error {
        RunError::Rejected(report) => BackendError::Rejected(report),
        RunError::Trap { tag, invocation, .. } => BackendError::Trap { tag, invocation },
        RunError::Timeout | RunError::Cancelled => BackendError::Timeout { limit: config.timeout.unwrap_or_default() },
        RunError::OutOfFuel { fuel } => BackendError::InvalidProgram {
            fix: format!("the dispatch takes more than {fuel} steps. Fix: dispatch it in parts, or on another backend"),
        },
    }
}
