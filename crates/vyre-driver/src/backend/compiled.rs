//! A program that was compiled once, to be run many times.

use super::{
    BackendError, DispatchConfig, OutputBuffers, PendingDispatch, ReadyPending, Resource, TimedDispatchResult, fill_batch,
    fill_outputs, nanoseconds,
};
use crate::observability::{total, total_borrowed, unattributed};
use std::time::Instant;

/// A compiled program. Methods mean what those of [`super::VyreBackend`] with the same name mean; the config of a call is laid over
/// the one it was compiled with by [`DispatchConfig::over`].
pub trait CompiledPipeline: Send + Sync {
    /// Tells it from other pipelines of the process.
    fn id(&self) -> &str;

    /// Runs it.
    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError>;

    /// Runs it on bytes that the caller keeps.
    fn dispatch_borrowed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let owned: Vec<Vec<u8>> = inputs.iter().map(|input| input.to_vec()).collect();
        unattributed().dispatch(config, total(inputs), || self.dispatch(&owned, config))
    }

    /// Runs it into the caller's buffers, whose memory is used again: for this call, or for the next if results change places with them.
    fn dispatch_borrowed_into(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        unattributed().dispatch_into(config, total(inputs), outputs, |outputs| {
            fill_outputs(outputs, &self.dispatch_borrowed(inputs, config)?);
            Ok(())
        })
    }

    /// Runs it and says how long it took.
    fn dispatch_borrowed_timed(&self, inputs: &[&[u8]], config: &DispatchConfig) -> Result<TimedDispatchResult, BackendError> {
        unattributed().dispatch(config, total(inputs), || {
            let start = Instant::now();
            let outputs = self.dispatch_borrowed(inputs, config)?;
            Ok(TimedDispatchResult { outputs, wall_ns: nanoseconds(start), device_ns: None, ran: None })
        })
    }

    /// Begins a dispatch on bytes that the caller keeps; they are read before this returns.
    fn dispatch_borrowed_async(
        &self,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        unattributed().begin_dispatch(config, total(inputs), || {
            Ok(Box::new(ReadyPending { outputs: self.dispatch_borrowed(inputs, config)? }))
        })
    }

    /// Runs it on several inputs, in order; the first failure ends it.
    fn dispatch_borrowed_batched(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        let one = |inputs: &&[&[u8]]| unattributed().dispatch(config, total(inputs), || self.dispatch_borrowed(inputs, config));
        batches.iter().map(one).collect()
    }

    /// Runs it on several inputs into the caller's buffers. After a failure they are as they were before.
    fn dispatch_borrowed_batched_into(
        &self,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
        outputs: &mut Vec<OutputBuffers>,
    ) -> Result<(), BackendError> {
        unattributed().dispatch_batch_into(config, batches, outputs, |outputs| {
            fill_batch(outputs, &self.dispatch_borrowed_batched(batches, config)?);
            Ok(())
        })
    }

    /// Runs it on resources, one per buffer of the interface.
    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        let _ = (inputs, config);
        Err(BackendError::UnsupportedFeature { feature: "resident dispatch of pipelines".into(), backend: self.id().into() })
    }

    /// Runs it on resources, into the caller's buffers.
    fn dispatch_persistent_handles_into(
        &self,
        inputs: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        unattributed().dispatch_into(config, total_borrowed(inputs), outputs, |outputs| {
            fill_outputs(outputs, &self.dispatch_persistent_handles(inputs, config)?);
            Ok(())
        })
    }
}
