//! Elements in bytes: how many fit, what a load gives and what a store leaves.
//!
//! Little-endian throughout. Elements lie side by side without padding (a vector of three takes twelve bytes); of two nibbles in
//! a byte the one with the even index is the low one. Loads canonicalise floats; stores take canonical values, and
//! those that narrow canonicalise the narrower one.

use crate::apply::canonicalize;
use crate::float::Float;
use crate::int::Int;
use crate::small::{self, Format};
use crate::value::Value;
use vyre_spec::{DataType, FloatMode, Scalar, Storage, ValueType};

/// Whole elements of `ty` in `bytes` bytes, rounded down, two a byte for nibbles. `None` for types no kernel can use, and when
/// the count does not fit a `u64`.
#[must_use]
pub fn element_count(ty: &DataType, bytes: u64) -> Option<u64> {
    u64::try_from(u128::from(bytes) * 8 / element_bits(ty)?).ok()
}

/// Bytes that `count` elements take, rounded up for nibbles. `None` when they do not fit a `u64`, and for types no kernel can
/// use.
#[must_use]
pub fn byte_length(ty: &DataType, count: u64) -> Option<u64> {
    u64::try_from((u128::from(count) * element_bits(ty)?).div_ceil(8)).ok()
}

/// At most 128, so that the products above fit.
fn element_bits(ty: &DataType) -> Option<u128> {
    ty.value_type()?;
    ty.bits().map(u128::from)
}

/// Element `index` widened to its value type; the components of a vector in order.
///
/// The caller checks the index; out of range, and for types no kernel can use, the value is 0.
#[inline]
#[must_use]
pub fn load(ty: &DataType, mode: FloatMode, bytes: &[u8], index: u32) -> Value {
    // The common types first and without the general path: this is the inner loop of the interpreter.
    match ty {
        DataType::U32 | DataType::I32 => Value::from(u64::from(u32::from_le_bytes(element(bytes, index)))),
        DataType::F32 => Value::from(canonicalize(Scalar::F32, mode, u64::from(u32::from_le_bytes(element(bytes, index))))),
        DataType::Bool => Value::from(u64::from(u32::from_le_bytes(element(bytes, index)) != 0)),
        DataType::U64 | DataType::I64 => Value::from(u64::from_le_bytes(element(bytes, index))),
        DataType::F64 => Value::from(canonicalize(Scalar::F64, mode, u64::from_le_bytes(element(bytes, index)))),
        DataType::U8 => Value::from(u64::from(u8::from_le_bytes(element(bytes, index)))),
        DataType::I8 => Value::from(Int::to_bits(i32::from(i8::from_le_bytes(element(bytes, index))))),
        DataType::U16 => Value::from(u64::from(u16::from_le_bytes(element(bytes, index)))),
        DataType::I16 => Value::from(Int::to_bits(i32::from(i16::from_le_bytes(element(bytes, index))))),
        DataType::F16 => load_f32(mode, small::widen(&small::F16, u16::from_le_bytes(element(bytes, index)))),
        DataType::BF16 => load_f32(mode, small::widen(&small::BF16, u16::from_le_bytes(element(bytes, index)))),
        DataType::F8E4M3 => load_f32(mode, small::widen(&small::F8E4M3, u8::from_le_bytes(element(bytes, index)).into())),
        DataType::F8E5M2 => load_f32(mode, small::widen(&small::F8E5M2, u8::from_le_bytes(element(bytes, index)).into())),
        DataType::I4 => nibble(bytes, index).map_or(Value::default(), |bits| Value::from(Int::to_bits(small::i4(bits)))),
        DataType::FP4 => nibble(bytes, index).map_or(Value::default(), |bits| load_f32(mode, small::fp4(bits))),
        DataType::NF4 => nibble(bytes, index).map_or(Value::default(), |bits| load_f32(mode, small::nf4(bits))),
        DataType::Vec2U32 | DataType::Vec4U32 | DataType::Vec { .. } => load_vector(ty, mode, bytes, index),
        DataType::Bytes
        | DataType::Array { .. }
        | DataType::Tensor
        | DataType::Handle(_)
        | DataType::TensorShaped { .. }
        | DataType::SparseCsr { .. }
        | DataType::SparseCoo { .. }
        | DataType::SparseBsr { .. }
        | DataType::DeviceMesh { .. }
        | DataType::Opaque(_) => Value::default(),
    }
}

