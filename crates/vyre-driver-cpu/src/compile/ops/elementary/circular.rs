//! Sine, cosine and tangent, and the arc tangent.
//!
//! **Reduction.** With k the integer next to x / π, r = x − k π and |r| ≤ π/2 but for what x / π was rounded by. π is the sum of two f64.
//! k times the first is a multiple of 2⁻⁵¹, as x is unless k = 0, and its difference from x is below 2, so that one fused step is exact.
//! The second step rounds once, and is off by |k| 2⁻¹⁰⁸ besides, because the two have not all bits of π. The f32 up to 2³¹ that is
//! closest to a multiple of π/2 is 2⁻²⁷·⁸ away from it, so this is below 2⁻⁵⁰ of r. The same holds for multiples of π/2, and for the halves
//! between multiples of π, which are those of 2⁻⁵².
//!
//! *Range.* Up to 2³¹. Larger arguments need more bits of π and are left to the scalar function.
//!
//! **sin x** = (−1)ᵏ sin r, with sin r = r (1 + r² q(r²)), which is r itself where that is subnormal. One polynomial over ±π/2 costs less than
//! two over ±π/4 and the choice between them. **cos x** with r = x − (k + ½) π is −(−1)ᵏ sin r.
//!
//! *Error*, relative. [`SINE`] is off by 2⁻⁴³·⁷³. The reduction adds at most 2⁻⁵⁰ and the evaluation, whose sum does not fall below
//! 2/π, five roundings: below 2⁻⁴³·⁶.
//!
//! **tan x** with r = x − k π/2 is sin r / cos r for even k and −cos r / sin r for odd k.
//!
//! *Error*, relative. [`SHORT_SINE`] is off by 2⁻⁴⁷·⁵, [`SHORT_COSINE`] by 2⁻⁵³·⁴; with the reduction and ten roundings below 2⁻⁴⁶·⁵.
//!
//! **atan x** is atan t for |x| = t ≤ 1 and π/2 − atan(1/t) above, and has the sign of x. One division makes the argument of either kind,
//! and a polynomial of degree 15 in t² takes all of [0, 1]: a table and a shorter one would not be faster.
//!
//! *Error*, relative. [`ARC_TANGENT`] is off by 2⁻⁴⁴·⁴⁸. The division and the evaluation, whose sum does not fall below π/4, are
//! below eight roundings: 2⁻⁴⁴·⁴ altogether.

use super::math::{Doubles, Math};
use super::{ROUND_TO_INTEGER, Value};
use crate::machine::reg::V;
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, FRAC_PI_2, PI};

/// What π as an f64 lacks of π.
const PI_REST: f64 = f64::from_bits(0x3CA1_A626_3314_5C07);

/// The largest argument whose reduction has enough bits.
const FAR: f32 = 2_147_483_648.0;

/// (sin r / r − 1) / r² in powers of r², for |r| ≤ π/2.
pub(super) const SINE: [f64; 6] = [
    f64::from_bits(0xBFC5_5555_5554_7141),
    f64::from_bits(0x3F81_1111_10A5_5983),
    f64::from_bits(0xBF2A_019F_D595_22F8),
    f64::from_bits(0x3EC7_1DCF_84C0_3935),
    f64::from_bits(0xBE5A_E03F_8458_3D83),
    f64::from_bits(0x3DE5_2DBE_C7C6_BBD2),
];

/// The same for |r| ≤ π/4.
pub(super) const SHORT_SINE: [f64; 5] = [
    f64::from_bits(0xBFC5_5555_5555_2239),
    f64::from_bits(0x3F81_1111_10C8_730C),
    f64::from_bits(0xBF2A_019F_9396_4DD1),
    f64::from_bits(0x3EC7_1D76_D143_6E2C),
    f64::from_bits(0xBE5A_961A_0A51_9C13),
];

/// (cos r − 1) / r² in powers of r², for |r| ≤ π/4.
pub(super) const SHORT_COSINE: [f64; 6] = [
    f64::from_bits(0xBFDF_FFFF_FFFF_FF96),
    f64::from_bits(0x3FA5_5555_5554_F0AB),
    f64::from_bits(0xBF56_C16C_1640_AAFE),
    f64::from_bits(0x3EFA_019F_81CB_81C9),
    f64::from_bits(0xBE92_7DF4_609F_7ECB),
    f64::from_bits(0x3E21_B8B9_93C7_C5A2),
];

