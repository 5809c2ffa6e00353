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

/// The bits of `a` taken as a value of the type `to`, which is as wide as `from`. A float result is canonicalised; a float
/// operand already is.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Exact, values};

    const IEEE: FloatMode = FloatMode::Ieee;

    fn integer(ty: Scalar, bits: u64) -> i128 {
        match ty {
            Scalar::Bool | Scalar::U32 | Scalar::U64 => i128::from(bits),
            Scalar::I32 => i128::from(bits as u32 as i32),
            Scalar::I64 => i128::from(bits as i64),
            Scalar::F32 | Scalar::F64 => unreachable!("only integers are asked for"),
        }
    }

    fn range(ty: Scalar) -> (i128, i128) {
        if ty.is_signed_int() { (-(1 << (ty.bits() - 1)), (1 << (ty.bits() - 1)) - 1) } else { (0, (1 << ty.bits()) - 1) }
    }

    fn float(ty: Scalar, bits: u64) -> f64 {
        if ty == Scalar::F32 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
    }

    const INTS: [Scalar; 4] = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];
    const FLOATS: [Scalar; 2] = [Scalar::F32, Scalar::F64];

    #[test]
    fn integers_wrap_extend_by_the_sign_of_the_source_and_test_for_zero() {
        for from in [Scalar::Bool, Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64] {
            for a in values(from, IEEE) {
                let value = integer(from, a);
                assert_eq!(cast(from, Scalar::Bool, IEEE, a), u64::from(value != 0), "{from} {a:#x} to bool");
                for to in INTS {
                    let mask = u64::MAX >> (64 - to.bits());
                    assert_eq!(cast(from, to, IEEE, a), value as u64 & mask, "{from} {a:#x} to {to}");
                }
            }
        }
    }

    #[test]
    fn floats_truncate_and_saturate_to_integers_and_nan_is_zero() {
        for from in FLOATS {
            for a in values(from, IEEE) {
                let value = float(from, a);
                for to in INTS {
                    let (low, high) = range(to);
                    // Truncation by cutting the fraction's bits, which i128 has room for when it matters.
                    let whole = if value.is_nan() {
                        0
                    } else if value >= 1e30 {
                        high
                    } else if value <= -1e30 {
                        low
                    } else {
                        (value - value % 1.0) as i128
                    };
                    let mask = u64::MAX >> (64 - to.bits());
                    assert_eq!(cast(from, to, IEEE, a), whole.clamp(low, high) as u64 & mask, "{value:e} to {to}");
                }
            }
        }
        let to_i32 = |value: f32| cast(Scalar::F32, Scalar::I32, IEEE, value.to_bits().into()) as u32 as i32;
        assert_eq!(to_i32(2_147_483_648.0), i32::MAX);
        assert_eq!(to_i32(-2_147_483_648.0), i32::MIN);
        assert_eq!(to_i32(2_147_483_520.0), 2_147_483_520);
        assert_eq!(to_i32(-1.99), -1);
        assert_eq!(cast(Scalar::F32, Scalar::U32, IEEE, (-1.0f32).to_bits().into()), 0);
    }

    #[test]
    fn integers_round_once_to_the_nearest_float() {
        for from in [Scalar::Bool, Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64] {
            // Around ties: 25 or 54 bits ending in a half, with something far below it or nothing.
            let ties = (24..64).flat_map(|top| {
                let half = |fraction: u32| (1u64 << top | 1u64 << top >> fraction) >> (u32::from(top > 63));
                [half(24), half(24) + 1, half(53), half(53) + 1, half(24) | 1 << top >> 23, (half(24) | 1 << top >> 23) - 1]
            });
            let mask = if from == Scalar::Bool { 1 } else { u64::MAX >> (64 - from.bits()) };
            for a in values(from, IEEE).into_iter().chain(ties.map(|tie| tie & mask)) {
                let value = integer(from, a);
                // Two halves that f64 holds exactly.
                let (high, low) = ((value >> 32 << 32) as f64, (value & 0xFFFF_FFFF) as f64);
                let exact = Exact::from(high).plus(&Exact::from(low));
                assert_eq!(cast(from, Scalar::F32, IEEE, a), exact.to_f32().to_bits().into(), "{value} to f32");
                assert_eq!(cast(from, Scalar::F64, IEEE, a), exact.to_f64().to_bits(), "{value} to f64");
            }
        }
        // Above the tie by 1 in 2^63: by way of f64 this would round down.
        let above = (1u64 << 63) + (1 << 39) + 1;
        assert_eq!(cast(Scalar::U64, Scalar::F32, IEEE, above), 0x5F00_0001);
    }

    #[test]
    fn f64_rounds_to_f32_with_subnormals_and_overflow_to_infinity() {
        let inputs = values(Scalar::F64, IEEE).into_iter().chain(values(Scalar::F32, IEEE).into_iter().flat_map(|bits| {
            // Every f32 sample, the tie above it, and the f64 next to each.
            let value = f32::from_bits(bits as u32);
            let tie = f64::midpoint(f64::from(value), f64::from(value.next_up()));
            [f64::from(value), f64::from(value).next_up(), tie, tie.next_up(), tie.next_down()].map(f64::to_bits)
        }));
        for a in inputs {
            let value = f64::from_bits(a);
            if value.is_finite() && value != 0.0 {
                let expected = Exact::from(value).to_f32().to_bits();
                assert_eq!(cast(Scalar::F64, Scalar::F32, IEEE, a), expected.into(), "{value:e} to f32");
            }
        }
        let to_f32 = |value: f64| f32::from_bits(cast(Scalar::F64, Scalar::F32, IEEE, value.to_bits()) as u32);
        let tie = f64::from(f32::MAX) + 2f64.powi(103);
        assert_eq!((to_f32(tie), to_f32(tie.next_down())), (f32::INFINITY, f32::MAX));
        assert_eq!(to_f32(-0.0).to_bits(), 0x8000_0000);
        assert_eq!(cast(Scalar::F64, Scalar::F32, IEEE, 0x7FF8_0000_0000_0000), 0x7FC0_0000);
    }

    #[test]
    fn f32_widens_exactly_and_small_results_flush_in_canonical_mode() {
        for a in values(Scalar::F32, IEEE) {
            let value = f32::from_bits(a as u32);
            let wide = f64::from_bits(cast(Scalar::F32, Scalar::F64, IEEE, a));
            assert!(wide == f64::from(value) || value.is_nan(), "{value:e}");
            assert_eq!(cast(Scalar::F64, Scalar::F32, IEEE, wide.to_bits()), a);
        }
        let small = 2f64.powi(-126).to_bits();
        assert_eq!(cast(Scalar::F64, Scalar::F32, FloatMode::Canonical, small), 0);
        assert_eq!(cast(Scalar::F64, Scalar::F32, IEEE, small), 0x0080_0000);
        assert_eq!(cast(Scalar::F32, Scalar::F64, FloatMode::Canonical, 0x7FC0_0000), 0x7FF8_0000_0000_0000);
    }

    #[test]
    fn bitcast_keeps_integer_bits_and_canonicalises_floats() {
        assert_eq!(bitcast(Scalar::U32, Scalar::I32, IEEE, 0xFFC0_0001), 0xFFC0_0001);
        assert_eq!(bitcast(Scalar::F32, Scalar::U32, IEEE, 0x8000_0000), 0x8000_0000);
        assert_eq!(bitcast(Scalar::U32, Scalar::F32, IEEE, 0xFFC0_0001), 0x7FC0_0000);
        assert_eq!(bitcast(Scalar::I32, Scalar::F32, IEEE, 0x8000_0001), 0x8000_0001);
        assert_eq!(bitcast(Scalar::I32, Scalar::F32, FloatMode::Canonical, 0x8000_0001), 0);
        assert_eq!(bitcast(Scalar::I64, Scalar::F64, IEEE, u64::MAX), 0x7FF8_0000_0000_0000);
    }

    #[test]
    #[should_panic(expected = "bitcast from u32 to f64")]
    fn bitcast_between_widths_is_refused() {
        let _ = bitcast(Scalar::U32, Scalar::F64, IEEE, 0);
    }
}
