//! The handles of data that stays on a device: who gave them out, and what they stand for.
//!
//! The upper 24 bits of a handle are the number of the table, which no other table of the process has; the lower 40 count. Numbers
//! are never used again, so that what a handle may still mean follows from its number alone: from another table it is foreign;
//! from before the last loss it is stale; otherwise it is live or was freed. Nothing is remembered about handles that are gone.

use crate::backend::{BackendError, DispatchConfig, ResidentError, Resource};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vyre_foundation::diagnostic::BufferPart;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::{Launch, check_inputs, plan};
use vyre_foundation::{Diagnostic, Location, Report};
use vyre_spec::ErrorCode;

const SERIAL_BITS: u32 = 40;
const SERIALS: u64 = 1 << SERIAL_BITS;
const TABLES: u64 = 1 << (u64::BITS - SERIAL_BITS);

/// What the handles of one instance of a backend stand for: `T` is the backend's memory. Keep it under the backend's own lock.
#[derive(Debug)]
pub struct ResidentTable<T> {
    /// In the place it has in handles; `None` until the first one.
    table: Option<u64>,
    /// By the serial part of the handle.
    live: HashMap<u64, Live<T>>,
    /// The next serial part.
    next: u64,
    /// The first serial part since the device was last opened.
    first: u64,
    usage: ResidentUsage,
}

#[derive(Debug)]
struct Live<T> {
    value: T,
    bytes: u64,
}

/// How much is resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResidentUsage {
    /// Bytes now.
    pub live_bytes: u64,
    /// Bytes at most so far.
    pub peak_bytes: u64,
    /// Handles now.
    pub live_handles: u64,
    /// Handles at most so far.
    pub peak_handles: u64,
}

impl<T> Default for ResidentTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ResidentTable<T> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        ResidentTable { table: None, live: HashMap::new(), next: 0, first: 0, usage: ResidentUsage::default() }
    }

    /// Gives out a handle for memory of so many bytes.
    ///
    /// # Errors
    ///
    /// If there are no numbers left, or the bytes of all handles cannot be counted.
    pub fn insert(&mut self, value: T, bytes: u64) -> Result<Resource, BackendError> {
        let exhausted = || BackendError::new("there are no numbers left for resident handles. Fix: start the process again");
        let Some(live_bytes) = self.usage.live_bytes.checked_add(bytes) else {
            return Err(BackendError::OutOfMemory { requested: bytes });
        };
        let table = match self.table {
            Some(table) => table,
            None => next_table().ok_or_else(exhausted)? << SERIAL_BITS,
        };
        if self.next == SERIALS {
            return Err(exhausted());
        }
        self.table = Some(table);
        let serial = self.next;
        self.next += 1;
        self.live.insert(serial, Live { value, bytes });
        self.usage.live_bytes = live_bytes;
        self.usage.peak_bytes = self.usage.peak_bytes.max(live_bytes);
        self.usage.live_handles += 1;
        self.usage.peak_handles = self.usage.peak_handles.max(self.usage.live_handles);
        Ok(Resource::Resident(table | serial))
    }

    /// What a handle stands for.
    pub fn get(&self, resource: &Resource) -> Result<&T, ResidentError> {
        Ok(&self.find(resource)?.value)
    }

    /// The bytes of a handle.
    pub fn size(&self, resource: &Resource) -> Result<u64, ResidentError> {
        Ok(self.find(resource)?.bytes)
    }

    /// Takes a handle back, with what it stood for.
    pub fn free(&mut self, resource: &Resource) -> Result<T, ResidentError> {
        let (handle, serial) = self.serial(resource)?;
        let Live { value, bytes } = self.live.remove(&serial).ok_or(ResidentError::Freed(handle))?;
        self.usage.live_bytes -= bytes;
        self.usage.live_handles -= 1;
        Ok(value)
    }

    /// Refuses the resources of a dispatch, each with whether it is written, if one of them is not live, or if one handle stands for
    /// two buffers and one of these is written.
    pub fn check_aliasing(&self, resources: &[(&Resource, bool)]) -> Result<(), ResidentError> {
        let mut written_before: HashMap<u64, bool> = HashMap::new();
        for (resource, written) in resources {
            let Resource::Resident(handle) = resource else { continue };
            self.find(resource)?;
            match written_before.get_mut(handle) {
                Some(before) if *before || *written => return Err(ResidentError::Aliased(*handle)),
                Some(_) => {}
                None => {
                    written_before.insert(*handle, *written);
                }
            }
        }
        Ok(())
    }

    /// The shape of a dispatch of a program, its constants replaced, on resources: `plan` for buffers that may be on the device.
    ///
    /// A resident buffer is as long as its memory. That must be the declared count, and the count that the caller asks for; where an
    /// `output` has neither, it is the length. Bytes of the caller's that stand for an `output` are only a place for what comes back:
    /// what they are and how many does not matter.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the resources and the launch, before anything runs.
    pub fn plan(&self, program: &Program, resources: &[Resource], config: &DispatchConfig) -> Result<Launch, BackendError> {
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
        let bound = bind(program, resources)?;
        let written = |i: usize| kernel.buffers[i].access.is_output();
        self.check_aliasing(&bound.iter().map(|(i, resource)| (*resource, written(*i))).collect::<Vec<_>>())?;
        let mut sizes = Vec::with_capacity(bound.len());
        for (i, resource) in bound {
            sizes.push(match resource {
                Resource::Borrowed(bytes) if kernel.buffers[i].access.is_input() => Some(bytes.len() as u64),
                Resource::Borrowed(_) => None,
                Resource::Resident(_) => Some(self.size(resource)?),
            });
        }
        plan_bound(program, &sizes, config)
    }

    /// The device is gone: every handle given out so far is stale. Gives what they stood for.
    pub fn lose(&mut self) -> Vec<T> {
        self.first = self.next;
        self.usage.live_bytes = 0;
        self.usage.live_handles = 0;
        self.live.drain().map(|(_, live)| live.value).collect()
    }

    /// How much is resident, and was at most.
    #[must_use]
    pub fn usage(&self) -> ResidentUsage {
        self.usage
    }

    fn find(&self, resource: &Resource) -> Result<&Live<T>, ResidentError> {
        let (handle, serial) = self.serial(resource)?;
        self.live.get(&serial).ok_or(ResidentError::Freed(handle))
    }

    /// The handle and its serial part, if this table gave it out since the device was last opened.
    fn serial(&self, resource: &Resource) -> Result<(u64, u64), ResidentError> {
        let handle = match resource {
            Resource::Resident(handle) => *handle,
            Resource::Borrowed(_) => return Err(ResidentError::NotResident),
        };
        let serial = handle % SERIALS;
        if self.table != Some(handle - serial) || serial >= self.next {
            return Err(ResidentError::Foreign(handle));
        }
        if serial < self.first {
            return Err(ResidentError::Stale(handle));
        }
        Ok((handle, serial))
    }
}

