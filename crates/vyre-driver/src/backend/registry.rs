//! Which backends this program was built with, and opening them.
//!
//! A backend crate submits a [`BackendRegistration`] (`inventory::submit!`); whoever depends on the crate has the backend. Listing
//! touches no device: only [`acquire`] and its kin open one, and give it with grid barriers made possible by [`wrap_grid_sync_split`].

use super::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ReadyPending, Resource, TimedDispatchResult,
    VyreBackend, private,
};
use crate::grid_sync;
use crate::observability::{self, Counters, total, total_borrowed};
use crate::pipeline::PipelineCacheSnapshot;
use std::collections::HashSet;
use std::sync::Arc;
use vyre_foundation::ir::{OpId, Program};

/// A backend that can be opened.
#[derive(Debug)]
pub struct BackendRegistration {
    /// The id of the backend that it opens.
    pub id: &'static str,
    /// Smaller is tried first.
    pub precedence: u32,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Opens the device.
    pub open: fn() -> Result<Box<dyn VyreBackend>, BackendError>,
}

inventory::collect!(BackendRegistration);

/// Every backend there is, preferred ones first.
#[must_use]
pub fn registered_backends() -> Vec<&'static BackendRegistration> {
    let mut all: Vec<&BackendRegistration> = inventory::iter::<BackendRegistration>.into_iter().collect();
    all.sort_by_key(|registration| (registration.precedence, registration.id));
    all
}

/// Opens the backend with this id.
pub fn acquire(id: &str) -> Result<Box<dyn VyreBackend>, BackendError> {
    let all = registered_backends();
    match all.iter().find(|registration| registration.id == id) {
        Some(registration) => (registration.open)().map(wrap_grid_sync_split),
        None => {
            Err(BackendError::UnknownBackend { id: id.into(), known: all.iter().map(|registration| registration.id).collect() })
        }
    }
}

/// Opens the first backend that can be opened.
pub fn acquire_preferred() -> Result<Box<dyn VyreBackend>, BackendError> {
    acquire_preferred_where(|_| Ok(()))
}

/// Opens the first backend that can be opened and that `fits` accepts; otherwise the error says why each was passed over.
pub fn acquire_preferred_where(
    mut fits: impl FnMut(&dyn VyreBackend) -> Result<(), String>,
) -> Result<Box<dyn VyreBackend>, BackendError> {
    let mut passed_over = Vec::new();
    for registration in registered_backends() {
        let why = match (registration.open)().map(wrap_grid_sync_split) {
            Ok(backend) => match fits(&*backend) {
                Ok(()) => return Ok(backend),
                Err(why) => why,
            },
            Err(error) => error.message(),
        };
        passed_over.push((registration.id.to_string(), why));
    }
    Err(BackendError::NoBackend { passed_over })
}

/// The same backend, which runs programs with grid barriers as several dispatches if it cannot run them as one.
#[must_use]
pub fn wrap_grid_sync_split(backend: Box<dyn VyreBackend>) -> Box<dyn VyreBackend> {
    let counters = observability::of_backend(backend.id());
    Box::new(GridSyncSplit { inner: backend, counters })
}

struct GridSyncSplit {
    inner: Box<dyn VyreBackend>,
    counters: &'static Counters,
}

impl GridSyncSplit {
    fn splits(&self, program: &Program) -> bool {
        !self.inner.supports_grid_sync() && self.inner.allows_host_grid_sync_split() && grid_sync::contains_grid_sync(program)
    }
}

fn borrowed(inputs: &[Vec<u8>]) -> Vec<&[u8]> {
    inputs.iter().map(Vec::as_slice).collect()
}

impl private::Sealed for GridSyncSplit {}

