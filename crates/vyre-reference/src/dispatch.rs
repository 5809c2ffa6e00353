//! A whole dispatch: workgroups and invocations take their turns, stopping at barriers.
//!
//! A workgroup is run by advancing each of its invocations until it retires or waits, and then letting all that wait go on
//! together. Uniformity is validated, so all of them wait at the same statement. Only a program with grid barriers needs the state
//! of more than one workgroup at a time. Schedules that switch between statements are in `interleave.rs`.

use crate::error::RunError;
use crate::faults::hooks::{Faults, Moment};
use crate::fuel::{Fuel, Stopped};
use crate::group::Group;
use crate::invocation::{Status, World};
use crate::observe::Observer;
use crate::plain::Options;
use crate::room::{check_state, fill_with_zeros};
use crate::schedule::{Schedule, Turns};
use crate::subgroup::{self, Lane};
use std::ops::Range;
use vyre_foundation::Report;
use vyre_foundation::ir::{Access, NodeId, Program};
use vyre_foundation::kernel::{BufferId, Kernel, StmtKind};
use vyre_foundation::launch::plan;

/// Lengths and geometry, as the kernel sees them.
pub(crate) struct Shape {
    pub workgroup_size: [u32; 3],
    pub grid: [u32; 3],
    /// By buffer, in elements.
    pub lengths: Vec<u32>,
}

impl Shape {
    pub fn groups(&self) -> u32 {
        self.grid.iter().product()
    }

    pub fn group_invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }

    /// The `gid` of an invocation that is numbered workgroup by workgroup.
    pub fn global_id(&self, number: u32) -> [u32; 3] {
        let size = self.group_invocations();
        let (group, local) = (position(number / size, self.grid), position(number % size, self.workgroup_size));
        std::array::from_fn(|axis| group[axis] * self.workgroup_size[axis] + local[axis])
    }
}

/// Where the n-th cell of a box is, x fastest.
pub(crate) fn position(n: u32, [nx, ny, _]: [u32; 3]) -> [u32; 3] {
    [n % nx, n / nx % ny, n / nx / ny]
}

/// The bytes of all buffers as one workgroup sees them.
pub(crate) struct Memory<'a> {
    /// By buffer; empty for workgroup memory.
    pub storage: &'a mut [Vec<u8>],
    /// By buffer; empty for storage.
    pub workgroup: &'a mut [Vec<u8>],
    pub kernel: &'a Kernel,
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

/// A program with its launch and inputs, ready to be run any number of times.
pub(crate) struct Prepared<'k> {
    pub kernel: &'k Kernel,
    pub shape: Shape,
    /// By buffer: what it holds at the start.
    pub storage: Vec<Vec<u8>>,
    /// The buffers that are outputs, in order.
    pub outputs: &'k [usize],
}

impl<'k> Prepared<'k> {
    /// `program` has its constants replaced.
    pub fn new(program: &'k Program, inputs: &[&[u8]], options: &Options) -> Result<Self, Report> {
        let kernel = program.validated().map_err(Clone::clone)?.kernel();
        let sizes: Vec<u64> = inputs.iter().map(|bytes| bytes.len() as u64).collect();
        let launch = plan(program, &sizes, &options.launch)?;
        let interface = program.interface();
        let mut storage: Vec<Vec<u8>> = vec![Vec::new(); kernel.buffers.len()];
        for (i, bytes) in interface.inputs.iter().zip(inputs) {
            storage[*i] = bytes.to_vec();
        }
        for (i, buffer) in kernel.buffers.iter().enumerate() {
            if buffer.access == Access::Output {
                fill_with_zeros(&mut storage[i], launch.bytes[i])?;
            }
        }
        check_state(kernel, launch.invocations())?;
        let shape = Shape { workgroup_size: launch.workgroup_size, grid: launch.grid, lengths: launch.lengths };
        Ok(Prepared { kernel, shape, storage, outputs: &interface.outputs })
    }

    /// Runs it on these bytes, which are those of `storage` or a copy, and takes the steps off the fuel.
    pub fn run(
        &self,
        storage: Vec<Vec<u8>>,
        schedule: &Schedule,
        fuel: &mut Fuel<'_>,
        observer: &mut impl Observer,
        faults: &impl Faults,
    ) -> Result<Vec<Vec<u8>>, RunError> {
        let mut dispatch = Dispatch::new(self, storage, *fuel, observer, faults);
        let result = dispatch.run(schedule);
        fuel.follow(&dispatch.fuel);
        result.map_err(|stopped| fuel.error(stopped))?;
        dispatch.finish()
    }
}

