//! The bulk evaluator: every op over a block of invocations at once.
//!
//! It gives the same bytes as the plain interpreter for every dispatch whose bytes do not depend on the order of invocations, and
//! gives them much faster: what a statement costs to look at is shared by hundreds of lanes, and the loops over lanes vectorise.
//! It is safe, portable Rust and takes its arithmetic from `vyre_scalar`, as the plain interpreter does; the two share nothing else.
//!
//! A [`Bulk`] keeps its memory between runs: once it is warm, [`Bulk::run_into`] and [`Bulk::run_groups`] do not allocate.

mod access;
mod block;
mod column;
mod compact;
mod control;
mod evaluators;
mod exchange;
mod expr;
mod faults;
mod frame;
mod ids;
mod lanes;
mod memory;
mod ops;
mod shared;
mod vars;

pub use evaluators::{Bound, Evaluators};
pub use shared::{Output, Shared, Unit};

use crate::error::RunError;
use crate::faults::BulkFault;
use crate::fuel::{Fuel, Limits, Stopped};
use crate::plain::Options;
use crate::room::{check_state, fill_with_zeros};
use block::{Block, Home, Trap};
use compact::{Loop, loops};
use faults::{Faultless, Faults, Planted};
use frame::Frame;
use pulp::Arch;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use vyre_foundation::interface::Interface;
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
    run_on(&specialized(program, options)?, |bulk| bulk, inputs, options)
}

/// Runs one dispatch with lanes compacted wherever they can be; see [`Bulk::compact_always`].
pub fn run_compacted(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    run_on(&specialized(program, options)?, Bulk::compact_always, inputs, options)
}

fn specialized(program: &Program, options: &Options) -> Result<Program, Report> {
    specialize(program, options.specialization.iter().map(|(name, value)| (name.as_str(), value)))
}

/// Runs a program whose constants are replaced on an evaluator that `change` has had in its hands.
pub(crate) fn run_on(
    program: &Program,
    change: impl FnOnce(Bulk) -> Bulk,
    inputs: &[&[u8]],
    options: &Options,
) -> Result<Vec<Vec<u8>>, RunError> {
    let mut bulk = change(Bulk::new(program.validated().map_err(Clone::clone)?.kernel()));
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(program, &sizes, &options.launch)?;
    let mut outputs = Vec::new();
    bulk.run_into(&launch, inputs, options.limits(), &mut outputs)?;
    Ok(outputs)
}