/// (atan t / t − 1) / t² in powers of t², for |t| ≤ 1.
pub(super) const ARC_TANGENT: [f64; 15] = [
    f64::from_bits(0xBFD5_5555_5551_90CE),
    f64::from_bits(0x3FC9_9999_9673_FC2C),
    f64::from_bits(0xBFC2_4924_1BBA_84E2),
    f64::from_bits(0x3FBC_71B5_5291_C939),
    f64::from_bits(0xBFB7_4504_7C91_0F82),
    f64::from_bits(0x3FB3_AB29_A7E5_E044),
    f64::from_bits(0xBFB0_F0FF_86F5_33AC),
    f64::from_bits(0x3FAD_281D_F2DB_8438),
    f64::from_bits(0xBFA8_314F_C149_10B6),
    f64::from_bits(0x3FA2_55ED_7B40_888E),
    f64::from_bits(0xBF97_BBF2_876A_CE3E),
    f64::from_bits(0x3F88_54AE_C3A3_EB5F),
    f64::from_bits(0xBF72_0FC5_00D7_6F24),
    f64::from_bits(0x3F50_FDB2_A03D_5288),
    f64::from_bits(0xBF1E_1DF1_CDE0_A9B5),
];

/// x − k × (`pi` + `rest`).
fn reduced(m: &mut Math<'_, '_>, x: Doubles, k: Doubles, pi: f64, rest: f64) -> Doubles {
    let r = m.fma(k, -pi, x);
    m.fma(k, -rest, r)
}

/// r (1 + r² q(r²)).
fn odd_function(m: &mut Math<'_, '_>, q: &[f64], r: Doubles) -> Doubles {
    let square = m.mul(r, r);
    let q = m.polynomial(q, square);
    let factor = m.fma(q, square, 1.0);
    m.mul(factor, r)
}

pub(super) fn sin(m: &mut Math<'_, '_>, x: V) -> Value {
    let wide = m.widen(x);
    let shifted = m.fma(wide, FRAC_1_PI, ROUND_TO_INTEGER);
    let k = m.sub(shifted, ROUND_TO_INTEGER);
    let r = reduced(m, wide, k, PI, PI_REST);
    circular(m, x, shifted, r)
}

pub(super) fn cos(m: &mut Math<'_, '_>, x: V) -> Value {
    // An odd integer more, so that the lowest bit is the sign's.
    const INTEGERS: f64 = ROUND_TO_INTEGER + 1.0;
    let wide = m.widen(x);
    let quotient = m.fma(wide, FRAC_1_PI, -0.5);
    let shifted = m.add(quotient, INTEGERS);
    let k = m.sub(shifted, INTEGERS);
    let half = m.add(k, 0.5);
    let r = reduced(m, wide, half, PI, PI_REST);
    circular(m, x, shifted, r)
}

/// sin r, with the other sign if `k` is odd.
fn circular(m: &mut Math<'_, '_>, x: V, k: Doubles, r: Doubles) -> Value {
    let sine = odd_function(m, &SINE, r);
    let sign = m.shift_left(k, 63);
    let result = m.xor(sine, sign);
    let outside = is_far(m, x);
    Value::rounded(m, result, 43).except(outside)
}

fn is_far(m: &mut Math<'_, '_>, x: V) -> V {
    let magnitude = m.magnitude(x);
    m.is_above(magnitude, FAR)
}

pub(super) fn tan(m: &mut Math<'_, '_>, x: V) -> Value {
    let wide = m.widen(x);
    let shifted = m.fma(wide, FRAC_2_PI, ROUND_TO_INTEGER);
    let k = m.sub(shifted, ROUND_TO_INTEGER);
    let r = reduced(m, wide, k, FRAC_PI_2, PI_REST / 2.0);
    let sine = odd_function(m, &SHORT_SINE, r);
    let square = m.mul(r, r);
    let q = m.polynomial(&SHORT_COSINE, square);
    let cosine = m.fma(q, square, 1.0);
    // Exchanged where k is odd.
    let odd = m.is_odd(shifted);
    let both = m.xor(sine, cosine);
    let exchange = m.and(both, odd);
    let above = m.xor(sine, exchange);
    let below = m.xor(cosine, exchange);
    let quotient = m.div(above, below);
    let sign = m.shift_left(shifted, 63);
    let result = m.xor(quotient, sign);
    let outside = is_far(m, x);
    Value::rounded(m, result, 46).except(outside)
}

pub(super) fn atan(m: &mut Math<'_, '_>, x: V) -> Value {
    let magnitude = m.magnitude(x);
    let (above, below) = (m.at_most(magnitude, 1.0), m.at_least(magnitude, 1.0));
    let (above, below) = (m.widen(above), m.widen(below));
    let large = m.is_greater(below, 1.0);
    let t = m.div(above, below);
    let angle = odd_function(m, &ARC_TANGENT, t);
    let base = m.and(large, FRAC_PI_2);
    let sign = m.and(large, -0.0);
    let angle = m.xor(angle, sign);
    let result = m.add(angle, base);
    let value = Value::rounded(m, result, 44);
    Value { result: m.with_sign_of(value.result, x), ..value }
}
