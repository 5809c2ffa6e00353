//! Devices whose memory is the host's: everything but running a kernel.
//!
//! [`HostKernels`] compiles and executes kernels over slices; [`HostDevice`] makes a [`Device`] of it: memory behind locks, spans of it as
//! disjoint slices, and a thread that runs submissions in order.
//!
//! **Locks.** Each memory has one, which a dispatch holds while it runs: to read what it only reads, to write the rest. Those of one
//! dispatch are taken in the order of addresses, so that no two wait for each other.
//!
//! **The queue** has one thread, which is started with the first submission and ends with the device, after the last. A submission that
//! nobody wants any more is told so by a flag that the kernels look at. [`Device::recover`] leaves the thread behind: its submissions
//! are told that they are lost at once, and what it still does it does to memory that nobody else can reach.

use super::{
    Binding, Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Done, Generation, Identity, Memory, Ran, Span,
    Step, Submission, WaitError,
};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::{Poll, Waker};
use std::time::Instant;
use vyre_foundation::interface::Interface;
use vyre_foundation::ir::Access;
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;

/// The bytes of a dispatch, mostly few.
type Few<T> = SmallVec<[T; 8]>;

/// A way to run kernels on memory of the host.
pub trait HostKernels: Send + Sync + 'static {
    /// A kernel made ready.
    type Code: Send + Sync + 'static;

    /// What the device is; the generation is not looked at.
    fn info(&self) -> DeviceInfo;

    /// Makes a kernel ready.
    ///
    /// # Errors
    ///
    /// See [`Device::compile`].
    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<HostCode<Self::Code>, DeviceError>;

    /// Runs some workgroups; gives the threads that took part.
    ///
    /// # Errors
    ///
    /// See [`Device::run`].
    fn execute(&self, code: &Self::Code, execution: Execution<'_, '_>) -> Result<u32, DeviceError>;
}

/// A kernel made ready, and what is known of it.
pub struct HostCode<C> {
    /// The kernel.
    pub code: C,
    /// About the bytes that it takes.
    pub bytes: u64,
    /// [`Ran::lowering`].
    pub lowering: Arc<str>,
    /// [`Ran::code`].
    pub hash: Option<[u8; 32]>,
    /// [`Ran::ulp`].
    pub ulp: Option<u8>,
}

/// A dispatch of a kernel that was made ready.
pub struct Execution<'a, 'b> {
    /// The shape of the whole dispatch.
    pub launch: &'a Launch,
    /// The workgroups that are to run, numbered with x fastest.
    pub groups: Range<u32>,
    /// One per buffer of the interface's `bound`, with what it starts with.
    pub bindings: &'a mut [Bytes<'b>],
    /// When to give up.
    pub stop: Stop<'a>,
}

/// The bytes of a buffer.
#[derive(Debug)]
pub enum Bytes<'a> {
    /// The kernel reads them.
    Read(&'a [u8]),
    /// The kernel writes them too.
    Write(&'a mut [u8]),
}

/// When an execution gives up.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    /// The deadline.
    pub deadline: Option<Instant>,
    /// Set if nobody wants the result any more.
    pub cancelled: Option<&'a AtomicBool>,
}

/// A device over memory of the host.
pub struct HostDevice<K: HostKernels> {
    inner: Arc<Inner<K>>,
    queue: Mutex<Arc<Queue>>,
}

/// What the thread of the queue shares with the device.
struct Inner<K> {
    kernels: K,
    info: DeviceInfo,
    identity: Identity,
}

/// What a [`Code`] of ours has inside.
struct Ready<C> {
    compiled: HostCode<C>,
    /// By binding: what the kernel does with it.
    access: Vec<Access>,
    /// By binding: its place among the declarations.
    bound: Vec<usize>,
    profile: Option<Arc<str>>,
}

/// What a [`Memory`] of ours has inside.
struct HostMemory {
    bytes: RwLock<Vec<u8>>,
}

impl<K: HostKernels> HostDevice<K> {
    /// Opens it.
    pub fn new(kernels: K) -> HostDevice<K> {
        let info = kernels.info();
        let inner = Inner { kernels, info, identity: Identity::new() };
        HostDevice { inner: Arc::new(inner), queue: Mutex::new(Arc::default()) }
    }

