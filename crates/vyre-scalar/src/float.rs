//! Float ops on f32 and f64 that are more than one IEEE operator.
//!
//! Results are rounded as the semantics table says but *not* canonicalised: the caller passes each through [`Float::canonical`],
//! so that a bulk evaluator can do it in its own loop. Inputs are canonical, in particular a NaN is positive.
//!
//! Rounding to integers, the remainder and the fused multiply-add are written out here. std's forms of them call the platform's
//! math library where the target has no instruction, and crate `libm` 0.2.16 is not correctly rounded without one: its f32 `fmaf`
//! rounds twice when the result is subnormal, its f64 `fma` loses a sticky bit when the addend's exponent is 64 to 127 above the
//! product's.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};
use vyre_spec::FloatMode;

mod sealed {
    pub trait Sealed {}
}

/// `f32` and `f64`: layout, the operations that need the bits, and their place in a `u64`.
pub trait Float:
    Copy
    + PartialOrd
    + Debug
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// The one NaN: positive and quiet, no payload.
    const NAN: Self;
    /// Positive zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Stored significand bits: 23 or 52.
    const FRACTION_BITS: u32;

    /// The value in the low bits of a scalar's representation.
    fn from_bits(bits: u64) -> Self;
    /// The representation: zero-extended.
    fn to_bits(self) -> u64;
    /// What happens to every float value: any NaN becomes [`Float::NAN`], and under [`FloatMode::Canonical`] a magnitude at most
    /// that of the smallest normal number becomes +0.
    #[must_use]
    fn canonical(self, mode: FloatMode) -> Self;
    /// The magnitude.
    #[must_use]
    fn abs(self) -> Self;
    /// This magnitude with the sign bit of `sign`.
    #[must_use]
    fn copysign(self, sign: Self) -> Self;
    /// The square root, correctly rounded.
    #[must_use]
    fn sqrt(self) -> Self;
    /// The integer part.
    #[must_use]
    fn trunc(self) -> Self;
    /// The nearest integer, ties to even.
    #[must_use]
    fn round_ties_even(self) -> Self;
    /// `self * b + c`, rounded once.
    #[must_use]
    fn fma(self, b: Self, c: Self) -> Self;
    /// Whether the sign bit is set.
    fn is_sign_negative(self) -> bool;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
    /// Whether it is an infinity.
    fn is_infinite(self) -> bool;
}

macro_rules! float {
    ($type:ident, $bits:ident, fraction: $fraction:literal, fma: $fma:ident) => {
        impl sealed::Sealed for $type {}

        impl Float for $type {
            const NAN: Self = $type::from_bits($type::INFINITY.to_bits() | 1 << ($fraction - 1));
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const FRACTION_BITS: u32 = $fraction;

            #[inline]
            fn from_bits(bits: u64) -> Self {
                $type::from_bits(bits as $bits)
            }
            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline]
            fn canonical(self, mode: FloatMode) -> Self {
                let magnitude = self.to_bits() & !(1 << ($bits::BITS - 1));
                let flushes = match mode {
                    FloatMode::Ieee => false,
                    // Exactly the smallest normal number too: devices disagree whether a result that rounds up to it was tiny.
                    FloatMode::Canonical => magnitude <= $type::MIN_POSITIVE.to_bits(),
                };
                if magnitude > $type::INFINITY.to_bits() {
                    Self::NAN
                } else if flushes {
                    0.0
                } else {
                    self
                }
            }
            #[inline]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline]
            fn copysign(self, sign: Self) -> Self {
                self.copysign(sign)
            }
            #[inline]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline]
            fn trunc(self) -> Self {
                const ONE: u32 = $type::MAX_EXP as u32 - 1;
                let bits = self.to_bits();
                let exponent = (bits >> $fraction) as u32 & (2 * ONE + 1);
                // Below one only the sign stays; from 2^fraction up, and for infinities and NaN, there is nothing to cut.
                let keep = if exponent < ONE {
                    1 << ($bits::BITS - 1)
                } else if exponent < ONE + $fraction {
                    $bits::MAX << ($fraction - (exponent - ONE))
                } else {
                    $bits::MAX
                };
                $type::from_bits(bits & keep)
            }
            #[inline]
            fn round_ties_even(self) -> Self {
                // At 2^fraction the spacing of floats is 1, so adding it rounds to an integer, ties to even.
                const INTEGERS: $type = (1u64 << $fraction) as $type;
                let magnitude = self.abs();
                if magnitude < INTEGERS { ((magnitude + INTEGERS) - INTEGERS).copysign(self) } else { self }
            }
            #[inline]
            fn fma(self, b: Self, c: Self) -> Self {
                $fma(self, b, c)
            }
            #[inline]
            fn is_sign_negative(self) -> bool {
                self.is_sign_negative()
            }
            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            #[inline]
            fn is_infinite(self) -> bool {
                self.is_infinite()
            }
        }
    };
}

