//! The device: handles, order, time and loss.
//!
//! Submissions go through the queue of `vyre-driver`, whose thread encodes the steps of one into as few submissions of wgpu's as it can, and
//! waits for them. A dispatch that may trap ends one, since the steps behind it must not run if it does; so does every dispatch of a
//! submission that has a deadline. A submission that is cancelled runs to the end of what was submitted.
//!
//! Some drivers end long loops without a word. A dispatch that may have such loops writes copies of memory, which are put in place when it
//! has ended well; otherwise it is run once more by a shader that can go round more often, or refused if there is none.
//!
//! Work that runs cannot be stopped. If it goes on for long behind its deadline, the device is lost; opening it again leaves
//! what is stuck behind, with everything that it may still touch.

use crate::adapters::{self, Found};
use crate::code::Ready;
use crate::gpu::{Gpu, Pooled, Use};
use crate::steps::{self, Apart, Batch, Place, room, upload};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vyre_driver::BackendError;
use vyre_driver::device::{
    Binding, Call, Capabilities, Code, CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Done, Generation, Identity, Job,
    Limits, Memory, Queue, Ran, Span, Step, Submission,
};
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::Launch;

/// How a kernel was run.
const LOWERING: &str = "wgsl";

/// Opens the adapter with this id.
///
/// # Errors
///
/// If there is none, or it cannot be opened.
pub fn wgpu_device(id: &str) -> Result<Arc<dyn Device>, BackendError> {
    let found = adapters::find(id)?;
    let gpu = Gpu::open(found).map_err(|error| BackendError::new(format!("`{id}` cannot be opened: {error}")))?;
    let inner = Inner { found, info: info(found), identity: Identity::new() };
    Ok(Arc::new(WgpuDevice { inner: Arc::new(inner), now: Mutex::new(Now { gpu: Arc::new(gpu), queue: Arc::default() }) }))
}

fn info(found: &Found) -> DeviceInfo {
    let limits = found.adapter.limits();
    DeviceInfo {
        id: found.id,
        name: found.name(),
        fingerprint: found.fingerprint(),
        build: env!("CARGO_PKG_VERSION"),
        capabilities: Capabilities {
            f64: false,
            grid_sync: false,
            host_memory: false,
            interruptible: false,
            ..Capabilities::host()
        },
        limits: Limits {
            workgroup_size: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            workgroup_invocations: limits.max_compute_invocations_per_workgroup,
            buffer_bytes: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
            span_alignment: limits.min_storage_buffer_offset_alignment.into(),
            // Larger grids are cut.
            ..Limits::host()
        },
        profiles: Vec::new(),
        generation: Generation::default(),
    }
}

struct WgpuDevice {
    inner: Arc<Inner>,
    now: Mutex<Now>,
}

/// What does not change when the device is opened again.
struct Inner {
    found: &'static Found,
    info: DeviceInfo,
    identity: Identity,
}

/// What does.
#[derive(Clone)]
struct Now {
    gpu: Arc<Gpu>,
    queue: Arc<Queue>,
}

/// What a `Memory` of ours has inside.
struct GpuMemory {
    number: u64,
    buffer: wgpu::Buffer,
    gone: Arc<Mutex<Vec<u64>>>,
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

impl WgpuDevice {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WgpuDevice {
    fn drop(&mut self) {
        let now = self.now();
        now.queue.close();
        if now.gpu.is_stuck() {
            std::mem::forget(now.gpu.clone());
        }
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        Arc::new(DeviceInfo { generation: self.inner.identity.generation(), ..self.inner.info.clone() })
    }

    fn compile(&self, kernel: &Arc<Kernel>, options: &CodeOptions) -> Result<Code, DeviceError> {
        let gpu = self.now().gpu.clone();
        gpu.alive()?;
        let ready = Ready::new(&gpu, kernel, options)?;
        // The generation does not change while this is locked.
        let now = self.now();
        if !Arc::ptr_eq(&now.gpu, &gpu) {
            return Err(DeviceError::Lost { reason: "it was opened again".into() });
        }
        Ok(Code::new(&self.inner.identity, ready.bytes, ready))
    }

