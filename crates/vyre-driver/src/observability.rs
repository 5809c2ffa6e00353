//! Counters of dispatches, per backend and for the whole process.
//!
//! **What counts.** A dispatch that gave outputs counts once, for the backend it ran on: through a backend of the registry, a pipeline
//! of `compile*`, a typed `Dispatch`, the functions of `grid_sync`, and the default methods of the traits. These build on each other:
//! while a thread is inside a dispatch on a backend, further ones on the same backend are parts of it and do not count, so that a
//! program with grid barriers is one dispatch however many segments it has. A batch counts each of its dispatches, and so does a
//! sequence on resident data, whose uploads are the bytes that came in and whose downloads are what went out. What was only begun
//! counts when its outputs are there, and what failed never.
//!
//! What a backend's own code does is seen only from outside: a method that it writes itself, called on it directly and not through
//! one of the above, does not count unless it calls [`Counters::record`], which is heard only there. Pipelines that do not say whose
//! they are count for nobody in particular, unless what they call counts.
//!
//! **Spans.** What counts as one dispatch is in one span `dispatch` of `tracing`, with the backend and the label of the config; each part
//! of a dispatch that is split at its grid barriers is in a span `segment` inside it, and a compilation in a span `compile`. All are
//! of level debug. A dispatch that was only begun has left its span when its outputs are there.
//!
//! **Cost.** A few nanoseconds and never a lock: a thread adds to counters that no other thread writes, as long as there are not more
//! than 32 that count. A snapshot sums them; what is counted at the same moment may be in it or not.

use crate::backend::{BackendError, DispatchConfig, OutputBuffers, PendingDispatch, ResidentStep, Resource, TimedDispatchResult};
use crate::device::Ran;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use tracing::span::EnteredSpan;

/// What was dispatched so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DispatchTelemetry {
    /// Dispatches that gave outputs.
    pub launches: u64,
    /// Bytes of their inputs, without resident data.
    pub input_bytes: u64,
    /// Bytes of their outputs, without resident data.
    pub output_bytes: u64,
    /// Output buffers they filled.
    pub output_slots: u64,
    /// Those of them that the caller had brought.
    pub output_slots_reused: u64,
}

/// Threads that have counters of their own at a time; all others share.
const OWNED: usize = 32;

/// The counters of one backend.
#[derive(Debug)]
pub struct Counters {
    backend: &'static str,
    /// One set per number of a thread, and that of the threads without one.
    sets: [Set; OWNED + 1],
}

/// Counters that are written together, alone on their cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Set {
    launches: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    output_slots: AtomicU64,
    output_slots_reused: AtomicU64,
}

impl Set {
    const fn new() -> Self {
        Set {
            launches: AtomicU64::new(0),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            output_slots: AtomicU64::new(0),
            output_slots_reused: AtomicU64::new(0),
        }
    }

    /// Adds with `add`, which is cheaper where no other thread does.
    fn add(&self, more: DispatchTelemetry, add: impl Fn(&AtomicU64, u64)) {
        add(&self.launches, more.launches);
        add(&self.input_bytes, more.input_bytes);
        add(&self.output_bytes, more.output_bytes);
        add(&self.output_slots, more.output_slots);
        add(&self.output_slots_reused, more.output_slots_reused);
    }
}

/// The number of a thread, which no other has while it runs.
struct Number(Option<usize>);

thread_local!(static NUMBER: Number = Number::take());
/// Numbers of threads that have ended, and the first that nobody has had.
static NUMBERS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

impl Number {
    fn take() -> Self {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let (free, next) = &mut *numbers;
        Number(free.pop().or_else(|| {
            let new = (*next < OWNED).then_some(*next);
            *next += usize::from(new.is_some());
            new
        }))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // Whoever takes it next has seen, by the lock, everything that this thread has added.
        let free = &mut NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).0;
        free.extend(self.0);
    }
}

/// What a thread is doing.
#[derive(Clone, Copy)]
struct Thread {
    /// Whose dispatch it is inside of.
    inside: Option<&'static Counters>,
    /// How many it has counted.
    counted: u64,
}

