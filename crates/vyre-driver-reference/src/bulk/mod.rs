//! The bulk evaluator as a backend that keeps what is worth keeping: programs made ready, memory for outputs, resident data.
//!
//! Its shape is that of every backend with pipelines:
//!
//! - a [`Compiled`] is a program made ready. It lives in the cache of one instance, known by its [`PipelineKey`], and so knows nothing
//!   of a config but what the key has;
//! - a [`Pipeline`] is what a caller holds: a `Compiled` with the rest of the config it was asked for. Pipelines that differ in their
//!   grid share a `Compiled`;
//! - the [`Device`] is what all programs of an instance share: memory, resident and spare.
//!
//! A dispatch without a pipeline is one of a `Compiled` from the cache, so that a program is made ready once, however it is run. (A
//! program with constants is another one than what `pipeline::compile` makes of it, where they are replaced already.)

mod compiled;
mod pipeline;
mod pool;
mod resident;

use compiled::Compiled;
use pipeline::Pipeline;
use pool::Pool;
use resident::ResidentMemory;
use std::sync::Arc;
use std::time::Instant;
use vyre_driver::backend::private::Sealed;
use vyre_driver::backend::registry::BackendRegistration;
use vyre_driver::launch::{Planned, require_determinism};
use vyre_driver::pipeline::{PipelineCache, PipelineCacheSnapshot, PipelineKey};
use vyre_driver::{BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, Resource, TimedDispatchResult, VyreBackend};
use vyre_foundation::ir::Program;

const ID: &str = "bulk";

/// Bytes that the programs in the cache may take, as [`Compiled::bytes`] estimates them.
const CACHE_BYTES: u64 = 64 << 20;

struct Bulk {
    device: Arc<Device>,
    cache: PipelineCache<Compiled>,
}

/// What the programs of one instance share.
struct Device {
    resident: ResidentMemory,
    /// Outputs of dispatches that may still fail: the caller's buffers change only when they can no longer.
    spare: Pool<OutputBuffers>,
}

inventory::submit! {
    BackendRegistration {
        id: ID,
        precedence: 800,
        about: "the bulk evaluator: the reference's bytes, vectorised",
        open: || Ok(Box::new(Bulk::open())),
    }
}

impl Bulk {
    fn open() -> Bulk {
        let device = Device { resident: ResidentMemory::default(), spare: Pool::default() };
        Bulk { device: Arc::new(device), cache: PipelineCache::new(CACHE_BYTES) }
    }

    /// A program made ready, now or before.
    fn compiled(&self, program: &Program, config: &DispatchConfig) -> Result<Arc<Compiled>, BackendError> {
        let key = PipelineKey::new(self, program, config);
        self.cache.get_or_build(&key, || {
            let compiled = Compiled::new(&self.device, &key, &config.specialization.apply(program)?)?;
            let bytes = compiled.bytes();
            Ok((Arc::new(compiled), bytes))
        })
    }
}

impl Sealed for Bulk {}

impl VyreBackend for Bulk {
    fn id(&self) -> &'static str {
        ID
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
        let start = Instant::now();
        self.compiled(program, config)?.dispatch(start, inputs, config)
    }

    fn dispatch_borrowed_into(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let start = Instant::now();
        self.compiled(program, config)?.dispatch_into(start, inputs, config, outputs)
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let compiled = self.compiled(program, config)?;
        require_determinism(compiled.program(), Planned::Grid(None), config)?;
        Ok(Some(Arc::new(Pipeline { compiled, config: config.clone() })))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        Some(self.cache.snapshot())
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        // What no dispatch could bind is not worth asking the machine for, which may promise memory that it does not have.
        if byte_len as u64 > self.max_storage_buffer_bytes() {
            return Err(BackendError::OutOfMemory { requested: byte_len as u64 });
        }
        self.device.resident.allocate(byte_len)
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        self.device.resident.upload(uploads)
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        self.device.resident.download(resource)
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        self.device.resident.download_ranges(ranges)
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.device.resident.free(&resource)
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let start = Instant::now();
        let mut outputs = Vec::new();
        self.compiled(program, config)?.dispatch_resident_into(start, resources, config, &mut outputs)?;
        let wall_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(TimedDispatchResult { outputs, wall_ns, device_ns: None })
    }

    fn supports_grid_sync(&self) -> bool {
        true
    }

    fn backend_metric_snapshot(&self) -> Vec<(&'static str, u64)> {
        let usage = self.device.resident.usage();
        vec![
            ("resident_live_bytes", usage.live_bytes),
            ("resident_peak_bytes", usage.peak_bytes),
            ("resident_live_handles", usage.live_handles),
            ("resident_peak_handles", usage.peak_handles),
            ("pipeline_cache_bytes", self.cache.bytes()),
        ]
    }
}
