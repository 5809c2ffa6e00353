//! The contract of a backend.
//!
//! A backend must have an [`id`](VyreBackend::id) and [`dispatch`](VyreBackend::dispatch). Everything else has a default that builds
//! on these, or says [`BackendError::UnsupportedFeature`]: overriding a method makes it faster or possible, never different.
//!
//! **Who checks what.** Bytes are checked against the program by `vyre_foundation::launch::check_inputs` and `plan`: real backends
//! call them before anything runs. Wrappers and pass-through pipelines hand on bytes and programs as they are. A failed call leaves
//! the caller's buffers as they were.
//!
//! **Threads.** Every method may be called from several threads at once. Defaults are synchronous: `dispatch_async` gives a dispatch
//! that has ended. Backends on devices may return before the device is done, from `dispatch_async` only.
//!
//! **Counting.** Backends count nothing themselves; [`crate::observability`] says what is counted where.

mod compiled;
mod config;
mod error;
mod forward;
mod pending;
pub mod registry;
mod resource;

pub use compiled::CompiledPipeline;
pub use config::DispatchConfig;
pub use error::{BackendError, ResidentError};
pub(crate) use forward::{forward, forward_properties};
pub use pending::{PendingDispatch, ReadyPending};
pub(crate) use resource::fill_batch;
pub use resource::{OutputBuffers, ResidentRange, ResidentStep, Resource, TimedDispatchResult, fill_outputs};

use crate::device::Device;
use crate::observability::{self, total};
use crate::pipeline::PipelineCacheSnapshot;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use vyre_foundation::ir::{OpId, Program};
use vyre_spec::limits::MAX_WORKGROUP_INVOCATIONS;

/// Backends may say that they are `Sealed`; nothing asks for it.
#[doc(hidden)]
pub mod private {
    /// What a backend or pipeline may implement beside its trait.
    pub trait Sealed {}
}

/// The version of backends that have none.
pub const UNVERSIONED: &str = "";

/// Every op of the language.
fn all_ops() -> &'static HashSet<OpId> {
    static OPS: OnceLock<HashSet<OpId>> = OnceLock::new();
    OPS.get_or_init(|| OpId::all().collect())
}

fn unsupported<T>(backend: &(impl VyreBackend + ?Sized), feature: &str) -> Result<T, BackendError> {
    Err(BackendError::UnsupportedFeature { feature: feature.into(), backend: backend.id().into() })
}

pub(crate) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Refuses another number of outputs than the program has: they could not be told apart.
pub(crate) fn expect_outputs(backend: &dyn VyreBackend, expected: usize, found: usize) -> Result<(), BackendError> {
    match expected == found {
        true => Ok(()),
        false => Err(BackendError::new(format!("the backend `{}` gave {found} outputs of {expected}", backend.id()))),
    }
}

/// Something that runs programs.
pub trait VyreBackend: Send + Sync {
    // ---- identity ----

    /// Its name, unique among backends.
    fn id(&self) -> &'static str;

