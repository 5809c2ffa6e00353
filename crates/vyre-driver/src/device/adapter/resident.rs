//! Data that stays on the device.
//!
//! The table of handles has a lock that is held only to look things up. What a handle stands for has one of its own, which a dispatch
//! that the caller waits for holds while it runs: to read what it only reads, to write the rest. So dispatches that write what others
//! use come one after the other, and all others run at the same time. Locks of one dispatch are taken in the order of handles, so that
//! no two wait for each other. Submissions hold the locks, to read, from looking up the memory until the device has the steps: from then
//! on the device keeps their order, and a dispatch that puts other memory in the place of a handle's comes before or after.

use super::compiled::Compiled;
use super::pending::{Asked, Pending};
use super::run::Bindings;
use super::{Shared, in_time};
use crate::backend::{BackendError, DispatchConfig, OutputBuffers, ResidentError, ResidentRange, ResidentStep, Resource};
use crate::device::{Binding, Deadline, Memory, Ran, Span, Step};
use crate::launch::{Planned, require_determinism};
use crate::resident::{ResidentTable, ResidentUsage, bind, expect_bound, plan_bound};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::launch::Launch;

/// What a handle stands for: memory of the device, which a dispatch can replace by other memory of the same size.
type Slot = Arc<RwLock<Memory>>;

#[derive(Default)]
pub(super) struct Resident {
    table: Mutex<ResidentTable<Slot>>,
}

impl Resident {
    pub fn table(&self) -> MutexGuard<'_, ResidentTable<Slot>> {
        // The table is whole at any time.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn free(&self, resource: &Resource) -> Result<(), BackendError> {
        let freed = self.table().free(resource)?;
        // A dispatch that still runs on it keeps it until it ends.
        drop(freed);
        Ok(())
    }

    pub fn size(&self, resource: &Resource) -> Result<u64, BackendError> {
        Ok(self.table().size(resource)?)
    }

    pub fn usage(&self) -> ResidentUsage {
        self.table().usage()
    }

    /// What handles stand for.
    fn slots<'a>(&self, resources: impl Iterator<Item = &'a Resource>) -> Result<Slots, BackendError> {
        let table = self.table();
        let mut slots = BTreeMap::new();
        for resource in resources {
            let slot = table.get(resource)?;
            if let Resource::Resident(handle) = resource {
                slots.entry(*handle).or_insert_with(|| slot.clone());
            }
        }
        Ok(Slots(slots))
    }

    /// The shape of a dispatch on resources, and what the handles among them stand for. Everything that can be wrong with them is found
    /// here.
    fn plan(&self, program: &Program, resources: &[Resource], config: &DispatchConfig) -> Result<(Launch, Used), BackendError> {
        let table = self.table();
        let launch = table.plan(program, resources, config)?;
        let mut used = BTreeMap::new();
        for (i, resource) in bind(program, resources)? {
            if let Resource::Resident(handle) = resource {
                used.insert(*handle, (table.get(resource)?.clone(), program.buffers()[i].access));
            }
        }
        Ok((launch, Used(used)))
    }
}

/// What steps use by handle.
struct Slots(BTreeMap<u64, Slot>);

/// The memory that handles stand for as long as this is held.
struct Held<'a>(BTreeMap<u64, RwLockReadGuard<'a, Memory>>);

impl Slots {
    fn hold(&self) -> Held<'_> {
        let held = self.0.iter().map(|(handle, slot)| (*handle, slot.read().unwrap_or_else(PoisonError::into_inner)));
        Held(held.collect())
    }
}

impl Held<'_> {
    /// The memory of a part of a handle; without a length, of all that follows.
    fn span(&self, resource: &Resource, offset: usize, length: Option<u64>) -> Result<Span, ResidentError> {
        let Resource::Resident(handle) = resource else { return Err(ResidentError::NotResident) };
        let memory = self.0.get(handle).ok_or(ResidentError::Foreign(*handle))?;
        let (offset, size) = (offset as u64, memory.bytes());
        let length = length.unwrap_or(size.saturating_sub(offset));
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(Span { memory: (*memory).clone(), range: offset..end }),
            Some(_) | None => Err(ResidentError::OutOfRange { handle: *handle, offset, length, size }),
        }
    }

    fn range(&self, range: &ResidentRange<'_>) -> Result<Span, ResidentError> {
        self.span(range.resource, range.offset, range.length.map(|length| length as u64))
    }
}

