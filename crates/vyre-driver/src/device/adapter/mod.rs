//! All of [`VyreBackend`] over any device.
//!
//! - a [`Compiled`] is a program made ready: its code on the device, and the shape of its last launch. It lives in the cache of one adapter,
//!   known by its [`PipelineKey`], and so knows nothing of a config but what the key has;
//! - a [`Pipeline`] is what a caller holds: a `Compiled` with the rest of the config it was asked for. Pipelines that differ in their
//!   grid share a `Compiled`;
//! - [`Shared`] is what all programs of an adapter share: the device, resident memory, spare buffers.
//!
//! **A failed call leaves the caller's data alone.** Outputs are written into spare vectors, which change places with the caller's when
//! nothing can fail any more: one pass over the bytes, none if the kernel is known to write them completely. Resident memory that is
//! written by a dispatch which may trap or run out of time is written as a copy, which takes the place of the memory behind its handle.
//!
//! **A lost device** makes all resident handles stale and every call an error, until `try_recover`. Code is compiled again when it is
//! next used: the adapter keeps the kernels. Every call knows the generation that it began in: what it says of a loss later is said of
//! that one, and not of the device that came after.

mod compiled;
mod pending;
mod pipeline;
mod pool;
mod resident;
mod run;

use super::{CodeOptions, Deadline, Device, DeviceError, DeviceInfo, Generation, Ran};
use crate::backend::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, PendingDispatch, ResidentStep, Resource, TimedDispatchResult,
    VyreBackend, nanoseconds,
};
use crate::launch::{Planned, require_determinism};
use crate::pipeline::{PipelineCache, PipelineCacheSnapshot, PipelineKey};
use crate::route::misfits;
use compiled::Compiled;
use pipeline::Pipeline;
use pool::Spare;
use resident::Resident;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use vyre_foundation::Report;
use vyre_foundation::ir::{Access, OpId, Program};
use vyre_foundation::kernel::Kernel;
use vyre_foundation::launch::{Launch, overridden_geometry};

/// Bytes of code that are kept.
const CACHE_BYTES: u64 = 64 << 20;

/// A device as a backend: everything that callers can ask for, checked, over the few things that a device does.
#[must_use]
pub fn backend(device: Arc<dyn Device>) -> Box<dyn VyreBackend> {
    let info = device.info();
    let generation = AtomicU64::new(info.generation.0);
    let (spare, resident, lost) = (Spare::default(), Resident::default(), AtomicBool::new(false));
    let shared = Shared { device, info, generation, spare, resident, lost };
    Box::new(Adapter { shared: Arc::new(shared), cache: PipelineCache::new(CACHE_BYTES) })
}

struct Adapter {
    shared: Arc<Shared>,
    cache: PipelineCache<Compiled>,
}

/// What the programs of one adapter share.
struct Shared {
    device: Arc<dyn Device>,
    /// As it was when the device was opened.
    info: Arc<DeviceInfo>,
    /// The generation now, as far as the adapter knows.
    generation: AtomicU64,
    spare: Spare,
    resident: Resident,
    lost: AtomicBool,
}

impl Shared {
    /// The error of a call that began in a generation, and whose time limit is `config`'s.
    fn failure(&self, error: DeviceError, generation: Generation, config: &DispatchConfig) -> BackendError {
        match error {
            DeviceError::Unsupported { what } => self.unsupported(what),
            DeviceError::OutOfMemory { requested } => BackendError::OutOfMemory { requested },
            DeviceError::Timeout => BackendError::Timeout { limit: config.timeout.unwrap_or_default() },
            DeviceError::Hung => {
                self.lose(generation);
                BackendError::Timeout { limit: config.timeout.unwrap_or_default() }
            }
            DeviceError::Trap { tag, invocation } => BackendError::Trap { tag, invocation },
            DeviceError::Lost { reason } => {
                self.lose(generation);
                BackendError::DeviceLost { reason }
            }
            DeviceError::Stale(stale) => {
                self.lose(generation);
                BackendError::DeviceLost { reason: stale.to_string() }
            }
            error @ (DeviceError::Cancelled
            | DeviceError::OutOfRange { .. }
            | DeviceError::Aliased
            | DeviceError::Taken
            | DeviceError::Other(_)) => BackendError::new(error.to_string()),
        }
    }

