//! The pipeline of a backend that compiles nothing: it hands every dispatch on.

use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, VyreBackend, fill_outputs,
    private,
};
use std::sync::Arc;
use vyre_foundation::ir::Program;

pub(super) struct Passthrough {
    id: String,
    backend: Arc<dyn VyreBackend>,
    /// Its constants are replaced.
    program: Program,
    /// Says nothing about constants.
    config: DispatchConfig,
}

impl Passthrough {
    pub fn new(backend: Arc<dyn VyreBackend>, program: Program, config: DispatchConfig, key: String) -> Self {
        Passthrough { id: format!("{}:{key}", backend.id()), backend, program, config }
    }
}

impl private::Sealed for Passthrough {}

impl CompiledPipeline for Passthrough {
    fn id(&self) -> &str {
        &self.id
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.backend.dispatch(&self.program, inputs, &*config.over(&self.config)?)
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.backend.dispatch_borrowed(&self.program, inputs, &*config.over(&self.config)?)
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.backend.dispatch_borrowed_into(&self.program, inputs, &*config.over(&self.config)?, outputs)
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        self.backend.dispatch_borrowed_timed(&self.program, inputs, &*config.over(&self.config)?)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        Ok(self.backend.dispatch_resident_timed(&self.program, inputs, &*config.over(&self.config)?)?.outputs)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let results = self.dispatch_persistent_handles(inputs, config)?;
        fill_outputs(outputs, &results);
        Ok(())
    }
}
