//! Memory that several evaluators write at the same time, each for workgroups of its own.
//!
//! Buffers are seen as atomics, which are read and written relaxed: what is a data race in a program is an unspecified value here, and
//! nothing worse. An element of up to four bytes is one access, a larger one is an access per word. All accesses to a buffer have one
//! size, that of its [`Unit`]; nothing beside the element is touched. The loops over lanes do not vectorise.

use super::block::{Block, Mask, Vals};
use super::column::Val;
use super::faults::Faults;
use super::memory::{contiguous, is_word};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};
use vyre_foundation::ir::AtomicOp;
use vyre_foundation::kernel::{BufferId, MAX_OPERANDS};
use vyre_scalar::float::Float;
use vyre_scalar::{Value, memory};
use vyre_spec::{DataType, ValueType};

/// The bytes of a buffer that the kernel writes.
#[derive(Debug)]
pub enum Output<'a> {
    /// Nobody else has them.
    Own(&'a mut [u8]),
    /// Others may read and write them at the same time.
    Shared(Shared<'a>),
}

/// Bytes that several evaluators have, as units of one size. Bytes at the end that are no whole unit are left out.
#[derive(Clone, Copy, Debug)]
pub enum Shared<'a> {
    /// For elements of one byte.
    Bytes(&'a [AtomicU8]),
    /// For elements of two bytes.
    Halves(&'a [AtomicU16]),
    /// For elements of one or more words.
    Words(&'a [AtomicU32]),
}

/// What is read and written of a buffer at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// Four bytes.
    Word,
}

impl Unit {
    /// That of a buffer with such elements, which the kernel writes.
    #[must_use]
    pub fn of(element: &DataType) -> Unit {
        match element.bits() {
            // Nibbles are not written.
            Some(0..=8) | None => Unit::Byte,
            Some(16) => Unit::Half,
            Some(_) => Unit::Word,
        }
    }
}

impl Shared<'_> {
    /// The bytes of an element, which are zero outside, and of others behind it.
    #[inline]
    fn element(self, index: u32, bytes: usize) -> [u8; 16] {
        let mut element = [0; 16];
        let index = index as usize;
        match self {
            Shared::Bytes(units) => element[0] = units.get(index).map_or(0, |unit| unit.load(Relaxed)),
            Shared::Halves(units) => {
                let half = units.get(index).map_or(0, |unit| unit.load(Relaxed));
                element[..2].copy_from_slice(&half.to_ne_bytes());
            }
            Shared::Words(units) => {
                let words = bytes / 4;
                for (word, to) in (index * words..).zip(element.as_chunks_mut::<4>().0).take(words) {
                    *to = units.get(word).map_or(0, |unit| unit.load(Relaxed)).to_ne_bytes();
                }
            }
        }
        element
    }

    #[inline]
    fn set_element(self, index: u32, bytes: usize, element: [u8; 16]) {
        let index = index as usize;
        let [first, second, ..] = element;
        match self {
            Shared::Bytes(units) => units.get(index).into_iter().for_each(|unit| unit.store(first, Relaxed)),
            Shared::Halves(units) => {
                units.get(index).into_iter().for_each(|unit| unit.store(u16::from_ne_bytes([first, second]), Relaxed));
            }
            Shared::Words(units) => {
                let words = bytes / 4;
                for (word, from) in (index * words..).zip(element.as_chunks::<4>().0).take(words) {
                    units.get(word).into_iter().for_each(|unit| unit.store(u32::from_ne_bytes(*from), Relaxed));
                }
            }
        }
    }
}

/// Element `index[lane]` of every lane; 0 outside.
fn load_words(words: &[AtomicU32], index: &[u32], out: &mut [u32], convert: impl Fn(u32) -> u32) {
    let load = |word: &AtomicU32| convert(u32::from_le(word.load(Relaxed)));
    match contiguous(index).and_then(|first| words.get(first as usize..)?.get(..index.len())) {
        Some(part) => out.iter_mut().zip(part).for_each(|(out, word)| *out = load(word)),
        None => out.iter_mut().zip(index).for_each(|(out, index)| *out = words.get(*index as usize).map_or(0, load)),
    }
}

/// Stores words where the mask is set; `None` as a mask means every lane. Lanes store in order.
fn store_words(words: &[AtomicU32], index: &[u32], mask: Option<&[u32]>, value: &[u32]) {
    let part = contiguous(index).and_then(|first| words.get(first as usize..)?.get(..index.len()));
    match (part, mask) {
        (Some(part), None) => part.iter().zip(value).for_each(|(word, value)| word.store(value.to_le(), Relaxed)),
        (part, mask) => {
            for (lane, (index, value)) in index.iter().zip(value).enumerate() {
                let word = || part.map_or_else(|| words.get(*index as usize), |part| Some(&part[lane]));
                if mask.is_none_or(|mask| mask[lane] != 0)
                    && let Some(word) = word()
                {
                    word.store(value.to_le(), Relaxed);
                }
            }
        }
    }
}

fn bytes_of(element: &DataType) -> usize {
    element.bits().map_or(0, |bits| bits as usize / 8)
}

impl<F: Faults> Block<'_, '_, F> {
    pub fn load_shared(&mut self, from: Shared<'_>, buffer: BufferId, index: Val, component: usize) -> Val {
        let (element, mode, length) =
            (&self.kernel.buffer(buffer).element, self.kernel.floats, self.launch.lengths[buffer.index()]);
        let (bytes, lanes) = (bytes_of(element), self.frame.lanes);
        let at = |index: u32| match index < length {
            true => memory::load(element, mode, &from.element(index, bytes), 0).0[component],
            false => Value::default().0[component],
        };
        if let Val::Splat(index) = index {
            return Val::Splat(at(index as u32));
        }
        let index = self.narrow_column(index);
        if super::access::is_wide_value(self.kernel.buffer(buffer).value) {
            let out = self.frame.wide.push();
            let mut column = self.frame.wide.take(out);
            let index = &self.frame.narrow.column(index)[..lanes];
            column.iter_mut().zip(index).for_each(|(out, index)| *out = at(*index));
            self.frame.wide.put(out, column);
            return Val::Wide(out);
        }
        let out = self.frame.narrow.push();
        let mut column = self.frame.narrow.take(out);
        let index = &self.frame.narrow.column(index)[..lanes];
        let seen = |words: &'_ [AtomicU32]| words.len().min(length as usize);
        match (element, from) {
            // Each arm is compiled with its own conversion inside the loop.
            (DataType::U32 | DataType::I32, Shared::Words(words)) => {
                load_words(&words[..seen(words)], index, &mut column, |bits| bits);
            }
            (DataType::F32, Shared::Words(words)) => {
                load_words(&words[..seen(words)], index, &mut column, |bits| f32::from_bits(bits).canonical(mode).to_bits());
            }
            _ => column.iter_mut().zip(index).for_each(|(out, index)| *out = at(*index) as u32),
        }
        self.frame.narrow.put(out, column);
        Val::Narrow(out)
    }

    pub fn store_shared(&mut self, to: Shared<'_>, buffer: BufferId, index: Val, value: Vals, mask: Mask) {
        let (element, mode, length) =
            (&self.kernel.buffer(buffer).element, self.kernel.floats, self.launch.lengths[buffer.index()]);
        let (bytes, lanes) = (bytes_of(element), self.frame.lanes);
        if let Shared::Words(words) = to
            && is_word(element)
        {
            let index = self.narrow_column(index);
            let value = self.narrow_column(value[0]);
            let narrow = &self.frame.narrow;
            let bits = mask.column.filter(|_| mask.count < lanes).map(|column| &narrow.column(column)[..lanes]);
            let words = &words[..words.len().min(length as usize)];
            return store_words(words, &narrow.column(index)[..lanes], bits, &narrow.column(value)[..lanes]);
        }
        for lane in 0..lanes {
            let index = self.lane_of(index, lane) as u32;
            if self.takes_part(mask, lane) && index < length {
                let mut stored = [0; 16];
                memory::store(element, mode, &mut stored, 0, Value(value.map(|value| self.lane_of(value, lane))));
                to.set_element(index, bytes, stored);
            }
        }
    }

    /// Does an atomic in every lane of the mask; gives the column of what was there before.
    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    pub fn atomic_shared(
        &mut self,
        on: Shared<'_>,
        op: AtomicOp,
        buffer: BufferId,
        index: Val,
        operands: [Val; MAX_OPERANDS],
        count: usize,
        mask: Mask,
    ) -> Val {
        let ValueType::Scalar(ty) = self.kernel.buffer(buffer).value else { unreachable!("validated: atomics are on scalars") };
        let length = self.launch.lengths[buffer.index()];
        let old = self.narrow().push();
        let mut olds = self.frame.narrow.take(old);
        for (lane, old) in olds.iter_mut().enumerate() {
            *old = 0;
            let index = self.lane_of(index, lane) as u32;
            if self.takes_part(mask, lane)
                && index < length
                && let Shared::Words(words) = on
                && let Some(word) = words.get(index as usize)
            {
                let values = operands.map(|operand| self.lane_of(operand, lane));
                let new = |before: u32| {
                    let before = u64::from(u32::from_le(before));
                    vyre_scalar::atomic(op, ty, before, &values[..count]).map(|new| (new as u32).to_le())
                };
                *old = u32::from_le(word.fetch_update(Relaxed, Relaxed, new).unwrap_or_else(|before| before));
            }
        }
        self.frame.narrow.put(old, olds);
        Val::Narrow(old)
    }
}