/// Narrows `value` to the element type and writes it at `index`.
///
/// The caller checks the index; out of range nothing is written. The validator refuses stores to load-only types (a nibble shares
/// its byte, so a store to it would race with its neighbour) and to types no kernel can use; here they write nothing.
#[inline]
pub fn store(ty: &DataType, mode: FloatMode, bytes: &mut [u8], index: u32, value: Value) {
    let scalar = value.scalar();
    match ty {
        DataType::U32 | DataType::I32 | DataType::F32 => put(bytes, index, (scalar as u32).to_le_bytes()),
        DataType::Bool => put(bytes, index, u32::from(scalar != 0).to_le_bytes()),
        DataType::U64 | DataType::I64 | DataType::F64 => put(bytes, index, scalar.to_le_bytes()),
        DataType::U8 | DataType::I8 => put(bytes, index, (scalar as u8).to_le_bytes()),
        DataType::U16 | DataType::I16 => put(bytes, index, (scalar as u16).to_le_bytes()),
        DataType::F16 => put(bytes, index, narrow(&small::F16, mode, scalar).to_le_bytes()),
        DataType::BF16 => put(bytes, index, narrow(&small::BF16, mode, scalar).to_le_bytes()),
        DataType::F8E4M3 => put(bytes, index, [narrow(&small::F8E4M3, mode, scalar) as u8]),
        DataType::F8E5M2 => put(bytes, index, [narrow(&small::F8E5M2, mode, scalar) as u8]),
        DataType::Vec2U32 | DataType::Vec4U32 | DataType::Vec { .. } => store_vector(ty, bytes, index, value),
        DataType::I4
        | DataType::FP4
        | DataType::NF4
        | DataType::Bytes
        | DataType::Array { .. }
        | DataType::Tensor
        | DataType::Handle(_)
        | DataType::TensorShaped { .. }
        | DataType::SparseCsr { .. }
        | DataType::SparseCoo { .. }
        | DataType::SparseBsr { .. }
        | DataType::DeviceMesh { .. }
        | DataType::Opaque(_) => {}
    }
}

#[inline]
fn load_f32(mode: FloatMode, value: f32) -> Value {
    Value::from(Float::to_bits(value.canonical(mode)))
}

#[inline]
fn narrow(format: &Format, mode: FloatMode, scalar: u64) -> u16 {
    let bits = small::narrow(format, Float::from_bits(scalar));
    match mode {
        FloatMode::Ieee => bits,
        // A store is a conversion, so what it gives is flushed too: a value that rounds to -0, or in bf16 to 2^-126.
        FloatMode::Canonical if small::widen(format, bits).abs() <= f32::MIN_POSITIVE => 0,
        FloatMode::Canonical => bits,
    }
}

/// The component type and count of a vector that a kernel can use.
fn vector(ty: &DataType) -> Option<(Scalar, u8)> {
    match ty.storage() {
        Storage::Computed(ValueType::Vector(scalar, count)) => Some((scalar, count)),
        Storage::Computed(ValueType::Scalar(_)) | Storage::Converted(_) | Storage::LoadOnly(_) | Storage::Described => None,
    }
}

fn load_vector(ty: &DataType, mode: FloatMode, bytes: &[u8], index: u32) -> Value {
    let mut value = Value::default();
    let Some((scalar, count)) = vector(ty) else { return value };
    let size = 4 * usize::from(count);
    let Some(range) = range(bytes, index, size) else { return value };
    for (component, word) in value.0.iter_mut().zip(bytes[range].as_chunks().0) {
        *component = canonicalize(scalar, mode, u64::from(u32::from_le_bytes(*word)));
    }
    value
}

fn store_vector(ty: &DataType, bytes: &mut [u8], index: u32, value: Value) {
    let Some((_, count)) = vector(ty) else { return };
    let size = 4 * usize::from(count);
    let Some(range) = range(bytes, index, size) else { return };
    for (component, word) in value.0.iter().zip(bytes[range].as_chunks_mut().0) {
        *word = (*component as u32).to_le_bytes();
    }
}

