//! Conversions: casts, bitcasts, and what loads and stores do to elements.

use super::Meaning;
use super::element::{Canonical, Element, F32, F64, Ieee, Mode, Narrow};
use super::narrow::{BrainFloat, E4m3, E5m2, FP4, HalfFloat, NF4};
use vyre_spec::{DataType, FloatMode, Scalar, ValueType};

/// Casts between one type and every other one, by Rust's `as`: it truncates and saturates floats, NaN to 0, wraps integers and rounds
/// to nearest even once.
macro_rules! casts_from {
    ($from:ty, $to:expr, $m:ident) => {
        match $to {
            Scalar::Bool => Meaning::unary::<$from, bool>(|a| a as i128 != 0),
            Scalar::U32 => Meaning::unary::<$from, u32>(|a| a as u32),
            Scalar::I32 => Meaning::unary::<$from, i32>(|a| a as i32),
            Scalar::U64 => Meaning::unary::<$from, u64>(|a| a as u64),
            Scalar::I64 => Meaning::unary::<$from, i64>(|a| a as i64),
            Scalar::F32 => Meaning::unary::<$from, F32<$m>>(|a| a as f32),
            Scalar::F64 => Meaning::unary::<$from, F64<$m>>(|a| a as f64),
        }
    };
}

/// The meaning of `to(value)`; `None` if there is no such conversion.
#[must_use]
pub fn cast(from: Scalar, to: Scalar, mode: FloatMode) -> Option<Meaning> {
    match mode {
        FloatMode::Ieee => cast_in::<Ieee>(from, to),
        FloatMode::Canonical => cast_in::<Canonical>(from, to),
    }
}

fn cast_in<M: Mode>(from: Scalar, to: Scalar) -> Option<Meaning> {
    Some(match from {
        Scalar::Bool => match to {
            Scalar::Bool => Meaning::unary::<bool, bool>(|a| a),
            Scalar::U32 => Meaning::unary::<bool, u32>(|a| a.into()),
            Scalar::I32 => Meaning::unary::<bool, i32>(|a| a.into()),
            Scalar::U64 => Meaning::unary::<bool, u64>(|a| a.into()),
            Scalar::I64 => Meaning::unary::<bool, i64>(|a| a.into()),
            Scalar::F32 => Meaning::unary::<bool, F32<M>>(|a| if a { 1.0 } else { 0.0 }),
            Scalar::F64 => Meaning::unary::<bool, F64<M>>(|a| if a { 1.0 } else { 0.0 }),
        },
        Scalar::U32 => casts_from!(u32, to, M),
        Scalar::I32 => casts_from!(i32, to, M),
        Scalar::U64 => casts_from!(u64, to, M),
        Scalar::I64 => casts_from!(i64, to, M),
        Scalar::F32 | Scalar::F64 if to == Scalar::Bool => return None,
        Scalar::F32 => casts_from!(F32<M>, to, M),
        Scalar::F64 => casts_from!(F64<M>, to, M),
    })
}

/// The meaning of `bitcast<to>(value)`; `None` if the widths differ or one is a bool.
#[must_use]
pub fn bitcast(from: Scalar, to: Scalar, mode: FloatMode) -> Option<Meaning> {
    match mode {
        FloatMode::Ieee => bitcast_in::<Ieee>(from, to),
        FloatMode::Canonical => bitcast_in::<Canonical>(from, to),
    }
}

fn bitcast_in<M: Mode>(from: Scalar, to: Scalar) -> Option<Meaning> {
    match from {
        Scalar::Bool => None,
        Scalar::U32 => bits32_to::<u32, M>(to, |a| a),
        Scalar::I32 => bits32_to::<i32, M>(to, |a| a as u32),
        Scalar::F32 => bits32_to::<F32<M>, M>(to, f32::to_bits),
        Scalar::U64 => bits64_to::<u64, M>(to, |a| a),
        Scalar::I64 => bits64_to::<i64, M>(to, |a| a as u64),
        Scalar::F64 => bits64_to::<F64<M>, M>(to, f64::to_bits),
    }
}

fn bits32_to<A: Element, M: Mode>(to: Scalar, bits: impl Fn(A::Value) -> u32 + Send + Sync + 'static) -> Option<Meaning> {
    match to {
        Scalar::U32 => Some(Meaning::unary::<A, u32>(bits)),
        Scalar::I32 => Some(Meaning::unary::<A, i32>(move |a| bits(a) as i32)),
        Scalar::F32 => Some(Meaning::unary::<A, F32<M>>(move |a| f32::from_bits(bits(a)))),
        Scalar::Bool | Scalar::U64 | Scalar::I64 | Scalar::F64 => None,
    }
}

fn bits64_to<A: Element, M: Mode>(to: Scalar, bits: impl Fn(A::Value) -> u64 + Send + Sync + 'static) -> Option<Meaning> {
    match to {
        Scalar::U64 => Some(Meaning::unary::<A, u64>(bits)),
        Scalar::I64 => Some(Meaning::unary::<A, i64>(move |a| bits(a) as i64)),
        Scalar::F64 => Some(Meaning::unary::<A, F64<M>>(move |a| f64::from_bits(bits(a)))),
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::F32 => None,
    }
}

