//! Pure ops by op and type on the bits of scalars.
//!
//! Each family is matched once per kind of type (integer, float, bool), in full. An op the table does not define on that kind
//! gives `None` there, which the one `unreachable!` of the family turns into our bug: the validator let a program through.

use crate::elementary;
use crate::float::{self, Float};
use crate::int::{self, Int};
use vyre_spec::{BinaryOp, FloatMode, Scalar, TernaryOp, UnaryOp};

/// What happens to every float value (literal, load, result): one NaN, and in canonical mode the flush to +0. Other types are
/// left as they are.
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
        | UnaryOp::SwapBytes
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
        UnaryOp::SwapBytes => a.swap_bytes(),
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
        | UnaryOp::SwapBytes
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
        | UnaryOp::SwapBytes
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::values;

    fn check_result(what: &str, result: Option<Scalar>, mode: FloatMode, bits: u64) {
        let result = result.expect("pure ops give values");
        let mask = if result == Scalar::Bool { 1 } else { u64::MAX >> (64 - result.bits()) };
        assert_eq!(bits & !mask, 0, "{what} gives {bits:#x}, which is wider than {result}");
        assert_eq!(bits, canonicalize(result, mode, bits), "{what} gives {bits:#x}, which is not canonical");
    }

    #[test]
    fn every_op_on_every_type_of_its_row_gives_a_canonical_value_of_the_result_type() {
        for mode in FloatMode::ALL {
            for op in UnaryOp::ALL {
                for ty in op.info().over.iter() {
                    for a in values(ty, mode) {
                        let result = unary(*op, ty, mode, a);
                        check_result(&format!("{op}({a:#x}) on {ty}"), op.info().result_type(ty), mode, result);
                    }
                }
            }
            for op in BinaryOp::ALL {
                for ty in op.info().over.iter() {
                    for a in values(ty, mode) {
                        for b in values(ty, mode).into_iter().step_by(3) {
                            // Amounts of shifts are u32, which the low half of any value is.
                            let b = if op.info().operands[1] == vyre_spec::Operand::T { b } else { b & 0xFFFF_FFFF };
                            let result = binary(*op, ty, mode, a, b);
                            check_result(&format!("{op}({a:#x}, {b:#x}) on {ty}"), op.info().result_type(ty), mode, result);
                        }
                    }
                }
            }
            for op in TernaryOp::ALL {
                for ty in op.info().over.iter() {
                    for b in values(ty, mode).into_iter().step_by(3) {
                        for c in values(ty, mode).into_iter().step_by(3) {
                            let a = if op.info().operands[0] == vyre_spec::Operand::T { c } else { b & 1 };
                            let result = ternary(*op, ty, mode, a, b, c);
                            check_result(&format!("{op}({a:#x}, {b:#x}, {c:#x})"), op.info().result_type(ty), mode, result);
                        }
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "exp is not defined on f64")]
    fn an_op_outside_its_row_is_our_bug() {
        let _ = unary(UnaryOp::Exp, Scalar::F64, FloatMode::Ieee, 0);
    }

    #[test]
    fn ops_on_bool_follow_their_truth_tables() {
        let table = |op| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| binary(op, Scalar::Bool, FloatMode::Ieee, a, b));
        assert_eq!(table(BinaryOp::And), [0, 0, 0, 1]);
        assert_eq!(table(BinaryOp::Or), [0, 1, 1, 1]);
        assert_eq!(table(BinaryOp::BitXor), [0, 1, 1, 0]);
        assert_eq!(table(BinaryOp::Eq), [1, 0, 0, 1]);
        assert_eq!(table(BinaryOp::Ne), [0, 1, 1, 0]);
        assert_eq!([0, 1].map(|a| unary(UnaryOp::Not, Scalar::Bool, FloatMode::Ieee, a)), [1, 0]);
    }

    #[test]
    fn comparisons_with_nan_are_false_except_not_equal_and_zeros_are_equal() {
        const OPS: [BinaryOp; 6] = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
        let compare = |a: f32, b: f32| {
            OPS.map(|op| {
                let narrow = binary(op, Scalar::F32, FloatMode::Ieee, a.to_bits().into(), b.to_bits().into());
                let wide = binary(op, Scalar::F64, FloatMode::Ieee, f64::from(a).to_bits(), f64::from(b).to_bits());
                assert_eq!(narrow, wide);
                narrow
            })
        };
        let unordered = [0, 1, 0, 0, 0, 0];
        let less = [0, 1, 1, 1, 0, 0];
        let equal = [1, 0, 0, 1, 0, 1];
        let greater = [0, 1, 0, 0, 1, 1];
        for (a, b, expected) in [
            (f32::NAN, 1.0, unordered),
            (1.0, f32::NAN, unordered),
            (f32::NAN, f32::NAN, unordered),
            (1.0, 2.0, less),
            (-2.0, -1.0, less),
            (f32::NEG_INFINITY, f32::MIN, less),
            (-0.0, 0.0, equal),
            (1.5, 1.5, equal),
            (f32::INFINITY, f32::INFINITY, equal),
            (f32::from_bits(1), 0.0, greater),
        ] {
            assert_eq!(compare(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn float_ops_give_one_nan_whatever_made_it() {
        let nan = 0x7FC0_0000;
        let [inf, zero, one] = [f32::INFINITY, 0.0, 1.0].map(|value| u64::from(value.to_bits()));
        let minus_inf = u64::from(f32::NEG_INFINITY.to_bits());
        for (op, a, b) in [
            (BinaryOp::Add, inf, minus_inf),
            (BinaryOp::Sub, inf, inf),
            (BinaryOp::Mul, zero, minus_inf),
            (BinaryOp::Div, zero, zero),
            (BinaryOp::Rem, one, zero),
            (BinaryOp::Add, nan, one),
            (BinaryOp::Min, nan, nan),
            (BinaryOp::Copysign, nan, minus_inf),
            (BinaryOp::Pow, minus_inf, nan),
        ] {
            assert_eq!(binary(op, Scalar::F32, FloatMode::Ieee, a, b), nan, "{op}");
        }
        for op in [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign, UnaryOp::Round, UnaryOp::Exp, UnaryOp::Sqrt] {
            assert_eq!(unary(op, Scalar::F32, FloatMode::Ieee, nan), nan, "{op}");
        }
        assert_eq!(unary(UnaryOp::Sqrt, Scalar::F32, FloatMode::Ieee, minus_inf), nan);
        assert_eq!(unary(UnaryOp::Neg, Scalar::F64, FloatMode::Ieee, 0x7FF8_0000_0000_0000), 0x7FF8_0000_0000_0000);
        assert_eq!(unary(UnaryOp::IsNan, Scalar::F32, FloatMode::Ieee, nan), 1);
        assert_eq!(unary(UnaryOp::IsInf, Scalar::F32, FloatMode::Ieee, nan), 0);
        assert_eq!(unary(UnaryOp::IsInf, Scalar::F32, FloatMode::Ieee, minus_inf), 1);
    }

    #[test]
    fn each_float_op_is_the_one_its_name_says() {
        let f = |value: f32| u64::from(value.to_bits());
        for (op, a, expected) in [
            (UnaryOp::Neg, 2.5, -2.5),
            (UnaryOp::Abs, -2.5, 2.5),
            (UnaryOp::Sign, -2.5, -1.0),
            (UnaryOp::Sqrt, 6.25, 2.5),
            (UnaryOp::Floor, -2.5, -3.0),
            (UnaryOp::Ceil, 2.5, 3.0),
            (UnaryOp::Trunc, -3.5, -3.0),
            (UnaryOp::Round, 3.5, 4.0),
            (UnaryOp::Round, 2.5, 2.0),
            (UnaryOp::Fract, -2.25, 0.75),
        ] {
            assert_eq!(unary(op, Scalar::F32, FloatMode::Ieee, f(a)), f(expected), "{op}({a})");
            let wide = unary(op, Scalar::F64, FloatMode::Ieee, f64::from(a).to_bits());
            assert_eq!(wide, f64::from(expected).to_bits(), "{op}({a})");
        }
        // At 3/4, from 200-bit arithmetic.
        for (op, expected) in [
            (UnaryOp::Exp, 0x4007_7CEE),
            (UnaryOp::Exp2, 0x3FD7_44FD),
            (UnaryOp::Log, 0xBE93_4B11),
            (UnaryOp::Log2, 0xBED4_7FCC),
            (UnaryOp::Sin, 0x3F2E_7FE1),
            (UnaryOp::Cos, 0x3F3B_4FF6),
            (UnaryOp::Tan, 0x3F6E_7D1B),
            (UnaryOp::Tanh, 0x3F22_991F),
            (UnaryOp::Atan, 0x3F24_BC7D),
            (UnaryOp::Rsqrt, 0x3F93_CD3A),
        ] {
            assert_eq!(unary(op, Scalar::F32, FloatMode::Ieee, f(0.75)), expected, "{op}");
        }
        for (op, a, b, expected) in [
            (BinaryOp::Add, 2.5, 0.75, 3.25),
            (BinaryOp::Sub, 2.5, 0.75, 1.75),
            (BinaryOp::Mul, 2.5, 0.75, 1.875),
            (BinaryOp::Div, 2.5, -0.5, -5.0),
            (BinaryOp::Rem, -2.5, 0.75, -0.25),
            (BinaryOp::Min, 2.5, 0.75, 0.75),
            (BinaryOp::Max, 2.5, 0.75, 2.5),
            (BinaryOp::Copysign, 2.5, -0.75, -2.5),
        ] {
            assert_eq!(binary(op, Scalar::F32, FloatMode::Ieee, f(a), f(b)), f(expected), "{op}({a}, {b})");
            let wide = binary(op, Scalar::F64, FloatMode::Ieee, f64::from(a).to_bits(), f64::from(b).to_bits());
            assert_eq!(wide, f64::from(expected).to_bits(), "{op}({a}, {b})");
        }
        assert_eq!(binary(BinaryOp::Pow, Scalar::F32, FloatMode::Ieee, f(4.0), f(-1.5)), f(0.125));
        assert_eq!(ternary(TernaryOp::Fma, Scalar::F32, FloatMode::Ieee, f(2.0), f(3.0), f(0.5)), f(6.5));
        let [two, three, half] = [2.0f64, 3.0, 0.5].map(f64::to_bits);
        assert_eq!(ternary(TernaryOp::Fma, Scalar::F64, FloatMode::Ieee, two, three, half), 6.5f64.to_bits());
    }

    #[test]
    fn canonical_mode_flushes_results_up_to_the_smallest_normal_to_plus_zero() {
        let f = |value: f32| u64::from(value.to_bits());
        let least = f32::MIN_POSITIVE;
        let above = least.next_up();
        // op, a, b, the IEEE result, the canonical result
        for (op, a, b, ieee, canonical) in [
            (BinaryOp::Sub, above * 2.0, above, above, above),
            (BinaryOp::Sub, above, -above, above * 2.0, above * 2.0),
            (BinaryOp::Sub, least * 3.0, least * 2.5, least * 0.5, 0.0),
            (BinaryOp::Mul, above, 0.5, above * 0.5, 0.0),
            (BinaryOp::Mul, -least * 2.0, 0.5, -least, 0.0),
            (BinaryOp::Div, above, 1.000_000_1, least, 0.0),
            (BinaryOp::Mul, -1.0, 0.0, -0.0, 0.0),
            (BinaryOp::Copysign, 0.0, -1.0, -0.0, 0.0),
            (BinaryOp::Rem, -4.0, 2.0, -0.0, 0.0),
            (BinaryOp::Pow, 2.0, -126.0, least, 0.0),
            (BinaryOp::Pow, 2.0, -125.0, least * 2.0, least * 2.0),
        ] {
            assert_eq!(binary(op, Scalar::F32, FloatMode::Ieee, f(a), f(b)), f(ieee), "{op} {a:e} {b:e}");
            assert_eq!(binary(op, Scalar::F32, FloatMode::Canonical, f(a), f(b)), f(canonical), "{op} {a:e} {b:e}");
        }
        for (op, a, ieee) in [(UnaryOp::Neg, 0.0, -0.0), (UnaryOp::Ceil, -0.5, -0.0), (UnaryOp::Exp2, -126.0, least)] {
            assert_eq!(unary(op, Scalar::F32, FloatMode::Ieee, f(a)), f(ieee), "{op} {a:e}");
            assert_eq!(unary(op, Scalar::F32, FloatMode::Canonical, f(a)), 0, "{op} {a:e}");
        }
        let fma = |mode| ternary(TernaryOp::Fma, Scalar::F32, mode, f(above), f(0.5), f(-0.0));
        assert_eq!((fma(FloatMode::Ieee), fma(FloatMode::Canonical)), (f(above * 0.5), 0));
    }

    #[test]
    fn select_takes_the_second_operand_when_true() {
        for ty in Scalar::ALL {
            assert_eq!(ternary(TernaryOp::Select, ty, FloatMode::Ieee, 1, 1, 0), 1);
            assert_eq!(ternary(TernaryOp::Select, ty, FloatMode::Ieee, 0, 1, 0), 0);
        }
    }
}
