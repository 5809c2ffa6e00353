//! The power.
//!
//! xʸ = 2^(y log₂ x). With e, c and r as for logarithms, log₂ x = w + v: w = e − h and v = log₂(1 + r) − l, where h + l = log₂ c and h is
//! a multiple of 2⁻²⁰. So y w, 24 by 28 bits, is exact, and what is left of y log₂ x beside the integer k next to it can be computed as
//! (y w − k) + y v.
//!
//! *Range.* x positive and normal, |y log₂ x| < 126, so that the result is normal. All else is left to the scalar function: zeros,
//! infinities, NaNs, negative bases, what overflows or becomes subnormal. So are powers that lie exactly in the middle between two f32:
//! the rounding test is not sure of them.
//!
//! *Error*, with u = 2⁻⁵³ that of one rounding. r is exact. [`LONG_LOG_2`] is off by 0.2 u, its first coefficient's rounding included, and
//! evaluated with 1.2 u. v is rounded once, and once more times y: 3.4 u of y v. l is below 2⁻²⁰, so that its own
//! rounding does not count. |v| is at most 1.15 |log₂ x|, just below 31/32, so |y v| < 145, and this is below 2⁻⁴⁴. y w − k
//! is below 2⁸ and rounds by 2⁻⁴⁶, and the sum by 2⁻⁵⁴. Times ln 2 these are 2⁻⁴⁴·²⁵ of the power; the polynomial for 2ʳ is off by
//! 2⁻⁴⁶·⁰⁶ and a few roundings. All of it is below 2⁻⁴³·⁸.

use super::exponential::EXP_2;
use super::logarithm::split;
use super::math::Math;
use super::{ROUND_TO_INTEGER, Value};
use crate::machine::reg::V;

/// −log₂ of the reciprocals: multiples of 2⁻²⁰.
const MINUS_LOG_HIGH: [f64; 8] = [
    0.0,
    f64::from_bits(0x3FC5_63E0_0000_0000),
    f64::from_bits(0x3FD4_8364_0000_0000),
    f64::from_bits(0x3FDD_7E6C_0000_0000),
    f64::from_bits(0x3FE2_A0F4_0000_0000),
    f64::from_bits(0x3FE6_476E_0000_0000),
    f64::from_bits(0x3FE9_ECF6_0000_0000),
    f64::from_bits(0x3FEC_DCEC_0000_0000),
];

/// What these lack.
const MINUS_LOG_LOW: [f64; 8] = [
    0.0,
    f64::from_bits(0xBE9E_B002_9A6F_9BC7),
    f64::from_bits(0x3E9E_695D_796A_A298),
    f64::from_bits(0x3E45_786A_F187_A96B),
    f64::from_bits(0xBE7E_5FC7_D238_691D),
    f64::from_bits(0xBE89_D499_BD9B_3226),
    f64::from_bits(0xBE9E_8178_1D97_EE91),
    f64::from_bits(0xBE76_E463_35AA_E723),
];

/// log₂(1 + r) / r.
pub(super) const LONG_LOG_2: [f64; 11] = [
    f64::from_bits(0x3FF7_1547_652B_82FE),
    f64::from_bits(0xBFE7_1547_652B_8306),
    f64::from_bits(0x3FDE_C709_DC3A_026E),
    f64::from_bits(0xBFD7_1547_652A_40CA),
    f64::from_bits(0x3FD2_776C_50FE_97C7),
    f64::from_bits(0xBFCE_C709_EB44_A67D),
    f64::from_bits(0x3FCA_6175_C9D7_6FBA),
    f64::from_bits(0xBFC7_1522_99B9_2C8D),
    f64::from_bits(0x3FC4_8527_2C67_BFF8),
    f64::from_bits(0xBFC2_9EE4_BD97_4E32),
    f64::from_bits(0x3FC0_A5EF_45AC_5323),
];

pub(super) fn pow(m: &mut Math<'_, '_>, x: V, y: V) -> Value {
    let parts = split(m, x);
    let q = m.polynomial(&LONG_LOG_2, parts.r);
    let low = m.table(parts.index, &MINUS_LOG_LOW);
    let v = m.fma(parts.r, q, low);
    let high = m.table(parts.index, &MINUS_LOG_HIGH);
    let w = m.add(parts.e, high);

    let y = m.widen(y);
    let small = m.mul(v, y);
    let exponent = m.fma(w, y, small);
    let shifted = m.add(exponent, ROUND_TO_INTEGER);
    let minus_k = m.sub_from(ROUND_TO_INTEGER, shifted);
    let rest = m.fma(w, y, minus_k);
    let rest = m.add(rest, small);
    let p = m.polynomial(&EXP_2, rest);
    let k = m.shift_left(shifted, 52);
    let result = m.add_bits(p, k);

    let size = m.and(exponent, !(1 << 63));
    let far = m.is_not_below(size, 126.0);
    let far = m.low_words(far);
    let value = Value::rounded(m, result, 43).except(parts.outside);
    Value { unsure: value.unsure.map(|unsure| m.any(unsure, far)), ..value }
}
