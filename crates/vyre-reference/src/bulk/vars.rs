//! Variables: a column each, or one scalar where all lanes have the same.

use super::block::{Block, Mask, Vals};
use super::column::{Stack, Val, Word};
use super::faults::Faults;
use super::lanes;
use crate::faults::BulkFault;
use pulp::Arch;
use vyre_foundation::kernel::VarId;

impl<F: Faults> Block<'_, '_, F> {
    /// `v = vec(v.y, v.x)` reads components that it overwrites; they are copied first.
    fn apart(&mut self, var: VarId, mut value: Vals) -> Vals {
        if self.faults.has(BulkFault::VectorAlias) {
            return value;
        }
        let components = self.frame.components[var.index()];
        let own = components.first..components.first + components.count;
        for (n, value) in value.iter_mut().enumerate().take(components.count) {
            if let Val::Narrow(column) = *value
                && own.contains(&column)
                && column != components.first + n
                && !components.wide
            {
                *value = self.new_narrow(|narrow, _, out| out.copy_from_slice(narrow.column(column)));
            }
        }
        value
    }

    /// Gives a variable a value in every lane.
    pub fn set(&mut self, var: VarId, value: Vals) {
        let components = self.frame.components[var.index()];
        let value = self.apart(var, value);
        for (n, value) in value.into_iter().enumerate().take(components.count) {
            let own = components.first + n;
            let kept = match value {
                Val::Splat(bits) => Val::Splat(bits),
                Val::Narrow(column) => {
                    move_column(&mut self.frame.narrow, self.frame.kept_narrow, column, own);
                    Val::Narrow(own)
                }
                Val::Wide(column) => {
                    move_column(&mut self.frame.wide, self.frame.kept_wide, column, own);
                    Val::Wide(own)
                }
            };
            self.frame.vars[var.index()][n] = kept;
        }
    }

    /// Gives a variable a value in the lanes of a mask.
    pub fn blend(&mut self, var: VarId, value: Vals, mask: Mask) {
        let components = self.frame.components[var.index()];
        let value = self.apart(var, value);
        for (n, value) in value.into_iter().enumerate().take(components.count) {
            let own = components.first + n;
            let old = self.frame.vars[var.index()][n];
            if old == value {
                continue;
            }
            if let (true, Val::Splat(_), Val::Splat(_)) = (self.faults.has(BulkFault::BlendSplat), old, value) {
                self.frame.vars[var.index()][n] = value;
                continue;
            }
            if components.wide {
                let value = self.wide_column(value);
                let column = mask.column.expect("a blend leaves some lanes out");
                blend_column(self.arch, &mut self.frame.wide, old, own, value, self.frame.narrow.column(column));
                if self.faults.has(BulkFault::BlendWide) {
                    self.frame.wide.column_mut(own).iter_mut().for_each(|word| *word &= 0xFFFF_FFFF);
                }
                self.frame.vars[var.index()][n] = Val::Wide(own);
            } else {
                let value = self.narrow_column(value);
                // The mask is of the same width as the value, so it is taken out while the variable is written.
                let column = mask.column.expect("a blend leaves some lanes out");
                let bits = self.frame.narrow.take(column);
                blend_column(self.arch, &mut self.frame.narrow, old, own, value, &bits);
                self.frame.narrow.put(column, bits);
                self.frame.vars[var.index()][n] = Val::Narrow(own);
            }
        }
    }
}

/// A column of the stack is moved; one of a variable is copied, because that variable keeps it.
fn move_column<W: Word>(stack: &mut Stack<W>, kept: usize, from: usize, to: usize) {
    if from >= kept {
        stack.swap(from, to);
    } else if from != to {
        let mut column = stack.take(to);
        column.copy_from_slice(stack.column(from));
        stack.put(to, column);
    }
}

fn blend_column<W: Word>(arch: Arch, stack: &mut Stack<W>, old: Val, own: usize, value: usize, mask: &[u32]) {
    let mut column = stack.take(own);
    if let Val::Splat(bits) = old {
        column.fill(W::from_bits(bits));
    }
    lanes::blend(arch, stack.column(value), mask, &mut column);
    stack.put(own, column);
}