    fn allocate(&self, bytes: u64) -> Result<Memory, DeviceError> {
        let now = self.now();
        let gpu = &now.gpu;
        gpu.alive()?;
        let size = bytes.max(1).checked_next_multiple_of(16).ok_or(DeviceError::OutOfMemory { requested: bytes })?;
        let buffer = match gpu.create(size, Use::Storage) {
            Err(DeviceError::OutOfMemory { .. }) => return Err(DeviceError::OutOfMemory { requested: bytes }),
            created => created?,
        };
        let memory = GpuMemory { number: gpu.number(), buffer, gone: gpu.gone() };
        Ok(Memory::new(&self.inner.identity, bytes, memory))
    }

    fn run(&self, call: &mut Call<'_, '_>, deadline: Deadline) -> Result<Ran, DeviceError> {
        let Now { gpu, queue } = self.now().clone();
        if call.bindings.iter().any(|binding| matches!(binding, Binding::Memory(_))) {
            queue.drain(deadline)?;
        }
        gpu.alive()?;
        self.inner.call(&gpu, call, deadline, &queue.left())
    }

    fn submit(&self, steps: Vec<Step>, deadline: Deadline) -> Result<Box<dyn Submission>, DeviceError> {
        let Now { gpu, queue } = self.now().clone();
        gpu.alive()?;
        let inner = self.inner.clone();
        let job = Job::new(steps, deadline);
        let submission = job.submission();
        let left = queue.left();
        // The thread of the queue waits for the device, and nobody else does.
        queue.push(job, move |job, may_wait| may_wait.then(|| inner.run_steps(&gpu, job, &left)))?;
        Ok(submission)
    }

    fn recover(&self) -> Result<Generation, DeviceError> {
        let gpu = Arc::new(Gpu::open(self.inner.found)?);
        let mut now = self.now();
        let before = std::mem::replace(&mut *now, Now { gpu, queue: Arc::default() });
        let generation = self.inner.identity.begin_anew();
        drop(now);
        before.queue.lose();
        before.gpu.lose("it was opened again");
        if before.gpu.is_stuck() {
            std::mem::forget(before.gpu);
        }
        Ok(generation)
    }
}

impl Inner {
    fn ready<'a>(&self, code: &'a Code) -> Result<&'a Ready, DeviceError> {
        code.get(&self.identity).map_err(DeviceError::Stale)
    }

