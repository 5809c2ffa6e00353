//! What a caller holds: a program made ready, with what it was compiled for.

use super::compiled::Compiled;
use super::run::exchange;
use super::{Shared, begin, timed};
use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, Resource, TimedDispatchResult, fill_batch,
};
use crate::device::Deadline;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

pub(super) struct Pipeline {
    pub shared: Arc<Shared>,
    pub compiled: Arc<Compiled>,
    /// What holds where a call says nothing.
    pub config: DispatchConfig,
}

impl Pipeline {
    /// What holds for a call. A profile that it names must be one of the device; what runs is compiled for that of the pipeline.
    fn over<'a>(&'a self, call: &'a DispatchConfig) -> Result<Cow<'a, DispatchConfig>, BackendError> {
        self.shared.knows(call.profile.as_deref())?;
        Ok(call.over(&self.config)?)
    }
}

// A default would go through `dispatch`, which knows nothing of devices.
#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for Pipeline {
    fn id(&self) -> &str {
        self.compiled.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        self.dispatch_borrowed(&inputs, config)
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(self.dispatch_borrowed_timed(inputs, config)?.outputs)
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let config = self.over(config)?;
        self.shared.dispatch_into(&self.compiled, begin(&config), inputs, &config, outputs)?;
        Ok(())
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        let (start, config) = (Instant::now(), self.over(config)?);
        let deadline = Deadline::after(start, config.timeout);
        let mut outputs = Vec::new();
        let ran = self.shared.dispatch(&self.compiled, deadline, inputs, &config, &mut outputs)?;
        Ok(timed(start, outputs, ran))
    }

    fn dispatch_borrowed_async(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let config = self.over(config)?;
        Ok(Box::new(self.shared.begin(&self.compiled, begin(&config), inputs, &config, true)?))
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        let config = self.over(config)?;
        match self.shared.info.capabilities.host_memory {
            true => self.shared.one_by_one(&self.compiled, begin(&config), batches, &config),
            false => self.shared.batch(&self.compiled, begin(&config), batches, &config),
        }
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        fill_batch(outputs, &self.dispatch_borrowed_batched(batches, config)?);
        Ok(())
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        let config = self.over(config)?;
        let mut outputs = Vec::new();
        self.shared.dispatch_resident(&self.compiled, begin(&config), inputs, &config, &mut outputs)?;
        Ok(outputs)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let mut results = self.dispatch_persistent_handles(inputs, config)?;
        exchange(outputs, &mut results);
        Ok(())
    }
}