/// A dispatch that is being run.
pub(crate) struct Dispatch<'a, 'k, O, F> {
    pub prepared: &'a Prepared<'k>,
    pub storage: Vec<Vec<u8>>,
    pub fuel: Fuel<'a>,
    pub observer: &'a mut O,
    faults: &'a F,
    /// The smallest invocation that trapped so far.
    trap: Option<([u32; 3], u32, NodeId)>,
}

impl<'a, 'k, O: Observer, F: Faults> Dispatch<'a, 'k, O, F> {
    pub fn new(prepared: &'a Prepared<'k>, storage: Vec<Vec<u8>>, fuel: Fuel<'a>, observer: &'a mut O, faults: &'a F) -> Self {
        Dispatch { prepared, storage, fuel, observer, faults, trap: None }
    }

    /// The outputs, or the trap.
    pub fn finish(&mut self) -> Result<Vec<Vec<u8>>, RunError> {
        if let Some((invocation, tag, place)) = self.trap {
            return Err(RunError::Trap { tag, invocation, place });
        }
        Ok(self.prepared.outputs.iter().map(|i| std::mem::take(&mut self.storage[*i])).collect())
    }

    fn run(&mut self, schedule: &Schedule) -> Result<(), Stopped> {
        match schedule {
            Schedule::Forward | Schedule::Reverse | Schedule::Stride(_) | Schedule::Random(_) | Schedule::Groups(_) => {
                self.run_turns(schedule)
            }
            Schedule::Interleave | Schedule::Shuffle(_) | Schedule::Late | Schedule::Atomics(_) => self.run_interleaved(schedule),
        }
    }

    fn run_turns(&mut self, schedule: &Schedule) -> Result<(), Stopped> {
        let shape = &self.prepared.shape;
        let count = shape.groups();
        let numbers = schedule.groups(count);
        let mut turns = schedule.turns(shape.group_invocations());
        if !self.prepared.kernel.uses.grid_sync {
            let mut group = Group::new(self.prepared.kernel, shape, 0);
            for number in numbers {
                if self.faults.skips_group(number, count) {
                    continue;
                }
                self.start_group(&mut group, number);
                self.run_until_grid_sync(&mut group, &mut turns)?;
                self.collect_traps(&group);
            }
            return Ok(());
        }
        let numbers: Vec<u32> = numbers.filter(|n| !self.faults.skips_group(*n, count)).collect();
        let mut groups = Vec::new();
        self.start_groups(&mut groups, numbers.into_iter())?;
        loop {
            for group in &mut groups {
                self.run_until_grid_sync(group, &mut turns)?;
            }
            if !groups.iter().any(|group| group.any(Status::AtGridSync)) {
                break;
            }
            self.grid_sync(&mut groups);
        }
        groups.iter().for_each(|group| self.collect_traps(group));
        Ok(())
    }

    /// Sets up workgroups that are alive at the same time, in the place of those that are there.
    pub fn start_groups(&mut self, groups: &mut Vec<Group>, numbers: impl Iterator<Item = u32>) -> Result<(), Stopped> {
        let shape = &self.prepared.shape;
        let mut started = 0;
        for number in numbers {
            // A step per invocation that is only set up, so that fuel bounds this loop too.
            self.fuel.take(u64::from(shape.group_invocations()))?;
            if started == groups.len() {
                groups.push(Group::new(self.prepared.kernel, shape, started));
            }
            self.start_group(&mut groups[started], number);
            started += 1;
        }
        groups.truncate(started);
        Ok(())
    }

    fn start_group(&mut self, group: &mut Group, number: u32) {
        if !self.faults.keeps_memory(Moment::GroupStarts) {
            group.clear_memory();
        }
        group.start(self.prepared.kernel, &self.prepared.shape, number);
        self.observer.group_starts(group.slot);
    }