    /// Where a span is.
    fn place<'a>(&self, span: &'a Span) -> Result<Place<'a>, DeviceError> {
        let memory: &GpuMemory = span.memory.get(&self.identity).map_err(DeviceError::Stale)?;
        let (Range { start, end }, size) = (span.range.clone(), span.memory.bytes());
        if start > end || end > size {
            return Err(DeviceError::OutOfRange { offset: start, length: span.len(), size });
        }
        Ok(Place { number: memory.number, buffer: &memory.buffer, offset: start, len: end - start })
    }

    /// A dispatch that somebody waits for.
    fn call(&self, gpu: &Gpu, call: &mut Call<'_, '_>, deadline: Deadline, left: &AtomicBool) -> Result<Ran, DeviceError> {
        let mut ready = self.ready(call.code)?.current();
        loop {
            match self.call_once(gpu, ready, call, deadline, left)? {
                Ended::Well(device_ns) => return Ok(self.ran(call.code, ready, call.launch, call.groups.clone(), device_ns)),
                Ended::OutOfRounds => ready = ready.longer(gpu)?,
            }
        }
    }

    fn call_once(
        &self,
        gpu: &Gpu,
        ready: &Ready,
        call: &mut Call<'_, '_>,
        deadline: Deadline,
        left: &AtomicBool,
    ) -> Result<Ended, DeviceError> {
        let lengths: Vec<u64> = call
            .bindings
            .iter()
            .map(|binding| match binding {
                Binding::In(bytes) => bytes.len() as u64,
                Binding::InOut(bytes) | Binding::Out(bytes) => bytes.len() as u64,
                Binding::Memory(span) => span.len(),
            })
            .collect();
        check(ready, call.launch, &call.groups, &lengths)?;
        // Buffers for the caller's slices; what they start with is on its way before the commands are.
        let mut own: Vec<Option<Pooled>> = Vec::new();
        for (binding, length) in call.bindings.iter().zip(&lengths) {
            own.push(match binding {
                Binding::Memory(_) => None,
                Binding::In(_) | Binding::InOut(_) | Binding::Out(_) => Some(gpu.take(room(*length), Use::Storage)?),
            });
        }
        let mut places = Vec::new();
        let mut read_bytes = trap_room(ready);
        for ((binding, own), length) in call.bindings.iter().zip(&own).zip(&lengths) {
            places.push(match (binding, own) {
                (Binding::Memory(span), _) => self.place(span)?,
                (Binding::In(_) | Binding::InOut(_) | Binding::Out(_), Some(own)) => Place::of(own, *length),
                (Binding::In(_) | Binding::InOut(_) | Binding::Out(_), None) => unreachable!("every slice has a buffer"),
            });
            if matches!(binding, Binding::InOut(_) | Binding::Out(_)) {
                read_bytes += room(*length);
            }
        }
        not_aliased(ready, &places)?;
        let mut batch = Batch::new(gpu, read_bytes, 1)?;
        for (binding, place) in call.bindings.iter().zip(&places) {
            match binding {
                Binding::In(bytes) => upload(gpu, place.buffer, bytes),
                Binding::InOut(bytes) => upload(gpu, place.buffer, bytes),
                Binding::Out(_) if call.zero_outputs => {}
                Binding::Out(bytes) => upload(gpu, place.buffer, bytes),
                Binding::Memory(_) => {}
            }
        }
        let is_memory: Vec<bool> = call.bindings.iter().map(|binding| matches!(binding, Binding::Memory(_))).collect();
        let apart = Apart::of(&mut batch, ready, &places, &is_memory, call.zero_outputs)?;
        let bound = apart.places(&places);
        let encoded = batch.dispatch(ready, call.launch, call.groups.clone(), call.zero_outputs, &bound)?;
        let mut reads = Vec::new();
        for (n, (binding, place)) in call.bindings.iter().zip(&places).enumerate() {
            if matches!(binding, Binding::InOut(_) | Binding::Out(_)) {
                reads.push((n, batch.read(place)));
            }
        }
        let bytes = batch.run(deadline, left)?;
        let words = encoded.traps.map(|read| bytes.words(read));
        let ended = ended(ready, call.launch, words, bytes.time(encoded.time));
        if let Ok(Ended::Well(_)) = ended {
            apart.put_back(gpu, &places, deadline, left)?;
        }
        drop(places);
        if let Ok(Ended::Well(_)) = ended {
            for (n, read) in reads {
                if let Binding::InOut(slice) | Binding::Out(slice) = &mut call.bindings[n] {
                    slice.copy_from_slice(bytes.read(read));
                }
            }
        }
        gpu.give_back(own.into_iter().flatten().chain(apart.into_buffers()).collect());
        ended
    }

    fn ran(&self, code: &Code, ready: &Ready, launch: &Launch, groups: Range<u64>, device_ns: Option<u64>) -> Ran {
        Ran {
            device: self.info.id,
            generation: code.generation(),
            workgroup: launch.workgroup_size,
            grid: launch.grid,
            groups,
            profile: ready.profile.clone(),
            threads: 1,
            lowering: Arc::from(LOWERING),
            code: Some(ready.hash),
            ulp: None,
            cache_hit: true,
            device_ns,
        }
    }

    fn run_steps(&self, gpu: &Gpu, job: &mut Job, left: &AtomicBool) -> Result<Done, DeviceError> {
        while job.next < job.steps.len() {
            job.ticket.still_wanted()?;
            gpu.alive()?;
            let end = self.batch_end(job)?;
            self.run_batch(gpu, job, end, left)?;
            job.next = end;
        }
        job.ticket.still_wanted()?;
        Ok(std::mem::take(&mut job.done))
    }

    /// The end of the steps that can go in one submission.
    fn batch_end(&self, job: &Job) -> Result<usize, DeviceError> {
        for (n, step) in job.steps.iter().enumerate().skip(job.next) {
            if let Step::Dispatch { code, .. } = step
                && (job.ticket.deadline.0.is_some() || self.ready(code)?.layout.trap_words() > 0)
            {
                return Ok(n + 1);
            }
        }
        Ok(job.steps.len())
    }

    fn run_batch(&self, gpu: &Gpu, job: &mut Job, end: usize, left: &AtomicBool) -> Result<(), DeviceError> {
        let steps = &job.steps[job.next..end];
        let deadline = job.ticket.deadline;
        let read_bytes = steps.iter().map(|step| match step {
            Step::Read(span) => room(span.len()),
            Step::Dispatch { code, .. } => self.ready(code).map_or(0, trap_room),
            Step::Write { .. } | Step::Copy { .. } => 0,
        });
        let dispatches = steps.iter().filter(|step| matches!(step, Step::Dispatch { .. })).count();
        let mut batch = Batch::new(gpu, read_bytes.sum(), dispatches)?;
        let mut watched = None;
        let mut reads = Vec::new();
        let mut failed = None;
        let mut ran = Vec::new();
        for step in steps {
            match self.encode(step, &mut batch) {
                Ok(Encoded::Nothing) => {}
                Ok(Encoded::Read(read)) => reads.push(read),
                Ok(Encoded::Dispatch(one, time)) => ran.push((one, time)),
                Ok(Encoded::Watched(one)) => watched = Some((step, one)),
                // What comes before it has run when it fails.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let bytes = batch.run(deadline, left)?;
        let mut ran: Vec<Ran> = ran.into_iter().map(|(ran, time)| Ran { device_ns: bytes.time(time), ..ran }).collect();
        if let Some((step, watched)) = watched {
            let (words, device_ns) = (bytes.words(watched.traps), bytes.time(watched.time));
            ran.push(self.see_to(gpu, step, watched, (words, device_ns), deadline, left)?);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        job.done.reads.extend(reads.into_iter().map(|read| bytes.read(read).to_vec()));
        job.done.ran.extend(ran);
        Ok(())
    }

    /// Ends a dispatch that may have trapped or run out of rounds: with what it has written, or once more.
    fn see_to<'a>(
        &'a self,
        gpu: &Gpu,
        step: &'a Step,
        mut watched: Watched<'a>,
        mut seen: (Vec<u32>, Option<u64>),
        deadline: Deadline,
        left: &AtomicBool,
    ) -> Result<Ran, DeviceError> {
        let Step::Dispatch { code, launch, groups, zero_outputs, bindings } = step else {
            unreachable!("only dispatches are watched")
        };
        loop {
            let Watched { ready, apart, .. } = watched;
            let places = bindings.iter().map(|span| self.place(span)).collect::<Result<Vec<_>, _>>()?;
            let ended = ended(ready, launch, Some(seen.0), seen.1);
            if let Ok(Ended::Well(_)) = ended {
                apart.put_back(gpu, &places, deadline, left)?;
            }
            gpu.give_back(apart.into_buffers());
            match ended? {
                Ended::Well(device_ns) => return Ok(self.ran(code, ready, launch, groups.clone(), device_ns)),
                Ended::OutOfRounds => {
                    let ready = ready.longer(gpu)?;
                    let mut batch = Batch::new(gpu, trap_room(ready), 1)?;
                    let dispatch = Dispatch { ready, launch, groups, zero_outputs: *zero_outputs };
                    let (Some(again), _) = self.encode_dispatch(&mut batch, dispatch, bindings)? else {
                        unreachable!("a dispatch that counts rounds is watched")
                    };
                    let bytes = batch.run(deadline, left)?;
                    seen = (bytes.words(again.traps), bytes.time(again.time));
                    watched = again;
                }
            }
        }
    }

    /// A dispatch over memory.
    fn encode_dispatch<'a>(
        &self,
        batch: &mut Batch<'_>,
        dispatch: Dispatch<'a>,
        bindings: &[Span],
    ) -> Result<(Option<Watched<'a>>, Option<u32>), DeviceError> {
        let Dispatch { ready, launch, groups, zero_outputs } = dispatch;
        let lengths: Vec<u64> = bindings.iter().map(Span::len).collect();
        let places = bindings.iter().map(|span| self.place(span)).collect::<Result<Vec<_>, _>>()?;
        check(ready, launch, groups, &lengths)?;
        not_aliased(ready, &places)?;
        let apart = Apart::of(batch, ready, &places, &vec![true; places.len()], zero_outputs)?;
        let steps::Encoded { traps, time } =
            batch.dispatch(ready, launch, groups.clone(), zero_outputs, &apart.places(&places))?;
        Ok((traps.map(|traps| Watched { ready, traps, time, apart }), time))
    }

    fn encode<'a>(&self, step: &'a Step, batch: &mut Batch<'_>) -> Result<Encoded<'a>, DeviceError> {
        match step {
            Step::Dispatch { code, launch, groups, zero_outputs, bindings } => {
                let ready = self.ready(code)?.current();
                let dispatch = Dispatch { ready, launch, groups, zero_outputs: *zero_outputs };
                match self.encode_dispatch(batch, dispatch, bindings)? {
                    (Some(watched), _) => Ok(Encoded::Watched(watched)),
                    (None, time) => Ok(Encoded::Dispatch(self.ran(code, ready, launch, groups.clone(), None), time)),
                }
            }
            Step::Write { to, bytes } => {
                let place = self.place(to)?;
                expect_length(to, bytes.len() as u64)?;
                batch.write(&place, bytes)?;
                Ok(Encoded::Nothing)
            }
            Step::Copy { from, to } => {
                let (source, target) = (self.place(from)?, self.place(to)?);
                expect_length(to, from.len())?;
                batch.copy(&source, &target)?;
                Ok(Encoded::Nothing)
            }
            Step::Read(span) => Ok(Encoded::Read(batch.read(&self.place(span)?))),
        }
    }
}

