//! A program made ready, and its dispatches.
//!
//! A dispatch takes an evaluator from the pool or makes one, so that threads do not wait for each other, and runs into memory that is
//! nobody's yet: the caller's buffers and resident data change only after nothing can fail any more. An evaluator remembers the shape
//! of its last dispatch. One of the same shape, with the same config, neither checks nor allocates anything again.

use super::Device;
use super::pool::Pool;
use crate::{failure, in_time};
use std::sync::Arc;
use std::time::Instant;
use vyre_driver::backend::fill_outputs;
use vyre_driver::grid_sync::contains_grid_sync;
use vyre_driver::launch::{self, require_determinism};
use vyre_driver::pipeline::PipelineKey;
use vyre_driver::resident::bind;
use vyre_driver::{BackendError, DispatchConfig, OutputBuffers, Resource};
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::launch::{Launch, check_inputs, plan};
use vyre_reference::Options;
use vyre_reference::bulk::Bulk;

/// Memory that is not kept from one dispatch to the next if it is more than this: getting it again is little beside filling it.
const KEPT_BYTES: u64 = 64 << 20;

/// Memory that the invocations of a program with grid barriers may take together: all of them are under way at the same time.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// Invocations that the evaluator runs at a time where workgroups are small.
const BLOCK_LANES: u64 = 512;

pub(super) struct Compiled {
    id: String,
    /// Its constants are replaced.
    program: Program,
    device: Arc<Device>,
    evaluators: Pool<Evaluator>,
}

struct Evaluator {
    bulk: Bulk,
    last: Option<Planned>,
    /// About the memory that it keeps for invocations, beyond that of a block.
    state_bytes: u64,
}

/// The shape of a dispatch, and what it follows from.
struct Planned {
    sizes: Vec<u64>,
    config: DispatchConfig,
    launch: Launch,
}

impl Compiled {
    /// Makes a program ready whose constants are replaced.
    pub fn new(device: &Arc<Device>, key: &PipelineKey, program: &Program) -> Result<Compiled, BackendError> {
        let bulk = Bulk::new(program)?;
        let program = bulk.program().clone();
        let evaluators = Pool::default();
        evaluators.give_back(Evaluator::new(bulk));
        Ok(Compiled { id: format!("{}:{}", super::ID, key.to_hex()), program, device: device.clone(), evaluators })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// About what it takes in memory: for each byte of its wire form some 20 to 40 for trees and tables, and the state of a block.
    pub fn bytes(&self) -> u64 {
        40 * self.program.wire_body().len() as u64 + state_bytes(&self.program, BLOCK_LANES)
    }

    pub fn dispatch(&self, start: Instant, inputs: &[&[u8]], config: &DispatchConfig) -> Result<OutputBuffers, BackendError> {
        let mut outputs = Vec::new();
        self.run(start, inputs, config, None, &mut outputs)?;
        Ok(outputs)
    }

    pub fn dispatch_into(
        &self,
        start: Instant,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        self.with_spare(|results| {
            self.run(start, inputs, config, None, results)?;
            fill_outputs(outputs, results);
            Ok(())
        })
    }

    /// Runs on resources; the outputs are of the buffers that are not resident.
    pub fn dispatch_resident_into(
        &self,
        start: Instant,
        resources: &[Resource],
        config: &DispatchConfig,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let (launch, used) = self.device.resident.plan(&self.program, resources, config)?;
        let bound = bind(&self.program, resources)?;
        // Resident data is not looked at before the dispatch.
        let inputs: Vec<&[u8]> = bound
            .iter()
            .filter(|(i, _)| self.program.buffers()[*i].access.is_input())
            .map(|(_, resource)| match resource {
                Resource::Borrowed(bytes) => bytes.as_slice(),
                Resource::Resident(_) => &[],
            })
            .collect();
        require_determinism(&self.program, launch::Planned::Launch(&launch, &inputs), config)?;
        let those = |wanted: fn(Access) -> bool| -> Vec<&Resource> {
            let access = |i: usize| self.program.buffers()[i].access;
            bound.iter().filter(|(i, _)| wanted(access(*i))).map(|(_, resource)| *resource).collect()
        };
        let (inputs, written) = (those(Access::is_input), those(Access::is_output));
        let mut locked = used.lock()?;
        self.with_spare(|results| {
            let bytes: Vec<&[u8]> = inputs.iter().map(|resource| locked.bytes(resource)).collect();
            self.run(start, &bytes, config, Some(&launch), results)?;
            let mut returned = Vec::new();
            for (resource, result) in written.iter().zip(results.iter()) {
                match resource {
                    Resource::Resident(handle) => locked.write(*handle, result),
                    Resource::Borrowed(_) => returned.push(result),
                }
            }
            fill_outputs(outputs, &returned);
            Ok(())
        })
    }

    /// Runs it, in the shape that is given or follows from the inputs. After an error the outputs mean nothing.
    fn run(
        &self,
        start: Instant,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        launch: Option<&Launch>,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let mut evaluator = match self.evaluators.take() {
            Some(evaluator) => evaluator,
            None => Evaluator::new(Bulk::new(&self.program)?),
        };
        let result = evaluator.run(start, inputs, config, launch, outputs);
        if evaluator.state_bytes <= KEPT_BYTES {
            self.evaluators.give_back(evaluator);
        }
        result
    }

    /// Calls something with outputs that are nobody's.
    fn with_spare<R>(&self, call: impl FnOnce(&mut OutputBuffers) -> Result<R, BackendError>) -> Result<R, BackendError> {
        let mut spare = self.device.spare.take().unwrap_or_default();
        let result = call(&mut spare);
        if spare.iter().map(|output| output.capacity() as u64).sum::<u64>() <= KEPT_BYTES {
            self.device.spare.give_back(spare);
        }
        result
    }
}

impl Evaluator {
    fn new(bulk: Bulk) -> Self {
        Evaluator { bulk, last: None, state_bytes: 0 }
    }

