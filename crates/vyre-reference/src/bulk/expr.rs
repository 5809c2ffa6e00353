//! Expressions: every op over all lanes. They are pure and no op can fail, so that masks do not matter here.
//!
//! The value of a variable is the variable's own column, not a copy. Whoever keeps it beyond the statement, while the variable may be
//! assigned, has to copy it: see [`Block::fixed`].

use super::block::{Block, NOTHING, Vals};
use super::column::{Stack, Val, is_wide};
use super::faults::Faults;
use super::{lanes, ops};
use crate::faults::BulkFault;
use vyre_foundation::kernel::{ExprId, ExprKind};
use vyre_spec::ValueType;

impl<F: Faults> Block<'_, '_, F> {
    /// The column of a 32-bit value.
    #[inline]
    pub fn narrow_column(&mut self, value: Val) -> usize {
        match value {
            Val::Narrow(column) => column,
            Val::Splat(bits) => {
                let column = self.narrow().push();
                lanes::fill(self.arch, bits, self.frame.narrow.column_mut(column));
                column
            }
            Val::Wide(_) => unreachable!("a 32-bit value is in a narrow column"),
        }
    }

    /// The column of a 64-bit value.
    #[inline]
    pub fn wide_column(&mut self, value: Val) -> usize {
        match value {
            Val::Wide(column) => column,
            Val::Splat(bits) => {
                let column = self.frame.wide.push();
                lanes::fill(self.arch, bits, self.frame.wide.column_mut(column));
                column
            }
            Val::Narrow(_) => unreachable!("a 64-bit value is in a wide column"),
        }
    }

    /// The value of an expression of any type.
    pub fn vals(&mut self, id: ExprId) -> Vals {
        let kernel = self.kernel;
        let mut vals = NOTHING;
        match (&kernel.expr(id).kind, kernel.expr(id).ty) {
            (_, ValueType::Scalar(_)) => vals[0] = self.val(id),
            (ExprKind::Var { var }, _) => vals = self.frame.vars[var.index()],
            (ExprKind::Vector { components }, _) => {
                for (val, component) in vals.iter_mut().zip(components.iter()) {
                    *val = self.val(*component);
                }
            }
            (ExprKind::Load { buffer, index, .. }, ValueType::Vector(_, count)) => {
                let index = self.val(*index);
                for (component, val) in vals.iter_mut().enumerate().take(usize::from(count)) {
                    *val = self.load(*buffer, index, component);
                }
            }
            (
                ExprKind::Lit { .. }
                | ExprKind::Builtin { .. }
                | ExprKind::Len { .. }
                | ExprKind::Unary { .. }
                | ExprKind::Binary { .. }
                | ExprKind::Ternary { .. }
                | ExprKind::Cast { .. }
                | ExprKind::Bitcast { .. }
                | ExprKind::Extract { .. },
                ValueType::Vector(..),
            ) => unreachable!("no op gives a vector"),
        }
        vals
    }

