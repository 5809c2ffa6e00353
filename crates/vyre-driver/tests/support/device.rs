//! The reference with everything that a backend can have.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use vyre_driver::backend::private::Sealed;
use vyre_driver::pipeline::{PipelineCache, PipelineCacheSnapshot, PipelineKey};
use vyre_driver::resident::ResidentTable;
use vyre_driver::{
    BackendError, CompiledPipeline, DispatchConfig, OutputBuffers, ResidentError, Resource, TimedDispatchResult, VyreBackend,
};
use vyre_foundation::ir::Program;
use vyre_foundation::launch::check_inputs;
use vyre_reference::{Options, RunError};

/// The reference with everything that a backend can have: resident data, and pipelines of its own in a cache.
pub struct Device {
    memory: Arc<Memory>,
    pipelines: PipelineCache<Compiled>,
}

pub type Memory = Mutex<ResidentTable<Vec<u8>>>;

pub struct Compiled {
    memory: Arc<Memory>,
    program: Program,
    config: DispatchConfig,
}

pub fn device() -> Box<dyn VyreBackend> {
    Box::new(Device { memory: Arc::default(), pipelines: PipelineCache::new(1 << 20) })
}

pub fn run(program: &Program, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
    let program = config.specialization.apply(program)?;
    check_inputs(&program, &inputs.iter().map(|input| input.len() as u64).collect::<Vec<_>>())?;
    vyre_reference::run(&program, inputs, &Options { launch: config.launch(), ..Options::default() }).map_err(failure)
}

pub fn failure(error: RunError) -> BackendError {
    match error {
        RunError::Rejected(report) => BackendError::Rejected(report),
        RunError::Trap { tag, invocation, .. } => BackendError::Trap { tag, invocation },
        RunError::OutOfFuel { fuel } => BackendError::new(format!("more than {fuel} steps")),
    }
}

/// Runs a program on resources; gives the bytes of the outputs that are not resident.
fn run_resident(
    memory: &Memory,
    program: &Program,
    resources: &[Resource],
    config: &DispatchConfig,
) -> Result<OutputBuffers, BackendError> {
    let mut memory = memory.lock().map_err(BackendError::poisoned_lock)?;
    let bound = bound_buffers(program);
    let written = |i: &usize| program.buffers()[*i].access.is_output();
    let uses: Vec<(&Resource, bool)> = resources.iter().zip(&bound).map(|(resource, i)| (resource, written(i))).collect();
    memory.check_aliasing(&uses)?;
    let of_buffer: HashMap<usize, &Resource> = bound.iter().copied().zip(resources).collect();
    let inputs = program.interface().inputs.iter().map(|i| match of_buffer[i] {
        Resource::Borrowed(bytes) => Ok(bytes.clone()),
        handle @ Resource::Resident(_) => memory.get(handle).cloned(),
    });
    let inputs: Vec<Vec<u8>> = inputs.collect::<Result<_, ResidentError>>()?;
    let results = run(program, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), config)?;
    let mut outputs = Vec::new();
    for (i, bytes) in program.interface().outputs.iter().zip(results) {
        match of_buffer[i] {
            Resource::Borrowed(_) => outputs.push(bytes),
            handle @ Resource::Resident(_) => *memory.get_mut(handle)? = bytes,
        }
    }
    Ok(outputs)
}

impl Sealed for Device {}

impl VyreBackend for Device {
    fn id(&self) -> &'static str {
        "device"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        run(program, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), config)
    }

    fn compile_native(
        &self,
        program: &Program,
        config: &DispatchConfig,
    ) -> Result<Option<Arc<dyn CompiledPipeline>>, BackendError> {
        let compiled = self.pipelines.get_or_build(&PipelineKey::new(self, program, config), || {
            let compiled = Compiled { memory: self.memory.clone(), program: program.clone(), config: config.clone() };
            Ok((Arc::new(compiled), program.wire_body().len() as u64))
        })?;
        Ok(Some(compiled))
    }

    fn pipeline_cache_snapshot(&self) -> Option<PipelineCacheSnapshot> {
        Some(self.pipelines.snapshot())
    }

    fn allocate_resident(&self, byte_len: usize) -> Result<Resource, BackendError> {
        self.memory.lock().map_err(BackendError::poisoned_lock)?.insert(vec![0; byte_len], byte_len as u64)
    }

    fn upload_resident_at_many(&self, uploads: &[(&Resource, usize, &[u8])]) -> Result<(), BackendError> {
        let mut memory = self.memory.lock().map_err(BackendError::poisoned_lock)?;
        for (resource, offset, bytes) in uploads {
            memory.check_range(resource, *offset as u64, bytes.len() as u64)?;
        }
        for (resource, offset, bytes) in uploads {
            memory.get_mut(resource)?[*offset..*offset + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn download_resident(&self, resource: &Resource) -> Result<Vec<u8>, BackendError> {
        Ok(self.memory.lock().map_err(BackendError::poisoned_lock)?.get(resource)?.clone())
    }

    fn download_resident_ranges(&self, ranges: &[(&Resource, usize, usize)]) -> Result<Vec<Vec<u8>>, BackendError> {
        let memory = self.memory.lock().map_err(BackendError::poisoned_lock)?;
        let read = ranges.iter().map(|(resource, offset, length)| {
            memory.check_range(resource, *offset as u64, *length as u64)?;
            Ok(memory.get(resource)?[*offset..*offset + *length].to_vec())
        });
        read.collect()
    }

    fn free_resident(&self, resource: Resource) -> Result<(), BackendError> {
        self.memory.lock().map_err(BackendError::poisoned_lock)?.free(&resource)?;
        Ok(())
    }

    fn dispatch_resident_timed(
        &self,
        program: &Program,
        resources: &[Resource],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let start = Instant::now();
        let outputs = run_resident(&self.memory, program, resources, config)?;
        Ok(TimedDispatchResult { outputs, wall_ns: start.elapsed().as_nanos() as u64, device_ns: None })
    }
}

impl Sealed for Compiled {}

impl CompiledPipeline for Compiled {
    fn id(&self) -> &str {
        "compiled"
    }

    fn dispatch(&self, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        run(&self.program, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), &*config.over(&self.config)?)
    }

    fn dispatch_persistent_handles(&self, inputs: &[Resource], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        run_resident(&self.memory, &self.program, inputs, &*config.over(&self.config)?)
    }
}

/// The reference with nothing but what a backend must have.
#[derive(Default)]
pub struct Plain {
    pub calls: AtomicU64,
}

impl Sealed for Plain {}

impl VyreBackend for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        run(program, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), config)
    }
}

/// Inputs and outputs in the order of binding numbers, by their place among the declarations.
pub fn bound_buffers(program: &Program) -> Vec<usize> {
    let mut bound: Vec<usize> = (0..program.buffers().len())
        .filter(|i| program.interface().inputs.contains(i) || program.interface().outputs.contains(i))
        .collect();
    bound.sort_by_key(|i| program.buffers()[*i].binding);
    bound
}
