//! The pipeline of a program whose constants were replaced. The backend was given the program that came of it and knows of no values;
//! a call may repeat them all the same.

use crate::backend::{BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, private};
use crate::specialization::SpecMap;
use std::sync::Arc;

pub(super) struct Specialized {
    pub pipeline: Arc<dyn CompiledPipeline>,
    /// What the constants were replaced by.
    pub values: SpecMap,
}

impl private::Sealed for Specialized {}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for Specialized {
    fn id(&self) -> &str {
        self.pipeline.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.pipeline.dispatch(inputs, &*config.without_values(&self.values)?)
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.pipeline.dispatch_borrowed(inputs, &*config.without_values(&self.values)?)
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.pipeline.dispatch_borrowed_into(inputs, &*config.without_values(&self.values)?, outputs)
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        self.pipeline.dispatch_borrowed_timed(inputs, &*config.without_values(&self.values)?)
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        self.pipeline.dispatch_borrowed_batched(batches, &*config.without_values(&self.values)?)
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        self.pipeline.dispatch_borrowed_batched_into(batches, &*config.without_values(&self.values)?, outputs)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        self.pipeline.dispatch_persistent_handles(inputs, &*config.without_values(&self.values)?)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.pipeline.dispatch_persistent_handles_into(inputs, &*config.without_values(&self.values)?, outputs)
    }
}
