//! The bulk evaluator: every op over a block of invocations at once.
//!
//! It gives the same bytes as the plain interpreter for every dispatch whose bytes do not depend on the order of invocations, and
//! gives them much faster: what a statement costs to look at is shared by hundreds of lanes, and the loops over lanes vectorise.
//! It is safe, portable Rust and takes its arithmetic from `vyre_scalar`, as the plain interpreter does; the two share nothing else.
//!
//! A [`Bulk`] keeps its memory between runs: once it is warm, [`Bulk::run_into`] does not allocate.

mod access;
mod block;
mod column;
mod compact;
mod control;
mod exchange;
mod expr;
mod faults;
mod frame;
mod ids;
mod lanes;
mod memory;
mod ops;
mod vars;

use crate::error::RunError;
use crate::faults::BulkFault;
use crate::plain::Options;
use crate::room::{check_state, fill_with_zeros};
use block::{Block, FuelExhausted, Home, Trap};
use compact::{Loop, loops};
use faults::{Faultless, Faults, Planted};
use frame::Frame;
use pulp::Arch;
use vyre_foundation::ir::{Access, Program};
use vyre_foundation::kernel::{Body, BufferId, Kernel, StmtId, StmtKind};
use vyre_foundation::launch::{Launch, plan};
use vyre_foundation::{Report, specialize};
use vyre_host_floats::with_default_state;

/// Lanes that a block has if workgroups are small: enough to share the cost of a statement, few enough for columns to stay in the
/// fastest memory.
const BLOCK_LANES: usize = 512;

/// Runs one dispatch, as [`crate::run`] does.
pub fn run(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    run_on(Bulk::new(&specialized(program, options)?)?, inputs, options)
}

/// Runs one dispatch with lanes compacted wherever they can be; see [`Bulk::compact_always`].
pub fn run_compacted(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    run_on(Bulk::new(&specialized(program, options)?)?.compact_always(), inputs, options)
}

fn specialized(program: &Program, options: &Options) -> Result<Program, Report> {
    specialize(program, options.specialization.iter().map(|(name, value)| (name.as_str(), value)))
}

fn run_on(mut bulk: Bulk, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(bulk.program(), &sizes, &options.launch)?;
    let mut outputs = Vec::new();
    bulk.run_into(&launch, inputs, options.fuel, &mut outputs)?;
    Ok(outputs)
}

/// A program made ready for bulk evaluation, with the memory it needs.
pub struct Bulk {
    program: Program,
    homes: Vec<Home>,
    group_bytes: usize,
    /// The statements between grid barriers.
    phases: Vec<Vec<StmtId>>,
    arch: Arch,
    /// By counter: what is known about its loop.
    loops: Vec<Option<Loop>>,
    compact_always: bool,
    /// What is wrong with it, if anything is.
    fault: Option<BulkFault>,
    /// One for the block that runs, or one per block if blocks wait for each other.
    frames: Vec<Frame>,
    /// For lanes that are compacted.
    spare: Vec<Frame>,
}

impl Bulk {
    /// Makes a program ready; constants it still has take their defaults.
    pub fn new(program: &Program) -> Result<Bulk, Report> {
        let program = specialize(program, [])?;
        let validated = program.validated().map_err(Clone::clone)?;
        let kernel = validated.kernel();
        let interface = program.interface();
        let mut group_bytes = 0;
        let homes = (0..kernel.buffers.len()).map(|i| {
            let place = |list: &[usize]| list.iter().position(|other| *other == i).expect("every buffer is in its list");
            let buffer = &kernel.buffers[i];
            match buffer.access {
                Access::Read | Access::Uniform => Home::Input(place(&interface.inputs)),
                Access::ReadWrite | Access::Output => Home::Output(place(&interface.outputs)),
                Access::Workgroup => {
                    let count = u64::from(buffer.count.unwrap_or(0));
                    let bytes = vyre_scalar::memory::byte_length(&buffer.element, count).unwrap_or(0) as usize;
                    group_bytes += bytes.next_multiple_of(16);
                    Home::Workgroup(group_bytes - bytes.next_multiple_of(16))
                }
            }
        });
        let homes = homes.collect();
        let mut phases = vec![Vec::new()];
        flatten(kernel, kernel.body(), &mut phases);
        Ok(Bulk {
            arch: Arch::new(),
            homes,
            group_bytes,
            phases,
            loops: loops(validated),
            compact_always: false,
            fault: None,
            frames: Vec::new(),
            spare: Vec::new(),
            program,
        })
    }

    /// Compacts the lanes of a loop whenever one of them has left it, whether that pays or not: so that small dispatches test what
    /// otherwise only large ones meet.
    #[must_use]
    pub fn compact_always(mut self) -> Bulk {
        self.compact_always = true;
        self
    }