    /// The value of a scalar expression.
    pub fn val(&mut self, id: ExprId) -> Val {
        let kernel = self.kernel;
        let mode = kernel.floats;
        let arch = self.arch;
        match &kernel.expr(id).kind {
            ExprKind::Lit { bits } => Val::Splat(*bits),
            ExprKind::Var { var } => self.frame.vars[var.index()][0],
            ExprKind::Builtin { builtin } => self.builtin(*builtin),
            ExprKind::Len { buffer } => Val::Splat(u64::from(self.launch.lengths[buffer.index()])),
            ExprKind::Load { buffer, index, .. } => {
                let index = self.val(*index);
                self.load(*buffer, index, 0)
            }
            ExprKind::Unary { op, ty, operand: a } => {
                let a = self.val(*a);
                if let Val::Splat(a) = a {
                    return Val::Splat(vyre_scalar::unary(*op, *ty, mode, a));
                }
                let result = op.info().result_type(*ty).expect("pure ops have results");
                match (a, is_wide(result)) {
                    (Val::Narrow(a), _) => {
                        self.new_narrow(|narrow, _, out| ops::unary_narrow(arch, *op, *ty, mode, narrow.column(a), out))
                    }
                    (Val::Wide(a), false) => self.new_narrow(|_, wide, out| ops::unary_any(*op, *ty, mode, wide.column(a), out)),
                    (Val::Wide(a), true) => self.new_wide(|_, wide, out| ops::unary_any(*op, *ty, mode, wide.column(a), out)),
                    (Val::Splat(_), _) => unreachable!("handled above"),
                }
            }
            ExprKind::Binary { op, ty, left: a, right: b } => {
                let operands = [*a, *b];
                let (mut a, b) = (self.val(*a), self.val(*b));
                if self.faults.has(BulkFault::SharedCheck) {
                    a = self.lose_neighbour(operands, a);
                }
                if let (Val::Splat(a), Val::Splat(b)) = (a, b) {
                    return Val::Splat(vyre_scalar::binary(*op, *ty, mode, a, b));
                }
                if !is_wide(*ty) {
                    let (a, b) = (self.narrow_column(a), self.narrow_column(b));
                    let result = self.new_narrow(|narrow, _, out| {
                        ops::binary_narrow(arch, *op, *ty, mode, narrow.column(a), narrow.column(b), out);
                    });
                    if self.faults.has(BulkFault::TailComputed) {
                        self.lose_tail(result);
                    }
                    return result;
                }
                let a = self.wide_column(a);
                let result = op.info().result_type(*ty).expect("pure ops have results");
                if let vyre_spec::Operand::Fixed(_) = op.info().operands[1] {
                    let b = self.narrow_column(b);
                    return self.new_wide(|narrow, wide, out| {
                        ops::binary_any(*op, *ty, mode, wide.column(a), narrow.column(b), out);
                    });
                }
                let b = self.wide_column(b);
                if is_wide(result) {
                    self.new_wide(|_, wide, out| ops::binary_any(*op, *ty, mode, wide.column(a), wide.column(b), out))
                } else {
                    self.new_narrow(|_, wide, out| ops::binary_any(*op, *ty, mode, wide.column(a), wide.column(b), out))
                }
            }
            ExprKind::Ternary { op, ty, operands: [a, b, c] } => {
                let (a, b, c) = (self.val(*a), self.val(*b), self.val(*c));
                if let (Val::Splat(a), Val::Splat(b), Val::Splat(c)) = (a, b, c) {
                    return Val::Splat(vyre_scalar::ternary(*op, *ty, mode, a, b, c));
                }
                let fixed_first = matches!(op.info().operands[0], vyre_spec::Operand::Fixed(_));
                match (is_wide(*ty), fixed_first) {
                    (false, _) => {
                        let (a, b, c) = (self.narrow_column(a), self.narrow_column(b), self.narrow_column(c));
                        self.new_narrow(|narrow, _, out| {
                            let operands = [narrow.column(a), narrow.column(b), narrow.column(c)];
                            ops::ternary_narrow(arch, *op, *ty, mode, operands, out);
                        })
                    }
                    (true, true) => {
                        let (a, b, c) = (self.narrow_column(a), self.wide_column(b), self.wide_column(c));
                        self.new_wide(|narrow, wide, out| {
                            ops::ternary_any(*op, *ty, mode, narrow.column(a), wide.column(b), wide.column(c), out);
                        })
                    }
                    (true, false) => {
                        let (a, b, c) = (self.wide_column(a), self.wide_column(b), self.wide_column(c));
                        self.new_wide(|_, wide, out| {
                            ops::ternary_any(*op, *ty, mode, wide.column(a), wide.column(b), wide.column(c), out);
                        })
                    }
                }
            }
            ExprKind::Cast { from, to, value: a } => {
                let a = self.val(*a);
                match (a, is_wide(*to)) {
                    (Val::Splat(a), _) => Val::Splat(vyre_scalar::cast(*from, *to, mode, a)),
                    (Val::Narrow(a), false) => {
                        self.new_narrow(|narrow, _, out| ops::cast_any(*from, *to, mode, narrow.column(a), out))
                    }
                    (Val::Narrow(a), true) => {
                        self.new_wide(|narrow, _, out| ops::cast_any(*from, *to, mode, narrow.column(a), out))
                    }
                    (Val::Wide(a), false) => self.new_narrow(|_, wide, out| ops::cast_any(*from, *to, mode, wide.column(a), out)),
                    (Val::Wide(a), true) => self.new_wide(|_, wide, out| ops::cast_any(*from, *to, mode, wide.column(a), out)),
                }
            }
            ExprKind::Bitcast { from, to, value: a } => {
                let a = self.val(*a);
                match a {
                    Val::Splat(a) => Val::Splat(vyre_scalar::bitcast(*from, *to, mode, a)),
                    Val::Narrow(a) => self.new_narrow(|narrow, _, out| ops::bitcast_any(*from, *to, mode, narrow.column(a), out)),
                    Val::Wide(a) => self.new_wide(|_, wide, out| ops::bitcast_any(*from, *to, mode, wide.column(a), out)),
                }
            }
            ExprKind::Extract { vector, component } => self.vals(*vector)[usize::from(*component)],
            ExprKind::Vector { .. } => unreachable!("a vector is not a scalar"),
        }
    }

