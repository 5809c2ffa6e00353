//! The associative ops that subgroups reduce and scan with, and their identities.

use crate::apply::binary;
use crate::float::Float;
use crate::int::Int;
use vyre_spec::{BinaryOp, FloatMode, ReduceOp, Scalar};

/// Two values combined.
#[inline]
#[must_use]
pub fn reduce(op: ReduceOp, ty: Scalar, mode: FloatMode, a: u64, b: u64) -> u64 {
    let op = match op {
        ReduceOp::Add => BinaryOp::Add,
        ReduceOp::Mul => BinaryOp::Mul,
        ReduceOp::Min => BinaryOp::Min,
        ReduceOp::Max => BinaryOp::Max,
        ReduceOp::And => BinaryOp::BitAnd,
        ReduceOp::Or => BinaryOp::BitOr,
        ReduceOp::Xor => BinaryOp::BitXor,
    };
    binary(op, ty, mode, a, b)
}

/// The value that changes nothing: what retired lanes contribute and what an exclusive scan starts with.
///
/// For the float `min` and `max` it is NaN. Since a number beats NaN, `min(NaN, x)` is `x` for every `x`, NaN included; an infinity
/// would not do, because it beats a NaN too.
///
/// # Panics
///
/// When no subgroup op reduces `ty` with `op`.
#[must_use]
pub fn identity(op: ReduceOp, ty: Scalar) -> u64 {
    let result = match ty {
        Scalar::U32 => Some(identity_int::<u32>(op)),
        Scalar::I32 => Some(identity_int::<i32>(op)),
        Scalar::U64 => Some(identity_int::<u64>(op)),
        Scalar::I64 => Some(identity_int::<i64>(op)),
        Scalar::F32 => identity_float::<f32>(op),
        Scalar::F64 => identity_float::<f64>(op),
        Scalar::Bool => None,
    };
    result.unwrap_or_else(|| unreachable!("{op:?} does not reduce {ty}"))
}

fn identity_int<T: Int>(op: ReduceOp) -> u64 {
    let value = match op {
        ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor => T::ZERO,
        ReduceOp::Mul => T::ONE,
        ReduceOp::Min => T::MAX,
        ReduceOp::Max => T::MIN,
        ReduceOp::And => !T::ZERO,
    };
    value.to_bits()
}

fn identity_float<F: Float>(op: ReduceOp) -> Option<u64> {
    match op {
        ReduceOp::Min | ReduceOp::Max => Some(F::NAN.to_bits()),
        ReduceOp::Add | ReduceOp::Mul | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => None,
    }
}