float!(f32, u32, fraction: 23, fma: fma_f32);
float!(f64, u64, fraction: 52, fma: fma_f64);

/// The smaller; a number beats NaN, −0 < +0.
#[inline]
#[must_use]
pub fn min<F: Float>(a: F, b: F) -> F {
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// The larger; a number beats NaN, −0 < +0.
#[inline]
#[must_use]
pub fn max<F: Float>(a: F, b: F) -> F {
    if b.is_nan() || a > b || (a == b && b.is_sign_negative()) { a } else { b }
}

/// −1 or 1; zeros and NaN are themselves.
#[inline]
#[must_use]
pub fn sign<F: Float>(a: F) -> F {
    if a == F::ZERO || a.is_nan() { a } else { F::ONE.copysign(a) }
}

/// The largest integer not above.
#[inline]
#[must_use]
pub fn floor<F: Float>(a: F) -> F {
    let whole = a.trunc();
    if whole > a { whole - F::ONE } else { whole }
}

/// The smallest integer not below; from (−1, 0) that is −0.
#[inline]
#[must_use]
pub fn ceil<F: Float>(a: F) -> F {
    let whole = a.trunc();
    if whole < a { whole + F::ONE } else { whole }
}

/// `x - floor(x)`, rounded: 1 for tiny negative values, NaN for infinities.
#[inline]
#[must_use]
pub fn fract<F: Float>(a: F) -> F {
    a - floor(a)
}

/// The magnitude of `a` with the sign of `b`; a NaN in `b` counts as positive, one in `a` stays.
#[inline]
#[must_use]
pub fn copysign<F: Float>(a: F, b: F) -> F {
    a.copysign(if b.is_nan() { F::ONE } else { b })
}

/// The remainder of truncated division, exact, with the sign of the dividend also when zero.
///
/// Both magnitudes are integers times a power of two; the dividend's integer is shifted up to the divisor's power a few bits at a
/// time, reduced after each step. f64 takes up to 186 steps, f32 up to 7.
#[must_use]
pub fn rem<F: Float>(a: F, b: F) -> F {
    if a.is_nan() || a.is_infinite() || b.is_nan() || b == F::ZERO {
        return F::NAN;
    }
    if a.abs() < b.abs() {
        return a;
    }
    let (mut rest, from) = integer_and_exponent(a.abs());
    let (divisor, exponent) = integer_and_exponent(b.abs());
    rest %= divisor;
    let mut left = from - exponent;
    let room = u64::BITS - (F::FRACTION_BITS + 1);
    while left > 0 && rest != 0 {
        let step = left.min(room);
        rest = (rest << step) % divisor;
        left -= step;
    }
    // `rest` is below the divisor, so it is representable at the divisor's exponent; move it up to where its leading bit belongs.
    let up = (rest.leading_zeros() - room).min(exponent);
    let magnitude = if rest == 0 { 0 } else { (u64::from(exponent - up) << F::FRACTION_BITS) + (rest << up) };
    F::from_bits(magnitude).copysign(a)
}

/// The integer `m` and the exponent `e`, counted from that of the smallest subnormal, of a positive finite `m * 2^e`.
#[inline]
fn integer_and_exponent<F: Float>(a: F) -> (u64, u32) {
    let field = (a.to_bits() >> F::FRACTION_BITS) as u32;
    let hidden = 1 << F::FRACTION_BITS;
    let fraction = a.to_bits() & (hidden - 1);
    if field == 0 { (fraction, 0) } else { (fraction | hidden, field - 1) }
}

/// The product is exact in f64. The sum is rounded to odd there: its last bit says whether anything was cut off, so the second
/// rounding, to the 24 or fewer bits of an f32, sees on which side of a tie the exact sum lies.
#[inline]
fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let sum = product + c;
    // Knuth's TwoSum: `error` is exactly what the addition rounded away; NaN when the sum is not finite.
    let from_c = sum - product;
    let error = (product - (sum - from_c)) + (c - from_c);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && !error.is_nan();
    let odd = if inexact && bits & 1 == 0 {
        // Towards the exact value: an even neighbour's odd neighbours are one step of the bits away. An inexact sum is never 0.
        if (error > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 }
    } else {
        bits
    };
    f64::from_bits(odd) as f32
}

