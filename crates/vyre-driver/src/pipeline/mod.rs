//! Programs that are compiled once and run many times.
//!
//! `compile*` checks the program, puts values in the place of its constants, and asks the backend for a pipeline of its own. A
//! backend that has none gets a pass-through pipeline, which calls it for every dispatch and is never cached. Either way the
//! pipeline counts its dispatches, and a call may repeat the values of constants that it was compiled with.

mod audit;
mod cache;
mod disk;
mod key;
mod manifest;
mod native;
mod passthrough;

pub use audit::{PipelineCacheAudit, PipelineCacheAuditReport, PipelineCacheSnapshot};
pub use cache::PipelineCache;
pub use disk::{DiskCache, Fetched, Miss};
pub use key::PipelineKey;
pub use manifest::PipelineReproManifest;

use crate::backend::{BackendError, CompiledPipeline, DispatchConfig, VyreBackend, nanoseconds};
use crate::launch::{Planned, require_determinism};
use crate::specialization::SpecMap;
use native::Native;
use passthrough::Passthrough;
use std::sync::Arc;
use std::time::Instant;
use vyre_foundation::Report;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::overridden_geometry;

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
    build(&backend, &program, config)
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
    let before = backend.pipeline_cache_snapshot();
    let pipeline = build(&backend, &program, config)?;
    let cache_hit = hit(before, backend.pipeline_cache_snapshot());
    let compile_ns = nanoseconds(start);
    let manifest = PipelineReproManifest::new(&*backend, pipeline.id(), &program, config.clone());
    Ok(PipelineBuild { pipeline, manifest, cache_hit, compile_ns })
}

/// The pipeline that every form of `compile` gives. A backend that has it is asked for little more than its own lookup.
fn build(
    backend: &Arc<dyn VyreBackend>,
    program: &Program,
    config: &DispatchConfig,
) -> Result<Arc<dyn CompiledPipeline>, BackendError> {
    let _span = tracing::debug_span!("compile", backend = backend.id(), label = config.label.as_deref()).entered();
    let specialized = admit(program, config)?;
    let given = config.specialization.clone();
    // Constants are gone from the program, so their values are gone from the config.
    without_constants(config, &given, |plain| {
        Ok(match backend.compile_native(&specialized, plain)? {
            Some(native) => Arc::new(Native::new(&**backend, native, given.clone())) as Arc<dyn CompiledPipeline>,
            None => {
                let key = PipelineKey::new(&**backend, program, config).to_hex();
                Arc::new(Passthrough::new(Arc::clone(backend), specialized.clone(), plain.clone(), given.clone(), key))
            }
        })
    })
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
    let specialized = config.specialization.apply(program)?;
    let kernel = specialized.validated().map_err(Clone::clone)?.kernel();
    if let Some(size) = config.workgroup_override {
        // Whether the size divides the invocations is seen at dispatch; here it divides as many workgroups as it has invocations.
        overridden_geometry(kernel, size, size).map_err(|mistakes| Report::about(&specialized, mistakes))?;
    }
    require_determinism(&specialized, Planned::Grid(config.grid_override), config)?;
    Ok(specialized)
}

/// Calls `run` with the config of a call without values for constants, which were put in when the pipeline was compiled with
/// `compiled`. The call may repeat some of them.
fn without_constants<R>(
    call: &DispatchConfig,
    compiled: &SpecMap,
    run: impl FnOnce(&DispatchConfig) -> Result<R, BackendError>,
) -> Result<R, BackendError> {
    if call.specialization.is_empty() {
        return run(call);
    }
    call.specialization.check_within(compiled)?;
    run(&call.without_specialization())
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
