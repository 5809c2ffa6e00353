//! The plain interpreter: one dispatch under one schedule. What it gives is what a program means.

use crate::dispatch::Prepared;
use crate::error::RunError;
use crate::faults::hooks::Faultless;
use crate::fuel::{Fuel, Limits};
use crate::observe::Unobserved;
use crate::schedule::Schedule;
use std::collections::BTreeMap;
use std::time::Instant;
use vyre_foundation::case::Case;
use vyre_foundation::ir::{Program, SpecValue};
use vyre_foundation::launch::LaunchConfig;
use vyre_foundation::specialize;
use vyre_host_floats::with_default_state;

/// What a caller can say about a run beside program and inputs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The launch.
    pub launch: LaunchConfig,
    /// Values for specialization constants.
    pub specialization: BTreeMap<String, SpecValue>,
    /// The steps that all invocations may take together. A statement is a step, and so are the end of a body and of an invocation.
    pub fuel: u64,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// The order of steps.
    pub schedule: Schedule,
}

/// What a case says about its run; its program has its constants still.
impl From<&Case> for Options {
    fn from(case: &Case) -> Self {
        let specialization = case.config.specialization.clone().into();
        Options { launch: case.config.launch(), specialization, fuel: case.fuel, ..Options::default() }
    }
}

impl Default for Options {
    /// The default launch, 4 billion steps, smallest id first.
    fn default() -> Self {
        Options {
            launch: LaunchConfig::default(),
            specialization: BTreeMap::new(),
            fuel: 1 << 32,
            deadline: None,
            schedule: Schedule::Forward,
        }
    }
}

impl Options {
    /// What the run may use.
    #[must_use]
    pub fn limits(&self) -> Limits<'static> {
        Limits { fuel: self.fuel, deadline: self.deadline, cancelled: None }
    }

    pub(crate) fn fuel(&self) -> Fuel<'static> {
        Fuel::new(self.limits())
    }
}

/// Runs a program. Inputs and outputs are in the order of the program's interface, which is that of binding numbers.
pub fn run(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    with_default_state(|| {
        let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
        let program = specialize(program, values)?;
        let mut prepared = Prepared::new(&program, inputs, options)?;
        let storage = std::mem::take(&mut prepared.storage);
        prepared.run(storage, &options.schedule, &mut options.fuel(), &mut Unobserved, &Faultless)
    })
}