    fn unsupported(&self, feature: String) -> BackendError {
        BackendError::UnsupportedFeature { feature, backend: self.info.id.into() }
    }

    /// The generation now, as far as the adapter knows. Changes only under the lock of the resident table.
    fn generation(&self) -> Generation {
        Generation(self.generation.load(Relaxed))
    }

    /// Resident data are gone with the device, unless another has come already.
    fn lose(&self, generation: Generation) {
        let mut table = self.resident.table();
        let is_news = self.generation() == generation && !self.lost.swap(true, Relaxed);
        let gone = if is_news { table.lose() } else { Vec::new() };
        drop(table);
        drop(gone);
    }

    /// The device is of a generation. If that is new, resident data are gone, and it is not lost.
    fn adopt(&self, generation: Generation) {
        let mut table = self.resident.table();
        let mut gone = Vec::new();
        if generation > self.generation() {
            gone = table.lose();
            self.generation.store(generation.0, Relaxed);
            self.lost.store(false, Relaxed);
        }
        drop(table);
        drop(gone);
    }

    /// Refuses a call on a device that is known to be lost; otherwise gives the generation that the call is of.
    fn alive(&self) -> Result<Generation, BackendError> {
        match self.lost.load(Relaxed) {
            false => Ok(self.generation()),
            true => Err(BackendError::DeviceLost { reason: "it was lost before this call".into() }),
        }
    }

    /// Refuses a launch that is larger than the device takes.
    fn fits(&self, kernel: &Kernel, launch: &Launch) -> Result<(), BackendError> {
        let limit = self.info.limits.groups_per_axis;
        if let Some(groups) = launch.grid.iter().find(|groups| **groups > limit) {
            return Err(self.unsupported(format!("grids of {groups} workgroups along an axis, only of {limit}")));
        }
        let limit = self.info.limits.buffer_bytes;
        let bound = kernel.buffers.iter().zip(&launch.bytes).filter(|(buffer, _)| buffer.access != Access::Workgroup);
        match bound.into_iter().find(|(_, bytes)| **bytes > limit) {
            Some((buffer, bytes)) => {
                Err(self.unsupported(format!("buffers of {bytes} bytes, as `{}` has, only of {limit}", buffer.name)))
            }
            None => Ok(()),
        }
    }