/// What a dispatch uses by handle, and how.
struct Used(BTreeMap<u64, (Slot, Access)>);

enum Guard<'a> {
    Read(RwLockReadGuard<'a, Memory>),
    Write(RwLockWriteGuard<'a, Memory>, Access),
}

impl Guard<'_> {
    fn memory(&self) -> &Memory {
        match self {
            Guard::Read(memory) => memory,
            Guard::Write(memory, _) => memory,
        }
    }
}

impl Used {
    /// Waits until nobody else writes what the dispatch uses or uses what it writes.
    fn lock(&self) -> BTreeMap<u64, Guard<'_>> {
        self.0
            .iter()
            .map(|(handle, (slot, access))| {
                let guard = match access.is_output() {
                    true => Guard::Write(slot.write().unwrap_or_else(PoisonError::into_inner), *access),
                    false => Guard::Read(slot.read().unwrap_or_else(PoisonError::into_inner)),
                };
                (*handle, guard)
            })
            .collect()
    }
}

impl Shared {
    pub fn allocate(&self, byte_len: usize) -> Result<Resource, BackendError> {
        let generation = self.alive()?;
        let requested = byte_len as u64;
        // What no dispatch could bind is not worth asking for: a system may promise memory that it does not have.
        if requested > self.info.limits.buffer_bytes {
            return Err(BackendError::OutOfMemory { requested });
        }
        let memory = self.device.allocate(requested);
        let memory = memory.map_err(|error| self.failure(error, generation, &DispatchConfig::default()))?;
        // Somebody else may have opened it again.
        self.adopt(memory.generation());
        let mut table = self.resident.table();
        match memory.generation() == self.generation() {
            true => table.insert(Arc::new(RwLock::new(memory)), requested),
            false => Err(BackendError::DeviceLost { reason: "it was lost during this call".into() }),
        }
    }

    /// Nothing is written if one of the ranges is wrong.
    pub fn upload(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        let slots = self.resident.slots(uploads.iter().map(|(resource, _, _)| *resource))?;
        let held = slots.hold();
        let steps = uploads.iter().map(|(resource, offset, bytes)| {
            let to = held.span(resource, *offset, Some(bytes.len() as u64))?;
            Ok(Step::Write { to, bytes: Arc::from(*bytes) })
        });
        let steps = steps.collect::<Result<_, ResidentError>>()?;
        self.submit_and_wait(held, steps, Deadline::NONE, &DispatchConfig::default()).map(|_| ())
    }

    pub fn download(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        let slots = self.resident.slots(ranges.iter().map(|(resource, _, _)| *resource))?;
        let held = slots.hold();
        let spans = ranges.iter().map(|(resource, offset, length)| held.span(resource, *offset, Some(*length as u64)));
        let steps = spans.map(|span| span.map(Step::Read)).collect::<Result<_, ResidentError>>()?;
        let lengths: Vec<u64> = ranges.iter().map(|(_, _, length)| *length as u64).collect();
        let done = self.submit_and_wait(held, steps, Deadline::NONE, &DispatchConfig::default())?;
        complete(&lengths, done.reads)
    }

    pub fn copy(&self, from: (&Resource, usize), to: (&Resource, usize), length: usize) -> Result<(), BackendError> {
        let slots = self.resident.slots([from.0, to.0].into_iter())?;
        let held = slots.hold();
        let span = |(resource, offset): (&Resource, usize)| held.span(resource, offset, Some(length as u64));
        let steps = vec![Step::Copy { from: span(from)?, to: span(to)? }];
        self.submit_and_wait(held, steps, Deadline::NONE, &DispatchConfig::default()).map(|_| ())
    }

