//! The logarithms.
//!
//! x = 2ᵉ m with m from 31/32 to 2 − 1/16. One of eight numbers c = [`RECIPROCAL`]`[i]`, i the eighth that is next to m − 1, makes
//! r = m c − 1 small: from −0.054 to 1/16. c has at most 9 bits, so that r is exact. Then log x = e log 2 − log c + log(1 + r), and
//! log(1 + r) = r q(r) is a polynomial. Arguments next to 1, on either side, have e = 0 and c = 1, so that their result, however
//! small, is r q(r) alone.
//!
//! *Range.* Positive normal numbers; the rest is left to the scalar function.
//!
//! *Error*, relative. [`LOG`] and [`LOG_2`] are off by 2⁻⁴⁷·⁶⁸. Where e and log c are not both 0, |log x| ≥ 0.0317 (just below 31/32), and
//! |r q(r)| is at most 1.15 times the result. There, −log c is off by 2⁻⁵⁴, its sum with r q(r), which is below 1, rounds by at most
//! 2⁻⁵⁴, and e ln 2 is off by |e| 2⁻⁵⁵·³, which is 2⁻⁵⁰·³ of the result for e = −1 and less for others: together 2⁻⁴⁷·⁷ of the result. All
//! of it is below 2⁻⁴⁶·⁵. For log₂, e is exact, log₂ c is up to 0.91 and |log₂ x| ≥ 0.0457: less.

use super::Value;
use super::math::{Doubles, Index, Math};
use crate::machine::lir::{Shift, V3};
use crate::machine::reg::V;
use std::f64::consts::LN_2;

/// About 1 / (1 + i/8), in multiples of 1/256.
const RECIPROCAL: [f64; 8] =
    [1.0, 228.0 / 256.0, 205.0 / 256.0, 186.0 / 256.0, 171.0 / 256.0, 158.0 / 256.0, 146.0 / 256.0, 137.0 / 256.0];

/// −ln of [`RECIPROCAL`].
const MINUS_LOG: [f64; 8] = [
    0.0,
    f64::from_bits(0x3FBD_A727_6384_46A2),
    f64::from_bits(0x3FCC_6FFB_C6F0_0F71),
    f64::from_bits(0x3FD4_718D_C271_C41B),
    f64::from_bits(0x3FD9_D32B_EA15_ED3B),
    f64::from_bits(0x3FDE_E2A1_56B4_13E5),
    f64::from_bits(0x3FE1_F863_5FC6_1659),
    f64::from_bits(0x3FE4_019C_2125_CA93),
];

/// −log₂ of [`RECIPROCAL`].
const MINUS_LOG_2: [f64; 8] = [
    0.0,
    f64::from_bits(0x3FC5_63DC_29FF_ACB2),
    f64::from_bits(0x3FD4_8365_E695_D797),
    f64::from_bits(0x3FDD_7E6C_0ABC_3579),
    f64::from_bits(0x3FE2_A0F3_C340_705C),
    f64::from_bits(0x3FE6_476D_98AD_990A),
    f64::from_bits(0x3FE9_ECF5_0BF4_3F13),
    f64::from_bits(0x3FEC_DCEB_D237_3995),
];

/// ln(1 + r) / r.
pub(super) const LOG: [f64; 9] = [
    f64::from_bits(0x3FEF_FFFF_FFFF_FFF7),
    f64::from_bits(0xBFDF_FFFF_FFFF_D39E),
    f64::from_bits(0x3FD5_5555_5558_448F),
    f64::from_bits(0xBFD0_0000_0275_5F08),
    f64::from_bits(0x3FC9_9999_762F_098C),
    f64::from_bits(0xBFC5_5542_7357_FA1A),
    f64::from_bits(0x3FC2_4963_34FE_315A),
    f64::from_bits(0xBFC0_1AED_00A5_F8BA),
    f64::from_bits(0x3FBC_411D_B299_4685),
];

/// log₂(1 + r) / r.
pub(super) const LOG_2: [f64; 9] = [
    f64::from_bits(0x3FF7_1547_652B_82F7),
    f64::from_bits(0xBFE7_1547_652B_62FA),
    f64::from_bits(0x3FDE_C709_DC3E_3FC8),
    f64::from_bits(0xBFD7_1547_68B7_809E),
    f64::from_bits(0x3FD2_776C_3763_7782),
    f64::from_bits(0xBFCE_C6EE_9E40_F216),
    f64::from_bits(0x3FCA_61D0_87AC_2CE9),
    f64::from_bits(0xBFC7_3C1F_E550_E68E),
    f64::from_bits(0x3FC4_6197_1DA9_346E),
];

pub(super) fn log(m: &mut Math<'_, '_>, x: V) -> Value {
    logarithm(m, x, &LOG, &MINUS_LOG, LN_2)
}

pub(super) fn log2(m: &mut Math<'_, '_>, x: V) -> Value {
    logarithm(m, x, &LOG_2, &MINUS_LOG_2, 1.0)
}

/// A positive normal number taken apart.
pub(super) struct Split {
    /// Its exponent.
    pub e: Doubles,
    /// Which of eight reciprocals it was multiplied by.
    pub index: Index,
    /// What it is more than the reciprocal's, from −0.054 to 1/16.
    pub r: Doubles,
    /// Lanes that are not positive and normal.
    pub outside: V,
}

pub(super) fn split(m: &mut Math<'_, '_>, x: V) -> Split {
    let outside = m.is_outside(x, f32::MIN_POSITIVE.to_bits(), f32::MAX.to_bits());
    // The exponent, the eighth, and bits below it; from 31/16 up it is the next exponent and eighth 0.
    let above_one = m.with_bits(V3::vpsubd, x, 1f32.to_bits() - (1 << 19));
    let exponent_bits = m.with_bits(V3::vpand, above_one, 0xFF80_0000);
    let mantissa = m.0.v3(V3::vpsubd, x, exponent_bits);
    let exponent = m.shift_words(Shift::vpsrad, above_one, 23);
    let eighth = m.shift_words(Shift::vpsrld, above_one, 20);
    let index = m.index(eighth);
    let mantissa = m.widen(mantissa);
    let c = m.table(index, &RECIPROCAL);
    let r = m.fma(mantissa, c, -1.0);
    Split { e: m.integers(exponent), index, r, outside }
}

/// The logarithm of which `of_two` is that of 2.
fn logarithm(m: &mut Math<'_, '_>, x: V, polynomial: &[f64; 9], minus_log: &[f64; 8], of_two: f64) -> Value {
    let Split { e, index, r, outside } = split(m, x);
    let q = m.polynomial(polynomial, r);
    let minus_log_c = m.table(index, minus_log);
    let fraction = m.fma(r, q, minus_log_c);
    let result = m.fma(e, of_two, fraction);
    Value::rounded(m, result, 46).except(outside)
}