/// Where element `index` of `size` bytes lies, if it lies inside.
#[inline]
fn range(bytes: &[u8], index: u32, size: usize) -> Option<std::ops::Range<usize>> {
    let start = (index as usize).checked_mul(size)?;
    let end = start.checked_add(size)?;
    (end <= bytes.len()).then_some(start..end)
}

/// The bytes of element `index`; zeros out of range.
#[inline]
fn element<const SIZE: usize>(bytes: &[u8], index: u32) -> [u8; SIZE] {
    bytes.as_chunks().0.get(index as usize).copied().unwrap_or([0; SIZE])
}

#[inline]
fn put<const SIZE: usize>(bytes: &mut [u8], index: u32, element: [u8; SIZE]) {
    if let Some(place) = bytes.as_chunks_mut().0.get_mut(index as usize) {
        *place = element;
    }
}

/// The four bits of element `index`, if it lies inside; zeros would not do out of range, because NF4's nibble 0 means −1.
#[inline]
fn nibble(bytes: &[u8], index: u32) -> Option<u8> {
    bytes.get(index as usize / 2).map(|byte| byte >> (4 * (index % 2)) & 0xF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::values;
    use vyre_spec::TypeId;

    const IEEE: FloatMode = FloatMode::Ieee;

    fn scalar(ty: &DataType, mode: FloatMode, bytes: &[u8], index: u32) -> u64 {
        let value = load(ty, mode, bytes, index);
        assert_eq!(value.0[1..], [0, 0, 0]);
        value.scalar()
    }

    fn vectors() -> Vec<DataType> {
        let mut vectors = vec![DataType::Vec2U32, DataType::Vec4U32];
        for part in [Scalar::U32, Scalar::I32, Scalar::F32] {
            vectors.extend((2..=4).map(|count| DataType::vector(part, count)));
        }
        vectors
    }

    fn described() -> Vec<DataType> {
        vec![
            DataType::Bytes,
            DataType::Array { element_size: 4 },
            DataType::Tensor,
            DataType::Handle(TypeId(1)),
            DataType::vector(Scalar::U32, 5),
            DataType::vector(Scalar::U64, 2),
            DataType::SparseCsr { element: Box::new(DataType::U32) },
        ]
    }

    #[test]
    fn counts_round_down_and_lengths_round_up() {
        for (ty, bytes, count) in [
            (DataType::U32, 11, 2),
            (DataType::Bool, 8, 2),
            (DataType::F64, 15, 1),
            (DataType::U8, 3, 3),
            (DataType::F16, 3, 1),
            (DataType::I4, 3, 6),
            (DataType::vector(Scalar::F32, 3), 35, 2),
            (DataType::Vec4U32, 16, 1),
            (DataType::NF4, 0, 0),
            (DataType::U8, u64::MAX, u64::MAX),
        ] {
            assert_eq!(element_count(&ty, bytes), Some(count), "{ty}");
        }
        for (ty, count, bytes) in [
            (DataType::U32, 3, 12),
            (DataType::I4, 3, 2),
            (DataType::FP4, 4, 2),
            (DataType::BF16, 3, 6),
            (DataType::vector(Scalar::F32, 3), 2, 24),
            (DataType::I4, u64::MAX, 1 << 63),
        ] {
            assert_eq!(byte_length(&ty, count), Some(bytes), "{ty}");
        }
        assert_eq!(byte_length(&DataType::U32, u64::MAX / 4 + 1), None);
        assert_eq!(element_count(&DataType::I4, 1 << 63), None);
        for ty in described() {
            assert_eq!((element_count(&ty, 16), byte_length(&ty, 4)), (None, None), "{ty}");
        }
    }

    #[test]
    fn loads_are_little_endian_and_widen_by_the_sign_of_the_element() {
        let bytes: Vec<u8> = (0xF1..=0xFF).chain(0x01..=0x09).collect();
        for (ty, index, expected) in [
            (DataType::U8, 1, 0xF2),
            (DataType::I8, 1, 0xFFFF_FFF2),
            (DataType::I8, 16, 2),
            (DataType::U16, 1, 0xF4F3),
            (DataType::I16, 1, 0xFFFF_F4F3),
            (DataType::I16, 8, 0x0302),
            (DataType::U32, 1, 0xF8F7_F6F5),
            (DataType::I32, 1, 0xF8F7_F6F5),
            (DataType::U64, 1, 0x01FF_FEFD_FCFB_FAF9),
            (DataType::I64, 0, 0xF8F7_F6F5_F4F3_F2F1),
            (DataType::F32, 4, 0x0504_0302),
            (DataType::F64, 2, 0x0908_0706_0504_0302),
            (DataType::BF16, 8, 0x0302_0000),
        ] {
            assert_eq!(scalar(&ty, IEEE, &bytes, index), expected, "{ty}");
        }
    }

    #[test]
    fn a_bool_is_true_when_any_of_its_four_bytes_is_not_zero_and_is_stored_as_one() {
        let mut bytes = [0, 0, 0, 0, 0, 0, 0, 0x80, 9, 9, 9, 9];
        assert_eq!(scalar(&DataType::Bool, IEEE, &bytes, 0), 0);
        assert_eq!(scalar(&DataType::Bool, IEEE, &bytes, 1), 1);
        store(&DataType::Bool, FloatMode::Ieee, &mut bytes, 1, Value::from(1));
        store(&DataType::Bool, FloatMode::Ieee, &mut bytes, 2, Value::from(0));
        assert_eq!(bytes, [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_even_nibble_is_the_low_one() {
        let bytes = [0x7F, 0x80];
        let load_all = |ty: DataType| [0, 1, 2, 3].map(|index| scalar(&ty, IEEE, &bytes, index));
        assert_eq!(load_all(DataType::I4), [0xFFFF_FFFF, 7, 0, 0xFFFF_FFF8]);
        assert_eq!(load_all(DataType::FP4), [0xC0C0_0000, 0x40C0_0000, 0, 0x8000_0000]);
        assert_eq!(load_all(DataType::NF4), [15, 7, 0, 8].map(|value| u64::from(vyre_spec::nibble::NF4[value])));
        assert_eq!(scalar(&DataType::FP4, FloatMode::Canonical, &bytes, 3), 0, "-0 is +0 in canonical mode");
    }

    #[test]
    fn float_loads_give_one_nan_and_flush_in_canonical_mode() {
        for (ty, bytes, ieee, canonical) in [
            (DataType::F32, &[1, 0, 0xA0, 0xFF][..], 0x7FC0_0000, 0x7FC0_0000),
            (DataType::F32, &[1, 0, 0, 0x80], 0x8000_0001, 0),
            (DataType::F32, &[0, 0, 0x80, 0x00], 0x0080_0000, 0),
            (DataType::F32, &[1, 0, 0x80, 0x00], 0x0080_0001, 0x0080_0001),
            (DataType::F64, &[0, 0, 0, 0, 0, 0, 0x10, 0x80], 0x8010_0000_0000_0000, 0),
            (DataType::F64, &[1, 0, 0, 0, 0, 0, 0xF0, 0xFF], 0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0000),
            (DataType::BF16, &[0x40, 0x80], 0x8040_0000, 0),
            (DataType::BF16, &[0x81, 0xFF], 0x7FC0_0000, 0x7FC0_0000),
            (DataType::F16, &[0x01, 0x80], 0xB380_0000, 0xB380_0000),
            (DataType::F16, &[0x00, 0x80], 0x8000_0000, 0),
            (DataType::F8E4M3, &[0xFF], 0x7FC0_0000, 0x7FC0_0000),
            (DataType::F8E5M2, &[0xFC], 0xFF80_0000, 0xFF80_0000),
        ] {
            assert_eq!(scalar(&ty, IEEE, bytes, 0), ieee, "{ty} {bytes:x?}");
            assert_eq!(scalar(&ty, FloatMode::Canonical, bytes, 0), canonical, "{ty} {bytes:x?}");
        }
    }

    #[test]
    fn stores_narrow_by_wrapping_or_rounding() {
        let f = |value: f32| u64::from(value.to_bits());
        for (ty, value, expected) in [
            (DataType::U8, 0x1234_5678, &[0x78][..]),
            (DataType::I8, 0xFFFF_FF80, &[0x80]),
            (DataType::U16, 0x1234_5678, &[0x78, 0x56]),
            (DataType::I16, 0xFFFF_8001, &[0x01, 0x80]),
            (DataType::F16, f(1.0), &[0x00, 0x3C]),
            (DataType::F16, f(f32::NAN), &[0x00, 0x7E]),
            (DataType::BF16, f(-3.140_625), &[0x49, 0xC0]),
            (DataType::BF16, f(1.001_953_1), &[0x80, 0x3F]),
            (DataType::F8E4M3, f(-1e9), &[0xFE]),
            (DataType::F8E5M2, f(f32::INFINITY), &[0x7B]),
        ] {
            let mut bytes = vec![0xEE; expected.len() * 3];
            store(&ty, FloatMode::Ieee, &mut bytes, 1, Value::from(value));
            let mut all = vec![0xEE; expected.len()];
            all.extend(expected);
            all.extend(vec![0xEE; expected.len()]);
            assert_eq!(bytes, all, "{ty}");
        }
    }

    #[test]
    fn what_is_stored_in_a_computed_type_is_loaded_back() {
        for ty in Scalar::ALL {
            let data_type = DataType::from(ty);
            for value in values(ty, IEEE) {
                let mut bytes = [0xEE; 24];
                store(&data_type, FloatMode::Ieee, &mut bytes, 2, Value::from(value));
                assert_eq!(scalar(&data_type, IEEE, &bytes, 2), value, "{ty}");
                let size = ty.bytes() as usize;
                assert!(bytes[..2 * size].iter().chain(&bytes[3 * size..]).all(|byte| *byte == 0xEE), "{ty}");
            }
        }
        for ty in vectors() {
            let size = ty.bits().expect("vectors have a size") as usize / 8;
            let mut value = Value([0x3F80_0001, 0xC000_0002, 0x4040_0003, 0xC080_0004]);
            value.0[size / 4..].fill(0);
            let mut bytes = vec![0xEE; 3 * size];
            store(&ty, FloatMode::Ieee, &mut bytes, 1, value);
            assert_eq!(load(&ty, IEEE, &bytes, 1), value, "{ty}");
            assert_eq!(bytes[size..size + 8], [1, 0, 0x80, 0x3F, 2, 0, 0, 0xC0], "{ty}");
            assert!(bytes[..size].iter().chain(&bytes[2 * size..]).all(|byte| *byte == 0xEE), "{ty}");
        }
    }

    #[test]
    fn components_of_float_vectors_are_canonical() {
        let bytes = [1, 0, 0xC0, 0xFF, 1, 0, 0, 0x80, 0, 0, 0x80, 0x3F];
        let ty = DataType::vector(Scalar::F32, 3);
        assert_eq!(load(&ty, IEEE, &bytes, 0), Value([0x7FC0_0000, 0x8000_0001, 0x3F80_0000, 0]));
        assert_eq!(load(&ty, FloatMode::Canonical, &bytes, 0), Value([0x7FC0_0000, 0, 0x3F80_0000, 0]));
    }

    #[test]
    fn out_of_range_loads_zero_and_stores_nothing() {
        for ty in DataType::KERNEL_SCALARS.into_iter().chain(vectors()) {
            // Two elements and a tail that is part of a third.
            let mut bytes = vec![0xEE; byte_length(&ty, 3).expect("kernel types have a size") as usize - 1];
            let count = element_count(&ty, bytes.len() as u64).expect("kernel types have a size") as u32;
            let before = bytes.clone();
            for index in [count, count + 1, 0x4000_0000, 0x8000_0000, u32::MAX] {
                assert_eq!(load(&ty, IEEE, &bytes, index), Value::default(), "{ty} {index}");
                store(&ty, FloatMode::Ieee, &mut bytes, index, Value([u64::MAX; 4]));
            }
            assert_eq!(bytes, before, "{ty}");
        }
    }

    #[test]
    fn load_only_and_described_types_are_never_written() {
        for ty in described().into_iter().chain([DataType::I4, DataType::FP4, DataType::NF4]) {
            let mut bytes = [0xEE; 16];
            store(&ty, FloatMode::Ieee, &mut bytes, 0, Value::from(0));
            assert_eq!(bytes, [0xEE; 16], "{ty}");
        }
        for ty in described() {
            assert_eq!(load(&ty, IEEE, &[0xEE; 64], 0), Value::default(), "{ty}");
        }
    }
}