/// What a step has become.
enum Encoded<'a> {
    Nothing,
    /// The number of the read.
    Read(usize),
    /// What ran, and the place of its time.
    Dispatch(Ran, Option<u32>),
    /// A dispatch that is looked at when it has ended.
    Watched(Watched<'a>),
}

/// A dispatch over memory.
struct Dispatch<'a> {
    ready: &'a Ready,
    launch: &'a Launch,
    groups: &'a Range<u64>,
    zero_outputs: bool,
}

/// One that may not end well.
struct Watched<'a> {
    ready: &'a Ready,
    /// The read that has its traps.
    traps: usize,
    /// The place of its time.
    time: Option<u32>,
    apart: Apart,
}

/// Bytes that the traps of a dispatch take where they are read.
fn trap_room(ready: &Ready) -> u64 {
    room(4 * ready.layout.trap_words() as u64)
}

fn expect_length(span: &Span, size: u64) -> Result<(), DeviceError> {
    match span.len() == size {
        true => Ok(()),
        false => Err(DeviceError::OutOfRange { offset: span.range.start, length: span.len(), size }),
    }
}

/// What a device checks of a dispatch.
fn check(ready: &Ready, launch: &Launch, groups: &Range<u64>, lengths: &[u64]) -> Result<(), DeviceError> {
    if lengths.len() != ready.bound.len() {
        let message = format!("{} bindings for a kernel with {}", lengths.len(), ready.bound.len());
        return Err(DeviceError::Other(message));
    }
    for (length, i) in lengths.iter().zip(&ready.bound) {
        let (length, size) = (*length, launch.bytes[*i]);
        if length != size {
            return Err(DeviceError::OutOfRange { offset: 0, length, size });
        }
    }
    if groups.start > groups.end || groups.end > launch.groups().into() {
        let message = format!("workgroups {} to {} of {}", groups.start, groups.end, launch.groups());
        return Err(DeviceError::Other(message));
    }
    Ok(())
}

