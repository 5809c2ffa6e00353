//! A mutant as a subject: the bulk evaluator on what the fault leaves of a case.
//!
//! What is made ready for a program is kept, as the bulk evaluator's own subject keeps it, so that a mutant costs what its changed
//! program costs and no more.

use super::fault::{Fault, Place};
use super::rewrite::rewritten;
use super::state::{Before, Fits};
use std::ops::Range;
use std::sync::Arc;
use vyre_foundation::config::{DispatchConfig, SpecMap};
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::{Launch, plan};
use vyre_reference::bulk::Bulk;
use vyre_reference::{Limits, Options, Schedule};
use vyre_smith::subjects::failure;
use vyre_worker::{Case, Failure, Job, Outputs, Ran, Subject};

/// Programs that are kept ready.
const KEPT: usize = 16;

pub(super) struct MutantSubject {
    name: String,
    fault: Arc<Fault>,
    /// The one that was used last first.
    ready: Vec<Ready>,
    before: Before,
    made: u64,
}

/// A program that was made ready.
struct Ready {
    program: Program,
    specialization: SpecMap,
    /// The program with its constants replaced, as it should run.
    right: Program,
    interface: Interface,
    bulk: Bulk,
    /// What runs where the fault is in the code.
    wrong: Option<Wrong>,
    /// What a cache knows it by, if that is the fault.
    key: Option<Vec<u8>>,
    fits: Option<Fits>,
    /// How many were made ready before it.
    number: u64,
}

enum Wrong {
    Bulk(Box<Bulk>),
    Plain(Program, Schedule),
}

impl MutantSubject {
    pub fn new(name: String, fault: Arc<Fault>) -> MutantSubject {
        MutantSubject { name, fault, ready: Vec::new(), before: Before::default(), made: 0 }
    }

    /// Makes a program ready and puts it first.
    fn make_ready(&mut self, program: &Program, config: &DispatchConfig) -> Result<(), Failure> {
        let same = |ready: &Ready| ready.program == *program && ready.specialization == config.specialization;
        match self.ready.iter().position(same) {
            Some(0) => {}
            Some(n) => self.ready[..=n].rotate_right(1),
            None => {
                let made = Ready::new(&self.fault, program, config, self.made)?;
                self.made += 1;
                self.ready.truncate(KEPT - 1);
                self.ready.insert(0, made);
            }
        }
        Ok(())
    }

    fn run_job(&mut self, job: Job<'_, '_>) -> Result<(), Failure> {
        let Job { program, config, fuel, inputs: given, outputs } = job;
        self.make_ready(program, config)?;
        let launch = self.ready[0].plan(given, config)?;
        let mixed = self.before.inputs(&self.fault, program, given);
        let stale: Option<Vec<&[u8]>> = mixed.as_ref().map(|stale| stale.iter().map(|bytes| &**bytes).collect());
        let inputs = stale.as_deref().unwrap_or(given);
        let at = self.collision();
        let ready = &mut self.ready[at];
        ready.start(&launch, inputs, outputs);
        self.before.outputs(&self.fault, &ready.right, &ready.interface, outputs);
        // A fault may cost steps.
        let fuel = fuel.saturating_mul(16).saturating_add(1000);
        let result = ready.run(&self.fault, &launch, config, fuel, inputs, outputs);
        drop(mixed);
        self.before.keep(&self.fault, program, given, outputs);
        result
    }

    /// Which of the programs that are ready runs: another than the first, if the fault takes it for that.
    fn collision(&self) -> usize {
        let Some(first) = self.ready.first().filter(|ready| ready.key.is_some()) else { return 0 };
        let same = |ready: &&Ready| ready.key == first.key && ready.fits == first.fits;
        // What was compiled first for a key stays in its place.
        let eldest = self.ready.iter().filter(same).map(|ready| ready.number).min();
        self.ready.iter().position(|ready| Some(ready.number) == eldest).unwrap_or(0)
    }
}