    /// What it runs kernels with.
    pub fn kernels(&self) -> &K {
        &self.inner.kernels
    }

    fn queue(&self) -> Arc<Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<K: HostKernels> Drop for HostDevice<K> {
    fn drop(&mut self) {
        self.queue().close();
    }
}

impl<K: HostKernels> Device for HostDevice<K> {
    fn info(&self) -> Arc<DeviceInfo> {
        Arc::new(DeviceInfo { generation: self.inner.identity.generation(), ..self.inner.info.clone() })
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        let compiled = self.inner.kernels.compile(kernel, options)?;
        let bytes = compiled.bytes;
        let bound = Interface::of_kernel(kernel).bound;
        let access = bound.iter().map(|i| kernel.buffers[*i].access).collect();
        let profile = options.profile.as_deref().map(Arc::from);
        Ok(Code::new(&self.inner.identity, bytes, Ready { compiled, access, bound, profile }))
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        let zeros = usize::try_from(bytes).ok().and_then(|bytes| bytemuck::try_zeroed_vec(bytes).ok());
        let zeros = zeros.ok_or(DeviceError::OutOfMemory { requested: bytes })?;
        Ok(Memory::new(&self.inner.identity, bytes, HostMemory { bytes: RwLock::new(zeros) }))
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        let uses_memory = call.bindings.iter().any(|binding| matches!(binding, Binding::Memory(_)));
        if uses_memory {
            self.queue().drain(deadline)?;
        }
        let mut bindings: Few<Bound<'_>> = call.bindings.iter_mut().map(Bound::of).collect();
        let Call { code, launch, groups, zero_outputs, .. } = call;
        let stop = Stop { deadline: deadline.0, cancelled: None };
        self.inner.dispatch(code, launch, groups.clone(), *zero_outputs, &mut bindings, stop)
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        let ticket = Arc::new(Ticket::new(deadline));
        let inner = &self.inner;
        self.queue().push(Job { ticket: ticket.clone(), steps }, || {
            let inner = inner.clone();
            move |job: &Job| inner.run_steps(job)
        })?;
        Ok(Box::new(HostSubmission { ticket }))
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let left_behind = std::mem::take(&mut *queue);
        let generation = self.inner.identity.begin_anew();
        drop(queue);
        left_behind.lose();
        Ok(generation)
    }
}

/// What a binding of a dispatch is, whether it was called or submitted.
enum Bound<'a> {
    Slice(Bytes<'a>),
    Span(&'a Span),
}

impl<'a> Bound<'a> {
    fn of<'b>(binding: &'a mut Binding<'b>) -> Bound<'a> {
        match binding {
            Binding::In(bytes) => Bound::Slice(Bytes::Read(bytes)),
            Binding::InOut(bytes) | Binding::Out(bytes) => Bound::Slice(Bytes::Write(bytes)),
            Binding::Memory(span) => Bound::Span(span),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Bound::Slice(Bytes::Read(bytes)) => bytes.len() as u64,
            Bound::Slice(Bytes::Write(bytes)) => bytes.len() as u64,
            Bound::Span(span) => span.len(),
        }
    }
}

impl<K: HostKernels> Inner<K> {
    fn dispatch(
        &self,
        code: &Code,
        launch: &Launch,
        groups: Range<u64>,
        zero_outputs: bool,
        bindings: &mut [Bound<'_>],
        stop: Stop<'_>,
    ) -> Result<Ran, DeviceError> {
        let ready: &Ready<K::Code> = code.get(&self.identity).map_err(DeviceError::Stale)?;
        if bindings.len() != ready.bound.len() {
            let message = format!("{} bindings for a kernel with {}", bindings.len(), ready.bound.len());
            return Err(DeviceError::Other(message));
        }
        for (binding, i) in bindings.iter().zip(&ready.bound) {
            let (length, size) = (binding.len(), launch.bytes[*i]);
            if length != size {
                return Err(DeviceError::OutOfRange { offset: 0, length, size });
            }
        }
        let range = |groups: Range<u64>| Some(u32::try_from(groups.start).ok()?..u32::try_from(groups.end).ok()?);
        let Some(numbers) =
            range(groups.clone()).filter(|numbers| numbers.start <= numbers.end && numbers.end <= launch.groups())
        else {
            let message = format!("workgroups {} to {} of {}", groups.start, groups.end, launch.groups());
            return Err(DeviceError::Other(message));
        };
        let threads = with_bytes(&self.identity, bindings, &ready.access, |bytes| {
            if zero_outputs {
                for (bytes, access) in bytes.iter_mut().zip(&ready.access) {
                    if let (Bytes::Write(bytes), Access::Output) = (bytes, access) {
                        bytes.fill(0);
                    }
                }
            }
            let execution = Execution { launch, groups: numbers, bindings: bytes, stop };
            self.kernels.execute(&ready.compiled.code, execution)
        })??;
        Ok(Ran {
            device: self.info.id,
            generation: self.identity.generation(),
            workgroup: launch.workgroup_size,
            grid: launch.grid,
            groups,
            profile: ready.profile.clone(),
            threads,
            lowering: ready.compiled.lowering.clone(),
            code: ready.compiled.hash,
            ulp: ready.compiled.ulp,
            cache_hit: true,
            device_ns: None,
        })
    }

    fn run_steps(&self, job: &Job) -> Result<Done, DeviceError> {
        let mut done = Done::default();
        for step in &job.steps {
            job.ticket.still_wanted()?;
            match step {
                Step::Dispatch { code, launch, groups, zero_outputs, bindings } => {
                    let mut bindings: Few<Bound<'_>> = bindings.iter().map(Bound::Span).collect();
                    let stop = Stop { deadline: job.ticket.deadline.0, cancelled: Some(&job.ticket.cancelled) };
                    done.ran.push(self.dispatch(code, launch, groups.clone(), *zero_outputs, &mut bindings, stop)?);
                }
                Step::Write { to, bytes } => {
                    let (memory, range) = self.span(to)?;
                    expect_length(to, bytes.len() as u64)?;
                    memory.write()[range].copy_from_slice(bytes);
                }
                Step::Copy { from, to } => self.copy(from, to)?,
                Step::Read(span) => {
                    let (memory, range) = self.span(span)?;
                    done.reads.push(memory.read()[range].to_vec());
                }
            }
        }
        Ok(done)
    }

    fn copy(&self, from: &Span, to: &Span) -> Result<(), DeviceError> {
        let (source, source_range) = self.span(from)?;
        let (target, target_range) = self.span(to)?;
        expect_length(to, from.len())?;
        if from.memory.is(&to.memory) {
            target.write().copy_within(source_range, target_range.start);
        } else if from.memory.address() < to.memory.address() {
            let source = source.read();
            target.write()[target_range].copy_from_slice(&source[source_range]);
        } else {
            let mut target = target.write();
            target[target_range].copy_from_slice(&source.read()[source_range]);
        }
        Ok(())
    }

    fn span<'a>(&self, span: &'a Span) -> Result<(&'a HostMemory, Range<usize>), DeviceError> {
        inside(&self.identity, span)
    }
}

impl HostMemory {
    // What a dispatch that panicked has left is unspecified, and is bytes all the same.
    fn read(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of a span and its bytes there.
fn inside<'a>(identity: &Identity, span: &'a Span) -> Result<(&'a HostMemory, Range<usize>), DeviceError> {
    let memory: &HostMemory = span.memory.get(identity).map_err(DeviceError::Stale)?;
    let (Range { start, end }, size) = (span.range.clone(), span.memory.bytes());
    if start > end || end > size {
        return Err(DeviceError::OutOfRange { offset: start, length: span.len(), size });
    }
    // The memory is there, so that its size is a `usize`.
    Ok((memory, start as usize..end as usize))
}

fn expect_length(span: &Span, size: u64) -> Result<(), DeviceError> {
    match span.len() == size {
        true => Ok(()),
        false => Err(DeviceError::OutOfRange { offset: span.range.start, length: span.len(), size }),
    }
}

/// A span of a dispatch.
struct Bind<'a> {
    memory: &'a HostMemory,
    address: usize,
    range: Range<usize>,
    written: bool,
    /// Its place among the bindings.
    place: usize,
}

enum Guard<'a> {
    Read(RwLockReadGuard<'a, Vec<u8>>),
    Write(RwLockWriteGuard<'a, Vec<u8>>),
}

/// Calls `run` with the bytes of all bindings, locked.
fn with_bytes<R>(
    identity: &Identity,
    bindings: &mut [Bound<'_>],
    access: &[Access],
    run: impl FnOnce(&mut [Bytes<'_>]) -> R,
) -> Result<R, DeviceError> {
    let mut spans: Few<Bind<'_>> = Few::new();
    for (place, (binding, access)) in bindings.iter().zip(access).enumerate() {
        if let Bound::Span(span) = binding {
            let (memory, range) = inside(identity, span)?;
            spans.push(Bind { memory, address: span.memory.address(), range, written: access.is_output(), place });
        }
    }
    spans.sort_by_key(|bind| (bind.address, bind.range.start, bind.range.end));
    let mut guards: Few<Guard<'_>> = Few::new();
    for same in spans.chunk_by(|one, other| one.address == other.address) {
        guards.push(match same.iter().any(|bind| bind.written) {
            true => Guard::Write(same[0].memory.write()),
            false => Guard::Read(same[0].memory.read()),
        });
    }
    let mut bytes: Few<Bytes<'_>> = bindings
        .iter_mut()
        .map(|binding| match binding {
            Bound::Slice(Bytes::Read(bytes)) => Bytes::Read(bytes),
            Bound::Slice(Bytes::Write(bytes)) => Bytes::Write(bytes),
            Bound::Span(_) => Bytes::Read(&[]),
        })
        .collect();
    // Spans without bytes are not among the parts of their memory.
    spans.iter().filter(|bind| bind.written).for_each(|bind| bytes[bind.place] = Bytes::Write(&mut []));
    for (same, guard) in spans.chunk_by(|one, other| one.address == other.address).zip(&mut guards) {
        match guard {
            Guard::Read(memory) => {
                same.iter().for_each(|bind| bytes[bind.place] = Bytes::Read(&memory[bind.range.clone()]));
            }
            Guard::Write(memory) => part(memory, same, &mut bytes)?,
        }
    }
    Ok(run(&mut bytes))
}

/// Gives every span of one memory, ordered by their beginnings, its part of it.
fn part<'m>(memory: &'m mut [u8], spans: &[Bind<'_>], bytes: &mut [Bytes<'m>]) -> Result<(), DeviceError> {
    let mut rest = memory;
    let mut at = 0;
    let mut spans = spans.iter().filter(|bind| !bind.range.is_empty()).peekable();
    while let Some(first) = spans.next() {
        let start = first.range.start;
        let mut end = first.range.end;
        // Those that overlap each other are one part, which all of them only read.
        let mut together: Few<&Bind<'_>> = Few::from_slice(&[]);
        together.push(first);
        while let Some(next) = spans.next_if(|next| next.range.start < end) {
            if first.written || next.written {
                return Err(DeviceError::Aliased);
            }
            end = end.max(next.range.end);
            together.push(next);
        }
        let (own, after) = std::mem::take(&mut rest)[start - at..].split_at_mut(end - start);
        (rest, at) = (after, end);
        if first.written {
            bytes[first.place] = Bytes::Write(own);
        } else {
            let own: &'m [u8] = own;
            for bind in together {
                bytes[bind.place] = Bytes::Read(&own[bind.range.start - start..bind.range.end - start]);
            }
        }
    }
    Ok(())
}

/// Submissions in order.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Job>,
    running: Option<Arc<Ticket>>,
    has_thread: bool,
    /// The device is dropped: the thread ends when nothing waits.
    closed: bool,
    /// The device was left behind.
    lost: bool,
    submitted: u64,
    ended: u64,
}

struct Job {
    ticket: Arc<Ticket>,
    steps: Vec<Step>,
}

fn lost() -> DeviceError {
    DeviceError::Lost { reason: "it was opened again".into() }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code of others runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job; `runner` makes what runs it, if there is no thread yet.
    fn push<F>(self: &Arc<Self>, job: Job, runner: impl FnOnce() -> F) -> Result<(), DeviceError>
    where
        F: Fn(&Job) -> Result<Done, DeviceError> + Send + 'static,
    {
        let mut state = self.state();
        if state.lost {
            return Err(lost());
        }
        if !state.has_thread {
            let (queue, run) = (self.clone(), runner());
            let thread = std::thread::Builder::new().name("vyre-queue".into()).spawn(move || queue.work(run));
            thread.map_err(|error| DeviceError::Other(format!("there is no thread for submissions: {error}")))?;
            state.has_thread = true;
        }
        state.submitted += 1;
        state.waiting.push_back(job);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn work(&self, run: impl Fn(&Job) -> Result<Done, DeviceError>) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                state.running = Some(job.ticket.clone());
                drop(state);
                let result = match job.ticket.begin() {
                    true => catch_unwind(AssertUnwindSafe(|| run(&job))).unwrap_or_else(|panic| Err(panicked(&*panic))),
                    false => Err(DeviceError::Cancelled),
                };
                let Job { ticket, steps } = job;
                // Memory that only the steps had is free before anybody hears that they have ended.
                drop(steps);
                state = self.state();
                state.running = None;
                state.ended += 1;
                drop(state);
                ticket.end(result);
                self.changed.notify_all();
                state = self.state();
            } else if state.closed || state.lost {
                return;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Waits until everything has ended that was submitted before.
    fn drain(&self, deadline: Deadline) -> Result<(), DeviceError> {
        let mut state = self.state();
        let submitted = state.submitted;
        while state.ended < submitted {
            if state.lost {
                return Err(lost());
            }
            state = match deadline.0 {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => match at.checked_duration_since(Instant::now()) {
                    None => return Err(DeviceError::Timeout),
                    Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                },
            };
        }
        Ok(())
    }

    fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Ends everything as lost and waits for nothing.
    fn lose(&self) {
        let mut state = self.state();
        state.lost = true;
        let waiting = std::mem::take(&mut state.waiting);
        let running = state.running.take();
        drop(state);
        self.changed.notify_all();
        for ticket in running.into_iter().chain(waiting.iter().map(|job| job.ticket.clone())) {
            ticket.cancelled.store(true, Relaxed);
            ticket.end(Err(lost()));
        }
    }
}

/// What a panic says, as an error.
fn panicked(panic: &(dyn std::any::Any + Send)) -> DeviceError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string()).or_else(|| panic.downcast_ref::<String>().cloned());
    DeviceError::Other(format!("the device panicked: {}", text.unwrap_or_default()))
}

/// What a submission and the queue know of each other.
struct Ticket {
    deadline: Deadline,
    cancelled: AtomicBool,
    state: Mutex<TicketState>,
    ended: Condvar,
}

#[derive(Default)]
struct TicketState {
    begun: bool,
    outcome: Option<Result<Done, DeviceError>>,
    taken: bool,
    waker: Option<Waker>,
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

    fn still_wanted(&self) -> Result<(), DeviceError> {
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
        let waker = state.waker.take();
        drop(state);
        self.ended.notify_all();
        if let Some(waker) = waker {
            waker.wake();
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
        state.waker = None;
        Some(outcome)
    }
}

struct HostSubmission {
    ticket: Arc<Ticket>,
}

impl Submission for HostSubmission {
    fn poll(&mut self, waker: Option<&Waker>) -> Poll<Result<Done, DeviceError>> {
        let mut state = self.ticket.state();
        match self.ticket.take(&mut state) {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = waker.cloned();
                Poll::Pending
            }
        }
    }

    fn wait(&mut self, deadline: Deadline) -> Result<Done, WaitError> {
        let mut state = self.ticket.state();
        loop {
            if let Some(outcome) = self.ticket.take(&mut state) {
                return outcome.map_err(WaitError::Failed);
            }
            if deadline.is_over() {
                return Err(WaitError::Pending);
            }
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
