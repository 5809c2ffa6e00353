//! Data that stays in the backend.
//!
//! The table of handles has a lock that is held only to look things up. Each buffer has one of its own, which a dispatch holds while
//! it runs: to read what it only reads, to write the rest. So dispatches that write what others use come one after the other, and all
//! others run at the same time. Locks of one dispatch are taken in the order of handles, so that no two wait for each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vyre_driver::resident::{ResidentTable, ResidentUsage, bind};
use vyre_driver::{BackendError, DispatchConfig, Resource};
use vyre_foundation::ir::Program;
use vyre_foundation::launch::Launch;

/// The bytes of one handle; their number never changes.
type Buffer = Arc<RwLock<Vec<u8>>>;

#[derive(Default)]
pub(super) struct ResidentMemory {
    table: Mutex<ResidentTable<Buffer>>,
}

impl ResidentMemory {
    pub fn allocate(&self, byte_len: usize) -> Result<Resource, BackendError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(byte_len).map_err(|_| BackendError::OutOfMemory { requested: byte_len as u64 })?;
        bytes.resize(byte_len, 0);
        self.table()?.insert(Arc::new(RwLock::new(bytes)), byte_len as u64)
    }

    pub fn free(&self, resource: &Resource) -> Result<(), BackendError> {
        let freed = self.table()?.free(resource)?;
        // A dispatch that still runs on it keeps it until it ends.
        drop(freed);
        Ok(())
    }

    /// Nothing is written if one of the ranges is wrong.
    pub fn upload(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        let buffers = self.ranges(uploads.iter().map(|(resource, offset, bytes)| (*resource, *offset, bytes.len())))?;
        for (buffer, (_, offset, bytes)) in buffers.iter().zip(uploads) {
            let mut buffer = buffer.write().map_err(BackendError::poisoned_lock)?;
            buffer[*offset..*offset + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    pub fn download(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        let buffer = self.table()?.get(resource)?.clone();
        let bytes = buffer.read().map_err(BackendError::poisoned_lock)?;
        Ok(bytes.clone())
    }

    pub fn download_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        let buffers = self.ranges(ranges.iter().copied())?;
        let read = buffers.iter().zip(ranges).map(|(buffer, (_, offset, length))| {
            Ok(buffer.read().map_err(BackendError::poisoned_lock)?[*offset..*offset + *length].to_vec())
        });
        read.collect()
    }

    pub fn usage(&self) -> ResidentUsage {
        // Counters are whole at any time.
        self.table.lock().unwrap_or_else(PoisonError::into_inner).usage()
    }

    /// The shape of a dispatch on resources, and the buffers that it uses. Everything that can be wrong with them is found here.
    pub fn plan(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<(Launch, Used), BackendError> {
        let table = self.table()?;
        let launch = table.plan(program, resources, config)?;
        let mut used = BTreeMap::new();
        for (i, resource) in bind(program, resources)? {
            if let Resource::Resident(handle) = resource {
                used.insert(*handle, (table.get(resource)?.clone(), program.buffers()[i].access.is_output()));
            }
        }
        Ok((launch, Used(used)))
    }

    /// The buffers of ranges that are all inside.
    fn ranges<'a>(&self, ranges: impl Iterator<Item = (&'a Resource, usize, usize)>) -> Result<Vec<Buffer>, BackendError> {
        let table = self.table()?;
        let buffers = ranges.map(|(resource, offset, length)| {
            table.check_range(resource, offset as u64, length as u64)?;
            Ok(table.get(resource)?.clone())
        });
        buffers.collect()
    }

    fn table(&self) -> Result<MutexGuard<'_, ResidentTable<Buffer>>, BackendError> {
        self.table.lock().map_err(BackendError::poisoned_lock)
    }
}

/// The buffers of a dispatch by handle, each with whether it is written.
pub(super) struct Used(BTreeMap<u64, (Buffer, bool)>);

/// The same while the dispatch runs.
pub(super) struct Locked<'a>(BTreeMap<u64, Guard<'a>>);

enum Guard<'a> {
    Read(RwLockReadGuard<'a, Vec<u8>>),
    Write(RwLockWriteGuard<'a, Vec<u8>>),
}

impl Used {
    /// Waits until nobody else writes what the dispatch uses or uses what it writes.
    pub fn lock(&self) -> Result<Locked<'_>, BackendError> {
        let guards = self.0.iter().map(|(handle, (buffer, written))| {
            let guard = match written {
                true => Guard::Write(buffer.write().map_err(BackendError::poisoned_lock)?),
                false => Guard::Read(buffer.read().map_err(BackendError::poisoned_lock)?),
            };
            Ok((*handle, guard))
        });
        Ok(Locked(guards.collect::<Result<_, BackendError>>()?))
    }
}

impl Locked<'_> {
    /// The bytes that a resource stands for.
    pub fn bytes<'a>(&'a self, resource: &'a Resource) -> &'a [u8] {
        match resource {
            Resource::Borrowed(bytes) => bytes,
            Resource::Resident(handle) => match &self.0[handle] {
                Guard::Read(bytes) => bytes,
                Guard::Write(bytes) => bytes,
            },
        }
    }

    /// Replaces the bytes of a handle that the dispatch writes.
    pub fn write(&mut self, handle: u64, result: &[u8]) {
        match self.0.get_mut(&handle) {
            Some(Guard::Write(bytes)) => bytes.copy_from_slice(result),
            Some(Guard::Read(_)) | None => unreachable!("what a dispatch writes is locked for that"),
        }
    }
}
