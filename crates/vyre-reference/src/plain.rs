//! A whole dispatch: workgroups in order, invocations in order, stopping at barriers.
//!
//! A workgroup is run by advancing each of its invocations until it retires or waits, and then letting all that wait go on
//! together. Uniformity is validated, so all of them wait at the same statement. Only a program with grid barriers needs the state
//! of more than one workgroup at a time.

use crate::error::RunError;
use crate::invocation::{FuelExhausted, Invocation, Status};
use crate::subgroup::{self, Lane};
use std::collections::BTreeMap;
use vyre_foundation::ir::{Access, Program, SpecValue};
use vyre_foundation::kernel::{BufferId, Kernel, StmtKind};
use vyre_foundation::launch::{LaunchConfig, plan};
use vyre_foundation::{Diagnostic, Report, specialize};
use vyre_spec::ErrorCode;

/// In which order invocations and workgroups take their turns. A program that is deterministic gives the same bytes in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Smallest id first.
    #[default]
    Forward,
    /// Largest id first.
    Reverse,
}

/// What a caller can say about a run beside program and inputs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The launch.
    pub launch: LaunchConfig,
    /// Values for specialization constants.
    pub specialization: BTreeMap<String, SpecValue>,
    /// The steps that all invocations may take together. A statement is a step, and so are the end of a body and of an invocation.
    pub fuel: u64,
    /// The order of turns.
    pub order: Order,
}

impl Default for Options {
    /// The default launch, 4 billion steps, smallest id first.
    fn default() -> Self {
        Options {
            launch: LaunchConfig::default(),
            specialization: BTreeMap::new(),
            fuel: 1 << 32,
            order: Order::Forward,
        }
    }
}

/// Bytes of state that a program with grid barriers may need for all its invocations.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// Lengths and geometry, as the kernel sees them.
pub(crate) struct Shape {
    pub workgroup_size: [u32; 3],
    pub grid: [u32; 3],
    /// By buffer, in elements.
    pub lengths: Vec<u32>,
}

/// The bytes of all buffers as one workgroup sees them.
pub(crate) struct Memory<'a> {
    storage: &'a mut [Vec<u8>],
    workgroup: &'a mut [Vec<u8>],
    kernel: &'a Kernel,
}

impl Memory<'_> {
    pub fn bytes(&self, buffer: BufferId) -> &[u8] {
        match self.kernel.buffer(buffer).access {
            Access::Workgroup => &self.workgroup[buffer.index()],
            Access::Read | Access::ReadWrite | Access::Output | Access::Uniform => &self.storage[buffer.index()],
        }
    }

    pub fn bytes_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        match self.kernel.buffer(buffer).access {
            Access::Workgroup => &mut self.workgroup[buffer.index()],
            Access::Read | Access::ReadWrite | Access::Output | Access::Uniform => &mut self.storage[buffer.index()],
        }
    }
}

/// Runs a program. Inputs and outputs are in the order of the program's interface, which is that of binding numbers.
pub fn run(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
    let values = options.specialization.iter().map(|(name, value)| (name.as_str(), value));
    let program = specialize(program, values)?;
    let kernel = program.validated().map_err(Clone::clone)?.kernel();
    let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(&program, &sizes, &options.launch)?;
    let interface = program.interface();

    let mut storage: Vec<Vec<u8>> = vec![Vec::new(); kernel.buffers.len()];
    for (i, bytes) in interface.inputs.iter().zip(inputs) {
        storage[*i] = bytes.to_vec();
    }
    for (i, buffer) in kernel.buffers.iter().enumerate() {
        if buffer.access == Access::Output {
            storage[i] = vec![0; launch.bytes[i] as usize];
        }
    }

    let invocations = launch.invocations();
    let state = invocations.saturating_mul((kernel.vars.len() as u64 + 4) * size_of::<vyre_scalar::Value>() as u64);
    if kernel.uses.grid_sync && state > MAX_STATE_BYTES {
        return Err(RunError::Rejected(Report::single(
            Diagnostic::new(
                ErrorCode::E0708,
                format!("{invocations} invocations that wait for each other are too many for the interpreter"),
            )
            .expected(format!("at most {MAX_STATE_BYTES} bytes of state"))
            .found(format!("{state} bytes")),
        )));
    }

    let shape = Shape { workgroup_size: launch.workgroup_size, grid: launch.grid, lengths: launch.lengths };
    let mut dispatch = Dispatch { kernel, shape, storage, order: options.order, fuel: options.fuel, trap: None };
    dispatch.run().map_err(|FuelExhausted| RunError::OutOfFuel { fuel: options.fuel })?;
    if let Some((invocation, tag, place)) = dispatch.trap {
        return Err(RunError::Trap { tag, invocation, place });
    }
    Ok(interface.outputs.iter().map(|i| std::mem::take(&mut dispatch.storage[*i])).collect())
}

