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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const FORMATS: [(&str, Format); 4] = [("f16", F16), ("bf16", BF16), ("f8e4m3", F8E4M3), ("f8e5m2", F8E5M2)];

    fn patterns(format: &Format) -> impl Iterator<Item = u16> {
        0..=(u16::MAX >> (16 - format.bits))
    }

    /// From the definition: sign, fraction and power of two, in f64.
    fn value(format: &Format, pattern: u16) -> f64 {
        let two_to = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
        let magnitude = i32::from(pattern) & ((1 << (format.bits - 1)) - 1);
        let field = magnitude >> format.fraction_bits;
        let fraction = f64::from(magnitude % (1 << format.fraction_bits)) * two_to(-(format.fraction_bits as i32));
        let bias = format.bias as i32;
        let value = if field == 0 { fraction * two_to(1 - bias) } else { (1.0 + fraction) * two_to(field - bias) };
        if pattern >> (format.bits - 1) == 1 { -value } else { value }
    }

    #[test]
    fn every_pattern_widens_to_its_value() {
        for (name, format) in FORMATS {
            for pattern in patterns(&format) {
                let magnitude = pattern & ((1 << (format.bits - 1)) - 1);
                let expected = if magnitude <= format.max {
                    (value(&format, pattern) as f32).to_bits()
                } else if magnitude == format.max + 1 && format.has_infinity {
                    if pattern == magnitude { 0x7F80_0000 } else { 0xFF80_0000 }
                } else {
                    0x7FC0_0000
                };
                assert_eq!(widen(&format, pattern).to_bits(), expected, "{name} {pattern:#x}");
            }
        }
    }

    #[test]
    fn some_published_values_have_their_patterns() {
        for (format, pattern, value) in [
            (F16, 0x3C00, 1.0),
            (F16, 0x7BFF, 65504.0),
            (F16, 0x0001, 5.960_464_5e-8),
            (F16, 0x7C00, f32::INFINITY),
            (BF16, 0x3F80, 1.0),
            (BF16, 0xC049, -3.140_625),
            (F8E4M3, 0x7E, 448.0),
            (F8E4M3, 0x38, 1.0),
            (F8E4M3, 0x01, 0.001_953_125),
            (F8E5M2, 0x7B, 57344.0),
            (F8E5M2, 0x3C, 1.0),
            (F8E5M2, 0x7C, f32::INFINITY),
        ] {
            assert_eq!(widen(&format, pattern), value);
        }
    }

    #[test]
    fn every_pattern_survives_a_round_trip() {
        for (name, format) in FORMATS {
            for pattern in patterns(&format) {
                let magnitude = pattern & ((1 << (format.bits - 1)) - 1);
                let sign = pattern - magnitude;
                let expected = if magnitude <= format.max {
                    pattern
                } else if magnitude == format.max + 1 && format.has_infinity {
                    format.overflow | sign
                } else {
                    format.nan
                };
                assert_eq!(narrow(&format, widen(&format, pattern)), expected, "{name} {pattern:#x}");
            }
        }
    }

    /// By search among all finite values, which f64 compares exactly; ties go to the even pattern.
    fn nearest(format: &Format, finite: &[f64], value: f32) -> u16 {
        let magnitude = f64::from(value.abs());
        let sign = if value.is_sign_negative() { 1 << (format.bits - 1) } else { 0 };
        let max = finite.len() - 1;
        let past_max = finite[max] + (finite[max] - finite[max - 1]) / 2.0;
        // The pattern after the largest finite one is even if that is odd, and then wins the tie.
        if magnitude > past_max || (magnitude == past_max && max % 2 == 1) {
            return format.overflow | sign;
        }
        let above = finite.partition_point(|candidate| *candidate < magnitude).min(max);
        let below = above.saturating_sub(1);
        let (up, down) = (finite[above] - magnitude, magnitude - finite[below]);
        let pattern = if up < down || (up == down && above % 2 == 0) { above } else { below };
        pattern as u16 | sign
    }

    #[test]
    fn narrowing_finds_the_nearest_value_with_ties_to_even() {
        let mut random = Random(4);
        for (name, format) in FORMATS {
            let finite: Vec<f64> = (0..=format.max).map(|pattern| value(&format, pattern)).collect();
            let check = |input: f32| {
                assert_eq!(narrow(&format, input), nearest(&format, &finite, input), "{name} {:#x} {input:e}", input.to_bits());
            };
            for pair in finite.windows(2) {
                // Values and midpoints are f32 in every format; so are their neighbours, on either side.
                for input in [pair[0] as f32, ((pair[0] + pair[1]) / 2.0) as f32] {
                    for near in [input, input.next_up(), input.next_down()] {
                        check(near);
                        check(-near);
                    }
                }
            }
            let max = finite[finite.len() - 1];
            let past_max = (max + (max - finite[finite.len() - 2]) / 2.0) as f32;
            for input in [max as f32, past_max, past_max.next_down(), past_max.next_up(), f32::MAX] {
                check(input);
                check(-input);
            }
            for _ in 0..20_000 {
                let input = f32::from_bits(random.next() as u32);
                if input.is_finite() {
                    check(input);
                }
            }
        }
    }

    #[test]
    fn overflow_and_nan_are_stored_as_each_format_says() {
        let inf = f32::INFINITY;
        let table: [(Format, f32, u16); 16] = [
            (F16, inf, 0x7C00),
            (F16, -65520.0, 0xFC00),
            (F16, 65519.996, 0x7BFF),
            (F16, -f32::NAN, 0x7E00),
            (BF16, -inf, 0xFF80),
            (BF16, f32::MAX, 0x7F80),
            (BF16, f32::NAN, 0x7FC0),
            (F8E4M3, inf, 0x7E),
            (F8E4M3, -inf, 0xFE),
            (F8E4M3, 464.0, 0x7E),
            (F8E4M3, -1e30, 0xFE),
            (F8E4M3, f32::NAN, 0x7F),
            (F8E5M2, inf, 0x7B),
            (F8E5M2, -65536.0, 0xFB),
            (F8E5M2, 61440.0, 0x7B),
            (F8E5M2, -f32::NAN, 0x7E),
        ];
        for (format, value, expected) in table {
            assert_eq!(narrow(&format, value), expected, "{value:e}");
        }
    }

    #[test]
    fn nibbles_have_the_values_of_their_tables() {
        let expected: [i32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1];
        for nibble in 0..16u8 {
            assert_eq!(i4(nibble), expected[usize::from(nibble)]);
            // E2M1 from its definition: fields 0 is 0 or 1/2, others (1 + f/2) * 2^(field - 1).
            let (field, fraction) = (nibble >> 1 & 3, f32::from(nibble & 1));
            let magnitude = if field == 0 { fraction / 2.0 } else { (1.0 + fraction / 2.0) * f32::from(1u8 << (field - 1)) };
            let value = if nibble >= 8 { -magnitude } else { magnitude };
            assert_eq!(fp4(nibble).to_bits(), value.to_bits());
        }
        assert_eq!((nf4(0), nf4(7), nf4(15)), (-1.0, 0.0, 1.0));
    }
}
