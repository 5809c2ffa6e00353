//! The float formats of 16, 8 and 4 bits, which exist in memory only: exact widening to f32 and rounding back.
//!
//! One pair of routines serves every format with an exponent; a [`Format`] is its layout and what it does with values it cannot
//! hold. NaN is anonymous: it widens to the one f32 NaN and narrows to the format's one NaN, without a sign.

use crate::float::Float;
use vyre_spec::nibble;

/// A binary float of at most 16 bits: a sign, an exponent whose lowest field value means subnormal, a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of one value.
    pub bits: u32,
    /// Stored significand bits.
    pub fraction_bits: u32,
    /// The exponent field of 1.0.
    pub bias: u32,
    /// The pattern of the largest finite value.
    pub max: u16,
    /// Whether the pattern after `max` is an infinity; larger magnitudes are NaN.
    pub has_infinity: bool,
    /// What an infinity, and a value that rounds past `max`, is stored as: the infinity or `max`.
    pub overflow: u16,
    /// The pattern a NaN is stored as.
    pub nan: u16,
}

/// IEEE binary16.
pub const F16: Format =
    Format { bits: 16, fraction_bits: 10, bias: 15, max: 0x7BFF, has_infinity: true, overflow: 0x7C00, nan: 0x7E00 };

/// The upper half of a binary32.
pub const BF16: Format =
    Format { bits: 16, fraction_bits: 7, bias: 127, max: 0x7F7F, has_infinity: true, overflow: 0x7F80, nan: 0x7FC0 };

/// OCP E4M3: no infinities, one NaN per sign, largest value 448. Stores saturate.
pub const F8E4M3: Format =
    Format { bits: 8, fraction_bits: 3, bias: 7, max: 0x7E, has_infinity: false, overflow: 0x7E, nan: 0x7F };

/// OCP E5M2: infinities can be loaded, but stores saturate to 57344.
pub const F8E5M2: Format =
    Format { bits: 8, fraction_bits: 2, bias: 15, max: 0x7B, has_infinity: true, overflow: 0x7B, nan: 0x7E };

/// The value of a pattern; exact, because f32 has at least the format's exponents and significand bits.
#[inline]
#[must_use]
pub fn widen(format: &Format, pattern: u16) -> f32 {
    let sign = u32::from(pattern) >> (format.bits - 1);
    let magnitude = u32::from(pattern) & ((1 << (format.bits - 1)) - 1);
    let infinity = u32::from(format.max) + 1;
    let value = if magnitude <= u32::from(format.max) {
        // In the place of an f32's fields the value is too small by the difference of the biases, whether it is normal or not;
        // multiplying by that power of two is exact.
        f32::from_bits(magnitude << (23 - format.fraction_bits)) * f32::from_bits((127 + 127 - format.bias) << 23)
    } else if format.has_infinity && magnitude == infinity {
        f32::INFINITY
    } else {
        return <f32 as Float>::NAN;
    };
    f32::from_bits(value.to_bits() | sign << 31)
}

/// The pattern of the nearest value, ties to even.
#[inline]
#[must_use]
pub fn narrow(format: &Format, value: f32) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    if magnitude > 0x7F80_0000 {
        return format.nan;
    }
    let sign = (bits >> 31 << (format.bits - 1)) as u16;
    if magnitude == 0x7F80_0000 {
        return format.overflow | sign;
    }
    // As an integer significand and an exponent field; f32 subnormals share the exponent of field 1.
    let field = (magnitude >> 23).max(1);
    let significand = if magnitude >> 23 == 0 { magnitude } else { magnitude & 0x7F_FFFF | 0x80_0000 };
    // The field in the target, where values below field 1 keep its exponent and lose significand bits instead.
    let target = (field + format.bias).saturating_sub(127).max(1);
    let cut = 23 - format.fraction_bits + (target + 127 - format.bias - field);
    // From 25 bits up less than half a unit is left of any significand.
    let kept = if cut < 25 {
        let integer = significand >> cut;
        let rest = significand - (integer << cut);
        let half = 1 << (cut - 1);
        integer + u32::from(rest > half || (rest == half && integer & 1 == 1))
    } else {
        0
    };
    // The leading bit of a normal number adds one to the field, and so does a carry out of the fraction.
    let pattern = ((target - 1) << format.fraction_bits) + kept;
    if pattern > u32::from(format.max) { format.overflow | sign } else { pattern as u16 | sign }
}

/// The two's complement value of a nibble.
#[inline]
#[must_use]
pub fn i4(nibble: u8) -> i32 {
    i32::from(((nibble << 4) as i8) >> 4)
}

/// The value of an E2M1 nibble.
#[inline]
#[must_use]
pub fn fp4(nibble: u8) -> f32 {
    f32::from_bits(nibble::FP4[usize::from(nibble & 0xF)])
}

/// The value of a NormalFloat nibble.
#[inline]
#[must_use]
pub fn nf4(nibble: u8) -> f32 {
    f32::from_bits(nibble::NF4[usize::from(nibble & 0xF)])
}