/// In integers: the 106-bit product and the addend are aligned in 128 bits, the lower one keeping a sticky bit for what is cut.
///
/// Leading bits stand at bit 125 (product: or 124), leaving 20 zero bits below the product. So bits are cut only where the
/// operands differ by so much that the result has at least 123 bits, and a sticky bit that far down only decides ties.
fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        // The product is exact (or not finite), so only the sum rounds.
        return a * b + c;
    }
    if !c.is_finite() {
        return c;
    }
    let (ma, ea) = normalized(a);
    let (mb, eb) = normalized(b);
    let (mc, ec) = normalized(c);
    let product = (u128::from(ma) * u128::from(mb)) << 20;
    let product_exponent = ea + eb - 20;
    let addend = u128::from(mc) << 73;
    let addend_exponent = ec - 73;
    let exponent = product_exponent.max(addend_exponent);
    let product = shift_right_sticky(product, exponent.abs_diff(product_exponent));
    let addend = shift_right_sticky(addend, exponent.abs_diff(addend_exponent));
    let product_negative = a.is_sign_negative() != b.is_sign_negative();
    if product_negative == c.is_sign_negative() {
        round_to_f64(product_negative, product + addend, exponent)
    } else if product >= addend {
        round_to_f64(product_negative, product - addend, exponent)
    } else {
        round_to_f64(c.is_sign_negative(), addend - product, exponent)
    }
}

/// `(m, e)` with `|a| = m * 2^e` and bit 52 of `m` the highest one, or `m` zero; `a` is finite.
fn normalized(a: f64) -> (u64, i32) {
    let (integer, exponent) = integer_and_exponent(a.abs());
    let up = integer.leading_zeros() - 11;
    (integer << up, exponent as i32 - up as i32 - 1074)
}

/// Shifted right, with the last bit set if any bit fell off.
fn shift_right_sticky(value: u128, amount: u32) -> u128 {
    match amount {
        0 => value,
        1..128 => value >> amount | u128::from(value << (128 - amount) != 0),
        128.. => u128::from(value != 0),
    }
}

