//! Loads and stores of whole columns.
//!
//! What an element means is `vyre_scalar::memory`'s alone. The loops here find the common cases (neighbouring 32-bit elements), in
//! which lanes need no bounds check of their own, and leave the rest to it, lane by lane.

use super::column::Word;
use super::lanes::vectorised;
use vyre_scalar::float::Float;
use vyre_scalar::{Value, memory};
use vyre_spec::{DataType, FloatMode};

/// A buffer as the lanes of a block see it: each workgroup's part begins `stride` bytes after the one before it (0 for storage).
#[derive(Clone, Copy)]
pub(super) struct View {
    /// Elements each lane sees.
    pub length: u32,
    pub stride: usize,
    /// Lanes of one workgroup.
    pub group: usize,
}

impl View {
    /// The part of the buffer that a lane sees.
    fn base(&self, lane: usize) -> usize {
        if self.stride == 0 { 0 } else { lane / self.group * self.stride }
    }
}

/// The first index, if all of them follow each other.
#[inline(always)]
pub(super) fn contiguous(index: &[u32]) -> Option<u32> {
    let first = *index.first()?;
    let apart = index.iter().zip(0u32..).fold(0, |apart, (index, lane)| apart | (index ^ first.wrapping_add(lane)));
    (apart == 0).then_some(first)
}

vectorised! {
    /// Element `index[lane]` of every lane, for scalar types that become 32-bit values.
    pub(super) fn load_narrow(
        ty: &'a DataType,
        mode: FloatMode,
        bytes: &'a [u8],
        view: View,
        index: &'a [u32],
        out: &'a mut [u32],
    ) -> () {
        // Each arm is compiled with its own conversion inside the loops.
        match (ty, mode) {
            (DataType::U32 | DataType::I32, _) => load_words(bytes, view, index, out, |bits| bits),
            (DataType::Bool, _) => load_words(bytes, view, index, out, |bits| u32::from(bits != 0)),
            (DataType::F32, FloatMode::Ieee) => {
                load_words(bytes, view, index, out, |bits| f32::from_bits(bits).canonical(FloatMode::Ieee).to_bits());
            }
            (DataType::F32, FloatMode::Canonical) => {
                load_words(bytes, view, index, out, |bits| f32::from_bits(bits).canonical(FloatMode::Canonical).to_bits());
            }
            _ => load_any(ty, mode, bytes, view, index, 0, out),
        }
    }
}

#[inline(always)]
fn load_words(bytes: &[u8], view: View, index: &[u32], out: &mut [u32], convert: impl Fn(u32) -> u32) {
    // Workgroup by workgroup, or all lanes at once if they see the same bytes.
    let together = if view.stride == 0 { index.len().max(1) } else { view.group };
    for (group, (index, out)) in index.chunks(together).zip(out.chunks_mut(together)).enumerate() {
        let (words, _) = bytes[group * view.stride..].as_chunks::<4>();
        let words = &words[..words.len().min(view.length as usize)];
        let first = contiguous(index).and_then(|first| words.get(first as usize..)?.get(..index.len()));
        if let Some(part) = first {
            for (out, word) in out.iter_mut().zip(part) {
                *out = convert(u32::from_le_bytes(*word));
            }
        } else {
            for (out, index) in out.iter_mut().zip(index) {
                *out = words.get(*index as usize).map_or(0, |word| convert(u32::from_le_bytes(*word)));
            }
        }
    }
}

/// Component `component` of element `index[lane]` of every lane, for any type.
pub(super) fn load_any<O: Word>(
    ty: &DataType,
    mode: FloatMode,
    bytes: &[u8],
    view: View,
    index: &[u32],
    component: usize,
    out: &mut [O],
) {
    for (lane, (out, index)) in out.iter_mut().zip(index).enumerate() {
        let part = &bytes[view.base(lane)..];
        let value = if *index < view.length { memory::load(ty, mode, part, *index) } else { Value::default() };
        *out = O::from_bits(value.0[component]);
    }
}

/// Whether elements of the type are stored as the words they are computed with.
pub(super) fn is_word(ty: &DataType) -> bool {
    matches!(ty, DataType::U32 | DataType::I32 | DataType::F32 | DataType::Bool)
}

vectorised! {
    /// Stores words where the mask is set; `None` as a mask means every lane. Lanes store in order.
    pub(super) fn store_words(
        bytes: &'a mut [u8],
        view: View,
        index: &'a [u32],
        mask: Option<&'a [u32]>,
        value: &'a [u32],
    ) -> () {
        let together = if view.stride == 0 { index.len().max(1) } else { view.group };
        for (group, (index, value)) in index.chunks(together).zip(value.chunks(together)).enumerate() {
            let (words, _) = bytes[group * view.stride..].as_chunks_mut::<4>();
            let seen = words.len().min(view.length as usize);
            let words = &mut words[..seen];
            let mask = mask.map(|mask| &mask[group * together..][..index.len()]);
            let first = contiguous(index).and_then(|first| words.get_mut(first as usize..)?.get_mut(..index.len()));
            match (first, mask) {
                (Some(part), None) => {
                    for (word, value) in part.iter_mut().zip(value) {
                        *word = value.to_le_bytes();
                    }
                }
                (Some(part), Some(mask)) => store_some(part, value, mask),
                (None, mask) => {
                    for (lane, (index, value)) in index.iter().zip(value).enumerate() {
                        if mask.is_none_or(|mask| mask[lane] != 0)
                            && let Some(word) = words.get_mut(*index as usize)
                        {
                            *word = value.to_le_bytes();
                        }
                    }
                }
            }
        }
    }
}

/// Lanes whose bits in a mask are looked at together: a vector of them.
const LANES: usize = 8;

/// Stores the words of the lanes in a mask, and reads and writes no other: they may be somebody else's. Lanes that neighbour each other
/// mostly go the same way, so that most stores are of a whole vector or of nothing.
#[inline(always)]
fn store_some(words: &mut [[u8; 4]], value: &[u32], mask: &[u32]) {
    let ((vectors, words), (values, value), (masks, mask)) =
        (words.as_chunks_mut::<LANES>(), value.as_chunks::<LANES>(), mask.as_chunks::<LANES>());
    for ((words, value), mask) in vectors.iter_mut().zip(values).zip(masks) {
        match mask.iter().sum::<u32>() as usize {
            0 => {}
            LANES => *words = value.map(u32::to_le_bytes),
            _ => store_each(words, value, mask),
        }
    }
    store_each(words, value, mask);
}

#[inline(always)]
fn store_each(words: &mut [[u8; 4]], value: &[u32], mask: &[u32]) {
    for ((word, value), bit) in words.iter_mut().zip(value).zip(mask) {
        if *bit != 0 {
            *word = value.to_le_bytes();
        }
    }
}