thread_local!(static THREAD: Cell<Thread> = const { Cell::new(Thread { inside: None, counted: 0 }) });

/// A dispatch that will be counted if it succeeds. Until it is dropped, others on the same backend are parts of it.
struct Whole {
    before: Thread,
    _span: Option<EnteredSpan>,
}

impl Drop for Whole {
    fn drop(&mut self) {
        THREAD.set(Thread { inside: self.before.inside, ..THREAD.get() });
    }
}

/// What a dispatch gives.
pub(crate) trait Outputs {
    fn outputs(&self) -> &[Vec<u8>];
}

impl Outputs for OutputBuffers {
    fn outputs(&self) -> &[Vec<u8>] {
        self
    }
}

impl Outputs for TimedDispatchResult {
    fn outputs(&self) -> &[Vec<u8>] {
        &self.outputs
    }
}

/// The bytes of inputs.
pub(crate) fn total(inputs: &[impl AsRef<[u8]>]) -> usize {
    inputs.iter().map(|input| input.as_ref().len()).sum()
}

/// The bytes of resources that are not resident.
pub(crate) fn total_borrowed(resources: &[Resource]) -> usize {
    let bytes = |resource: &Resource| match resource {
        Resource::Borrowed(bytes) => bytes.len(),
        Resource::Resident(_) => 0,
    };
    resources.iter().map(bytes).sum()
}

impl Counters {
    const fn new(backend: &'static str) -> Self {
        Counters { backend, sets: [const { Set::new() }; OWNED + 1] }
    }

    /// Counts a dispatch that has given outputs, `reused` of them in buffers that the caller brought; for backends whose methods are
    /// called directly. Inside a dispatch that is counted anyway nothing happens.
    pub fn record(&'static self, input_bytes: usize, outputs: &[Vec<u8>], reused: usize) {
        if let Some(whole) = self.begin() {
            self.end(whole, input_bytes, outputs, reused);
        }
    }

    /// Runs a dispatch and counts it.
    pub(crate) fn dispatch<R: Outputs>(
        &'static self,
        config: &DispatchConfig,
        input_bytes: usize,
        run: impl FnOnce() -> Result<R, BackendError>,
    ) -> Result<R, BackendError> {
        let Some(whole) = self.begin_in_span(config) else { return run() };
        let result = run()?;
        self.end(whole, input_bytes, result.outputs(), 0);
        Ok(result)
    }

    /// Runs a dispatch into the caller's buffers and counts it.
    pub(crate) fn dispatch_into(
        &'static self,
        config: &DispatchConfig,
        input_bytes: usize,
        outputs: &mut OutputBuffers,
        run: impl FnOnce(&mut OutputBuffers) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let Some(whole) = self.begin_in_span(config) else { return run(outputs) };
        let brought = outputs.len();
        run(outputs)?;
        self.end(whole, input_bytes, outputs, brought.min(outputs.len()));
        Ok(())
    }

    /// Runs a batch of dispatches and counts each.
    pub(crate) fn dispatch_batch(
        &'static self,
        config: &DispatchConfig,
        batches: &[&[&[u8]]],
        run: impl FnOnce() -> Result<Vec<OutputBuffers>, BackendError>,
    ) -> Result<Vec<OutputBuffers>, BackendError> {
        let Some(whole) = self.begin_in_span(config) else { return run() };
        let results = run()?;
        if !self.is_counted_elsewhere(&whole) {
            drop(whole);
            batches.iter().zip(&results).for_each(|(inputs, outputs)| self.record(total(inputs), outputs, 0));
        }
        Ok(results)
    }