    /// A new narrow column written by `write`, which can read all others.
    #[inline]
    pub fn new_narrow(&mut self, write: impl FnOnce(&Stack<u32>, &Stack<u64>, &mut [u32])) -> Val {
        let out = self.frame.narrow.push();
        let mut column = self.frame.narrow.take(out);
        write(&self.frame.narrow, &self.frame.wide, &mut column);
        self.frame.narrow.put(out, column);
        Val::Narrow(out)
    }

    /// A new wide column written by `write`, which can read all others.
    #[inline]
    fn new_wide(&mut self, write: impl FnOnce(&Stack<u32>, &Stack<u64>, &mut [u64])) -> Val {
        let out = self.frame.wide.push();
        let mut column = self.frame.wide.take(out);
        write(&self.frame.narrow, &self.frame.wide, &mut column);
        self.frame.wide.put(out, column);
        Val::Wide(out)
    }

    /// What only a planted fault does: the lanes beyond a multiple of eight are 0.
    fn lose_tail(&mut self, value: Val) {
        if let Val::Narrow(column) = value {
            let whole = self.frame.lanes / 8 * 8;
            self.narrow().column_mut(column)[whole..].fill(0);
        }
    }

    /// What only a planted fault does: the first of two elements beside each other is 0 where the second is out of bounds.
    fn lose_neighbour(&mut self, operands: [ExprId; 2], value: Val) -> Val {
        let kernel = self.kernel;
        let [ExprKind::Load { buffer, index, .. }, ExprKind::Load { buffer: other, index: next, .. }] =
            operands.map(|operand| kernel.expr(operand).kind)
        else {
            return value;
        };
        if buffer != other {
            return value;
        }
        let (index, next) = (self.val(index), self.val(next));
        let length = u64::from(self.launch.lengths[buffer.index()]);
        let lost = |index: u64, next: u64| next == u64::from((index as u32).wrapping_add(1)) && next >= length;
        if let (Val::Splat(index), Val::Splat(next), Val::Splat(bits)) = (index, next, value) {
            return Val::Splat(if lost(index, next) { 0 } else { bits });
        }
        let lanes: Vec<u64> = (0..self.frame.lanes)
            .map(|lane| if lost(self.lane_of(index, lane), self.lane_of(next, lane)) { 0 } else { self.lane_of(value, lane) })
            .collect();
        match value {
            Val::Wide(_) => self.new_wide(|_, _, out| out.iter_mut().zip(&lanes).for_each(|(out, bits)| *out = *bits)),
            Val::Narrow(_) | Val::Splat(_) => {
                self.new_narrow(|_, _, out| out.iter_mut().zip(&lanes).for_each(|(out, bits)| *out = *bits as u32))
            }
        }
    }
}
