//! The pipeline of a backend that compiles nothing: it hands every dispatch on.

use super::without_constants;
use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, Resource, TimedDispatchResult, VyreBackend,
    fill_batch, fill_outputs,
};
use crate::observability::{self, Counters, total, total_borrowed};
use crate::specialization::SpecMap;
use std::sync::Arc;
use vyre_foundation::ir::Program;

pub(super) struct Passthrough {
    id: String,
    backend: Arc<dyn VyreBackend>,
    /// Its constants are replaced.
    program: Program,
    /// Says nothing about constants.
    config: DispatchConfig,
    /// What the constants were replaced by.
    specialization: SpecMap,
    counters: &'static Counters,
}

impl Passthrough {
    pub fn new(
        backend: Arc<dyn VyreBackend>,
        program: Program,
        config: DispatchConfig,
        specialization: SpecMap,
        key: String,
    ) -> Self {
        let counters = observability::of_backend(backend.id());
        Passthrough { id: format!("{}:{key}", backend.id()), backend, program, config, specialization, counters }
    }

    /// Calls `run` with what holds for a call; see [`DispatchConfig::over`].
    fn with<R>(
        &self,
        call: &DispatchConfig,
        run: impl FnOnce(&DispatchConfig) -> Result<R, BackendError>,
    ) -> Result<R, BackendError> {
        without_constants(call, &self.specialization, |call| run(&*call.over(&self.config)?))
    }
}

// Defaults of the trait would not know whose dispatches they count.
#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for Passthrough {
    fn id(&self) -> &str {
        &self.id
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.with(config, |config| {
            self.counters.dispatch(config, total(inputs), || self.backend.dispatch(&self.program, inputs, config))
        })
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.with(config, |config| {
            self.counters.dispatch(config, total(inputs), || self.backend.dispatch_borrowed(&self.program, inputs, config))
        })
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.with(config, |config| {
            let run = |outputs: &mut OutputBuffers| self.backend.dispatch_borrowed_into(&self.program, inputs, config, outputs);
            self.counters.dispatch_into(config, total(inputs), outputs, run)
        })
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        self.with(config, |config| {
            self.counters.dispatch(config, total(inputs), || self.backend.dispatch_borrowed_timed(&self.program, inputs, config))
        })
    }

    fn dispatch_borrowed_async(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.with(config, |config| {
            let run = || self.backend.dispatch_borrowed_async(&self.program, inputs, config);
            self.counters.begin_dispatch(config, total(inputs), run)
        })
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        batches.iter().map(|inputs| self.dispatch_borrowed(inputs, config)).collect()
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        self.counters.dispatch_batch_into(config, batches, outputs, |outputs| {
            fill_batch(outputs, &self.dispatch_borrowed_batched(batches, config)?);
            Ok(())
        })
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        let run = |config: &DispatchConfig| self.backend.dispatch_resident_timed(&self.program, inputs, config);
        let result = self.with(config, |config| self.counters.dispatch(config, total_borrowed(inputs), || run(config)));
        Ok(result?.outputs)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.counters.dispatch_into(config, total_borrowed(inputs), outputs, |outputs| {
            fill_outputs(outputs, &self.dispatch_persistent_handles(inputs, config)?);
            Ok(())
        })
    }
}
