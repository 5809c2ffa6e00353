//! eˣ, 2ˣ and the hyperbolic tangent.
//!
//! **eˣ and 2ˣ.** With k the integer next to x log₂ e, x = k ln 2 + r and |r| ≤ ln 2 / 2, so that eˣ = 2ᵏ eʳ, and eʳ is a polynomial of
//! degree 9. 2ˣ is the same with x = k + r. Multiplying by 2ᵏ is an addition to the exponent's bits.
//!
//! *Range.* Arguments whose result is zero or infinite in f32 for certain are moved to where f64 can still tell so. Results that are
//! subnormal in f32 have fewer bits than the rounding test believes and are left to the scalar function; under `floats canonical` they are
//! zero whatever their last bits are, so that nothing is left over. 2⁻¹²⁶ itself may have come from below, and counts as one of them.
//!
//! *Error*, relative. [`EXP`] and [`EXP_2`] are off by 2⁻⁴⁶·⁰⁶. ln 2 as one f64 is off by 2⁻⁵⁵·³, which |k| ≤ 152 makes 2⁻⁴⁸ in r, and
//! so in the result; for 2ˣ, r is exact. Roundings in Horner's scheme count for |r| ≤ 0.35 of those before them: less than two of 2⁻⁵³
//! altogether. The sum is below 2⁻⁴⁵·⁷.
//!
//! **tanh x**, for x ≥ 0, is m / (m + 2) with m = e²ˣ − 1. As above, 2x = k ln 2 + 2r and m = 2ᵏ p + (2ᵏ − 1), p = e²ʳ − 1 = r q(r); for
//! k = 0 this is p, which has a small *relative* error also near zero. From 12 up it is closer to 1 than to any other f32, and smaller
//! arguments need no care at all.
//!
//! *Error*, relative. [`EXP_MINUS_1`] makes p off by 2⁻⁴³·⁵⁵ of itself. For k = 0 the quotient takes over at most that. For k ≥ 1,
//! m ≥ √2 − 1 and 2ᵏ |p| ≤ 1.42 m; the quotient takes over 2 / (m + 2) ≤ 0.83 of m's error: 1.18 × 2⁻⁴³·⁵⁵ = 2⁻⁴³·³¹. That and half a
//! dozen roundings are below 2⁻⁴³·²⁵.

use super::math::Math;
use super::{ROUND_TO_INTEGER, Value};
use crate::machine::reg::V;
use std::f64::consts::{LN_2, LOG2_E};
use vyre_spec::FloatMode;

/// eʳ for |r| ≤ ln 2 / 2.
pub(super) const EXP: [f64; 10] = [
    f64::from_bits(0x3FF0_0000_0000_0039),
    f64::from_bits(0x3FEF_FFFF_FFFF_FC3A),
    f64::from_bits(0x3FDF_FFFF_FFFE_8298),
    f64::from_bits(0x3FC5_5555_555B_B63C),
    f64::from_bits(0x3FA5_5555_5879_B934),
    f64::from_bits(0x3F81_1111_05B6_01D1),
    f64::from_bits(0x3F56_C162_D927_5A74),
    f64::from_bits(0x3F2A_01BC_269E_91BD),
    f64::from_bits(0x3EFA_17C0_27D2_63B4),
    f64::from_bits(0x3EC7_0DC1_96AF_2580),
];

/// 2ʳ for |r| ≤ 1/2.
pub(super) const EXP_2: [f64; 10] = [
    f64::from_bits(0x3FF0_0000_0000_0039),
    f64::from_bits(0x3FE6_2E42_FEFA_3752),
    f64::from_bits(0x3FCE_BFBD_FF81_5711),
    f64::from_bits(0x3FAC_6B08_D70D_1FEB),
    f64::from_bits(0x3F83_B2AB_72A1_0736),
    f64::from_bits(0x3F55_D87F_D901_534E),
    f64::from_bits(0x3F24_3088_FCAB_81E3),
    f64::from_bits(0x3EEF_FCE2_4583_8EEF),
    f64::from_bits(0x3EB6_3EDF_0FC9_C98C),
    f64::from_bits(0x3E7B_3F42_8A0E_642F),
];

/// (e²ʳ − 1) / r for |r| ≤ ln 2 / 4: what was found for (eʳ − 1) / r and twice the interval, times powers of two.
pub(super) const EXP_MINUS_1: [f64; 9] = {
    let mut coefficients = [
        f64::from_bits(0x3FEF_FFFF_FFFF_FF9D),
        f64::from_bits(0x3FDF_FFFF_FFFF_736A),
        f64::from_bits(0x3FC5_5555_5556_D73A),
        f64::from_bits(0x3FA5_5555_573F_359C),
        f64::from_bits(0x3F81_1111_0D93_18B2),
        f64::from_bits(0x3F56_C164_E63B_5A82),
        f64::from_bits(0x3F2A_01A8_D574_466C),
        f64::from_bits(0x3EFA_159C_AFCD_FC73),
        f64::from_bits(0x3EC7_1DE2_6406_E8AF),
    ];
    let mut n = 0;
    while n < 9 {
        coefficients[n] *= (2 << n) as f64;
        n += 1;
    }
    coefficients
};

pub(super) fn exp(m: &mut Math<'_, '_>, x: V) -> Value {
    let x = m.clamp(x, -105.0, 89.0);
    let x = m.widen(x);
    let shifted = m.fma(x, LOG2_E, ROUND_TO_INTEGER);
    let k = m.sub(shifted, ROUND_TO_INTEGER);
    let r = m.fma(k, -LN_2, x);
    let p = m.polynomial(&EXP, r);
    let k = m.shift_left(shifted, 52);
    let result = m.add_bits(p, k);
    positive(m, result)
}

pub(super) fn exp2(m: &mut Math<'_, '_>, x: V) -> Value {
    let x = m.clamp(x, -152.0, 129.0);
    let x = m.widen(x);
    let shifted = m.add(x, ROUND_TO_INTEGER);
    let k = m.sub(shifted, ROUND_TO_INTEGER);
    let r = m.sub(x, k);
    let p = m.polynomial(&EXP_2, r);
    let k = m.shift_left(shifted, 52);
    let result = m.add_bits(p, k);
    positive(m, result)
}

/// A result of any size.
fn positive(m: &mut Math<'_, '_>, result: super::math::Doubles) -> Value {
    let value = Value::rounded(m, result, 45);
    match m.0.mode {
        FloatMode::Canonical => value,
        FloatMode::Ieee => {
            let subnormal = m.is_inside(value.result, 1, f32::MIN_POSITIVE.to_bits());
            value.except(subnormal)
        }
    }
}

pub(super) fn tanh(m: &mut Math<'_, '_>, x: V) -> Value {
    let magnitude = m.magnitude(x);
    let y = m.at_most(magnitude, 12.0);
    let y = m.widen(y);
    let shifted = m.fma(y, 2.0 * LOG2_E, ROUND_TO_INTEGER);
    let k = m.sub(shifted, ROUND_TO_INTEGER);
    let r = m.fma(k, -LN_2 / 2.0, y);
    let q = m.polynomial(&EXP_MINUS_1, r);
    let p = m.mul(r, q);
    let k = m.shift_left(shifted, 52);
    let power = m.add_bits(k, 1f64.to_bits());
    let less = m.sub(power, 1.0);
    let m_1 = m.fma(p, power, less);
    let below = m.add(m_1, 2.0);
    let quotient = m.div(m_1, below);
    let value = Value::rounded(m, quotient, 43);
    Value { result: m.with_sign_of(value.result, x), ..value }
}
