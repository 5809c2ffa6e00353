//! The bulk backend, opened as users open it: every way to run a program gives what the reference gives, or fails and changes nothing.

mod bad_input;
mod cache;
mod forms;
mod resident;
mod threads;
mod warm;

use std::collections::BTreeMap;
use std::sync::Arc;
use vyre_driver::backend::registry::acquire;
use vyre_driver::{BackendError, DispatchConfig, Resource, VyreBackend};
use vyre_driver_reference as _;
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

fn handle(resource: &Resource) -> u64 {
    match resource {
        Resource::Resident(handle) => *handle,
        Resource::Borrowed(_) => panic!("a handle"),
    }
}

/// A dispatch, and what it means.
struct Case {
    what: String,
    program: Program,
    inputs: Vec<Vec<u8>>,
    config: DispatchConfig,
    expected: Outcome,
}

impl Case {
    fn new(what: String, program: Program, inputs: Vec<Vec<u8>>, config: DispatchConfig) -> Case {
        let expected = meaning(&program, &slices(&inputs), &config);
        Case { what, program, inputs, config, expected }
    }
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
        let preset = Preset::mixed(number);
        let dna = dna(seed, number);
        let case = generate(preset, &dna).case(&dna);
        Case::new(format!("program {number} of {}", preset.name()), case.program, case.inputs, case.config)
    };
    (0..count).map(case).collect()
}
