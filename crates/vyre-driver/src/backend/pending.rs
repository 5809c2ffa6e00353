//! A dispatch that was begun.

use super::{BackendError, OutputBuffers};

/// A dispatch that was begun and can be waited for.
pub trait PendingDispatch: Send {
    /// Whether [`PendingDispatch::wait`] would return at once.
    fn is_ready(&self) -> bool;

    /// Waits for the outputs.
    fn wait(self: Box<Self>) -> Result<OutputBuffers, BackendError>;
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
