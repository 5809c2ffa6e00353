//! Elements of inputs, by number: taken out, cleared, changed, converted. Nibbles included.

use std::ops::Range;
use vyre_foundation::ir::{DataType, FloatMode, Literal, ValueType};
use vyre_scalar::Value;
use vyre_scalar::memory::{byte_length, element_count, load, store};
use vyre_spec::Storage;

/// Where the bits of an element are: bytes, or half of one.
enum Bits {
    Bytes(Range<usize>),
    Nibble(usize, u32),
}

fn bits(element: &DataType, n: u32) -> Option<Bits> {
    let (width, n) = (element.bits()? as usize, n as usize);
    if width == 4 {
        return Some(Bits::Nibble(n / 2, 4 * (n as u32 % 2)));
    }
    let size = width / 8;
    Some(Bits::Bytes(n * size..(n + 1) * size))
}

/// Whether all bits of an element are zero.
pub(super) fn is_zero(element: &DataType, bytes: &[u8], n: u32) -> bool {
    match bits(element, n) {
        Some(Bits::Bytes(range)) => bytes.get(range).is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0)),
        Some(Bits::Nibble(at, shift)) => bytes.get(at).is_none_or(|byte| byte >> shift & 15 == 0),
        None => true,
    }
}

/// Makes all bits of an element zero.
pub(super) fn clear(element: &DataType, bytes: &mut [u8], n: u32) {
    match bits(element, n) {
        Some(Bits::Bytes(range)) => bytes.get_mut(range).into_iter().for_each(|bytes| bytes.fill(0)),
        Some(Bits::Nibble(at, shift)) => bytes.get_mut(at).into_iter().for_each(|byte| *byte &= !(15 << shift)),
        None => {}
    }
}

/// The components of an element as a load gives them.
pub(super) fn components(element: &DataType, bytes: &[u8], n: u32) -> Vec<Literal> {
    let (scalar, count) = match element.value_type() {
        Some(ValueType::Scalar(scalar)) => (scalar, 1),
        Some(ValueType::Vector(scalar, count)) => (scalar, usize::from(count)),
        None => return Vec::new(),
    };
    let value = load(element, FloatMode::Ieee, bytes, n);
    value.0[..count].iter().map(|bits| Literal::from_bits(scalar, *bits)).collect()
}

/// Changes one component of an element; types that cannot be stored stay as they are.
pub(super) fn put(element: &DataType, bytes: &mut [u8], n: u32, component: usize, literal: Literal) {
    let mut value = load(element, FloatMode::Ieee, bytes, n);
    if let Some(slot) = value.0.get_mut(component) {
        *slot = literal.bits();
        store(element, FloatMode::Ieee, bytes, n, value);
    }
}

/// The elements of an input but those in the range; a tail that is no whole element goes. `None` for a range past the end.
pub(super) fn without(element: &DataType, bytes: &[u8], length: u32, range: Range<u32>) -> Option<Vec<u8>> {
    if range.start > range.end || range.end > length || range.is_empty() {
        return None;
    }
    let left = length - range.len() as u32;
    let mut out = vec![0; usize::try_from(byte_length(element, u64::from(left))?).ok()?];
    for (to, from) in (0..range.start).chain(range.end..length).enumerate() {
        match (bits(element, from)?, bits(element, to as u32)?) {
            (Bits::Bytes(from), Bits::Bytes(to)) => out.get_mut(to)?.copy_from_slice(bytes.get(from)?),
            (Bits::Nibble(from, down), Bits::Nibble(to, up)) => *out.get_mut(to)? |= (bytes.get(from)? >> down & 15) << up,
            (Bits::Bytes(_), Bits::Nibble(..)) | (Bits::Nibble(..), Bits::Bytes(_)) => return None,
        }
    }
    Some(out)
}

/// The same values as elements of another type that loads as the same.
pub(super) fn converted(from: &DataType, to: &DataType, bytes: &[u8]) -> Option<Vec<u8>> {
    if from.value_type()? != to.value_type()? || matches!(to.storage(), Storage::LoadOnly(_) | Storage::Described) {
        return None;
    }
    let count = element_count(from, bytes.len() as u64)?;
    let mut out = vec![0; usize::try_from(byte_length(to, count)?).ok()?];
    for n in 0..u32::try_from(count).ok()? {
        let value: Value = load(from, FloatMode::Ieee, bytes, n);
        store(to, FloatMode::Ieee, &mut out, n, value);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_out_whatever_their_width() {
        assert_eq!(without(&DataType::U32, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0], 3, 1..2), Some(vec![1, 0, 0, 0, 3, 0, 0, 0]));
        // Five nibbles 1 2 3 4 5 lose the second.
        assert_eq!(without(&DataType::I4, &[0x21, 0x43, 0x05], 5, 1..2), Some(vec![0x31, 0x54]));
        assert_eq!(without(&DataType::U16, &[1, 0, 2, 0], 2, 0..2), Some(vec![]));
        assert_eq!(without(&DataType::U16, &[1, 0], 1, 0..2), None);
    }

    #[test]
    fn nibbles_are_cleared_one_at_a_time() {
        let mut bytes = [0x21];
        assert!(!is_zero(&DataType::I4, &bytes, 1));
        clear(&DataType::I4, &mut bytes, 1);
        assert_eq!(bytes, [0x01]);
        assert!(is_zero(&DataType::I4, &bytes, 1) && !is_zero(&DataType::I4, &bytes, 0));
    }

    #[test]
    fn values_survive_a_wider_type() {
        assert_eq!(converted(&DataType::I8, &DataType::I32, &[0xFF, 2]), Some(vec![0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0]));
        assert_eq!(converted(&DataType::I8, &DataType::U32, &[0xFF]), None);
    }
}
