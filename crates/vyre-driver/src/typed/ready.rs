//! A dispatch in which nothing is wrong: what stands for every buffer, in the order of bindings, and the shape of the launch.

use super::buffer::Part;
use super::results::{Expected, no_buffer};
use super::running::Running;
use super::{Dispatch, Elements, Results, Timing, Value};
use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ResidentRange, ResidentStep, Resource,
    TimedDispatchResult, VyreBackend, nanoseconds,
};
use crate::launch::{Planned, require_determinism};
use crate::observability::{self, total, total_borrowed};
use crate::resident::plan_bound;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use vyre_foundation::diagnostic::Mistakes;
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::kernel::Buffer as Declared;
use vyre_foundation::launch::{Launch, Over, grid_over, inputs_by_name};
use vyre_foundation::{Diagnostic, Report};
use vyre_spec::ErrorCode;

pub(super) struct Ready<'a> {
    /// Its constants are replaced.
    program: &'a Program,
    /// Without values for constants; the grid is known.
    config: DispatchConfig,
    launch: Launch,
    bound: Vec<Bound<'a>>,
    /// What comes back: the outputs that are not resident.
    expected: Vec<Expected>,
}

/// What stands for a buffer of the interface.
#[derive(Clone, Copy)]
enum Bound<'a> {
    Host(&'a [u8]),
    /// An output that comes back.
    Place,
    Resident(&'a Part),
}

impl<On> Dispatch<'_, On> {
    /// Finds everything that is wrong before anything runs. Constants are replaced in the program and gone from the config.
    pub(super) fn prepare<'s>(&'s self, program: &'s Program, config: &DispatchConfig) -> Result<Ready<'s>, BackendError> {
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
        let interface = program.interface();
        let by_name: HashMap<&str, &Declared> = kernel.buffers.iter().map(|buffer| (buffer.name.as_str(), buffer)).collect();
        let mut mistakes = Mistakes::default();
        let typed = self.given.iter().filter_map(|given| Some((&given.name, given.ty?, "values")));
        for (name, ty, what) in typed.chain(self.outputs.iter().map(|(name, ty)| (name, *ty, "results"))) {
            let buffer = by_name.get(name.as_str());
            mistakes.extend(buffer.and_then(|buffer| ty.mistake(what, name, &buffer.element)));
        }
        let known: Vec<&str> = interface.outputs.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
        let is_output = |name: &str| by_name.get(name).is_some_and(|buffer| buffer.access.is_output());
        let unknown = self.outputs.iter().filter(|(name, _)| !is_output(name));
        mistakes.extend(unknown.map(|(name, _)| no_buffer(&format!("the program has no output `{name}`"), name, &known)));

        // Outputs can be resident and nothing else.
        let mut resident: HashMap<&str, &Part> = HashMap::new();
        let mut inputs: Vec<(&str, &[u8])> = Vec::with_capacity(self.given.len());
        for given in &self.given {
            let name = given.name.as_str();
            match &given.value {
                Value::Host(bytes) => inputs.push((name, bytes)),
                Value::Resident(part) => {
                    let twice = resident.insert(name, part).is_some();
                    match by_name.get(name) {
                        None => {
                            let bound: Vec<&str> = interface.bound.iter().map(|i| kernel.buffers[*i].name.as_str()).collect();
                            mistakes.push(no_buffer(&format!("the program has no buffer `{name}`"), name, &bound));
                        }
                        Some(buffer) if buffer.access != Access::Output => inputs.push((name, &[])),
                        Some(_) if twice => {
                            mistakes.push(Diagnostic::new(ErrorCode::E0715, format!("`{name}` is given twice")).found(name));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        let inputs = inputs_by_name(program, &inputs).unwrap_or_else(|report| {
            mistakes.append(report.into());
            Vec::new()
        });
        if !mistakes.is_empty() {
            return Err(Report::about(program, mistakes).into());
        }

        let mut config = config.clone();
        let mut in_order = inputs.iter().copied();
        let mut bound = Vec::with_capacity(interface.bound.len());
        let mut sizes = Vec::with_capacity(interface.bound.len());
        for i in &interface.bound {
            let buffer = &kernel.buffers[*i];
            let name = buffer.name.as_str();
            let input = if buffer.access.is_input() { in_order.next() } else { None };
            let (stands_for_it, size) = match (resident.get(name), input) {
                (Some(part), _) => (Bound::Resident(part), Some(part.bytes() as u64)),
                (None, Some(bytes)) => (Bound::Host(bytes), Some(bytes.len() as u64)),
                (None, None) => (Bound::Place, None),
            };
            bound.push(stands_for_it);
            sizes.push(size);
            if let (Some(bytes), false, None) = (size, buffer.access.is_input(), buffer.count) {
                let count = u128::from(bytes) * 8 / u128::from(buffer.element.bits().unwrap_or(8).max(1));
                // What cannot be counted is refused by the plan: so many elements have fewer bytes.
                config.output_counts.entry(name.into()).or_insert(u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
        if let Some(over) = &self.over {
            let over = match over {
                Elements::Of(name) => Over::Buffer(name),
                Elements::Count(count) => Over::Invocations(*count),
            };
            let is_input = |i: &usize| kernel.buffers[*i].access.is_input();
            let input_sizes = interface.bound.iter().zip(&sizes).filter(|(i, _)| is_input(i)).filter_map(|(_, size)| *size);
            let input_sizes: Vec<u64> = input_sizes.collect();
            config.grid_override = Some(grid_over(program, &input_sizes, &config.launch(), over)?);
        }
        let launch = plan_bound(program, &sizes, &config)?;
        let comes_back = interface.bound.iter().zip(&bound).filter(|(i, bound)| {
            let is_resident = match bound {
                Bound::Resident(_) => true,
                Bound::Host(_) | Bound::Place => false,
            };
            kernel.buffers[**i].access.is_output() && !is_resident
        });
        let expected = comes_back.map(|(i, _)| {
            let Declared { name, element, .. } = &kernel.buffers[*i];
            Expected { name: name.clone(), element: element.clone(), bytes: launch.bytes[*i] }
        });
        let expected = expected.collect();
        let ready = Ready { program, config, launch, bound, expected };
        // Resident data is not looked at before the dispatch.
        require_determinism(program, Planned::Launch(&ready.launch, &inputs), &ready.config)?;
        match ready.config.timeout.filter(Duration::is_zero) {
            Some(limit) => Err(BackendError::Timeout { limit }),
            None => Ok(ready),
        }
    }
}

/// How the bytes get to the backend.
enum Way {
    /// All of them are the caller's.
    Host,
    /// Some are whole resident memory.
    Handles,
    /// Some are parts of resident memory.
    Parts,
}

impl<'a> Ready<'a> {
    fn way(&self) -> Way {
        let parts = self.bound.iter().filter_map(|bound| match bound {
            Bound::Host(_) | Bound::Place => None,
            Bound::Resident(part) => Some(part),
        });
        parts.fold(Way::Host, |way, part| match (way, part.is_whole()) {
            (Way::Parts, _) | (_, false) => Way::Parts,
            (Way::Host | Way::Handles, true) => Way::Handles,
        })
    }

    /// The inputs, where no buffer is resident.
    fn inputs(&self) -> Vec<&'a [u8]> {
        let inputs = self.bound.iter().filter_map(|bound| match bound {
            Bound::Host(bytes) => Some(*bytes),
            Bound::Place | Bound::Resident(_) => None,
        });
        inputs.collect()
    }

    fn resources(&self) -> Vec<Resource> {
        let resources = self.bound.iter().map(|bound| match bound {
            Bound::Host(bytes) => Resource::Borrowed(bytes.to_vec()),
            Bound::Place => Resource::Borrowed(Vec::new()),
            Bound::Resident(part) => part.resource().clone(),
        });
        resources.collect()
    }

    /// The outputs of a backend by name, if they are those that were expected.
    pub(super) fn results(&self, backend: &dyn VyreBackend, outputs: OutputBuffers) -> Result<Results, BackendError> {
        Results::new(backend.id(), &self.expected, outputs)
    }

    /// Runs it on a backend.
    pub(super) fn run(&self, backend: &dyn VyreBackend) -> Result<Results, BackendError> {
        let counters = observability::of_backend(backend.id());
        let outputs = match self.way() {
            Way::Host => {
                let inputs = self.inputs();
                let run = || backend.dispatch_borrowed(self.program, &inputs, &self.config);
                counters.dispatch(&self.config, total(&inputs), run)?
            }
            Way::Handles => self.on_handles(backend)?.outputs,
            Way::Parts => self.begin_parts(backend)?.wait()?,
        };
        self.results(backend, outputs)
    }

    /// Runs it as a pipeline.
    pub(super) fn run_compiled(
        &self,
        backend: &dyn VyreBackend,
        pipeline: &dyn CompiledPipeline,
    ) -> Result<Results, BackendError> {
        let outputs = match self.way() {
            Way::Host => pipeline.dispatch_borrowed(&self.inputs(), &self.config)?,
            Way::Handles => pipeline.dispatch_persistent_handles(&self.resources(), &self.config)?,
            Way::Parts => self.begin_parts(backend)?.wait()?,
        };
        self.results(backend, outputs)
    }

    /// Runs it as a pipeline, into results whose memory is used again. After a failure they are as they were.
    pub(super) fn run_into(
        &self,
        backend: &dyn VyreBackend,
        pipeline: &dyn CompiledPipeline,
        results: &mut Results,
    ) -> Result<(), BackendError> {
        let mut outputs = results.take();
        let ran = match self.way() {
            Way::Host => pipeline.dispatch_borrowed_into(&self.inputs(), &self.config, &mut outputs),
            Way::Handles => pipeline.dispatch_persistent_handles_into(&self.resources(), &self.config, &mut outputs),
            Way::Parts => self.begin_parts(backend).and_then(PendingDispatch::wait).map(|read| outputs = read),
        };
        match ran {
            Ok(()) => {
                // Outputs that are not those of the program leave none.
                *results = Results::default();
                *results = self.results(backend, outputs)?;
                Ok(())
            }
            Err(error) => {
                results.put_back(outputs);
                Err(error)
            }
        }
    }

    /// Runs it as a pipeline and says how long it took.
    pub(super) fn run_timed(
        &self,
        backend: &dyn VyreBackend,
        pipeline: &dyn CompiledPipeline,
    ) -> Result<(Results, Timing), BackendError> {
        let start = Instant::now();
        let TimedDispatchResult { outputs, wall_ns, device_ns, ran } = match self.way() {
            Way::Host => pipeline.dispatch_borrowed_timed(&self.inputs(), &self.config)?,
            Way::Handles => self.on_handles(backend)?,
            Way::Parts => {
                let (outputs, ran) = self.begin_parts(backend)?.wait_ran()?;
                TimedDispatchResult { outputs, wall_ns: nanoseconds(start), device_ns: None, ran: ran.into_iter().next_back() }
            }
        };
        let timing = Timing { wall: Duration::from_nanos(wall_ns), device: device_ns.map(Duration::from_nanos), ran };
        Ok((self.results(backend, outputs)?, timing))
    }

    /// Begins it as a pipeline.
    pub(super) fn begin(&self, backend: &dyn VyreBackend, pipeline: &dyn CompiledPipeline) -> Result<Running, BackendError> {
        let pending = match self.way() {
            Way::Host => pipeline.dispatch_borrowed_async(&self.inputs(), &self.config)?,
            Way::Handles | Way::Parts => self.begin_parts(backend)?,
        };
        Ok(Running::new(backend.id(), pending, self.expected.clone()))
    }

    fn on_handles(&self, backend: &dyn VyreBackend) -> Result<TimedDispatchResult, BackendError> {
        let resources = self.resources();
        let run = || backend.dispatch_resident_timed(self.program, &resources, &self.config);
        observability::of_backend(backend.id()).dispatch(&self.config, total_borrowed(&resources), run)
    }

    /// Begins it as steps on resident memory; what is the caller's gets memory for as long as it runs.
    fn begin_parts(&self, backend: &dyn VyreBackend) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let mut lent = Lent { backend, resources: Vec::new() };
        for (i, bound) in self.program.interface().bound.iter().zip(&self.bound) {
            match bound {
                Bound::Host(_) | Bound::Place => {
                    let bytes = self.launch.bytes[*i];
                    let size = usize::try_from(bytes).map_err(|_| BackendError::OutOfMemory { requested: bytes })?;
                    lent.resources.push(backend.allocate_resident(size)?);
                }
                Bound::Resident(_) => {}
            }
        }
        let mut lent_in_order = lent.resources.iter().map(ResidentRange::from);
        let mut uploads = Vec::new();
        let mut downloads = Vec::new();
        let mut bindings = Vec::with_capacity(self.bound.len());
        for (i, bound) in self.program.interface().bound.iter().zip(&self.bound) {
            let range = match bound {
                Bound::Resident(part) => part.range(),
                Bound::Host(_) | Bound::Place => lent_in_order.next().expect("memory was allocated for it above"),
            };
            bindings.push(range);
            match bound {
                Bound::Host(bytes) => uploads.push(ResidentStep::Upload { to: range, bytes }),
                Bound::Place | Bound::Resident(_) => {}
            }
            let comes_back = self.program.buffers()[*i].access.is_output() && !matches!(bound, Bound::Resident(_));
            downloads.extend(comes_back.then_some(ResidentStep::Download(range)));
        }
        let mut steps = uploads;
        steps.push(ResidentStep::Dispatch { program: self.program, config: &self.config, bindings });
        steps.extend(downloads);
        submit(backend, &steps, &self.config)
    }

    /// The dispatch as one step on resident memory, if nothing of it is the caller's.
    pub(super) fn step(&self) -> Option<ResidentStep<'_>> {
        let ranges = self.bound.iter().map(|bound| match bound {
            Bound::Host(_) | Bound::Place => None,
            Bound::Resident(part) => Some(part.range()),
        });
        let bindings = ranges.collect::<Option<Vec<_>>>()?;
        Some(ResidentStep::Dispatch { program: self.program, config: &self.config, bindings })
    }

    /// The inputs of a dispatch without resident memory.
    pub(super) fn host_inputs(&self) -> Option<Vec<&'a [u8]>> {
        match self.way() {
            Way::Host => Some(self.inputs()),
            Way::Handles | Way::Parts => None,
        }
    }

    pub(super) fn config(&self) -> &DispatchConfig {
        &self.config
    }

    pub(super) fn program(&self) -> &'a Program {
        self.program
    }
}

/// Begins steps on resident memory, and counts their dispatches.
pub(super) fn submit(
    backend: &dyn VyreBackend,
    steps: &[ResidentStep<'_>],
    config: &DispatchConfig,
) -> Result<Box<dyn PendingDispatch>, BackendError> {
    observability::of_backend(backend.id()).begin_sequence(config, steps, || backend.submit_resident(steps, config))
}

/// Memory that a dispatch has while it is begun; what was begun keeps it until it ends.
struct Lent<'a> {
    backend: &'a dyn VyreBackend,
    resources: Vec<Resource>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        for resource in self.resources.drain(..) {
            // A device that was lost has freed it.
            let _ = self.backend.free_resident(resource);
        }
    }
}
