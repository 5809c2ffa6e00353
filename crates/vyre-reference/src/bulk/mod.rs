//! The bulk evaluator: every op over a block of invocations at once.
//!
//! It gives the same bytes as the plain interpreter for every dispatch whose bytes do not depend on the order of invocations, and
//! gives them much faster: what a statement costs to look at is shared by hundreds of lanes, and the loops over lanes vectorise.
//! It is safe, portable Rust and takes its arithmetic from `vyre_scalar`, as the plain interpreter does; the two share nothing else.
//!
//! A [`Bulk`] keeps its memory between runs: once it is warm, [`Bulk::run_into`] does not allocate.

mod block;
mod column;
mod lanes;
mod memory;
mod ops;
mod pack;

use crate::error::RunError;
use crate::plain::Options;
use crate::room::{check_state, fill_with_zeros};
use block::{Block, FuelExhausted, Home};
use column::{Stack, Val, is_wide};
use pack::{Packing, packings};
use pulp::Arch;
use vyre_foundation::ir::{Access, Builtin, NodeId, Program};
use vyre_foundation::kernel::{BufferId, ExprKind, Kernel, Stmt, StmtKind};
use vyre_foundation::launch::{Launch, plan};
use vyre_foundation::{Report, specialize};
use vyre_host_floats::with_default_state;
use vyre_spec::ValueType;

/// Lanes that a block has if workgroups are small: enough to share the cost of a statement, few enough for columns to stay in the
/// fastest memory.
const BLOCK_LANES: usize = 512;

/// Runs one dispatch, as [`crate::run`] does.
pub fn run(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    run_on(Bulk::new(&specialized(program, options)?)?, inputs, options)
}

/// Runs one dispatch with lanes packed wherever they can be; see [`Bulk::pack_always`].
pub fn run_packed(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    run_on(Bulk::new(&specialized(program, options)?)?.pack_always(), inputs, options)
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
    /// The statements between grid barriers; each by its index in every scope around it.
    phases: Vec<Vec<Box<[usize]>>>,
    arch: Arch,
    packings: Vec<Option<Packing>>,
    pack_always: bool,
    /// One for the block that runs, or one per block if blocks wait for each other.
    scratch: Vec<Scratch>,
    /// For frames of loops that few lanes are in.
    spare: Vec<Scratch>,
}

/// The columns of a variable.
#[derive(Clone, Copy)]
struct Components {
    first: usize,
    count: usize,
    wide: bool,
}

/// A frame: what the lanes that are in step with each other need beside the buffers. A block has one, and each loop that lanes are
/// packed for another.
#[derive(Default)]
struct Scratch {
    narrow: Stack<u32>,
    wide: Stack<u64>,
    /// Columns below these belong to variables, ids and `live`.
    kept_narrow: usize,
    kept_wide: usize,
    components: Vec<Components>,
    vars: Vec<[Val; 4]>,
    /// The ids that the kernel reads and that differ between lanes, each with its column.
    ids: Vec<(Builtin, usize)>,
    /// The column of lanes that are not retired, and how many those are.
    live: usize,
    live_count: usize,
    /// The loops around the current statement: lanes that have left each, and whether any has.
    broken: Vec<(usize, bool)>,
    group_memory: Vec<u8>,
    brought: Vec<crate::subgroup::Lane>,
    /// Of packed lanes: the lanes of the frame around it, and of the block. Empty where lanes are those of the block.
    picked: Vec<u32>,
    origin: Vec<u32>,
}

impl Scratch {
    fn of(kernel: &Kernel) -> Scratch {
        let mut scratch = Scratch::default();
        scratch.layout(kernel);
        scratch
    }

    fn tops(&self) -> (usize, usize) {
        (self.narrow.top(), self.wide.top())
    }

    fn pop_to(&mut self, (narrow, wide): (usize, usize)) {
        self.narrow.pop_to(narrow);
        self.wide.pop_to(wide);
    }

    /// Makes room for the variables of a kernel.
    fn layout(&mut self, kernel: &Kernel) {
        let (mut narrow, mut wide) = (0, 0);
        for var in &kernel.vars {
            let (scalar, count) = match var.ty {
                ValueType::Scalar(scalar) => (scalar, 1),
                ValueType::Vector(scalar, count) => (scalar, usize::from(count)),
            };
            let next = if is_wide(scalar) { &mut wide } else { &mut narrow };
            self.components.push(Components { first: *next, count, wide: is_wide(scalar) });
            *next += count;
        }
        for expr in &kernel.exprs {
            if let ExprKind::Builtin(builtin) = expr.kind
                && differs(builtin)
                && !self.ids.iter().any(|(id, _)| *id == builtin)
            {
                self.ids.push((builtin, narrow));
                narrow += 1;
            }
        }
        self.live = narrow;
        self.kept_narrow = narrow + 1;
        self.kept_wide = wide;
        self.vars = vec![[Val::Splat(0); 4]; kernel.vars.len()];
    }

