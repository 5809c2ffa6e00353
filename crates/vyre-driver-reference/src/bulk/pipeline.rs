//! What a caller holds: a program made ready, with what it was compiled for.

use super::compiled::Compiled;
use std::sync::Arc;
use std::time::Instant;
use vyre_driver::backend::private::Sealed;
use vyre_driver::{BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource};

pub(super) struct Pipeline {
    pub compiled: Arc<Compiled>,
    /// What holds where a call says nothing.
    pub config: DispatchConfig,
}

impl Sealed for Pipeline {}

impl CompiledPipeline for Pipeline {
    fn id(&self) -> &str {
        self.compiled.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        self.dispatch_borrowed(&inputs, config)
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.compiled.dispatch(Instant::now(), inputs, &*config.over(&self.config)?)
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.compiled.dispatch_into(Instant::now(), inputs, &*config.over(&self.config)?, outputs)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        let mut outputs = Vec::new();
        self.dispatch_persistent_handles_into(inputs, config, &mut outputs)?;
        Ok(outputs)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.compiled.dispatch_resident_into(Instant::now(), inputs, &*config.over(&self.config)?, outputs)
    }
}
