//! Casts and bitcasts between the scalar types.
//!
//! Rust's `as` *is* the semantics table: float to int truncates, saturates and takes NaN to 0; int to float and f64 to f32 round
//! once, to nearest even; integers wrap and extend by the source's sign. Every source fits one of three wide types exactly (u64,
//! i64, f64), and a conversion from the wide type gives what the direct one gives.

use crate::apply::canonicalize;
use crate::float::Float;
use crate::int::Int;
use vyre_spec::{FloatMode, Scalar};

/// The value of `a` in the type `to`.
///
/// The validator refuses casts from floats to `bool`; here they are `a != 0`, so that the function is total.
#[inline]
#[must_use]
pub fn cast(from: Scalar, to: Scalar, mode: FloatMode, a: u64) -> u64 {
    match from {
        Scalar::Bool | Scalar::U32 | Scalar::U64 => match to {
            Scalar::Bool => u64::from(a != 0),
            Scalar::U32 | Scalar::I32 => u64::from(a as u32),
            Scalar::U64 | Scalar::I64 => a,
            Scalar::F32 => Float::to_bits((a as f32).canonical(mode)),
            Scalar::F64 => Float::to_bits((a as f64).canonical(mode)),
        },
        Scalar::I32 => cast_signed(i64::from(<i32 as Int>::from_bits(a)), to, mode),
        Scalar::I64 => cast_signed(a as i64, to, mode),
        Scalar::F32 => cast_float(f64::from(<f32 as Float>::from_bits(a)), to, mode),
        Scalar::F64 => cast_float(f64::from_bits(a), to, mode),
    }
}

#[inline]
fn cast_signed(value: i64, to: Scalar, mode: FloatMode) -> u64 {
    match to {
        Scalar::Bool => u64::from(value != 0),
        Scalar::U32 | Scalar::I32 => u64::from(value as u32),
        Scalar::U64 | Scalar::I64 => value as u64,
        Scalar::F32 => Float::to_bits((value as f32).canonical(mode)),
        Scalar::F64 => Float::to_bits((value as f64).canonical(mode)),
    }
}

#[inline]
fn cast_float(value: f64, to: Scalar, mode: FloatMode) -> u64 {
    match to {
        Scalar::Bool => u64::from(value != 0.0),
        Scalar::U32 => Int::to_bits(value as u32),
        Scalar::I32 => Int::to_bits(value as i32),
        Scalar::U64 => value as u64,
        Scalar::I64 => Int::to_bits(value as i64),
        Scalar::F32 => Float::to_bits((value as f32).canonical(mode)),
        Scalar::F64 => Float::to_bits(value.canonical(mode)),
    }
}

/// The bits of `a` taken as a value of the type `to`, which is as wide as `from`. A float result is canonicalised; a float operand
/// already is.
///
/// # Panics
///
/// When the widths differ.
#[inline]
#[must_use]
pub fn bitcast(from: Scalar, to: Scalar, mode: FloatMode, a: u64) -> u64 {
    assert_eq!(from.bits(), to.bits(), "bitcast from {from} to {to}");
    canonicalize(to, mode, a)
}