    /// Makes this a frame of so many live lanes, with room for `room`.
    fn start(&mut self, lanes: usize, room: usize, group_memory: usize) {
        self.narrow.reset(lanes, room, self.kept_narrow);
        self.wide.reset(lanes, room, self.kept_wide);
        self.vars.fill([Val::Splat(0); 4]);
        self.narrow.column_mut(self.live).fill(1);
        self.live_count = lanes;
        self.broken.clear();
        self.clear_group_memory(group_memory);
    }

    fn clear_group_memory(&mut self, bytes: usize) {
        self.group_memory.clear();
        self.group_memory.resize(bytes, 0);
    }
}

impl Bulk {
    /// Makes a program ready; constants it still has take their defaults.
    pub fn new(program: &Program) -> Result<Bulk, Report> {
        let program = specialize(program, [])?;
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
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
        flatten(&kernel.body, &mut Vec::new(), &mut phases);
        let packings = packings(kernel);
        let (scratch, spare) = (Vec::new(), Vec::new());
        Ok(Bulk { arch: Arch::new(), homes, group_bytes, phases, packings, pack_always: false, scratch, spare, program })
    }

    /// Packs the lanes of a loop whenever one of them has left it, whether that pays or not: so that small dispatches test what
    /// otherwise only large ones meet.
    #[must_use]
    pub fn pack_always(mut self) -> Bulk {
        self.pack_always = true;
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
        with_default_state(|| self.dispatch(launch, inputs, outputs, &mut left, &mut trap))
            .map_err(|FuelExhausted| RunError::OutOfFuel { fuel })?;
        match trap {
            Some((_, invocation, tag, place)) => Err(RunError::Trap { tag, invocation, place }),
            None => Ok(()),
        }
    }

    fn dispatch(
        &mut self,
        launch: &Launch,
        inputs: &[&[u8]],
        outputs: &mut [Vec<u8>],
        fuel: &mut u64,
        trap: &mut Option<(u64, [u32; 3], u32, NodeId)>,
    ) -> Result<(), FuelExhausted> {
        let kernel = self.program.validated().expect("checked when it was made").kernel();
        let group = launch.workgroup_size.iter().product::<u32>() as usize;
        let groups: u32 = launch.grid.iter().product();
        let together = (BLOCK_LANES / group).max(1) as u32;
        let blocks = groups.div_ceil(together);
        let kept = if kernel.uses.grid_sync { blocks as usize } else { 1 };
        while self.scratch.len() < kept {
            self.scratch.push(Scratch::of(kernel));
        }
        for (number, phase) in self.phases.iter().enumerate() {
            for block in 0..blocks {
                let first_group = block * together;
                let in_block = together.min(groups - first_group) as usize;
                let scratch = &mut self.scratch[if kept == 1 { 0 } else { block as usize }];
                if number == 0 {
                    scratch.start(in_block * group, 0, in_block * self.group_bytes);
                } else {
                    scratch.clear_group_memory(in_block * self.group_bytes);
                }
                let mut block = Block {
                    arch: self.arch,
                    kernel,
                    launch,
                    homes: &self.homes,
                    packings: &self.packings,
                    pack_always: self.pack_always,
                    inputs,
                    outputs,
                    scratch,
                    spare: &mut self.spare,
                    group_bytes: self.group_bytes,
                    lanes: in_block * group,
                    one_group: in_block == 1,
                    group,
                    first_group,
                    fuel,
                    trap,
                };
                if number == 0 {
                    block.write_ids();
                }
                block.run(phase.iter().map(|path| find(&kernel.body, path)))?;
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

/// Whether lanes of a block read different values.
fn differs(builtin: Builtin) -> bool {
    match builtin {
        Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => true,
        Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => false,
    }
}

/// The statements of the top level, through scopes, cut at grid barriers.
fn flatten(body: &[Stmt], path: &mut Vec<usize>, phases: &mut Vec<Vec<Box<[usize]>>>) {
    for (i, stmt) in body.iter().enumerate() {
        path.push(i);
        match &stmt.kind {
            StmtKind::Scope(body) => flatten(body, path, phases),
            StmtKind::GridSync => phases.push(Vec::new()),
            StmtKind::Let(..)
            | StmtKind::Assign(..)
            | StmtKind::Store(..)
            | StmtKind::Atomic { .. }
            | StmtKind::Subgroup { .. }
            | StmtKind::If(..)
            | StmtKind::Loop(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier
            | StmtKind::Trap(_) => phases.last_mut().expect("there is always a phase").push(path.as_slice().into()),
        }
        path.pop();
    }
}

fn find<'k>(body: &'k [Stmt], path: &[usize]) -> &'k Stmt {
    let (last, scopes) = path.split_last().expect("a path has a last step");
    let mut body = body;
    for step in scopes {
        let StmtKind::Scope(inner) = &body[*step].kind else { unreachable!("paths lead through scopes") };
        body = inner;
    }
    &body[*last]
}