    /// Runs a batch of dispatches into the caller's buffers and counts each.
    pub(crate) fn dispatch_batch_into(
        &'static self,
        config: &DispatchConfig,
        batches: &[&[&[u8]]],
        outputs: &mut Vec<OutputBuffers>,
        run: impl FnOnce(&mut Vec<OutputBuffers>) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let Some(whole) = self.begin_in_span(config) else { return run(outputs) };
        let brought: Vec<usize> = outputs.iter().map(Vec::len).collect();
        run(outputs)?;
        if !self.is_counted_elsewhere(&whole) {
            drop(whole);
            for (n, (inputs, outputs)) in batches.iter().zip(outputs).enumerate() {
                self.record(total(inputs), outputs, brought.get(n).map_or(0, |brought| (*brought).min(outputs.len())));
            }
        }
        Ok(())
    }

    /// Begins a dispatch, to be counted when its outputs are there.
    pub(crate) fn begin_dispatch(
        &'static self,
        config: &DispatchConfig,
        input_bytes: usize,
        run: impl FnOnce() -> Result<Box<dyn PendingDispatch>, BackendError>,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.begin_all(config, 1, input_bytes, run)
    }

    /// Begins a sequence on resident data, whose dispatches are counted when it has ended.
    pub(crate) fn begin_sequence(
        &'static self,
        config: &DispatchConfig,
        steps: &[ResidentStep<'_>],
        run: impl FnOnce() -> Result<Box<dyn PendingDispatch>, BackendError>,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let (mut launches, mut input_bytes) = (0, 0);
        for step in steps {
            match step {
                ResidentStep::Dispatch { .. } => launches += 1,
                ResidentStep::Upload { bytes, .. } => input_bytes += bytes.len(),
                ResidentStep::Copy { .. } | ResidentStep::Download(_) => {}
            }
        }
        self.begin_all(config, launches, input_bytes, run)
    }

    fn begin_all(
        &'static self,
        config: &DispatchConfig,
        launches: u64,
        input_bytes: usize,
        run: impl FnOnce() -> Result<Box<dyn PendingDispatch>, BackendError>,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let Some(_whole) = self.begin_in_span(config) else { return run() };
        Ok(Box::new(Counted { inner: run()?, counters: self, launches, input_bytes }))
    }

    /// `None` inside a dispatch that this would be a part of.
    fn begin(&'static self) -> Option<Whole> {
        let before = THREAD.get();
        let is_part = |inside: &'static Counters| ptr::eq(inside, self) || self.is_unattributed();
        if before.inside.is_some_and(is_part) {
            return None;
        }
        THREAD.set(Thread { inside: Some(self), ..before });
        Some(Whole { before, _span: None })
    }

    /// The same, in a span for those who trace.
    fn begin_in_span(&'static self, config: &DispatchConfig) -> Option<Whole> {
        let mut whole = self.begin()?;
        if !self.is_unattributed() {
            let span = tracing::debug_span!("dispatch", backend = self.backend, label = config.label.as_deref());
            whole._span = Some(span.entered());
        }
        Some(whole)
    }

    /// A pipeline that is nobody's may have called a backend.
    fn is_counted_elsewhere(&self, whole: &Whole) -> bool {
        self.is_unattributed() && THREAD.get().counted != whole.before.counted
    }

    fn end(&self, whole: Whole, input_bytes: usize, outputs: &[Vec<u8>], reused: usize) {
        self.end_all(whole, 1, input_bytes, outputs, reused);
    }

    fn end_all(&self, whole: Whole, launches: u64, input_bytes: usize, outputs: &[Vec<u8>], reused: usize) {
        // What only copies is no dispatch.
        if launches == 0 || self.is_counted_elsewhere(&whole) {
            return;
        }
        let more = DispatchTelemetry {
            launches,
            input_bytes: input_bytes as u64,
            output_bytes: total(outputs) as u64,
            output_slots: outputs.len() as u64,
            output_slots_reused: reused as u64,
        };
        let thread = THREAD.get();
        THREAD.set(Thread { counted: thread.counted + launches, ..thread });
        // A thread that is ending has no number any more.
        match NUMBER.try_with(|number| number.0).ok().flatten() {
            Some(mine) => self.sets[mine].add(more, |counter, more| {
                counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
            }),
            None => self.sets[OWNED].add(more, |counter, more| {
                counter.fetch_add(more, Relaxed);
            }),
        }
    }

    fn is_unattributed(&self) -> bool {
        ptr::eq(self, &UNATTRIBUTED)
    }

    fn snapshot(&self) -> DispatchTelemetry {
        let mut sum = DispatchTelemetry::default();
        for set in &self.sets {
            sum.add(DispatchTelemetry {
                launches: set.launches.load(Relaxed),
                input_bytes: set.input_bytes.load(Relaxed),
                output_bytes: set.output_bytes.load(Relaxed),
                output_slots: set.output_slots.load(Relaxed),
                output_slots_reused: set.output_slots_reused.load(Relaxed),
            });
        }
        sum
    }
}

impl DispatchTelemetry {
    fn add(&mut self, more: DispatchTelemetry) {
        let DispatchTelemetry { launches, input_bytes, output_bytes, output_slots, output_slots_reused } = more;
        self.launches += launches;
        self.input_bytes += input_bytes;
        self.output_bytes += output_bytes;
        self.output_slots += output_slots;
        self.output_slots_reused += output_slots_reused;
    }
}

/// What was begun, and counts when its outputs are there.
struct Counted {
    inner: Box<dyn PendingDispatch>,
    counters: &'static Counters,
    launches: u64,
    input_bytes: usize,
}

// A default would lose what the dispatch says.
#[deny(clippy::missing_trait_methods)]
impl PendingDispatch for Counted {
    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn wake_when_ready(&self, waker: &Waker) -> bool {
        self.inner.wake_when_ready(waker)
    }