/// The buffers of a program that a dispatch on resources binds, by their place among the declarations, each with its resource.
///
/// # Errors
///
/// If there are more resources or fewer.
pub fn bind<'a>(program: &Program, resources: &'a [Resource]) -> Result<Vec<(usize, &'a Resource)>, BackendError> {
    expect_bound(program, resources.len())?;
    Ok(program.interface().bound.iter().copied().zip(resources).collect())
}

/// Refuses another number of resources than a program takes.
pub(crate) fn expect_bound(program: &Program, found: usize) -> Result<(), BackendError> {
    let takes = program.interface().bound.len();
    match takes == found {
        true => Ok(()),
        false => Err(BackendError::InvalidProgram {
            fix: format!(
                "the program takes {takes} resources, found {found}. Fix: give one per input and output buffer, in the order of bindings"
            ),
        }),
    }
}

/// The shape of a dispatch of a program, its constants replaced, on buffers of these sizes, in the order of the interface's `bound`; `None`
/// for an output that takes its length from elsewhere.
pub(crate) fn plan_bound(program: &Program, sizes: &[Option<u64>], config: &DispatchConfig) -> Result<Launch, BackendError> {
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let mut input_sizes = Vec::new();
    let mut output_sizes = Vec::new();
    let mut launch_config = config.launch();
    for (i, size) in program.interface().bound.iter().copied().zip(sizes) {
        let buffer = &kernel.buffers[i];
        match size {
            Some(size) if buffer.access.is_input() => input_sizes.push(*size),
            Some(size) => {
                output_sizes.push((i, *size));
                if buffer.count.is_none() {
                    let count = u128::from(*size) * 8 / u128::from(buffer.element.bits().unwrap_or(8).max(1));
                    // What cannot be counted is refused below: so many elements have fewer bytes.
                    let count = u32::try_from(count).unwrap_or(u32::MAX);
                    launch_config.output_counts.entry(buffer.name.as_str().to_string()).or_insert(count);
                }
            }
            None => {}
        }
    }
    check_inputs(program, &input_sizes)?;
    let launch = plan(program, &input_sizes, &launch_config)?;
    let wrong = output_sizes.into_iter().filter(|(i, size)| launch.bytes[*i] != *size).map(|(i, size)| {
        let (buffer, needed) = (&kernel.buffers[i], launch.bytes[i]);
        let message = format!(
            "the resident memory for `{}` has {size} bytes, and {} elements of {} have {needed}",
            buffer.name, launch.lengths[i], buffer.element
        );
        Diagnostic::new(ErrorCode::E0703, message)
            .at(Location::Buffer(i as u32, BufferPart::Whole))
            .expected(format!("{needed} bytes"))
            .found(format!("{size} bytes"))
    });
    let wrong: Vec<Diagnostic> = wrong.collect();
    if wrong.is_empty() { Ok(launch) } else { Err(Report::about(program, wrong).into()) }
}

/// A number that no table of the process has, from 1 on; zero would make small numbers look like handles.
fn next_table() -> Option<u64> {
    static TABLES_MADE: AtomicU64 = AtomicU64::new(0);
    // Stops at the end instead of beginning again.
    let made = TABLES_MADE.fetch_update(Relaxed, Relaxed, |made| (made + 1 < TABLES).then_some(made + 1));
    made.ok().map(|made| made + 1)
}