struct Dispatch<'k> {
    kernel: &'k Kernel,
    shape: Shape,
    storage: Vec<Vec<u8>>,
    order: Order,
    fuel: u64,
    /// The smallest invocation that trapped so far.
    trap: Option<([u32; 3], u32, vyre_foundation::ir::Place)>,
}

/// A workgroup that is being run.
struct Group<'k> {
    invocations: Vec<Invocation<'k>>,
    /// By buffer; empty for those that are not workgroup memory.
    memory: Vec<Vec<u8>>,
}

impl<'k> Dispatch<'k> {
    fn run(&mut self) -> Result<(), FuelExhausted> {
        let [nx, ny, nz] = self.shape.grid;
        let ids = (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        match self.order {
            Order::Forward => self.run_groups(ids),
            Order::Reverse => {
                let ids = (0..nz).rev().flat_map(move |z| (0..ny).rev().flat_map(move |y| (0..nx).rev().map(move |x| [x, y, z])));
                self.run_groups(ids)
            }
        }
    }

    fn run_groups(&mut self, ids: impl Iterator<Item = [u32; 3]>) -> Result<(), FuelExhausted> {
        if !self.kernel.uses.grid_sync {
            let mut group = self.new_group();
            for id in ids {
                self.start_group(&mut group, id);
                self.run_until_grid_sync(&mut group)?;
                self.collect_traps(&group);
            }
            return Ok(());
        }
        let mut groups = Vec::new();
        for id in ids {
            // A step per invocation that is only set up, so that fuel bounds this loop too.
            self.fuel = self.fuel.checked_sub(u64::from(self.kernel.workgroup_invocations())).ok_or(FuelExhausted)?;
            let mut group = self.new_group();
            self.start_group(&mut group, id);
            groups.push(group);
        }
        loop {
            for group in &mut groups {
                self.run_until_grid_sync(group)?;
            }
            if groups.iter().all(|group| group.invocations.iter().all(|invocation| invocation.status == Status::Retired)) {
                break;
            }
            for group in &mut groups {
                group.memory.iter_mut().for_each(|bytes| bytes.fill(0));
                release(group, Status::AtGridSync);
            }
        }
        for group in &groups {
            self.collect_traps(group);
        }
        Ok(())
    }

    fn new_group(&self) -> Group<'k> {
        let count = self.shape.workgroup_size.iter().product::<u32>();
        let memory = self.kernel.buffers.iter().map(|buffer| match (buffer.access, buffer.count) {
            (Access::Workgroup, Some(count)) => {
                let bytes = vyre_scalar::memory::byte_length(&buffer.element, u64::from(count));
                vec![0; bytes.expect("validated: workgroup memory is small") as usize]
            }
            (Access::Workgroup | Access::Read | Access::ReadWrite | Access::Output | Access::Uniform, _) => Vec::new(),
        });
        Group { invocations: (0..count).map(|_| Invocation::new(self.kernel)).collect(), memory: memory.collect() }
    }