    /// Runs on resources; the outputs are of the buffers that are not resident. After an error these mean nothing, and resident memory is
    /// as it was, unless the device is lost.
    pub fn dispatch_resident(
        &self,
        compiled: &Compiled,
        deadline: Deadline,
        resources: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<Ran, BackendError> {
        let generation = self.alive()?;
        let program = compiled.program();
        let (launch, used) = self.resident.plan(program, resources, config)?;
        self.fits(compiled.kernel(), &launch)?;
        let bound = bind(program, resources)?;
        let access = |i: usize| program.buffers()[i].access;
        // Resident data is not looked at before the dispatch.
        let inputs: Vec<&[u8]> = bound
            .iter()
            .filter(|(i, _)| access(*i).is_input())
            .map(|(_, resource)| match resource {
                Resource::Borrowed(bytes) => bytes.as_slice(),
                Resource::Resident(_) => &[],
            })
            .collect();
        require_determinism(program, Planned::Launch(&launch, &inputs), config)?;
        in_time(deadline, config)?;
        let mut guards = used.lock();
        let failure = |error| self.failure(error, generation, config);
        // A call that is refused has written nothing; one that does not end as it should has.
        let uses = compiled.kernel().uses;
        let one_call = self.is_whole(compiled, &launch, deadline).map_err(failure)?;
        let may_fail = uses.trap || uses.grid_sync || deadline.0.is_some() || !one_call;
        let copies = if may_fail { self.copies(&guards, deadline, config)? } else { BTreeMap::new() };
        let memory = |handle: &u64| copies.get(handle).unwrap_or_else(|| guards[handle].memory()).whole();
        // Room for what comes back.
        outputs.clear();
        for (i, resource) in &bound {
            if let (Resource::Borrowed(bytes), true) = (resource, access(*i).is_output()) {
                let requested = launch.bytes[*i];
                let no_room = BackendError::OutOfMemory { requested };
                outputs.push(match access(*i).is_input() {
                    true => bytes.clone(),
                    false => usize::try_from(requested).ok().and_then(|n| bytemuck::try_zeroed_vec(n).ok()).ok_or(no_room)?,
                });
            }
        }
        let mut written = outputs.iter_mut();
        let mut bindings: Bindings<'_> = bound
            .iter()
            .map(|(i, resource)| match resource {
                Resource::Resident(handle) => Binding::Memory(memory(handle)),
                Resource::Borrowed(bytes) => match access(*i) {
                    Access::Read | Access::Uniform => Binding::In(bytes),
                    Access::ReadWrite => Binding::InOut(written.next().expect("there is room for it")),
                    Access::Output => Binding::Out(written.next().expect("there is room for it")),
                    Access::Workgroup => unreachable!("workgroup memory is not bound"),
                },
            })
            .collect();
        // Copies are new memory, and so are the bytes that come back.
        let in_place = guards.values().any(|guard| matches!(guard, Guard::Write(_, Access::Output))) && copies.is_empty();
        let zero_outputs = in_place && !compiled.covers(&launch);
        let ran = self.execute(compiled, &launch, zero_outputs, &mut bindings, deadline);
        drop(bindings);
        let ran = ran.map_err(failure)?;
        for (handle, copy) in copies {
            if let Some(Guard::Write(memory, _)) = guards.get_mut(&handle) {
                **memory = copy;
            }
        }
        Ok(ran)
    }

    /// New memory for everything that a dispatch writes, with the bytes of what it also reads.
    fn copies(
        &self,
        guards: &BTreeMap<u64, Guard<'_>>,
        deadline: Deadline,
        config: &DispatchConfig,
    ) -> Result<BTreeMap<u64, Memory>, BackendError> {
        let generation = self.alive()?;
        let mut copies = BTreeMap::new();
        let mut steps = Vec::new();
        for (handle, guard) in guards {
            if let Guard::Write(memory, access) = guard {
                let copy = self.device.allocate(memory.bytes()).map_err(|error| self.failure(error, generation, config))?;
                if access.is_input() {
                    steps.push(Step::Copy { from: memory.whole(), to: copy.whole() });
                }
                copies.insert(*handle, copy);
            }
        }
        if !steps.is_empty() {
            self.submit_and_wait((), steps, deadline, config)?;
        }
        Ok(copies)
    }

    /// Begins steps on resident memory, all in one submission.
    pub fn sequence(
        self: &Arc<Self>,
        deadline: Deadline,
        steps: &[ResidentStep<'_>],
        config: &DispatchConfig,
        compile: impl Fn(&Program, &DispatchConfig) -> Result<(Arc<Compiled>, bool), BackendError>,
    ) -> Result<Pending, BackendError> {
        let generation = self.alive()?;
        in_time(deadline, config)?;
        // Compiling takes long and is done before anything is locked.
        let mut compiled = Vec::new();
        let mut resources: Vec<&Resource> = Vec::new();
        for step in steps {
            match step {
                ResidentStep::Upload { to, bytes: _ } => resources.push(to.resource),
                ResidentStep::Copy { from, to } => resources.extend([from.resource, to.resource]),
                ResidentStep::Download(range) => resources.push(range.resource),
                ResidentStep::Dispatch { program, config, bindings } => {
                    resources.extend(bindings.iter().map(|range| range.resource));
                    compiled.push(compile(program, config)?);
                }
            }
        }
        let slots = self.resident.slots(resources.into_iter())?;
        let held = slots.hold();
        let mut compiled = compiled.iter();
        let mut asked = Asked::default();
        let mut begun = Vec::with_capacity(steps.len());
        for step in steps {
            match step {
                ResidentStep::Upload { to, bytes } => {
                    let to = held.span(to.resource, to.offset, Some(bytes.len() as u64))?;
                    begun.push(Step::Write { to, bytes: Arc::from(*bytes) });
                }
                ResidentStep::Copy { from, to } => {
                    let from = held.range(from)?;
                    let to = held.span(to.resource, to.offset, Some(from.len()))?;
                    begun.push(Step::Copy { from, to });
                }
                ResidentStep::Download(range) => {
                    let span = held.range(range)?;
                    asked.lengths.push(span.len());
                    begun.push(Step::Read(span));
                }
                ResidentStep::Dispatch { program: _, config: of_step, bindings } => {
                    let Some((compiled, hit)) = compiled.next() else { continue };
                    let spans = bindings.iter().map(|range| held.range(range)).collect::<Result<Vec<Span>, _>>()?;
                    let launch = self.sequence_launch(compiled, of_step, bindings, &spans)?;
                    let failure = |error| self.failure(error, generation, config);
                    let pieces = self.pieces(compiled, &launch, deadline).map_err(failure)?;
                    let (code, was_there) = compiled.code(self).map_err(failure)?;
                    asked.dispatches.push((pieces.len(), *hit && was_there));
                    let zero_outputs = !compiled.covers(&launch);
                    let launch = Arc::new(launch);
                    begun.extend(pieces.into_iter().map(|groups| Step::Dispatch {
                        code: code.clone(),
                        launch: launch.clone(),
                        zero_outputs: zero_outputs && groups.start == 0,
                        groups,
                        bindings: spans.clone(),
                    }));
                }
            }
        }
        let pending = self.pending(begun, asked, generation, deadline, config);
        drop(held);
        pending
    }

    /// The shape of a dispatch on parts of resident memory. Everything that can be wrong with them is found here.
    fn sequence_launch(
        &self,
        compiled: &Compiled,
        config: &DispatchConfig,
        bindings: &[ResidentRange<'_>],
        spans: &[Span],
    ) -> Result<Launch, BackendError> {
        let program = compiled.program();
        let interface = program.interface();
        expect_bound(program, spans.len())?;
        let written = |n: usize| program.buffers()[interface.bound[n]].access.is_output();
        for (n, span) in spans.iter().enumerate() {
            let alignment = self.info.limits.span_alignment.max(1);
            if !span.range.start.is_multiple_of(alignment) {
                let start = span.range.start;
                return Err(self.unsupported(format!("spans that begin at byte {start}, only at multiples of {alignment}")));
            }
            let overlaps = |m: &usize| {
                let other = &spans[*m];
                span.memory.is(&other.memory) && span.range.start < other.range.end && other.range.start < span.range.end
            };
            if (n + 1..spans.len()).any(|m| (written(n) || written(m)) && overlaps(&m))
                && let Resource::Resident(handle) = bindings[n].resource
            {
                return Err(ResidentError::Aliased(*handle).into());
            }
        }
        let sizes: Vec<Option<u64>> = spans.iter().map(|span| Some(span.len())).collect();
        let launch = plan_bound(program, &sizes, config)?;
        let unseen: Vec<&[u8]> = vec![&[]; interface.inputs.len()];
        require_determinism(program, Planned::Launch(&launch, &unseen), config)?;
        self.fits(compiled.kernel(), &launch)?;
        Ok(launch)
    }
}

/// Refuses reads that are shorter or longer than what was asked for.
pub(super) fn complete(lengths: &[u64], reads: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, BackendError> {
    if lengths.len() != reads.len() {
        return Err(BackendError::new(format!("the device gave {} results of {}", reads.len(), lengths.len())));
    }
    let wrong = lengths.iter().zip(&reads).find(|(expected, read)| **expected != read.len() as u64);
    match wrong {
        None => Ok(reads),
        Some((expected, read)) => Err(BackendError::ShortRead { expected: *expected, found: read.len() as u64 }),
    }
}