    /// Runs a workgroup until all its invocations are retired or wait for the grid.
    fn run_until_grid_sync(&mut self, group: &mut Group, turns: &mut Turns) -> Result<(), Stopped> {
        loop {
            for n in turns.next() {
                self.advance(group, *n as usize)?;
            }
            let waiting = group.invocations.iter().map(|invocation| invocation.status).find(|status| match status {
                Status::AtBarrier | Status::AtSubgroup => true,
                Status::Ready | Status::AtGridSync | Status::Retired => false,
            });
            match waiting {
                Some(Status::AtSubgroup) => {
                    let size = self.subgroup_size();
                    for first in (0..group.invocations.len()).step_by(size) {
                        self.exchange(group, first..first + size);
                    }
                }
                Some(_) => self.barrier(group),
                None => return Ok(()),
            }
        }
    }

    fn advance(&mut self, group: &mut Group, n: usize) -> Result<(), Stopped> {
        self.observer.turn(group.slot, group.invocation_number(n));
        let mut fuel = self.fuel;
        let result = group.invocations[n].advance(&mut self.world(&mut group.memory), &mut fuel);
        self.fuel = fuel;
        result
    }

    /// One step of one invocation.
    pub fn step(&mut self, group: &mut Group, n: usize) -> Result<(), Stopped> {
        self.fuel.take(1)?;
        self.observer.turn(group.slot, group.invocation_number(n));
        group.invocations[n].step(&mut self.world(&mut group.memory));
        Ok(())
    }

    /// What an invocation of a workgroup with this memory acts on.
    fn world<'w>(&'w mut self, workgroup: &'w mut [Vec<u8>]) -> World<'w, O, F> {
        let Prepared { kernel, shape, .. } = self.prepared;
        let memory = Memory { storage: &mut self.storage, workgroup, kernel };
        World { kernel, shape, memory, observer: self.observer, faults: self.faults }
    }

    /// Lets a workgroup whose invocations all wait at a barrier go on.
    pub fn barrier(&mut self, group: &mut Group) {
        self.observer.barrier(group.slot);
        group.release(Status::AtBarrier);
    }

    /// Lets workgroups that all wait for the grid go on, with memory that is zero again.
    pub fn grid_sync(&mut self, groups: &mut [Group]) {
        self.observer.grid_sync();
        for group in groups {
            if !self.faults.keeps_memory(Moment::GridSync) {
                group.clear_memory();
            }
            group.release(Status::AtGridSync);
            if group.any(Status::Ready) {
                self.observer.group_starts(group.slot);
            }
        }
    }

    pub fn subgroup_size(&self) -> usize {
        self.prepared.kernel.subgroup.expect("validated: subgroup operations need a declared size") as usize
    }

    /// Does the subgroup operation that the lanes of one subgroup wait at, and lets them go on.
    pub fn exchange(&mut self, group: &mut Group, lanes: Range<usize>) {
        let kernel = self.prepared.kernel;
        let mut operation = None;
        let mut brought: Vec<Lane> = Vec::with_capacity(lanes.len());
        for n in lanes.clone() {
            let (slot, number) = (group.slot, group.invocation_number(n));
            let lane = &group.invocations[n];
            brought.push(match (lane.status, &kernel.stmt(lane.current).kind) {
                (Status::AtSubgroup, StmtKind::Subgroup { result, op, ty, operands }) => {
                    operation = Some((*result, *op, *ty));
                    self.observer.turn(slot, number);
                    Some(lane.operands(operands, &mut self.world(&mut group.memory)))
                }
                _ => None,
            });
        }
        let Some((var, op, ty)) = operation else { return };
        for n in 0..brought.len() {
            if brought[n].is_some() {
                let number = group.invocation_number(lanes.start + n);
                let lane = &mut group.invocations[lanes.start + n];
                if let Some(var) = var {
                    let wrong = self.faults.exchange(op, ty, kernel.floats, &brought, n);
                    let result = wrong.unwrap_or_else(|| subgroup::result(op, ty, kernel.floats, &brought, n));
                    lane.vars[var.index()] = result.into();
                    self.observer.turn(group.slot, number);
                    self.observer.exchanged(result);
                }
                lane.status = Status::Ready;
            }
        }
    }

    /// Keeps the trap of the smallest invocation.
    pub fn collect_traps(&mut self, group: &Group) {
        for invocation in &group.invocations {
            if let Some((tag, place)) = invocation.trap {
                let id = invocation.global(&self.prepared.shape);
                let is_before = |other: [u32; 3]| id.iter().rev().lt(other.iter().rev());
                if self.trap.is_none_or(|(other, _, _)| is_before(other) != self.faults.reports_last_trap()) {
                    self.trap = Some((id, tag, place));
                }
            }
        }
    }
}
