//! Ids: which invocation, workgroup and lane of its subgroup each lane is.

use super::block::Block;
use super::column::Val;
use super::faults::Faults;
use crate::faults::BulkFault;
use vyre_foundation::ir::{Axis, Builtin};

impl<F: Faults> Block<'_, '_, F> {
    /// The id of the workgroup with this number.
    fn group_id(&self, number: u32) -> [u32; 3] {
        let [nx, ny, _] = self.launch.grid;
        [number % nx, number / nx % ny, number / nx / ny]
    }

    /// The `gid` of a lane.
    pub fn global(&self, lane: usize) -> [u32; 3] {
        let lane = self.frame.origin.get(lane).map_or(lane, |origin| *origin as usize);
        let group = self.group_id(self.first_group + (lane / self.group) as u32);
        let n = (lane % self.group) as u32;
        let [nx, ny, _] = self.launch.workgroup_size;
        let local = [n % nx, n / nx % ny, n / nx / ny];
        std::array::from_fn(|axis| group[axis] * self.launch.workgroup_size[axis] + local[axis])
    }

    pub fn builtin(&mut self, builtin: Builtin) -> Val {
        let (size, groups) = (self.launch.workgroup_size, self.launch.grid);
        match builtin {
            Builtin::InvocationCount(axis) => Val::Splat(u64::from(groups[axis as usize] * size[axis as usize])),
            Builtin::WorkgroupCount(axis) => Val::Splat(u64::from(groups[axis as usize])),
            Builtin::LocalCount(axis) => Val::Splat(u64::from(size[axis as usize])),
            Builtin::SubgroupSize => Val::Splat(u64::from(self.subgroup_size())),
            Builtin::Workgroup(axis) if self.groups == 1 => {
                let before = u32::from(self.faults.has(BulkFault::WorkgroupId) && self.first_group > 0);
                Val::Splat(u64::from(self.group_id(self.first_group - before)[axis as usize]))
            }
            Builtin::Invocation(_) | Builtin::Workgroup(_) | Builtin::Local(_) | Builtin::SubgroupLane => {
                let ids = &self.frame.ids;
                let (_, column) = ids.iter().find(|(id, _)| *id == builtin).expect("every id that is read has a column");
                Val::Narrow(*column)
            }
        }
    }

    /// Writes the columns of the ids that the kernel reads; they are the same for every statement of the block.
    pub fn write_ids(&mut self) {
        for n in 0..self.frame.ids.len() {
            let (builtin, column) = self.frame.ids[n];
            let mut size = self.launch.workgroup_size;
            if self.faults.has(BulkFault::OverrideIgnored) {
                size = self.kernel.workgroup_size;
            }
            let first_group = if self.faults.has(BulkFault::BlockIds) { 0 } else { self.first_group };
            let mut ids = self.frame.narrow.take(column);
            for (group, out) in (first_group..).zip(ids.chunks_mut(self.group)) {
                let group = self.group_id(group);
                match builtin {
                    Builtin::Invocation(axis) => {
                        let first = group[axis as usize] * size[axis as usize];
                        write_positions(out, size, axis, first);
                    }
                    Builtin::Local(axis) if self.faults.has(BulkFault::LocalShape) => {
                        write_positions(out, size.map(u32::next_power_of_two), axis, 0);
                    }
                    Builtin::Local(axis) => write_positions(out, size, axis, 0),
                    Builtin::Workgroup(axis) => out.fill(group[axis as usize]),
                    Builtin::SubgroupLane => {
                        for lanes in out.chunks_mut(self.subgroup_size() as usize) {
                            lanes.iter_mut().zip(0..).for_each(|(out, lane)| *out = lane);
                        }
                    }
                    Builtin::InvocationCount(_) | Builtin::WorkgroupCount(_) | Builtin::LocalCount(_) | Builtin::SubgroupSize => {
                        unreachable!("counts are the same in every lane")
                    }
                }
            }
            if let (true, Some((last, past))) = (self.faults.has(BulkFault::LanePast256), ids.split_at_mut_checked(257)) {
                past.fill(last[256]);
            }
            self.frame.narrow.put(column, ids);
        }
    }
}

/// The positions of a workgroup's lanes along an axis, from `first` on.
fn write_positions(out: &mut [u32], size: [u32; 3], axis: Axis, first: u32) {
    let [nx, ny, _] = size;
    // How many lanes follow each other with one position, and after how many positions it starts again.
    let (run, positions) = match axis {
        Axis::X => (1, nx),
        Axis::Y => (nx, ny),
        Axis::Z => (nx * ny, u32::MAX),
    };
    if run == 1 {
        for row in out.chunks_mut(positions as usize) {
            row.iter_mut().zip(first..).for_each(|(out, position)| *out = position);
        }
    } else {
        for (run, n) in out.chunks_mut(run as usize).zip(0u32..) {
            run.fill(first + n % positions);
        }
    }
}