    fn run(
        &mut self,
        start: Instant,
        inputs: &[&[u8]],
        config: &DispatchConfig,
        launch: Option<&Launch>,
        outputs: &mut OutputBuffers,
    ) -> Result<(), BackendError> {
        let launch = match launch {
            Some(launch) => launch,
            None => planned(&mut self.last, self.bulk.program(), inputs, config)?,
        };
        let program = self.bulk.program();
        if contains_grid_sync(program) {
            let requested = state_bytes(program, launch.invocations());
            if requested > MAX_STATE_BYTES {
                return Err(BackendError::OutOfMemory { requested });
            }
            self.state_bytes = self.state_bytes.max(requested);
        }
        reserve(program, launch, outputs)?;
        in_time(start, config)?;
        self.bulk.run_into(launch, inputs, Options::default().fuel, outputs).map_err(failure)?;
        // The evaluator cannot be stopped half way: a result that came too late is none.
        in_time(start, config)
    }
}

/// About what so many invocations take at the same time.
fn state_bytes(program: &Program, invocations: u64) -> u64 {
    let vars = program.validated().map_or(0, |validated| validated.kernel().vars.len());
    invocations.saturating_mul(16 * (vars as u64 + 8))
}

/// The shape of a dispatch: that of the last one, if nothing has changed.
fn planned<'a>(
    last: &'a mut Option<Planned>,
    program: &Program,
    inputs: &[&[u8]],
    config: &DispatchConfig,
) -> Result<&'a Launch, BackendError> {
    let sizes = inputs.iter().map(|input| input.len() as u64);
    let is_same = |last: &Planned| last.config == *config && sizes.clone().eq(last.sizes.iter().copied());
    let planned = match last.take().filter(is_same) {
        Some(planned) => planned,
        None => {
            let sizes: Vec<u64> = sizes.collect();
            check_inputs(program, &sizes)?;
            let launch = plan(program, &sizes, &config.launch())?;
            Planned { sizes, config: config.clone(), launch }
        }
    };
    // What was proven may rest on what is in the inputs.
    require_determinism(program, launch::Planned::Launch(&planned.launch, inputs), config)?;
    Ok(&last.insert(planned).launch)
}

/// Makes room for outputs, which the evaluator would take for granted.
fn reserve(program: &Program, launch: &Launch, outputs: &mut OutputBuffers) -> Result<(), BackendError> {
    let written = &program.interface().outputs;
    outputs.resize_with(written.len(), Vec::new);
    for (output, i) in outputs.iter_mut().zip(written) {
        let requested = launch.bytes[*i];
        output.clear();
        let room = usize::try_from(requested).ok().and_then(|bytes| output.try_reserve_exact(bytes).ok());
        room.ok_or(BackendError::OutOfMemory { requested })?;
    }
    Ok(())
}
