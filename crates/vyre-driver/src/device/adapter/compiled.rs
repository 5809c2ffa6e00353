//! A program made ready on a device, and the shape of its last launch.

use super::Shared;
use crate::backend::{BackendError, DispatchConfig};
use crate::device::{Code, CodeOptions, DeviceError, Generation};
use crate::launch::{Planned, require_determinism};
use crate::pipeline::PipelineKey;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use vyre_foundation::analysis::Outputs;
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::kernel::{BufferId, Kernel};
use vyre_foundation::launch::{Launch, check_inputs, plan};

pub(super) struct Compiled {
    id: String,
    /// Its constants are replaced.
    program: Program,
    kernel: Arc<Kernel>,
    options: CodeOptions,
    code: RwLock<Code>,
    written: OnceLock<Outputs>,
    last: Mutex<Option<Arc<Shape>>>,
}

/// The shape of a dispatch, and what it follows from. One with the same sizes and the same config is checked no second time.
pub(super) struct Shape {
    sizes: Vec<u64>,
    config: DispatchConfig,
    pub launch: Arc<Launch>,
    /// Whether every output is written completely, so that what it holds before does not matter.
    pub covered: bool,
    /// Of all buffers that are written.
    pub output_bytes: u64,
}

impl Compiled {
    /// Makes a valid program ready whose constants are replaced.
    pub fn new(
        shared: &Shared,
        generation: Generation,
        key: &PipelineKey,
        program: Program,
        options: CodeOptions,
    ) -> Result<Compiled, BackendError> {
        let kernel = program.validated().map_err(Clone::clone)?.kernel().clone();
        if kernel.uses.grid_sync && !shared.info.capabilities.grid_sync {
            let feature = "grid barriers of its own; a backend from the registry runs such programs in parts";
            return Err(shared.unsupported(feature.into()));
        }
        let code = shared.device.compile(&kernel, &options);
        let code = code.map_err(|error| shared.failure(error, generation, &DispatchConfig::default()))?;
        let id = format!("{}:{}", shared.info.id, key.to_hex());
        let (written, last) = (OnceLock::new(), Mutex::default());
        Ok(Compiled { id, program, kernel, options, code: RwLock::new(code), written, last })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// About what it takes in memory: for each byte of the program's wire form some 20 to 40 for trees and tables, and the code.
    pub fn bytes(&self) -> u64 {
        40 * self.program.wire_body().len() as u64 + self.kept().bytes()
    }

    /// Code of the device as it is, as far as the adapter knows, and whether it was there.
    pub fn code(&self, shared: &Shared) -> Result<(Code, bool), DeviceError> {
        let code = self.kept();
        match code.generation() == shared.generation() {
            true => Ok((code, true)),
            false => Ok((self.compile_again(shared)?, false)),
        }
    }

    fn kept(&self) -> Code {
        self.code.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Code of the device as it is now, in the place of code of before it was lost.
    pub fn compile_again(&self, shared: &Shared) -> Result<Code, DeviceError> {
        let code = shared.device.compile(&self.kernel, &self.options)?;
        // Somebody else may have opened it again.
        shared.adopt(code.generation());
        let mut kept = self.code.write().unwrap_or_else(PoisonError::into_inner);
        if kept.generation() < code.generation() {
            *kept = code.clone();
        }
        Ok(code)
    }

    /// Whether a launch writes every output completely before it reads it.
    pub fn covers(&self, launch: &Launch) -> bool {
        let outputs = self.kernel.buffers.iter().enumerate().filter(|(_, buffer)| buffer.access == Access::Output);
        let ids = outputs.map(|(i, _)| BufferId(i as u32));
        let written = || {
            // It has been validated.
            let ssa = self.program.validated().ok()?.ssa();
            Some(self.written.get_or_init(|| Outputs::of(ssa)))
        };
        written().is_some_and(|written| ids.into_iter().all(|id| written.is_covered(id, launch)))
    }

    /// The shape of a dispatch: that of the last one, if nothing has changed. Everything that can be wrong with its inputs is found here.
    pub fn plan(&self, shared: &Shared, inputs: &[&[u8]], config: &DispatchConfig) -> Result<Arc<Shape>, BackendError> {
        let sizes = inputs.iter().map(|input| input.len() as u64);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_same = |last: &Arc<Shape>| sizes.clone().eq(last.sizes.iter().copied()) && last.config == *config;
        let shape = match last.filter(is_same) {
            Some(shape) => shape,
            None => {
                let sizes: Vec<u64> = sizes.collect();
                check_inputs(&self.program, &sizes)?;
                let launch = plan(&self.program, &sizes, &config.launch())?;
                shared.fits(&self.kernel, &launch)?;
                let shape = Arc::new(self.shape(sizes, config, launch));
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape.clone());
                shape
            }
        };
        // What was proven may rest on what is in the inputs.
        require_determinism(&self.program, Planned::Launch(&shape.launch, inputs), config)?;
        Ok(shape)
    }

    fn shape(&self, sizes: Vec<u64>, config: &DispatchConfig, launch: Launch) -> Shape {
        let covered = self.covers(&launch);
        let output_bytes = self.program.interface().outputs.iter().map(|i| launch.bytes[*i]).sum();
        Shape { sizes, config: config.clone(), launch: Arc::new(launch), covered, output_bytes }
    }
}
