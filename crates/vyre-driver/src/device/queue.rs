//! Submissions of a device in order, and what becomes of each: for [`HostDevice`](super::HostDevice), and for every device that has a thread of
//! the host wait for what it was given.
//!
//! One thread runs them. It is started with the first that needs it and ends with the device, after the last. One that is quickly done
//! is done by whoever submits it, if nothing is in line: handing bytes to another thread takes longer than copying them. While it
//! is done it counts as running, so that those which come meanwhile stay behind it; if it would have to wait for memory, what is left
//! of it goes to the front of the line.
//!
//! **Locks.** Nobody holds the lock of the queue and that of a ticket at the same time, and no code of others runs under either: a waker
//! may ask the queue and the submission it belongs to.

use super::{Deadline, DeviceError, Done, Step, Submission, WaitError};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

// The tests of this file run it under schedules of shuttle's; `tests/device.rs` runs it on threads.
#[cfg(test)]
use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(test))]
use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// A submission of so many bytes, and without dispatches, is done at once.
const SMALL: u64 = 64 << 10;

/// Submissions in order, of one generation of the device.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Set when the device is left behind: for what runs outside the queue.
    left: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    running: Option<Arc<Ticket>>,
    has_thread: bool,
    /// The device is dropped: the thread ends when nothing waits.
    closed: bool,
    /// The device was left behind.
    lost: bool,
    submitted: u64,
    ended: u64,
    /// Threads that wait for the end of something.
    draining: u32,
}

/// Steps, and how far they have come.
pub struct Job {
    /// What its submission knows of it.
    pub ticket: Arc<Ticket>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The first that has not run.
    pub next: usize,
    /// What those before it have given.
    pub done: Done,
}

/// What running a job gave; `None` if it may not wait and would have to.
pub type Attempt = Option<Result<Done, DeviceError>>;

pub(super) fn lost() -> DeviceError {
    DeviceError::Lost { reason: "it was opened again".into() }
}

impl Job {
    /// Steps that nobody has begun.
    #[must_use]
    pub fn new(steps: Vec<Step>, deadline: Deadline) -> Job {
        Job { ticket: Arc::new(Ticket::new(deadline)), steps, next: 0, done: Done::default() }
    }

    /// For whoever waits for it.
    #[must_use]
    pub fn submission(&self) -> Box<dyn Submission> {
        Box::new(HostSubmission { ticket: self.ticket.clone() })
    }

    fn is_small(&self) -> bool {
        let mut bytes = 0u64;
        self.steps.iter().all(|step| {
            let of_step = match step {
                Step::Dispatch { .. } => return false,
                Step::Write { to, .. } => to.len(),
                Step::Copy { from, .. } => from.len(),
                Step::Read(span) => span.len(),
            };
            bytes = bytes.saturating_add(of_step);
            bytes <= SMALL
        })
    }

    /// Runs it, if it is still wanted. The device may panic.
    fn attempt(&mut self, run: impl FnOnce(&mut Job) -> Attempt) -> Attempt {
        match self.ticket.begin() {
            true => catch_unwind(AssertUnwindSafe(|| run(self))).unwrap_or_else(|panic| Some(Err(panicked(&*panic)))),
            false => Some(Err(DeviceError::Cancelled)),
        }
    }
}

