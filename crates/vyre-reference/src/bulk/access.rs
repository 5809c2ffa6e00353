//! Memory as statements and expressions reach it: loads, stores and atomics of a block.

use super::block::{Block, Home, Mask, Vals};
use super::column::{Val, is_wide};
use super::faults::Faults;
use super::frame::Frame;
use super::is_group_memory;
use super::memory::{View, is_word, load_any, load_narrow, store_words};
use super::shared::{Output, Shared};
use crate::faults::BulkFault;
use vyre_foundation::ir::AtomicOp;
use vyre_foundation::kernel::{BufferId, MAX_OPERANDS, VarId};
use vyre_scalar::{Value, memory};
use vyre_spec::ValueType;

impl<F: Faults> Block<'_, '_, F> {
    fn view(&self, buffer: BufferId) -> View {
        let stride = if is_group_memory(self.kernel, buffer) { self.group_bytes } else { 0 };
        let mut length = self.launch.lengths[buffer.index()];
        if self.faults.has(BulkFault::GroupLength) && stride > 0 {
            length *= self.groups as u32;
        }
        View { length, stride, group: self.group }
    }

    pub fn load(&mut self, buffer: BufferId, index: Val, component: usize) -> Val {
        let element = &self.kernel.buffer(buffer).element;
        let mode = self.kernel.floats;
        let view = self.view(buffer);
        let home = self.homes[buffer.index()];
        if let Some(shared) = shared(home, self.outputs) {
            return self.load_shared(shared, buffer, index, component);
        }
        let (inputs, lanes) = (self.inputs, self.frame.lanes);
        let one_view = view.stride == 0 || lanes <= self.group || self.faults.has(BulkFault::GroupMemory);
        let one_element = one_view || self.faults.has(BulkFault::GroupMemorySplat);
        if let (Val::Splat(index), true) = (index, one_element) {
            let index = index as u32;
            let bytes = bytes_of(home, inputs, self.outputs, &self.frame.group_memory);
            let value = if index < view.length { memory::load(element, mode, bytes, index) } else { Value::default() };
            return Val::Splat(value.0[component]);
        }
        let index = self.narrow_column(index);
        let wide = is_wide_value(self.kernel.buffer(buffer).value);
        // With one workgroup in the block its memory is like storage.
        let view = View { stride: if one_view { 0 } else { view.stride }, ..view };
        if wide {
            let out = self.frame.wide.push();
            let mut column = self.frame.wide.take(out);
            let bytes = bytes_of(home, inputs, self.outputs, &self.frame.group_memory);
            let index = &self.frame.narrow.column(index)[..lanes];
            load_any(element, mode, bytes, view, index, component, &mut column[..lanes]);
            self.frame.wide.put(out, column);
            return Val::Wide(out);
        }
        let out = self.frame.narrow.push();
        let mut column = self.frame.narrow.take(out);
        let bytes = bytes_of(home, inputs, self.outputs, &self.frame.group_memory);
        let index = &self.frame.narrow.column(index)[..lanes];
        match self.kernel.buffer(buffer).value {
            ValueType::Vector(..) => load_any(element, mode, bytes, view, index, component, &mut column[..lanes]),
            ValueType::Scalar(_) => load_narrow(self.arch, element, mode, bytes, view, index, &mut column[..lanes]),
        }
        if self.faults.has(BulkFault::TailLoaded) {
            column[lanes / 8 * 8..].fill(0);
        }
        self.frame.narrow.put(out, column);
        Val::Narrow(out)
    }