/// The f64 nearest to `magnitude * 2^exponent`, ties to even; zero is positive. The last bit of `magnitude` may be sticky.
fn round_to_f64(negative: bool, magnitude: u128, exponent: i32) -> f64 {
    if magnitude == 0 {
        return 0.0;
    }
    // Cut to 53 bits, or to fewer where the last place would be below that of the subnormals.
    let length = (u128::BITS - magnitude.leading_zeros()) as i32;
    let cut = (length - 53).max(-1074 - exponent);
    let (integer, rounds_up) = if cut <= 0 {
        (magnitude << -cut, false)
    } else {
        let integer = magnitude >> cut;
        let rest = magnitude - (integer << cut);
        let half = 1 << (cut - 1);
        (integer, rest > half || (rest == half && integer & 1 == 1))
    };
    // The leading bit of a normal number adds one to the exponent field, and a carry out of the fraction does too.
    let field = (exponent + cut + 1074) as u64;
    let bits = if field >= 2046 { f64::INFINITY.to_bits() } else { (field << 52) + integer as u64 + u64::from(rounds_up) };
    f64::from_bits(bits | u64::from(negative) << 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::samples::{Exact, f32s, f64s};

    const MODE: FloatMode = FloatMode::Ieee;

    fn same32(got: f32, expected: f32, what: &str) {
        let (got, expected) = (got.canonical(MODE), expected.canonical(MODE));
        assert_eq!(got.to_bits(), expected.to_bits(), "{what}: {got:e} is not {expected:e}");
    }

    fn same64(got: f64, expected: f64, what: &str) {
        let (got, expected) = (got.canonical(MODE), expected.canonical(MODE));
        assert_eq!(got.to_bits(), expected.to_bits(), "{what}: {got:e} is not {expected:e}");
    }

    #[test]
    fn canonical_gives_one_nan_and_flushes_only_in_canonical_mode() {
        let table: [(u32, u32, u32); 14] = [
            (0x0000_0000, 0x0000_0000, 0),
            (0x8000_0000, 0x8000_0000, 0),
            (0x0000_0001, 0x0000_0001, 0),
            (0x807F_FFFF, 0x807F_FFFF, 0),
            (0x0080_0000, 0x0080_0000, 0),
            (0x8080_0000, 0x8080_0000, 0),
            (0x0080_0001, 0x0080_0001, 0x0080_0001),
            (0x8080_0001, 0x8080_0001, 0x8080_0001),
            (0x7F7F_FFFF, 0x7F7F_FFFF, 0x7F7F_FFFF),
            (0x7F80_0000, 0x7F80_0000, 0x7F80_0000),
            (0xFF80_0000, 0xFF80_0000, 0xFF80_0000),
            (0x7F80_0001, 0x7FC0_0000, 0x7FC0_0000),
            (0xFFC0_0000, 0x7FC0_0000, 0x7FC0_0000),
            (0xFFFF_FFFF, 0x7FC0_0000, 0x7FC0_0000),
        ];
        for (bits, ieee, canonical) in table {
            assert_eq!(f32::from_bits(bits).canonical(FloatMode::Ieee).to_bits(), ieee, "{bits:#x}");
            assert_eq!(f32::from_bits(bits).canonical(FloatMode::Canonical).to_bits(), canonical, "{bits:#x}");
        }
        let table: [(u64, u64, u64); 6] = [
            (0x8000_0000_0000_0000, 0x8000_0000_0000_0000, 0),
            (0x800F_FFFF_FFFF_FFFF, 0x800F_FFFF_FFFF_FFFF, 0),
            (0x8010_0000_0000_0000, 0x8010_0000_0000_0000, 0),
            (0x8010_0000_0000_0001, 0x8010_0000_0000_0001, 0x8010_0000_0000_0001),
            (0x7FF0_0000_0000_0000, 0x7FF0_0000_0000_0000, 0x7FF0_0000_0000_0000),
            (0xFFF0_0000_0000_0001, 0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0000),
        ];
        for (bits, ieee, canonical) in table {
            assert_eq!(f64::from_bits(bits).canonical(FloatMode::Ieee).to_bits(), ieee, "{bits:#x}");
            assert_eq!(f64::from_bits(bits).canonical(FloatMode::Canonical).to_bits(), canonical, "{bits:#x}");
        }
    }

    #[test]
    fn min_and_max_prefer_numbers_to_nan_and_order_zeros() {
        let nan = <f32 as Float>::NAN;
        let inf = f32::INFINITY;
        // a, b, min, max; each also with a and b exchanged.
        for (a, b, least, most) in [
            (1.0, 2.0, 1.0, 2.0),
            (-1.0, 1.0, -1.0, 1.0),
            (-2.0, -1.0, -2.0, -1.0),
            (-0.0, 0.0, -0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0),
            (-0.0, -0.0, -0.0, -0.0),
            (nan, 1.0, 1.0, 1.0),
            (nan, -0.0, -0.0, -0.0),
            (nan, inf, inf, inf),
            (nan, -inf, -inf, -inf),
            (nan, nan, nan, nan),
            (-inf, inf, -inf, inf),
            (-inf, -1.0, -inf, -1.0),
        ] {
            for (a, b) in [(a, b), (b, a)] {
                same32(min(a, b), least, &format!("min({a}, {b})"));
                same32(max(a, b), most, &format!("max({a}, {b})"));
                same64(min(f64::from(a), f64::from(b)), f64::from(least), &format!("min({a}, {b})"));
                same64(max(f64::from(a), f64::from(b)), f64::from(most), &format!("max({a}, {b})"));
            }
        }
    }

    #[test]
    fn sign_and_copysign_keep_zeros_and_ignore_the_sign_of_nan() {
        let nan = <f32 as Float>::NAN;
        for (a, expected) in [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1.0), (-3.0, -1.0), (f32::INFINITY, 1.0), (nan, nan)] {
            same32(sign(a), expected, &format!("sign({a})"));
        }
        for (a, b, expected) in [
            (1.5, -0.0, -1.5),
            (-1.5, 0.0, 1.5),
            (0.0, -2.0, -0.0),
            (f32::INFINITY, -1.0, f32::NEG_INFINITY),
            (-1.5, nan, 1.5),
            (-1.5, -nan, 1.5),
            (nan, -1.0, nan),
        ] {
            same32(copysign(a, b), expected, &format!("copysign({a}, {b})"));
        }
    }

    #[test]
    fn rounding_to_integers_agrees_with_integer_conversion() {
        // Every sample below 2^60 in f64, where an i128 holds the integer part, which leaves floats only the zeros' sign.
        let all = f64s().chain(f32s().map(f64::from)).chain((-40..40).map(|quarters| f64::from(quarters) / 4.0));
        for x in all.filter(|x| x.abs() < 1e18) {
            let whole = x as i128;
            let rest = x - whole as f64;
            let down = whole - i128::from(rest < 0.0);
            let up = whole + i128::from(rest > 0.0);
            let above_half = rest.abs() > 0.5 || (rest.abs() == 0.5 && whole % 2 != 0);
            let nearest = if above_half { whole + rest.signum() as i128 } else { whole };
            let signed = |integer: i128| if integer == 0 { 0f64.copysign(x) } else { integer as f64 };
            let floored = if x == 0.0 { x } else { down as f64 };
            same64(x.trunc(), signed(whole), &format!("trunc({x:e})"));
            same64(Float::trunc(x), signed(whole), &format!("trunc({x:e})"));
            same64(floor(x), floored, &format!("floor({x:e})"));
            same64(ceil(x), signed(up), &format!("ceil({x:e})"));
            same64(Float::round_ties_even(x), signed(nearest), &format!("round({x:e})"));
            let narrow = x as f32;
            if f64::from(narrow) == x {
                same32(Float::trunc(narrow), signed(whole) as f32, &format!("trunc({x:e})"));
                same32(floor(narrow), floored as f32, &format!("floor({x:e})"));
                same32(ceil(narrow), signed(up) as f32, &format!("ceil({x:e})"));
                same32(Float::round_ties_even(narrow), signed(nearest) as f32, &format!("round({x:e})"));
            }
        }
    }

    #[test]
    fn rounding_to_integers_leaves_large_values_infinities_and_nan() {
        for x in f32s().filter(|x| x.is_nan() || x.abs() >= 8_388_608.0) {
            for (name, got) in
                [("trunc", Float::trunc(x)), ("floor", floor(x)), ("ceil", ceil(x)), ("round", Float::round_ties_even(x))]
            {
                same32(got, x, name);
            }
        }
        for x in f64s().filter(|x| x.is_nan() || x.abs() >= 4_503_599_627_370_496.0) {
            for (name, got) in
                [("trunc", Float::trunc(x)), ("floor", floor(x)), ("ceil", ceil(x)), ("round", Float::round_ties_even(x))]
            {
                same64(got, x, name);
            }
        }
    }

    #[test]
    fn fract_is_the_rounded_distance_from_the_floor() {
        for (x, expected) in [
            (1.75, 0.75),
            (-1.75, 0.25),
            (-0.0, 0.0),
            (5.0, 0.0),
            (-1e-10, 1.0),
            (-1e-45, 1.0),
            (1e-45, 1e-45),
            (3e38, 0.0),
            (f32::INFINITY, f32::NAN),
            (f32::NEG_INFINITY, f32::NAN),
            (f32::NAN, f32::NAN),
        ] {
            same32(fract(x), expected, &format!("fract({x:e})"));
        }
        for x in f64s().filter(|x| x.is_finite()) {
            same64(fract(x), Exact::from(x).distance(floor(x)).to_f64(), &format!("fract({x:e})"));
        }
    }

    /// The remainder by square-and-multiply instead of long division.
    fn rem_by_powers(x: f64, y: f64) -> f64 {
        let ((mx, ex), (my, ey)) = (integer_and_exponent(x.abs()), integer_and_exponent(y.abs()));
        let my = u128::from(my);
        let mut power = 2 % my;
        let mut factor = 1 % my;
        let mut left = ex - ey;
        while left > 0 {
            if left & 1 == 1 {
                factor = factor * power % my;
            }
            power = power * power % my;
            left >>= 1;
        }
        let rest = u128::from(mx) % my * factor % my;
        // The smallest subnormal times 2^ey, in factors that exist.
        let two_to = |exponent: u32| f64::from_bits(u64::from(1023 + exponent) << 52);
        let mut value = f64::from_bits(rest as u64);
        for part in [ey / 2, ey - ey / 2] {
            value *= two_to(part);
        }
        value.copysign(x)
    }

    #[test]
    fn rem_is_exact_and_takes_the_sign_of_the_dividend() {
        let nan = f64::NAN;
        for (x, y, expected) in [
            (5.5, 2.0, 1.5),
            (-5.5, 2.0, -1.5),
            (5.5, -2.0, 1.5),
            (-4.0, 2.0, -0.0),
            (4.0, -2.0, 0.0),
            (-0.0, 3.0, -0.0),
            (1.0, 0.0, nan),
            (1.0, -0.0, nan),
            (0.0, 0.0, nan),
            (f64::INFINITY, 2.0, nan),
            (f64::INFINITY, f64::INFINITY, nan),
            (nan, 2.0, nan),
            (2.0, nan, nan),
            (-7.0, f64::INFINITY, -7.0),
            (7.0, f64::NEG_INFINITY, 7.0),
            (f64::MAX, 3.0, 2.0),
        ] {
            same64(rem(x, y), expected, &format!("{x:e} % {y:e}"));
        }
        for x in f64s().filter(|x| x.is_finite()) {
            for y in f64s().filter(|y| y.is_finite() && *y != 0.0) {
                let expected = if x.abs() < y.abs() { x } else { rem_by_powers(x, y) };
                same64(rem(x, y), expected, &format!("{x:e} % {y:e}"));
            }
        }
        for x in f32s().filter(|x| x.is_finite()) {
            for y in f32s().filter(|y| y.is_finite() && *y != 0.0) {
                // The remainder of two f32 is an f32.
                let expected = rem(f64::from(x), f64::from(y)) as f32;
                same32(rem(x, y), expected, &format!("{x:e} % {y:e}"));
            }
        }
    }

    /// f64 has more than twice the bits, so rounding its result again gives what rounding once gives; of quotients only when
    /// normal.
    #[test]
    fn f32_operators_and_square_root_agree_with_f64_rounded_again() {
        for a in f32s() {
            same32(Float::sqrt(a), Float::sqrt(f64::from(a)) as f32, &format!("sqrt({a:e})"));
            for b in f32s() {
                let (wide_a, wide_b) = (f64::from(a), f64::from(b));
                same32(a + b, (wide_a + wide_b) as f32, &format!("{a:e} + {b:e}"));
                same32(a - b, (wide_a - wide_b) as f32, &format!("{a:e} - {b:e}"));
                same32(a * b, (wide_a * wide_b) as f32, &format!("{a:e} * {b:e}"));
                let quotient = (wide_a / wide_b) as f32;
                if !quotient.is_subnormal() && quotient.abs() != f32::MIN_POSITIVE {
                    same32(a / b, quotient, &format!("{a:e} / {b:e}"));
                }
            }
        }
    }

    #[test]
    fn f64_sums_and_products_agree_with_exact_arithmetic() {
        for a in f64s().filter(|a| a.is_finite() && *a != 0.0) {
            for b in f64s().filter(|b| b.is_finite() && *b != 0.0) {
                same64(a + b, Exact::from(a).plus(&Exact::from(b)).to_f64(), &format!("{a:e} + {b:e}"));
                same64(a * b, Exact::product(a, b).to_f64(), &format!("{a:e} * {b:e}"));
            }
        }
    }

    fn exact_fma(a: f64, b: f64, c: f64) -> Exact {
        Exact::product(a, b).plus(&Exact::from(c))
    }

    #[test]
    fn fma_of_f32_rounds_once() {
        let check = |a: f32, b: f32, c: f32| {
            let exact = exact_fma(f64::from(a), f64::from(b), f64::from(c));
            same32(a.fma(b, c), exact.to_f32(), &format!("fma({a:e}, {b:e}, {c:e})"));
        };
        let two_to = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
        // (1 + 2⁻²³)(1 - 2⁻²³) is 2⁻⁴⁶ below one: next to an odd number, a sum just below a tie, of normal and of subnormal size.
        let (above, below) = (f32::from_bits(0x3F80_0001), f32::from_bits(0x3F7F_FFFE));
        for exponent in [-75, -74, -60, 0, 30] {
            let scale = two_to(exponent) as f32;
            for odd in [0x0000_0001, 0x0040_0001, 0x007F_FFFF, 0x0080_0001, 0x2480_0001, 0x3F80_0001, 0x4B80_0001, 0x5A80_0001] {
                for c in [f32::from_bits(odd), -f32::from_bits(odd)] {
                    check(above * scale, below * scale, c);
                    check(above * scale, -above * scale, c);
                    check(scale, scale, c);
                }
            }
        }
        // 4097 squared is a tie that the addend decides.
        for c in [1e-45, 1e-30, 1e-9, 1e-8, 1e-5, 0.1] {
            for (a, b) in [(4097.0, 4097.0), (-4097.0, 4097.0), (4097.0, 4099.0)] {
                check(a, b, c);
                check(a, b, -c);
            }
        }
        let mut random = Random(2);
        for _ in 0..20_000 {
            // Sparse significands, an addend near the product.
            let mut sparse = || (random.next() & random.next()) as u32 & 0x807F_FFFF;
            let (a, b, c) = (sparse(), sparse(), sparse());
            let (ea, eb) = (random.next() as u32 % 255, random.next() as u32 % 255);
            let ec = (ea + eb + random.next() as u32 % 80).saturating_sub(127 + 40).min(254);
            check(f32::from_bits(a | ea << 23), f32::from_bits(b | eb << 23), f32::from_bits(c | ec << 23));
        }
    }

    #[test]
    fn fma_of_f64_rounds_once() {
        let check = |a: f64, b: f64, c: f64| {
            same64(a.fma(b, c), exact_fma(a, b, c).to_f64(), &format!("fma({a:e}, {b:e}, {c:e})"));
        };
        // Just above 2, so that with 2^54 (last place 4) the sum is just above a tie, by bits 64 places further down.
        for (a, b) in [(0x3FF0_0000_08F1_BBCE, 0x3FFF_FFFF_EE1C_886E), (0x3FF0_0000_0C00_0002, 0x3FFF_FFFF_E800_000E)] {
            let (a, b, c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(0x4350_0000_0000_0000));
            assert_eq!(a.fma(b, c).to_bits(), 0x4350_0000_0000_0001);
            assert_eq!((-a).fma(b, -c).to_bits(), 0xC350_0000_0000_0001);
            check(a, b, -c);
            check(a, b, c * 2.0);
        }
        // The product is a tie that the addend decides, however far down it is.
        for exponent in [1, 200, 700, 818, 819, 820, 882, 883, 884, 946, 947, 948, 1000, 1075] {
            let c = f64::from_bits(exponent << 52 | 1);
            for (a, b) in [(134_217_729.0, 67_108_865.0), (134_217_729.0, -67_108_865.0), (134_217_731.0, 67_108_865.0)] {
                check(a, b, c);
                check(a, b, -c);
                check(a, b, 0.0);
                check(a, b, -0.0);
            }
        }
        let mut random = Random(3);
        for _ in 0..6_000 {
            let mut sparse = || random.next() & random.next() & 0x800F_FFFF_FFFF_FFFF;
            let (a, b, c) = (sparse(), sparse(), sparse());
            let (ea, eb) = (random.next() % 2047, random.next() % 2047);
            let ec = (ea + eb + random.next() % 260).saturating_sub(1023 + 130).min(2046);
            check(f64::from_bits(a | ea << 52), f64::from_bits(b | eb << 52), f64::from_bits(c | ec << 52));
        }
        // Sums that end among the subnormals.
        for _ in 0..3_000 {
            let mut sparse = || random.next() & random.next() & 0x800F_FFFF_FFFF_FFFF;
            let (a, b, c) = (sparse(), sparse(), sparse());
            let ea = random.next() % 900;
            let eb = (1023 - ea + random.next() % 60).saturating_sub(55);
            check(f64::from_bits(a | ea << 52), f64::from_bits(b | eb << 52), f64::from_bits(c | (random.next() % 3) << 52));
        }
    }

    #[test]
    fn fma_of_boundary_values_rounds_once_and_keeps_ieee_zeros_and_infinities() {
        let some: Vec<f32> = f32s().step_by(5).chain([0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).collect();
        for a in &some {
            for b in &some {
                for c in &some {
                    let (wa, wb, wc) = (f64::from(*a), f64::from(*b), f64::from(*c));
                    let what = format!("fma({a:e}, {b:e}, {c:e})");
                    if !wa.is_finite() || !wb.is_finite() || !wc.is_finite() {
                        // The product cannot overflow in f64, so the sum is as IEEE says.
                        same32(a.fma(*b, *c), (wa * wb + wc) as f32, &what);
                        same64(wa.fma(wb, wc), wa * wb + wc, &what);
                    } else {
                        let exact = exact_fma(wa, wb, wc);
                        // An exact zero is positive unless both parts are negative zeros.
                        let zero = wa * wb + wc;
                        let is_zero = exact == exact_fma(0.0, 0.0, 0.0) || exact == exact_fma(-0.0, 0.0, -0.0);
                        let (narrow, wide) = if is_zero { (zero as f32, zero) } else { (exact.to_f32(), exact.to_f64()) };
                        same32(a.fma(*b, *c), narrow, &what);
                        same64(wa.fma(wb, wc), wide, &what);
                    }
                }
            }
        }
        assert_eq!(f64::MAX.fma(-f64::MAX, f64::INFINITY), f64::INFINITY, "the exact product is finite");
        assert_eq!(1e-300f64.fma(-1e-300, 0.0).to_bits(), (-0.0f64).to_bits(), "an underflow keeps the product's sign");
    }
}
