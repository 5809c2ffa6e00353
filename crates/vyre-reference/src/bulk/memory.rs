//! Loads and stores of whole columns.
//!
//! What an element means is `vyre_scalar::memory`'s alone. The loops here find the common cases (neighbouring 32-bit elements), in
//! which lanes need no bounds check of their own, and leave the rest to it, lane by lane.

use super::column::Word;
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
fn contiguous(index: &[u32]) -> Option<u32> {
    let first = *index.first()?;
    let apart = index.iter().zip(0u32..).fold(0, |apart, (index, lane)| apart | (index ^ first.wrapping_add(lane)));
    (apart == 0).then_some(first)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes(word.try_into().expect("four bytes")))
}

/// What a 32-bit element becomes when it is loaded; `None` for types that take the general path.
fn narrow_load(ty: &DataType, mode: FloatMode) -> Option<fn(u32) -> u32> {
    match (ty, mode) {
        (DataType::U32 | DataType::I32, _) => Some(|bits| bits),
        (DataType::Bool, _) => Some(|bits| u32::from(bits != 0)),
        (DataType::F32, FloatMode::Ieee) => Some(|bits| f32::from_bits(bits).canonical(FloatMode::Ieee).to_bits()),
        (DataType::F32, FloatMode::Canonical) => Some(|bits| f32::from_bits(bits).canonical(FloatMode::Canonical).to_bits()),
        _ => None,
    }
}

/// Element `index[lane]` of every lane, one column per component.
pub(super) fn load_narrow(ty: &DataType, mode: FloatMode, bytes: &[u8], view: View, index: &[u32], out: &mut [u32]) {
    let Some(convert) = narrow_load(ty, mode) else {
        return load_any(ty, mode, bytes, view, index, 0, out);
    };
    if view.stride == 0
        && let Some(first) = contiguous(index)
        && let Some(part) = bytes.get(4 * first as usize..)
        && u64::from(first) + index.len() as u64 <= u64::from(view.length)
    {
        let (words, _) = part.as_chunks::<4>();
        // A second loop for the type that needs nothing done lets the compiler copy.
        if matches!(ty, DataType::U32 | DataType::I32) {
            for (out, word) in out.iter_mut().zip(words) {
                *out = u32::from_le_bytes(*word);
            }
        } else {
            for (out, word) in out.iter_mut().zip(words) {
                *out = convert(u32::from_le_bytes(*word));
            }
        }
        return;
    }
    for (lane, (out, index)) in out.iter_mut().zip(index).enumerate() {
        let inside = *index < view.length;
        *out = if inside { convert(word(bytes, view.base(lane) + 4 * *index as usize)) } else { 0 };
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

/// Stores a 32-bit column where the mask is set; `None` as a mask means every lane. Lanes store in order.
pub(super) fn store_narrow(
    ty: &DataType,
    bytes: &mut [u8],
    view: View,
    index: &[u32],
    mask: Option<&[u32]>,
    value: &[u32],
) -> bool {
    if !matches!(ty, DataType::U32 | DataType::I32 | DataType::F32 | DataType::Bool) {
        return false;
    }
    if mask.is_none()
        && view.stride == 0
        && let Some(first) = contiguous(index)
        && u64::from(first) + index.len() as u64 <= u64::from(view.length)
        && let Some(part) = bytes.get_mut(4 * first as usize..)
    {
        let (words, _) = part.as_chunks_mut::<4>();
        for (word, value) in words.iter_mut().zip(value) {
            *word = value.to_le_bytes();
        }
        return true;
    }
    for (lane, (index, value)) in index.iter().zip(value).enumerate() {
        if mask.is_none_or(|mask| mask[lane] != 0) && *index < view.length {
            let at = view.base(lane) + 4 * *index as usize;
            if let Some(word) = bytes.get_mut(at..at + 4) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    true
}
