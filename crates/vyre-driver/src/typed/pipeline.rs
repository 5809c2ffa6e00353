//! A program that was compiled for a backend, run by names and types.

use super::handle::Backend;
use super::ready::{Ready, submit};
use super::{Dispatch, Results, Running, Timing};
use crate::backend::{BackendError, CompiledPipeline, DispatchConfig, ResidentStep};
use crate::pipeline;
use crate::specialization::SpecMap;
use std::fmt;
use std::sync::Arc;
use vyre_foundation::ir::Program;

/// A compiled program; cheap to clone and to share between threads. [`Pipeline::dispatch`] begins a dispatch of it.
#[derive(Clone)]
pub struct Pipeline(Arc<Inner>);

struct Inner {
    backend: Backend,
    compiled: Arc<dyn CompiledPipeline>,
    /// Its constants are replaced.
    program: Program,
    /// What was said when it was compiled, without values for constants.
    config: DispatchConfig,
    constants: SpecMap,
}

impl Pipeline {
    pub(super) fn new(backend: &Backend, program: &Program, config: &DispatchConfig) -> Result<Pipeline, BackendError> {
        let compiled = pipeline::compile(backend.clone().into(), program, config)?;
        Ok(Pipeline(Arc::new(Inner {
            backend: backend.clone(),
            compiled,
            program: config.specialization.apply(program)?,
            config: config.without_specialization(),
            constants: config.specialization.clone(),
        })))
    }

    /// The program, its constants replaced by their values.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// The backend that it was compiled for.
    #[must_use]
    pub fn backend(&self) -> &Backend {
        &self.0.backend
    }

    /// The same as bytes see it.
    #[must_use]
    pub fn compiled(&self) -> &Arc<dyn CompiledPipeline> {
        &self.0.compiled
    }

    /// A dispatch, nothing said yet but what was said when it was compiled.
    pub fn dispatch(&self) -> Dispatch<'_, &Pipeline> {
        Dispatch::of(&self.0.program, self)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipeline {}", self.0.compiled.id())
    }
}

impl Dispatch<'_, &Pipeline> {
    fn ready(&self) -> Result<Ready<'_>, BackendError> {
        let pipeline = &self.on.0;
        let said = &self.config;
        said.specialization.check_within(&pipeline.constants)?;
        match said.specialization.is_empty() {
            true => self.prepare(&pipeline.program, &*said.over(&pipeline.config)?),
            false => self.prepare(&pipeline.program, &*said.without_specialization().over(&pipeline.config)?),
        }
    }

    /// Checks all of it and runs it.
    ///
    /// # Errors
    ///
    /// If it is wrong or fails.
    pub fn run(&self) -> Result<Results, BackendError> {
        self.ready()?.run_compiled(&self.on.0.backend, &*self.on.0.compiled)
    }

    /// The same into results of before, whose memory is used again. After a failure they are as they were.
    ///
    /// # Errors
    ///
    /// If it is wrong or fails.
    pub fn run_into(&self, results: &mut Results) -> Result<(), BackendError> {
        self.ready()?.run_into(&self.on.0.backend, &*self.on.0.compiled, results)
    }

    /// The same, with how long it took and what ran.
    ///
    /// # Errors
    ///
    /// If it is wrong or fails.
    pub fn run_timed(&self) -> Result<(Results, Timing), BackendError> {
        self.ready()?.run_timed(&self.on.0.backend, &*self.on.0.compiled)
    }

    /// Begins it. Inputs are read before this returns, and buffers are used in the order in which dispatches begin.
    ///
    /// # Errors
    ///
    /// If it is wrong; what fails later is told by what this gives.
    pub fn run_async(&self) -> Result<Running, BackendError> {
        self.ready()?.begin(&self.on.0.backend, &*self.on.0.compiled)
    }
}

/// See [`Backend::run_batch`].
pub(super) fn run_batch(backend: &Backend, dispatches: &[Dispatch<'_, &Pipeline>]) -> Result<Vec<Results>, BackendError> {
    if dispatches.iter().any(|dispatch| !dispatch.on.0.backend.is(backend)) {
        let fix = "a dispatch of the batch uses a pipeline of another backend. Fix: compile it for this one";
        return Err(BackendError::InvalidProgram { fix: fix.into() });
    }
    let ready = dispatches.iter().map(Dispatch::ready).collect::<Result<Vec<_>, _>>()?;
    let mut results = Vec::with_capacity(ready.len());
    let mut at = 0;
    while at < ready.len() {
        let pipeline = &dispatches[at].on.0;
        let steps: Vec<ResidentStep<'_>> = ready[at..].iter().map_while(|ready| step(backend, ready)).collect();
        if steps.len() > 1 {
            submit(backend, &steps, ready[at].config())?.wait()?;
            for ready in &ready[at..at + steps.len()] {
                results.push(ready.results(backend, Vec::new())?);
            }
            at += steps.len();
            continue;
        }
        let inputs: Vec<Vec<&[u8]>> = ready[at..]
            .iter()
            .zip(&dispatches[at..])
            .map_while(|(next, dispatch)| {
                let is_same = Arc::ptr_eq(&dispatch.on.0, pipeline) && next.config() == ready[at].config();
                next.host_inputs().filter(|_| is_same)
            })
            .collect();
        if inputs.len() > 1 {
            let slices: Vec<&[&[u8]]> = inputs.iter().map(Vec::as_slice).collect();
            let outputs = pipeline.compiled.dispatch_borrowed_batched(&slices, ready[at].config())?;
            if outputs.len() != inputs.len() {
                let message = format!("the backend gave the outputs of {} dispatches of {}", outputs.len(), inputs.len());
                return Err(BackendError::new(message));
            }
            for (ready, outputs) in ready[at..].iter().zip(outputs) {
                results.push(ready.results(backend, outputs)?);
            }
            at += inputs.len();
            continue;
        }
        results.push(ready[at].run_compiled(backend, &*pipeline.compiled)?);
        at += 1;
    }
    Ok(results)
}

/// A dispatch as a step of a sequence, if the backend can run it as one.
fn step<'a>(backend: &Backend, ready: &'a Ready<'_>) -> Option<ResidentStep<'a>> {
    let step = ready.step()?;
    let splits = crate::grid_sync::contains_grid_sync(ready.program()) && !backend.supports_grid_sync();
    (!splits).then_some(step)
}
