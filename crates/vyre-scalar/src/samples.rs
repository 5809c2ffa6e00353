//! Inputs for the tests of this crate, and an exact arithmetic to check float results with.

use crate::canonicalize;
use std::cmp::Ordering;
use vyre_spec::{FloatMode, Scalar};

/// The bits of a boundary list and some others for each type, canonical for the mode.
pub fn values(ty: Scalar, mode: FloatMode) -> Vec<u64> {
    let mut values: Vec<u64> = match ty {
        Scalar::Bool => vec![0, 1],
        Scalar::U32 | Scalar::I32 => integers(32),
        Scalar::U64 | Scalar::I64 => integers(64),
        Scalar::F32 => floats(32, 23),
        Scalar::F64 => floats(64, 52),
    };
    for value in &mut values {
        *value = canonicalize(ty, mode, *value);
    }
    values.sort_unstable();
    values.dedup();
    values
}

pub fn f32s() -> impl Iterator<Item = f32> + Clone {
    floats(32, 23).into_iter().map(|bits| f32::from_bits(bits as u32))
}

pub fn f64s() -> impl Iterator<Item = f64> + Clone {
    floats(64, 52).into_iter().map(f64::from_bits)
}

fn integers(width: u32) -> Vec<u64> {
    let mask = u64::MAX >> (64 - width);
    let mut values = vec![];
    for shift in [0, 1, 2, 5, 15, 16, 30, 31, 32, 33, 62, 63] {
        for near in [0u64, 1, 2, u64::MAX, u64::MAX - 1] {
            let power = 1u64.wrapping_shl(shift.min(width - 1));
            values.push(power.wrapping_add(near) & mask);
            values.push(power.wrapping_neg().wrapping_add(near) & mask);
        }
    }
    values.extend([7, 10, 100, 12345, 0x5555_5555_5555_5555 & mask, 0xDEAD_BEEF_1234_5678 & mask]);
    values
}

/// Around zero, the subnormals' ends, one, halves, the last fractions, powers of two and the largest finite value; infinities and
/// the one NaN; both signs.
fn floats(width: u32, fraction: u32) -> Vec<u64> {
    let infinity = ((1u64 << (width - 1 - fraction)) - 1) << fraction;
    let one = (infinity / 2) & infinity;
    let unit = 1u64 << fraction;
    let half_ulp_integers = one + u64::from(fraction - 1) * unit;
    let mut values = vec![infinity, infinity | unit >> 1];
    for base in [
        0,
        unit,
        one - unit,
        one,
        one + unit,
        one + unit + unit / 2,
        half_ulp_integers,
        half_ulp_integers + unit,
        one + 31 * unit,
        one + 63 * unit,
        one + 2 * u64::from(fraction) * unit,
        one - u64::from(fraction) * unit,
        one - 2 * u64::from(fraction) * unit,
        infinity - unit,
    ] {
        for near in [0u64, 1, 2, unit / 2, u64::MAX, u64::MAX - 1] {
            let value = base.wrapping_add(near);
            if value < infinity {
                values.push(value);
            }
        }
    }
    values.extend([infinity - 1, infinity - unit / 2, one + 0x2AAAA, one + unit / 3, unit / 3, 3 * unit + unit / 7]);
    let negative: Vec<u64> = values.iter().filter(|value| **value <= infinity).map(|value| value | 1 << (width - 1)).collect();
    values.extend(negative);
    values.sort_unstable();
    values.dedup();
    values
}

/// A binary fraction in units of 2⁻²¹⁴⁸, wide enough for every `a * b + c` of finite f64.
#[derive(Clone, PartialEq, Eq)]
pub struct Exact {
    negative: bool,
    limbs: [u64; 68],
}

impl Exact {
    const UNIT: i32 = -2148;

    pub fn product(a: f64, b: f64) -> Exact {
        let split = |x: f64| {
            let field = (x.to_bits() >> 52 & 0x7FF) as i32;
            let fraction = x.to_bits() & ((1 << 52) - 1);
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) }
        };
        let ((ma, ea), (mb, eb)) = (split(a), split(b));
        let mut exact = Exact { negative: a.is_sign_negative() != b.is_sign_negative(), limbs: [0; 68] };
        let product = u128::from(ma) * u128::from(mb);
        let shift = (ea + eb - Exact::UNIT) as usize;
        for bit in 0..106 {
            if product >> bit & 1 == 1 {
                exact.limbs[(shift + bit) / 64] |= 1 << ((shift + bit) % 64);
            }
        }
        exact
    }

    pub fn from(a: f64) -> Exact {
        Exact::product(a, 1.0)
    }

    pub fn plus(&self, other: &Exact) -> Exact {
        let (large, small) = if self.compare_magnitudes(other).is_lt() { (other, self) } else { (self, other) };
        let mut result = large.clone();
        let mut carry = 0;
        for (limb, other) in result.limbs.iter_mut().zip(small.limbs) {
            let wide = if large.negative == small.negative {
                i128::from(*limb) + i128::from(other) + carry
            } else {
                i128::from(*limb) - i128::from(other) + carry
            };
            *limb = wide as u64;
            carry = wide >> 64;
        }
        result
    }

    pub fn compare_magnitudes(&self, other: &Exact) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }

    pub fn distance(&self, other: f64) -> Exact {
        self.plus(&Exact::from(-other))
    }

    fn bit(&self, index: i32) -> bool {
        self.limbs[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// The nearest number of at most `precision` bits that is a multiple of `2^lowest`, ties to even; +0 for an exact zero.
    fn round(&self, precision: i32, lowest: i32) -> f64 {
        let Some(top) = (0..68 * 64).rev().find(|bit| self.bit(*bit)) else { return 0.0 };
        let last = (top - precision + 1).max(lowest - Exact::UNIT);
        let mut integer = (last..=top).rev().fold(0u64, |integer, bit| integer << 1 | u64::from(self.bit(bit)));
        let below = (0..last - 1).any(|bit| self.bit(bit));
        if self.bit(last - 1) && (below || integer & 1 == 1) {
            integer += 1;
        }
        let exponent = last + Exact::UNIT;
        let power = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
        let magnitude = integer as f64 * power(exponent / 2) * power(exponent - exponent / 2);
        if self.negative { -magnitude } else { magnitude }
    }

    pub fn to_f64(&self) -> f64 {
        self.round(53, -1074)
    }

    pub fn to_f32(&self) -> f32 {
        self.round(24, -149) as f32
    }
}
