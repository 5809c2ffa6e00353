//! Elements in bytes: how many fit, what a load gives and what a store leaves.
//!
//! Little-endian throughout. Elements lie side by side without padding (a vector of three takes twelve bytes); of two nibbles in a
//! byte the one with the even index is the low one. Loads canonicalise floats; stores take canonical values, so only narrowing
//! changes what they write.

use crate::apply::canonicalize;
use crate::float::Float;
use crate::int::Int;
use crate::small::{self, Format};
use crate::value::Value;
use vyre_spec::{DataType, FloatMode, Scalar, Storage, ValueType};

/// Whole elements of `ty` in `bytes` bytes, rounded down, two a byte for nibbles. `None` for types no kernel can use, and when the
/// count does not fit a `u64`.
#[must_use]
pub fn element_count(ty: &DataType, bytes: u64) -> Option<u64> {
    u64::try_from(u128::from(bytes) * 8 / element_bits(ty)?).ok()
}

/// Bytes that `count` elements take, rounded up for nibbles. `None` when they do not fit a `u64`, and for types no kernel can use.
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
pub fn store(ty: &DataType, bytes: &mut [u8], index: u32, value: Value) {
    let scalar = value.scalar();
    match ty {
        DataType::U32 | DataType::I32 | DataType::F32 => put(bytes, index, (scalar as u32).to_le_bytes()),
        DataType::Bool => put(bytes, index, u32::from(scalar != 0).to_le_bytes()),
        DataType::U64 | DataType::I64 | DataType::F64 => put(bytes, index, scalar.to_le_bytes()),
        DataType::U8 | DataType::I8 => put(bytes, index, (scalar as u8).to_le_bytes()),
        DataType::U16 | DataType::I16 => put(bytes, index, (scalar as u16).to_le_bytes()),
        DataType::F16 => put(bytes, index, narrow(&small::F16, scalar).to_le_bytes()),
        DataType::BF16 => put(bytes, index, narrow(&small::BF16, scalar).to_le_bytes()),
        DataType::F8E4M3 => put(bytes, index, [narrow(&small::F8E4M3, scalar) as u8]),
        DataType::F8E5M2 => put(bytes, index, [narrow(&small::F8E5M2, scalar) as u8]),
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
fn narrow(format: &Format, scalar: u64) -> u16 {
    small::narrow(format, Float::from_bits(scalar))
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