/// What a panic says, as an error.
fn panicked(panic: &(dyn std::any::Any + Send)) -> DeviceError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string()).or_else(|| panic.downcast_ref::<String>().cloned());
    DeviceError::Other(format!("the device panicked: {}", text.unwrap_or_default()))
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Set when the device is left behind.
    #[must_use]
    pub fn left(&self) -> Arc<AtomicBool> {
        self.left.clone()
    }

    /// Adds a job. `run` runs one, and waits only if it is told that it may.
    ///
    /// # Errors
    ///
    /// If the device was left behind, or there is no thread.
    pub fn push<F>(self: &Arc<Self>, mut job: Job, run: F) -> Result<(), DeviceError>
    where
        F: Fn(&mut Job, bool) -> Attempt + Send + 'static,
    {
        let mut state = self.state();
        if state.lost {
            return Err(lost());
        }
        if state.waiting.is_empty() && state.running.is_none() && job.is_small() {
            state.submitted += 1;
            state.running = Some(job.ticket.clone());
            drop(state);
            if let Some(result) = job.attempt(|job| run(job, false)) {
                self.end(job, result);
                return Ok(());
            }
            state = self.state();
            state.running = None;
            if state.lost {
                // Whoever has left the device behind has ended it.
                state.ended += 1;
                return Ok(());
            }
            state.waiting.push_front(job);
            if let Err(error) = self.start(&mut state, run) {
                let job = state.waiting.pop_front();
                drop(state);
                job.into_iter().for_each(|job| self.end(job, Err(error.clone())));
                return Ok(());
            }
        } else {
            self.start(&mut state, run)?;
            state.submitted += 1;
            state.waiting.push_back(job);
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Starts the thread, if there is none.
    fn start<F>(self: &Arc<Self>, state: &mut State, run: F) -> Result<(), DeviceError>
    where
        F: Fn(&mut Job, bool) -> Attempt + Send + 'static,
    {
        if !state.has_thread {
            let queue = self.clone();
            let thread = thread::Builder::new().name("vyre-queue".into()).spawn(move || queue.work(run));
            thread.map_err(|error| DeviceError::Other(format!("there is no thread for submissions: {error}")))?;
            state.has_thread = true;
        }
        Ok(())
    }

    fn work(&self, run: impl Fn(&mut Job, bool) -> Attempt) {
        let mut state = self.state();
        loop {
            let job = if state.running.is_none() { state.waiting.pop_front() } else { None };
            if let Some(mut job) = job {
                state.running = Some(job.ticket.clone());
                drop(state);
                let result = job.attempt(|job| run(job, true));
                // One that may wait ends.
                self.end(job, result.unwrap_or(Err(DeviceError::Cancelled)));
                state = self.state();
            } else if state.lost || (state.closed && state.waiting.is_empty()) {
                return;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// The job that runs has ended.
    fn end(&self, job: Job, result: Result<Done, DeviceError>) {
        let Job { ticket, steps, next: _, done: _ } = job;
        // Memory that only the steps had is free before anybody hears that they have ended, and that is before anything else begins.
        drop(steps);
        ticket.end(result);
        let mut state = self.state();
        state.running = None;
        state.ended += 1;
        let somebody_waits = !state.waiting.is_empty() || state.draining > 0;
        drop(state);
        if somebody_waits {
            self.changed.notify_all();
        }
    }

    /// Waits until everything has ended that was submitted before.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Timeout`] at the deadline, [`DeviceError::Lost`] if the device is left behind.
    pub fn drain(&self, deadline: Deadline) -> Result<(), DeviceError> {
        let mut state = self.state();
        let submitted = state.submitted;
        while state.ended < submitted {
            if state.lost {
                return Err(lost());
            }
            state.draining += 1;
            state = match deadline.0 {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => match at.checked_duration_since(Instant::now()) {
                    None => {
                        state.draining -= 1;
                        return Err(DeviceError::Timeout);
                    }
                    Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                },
            };
            state.draining -= 1;
        }
        Ok(())
    }

    /// The thread ends when nothing waits.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Ends everything as lost and waits for nothing.
    pub fn lose(&self) {
        let mut state = self.state();
        state.lost = true;
        let waiting = std::mem::take(&mut state.waiting);
        let running = state.running.take();
        drop(state);
        self.left.store(true, Relaxed);
        self.changed.notify_all();
        for ticket in running.into_iter().chain(waiting.iter().map(|job| job.ticket.clone())) {
            // In this order: what runs must not end as cancelled before.
            ticket.end(Err(lost()));
            ticket.cancelled.store(true, Relaxed);
        }
    }
}

/// What a submission and the queue know of each other.
pub struct Ticket {
    /// When to give up.
    pub deadline: Deadline,
    /// Set if nobody wants it any more.
    pub cancelled: AtomicBool,
    state: Mutex<TicketState>,
    ended: Condvar,
}

#[derive(Default)]
struct TicketState {
    begun: bool,
    outcome: Option<Result<Done, DeviceError>>,
    taken: bool,
    waker: Option<Waker>,
    awaited: bool,
}

impl Ticket {
    fn new(deadline: Deadline) -> Ticket {
        Ticket { deadline, cancelled: AtomicBool::new(false), state: Mutex::default(), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, TicketState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its turn is still wanted.
    fn begin(&self) -> bool {
        let mut state = self.state();
        state.begun = true;
        state.outcome.is_none() && !state.taken
    }

    /// Whether somebody still wants it, in time.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Cancelled`] and [`DeviceError::Timeout`].
    pub fn still_wanted(&self) -> Result<(), DeviceError> {
        match () {
            () if self.cancelled.load(Relaxed) => Err(DeviceError::Cancelled),
            () if self.deadline.is_over() => Err(DeviceError::Timeout),
            () => Ok(()),
        }
    }

    /// The first end counts.
    fn end(&self, result: Result<Done, DeviceError>) {
        let mut state = self.state();
        if state.outcome.is_some() || state.taken {
            return;
        }
        state.outcome = Some(result);
        let (waker, awaited) = (state.waker.take(), state.awaited);
        drop(state);
        if awaited {
            self.ended.notify_all();
        }
        if let Some(waker) = waker {
            // The thread of the queue is everybody's.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
    }

    /// The end, if it has come; one that still waits in line may run out of time there.
    fn take(&self, state: &mut TicketState) -> Option<Result<Done, DeviceError>> {
        if state.taken {
            return Some(Err(DeviceError::Taken));
        }
        if state.outcome.is_none() && !state.begun && self.deadline.is_over() {
            self.cancelled.store(true, Relaxed);
            state.outcome = Some(Err(DeviceError::Timeout));
        }
        let outcome = state.outcome.take()?;
        state.taken = true;
        Some(outcome)
    }
}

struct HostSubmission {
    ticket: Arc<Ticket>,
}

impl Submission for HostSubmission {
    fn poll(&mut self, waker: Option<&Waker>) -> Poll<Result<Done, DeviceError>> {
        let waker = waker.cloned();
        let mut state = self.ticket.state();
        let outcome = self.ticket.take(&mut state);
        let waker = if outcome.is_some() { None } else { waker };
        let replaced = std::mem::replace(&mut state.waker, waker);
        drop(state);
        drop(replaced);
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    fn wait(&mut self, deadline: Deadline) -> Result<Done, WaitError> {
        let mut state = self.ticket.state();
        loop {
            if let Some(outcome) = self.ticket.take(&mut state) {
                let waker = state.waker.take();
                drop(state);
                drop(waker);
                return outcome.map_err(WaitError::Failed);
            }
            if deadline.is_over() {
                return Err(WaitError::Pending);
            }
            state.awaited = true;
            // Its own deadline is the queue's to keep once it has begun.
            let own = self.ticket.deadline.0.filter(|_| !state.begun);
            state = match deadline.0.into_iter().chain(own).min() {
                None => self.ticket.ended.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    self.ticket.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn cancel(&mut self) {
        self.ticket.cancelled.store(true, Relaxed);
        let begun = self.ticket.state().begun;
        if !begun {
            self.ticket.end(Err(DeviceError::Cancelled));
        }
    }
}

impl Drop for HostSubmission {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    /// Runs the same under many schedules.
    fn model(run: impl Fn() + Send + Sync + Clone + 'static) {
        shuttle::check_random(run.clone(), 2_000);
        shuttle::check_pct(run, 2_000, 3);
    }

    /// What ran, in order, as numbers that stand in the deadlines' place: jobs have no other name.
    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<usize>>>);

    /// A queue of jobs that log themselves. Those that may not wait do so only where `is_free`.
    fn push(queue: &Arc<Queue>, log: &Log, name: usize, is_free: bool) -> Result<Box<dyn Submission>, DeviceError> {
        let job = Job::new(Vec::new(), Deadline::NONE);
        let submission = job.submission();
        let log = log.clone();
        // Every job brings its own way to run: the thread keeps that of the first, so that what runs says so in `done`.
        let mut job = job;
        job.done.reads.push(vec![name as u8]);
        queue.push(job, move |job, may_wait| {
            thread::yield_now();
            if !may_wait && !is_free {
                return None;
            }
            if let Err(error) = job.ticket.still_wanted() {
                return Some(Err(error));
            }
            log.0.lock().unwrap().push(usize::from(job.done.reads[0][0]));
            Some(Ok(std::mem::take(&mut job.done)))
        })?;
        Ok(submission)
    }

    #[test]
    fn one_threads_submissions_run_in_order_whoever_runs_them_and_drain_sees_all() {
        model(|| {
            let (queue, log) = (Arc::<Queue>::default(), Log::default());
            let threads: Vec<_> = (0..2)
                .map(|thread| {
                    let (queue, log) = (queue.clone(), log.clone());
                    thread::spawn(move || {
                        let begun: Vec<_> = (0..3).map(|n| push(&queue, &log, 10 * thread + n, n % 2 == 0).unwrap()).collect();
                        queue.drain(Deadline::NONE).unwrap();
                        let ran = log.0.lock().unwrap().clone();
                        let mine: Vec<usize> = ran.into_iter().filter(|name| name / 10 == thread).collect();
                        assert_eq!(mine, [10 * thread, 10 * thread + 1, 10 * thread + 2]);
                        for (n, mut one) in begun.into_iter().enumerate() {
                            assert_eq!(one.wait(Deadline::NONE).unwrap().reads, [[(10 * thread + n) as u8]]);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            queue.close();
        });
    }

    #[test]
    fn whoever_waits_hears_of_the_end_whatever_cancels_or_loses_it() {
        model(|| {
            let (queue, log) = (Arc::<Queue>::default(), Log::default());
            let mut first = push(&queue, &log, 0, false).unwrap();
            let mut second = push(&queue, &log, 1, false).unwrap();
            let third = push(&queue, &log, 2, false).unwrap();
            let losing = thread::spawn({
                let queue = queue.clone();
                move || queue.lose()
            });
            let dropping = thread::spawn(move || drop(third));
            let waiting = thread::spawn(move || first.wait(Deadline::NONE));
            second.cancel();
            let is_end = |result: &Result<Done, WaitError>| {
                matches!(result, Ok(_) | Err(WaitError::Failed(DeviceError::Lost { .. } | DeviceError::Cancelled)))
            };
            let result = second.wait(Deadline::NONE);
            assert!(is_end(&result), "{result:?}");
            let result = waiting.join().unwrap();
            assert!(is_end(&result) && result != Err(WaitError::Failed(DeviceError::Cancelled)), "{result:?}");
            losing.join().unwrap();
            dropping.join().unwrap();
            assert!(push(&queue, &log, 3, true).is_err(), "what is left behind takes nothing");
            let ran = log.0.lock().unwrap().clone();
            assert!(ran.is_sorted(), "{ran:?}");
        });
    }

    struct Count(AtomicU64);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_waker_is_called_exactly_once_if_the_poll_said_pending() {
        model(|| {
            let (queue, log) = (Arc::<Queue>::default(), Log::default());
            let mut one = push(&queue, &log, 0, false).unwrap();
            let count = Arc::new(Count(AtomicU64::new(0)));
            let pending = one.poll(Some(&Waker::from(count.clone()))).is_pending();
            queue.drain(Deadline::NONE).unwrap();
            assert_eq!(count.0.load(SeqCst), u64::from(pending));
            assert_eq!(one.poll(None).map(|result| result.is_ok()), Poll::Ready(pending));
            queue.close();
        });
    }
}