// A method that is not forwarded would silently be the default of the trait.
#[deny(clippy::missing_trait_methods)]
impl VyreBackend for GridSyncSplit {
    fn id(&self) -> &'static str {
        self.inner.id()
    }

    fn version(&self) -> &'static str {
        self.inner.version()
    }

    fn device_fingerprint(&self) -> String {
        self.inner.device_fingerprint()
    }

    fn device_name(&self) -> String {
        self.inner.device_name()
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.counters.dispatch(config, total(inputs), || match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split(&*self.inner, program, &borrowed(inputs), config),
            false => self.inner.dispatch(program, inputs, config),
        })
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        self.counters.dispatch(config, total(inputs), || match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split(&*self.inner, program, inputs, config),
            false => self.inner.dispatch_borrowed(program, inputs, config),
        })
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.counters.dispatch_into(config, total(inputs), outputs, |outputs| match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split_into(&*self.inner, program, inputs, config, outputs),
            false => self.inner.dispatch_borrowed_into(program, inputs, config, outputs),
        })
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.counters.dispatch(config, total(inputs), || match self.splits(program) {
            true => grid_sync::dispatch_with_grid_sync_split_timed(&*self.inner, program, inputs, config),
            false => self.inner.dispatch_borrowed_timed(program, inputs, config),
        })
    }

    fn dispatch_async(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.counters.begin_dispatch(config, total(inputs), || match self.splits(program) {
            true => Ok(Box::new(ReadyPending { outputs: self.dispatch(program, inputs, config)? })),
            false => self.inner.dispatch_async(program, inputs, config),
        })
    }

    fn dispatch_borrowed_async(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        self.counters.begin_dispatch(config, total(inputs), || match self.splits(program) {
            true => Ok(Box::new(ReadyPending { outputs: self.dispatch_borrowed(program, inputs, config)? })),
            false => self.inner.dispatch_borrowed_async(program, inputs, config),
        })
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        if self.splits(program) { Ok(None) } else { self.inner.compile_native(program, config) }
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        self.inner.pipeline_cache_snapshot()
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        self.inner.allocate_resident(byte_len)
    }

    fn upload_resident(&self, resource: &Resource, bytes: &[u8]) -> Result<(), BackendError> {
        self.inner.upload_resident(resource, bytes)
    }

    fn upload_resident_many(&self, uploads: &[(&Resource, &[u8])]) -> Result<(), BackendError> {
        self.inner.upload_resident_many(uploads)
    }

    fn upload_resident_at(&self, resource: &Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), BackendError> {
        self.inner.upload_resident_at(resource, dst_offset_bytes, bytes)
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        self.inner.upload_resident_at_many(uploads)
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        self.inner.download_resident(resource)
    }

    fn download_resident_range(&self, resource: &Resource, offset: usize, length: usize) -> Result<Vec<u8>, BackendError> {
        self.inner.download_resident_range(resource, offset, length)
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        self.inner.download_resident_ranges(ranges)
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.inner.free_resident(resource)
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        self.counters.dispatch(config, total_borrowed(resources), || match self.splits(program) {
            true => grid_sync::dispatch_resident_with_grid_sync_split_timed(&*self.inner, program, resources, config),
            false => self.inner.dispatch_resident_timed(program, resources, config),
        })
    }

    fn supported_ops(&self) -> &HashSet<OpId> {
        self.inner.supported_ops()
    }

    fn supports_subgroup_ops(&self) -> bool {
        self.inner.supports_subgroup_ops()
    }

    fn supports_f16(&self) -> bool {
        self.inner.supports_f16()
    }

    fn supports_bf16(&self) -> bool {
        self.inner.supports_bf16()
    }

    fn supports_f64(&self) -> bool {
        self.inner.supports_f64()
    }

    fn supports_tensor_cores(&self) -> bool {
        self.inner.supports_tensor_cores()
    }

    fn supports_async_compute(&self) -> bool {
        self.inner.supports_async_compute()
    }

    fn supports_indirect_dispatch(&self) -> bool {
        self.inner.supports_indirect_dispatch()
    }

    fn supports_speculation(&self) -> bool {
        self.inner.supports_speculation()
    }

    fn supports_persistent_thread_dispatch(&self) -> bool {
        self.inner.supports_persistent_thread_dispatch()
    }

    fn supports_grid_sync(&self) -> bool {
        self.inner.supports_grid_sync()
    }

    fn allows_host_grid_sync_split(&self) -> bool {
        self.inner.allows_host_grid_sync_split()
    }

    fn is_distributed(&self) -> bool {
        self.inner.is_distributed()
    }

    fn max_workgroup_size(&self) -> [u32; 3] {
        self.inner.max_workgroup_size()
    }

    fn max_compute_workgroups_per_dimension(&self) -> u32 {
        self.inner.max_compute_workgroups_per_dimension()
    }

    fn max_compute_invocations_per_workgroup(&self) -> u32 {
        self.inner.max_compute_invocations_per_workgroup()
    }

    fn subgroup_size(&self) -> Option<u32> {
        self.inner.subgroup_size()
    }

    fn max_storage_buffer_bytes(&self) -> u64 {
        self.inner.max_storage_buffer_bytes()
    }

    fn prepare(&self) -> Result<(), BackendError> {
        self.inner.prepare()
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.inner.flush()
    }

    fn shutdown(&self) -> Result<(), BackendError> {
        self.inner.shutdown()
    }

    fn device_lost(&self) -> bool {
        self.inner.device_lost()
    }

    fn try_recover(&self) -> Result<(), BackendError> {
        self.inner.try_recover()
    }

    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        self.inner.backend_metric_snapshot()
    }
}
