//! Programs that are compiled once and run many times.
//!
//! `compile*` checks the program, puts values in the place of its constants, and asks the backend for a pipeline of its own. A
//! backend that has none gets a pass-through pipeline, which calls it for every dispatch and is never cached.

mod audit;
mod cache;
mod disk;
mod key;
mod manifest;
mod passthrough;
mod specialized;

pub use audit::{PipelineCacheAudit, PipelineCacheAuditReport, PipelineCacheSnapshot};
pub use cache::PipelineCache;
pub use disk::{DiskCache, Fetched, Miss};
pub use key::PipelineKey;
pub use manifest::PipelineReproManifest;

use crate::backend::{BackendError, CompiledPipeline, DispatchConfig, VyreBackend, nanoseconds};
use passthrough::Passthrough;
use specialized::Specialized;
use std::sync::Arc;
use std::time::Instant;
use vyre_foundation::ir::Program;

/// A pipeline, and how it came to be.
pub struct PipelineBuild {
    /// The pipeline.
    pub pipeline: Arc<dyn CompiledPipeline>,
    /// What reproduces it elsewhere.
    pub manifest: PipelineReproManifest,
    /// Whether the backend had it in its cache; `None` if it does not say.
    pub cache_hit: Option<bool>,
    /// Nanoseconds that it took.
    pub compile_ns: u64,
}

/// What a pipeline that was compiled ahead of its first use is.
#[derive(Clone, PartialEq, Debug)]
pub struct PrewarmReport {
    /// The pipeline's id.
    pub pipeline_id: String,
    /// What reproduces it elsewhere.
    pub manifest: PipelineReproManifest,
    /// Whether the backend had it in its cache; `None` if it does not say.
    pub cache_hit: Option<bool>,
    /// Nanoseconds that it took.
    pub compile_ns: u64,
}

/// Compiles a program.
pub fn compile(
    backend: Arc<dyn VyreBackend>,
    program: &Program,
    config: &DispatchConfig,
) -> Result<Arc<dyn CompiledPipeline>, BackendError> {
    compile_owned(backend, program.clone(), config)
}

/// Compiles a program that the caller gives away.
pub fn compile_owned(
    backend: Arc<dyn VyreBackend>,
    program: Program,
    config: &DispatchConfig,
) -> Result<Arc<dyn CompiledPipeline>, BackendError> {
    Ok(compile_owned_with_telemetry(backend, program, config)?.pipeline)
}

/// Compiles a program that several threads have.
pub fn compile_shared(
    backend: Arc<dyn VyreBackend>,
    program: &Arc<Program>,
    config: &DispatchConfig,
) -> Result<Arc<dyn CompiledPipeline>, BackendError> {
    compile_owned(backend, Program::clone(program), config)
}

/// Compiles a program and says how that went.
pub fn compile_with_telemetry(
    backend: Arc<dyn VyreBackend>,
    program: &Program,
    config: &DispatchConfig,
) -> Result<PipelineBuild, BackendError> {
    compile_owned_with_telemetry(backend, program.clone(), config)
}

/// Compiles a program that several threads have and says how that went.
pub fn compile_shared_with_telemetry(
    backend: Arc<dyn VyreBackend>,
    program: &Arc<Program>,
    config: &DispatchConfig,
) -> Result<PipelineBuild, BackendError> {
    compile_owned_with_telemetry(backend, Program::clone(program), config)
}

/// Compiles a program that the caller gives away and says how that went.
pub fn compile_owned_with_telemetry(
    backend: Arc<dyn VyreBackend>,
    program: Program,
    config: &DispatchConfig,
) -> Result<PipelineBuild, BackendError> {
    let start = Instant::now();
    let span = tracing::debug_span!("compile", backend = backend.id(), label = config.label.as_deref());
    let _entered = span.enter();
    let key = PipelineKey::new(&*backend, &program, config);
    let specialized = admit(&program, config)?;
    let before = backend.pipeline_cache_snapshot();
    // Constants are gone from the program, so their values are gone from the config.
    let config = DispatchConfig { specialization: Default::default(), ..config.clone() };
    let given = key.specialization.clone();
    let (pipeline, cache_hit): (Arc<dyn CompiledPipeline>, _) = match backend.compile_native(&specialized, &config)? {
        Some(native) => (native, hit(before, backend.pipeline_cache_snapshot())),
        None => (Arc::new(Passthrough::new(backend.clone(), specialized, config.clone(), key.to_hex())), None),
    };
    let pipeline = match given.is_empty() {
        true => pipeline,
        false => Arc::new(Specialized { pipeline, values: given.clone() }),
    };
    let config = DispatchConfig { specialization: given, ..config };
    let manifest = PipelineReproManifest::new(&*backend, pipeline.id(), &program, config);
    Ok(PipelineBuild { pipeline, manifest, cache_hit, compile_ns: nanoseconds(start) })
}

/// Compiles a program without running it, so that its first dispatch does not.
pub fn prewarm(backend: Arc<dyn VyreBackend>, program: &Program, config: &DispatchConfig) -> Result<PrewarmReport, BackendError> {
    prewarm_owned(backend, program.clone(), config)
}

/// Compiles a program that several threads have without running it.
pub fn prewarm_shared(
    backend: Arc<dyn VyreBackend>,
    program: &Arc<Program>,
    config: &DispatchConfig,
) -> Result<PrewarmReport, BackendError> {
    prewarm_owned(backend, Program::clone(program), config)
}

/// Compiles a program that the caller gives away without running it.
pub fn prewarm_owned(
    backend: Arc<dyn VyreBackend>,
    program: Program,
    config: &DispatchConfig,
) -> Result<PrewarmReport, BackendError> {
    let PipelineBuild { pipeline, manifest, cache_hit, compile_ns } = compile_owned_with_telemetry(backend, program, config)?;
    Ok(PrewarmReport { pipeline_id: pipeline.id().into(), manifest, cache_hit, compile_ns })
}

/// The program with its constants replaced, if a pipeline can be made of it: every backend is given this and nothing else.
fn admit(program: &Program, config: &DispatchConfig) -> Result<Program, BackendError> {
    if !program.is_wrapped() {
        return Err(BackendError::InvalidProgram {
            fix: "a pipeline needs a top-level Region-wrapped Program, and this one has raw top-level statements. \
                  Fix: build it with `Program::wrapped`"
                .into(),
        });
    }
    program.validated().map_err(Clone::clone)?;
    let specialized = config.specialization.apply(program)?;
    specialized.validated().map_err(Clone::clone)?;
    // The grid may change from call to call: backends ask again when they know it.
    config.check_determinism(&specialized, None)?;
    Ok(specialized)
}

fn hit(before: Option<PipelineCacheSnapshot>, after: Option<PipelineCacheSnapshot>) -> Option<bool> {
    let (before, after) = (before?, after?);
    // Another thread may have compiled at the same time: then both counters moved, and nobody knows.
    match (after.hits > before.hits, after.misses > before.misses) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        (true, true) | (false, false) => None,
    }
}