    /// Refuses a profile that the device does not have.
    fn knows(&self, profile: Option<&str>) -> Result<(), BackendError> {
        match profile {
            Some(profile) if !self.info.profiles.contains(&profile) => {
                Err(self.unsupported(match self.info.profiles.as_slice() {
                    [] => format!("profile `{profile}`, nor any other"),
                    known => format!("profile `{profile}` among its profiles {}", known.join(", ")),
                }))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The deadline of a call that begins now. The clock is asked only if somebody set a limit.
fn begin(config: &DispatchConfig) -> Deadline {
    match config.timeout {
        None => Deadline::NONE,
        limit @ Some(_) => Deadline::after(Instant::now(), limit),
    }
}

/// Refuses a call whose time is over before anything runs.
fn in_time(deadline: Deadline, config: &DispatchConfig) -> Result<(), BackendError> {
    match deadline.is_over() {
        true => Err(BackendError::Timeout { limit: config.timeout.unwrap_or_default() }),
        false => Ok(()),
    }
}

fn timed(start: Instant, outputs: OutputBuffers, ran: Ran) -> TimedDispatchResult {
    TimedDispatchResult { outputs, wall_ns: nanoseconds(start), device_ns: ran.device_ns, ran: Some(ran) }
}

impl Adapter {
    /// A program made ready, and whether it was before.
    fn compiled(&self, program: &Program, config: &DispatchConfig) -> Result<(Arc<Compiled>, bool), BackendError> {
        let generation = self.shared.alive()?;
        let key = PipelineKey::new(self, program, config);
        let mut hit = true;
        let compiled = self.cache.get_or_build(&key, || {
            hit = false;
            let program = config.specialization.apply(program)?;
            let kernel = program.validated().map_err(Clone::clone)?.kernel();
            if let Some(size) = config.workgroup_override {
                // Whether it divides the invocations is seen at dispatch; here it divides as many workgroups as it has invocations.
                overridden_geometry(kernel, size, size).map_err(|mistakes| Report::about(&program, mistakes))?;
            }
            let reasons = misfits(self, &program, config);
            if !reasons.is_empty() {
                return Err(self.shared.unsupported(format!("way to run this program: {}", reasons.join("; "))));
            }
            self.shared.knows(config.profile.as_deref())?;
            let options = CodeOptions {
                workgroup: config.workgroup_override,
                ulp_budget: config.ulp_budget,
                profile: config.profile.clone(),
            };
            let compiled = Compiled::new(&self.shared, generation, &key, program, options)?;
            let bytes = compiled.bytes();
            Ok((Arc::new(compiled), bytes))
        })?;
        Ok((compiled, hit))
    }
}

// A method that is not here would be a default, which knows nothing of devices.
#[deny(clippy::missing_trait_methods)]
impl VyreBackend for Adapter {
    fn id(&self) -> &'static str {
        self.shared.info.id
    }

    fn version(&self) -> &'static str {
        self.shared.info.build
    }

    fn device_fingerprint(&self) -> String {
        self.shared.info.fingerprint.clone()
    }

    fn device_name(&self) -> String {
        self.shared.info.name.clone()
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        Some(self.shared.device.clone())
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        self.dispatch_borrowed(program, &inputs, config)
    }

    fn dispatch_borrowed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        Ok(self.dispatch_borrowed_timed(program, inputs, config)?.outputs)
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let deadline = begin(config);
        let (compiled, _) = self.compiled(program, config)?;
        self.shared.dispatch_into(&compiled, deadline, inputs, config, outputs)?;
        Ok(())
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let start = Instant::now();
        let (compiled, cache_hit) = self.compiled(program, config)?;
        let mut outputs = Vec::new();
        let ran = self.shared.dispatch(&compiled, Deadline::after(start, config.timeout), inputs, config, &mut outputs)?;
        Ok(timed(start, outputs, ran.found(cache_hit)))
    }

    fn dispatch_async(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        self.dispatch_borrowed_async(program, &inputs, config)
    }

    fn dispatch_borrowed_async(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let deadline = begin(config);
        let (compiled, cache_hit) = self.compiled(program, config)?;
        Ok(Box::new(self.shared.begin(&compiled, deadline, inputs, config, cache_hit)?))
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let (compiled, _) = self.compiled(program, config)?;
        require_determinism(compiled.program(), Planned::Grid(None), config)?;
        let shared = self.shared.clone();
        Ok(Some(Arc::new(Pipeline { shared, compiled, config: config.clone() })))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        Some(self.cache.snapshot())
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        self.shared.allocate(byte_len)
    }

    fn upload_resident(&self, resource: &Resource, bytes: &[u8]) -> Result<(), BackendError> {
        self.upload_resident_at_many(&[(resource, 0, bytes)])
    }

    fn upload_resident_many(&self, uploads: &[(&Resource, &[u8])]) -> Result<(), BackendError> {
        let uploads: Vec<(&Resource, usize, &[u8])> = uploads.iter().map(|(resource, bytes)| (*resource, 0, *bytes)).collect();
        self.upload_resident_at_many(&uploads)
    }

    fn upload_resident_at(&self, resource: &Resource, dst_offset_bytes: usize, bytes: &[u8]) -> Result<(), BackendError> {
        self.upload_resident_at_many(&[(resource, dst_offset_bytes, bytes)])
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        self.shared.upload(uploads)
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        let size = self.shared.resident.size(resource)?;
        self.download_resident_range(resource, 0, size as usize)
    }

    fn download_resident_range(&self, resource: &Resource, offset: usize, length: usize) -> Result<Vec<u8>, BackendError> {
        Ok(self.download_resident_ranges(&[(resource, offset, length)])?.pop().unwrap_or_default())
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        self.shared.download(ranges)
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.shared.resident.free(&resource)
    }

    fn resident_size(&self, resource: &Resource) -> Result<u64, BackendError> {
        self.shared.resident.size(resource)
    }

    fn copy_resident(
        &self,
        from: &Resource,
        from_offset: usize,
        to: &Resource,
        to_offset: usize,
        length: usize,
    ) -> Result<(), BackendError> {
        self.shared.copy((from, from_offset), (to, to_offset), length)
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let start = Instant::now();
        let (compiled, cache_hit) = self.compiled(program, config)?;
        let mut outputs = Vec::new();
        let ran =
            self.shared.dispatch_resident(&compiled, Deadline::after(start, config.timeout), resources, config, &mut outputs)?;
        Ok(timed(start, outputs, ran.found(cache_hit)))
    }

    fn submit_resident(
        &self,
        steps: &[ResidentStep<'_>],
        config: &DispatchConfig,
    ) -> Result<Box<dyn PendingDispatch>, BackendError> {
        let deadline = begin(config);
        let compile = |program: &Program, config: &DispatchConfig| self.compiled(program, config);
        Ok(Box::new(self.shared.sequence(deadline, steps, config, compile)?))
    }

    fn supported_ops(&self) -> &HashSet<OpId> {
        &self.shared.info.capabilities.ops
    }

    fn supports_subgroup_ops(&self) -> bool {
        self.shared.info.capabilities.subgroups
    }

    fn supports_f16(&self) -> bool {
        self.shared.info.capabilities.f16
    }

    fn supports_bf16(&self) -> bool {
        self.shared.info.capabilities.bf16
    }

    fn supports_f64(&self) -> bool {
        self.shared.info.capabilities.f64
    }

    fn supports_tensor_cores(&self) -> bool {
        self.shared.info.capabilities.tensor_cores
    }

    fn supports_async_compute(&self) -> bool {
        true
    }

    fn supports_indirect_dispatch(&self) -> bool {
        false
    }

    fn supports_speculation(&self) -> bool {
        false
    }

    fn supports_persistent_thread_dispatch(&self) -> bool {
        false
    }

    fn supports_grid_sync(&self) -> bool {
        self.shared.info.capabilities.grid_sync
    }

    fn allows_host_grid_sync_split(&self) -> bool {
        true
    }

    fn is_distributed(&self) -> bool {
        false
    }

    fn max_workgroup_size(&self) -> [u32; 3] {
        self.shared.info.limits.workgroup_size
    }

    fn max_compute_workgroups_per_dimension(&self) -> u32 {
        self.shared.info.limits.groups_per_axis
    }

    fn max_compute_invocations_per_workgroup(&self) -> u32 {
        self.shared.info.limits.workgroup_invocations
    }

    fn subgroup_size(&self) -> Option<u32> {
        self.shared.info.limits.subgroup_size
    }

    fn max_storage_buffer_bytes(&self) -> u64 {
        self.shared.info.limits.buffer_bytes
    }

    fn prepare(&self) -> Result<(), BackendError> {
        self.shared.alive().map(|_| ())
    }

    fn flush(&self) -> Result<(), BackendError> {
        // Submissions are ordered: an empty one ends after all before it.
        self.shared.submit_and_wait((), Vec::new(), Deadline::NONE, &DispatchConfig::default()).map(|_| ())
    }

    fn shutdown(&self) -> Result<(), BackendError> {
        self.flush()
    }

    fn device_lost(&self) -> bool {
        self.shared.lost.load(Relaxed)
    }

    fn try_recover(&self) -> Result<(), BackendError> {
        let shared = &self.shared;
        let before = shared.generation();
        let recovered = shared.device.recover();
        shared.adopt(recovered.map_err(|error| shared.failure(error, before, &DispatchConfig::default()))?);
        Ok(())
    }

    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        let usage = self.shared.resident.usage();
        vec![
            ("resident_live_bytes", usage.live_bytes),
            ("resident_peak_bytes", usage.peak_bytes),
            ("resident_live_handles", usage.live_handles),
            ("resident_peak_handles", usage.peak_handles),
            ("pipeline_cache_bytes", self.cache.bytes()),
        ]
    }
}