/// A kernel made ready for bulk evaluation, with the memory it needs.
pub struct Bulk {
    kernel: Arc<Kernel>,
    interface: Interface,
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
    /// Makes a kernel ready.
    #[must_use]
    pub fn new(kernel: &Arc<Kernel>) -> Bulk {
        let interface = Interface::of_kernel(kernel);
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
        Bulk {
            arch: Arch::new(),
            homes,
            group_bytes,
            phases,
            loops: loops(kernel),
            compact_always: false,
            fault: None,
            frames: Vec::new(),
            spare: Vec::new(),
            kernel: kernel.clone(),
            interface,
        }
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

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Runs a dispatch of this shape, which [`plan`] gave for the kernel's program. Inputs and outputs are in the order of the interface;
    /// `outputs` keeps the memory it has. After an error its content means nothing.
    pub fn run_into(
        &mut self,
        launch: &Launch,
        inputs: &[&[u8]],
        limits: Limits<'_>,
        outputs: &mut Vec<Vec<u8>>,
    ) -> Result<(), RunError> {
        let interface = &self.interface;
        outputs.truncate(interface.outputs.len());
        outputs.resize_with(interface.outputs.len(), Vec::new);
        for (bytes, i) in outputs.iter_mut().zip(&interface.outputs) {
            bytes.clear();
            match interface.inputs.iter().position(|input| input == i) {
                Some(input) => bytes.extend_from_slice(inputs[input]),
                None => fill_with_zeros(bytes, launch.bytes[*i])?,
            }
        }
        let mut slices: SmallVec<[&mut [u8]; 8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        self.run_groups(launch, 0..launch.groups(), inputs, &mut slices, limits)
    }

    /// Runs a dispatch into memory of the caller's: outputs as long as the launch says, in the order of the interface. What they hold before
    /// means nothing, and after an error neither.
    pub fn run_over<'b>(
        &mut self,
        launch: &Launch,
        inputs: &[&[u8]],
        limits: Limits<'b>,
        outputs: &mut [&'b mut [u8]],
    ) -> Result<(), RunError> {
        let interface = &self.interface;
        for (bytes, i) in outputs.iter_mut().zip(&interface.outputs) {
            match interface.inputs.iter().position(|input| input == i) {
                Some(input) => bytes.copy_from_slice(inputs[input]),
                None => bytes.fill(0),
            }
        }
        self.run_groups(launch, 0..launch.groups(), inputs, outputs, limits)
    }

    /// Runs some workgroups of a dispatch in place: `outputs` hold what the buffers that the kernel writes hold before, be it the bytes
    /// of a `read_write` buffer or what an output starts with, and afterwards what they hold then. `inputs` may be empty where a buffer is
    /// among the outputs too. After an error the outputs mean nothing.
    ///
    /// Workgroups are numbered with x fastest. A kernel with grid barriers is run as a whole only.
    pub fn run_groups<'b>(
        &mut self,
        launch: &Launch,
        groups: Range<u32>,
        inputs: &[&[u8]],
        outputs: &mut [&'b mut [u8]],
        limits: Limits<'b>,
    ) -> Result<(), RunError> {
        let mut own: SmallVec<[Output<'_>; 8]> = outputs.iter_mut().map(|bytes| Output::Own(bytes)).collect();
        self.run_outputs(launch, groups, inputs, &mut own, limits)
    }

    /// The same, on outputs that other evaluators may have at the same time; where they do, each runs workgroups of its own.
    pub fn run_outputs<'b>(
        &mut self,
        launch: &Launch,
        groups: Range<u32>,
        inputs: &[&[u8]],
        outputs: &mut [Output<'b>],
        limits: Limits<'b>,
    ) -> Result<(), RunError> {
        let kernel = &self.kernel;
        assert!(!kernel.uses.grid_sync || groups == (0..launch.groups()), "grid barriers are for all workgroups");
        check_state(kernel, launch.invocations())?;
        let mut trap = None;
        let mut fuel = Fuel::new(limits);
        let result = with_default_state(|| match self.fault {
            None => self.dispatch(launch, groups, inputs, outputs, &mut fuel, &mut trap, Faultless),
            Some(fault) => self.dispatch(launch, groups, inputs, outputs, &mut fuel, &mut trap, Planted(fault)),
        });
        result.map_err(|stopped| fuel.error(stopped))?;
        match trap {
            Some(Trap { invocation, tag, place, .. }) => Err(RunError::Trap { tag, invocation, place }),
            None => Ok(()),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one dispatch")]
    fn dispatch<'b>(
        &mut self,
        launch: &Launch,
        groups: Range<u32>,
        inputs: &[&[u8]],
        outputs: &mut [Output<'b>],
        fuel: &mut Fuel<'b>,
        trap: &mut Option<Trap>,
        faults: impl Faults,
    ) -> Result<(), Stopped> {
        let kernel = &*self.kernel;
        let group = launch.workgroup_size.iter().product::<u32>() as usize;
        let together = (BLOCK_LANES / group).max(1) as u32;
        let blocks = (groups.end - groups.start).div_ceil(together);
        let kept = if kernel.uses.grid_sync { blocks as usize } else { 1 };
        while self.frames.len() < kept {
            self.frames.push(Frame::of(kernel));
        }
        for (number, phase) in self.phases.iter().enumerate() {
            for block in 0..blocks {
                if block > 0 && faults.has(BulkFault::LaterBlocks) {
                    continue;
                }
                let first_group = groups.start + block * together;
                let mut in_block = together.min(groups.end - first_group) as usize;
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