    pub fn store(&mut self, buffer: BufferId, index: Val, value: Vals, mask: Mask) {
        let kernel = self.kernel;
        let element = &kernel.buffer(buffer).element;
        if let Some(shared) = shared(self.homes[buffer.index()], self.outputs) {
            return self.store_shared(shared, buffer, index, value, mask);
        }
        let view = self.view(buffer);
        let mut lanes = self.frame.lanes;
        if self.faults.has(BulkFault::TailStored) {
            lanes = lanes / 8 * 8;
        }
        let index = self.narrow_column(index);
        let columns = value.map(|value| match value {
            Val::Splat(_) if !is_wide_value(kernel.buffer(buffer).value) => Val::Narrow(self.narrow_column(value)),
            Val::Splat(_) | Val::Narrow(_) | Val::Wide(_) => value,
        });
        let home = self.homes[buffer.index()];
        let everybody = mask.count == self.frame.lanes || self.faults.has(BulkFault::StoreMask);
        let Frame { narrow, wide, group_memory, .. } = &mut *self.frame;
        let bytes = bytes_of_mut(home, self.outputs, group_memory);
        let index = &narrow.column(index)[..lanes];
        let bits = mask.column.filter(|_| !everybody).map(|column| &narrow.column(column)[..lanes]);
        if let Val::Narrow(column) = columns[0]
            && is_word(element)
        {
            return store_words(self.arch, bytes, view, index, bits, &narrow.column(column)[..lanes]);
        }
        for lane in 0..lanes {
            if bits.is_none_or(|bits| bits[lane] != 0) && index[lane] < view.length {
                let at = |value: Val| match value {
                    Val::Splat(bits) => bits,
                    Val::Narrow(column) => u64::from(narrow.column(column)[lane]),
                    Val::Wide(column) => wide.column(column)[lane],
                };
                let base = if view.stride == 0 { 0 } else { lane / view.group * view.stride };
                memory::store(element, kernel.floats, &mut bytes[base..], index[lane], Value(columns.map(at)));
                if self.faults.has(BulkFault::NarrowNeighbour) && element.bits() == Some(8) && index[lane] + 1 < view.length {
                    memory::store(element, kernel.floats, &mut bytes[base..], index[lane] + 1, Value::default());
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    pub fn atomic(
        &mut self,
        result: Option<VarId>,
        op: AtomicOp,
        buffer: BufferId,
        index: Val,
        operands: [Val; MAX_OPERANDS],
        count: usize,
        mask: Mask,
    ) {
        let kernel = self.kernel;
        if let Some(shared) = shared(self.homes[buffer.index()], self.outputs) {
            let old = self.atomic_shared(shared, op, buffer, index, operands, count, mask);
            if let Some(var) = result {
                self.set(var, [old, Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
            }
            return;
        }
        let element = &kernel.buffer(buffer).element;
        let ValueType::Scalar(ty) = kernel.buffer(buffer).value else { unreachable!("validated: atomics are on scalars") };
        let view = self.view(buffer);
        let index = self.narrow_column(index);
        let operands = operands.map(|operand| self.narrow_column(operand));
        let old = self.narrow().push();
        let mut olds = self.frame.narrow.take(old);
        let home = self.homes[buffer.index()];
        let Frame { narrow, group_memory, .. } = &mut *self.frame;
        let bytes = bytes_of_mut(home, self.outputs, group_memory);
        let mut before = None;
        let mut first = None;
        for (lane, old) in olds.iter_mut().enumerate() {
            *old = 0;
            let takes_part =
                mask.column.is_none_or(|column| narrow.column(column)[lane] != 0) || self.faults.has(BulkFault::AtomicMask);
            let index = narrow.column(index)[lane];
            if self.faults.has(BulkFault::AtomicOnce) && takes_part && before.replace(index) == Some(index) {
                continue;
            }
            if takes_part && index < view.length {
                let base = if view.stride == 0 { 0 } else { lane / view.group * view.stride };
                let part = &mut bytes[base..];
                let before = memory::load(element, kernel.floats, part, index).scalar();
                let values = operands.map(|operand| u64::from(narrow.column(operand)[lane]));
                if let Some(new) = vyre_scalar::atomic(op, ty, before, &values[..count]) {
                    memory::store(element, kernel.floats, part, index, new.into());
                }
                *old = before as u32;
                if self.faults.has(BulkFault::TicketLane) && op == AtomicOp::Add {
                    let (from, first, began) = *first.get_or_insert((index, lane, before));
                    if index == from {
                        *old = (began as u32).wrapping_add((lane - first) as u32 * values[0] as u32);
                    }
                }
            }
        }
        self.frame.narrow.put(old, olds);
        if let Some(var) = result {
            self.set(var, [Val::Narrow(old), Val::Splat(0), Val::Splat(0), Val::Splat(0)]);
        }
    }
}

pub(super) fn is_wide_value(ty: ValueType) -> bool {
    match ty {
        ValueType::Scalar(scalar) | ValueType::Vector(scalar, _) => is_wide(scalar),
    }
}

/// A buffer that others may write at the same time.
fn shared<'a>(home: Home, outputs: &[Output<'a>]) -> Option<Shared<'a>> {
    match home {
        Home::Output(n) => match &outputs[n] {
            Output::Shared(shared) => Some(*shared),
            Output::Own(_) => None,
        },
        Home::Input(_) | Home::Workgroup(_) => None,
    }
}

fn bytes_of<'a>(home: Home, inputs: &[&'a [u8]], outputs: &'a [Output<'_>], group: &'a [u8]) -> &'a [u8] {
    match home {
        Home::Input(n) => inputs[n],
        Home::Output(n) => match &outputs[n] {
            Output::Own(bytes) => bytes,
            Output::Shared(_) => unreachable!("shared memory was looked for before"),
        },
        Home::Workgroup(at) => &group[at..],
    }
}

fn bytes_of_mut<'a>(home: Home, outputs: &'a mut [Output<'_>], group: &'a mut [u8]) -> &'a mut [u8] {
    match home {
        Home::Input(_) => unreachable!("validated: inputs are not written"),
        Home::Output(n) => match &mut outputs[n] {
            Output::Own(bytes) => bytes,
            Output::Shared(_) => unreachable!("shared memory was looked for before"),
        },
        Home::Workgroup(at) => &mut group[at..],
    }
}