    /// Its version, part of every cache key. Code of a backend that does not say it is never kept on disk.
    fn version(&self) -> &'static str {
        UNVERSIONED
    }

    /// What tells this device and driver from others whose compiled code may differ; part of every cache key.
    fn device_fingerprint(&self) -> String {
        self.id().into()
    }

    /// The device, for people.
    fn device_name(&self) -> String {
        self.id().into()
    }

    /// The device that it is made of, for what this trait has no words for.
    fn device(&self) -> Option<Arc<dyn Device>> {
        None
    }

    // ---- running a program ----

    /// Runs a program. Inputs and outputs are in the order of its interface, which is that of binding numbers.
    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError>;

    /// Runs a program on bytes that the caller keeps.
    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let owned: Vec<Vec<u8>> = inputs.iter().map(|input| input.to_vec()).collect();
        observability::of_backend(self.id()).dispatch(config, total(inputs), || self.dispatch(program, &owned, config))
    }

    /// Runs a program into the caller's buffers, whose memory is used again: for this call, or for the next if results change places with them.
    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        observability::of_backend(self.id()).dispatch_into(config, total(inputs), outputs, |outputs| {
            fill_outputs(outputs, &self.dispatch_borrowed(program, inputs, config)?);
            Ok(())
        })
    }

    /// Runs a program and says how long it took.
    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        observability::of_backend(self.id()).dispatch(config, total(inputs), || {
            let start = Instant::now();
            let outputs = self.dispatch_borrowed(program, inputs, config)?;
            Ok(TimedDispatchResult { outputs, wall_ns: nanoseconds(start), device_ns: None, ran: None })
        })
    }

    /// Begins a dispatch.
    fn dispatch_async(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        observability::of_backend(self.id()).begin_dispatch(config, total(inputs), || {
            Ok(Box::new(ReadyPending { outputs: self.dispatch(program, inputs, config)? }))
        })
    }

    /// Begins a dispatch on bytes that the caller keeps; they are read before this returns.
    fn dispatch_borrowed_async(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        observability::of_backend(self.id()).begin_dispatch(config, total(inputs), || {
            Ok(Box::new(ReadyPending { outputs: self.dispatch_borrowed(program, inputs, config)? }))
        })
    }

    // ---- compiling once ----

    /// A pipeline of this backend's own; `None` if it has nothing to compile, and is called for every dispatch instead.
    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let _ = (program, config);
        Ok(None)
    }

    /// What its memory cache of pipelines has seen; `None` without a cache.
    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        None
    }

    // ---- data that stays on the device ----

    /// So many bytes on the device, zero.
    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        let _ = byte_len;
        unsupported(self, "resident data")
    }

    /// Replaces the bytes of a resource from its beginning.
    fn upload_resident(&self, resource: &Resource, bytes: &[u8]) -> Result<(), BackendError> {
        self.upload_resident_at(resource, 0, bytes)
    }

    /// Several uploads; either all of them happen or none.
    fn upload_resident_many(&self, uploads: &[(&Resource, &[u8])]) -> Result<(), BackendError> {
        let uploads: Vec<(&Resource, usize, &[u8])> = uploads.iter().map(|(resource, bytes)| (*resource, 0, *bytes)).collect();
        self.upload_resident_at_many(&uploads)
    }

    /// Replaces bytes of a resource from an offset.
    fn upload_resident_at(&self, resource: &Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), BackendError> {
        self.upload_resident_at_many(&[(resource, dst_offset_bytes, bytes)])
    }

    /// Several uploads to offsets; either all of them happen or none.
    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        let _ = uploads;
        unsupported(self, "resident data")
    }

    /// All bytes of a resource.
    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        let _ = resource;
        unsupported(self, "resident data")
    }

    /// Some bytes of a resource.
    fn download_resident_range(&self, resource: &Resource, offset: usize, length: usize) -> Result<Vec<u8>, BackendError> {
        let mut all = self.download_resident_ranges(&[(resource, offset, length)])?;
        Ok(all.pop().unwrap_or_default())
    }

    /// Several ranges of resources, in the order they are asked for.
    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        let _ = ranges;
        unsupported(self, "resident data")
    }

    /// Gives memory back.
    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        let _ = resource;
        unsupported(self, "resident data")
    }

    /// How many bytes a resource has, without looking at them.
    fn resident_size(&self, resource: &Resource) -> Result<u64, BackendError> {
        Ok(self.download_resident(resource)?.len() as u64)
    }

    /// Copies bytes of one resource to another or to another place of the same, on the device where it can.
    fn copy_resident(
        &self,
        from: &Resource,
        from_offset: usize,
        to: &Resource,
        to_offset: usize,
        length: usize,
    ) -> Result<(), BackendError> {
        self.upload_resident_at(to, to_offset, &self.download_resident_range(from, from_offset, length)?)
    }

    /// Begins steps on resident data, in order, and synchronises once, when they are waited for: the outputs are what the steps download.
    /// If one fails, those after it do not run, and what the failed one was to write is unspecified.
    fn submit_resident(
        &self,
        steps: &[ResidentStep<'_>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let _ = (steps, config);
        unsupported(self, "sequences on resident data")
    }

    /// Runs a program on resources, one per input and output buffer in the order of binding numbers. Buffers that the program writes
    /// and that are resident are changed in place; the outputs of the result are the bytes of the others. A resident `output` is zero at
    /// the start and as long as its memory. After a failure resident data are as they were; only segments of a program that was split at
    /// grid barriers may have changed them before.
    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let _ = (program, resources, config);
        unsupported(self, "resident dispatch")
    }

    // ---- capabilities and limits ----

    /// The ops it can run.
    fn supported_ops(&self) -> &HashSet<OpId> {
        all_ops()
    }

    /// Whether programs may use subgroups.
    fn supports_subgroup_ops(&self) -> bool {
        true
    }

    /// Whether programs may store f16.
    fn supports_f16(&self) -> bool {
        true
    }

    /// Whether programs may store bf16.
    fn supports_bf16(&self) -> bool {
        true
    }

    /// Whether programs may compute on f64.
    fn supports_f64(&self) -> bool {
        true
    }

    /// Whether the device has units for small matrices.
    fn supports_tensor_cores(&self) -> bool {
        false
    }

    /// Whether `dispatch_async` returns before the device is done.
    fn supports_async_compute(&self) -> bool {
        false
    }

    /// Whether a grid can come from device memory.
    fn supports_indirect_dispatch(&self) -> bool {
        false
    }

    /// Whether the backend may run a dispatch ahead of need.
    fn supports_speculation(&self) -> bool {
        false
    }

    /// Whether workgroups can stay resident and take work.
    fn supports_persistent_thread_dispatch(&self) -> bool {
        false
    }

    /// Whether grid barriers run in one dispatch.
    fn supports_grid_sync(&self) -> bool {
        false
    }

    /// Whether a program with grid barriers may be run as several dispatches on this backend.
    fn allows_host_grid_sync_split(&self) -> bool {
        true
    }

    /// Whether several machines work together.
    fn is_distributed(&self) -> bool {
        false
    }

    /// The largest workgroup along x, y and z.
    fn max_workgroup_size(&self) -> [u32; 3] {
        [MAX_WORKGROUP_INVOCATIONS; 3]
    }

    /// Workgroups along one axis, at most.
    fn max_compute_workgroups_per_dimension(&self) -> u32 {
        u32::MAX
    }

    /// Invocations of one workgroup, at most.
    fn max_compute_invocations_per_workgroup(&self) -> u32 {
        MAX_WORKGROUP_INVOCATIONS
    }

    /// The subgroup size of the device, if it has one; other declared sizes are emulated.
    fn subgroup_size(&self) -> Option<u32> {
        None
    }

    /// Bytes of one buffer, at most.
    fn max_storage_buffer_bytes(&self) -> u64 {
        u64::from(u32::MAX)
    }

    // ---- life ----

    /// Opens what the first dispatch would open.
    fn prepare(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Waits for everything that was begun.
    fn flush(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Gives the device back, if it holds one: then later calls fail.
    fn shutdown(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Whether the device is gone.
    fn device_lost(&self) -> bool {
        false
    }

    /// Opens a lost device again. Resident data are gone.
    fn try_recover(&self) -> Result<(), BackendError> {
        unsupported(self, "recovery")
    }

    /// Counters that only this backend has, by name.
    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
