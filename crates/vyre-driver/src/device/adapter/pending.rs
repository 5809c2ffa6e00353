//! Dispatches that were begun.

use super::compiled::Compiled;
use super::resident::complete;
use super::{Shared, deadline};
use crate::backend::{BackendError, DispatchConfig, OutputBuffers, PendingDispatch};
use crate::device::{Deadline, DeviceError, Done, Memory, Ran, Step, Submission, WaitError};
use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use vyre_foundation::ir::Access;

/// A submission as callers of backends hold it. Dropping it cancels it.
pub(super) struct Pending {
    shared: Arc<Shared>,
    /// What `is_ready` has seen is kept for `wait`.
    state: RefCell<State>,
    /// By read: how many bytes were asked for.
    lengths: Vec<u64>,
    /// By dispatch: whether its code was there.
    hits: Vec<bool>,
    limit: Option<Duration>,
}

struct State {
    submission: Box<dyn Submission>,
    outcome: Option<Result<Done, DeviceError>>,
}

impl Pending {
    pub fn new(
        shared: Arc<Shared>,
        submission: Box<dyn Submission>,
        lengths: Vec<u64>,
        hits: Vec<bool>,
        limit: Option<Duration>,
    ) -> Pending {
        Pending { shared, state: RefCell::new(State { submission, outcome: None }), lengths, hits, limit }
    }

    fn finish(&self, outcome: Result<Done, DeviceError>) -> Result<(OutputBuffers, Vec<Ran>), BackendError> {
        let config = DispatchConfig { timeout: self.limit, ..DispatchConfig::default() };
        let Done { mut ran, reads } = outcome.map_err(|error| self.shared.failure(error, &config))?;
        ran.iter_mut().zip(&self.hits).for_each(|(ran, hit)| ran.cache_hit = *hit);
        Ok((complete(&self.lengths, reads)?, ran))
    }
}

impl State {
    fn poll(&mut self, waker: Option<&Waker>) -> bool {
        if self.outcome.is_none()
            && let Poll::Ready(outcome) = self.submission.poll(waker)
        {
            self.outcome = Some(outcome);
        }
        self.outcome.is_some()
    }
}

impl PendingDispatch for Pending {
    fn is_ready(&self) -> bool {
        self.state.borrow_mut().poll(None)
    }

    fn wake_when_ready(&self, waker: &Waker) -> bool {
        self.state.borrow_mut().poll(Some(waker))
    }

    fn wait(self: Box<Self>) -> Result<OutputBuffers, BackendError> {
        Ok(self.wait_ran()?.0)
    }

    fn wait_ran(self: Box<Self>) -> Result<(OutputBuffers, Vec<Ran>), BackendError> {
        let outcome = {
            let mut state = self.state.borrow_mut();
            match state.outcome.take() {
                Some(outcome) => outcome,
                None => state.submission.wait(Deadline::NONE).map_err(|error| match error {
                    WaitError::Failed(error) => error,
                    // Without a deadline nobody is told this.
                    WaitError::Pending => DeviceError::Timeout,
                }),
            }
        };
        self.finish(outcome)
    }
}

impl Shared {
    /// Begins a dispatch on bytes that are read before this returns.
    pub fn begin(
        self: &Arc<Self>,
        compiled: &Compiled,
        start: Instant,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        cache_hit: bool,
    ) -> Result<Pending, BackendError> {
        self.alive()?;
        let deadline = deadline(start, config)?;
        let mut steps = Vec::new();
        let lengths = self.steps_of(compiled, inputs, config, &mut steps)?;
        let submission = self.device.submit(steps, deadline).map_err(|error| self.failure(error, config))?;
        Ok(Pending::new(self.clone(), submission, lengths, vec![cache_hit], config.timeout))
    }

    /// The steps of one dispatch on new memory; gives the lengths of its outputs.
    fn steps_of(
        &self,
        compiled: &Compiled,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        steps: &mut Vec<Step>,
    ) -> Result<Vec<u64>, BackendError> {
        let shape = compiled.plan(inputs, config)?;
        let interface = compiled.program().interface();
        let failure = |error| self.failure(error, config);
        let mut inputs = inputs.iter();
        let mut spans = Vec::with_capacity(interface.bound.len());
        let mut outputs: Vec<Memory> = Vec::with_capacity(interface.outputs.len());
        for i in &interface.bound {
            let memory = self.device.allocate(shape.launch.bytes[*i]).map_err(failure)?;
            let access = compiled.kernel().buffers[*i].access;
            if access.is_input()
                && let Some(bytes) = inputs.next()
            {
                steps.push(Step::Write { to: memory.whole(), bytes: Arc::from(*bytes) });
            }
            spans.push(memory.whole());
            match access {
                Access::ReadWrite | Access::Output => outputs.push(memory),
                Access::Read | Access::Uniform | Access::Workgroup => {}
            }
        }
        let code = compiled.code(self).map_err(failure)?;
        let groups = 0..u64::from(shape.launch.groups());
        // New memory is zero.
        steps.push(Step::Dispatch { code, launch: shape.launch.clone(), groups, zero_outputs: false, bindings: spans });
        steps.extend(outputs.iter().map(|memory| Step::Read(memory.whole())));
        Ok(outputs.iter().map(Memory::bytes).collect())
    }

    /// Runs on several inputs, as one submission; gives the outputs of all of them.
    pub fn batch(
        self: &Arc<Self>,
        compiled: &Compiled,
        start: Instant,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        self.alive()?;
        let deadline = deadline(start, config)?;
        let mut steps = Vec::new();
        let mut lengths = Vec::new();
        for inputs in batches {
            lengths.append(&mut self.steps_of(compiled, inputs, config, &mut steps)?);
        }
        let done = self.submit_and_wait(steps, deadline, config)?;
        let mut reads = complete(&lengths, done.reads)?.into_iter();
        let each = compiled.program().interface().outputs.len();
        Ok(batches.iter().map(|_| reads.by_ref().take(each).collect()).collect())
    }
}
