//! Value numbers: values that are known to be equal have the same number.
//!
//! A pure op over the same operands gives the same value, wherever both are defined and in the same iterations of the loops around
//! both. So every op gets the number of the first one like it; operands of commuting ops are taken in one order. A load of memory
//! that nobody writes gives the same value for the same index. Results of other loads, of atomics and subgroup operations, of `if`s
//! and loops, and arguments each have a number of their own: equality then holds even for programs that race, which is what a
//! proof of memory safety needs.

use crate::hash::Table;
use crate::kernel::BufferId;
use crate::ssa::{InstKind, Op, RegionId, Ssa, Value};

/// The first value of each kind.
#[derive(Default)]
struct Seen {
    ops: Table<Op, Value>,
    loads: Table<(BufferId, Value), Value>,
}

/// By value: the first value that is known to be equal to it.
#[derive(Clone, Debug)]
pub struct Numbers(Vec<Value>);

impl Numbers {
    /// The numbers of a form.
    #[must_use]
    pub fn of(ssa: &Ssa) -> Numbers {
        let mut numbers = Numbers((0..ssa.values.len() as u32).map(Value).collect());
        numbers.region(ssa, ssa.root, &mut Seen::default());
        numbers
    }

    /// The number of a value, which is a value itself.
    #[must_use]
    pub fn of_value(&self, value: Value) -> Value {
        self.0[value.index()]
    }

    fn region(&mut self, ssa: &Ssa, region: RegionId, seen: &mut Seen) {
        for id in &ssa.region(region).insts {
            let inst = ssa.inst(*id);
            if let InstKind::Op(op) = inst.kind {
                let mut key = op;
                key.for_each_operand_mut(&mut |operand| *operand = self.0[operand.index()]);
                let result = inst.results[0];
                self.0[result.index()] = *seen.ops.entry(key.in_one_order()).or_insert(result);
            }
            if let InstKind::Load { buffer, index, .. } = inst.kind
                && !ssa.kernel.buffer(buffer).access.is_writable()
            {
                let result = inst.results[0];
                self.0[result.index()] = *seen.loads.entry((buffer, self.0[index.index()])).or_insert(result);
            }
            inst.kind.regions().for_each(|inner| self.region(ssa, inner, seen));
        }
    }
}
