//! Dispatches that were begun.

use super::compiled::{Compiled, Shape};
use super::resident::complete;
use super::{Shared, in_time};
use crate::backend::{BackendError, DispatchConfig, OutputBuffers, PendingDispatch};
use crate::device::{Deadline, DeviceError, Done, Generation, Memory, Ran, Step, Submission, WaitError};
use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use vyre_foundation::ir::Access;

/// A submission as callers of backends hold it. Dropping it cancels it.
pub(super) struct Pending {
    shared: Arc<Shared>,
    /// What `is_ready` has seen is kept for `wait`.
    state: RefCell<State>,
    asked: Asked,
    /// In which it was begun.
    generation: Generation,
    limit: Option<Duration>,
}

/// What a submission is to give.
#[derive(Default)]
pub(super) struct Asked {
    /// By read: how many bytes.
    pub lengths: Vec<u64>,
    /// By dispatch: of how many steps it is, and whether its code was there.
    pub dispatches: Vec<(usize, bool)>,
}

struct State {
    /// `None` if it was over before anything was begun.
    submission: Option<Box<dyn Submission>>,
    outcome: Option<Result<Done, DeviceError>>,
}

impl Pending {
    fn finish(&self, outcome: Result<Done, DeviceError>) -> Result<(OutputBuffers, Vec<Ran>), BackendError> {
        let config = DispatchConfig { timeout: self.limit, ..DispatchConfig::default() };
        let Done { ran, reads } = outcome.map_err(|error| self.shared.failure(error, self.generation, &config))?;
        let mut ran = ran.into_iter();
        let whole = self.asked.dispatches.iter().filter_map(|(steps, was_there)| {
            let first = ran.next()?;
            let whole = ran.by_ref().take(steps - 1).fold(first, |mut whole, next| {
                whole.extend(next);
                whole
            });
            Some(whole.found(*was_there))
        });
        let whole = whole.collect();
        Ok((complete(&self.asked.lengths, reads)?, whole))
    }
}

impl State {
    fn poll(&mut self, waker: Option<&Waker>) -> bool {
        if self.outcome.is_none()
            && let Some(submission) = &mut self.submission
            && let Poll::Ready(outcome) = submission.poll(waker)
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
            match (state.outcome.take(), &mut state.submission) {
                (Some(outcome), _) => outcome,
                (None, Some(submission)) => submission.wait(Deadline::NONE).map_err(|error| match error {
                    WaitError::Failed(error) => error,
                    // Without a deadline nobody is told this.
                    WaitError::Pending => DeviceError::Timeout,
                }),
                (None, None) => Err(DeviceError::Taken),
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
        deadline: Deadline,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        cache_hit: bool,
    ) -> Result<Pending, BackendError> {
        let generation = self.alive()?;
        in_time(deadline, config)?;
        let shape = compiled.plan(self, inputs, config)?;
        let (mut steps, mut asked) = (Vec::new(), Asked::default());
        if let Err(DeviceError::Unsupported { .. }) = self.pieces(compiled, &shape.launch, deadline) {
            // What cannot be submitted is waited for here.
            let mut outputs = Vec::new();
            let ran = self.dispatch(compiled, deadline, inputs, config, &mut outputs)?;
            asked.lengths = outputs.iter().map(|output| output.len() as u64).collect();
            asked.dispatches.push((1, cache_hit));
            let outcome = Some(Ok(Done { ran: vec![ran], reads: outputs }));
            let state = RefCell::new(State { submission: None, outcome });
            return Ok(Pending { shared: self.clone(), state, asked, generation, limit: config.timeout });
        }
        self.steps_of(compiled, &shape, (inputs, deadline), cache_hit, &mut steps, &mut asked)
            .map_err(|error| self.failure(error, generation, config))?;
        self.pending(steps, asked, generation, deadline, config)
    }

    /// Begins steps.
    pub fn pending(
        self: &Arc<Self>,
        steps: Vec<Step>,
        asked: Asked,
        generation: Generation,
        deadline: Deadline,
        config: &DispatchConfig,
    ) -> Result<Pending, BackendError> {
        let submission = self.device.submit(steps, deadline).map_err(|error| self.failure(error, generation, config))?;
        let state = RefCell::new(State { submission: Some(submission), outcome: None });
        Ok(Pending { shared: self.clone(), state, asked, generation, limit: config.timeout })
    }

    /// The steps of one dispatch on new memory.
    fn steps_of(
        &self,
        compiled: &Compiled,
        shape: &Shape,
        (inputs, deadline): (&[&[u8]], Deadline),
        cache_hit: bool,
        steps: &mut Vec<Step>,
        asked: &mut Asked,
    ) -> Result<(), DeviceError> {
        let interface = compiled.program().interface();
        let pieces = self.pieces(compiled, &shape.launch, deadline)?;
        let mut inputs = inputs.iter();
        let mut spans = Vec::with_capacity(interface.bound.len());
        let mut outputs: Vec<Memory> = Vec::with_capacity(interface.outputs.len());
        for i in &interface.bound {
            let memory = self.device.allocate(shape.launch.bytes[*i])?;
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
        let (code, was_there) = compiled.code(self)?;
        asked.dispatches.push((pieces.len(), cache_hit && was_there));
        steps.extend(pieces.into_iter().map(|groups| {
            let (code, launch, bindings) = (code.clone(), shape.launch.clone(), spans.clone());
            // New memory is zero.
            Step::Dispatch { code, launch, groups, zero_outputs: false, bindings }
        }));
        asked.lengths.extend(outputs.iter().map(Memory::bytes));
        steps.extend(outputs.into_iter().map(|memory| Step::Read(memory.whole())));
        Ok(())
    }

    /// Runs on several inputs, as one submission; gives the outputs of all of them.
    pub fn batch(
        self: &Arc<Self>,
        compiled: &Compiled,
        deadline: Deadline,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        let generation = self.alive()?;
        in_time(deadline, config)?;
        let (mut steps, mut asked) = (Vec::new(), Asked::default());
        for inputs in batches {
            let shape = compiled.plan(self, inputs, config)?;
            match self.steps_of(compiled, &shape, (inputs, deadline), true, &mut steps, &mut asked) {
                Ok(()) => {}
                Err(DeviceError::Unsupported { .. }) => return self.one_by_one(compiled, deadline, batches, config),
                Err(error) => return Err(self.failure(error, generation, config)),
            }
        }
        let done = self.submit_and_wait((), steps, deadline, config)?;
        let mut reads = complete(&asked.lengths, done.reads)?.into_iter();
        let each = compiled.program().interface().outputs.len();
        Ok(batches.iter().map(|_| reads.by_ref().take(each).collect()).collect())
    }

    /// Runs on several inputs, one after the other.
    pub fn one_by_one(
        &self,
        compiled: &Compiled,
        deadline: Deadline,
        batches: &[&[&[u8]]],
        config: &DispatchConfig,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        let one = |inputs: &&[&[u8]]| {
            let mut outputs = Vec::new();
            self.dispatch(compiled, deadline, inputs, config, &mut outputs)?;
            Ok(outputs)
        };
        batches.iter().map(one).collect()
    }
}