fn not_aliased(ready: &Ready, places: &[Place<'_>]) -> Result<(), DeviceError> {
    for (n, (one, access)) in places.iter().zip(&ready.access).enumerate() {
        for (other, other_access) in places.iter().zip(&ready.access).skip(n + 1) {
            let overlap = one.number == other.number
                && one.offset < other.offset + other.len
                && other.offset < one.offset + one.len
                && one.len > 0
                && other.len > 0;
            if overlap && (access.is_output() || other_access.is_output()) {
                return Err(DeviceError::Aliased);
            }
        }
    }
    Ok(())
}

/// How a dispatch has ended that did not trap.
enum Ended {
    /// As it should, after so many nanoseconds of the device's.
    Well(Option<u64>),
    /// The driver has ended loops: nothing that was written means anything.
    OutOfRounds,
}

/// How a dispatch has ended, by the words of its traps.
fn ended(ready: &Ready, launch: &Launch, words: Option<Vec<u32>>, device_ns: Option<u64>) -> Result<Ended, DeviceError> {
    let words = words.unwrap_or_default();
    if ready.layout.is_out_of_rounds(&words) {
        return Ok(Ended::OutOfRounds);
    }
    let Some((tag, number)) = ready.layout.trap(&words) else { return Ok(Ended::Well(device_ns)) };
    let counts = [0, 1].map(|axis| launch.grid[axis].saturating_mul(launch.workgroup_size[axis]).max(1));
    let invocation = [number % counts[0], number / counts[0] % counts[1], number / counts[0] / counts[1]];
    Err(DeviceError::Trap { tag, invocation })
}