impl Ready {
    fn new(fault: &Fault, program: &Program, config: &DispatchConfig, number: u64) -> Result<Ready, Failure> {
        let refused = |report: &dyn std::fmt::Display| Failure::Refused(report.to_string());
        let right = config.specialization.apply(program).map_err(|report| refused(&report))?;
        let validated = right.validated().map_err(|report| refused(report))?;
        let bulk = Bulk::new(validated.kernel());
        let wrong = wrong(fault, &right);
        let key = fault.weak_key().map(|key| key.of(program, &config.specialization));
        let fits = key.as_ref().map(|_| Fits::of(&right));
        let (program, specialization) = (program.clone(), config.specialization.clone());
        let interface = right.interface().clone();
        Ok(Ready { program, specialization, interface, right, bulk, wrong, key, fits, number })
    }

    fn plan(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Launch, Failure> {
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        plan(&self.right, &sizes, &config.launch()).map_err(|report| Failure::Refused(report.to_string()))
    }

    /// Gives outputs what they hold before the dispatch.
    fn start(&self, launch: &Launch, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        debug_assert_eq!(outputs.len(), self.interface.outputs.len(), "a place for every output");
        for (place, i) in outputs.iter_mut().zip(&self.interface.outputs) {
            debug_assert_eq!(place.len() as u64, launch.bytes[*i], "outputs are as long as the launch says");
            match self.interface.inputs.iter().position(|input| input == i) {
                Some(input) => place.copy_from_slice(inputs[input]),
                None => place.fill(0),
            }
        }
    }

    fn run(
        &mut self,
        fault: &Fault,
        launch: &Launch,
        config: &DispatchConfig,
        fuel: u64,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        let here = fault.at_size().is_none_or(|size| launch.workgroup_size.iter().product::<u32>() == size);
        let limits = Limits::fuel(fuel);
        match self.wrong.as_mut().filter(|_| here) {
            Some(Wrong::Plain(program, schedule)) => {
                let options = Options { launch: config.launch(), fuel, schedule: schedule.clone(), ..Options::default() };
                let found = vyre_reference::run(program, inputs, &options).map_err(failure)?;
                outputs.iter_mut().zip(found).for_each(|(place, bytes)| place.copy_from_slice(&bytes));
                Ok(())
            }
            Some(Wrong::Bulk(bulk)) => bulk.run_groups(launch, 0..launch.groups(), inputs, outputs, limits).map_err(failure),
            None => {
                let all: Range<u32> = 0..launch.groups();
                let whole = self.bulk.kernel().uses.grid_sync || !here;
                match fault.lost_groups().filter(|_| !whole) {
                    None => self.bulk.run_groups(launch, all, inputs, outputs, limits).map_err(failure),
                    Some(lost) => {
                        for part in lost.what_runs(launch) {
                            self.bulk.run_groups(launch, part, inputs, outputs, Limits::fuel(fuel)).map_err(failure)?;
                        }
                        Ok(())
                    }
                }
            }
        }
    }
}

fn wrong(fault: &Fault, right: &Program) -> Option<Wrong> {
    let place = fault.place()?;
    match place {
        Place::Code(change, schedule) => {
            let program = rewritten(right, change)?;
            match schedule {
                Some(schedule) => Some(Wrong::Plain(program, schedule.clone())),
                None => Some(Wrong::Bulk(Box::new(Bulk::new(program.validated().ok()?.kernel())))),
            }
        }
        Place::Evaluator(fault) => Some(Wrong::Bulk(Box::new(Bulk::new(right.validated().ok()?.kernel()).with_fault(fault)))),
    }
}

impl Subject for MutantSubject {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, case: &Case) -> Result<Outputs, Failure> {
        self.make_ready(&case.program, &case.config)?;
        let inputs = case.input_slices();
        let ready = &self.ready[0];
        let launch = ready.plan(&inputs, &case.config)?;
        let mut outputs: Outputs = ready.interface.outputs.iter().map(|i| vec![0; launch.bytes[*i] as usize]).collect();
        let mut places: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let job = Job { program: &case.program, config: &case.config, fuel: case.fuel, inputs: &inputs, outputs: &mut places };
        self.run_job(job)?;
        Ok(outputs)
    }

    fn run_in_place(&mut self, job: Job<'_, '_>) -> Result<Option<Ran>, Failure> {
        self.run_job(job)?;
        Ok(None)
    }
}
