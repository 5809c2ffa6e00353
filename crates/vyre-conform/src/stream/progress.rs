//! How far a run is.

use std::time::Duration;

/// How far a run is. Every number counts what is committed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StreamingProgress {
    /// Cases that were judged.
    pub tested: u64,
    /// Those that hold.
    pub passed: u64,
    /// Those that do not.
    pub failed: u64,
    /// Units that are committed.
    pub units: u64,
    /// The op of the last one.
    pub current_op: String,
    /// Since the run began or went on.
    pub elapsed: Duration,
}

/// Is told how far a run is.
pub trait ProgressSink: Send {
    /// A unit was committed.
    fn progress(&mut self, progress: &StreamingProgress);
}

/// A function as a sink.
pub struct FnProgress<F>(pub F);

impl<F: FnMut(&StreamingProgress) + Send> ProgressSink for FnProgress<F> {
    fn progress(&mut self, progress: &StreamingProgress) {
        (self.0)(progress);
    }
}
