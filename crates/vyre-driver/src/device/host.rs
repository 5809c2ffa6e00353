//! Devices whose memory is the host's: everything but running a kernel.
//!
//! [`HostKernels`] compiles and executes kernels over slices; [`HostDevice`] makes a [`Device`] of it: memory behind locks, spans of it as
//! disjoint slices, and a thread that runs submissions in order.
//!
//! **Locks.** Each memory has one, which a dispatch holds while it runs: to read what it only reads, to write the rest. Those of one
//! dispatch are taken in the order of addresses, so that no two wait for each other.
//!
//! **The queue** is in `queue.rs`. A submission that nobody wants any more is told so by a flag that the kernels look at.
//! [`Device::recover`] leaves the queue and its thread behind: submissions are lost at once, calls of [`Device::run`] when the kernel has
//! stopped, and what still runs does so on memory that nobody else can reach.

use super::queue::{Job, Queue, lost};
use super::{
    Binding, Call, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Done, Generation, Identity, Memory, Ran, Span,
    Step, Submission,
};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
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
    /// The workgroups that are to run, numbered with x fastest; all of them if the kernel has grid barriers.
    pub groups: Range<u32>,
    /// One per buffer of the interface's `bound`, with what it starts with; what the kernel writes can be written.
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
    /// Whether it has grid barriers, so that all workgroups have to run together.
    grid_sync: bool,
    /// Set when the device that it is for is left behind.
    left: Arc<AtomicBool>,
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
        let grid_sync = kernel.uses.grid_sync;
        // The generation does not change while the queue is locked.
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let left = queue.left();
        Ok(Code::new(&self.inner.identity, bytes, Ready { compiled, access, bound, profile, grid_sync, left }))
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
        let left = &*self.inner.ready(code)?.left;
        let stop = Stop { deadline: deadline.0, cancelled: Some(left) };
        let result = self.inner.dispatch(code, launch, groups.clone(), *zero_outputs, &mut bindings, stop);
        if left.load(Relaxed) { Err(lost()) } else { result }
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        let inner = self.inner.clone();
        let job = Job::new(steps, deadline);
        let submission = job.submission();
        self.queue().push(job, move |job, may_wait| inner.run_steps(job, may_wait))?;
        Ok(submission)
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
    fn ready<'a>(&self, code: &'a Code) -> Result<&'a Ready<K::Code>, DeviceError> {
        code.get(&self.identity).map_err(DeviceError::Stale)
    }

    fn dispatch(
        &self,
        code: &Code,
        launch: &Launch,
        groups: Range<u64>,
        zero_outputs: bool,
        bindings: &mut [Bound<'_>],
        stop: Stop<'_>,
    ) -> Result<Ran, DeviceError> {
        let ready = self.ready(code)?;
        if bindings.len() != ready.bound.len() {
            let message = format!("{} bindings for a kernel with {}", bindings.len(), ready.bound.len());
            return Err(DeviceError::Other(message));
        }
        for ((binding, i), access) in bindings.iter().zip(&ready.bound).zip(&ready.access) {
            let (length, size) = (binding.len(), launch.bytes[*i]);
            if length != size {
                return Err(DeviceError::OutOfRange { offset: 0, length, size });
            }
            if access.is_output() && matches!(binding, Bound::Slice(Bytes::Read(_))) {
                return Err(DeviceError::Other("a buffer that is written is bound to read-only bytes".into()));
            }
        }
        let range = |groups: Range<u64>| Some(u32::try_from(groups.start).ok()?..u32::try_from(groups.end).ok()?);
        let Some(numbers) =
            range(groups.clone()).filter(|numbers| numbers.start <= numbers.end && numbers.end <= launch.groups())
        else {
            let message = format!("workgroups {} to {} of {}", groups.start, groups.end, launch.groups());
            return Err(DeviceError::Other(message));
        };
        if ready.grid_sync && numbers != (0..launch.groups()) {
            let message = format!("workgroups {} to {} of {} with a grid barrier", groups.start, groups.end, launch.groups());
            return Err(DeviceError::Other(message));
        }
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
            generation: code.generation(),
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

    /// Runs what is left of a job; `None` if it may not wait for memory and would have to.
    fn run_steps(&self, job: &mut Job, may_wait: bool) -> Option<Result<Done, DeviceError>> {
        while job.next < job.steps.len() {
            match self.step(job, may_wait) {
                Ok(true) => job.next += 1,
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(std::mem::take(&mut job.done)))
    }

    /// Runs the next step of a job; `false` if it may not wait for memory and would have to.
    fn step(&self, job: &mut Job, may_wait: bool) -> Result<bool, DeviceError> {
        let Job { ticket, steps, next, done } = job;
        ticket.still_wanted()?;
        match &steps[*next] {
            Step::Dispatch { code, launch, groups, zero_outputs, bindings } => {
                let mut bindings: Few<Bound<'_>> = bindings.iter().map(Bound::Span).collect();
                let stop = Stop { deadline: ticket.deadline.0, cancelled: Some(&ticket.cancelled) };
                done.ran.push(self.dispatch(code, launch, groups.clone(), *zero_outputs, &mut bindings, stop)?);
            }
            Step::Write { to, bytes } => {
                let (memory, range) = self.span(to)?;
                expect_length(to, bytes.len() as u64)?;
                let Some(mut memory) = memory.write(may_wait) else { return Ok(false) };
                memory[range].copy_from_slice(bytes);
            }
            Step::Copy { from, to } => return self.copy(from, to, may_wait),
            Step::Read(span) => {
                let (memory, range) = self.span(span)?;
                let Some(memory) = memory.read(may_wait) else { return Ok(false) };
                done.reads.push(memory[range].to_vec());
            }
        }
        Ok(true)
    }

    fn copy(&self, from: &Span, to: &Span, may_wait: bool) -> Result<bool, DeviceError> {
        let (source, source_range) = self.span(from)?;
        let (target, target_range) = self.span(to)?;
        expect_length(to, from.len())?;
        if from.memory.is(&to.memory) {
            let Some(mut memory) = target.write(may_wait) else { return Ok(false) };
            memory.copy_within(source_range, target_range.start);
            return Ok(true);
        }
        let (source, target) = match from.memory.address() < to.memory.address() {
            true => {
                let source = source.read(may_wait);
                (source, target.write(may_wait))
            }
            false => {
                let target = target.write(may_wait);
                (source.read(may_wait), target)
            }
        };
        let (Some(source), Some(mut target)) = (source, target) else { return Ok(false) };
        target[target_range].copy_from_slice(&source[source_range]);
        Ok(true)
    }

    fn span<'a>(&self, span: &'a Span) -> Result<(&'a HostMemory, Range<usize>), DeviceError> {
        inside(&self.identity, span)
    }
}

// What a dispatch that panicked has left is unspecified, and is bytes all the same.
impl HostMemory {
    /// `None` if it may not wait and would have to.
    fn read(&self, may_wait: bool) -> Option<RwLockReadGuard<'_, Vec<u8>>> {
        match self.bytes.try_read() {
            Ok(bytes) => Some(bytes),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => may_wait.then(|| self.bytes.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// `None` if it may not wait and would have to.
    fn write(&self, may_wait: bool) -> Option<RwLockWriteGuard<'_, Vec<u8>>> {
        match self.bytes.try_write() {
            Ok(bytes) => Some(bytes),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => may_wait.then(|| self.bytes.write().unwrap_or_else(PoisonError::into_inner)),
        }
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
            true => Guard::Write(same[0].memory.bytes.write().unwrap_or_else(PoisonError::into_inner)),
            false => Guard::Read(same[0].memory.bytes.read().unwrap_or_else(PoisonError::into_inner)),
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
