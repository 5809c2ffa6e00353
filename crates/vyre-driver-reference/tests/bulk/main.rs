//! The bulk backend, opened as users open it: its caches, its limits, and that a warm pipeline allocates nothing. What holds for every backend
//! is in `conformance.rs`.

mod cache;
mod limits;
mod warm;

use std::collections::BTreeMap;
use std::sync::Arc;
use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, DispatchConfig, VyreBackend};
use vyre_driver_reference as _;
use vyre_foundation::case::Case;
use vyre_foundation::ir::{Program, SpecValue};
use vyre_foundation::text;
use vyre_reference::{Options, RunError};
use vyre_smith::generate::{Preset, dna, generate};

type Outcome = Result<Vec<Vec<u8>>, BackendError>;

fn bulk() -> Arc<dyn VyreBackend> {
    Arc::from(acquire("bulk").expect("it opens"))
}

fn program(source: &str) -> Program {
    text::parse("test", source).unwrap_or_else(|report| panic!("{report}"))
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn slices(inputs: &[Vec<u8>]) -> Vec<&[u8]> {
    inputs.iter().map(Vec::as_slice).collect()
}

/// What a dispatch means.
fn meaning(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Outcome {
    let specialization: BTreeMap<String, SpecValue> =
        config.specialization.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let options = Options { launch: config.launch(), specialization, ..Options::default() };
    vyre_reference::run(program, inputs, &options).map_err(|error| match error {
        RunError::Rejected(report) => BackendError::Rejected(report),
        RunError::Trap { tag, invocation, .. } => BackendError::Trap { tag, invocation },
        error @ (RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled) => panic!("{error}"),
    })
}

/// So many generated dispatches whose bytes do not depend on the schedule, of every preset in turn.
fn generated(seed: u64, count: u64) -> Vec<Case> {
    let case = |number: u64| {
        let dna = dna(seed, number);
        generate(Preset::mixed(number), &dna).case(&dna)
    };
    (0..count).map(case).collect()
}
