//! A backend's own pipeline as callers get it: it knows what its constants were replaced by, and counts.

use super::without_constants;
use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, Resource, TimedDispatchResult, VyreBackend,
};
use crate::observability::{self, Counters, total, total_borrowed};
use crate::specialization::SpecMap;
use std::sync::Arc;

pub(super) struct Native {
    inner: Arc<dyn CompiledPipeline>,
    /// What the constants were replaced by, before the backend saw the program.
    specialization: SpecMap,
    counters: &'static Counters,
}

impl Native {
    pub fn new(backend: &dyn VyreBackend, inner: Arc<dyn CompiledPipeline>, specialization: SpecMap) -> Self {
        Native { inner, specialization, counters: observability::of_backend(backend.id()) }
    }

    fn with<R>(
        &self,
        call: &DispatchConfig,
        run: impl FnOnce(&DispatchConfig) -> Result<R, BackendError>,
    ) -> Result<R, BackendError> {
        without_constants(call, &self.specialization, run)
    }
}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for Native {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.with(config, |config| self.counters.dispatch(config, total(inputs), || self.inner.dispatch(inputs, config)))
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.with(config, |config| self.counters.dispatch(config, total(inputs), || self.inner.dispatch_borrowed(inputs, config)))
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.with(config, |config| {
            let run = |outputs: &mut OutputBuffers| self.inner.dispatch_borrowed_into(inputs, config, outputs);
            self.counters.dispatch_into(config, total(inputs), outputs, run)
        })
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        self.with(config, |config| {
            self.counters.dispatch(config, total(inputs), || self.inner.dispatch_borrowed_timed(inputs, config))
        })
    }

    fn dispatch_borrowed_async(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.with(config, |config| {
            self.counters.begin_dispatch(config, total(inputs), || self.inner.dispatch_borrowed_async(inputs, config))
        })
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        self.with(config, |config| {
            self.counters.dispatch_batch(config, batches, || self.inner.dispatch_borrowed_batched(batches, config))
        })
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        self.with(config, |config| {
            let run = |outputs: &mut Vec<OutputBuffers>| self.inner.dispatch_borrowed_batched_into(batches, config, outputs);
            self.counters.dispatch_batch_into(config, batches, outputs, run)
        })
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        self.with(config, |config| {
            self.counters.dispatch(config, total_borrowed(inputs), || self.inner.dispatch_persistent_handles(inputs, config))
        })
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.with(config, |config| {
            let run = |outputs: &mut OutputBuffers| self.inner.dispatch_persistent_handles_into(inputs, config, outputs);
            self.counters.dispatch_into(config, total_borrowed(inputs), outputs, run)
        })
    }
}
