//! A dispatch that runs: a future that needs no runtime.

use super::Results;
use super::results::Expected;
use crate::backend::{BackendError, PendingDispatch};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A dispatch that was begun. It is a future of the results, for any executor; [`Running::wait`] waits for them without one. Dropping it
/// cancels what the device has not begun.
#[must_use = "a dispatch that nobody waits for is cancelled"]
pub struct Running {
    backend: &'static str,
    /// `None` once it gave its results.
    pending: Option<Box<dyn PendingDispatch>>,
    expected: Vec<Expected>,
}

impl Running {
    pub(super) fn new(backend: &'static str, pending: Box<dyn PendingDispatch>, expected: Vec<Expected>) -> Self {
        Running { backend, pending: Some(pending), expected }
    }

    /// Whether the results are there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.pending.as_ref().is_none_or(|pending| pending.is_ready())
    }

    /// Waits for the results.
    ///
    /// # Errors
    ///
    /// What the dispatch failed with.
    pub fn wait(mut self) -> Result<Results, BackendError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<Results, BackendError> {
        let taken = || {
            BackendError::new(
                "the results of this dispatch were taken before. Fix: do not poll a future again after it was ready",
            )
        };
        Results::new(self.backend, &self.expected, self.pending.take().ok_or_else(taken)?.wait()?)
    }
}

impl Future for Running {
    type Output = Result<Results, BackendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.pending {
            Some(pending) if !pending.wake_when_ready(context.waker()) => Poll::Pending,
            Some(_) | None => Poll::Ready(self.finish()),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("backend", &self.backend).field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}