/// Two elements in one byte, the first in the low half.
struct Nibbles;

impl Element for Nibbles {
    type Value = [u8; 2];
    const BYTES: usize = 1;
    fn load(bytes: &[u8]) -> [u8; 2] {
        [bytes[0] & 15, bytes[0] >> 4]
    }
    fn store([low, high]: [u8; 2], bytes: &mut [u8]) {
        bytes[0] = low | high << 4;
    }
}

/// Two elements side by side.
struct Pair<E>(std::marker::PhantomData<E>);

impl<E: Element> Element for Pair<E> {
    type Value = [E::Value; 2];
    const BYTES: usize = 2 * E::BYTES;
    fn load(bytes: &[u8]) -> [E::Value; 2] {
        let (first, second) = bytes.split_at(E::BYTES);
        [E::load(first), E::load(second)]
    }
    fn store([first, second]: [E::Value; 2], bytes: &mut [u8]) {
        let (low, high) = bytes.split_at_mut(E::BYTES);
        E::store(first, low);
        E::store(second, high);
    }
}

/// What is asked about an element type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Elements of the type are loaded and stored as the type of their values.
    Load,
    /// Values are stored as elements of the type.
    Store,
    /// Elements of the type are loaded and stored as what they were.
    InPlace,
}

/// The meaning of loading or storing elements of this type; `None` if that is not possible. Elements of half a byte come in pairs,
/// components of vectors one by one.
#[must_use]
pub fn memory(ty: &DataType, access: Access, mode: FloatMode) -> Option<Meaning> {
    match mode {
        FloatMode::Ieee => memory_in::<Ieee>(ty, access),
        FloatMode::Canonical => memory_in::<Canonical>(ty, access),
    }
}

/// Between an element type and that of its values, which is another one.
fn between<E: Element, V: Element<Value = E::Value>>(access: Access) -> Option<Meaning> {
    Some(match access {
        Access::Load => Meaning::unary::<E, V>(|a| a),
        Access::Store => Meaning::unary::<V, E>(|a| a),
        Access::InPlace => Meaning::unary::<E, E>(|a| a),
    })
}

/// Of a type whose elements are values.
fn same<E: Element>(access: Access) -> Option<Meaning> {
    between::<E, E>(access)
}

fn of_scalar<M: Mode>(scalar: Scalar, access: Access) -> Option<Meaning> {
    match scalar {
        Scalar::Bool => same::<bool>(access),
        Scalar::U32 => same::<u32>(access),
        Scalar::I32 => same::<i32>(access),
        Scalar::U64 => same::<u64>(access),
        Scalar::I64 => same::<i64>(access),
        Scalar::F32 => same::<F32<M>>(access),
        Scalar::F64 => same::<F64<M>>(access),
    }
}

fn memory_in<M: Mode>(ty: &DataType, access: Access) -> Option<Meaning> {
    match ty {
        DataType::U32 => of_scalar::<M>(Scalar::U32, access),
        DataType::I32 => of_scalar::<M>(Scalar::I32, access),
        DataType::U64 => of_scalar::<M>(Scalar::U64, access),
        DataType::I64 => of_scalar::<M>(Scalar::I64, access),
        DataType::Bool => of_scalar::<M>(Scalar::Bool, access),
        DataType::F32 => of_scalar::<M>(Scalar::F32, access),
        DataType::F64 => of_scalar::<M>(Scalar::F64, access),
        DataType::U8 => between::<Narrow<u8, u32>, u32>(access),
        DataType::U16 => between::<Narrow<u16, u32>, u32>(access),
        DataType::I8 => between::<Narrow<i8, i32>, i32>(access),
        DataType::I16 => between::<Narrow<i16, i32>, i32>(access),
        DataType::F16 => between::<HalfFloat<M>, F32<M>>(access),
        DataType::BF16 => between::<BrainFloat<M>, F32<M>>(access),
        DataType::F8E4M3 => between::<E4m3<M>, F32<M>>(access),
        DataType::F8E5M2 => between::<E5m2<M>, F32<M>>(access),
        DataType::I4 | DataType::FP4 | DataType::NF4 if access != Access::Load => None,
        DataType::I4 => Some(Meaning::unary::<Nibbles, Pair<i32>>(|pair| pair.map(|it| i32::from(it) - i32::from(it & 8) * 2))),
        DataType::FP4 => Some(Meaning::unary::<Nibbles, Pair<F32<M>>>(|pair| pair.map(|it| FP4.decode(it.into())))),
        DataType::NF4 => Some(Meaning::unary::<Nibbles, Pair<F32<M>>>(|pair| pair.map(|it| NF4[usize::from(it)] as f32))),
        DataType::Vec2U32 | DataType::Vec4U32 | DataType::Vec { .. } => match ty.value_type()? {
            ValueType::Vector(component, _) | ValueType::Scalar(component) => of_scalar::<M>(component, access),
        },
        DataType::Bytes
        | DataType::Tensor
        | DataType::Array { .. }
        | DataType::Handle(_)
        | DataType::Opaque(_)
        | DataType::TensorShaped { .. }
        | DataType::SparseCsr { .. }
        | DataType::SparseCoo { .. }
        | DataType::SparseBsr { .. }
        | DataType::DeviceMesh { .. } => None,
    }
}