    fn start_group(&self, group: &mut Group<'k>, id: [u32; 3]) {
        group.memory.iter_mut().for_each(|bytes| bytes.fill(0));
        let [nx, ny, _] = self.shape.workgroup_size;
        for (n, invocation) in group.invocations.iter_mut().enumerate() {
            let n = n as u32;
            invocation.start(self.kernel, [n % nx, n / nx % ny, n / nx / ny], id);
        }
    }

    /// Runs a workgroup until all its invocations are retired or wait for the grid.
    fn run_until_grid_sync(&mut self, group: &mut Group<'k>) -> Result<(), FuelExhausted> {
        loop {
            self.advance_all(group)?;
            let waiting = group.invocations.iter().map(|invocation| invocation.status).find(|status| match status {
                Status::AtBarrier | Status::AtSubgroup(_) => true,
                Status::Ready | Status::AtGridSync | Status::Retired => false,
            });
            match waiting {
                Some(status @ Status::AtSubgroup(_)) => {
                    self.exchange(group);
                    release(group, status);
                }
                Some(status) => release(group, status),
                None => return Ok(()),
            }
        }
    }

    fn advance_all(&mut self, group: &mut Group<'k>) -> Result<(), FuelExhausted> {
        let mut memory = Memory { storage: &mut self.storage, workgroup: &mut group.memory, kernel: self.kernel };
        let count = group.invocations.len();
        for turn in 0..count {
            let n = match self.order {
                Order::Forward => turn,
                Order::Reverse => count - 1 - turn,
            };
            group.invocations[n].advance(self.kernel, &self.shape, &mut memory, &mut self.fuel)?;
        }
        Ok(())
    }

    /// The subgroup operation that all invocations of the group wait at.
    fn exchange(&mut self, group: &mut Group<'k>) {
        let memory = Memory { storage: &mut self.storage, workgroup: &mut group.memory, kernel: self.kernel };
        let size = self.kernel.subgroup.expect("validated: subgroup operations need a declared size") as usize;
        for lanes in group.invocations.chunks_mut(size) {
            let mut operation = None;
            let mut brought: Vec<Lane> = Vec::with_capacity(size);
            for lane in lanes.iter() {
                brought.push(match (lane.status, lane.current().map(|stmt| &stmt.kind)) {
                    (Status::AtSubgroup(_), Some(StmtKind::Subgroup { result, op, ty, operands })) => {
                        operation = Some((*result, *op, *ty));
                        let mut values = [0; 2];
                        for (value, operand) in values.iter_mut().zip(operands) {
                            *value = lane.eval(self.kernel, &self.shape, &memory, *operand).scalar();
                        }
                        Some(values)
                    }
                    _ => None,
                });
            }
            let Some((Some(var), op, ty)) = operation else { continue };
            for (n, lane) in lanes.iter_mut().enumerate() {
                if brought[n].is_some() {
                    lane.vars[var.index()] = subgroup::result(op, ty, self.kernel.floats, &brought, n).into();
                }
            }
        }
    }

    fn collect_traps(&mut self, group: &Group<'k>) {
        for invocation in &group.invocations {
            if let Some((tag, place)) = invocation.trap {
                let id = invocation.global(&self.shape);
                let before = |a: [u32; 3], b: [u32; 3]| [a[2], a[1], a[0]] < [b[2], b[1], b[0]];
                if self.trap.is_none_or(|(smallest, _, _)| before(id, smallest)) {
                    self.trap = Some((id, tag, place));
                }
            }
        }
    }
}

/// Lets the invocations that wait there go on.
///
/// Uniformity is validated, so those that wait at all wait at the same statement.
fn release(group: &mut Group<'_>, at: Status) {
    for invocation in &mut group.invocations {
        debug_assert!(matches!(invocation.status, Status::Retired) || invocation.status == at, "uniformity is validated");
        if invocation.status == at {
            invocation.status = Status::Ready;
        }
    }
}