    fn wait(self: Box<Self>) -> Result<OutputBuffers, BackendError> {
        Ok(self.wait_ran()?.0)
    }

    fn wait_ran(self: Box<Self>) -> Result<(OutputBuffers, Vec<Ran>), BackendError> {
        let Counted { inner, counters, launches, input_bytes } = *self;
        let whole = counters.begin();
        let (outputs, ran) = inner.wait_ran()?;
        if let Some(whole) = whole {
            counters.end_all(whole, launches, input_bytes, &outputs, 0);
        }
        Ok((outputs, ran))
    }
}

/// A list that only grows, so that it can be read without a lock.
struct Backends {
    first: OnceLock<Box<Backend>>,
}

struct Backend {
    counters: Counters,
    next: Backends,
}

static UNATTRIBUTED: Counters = Counters::new("");
static BACKENDS: Backends = Backends { first: OnceLock::new() };

impl Backends {
    fn iter(&'static self) -> impl Iterator<Item = &'static Counters> {
        let next = |backends: &'static Backends| backends.first.get();
        std::iter::successors(next(self), move |backend| next(&backend.next)).map(|backend| &backend.counters)
    }
}

/// The counters of pipelines that do not say which backend they are of.
#[must_use]
pub fn unattributed() -> &'static Counters {
    &UNATTRIBUTED
}

/// The counters of a backend; keep them where dispatches are frequent. There is one set per backend that was ever used.
#[must_use]
pub fn of_backend(id: &'static str) -> &'static Counters {
    let mut place = &BACKENDS;
    loop {
        // Where the list ends, one of the threads that come here adds to it, and the others look at what it added.
        let backend = place
            .first
            .get_or_init(|| Box::new(Backend { counters: Counters::new(id), next: Backends { first: OnceLock::new() } }));
        if backend.counters.backend == id {
            return &backend.counters;
        }
        place = &backend.next;
    }
}

/// What the whole process has dispatched so far.
#[must_use]
pub fn snapshot_dispatch_telemetry() -> DispatchTelemetry {
    let mut total = UNATTRIBUTED.snapshot();
    BACKENDS.iter().for_each(|counters| total.add(counters.snapshot()));
    total
}

/// What each backend has dispatched so far.
#[must_use]
pub fn snapshot_backend_telemetry() -> Vec<(&'static str, DispatchTelemetry)> {
    BACKENDS.iter().map(|counters| (counters.backend, counters.snapshot())).collect()
}
