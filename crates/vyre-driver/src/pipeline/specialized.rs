//! A pipeline that was compiled with values for constants. These are in its code, so its backend knows nothing of them; a call may
//! repeat them, and one that says others is refused.

use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, other_than_compiled, private,
};
use crate::specialization::SpecMap;
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct Specialized {
    pub inner: Arc<dyn CompiledPipeline>,
    pub values: SpecMap,
}

impl Specialized {
    /// The config of a call without what is in the code already.
    fn config<'a>(&self, call: &'a DispatchConfig) -> Result<Cow<'a, DispatchConfig>, BackendError> {
        if call.specialization.is_empty() {
            return Ok(Cow::Borrowed(call));
        }
        if call.specialization != self.values {
            return Err(other_than_compiled("specialization"));
        }
        Ok(Cow::Owned(DispatchConfig { specialization: SpecMap::new(), ..call.clone() }))
    }
}

impl private::Sealed for Specialized {}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl CompiledPipeline for Specialized {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.inner.dispatch(inputs, &*self.config(config)?)
    }

    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.inner.dispatch_borrowed(inputs, &*self.config(config)?)
    }

    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.inner.dispatch_borrowed_into(inputs, &*self.config(config)?, outputs)
    }

    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        self.inner.dispatch_borrowed_timed(inputs, &*self.config(config)?)
    }

    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        self.inner.dispatch_borrowed_batched(batches, &*self.config(config)?)
    }

    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        self.inner.dispatch_borrowed_batched_into(batches, &*self.config(config)?, outputs)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        self.inner.dispatch_persistent_handles(inputs, &*self.config(config)?)
    }

    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.inner.dispatch_persistent_handles_into(inputs, &*self.config(config)?, outputs)
    }
}