    /// Plants a fault, for judges to be judged by.
    #[doc(hidden)]
    #[must_use]
    pub fn with_fault(mut self, fault: BulkFault) -> Bulk {
        self.compact_always |= fault.is_of_compaction();
        self.fault = Some(fault);
        self
    }

    /// The program, with its constants replaced.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs a dispatch of this shape, which [`plan`] gave for this program. Inputs and outputs are in the order of the interface;
    /// `outputs` keeps the memory it has. After an error its content means nothing.
    pub fn run_into(&mut self, launch: &Launch, inputs: &[&[u8]], fuel: u64, outputs: &mut Vec<Vec<u8>>) -> Result<(), RunError> {
        let interface = self.program.interface();
        outputs.truncate(interface.outputs.len());
        outputs.resize_with(interface.outputs.len(), Vec::new);
        for (bytes, i) in outputs.iter_mut().zip(&interface.outputs) {
            bytes.clear();
            match interface.inputs.iter().position(|input| input == i) {
                Some(input) => bytes.extend_from_slice(inputs[input]),
                None => fill_with_zeros(bytes, launch.bytes[*i])?,
            }
        }
        check_state(self.program.validated().expect("checked when it was made").kernel(), launch.invocations())?;
        let mut trap = None;
        let mut left = fuel;
        let result = with_default_state(|| match self.fault {
            None => self.dispatch(launch, inputs, outputs, &mut left, &mut trap, Faultless),
            Some(fault) => self.dispatch(launch, inputs, outputs, &mut left, &mut trap, Planted(fault)),
        });
        result.map_err(|FuelExhausted| RunError::OutOfFuel { fuel })?;
        match trap {
            Some(Trap { invocation, tag, place, .. }) => Err(RunError::Trap { tag, invocation, place }),
            None => Ok(()),
        }
    }

    fn dispatch(
        &mut self,
        launch: &Launch,
        inputs: &[&[u8]],
        outputs: &mut [Vec<u8>],
        fuel: &mut u64,
        trap: &mut Option<Trap>,
        faults: impl Faults,
    ) -> Result<(), FuelExhausted> {
        let kernel = self.program.validated().expect("checked when it was made").kernel();
        let group = launch.workgroup_size.iter().product::<u32>() as usize;
        let groups: u32 = launch.grid.iter().product();
        let together = (BLOCK_LANES / group).max(1) as u32;
        let blocks = groups.div_ceil(together);
        let kept = if kernel.uses.grid_sync { blocks as usize } else { 1 };
        while self.frames.len() < kept {
            self.frames.push(Frame::of(kernel));
        }
        for (number, phase) in self.phases.iter().enumerate() {
            for block in 0..blocks {
                if block > 0 && faults.has(BulkFault::LaterBlocks) {
                    continue;
                }
                let first_group = block * together;
                let mut in_block = together.min(groups - first_group) as usize;
                if faults.has(BulkFault::LastGroup) && block == blocks - 1 && in_block > 1 {
                    in_block -= 1;
                }
                let frame = &mut self.frames[if kept == 1 { 0 } else { block as usize }];
                if number == 0 {
                    frame.start(in_block * group, 0, in_block * self.group_bytes);
                } else {
                    if faults.has(BulkFault::GridValues) {
                        frame.vars.fill([column::Val::Splat(0); 4]);
                    }
                    if faults.has(BulkFault::GridRetired) {
                        frame.narrow.column_mut(frame.live).fill(1);
                        frame.live_count = frame.lanes;
                    }
                    if !faults.has(BulkFault::GridMemory) {
                        frame.clear_group_memory(in_block * self.group_bytes);
                    }
                }
                let mut block = Block {
                    arch: self.arch,
                    kernel,
                    launch,
                    homes: &self.homes,
                    loops: &self.loops,
                    compact_always: self.compact_always,
                    inputs,
                    outputs,
                    frame,
                    spare: &mut self.spare,
                    group_bytes: self.group_bytes,
                    groups: in_block,
                    group,
                    first_group,
                    fuel,
                    trap,
                    faults,
                };
                if number == 0 {
                    block.write_ids();
                }
                block.run(phase)?;
            }
        }
        Ok(())
    }
}

fn is_group_memory(kernel: &Kernel, buffer: BufferId) -> bool {
    match kernel.buffer(buffer).access {
        Access::Workgroup => true,
        Access::Read | Access::ReadWrite | Access::Output | Access::Uniform => false,
    }
}

/// The statements of the top level, through scopes, cut at grid barriers.
fn flatten(kernel: &Kernel, body: Body, phases: &mut Vec<Vec<StmtId>>) {
    for (id, stmt) in kernel.stmts_of(body) {
        match stmt.kind {
            StmtKind::Scope { body } => flatten(kernel, body, phases),
            StmtKind::GridSync => phases.push(Vec::new()),
            StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Store { .. }
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier
            | StmtKind::Trap { .. } => phases.last_mut().expect("there is always a phase").push(id),
        }
    }
}
