//! Pure ops by op and type on the bits of scalars.
//!
//! Each family is matched once per kind of type (integer, float, bool), in full. An op the table does not define on that kind gives
//! `None` there, which the one `unreachable!` of the family turns into our bug: the validator let a program through.

use crate::elementary;
use crate::float::{self, Float};
use crate::int::{self, Int};
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

/// What happens to every float value (literal, load, result): one NaN, and in canonical mode the flush to +0. Other types are left
/// as they are.
#[inline]
#[must_use]
pub fn canonicalize(ty: Scalar, mode: FloatMode, a: u64) -> u64 {
    match ty {
        Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 => a,
        Scalar::F32 => Float::to_bits(<f32 as Float>::from_bits(a).canonical(mode)),
        Scalar::F64 => Float::to_bits(<f64 as Float>::from_bits(a).canonical(mode)),
    }
}

/// The result of `op` on an operand of type `ty`.
///
/// # Panics
///
/// When the op table does not define `op` on `ty`.
#[inline]
#[must_use]
pub fn unary(op: UnaryOp, ty: Scalar, mode: FloatMode, a: u64) -> u64 {
    let result = match ty {
        Scalar::Bool => unary_bool(op, a),
        Scalar::U32 => unary_int::<u32>(op, a),
        Scalar::I32 => unary_int::<i32>(op, a),
        Scalar::U64 => unary_int::<u64>(op, a),
        Scalar::I64 => unary_int::<i64>(op, a),
        Scalar::F32 => unary_f32(op, mode, a),
        Scalar::F64 => unary_float::<f64>(op, mode, a),
    };
    result.unwrap_or_else(|| unreachable!("{op} is not defined on {ty}"))
}

/// The result of `op` when its type variable is `ty`; the second operand of shifts and rotates is a `u32`.
///
/// # Panics
///
/// When the op table does not define `op` on `ty`.
#[inline]
#[must_use]
pub fn binary(op: BinaryOp, ty: Scalar, mode: FloatMode, a: u64, b: u64) -> u64 {
    let result = match ty {
        Scalar::Bool => binary_bool(op, a, b),
        Scalar::U32 => binary_int::<u32>(op, a, b),
        Scalar::I32 => binary_int::<i32>(op, a, b),
        Scalar::U64 => binary_int::<u64>(op, a, b),
        Scalar::I64 => binary_int::<i64>(op, a, b),
        Scalar::F32 => binary_f32(op, mode, a, b),
        Scalar::F64 => binary_float::<f64>(op, mode, a, b),
    };
    result.unwrap_or_else(|| unreachable!("{op} is not defined on {ty}"))
}

/// The result of `op` when its type variable is `ty`; the first operand of `select` is a `bool`.
///
/// # Panics
///
/// When the op table does not define `op` on `ty`.
#[inline]
#[must_use]
pub fn ternary(op: TernaryOp, ty: Scalar, mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    match (op, ty) {
        (TernaryOp::Select, _) => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        (TernaryOp::Fma, Scalar::F32) => fma::<f32>(mode, a, b, c),
        (TernaryOp::Fma, Scalar::F64) => fma::<f64>(mode, a, b, c),
        (TernaryOp::Fma, Scalar::Bool | Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64) => {
            unreachable!("{op} is not defined on {ty}")
        }
    }
}

fn fma<F: Float>(mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    F::from_bits(a).fma(F::from_bits(b), F::from_bits(c)).canonical(mode).to_bits()
}

#[inline]
fn unary_bool(op: UnaryOp, a: u64) -> Option<u64> {
    match op {
        UnaryOp::Not => Some(a ^ 1),
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Popcount
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::ReverseBits
        | UnaryOp::Sign
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Round
        | UnaryOp::Fract
        | UnaryOp::IsNan
        | UnaryOp::IsInf
        | UnaryOp::Exp
        | UnaryOp::Exp2
        | UnaryOp::Log
        | UnaryOp::Log2
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Tanh
        | UnaryOp::Atan
        | UnaryOp::Rsqrt => None,
    }
}

#[inline]
fn unary_int<T: Int>(op: UnaryOp, a: u64) -> Option<u64> {
    let a = T::from_bits(a);
    let result = match op {
        UnaryOp::Neg => a.wrapping_neg(),
        UnaryOp::Not => !a,
        UnaryOp::Abs => a.wrapping_abs(),
        UnaryOp::ReverseBits => a.reverse_bits(),
        UnaryOp::Popcount => return Some(a.count_ones().into()),
        UnaryOp::Clz => return Some(a.leading_zeros().into()),
        UnaryOp::Ctz => return Some(a.trailing_zeros().into()),
        UnaryOp::Sign
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Round
        | UnaryOp::Fract
        | UnaryOp::IsNan
        | UnaryOp::IsInf
        | UnaryOp::Exp
        | UnaryOp::Exp2
        | UnaryOp::Log
        | UnaryOp::Log2
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Tanh
        | UnaryOp::Atan
        | UnaryOp::Rsqrt => return None,
    };
    Some(result.to_bits())
}

