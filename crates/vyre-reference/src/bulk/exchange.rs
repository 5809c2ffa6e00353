//! Subgroup operations: lanes of a subgroup are neighbours in the block.

use super::block::{Block, Mask};
use super::column::{Val, is_wide};
use super::faults::Faults;
use crate::faults::BulkFault;
use crate::subgroup;
use vyre_foundation::kernel::{MAX_OPERANDS, VarId};
use vyre_spec::Scalar;

impl<F: Faults> Block<'_, '_, F> {
    /// Does a subgroup operation of the lanes in the mask.
    pub fn exchange(&mut self, var: VarId, op: vyre_spec::SubgroupOp, ty: Scalar, operands: [Val; MAX_OPERANDS], mask: Mask) {
        let size = self.subgroup_size() as usize;
        let lanes = self.frame.lanes;
        let result = op.info().result_type(ty).expect("subgroup ops have results");
        let mut brought = std::mem::take(&mut self.frame.brought);
        let out = if is_wide(result) { Val::Wide(self.frame.wide.push()) } else { Val::Narrow(self.frame.narrow.push()) };
        for first in (0..lanes).step_by(size) {
            brought.clear();
            let reach = if self.faults.has(BulkFault::SubgroupBoundary) { 2 * size } else { size };
            for lane in first..lanes.min(first + reach) {
                let present = self.takes_part(mask, lane) || self.faults.has(BulkFault::SubgroupRetired);
                brought.push(present.then(|| operands.map(|operand| self.lane_of(operand, lane))));
            }
            for (n, own) in brought.iter().enumerate().take(size) {
                if own.is_none() {
                    continue;
                }
                let bits = subgroup::result(op, ty, self.kernel.floats, &brought, n);
                match out {
                    Val::Wide(column) => self.frame.wide.column_mut(column)[first + n] = bits,
                    Val::Narrow(column) => self.frame.narrow.column_mut(column)[first + n] = bits as u32,
                    Val::Splat(_) => unreachable!("a column was taken"),
                }
            }
        }
        self.frame.brought = brought;
        self.set(var, [out, Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
    }
}
