//! A dispatch that was begun.

use super::{BackendError, OutputBuffers};
use crate::device::Ran;
use std::task::Waker;

/// A dispatch that was begun and can be waited for.
pub trait PendingDispatch: Send {
    /// Whether [`PendingDispatch::wait`] would return at once.
    fn is_ready(&self) -> bool;

    /// The same, and the waker is called once when that changes. A later call replaces the waker. What has no asynchrony is ready.
    fn wake_when_ready(&self, waker: &Waker) -> bool {
        if !self.is_ready() {
            // Nobody would call it later.
            waker.wake_by_ref();
        }
        self.is_ready()
    }

    /// Waits for the outputs.
    fn wait(self: Box<Self>) -> Result<OutputBuffers, BackendError>;

    /// Waits for the outputs, and gives what ran: one per dispatch, where the backend says it.
    fn wait_ran(self: Box<Self>) -> Result<(OutputBuffers, Vec<Ran>), BackendError> {
        Ok((self.wait()?, Vec::new()))
    }
}

/// A dispatch that ended before it was asked for: what backends without asynchrony give.
pub struct ReadyPending {
    /// What it gave.
    pub outputs: OutputBuffers,
}

impl PendingDispatch for ReadyPending {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<OutputBuffers, BackendError> {
        Ok(self.outputs)
    }
}