/// The ops of both float types; `None` for the elementary functions.
#[inline]
fn unary_float<F: Float>(op: UnaryOp, mode: FloatMode, a: u64) -> Option<u64> {
    let a = F::from_bits(a);
    let result = match op {
        UnaryOp::Neg => -a,
        UnaryOp::Abs => a.abs(),
        UnaryOp::Sign => float::sign(a),
        UnaryOp::Sqrt => a.sqrt(),
        UnaryOp::Floor => float::floor(a),
        UnaryOp::Ceil => float::ceil(a),
        UnaryOp::Trunc => a.trunc(),
        UnaryOp::Round => a.round_ties_even(),
        UnaryOp::Fract => float::fract(a),
        UnaryOp::IsNan => return Some(a.is_nan().into()),
        UnaryOp::IsInf => return Some(a.is_infinite().into()),
        UnaryOp::Not
        | UnaryOp::Popcount
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::ReverseBits
        | UnaryOp::Exp
        | UnaryOp::Exp2
        | UnaryOp::Log
        | UnaryOp::Log2
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Tanh
        | UnaryOp::Atan
        | UnaryOp::Rsqrt => return None,
    };
    Some(result.canonical(mode).to_bits())
}

#[inline]
fn unary_f32(op: UnaryOp, mode: FloatMode, a: u64) -> Option<u64> {
    let function = match op {
        UnaryOp::Exp => elementary::exp,
        UnaryOp::Exp2 => elementary::exp2,
        UnaryOp::Log => elementary::log,
        UnaryOp::Log2 => elementary::log2,
        UnaryOp::Sin => elementary::sin,
        UnaryOp::Cos => elementary::cos,
        UnaryOp::Tan => elementary::tan,
        UnaryOp::Tanh => elementary::tanh,
        UnaryOp::Atan => elementary::atan,
        UnaryOp::Rsqrt => elementary::rsqrt,
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Popcount
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::ReverseBits
        | UnaryOp::Sign
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Round
        | UnaryOp::Fract
        | UnaryOp::IsNan
        | UnaryOp::IsInf => return unary_float::<f32>(op, mode, a),
    };
    Some(Float::to_bits(function(Float::from_bits(a)).canonical(mode)))
}

#[inline]
fn binary_bool(op: BinaryOp, a: u64, b: u64) -> Option<u64> {
    match op {
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::BitXor | BinaryOp::Ne => Some(a ^ b),
        BinaryOp::Eq => Some(a ^ b ^ 1),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Mulhi
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::AbsDiff
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Rotl
        | BinaryOp::Rotr
        | BinaryOp::SatAdd
        | BinaryOp::SatSub
        | BinaryOp::Copysign
        | BinaryOp::Pow
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => None,
    }
}

#[inline]
fn binary_int<T: Int>(op: BinaryOp, a: u64, b: u64) -> Option<u64> {
    let amount = b as u32;
    let (a, b) = (T::from_bits(a), T::from_bits(b));
    let result = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Mulhi => a.mulhi(b),
        BinaryOp::Div => int::div(a, b),
        BinaryOp::Rem => int::rem(a, b),
        BinaryOp::AbsDiff => return Some(a.abs_diff(b).to_bits()),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl => a.wrapping_shl(amount),
        BinaryOp::Shr => a.wrapping_shr(amount),
        BinaryOp::Rotl => a.rotate_left(amount),
        BinaryOp::Rotr => a.rotate_right(amount),
        BinaryOp::SatAdd => a.saturating_add(b),
        BinaryOp::SatSub => a.saturating_sub(b),
        BinaryOp::Eq => return Some((a == b).into()),
        BinaryOp::Ne => return Some((a != b).into()),
        BinaryOp::Lt => return Some((a < b).into()),
        BinaryOp::Le => return Some((a <= b).into()),
        BinaryOp::Gt => return Some((a > b).into()),
        BinaryOp::Ge => return Some((a >= b).into()),
        BinaryOp::Copysign | BinaryOp::Pow | BinaryOp::And | BinaryOp::Or => return None,
    };
    Some(result.to_bits())
}

/// The ops of both float types; `None` for `pow`.
#[inline]
fn binary_float<F: Float>(op: BinaryOp, mode: FloatMode, a: u64, b: u64) -> Option<u64> {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => float::rem(a, b),
        BinaryOp::Min => float::min(a, b),
        BinaryOp::Max => float::max(a, b),
        BinaryOp::Copysign => float::copysign(a, b),
        BinaryOp::Eq => return Some((a == b).into()),
        BinaryOp::Ne => return Some((a != b).into()),
        BinaryOp::Lt => return Some((a < b).into()),
        BinaryOp::Le => return Some((a <= b).into()),
        BinaryOp::Gt => return Some((a > b).into()),
        BinaryOp::Ge => return Some((a >= b).into()),
        BinaryOp::Mulhi
        | BinaryOp::AbsDiff
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Rotl
        | BinaryOp::Rotr
        | BinaryOp::SatAdd
        | BinaryOp::SatSub
        | BinaryOp::Pow
        | BinaryOp::And
        | BinaryOp::Or => return None,
    };
    Some(result.canonical(mode).to_bits())
}

#[inline]
fn binary_f32(op: BinaryOp, mode: FloatMode, a: u64, b: u64) -> Option<u64> {
    if op == BinaryOp::Pow {
        return Some(Float::to_bits(elementary::pow(Float::from_bits(a), Float::from_bits(b)).canonical(mode)));
    }
    binary_float::<f32>(op, mode, a, b)
}
