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
    /// The bits of +infinity; every larger magnitude is a NaN.
    const INFINITY_BITS: u64;

    /// The value in the low bits of a scalar's representation.
    fn from_bits(bits: u64) -> Self;
    /// The representation: zero-extended.
    fn to_bits(self) -> u64;
    /// What happens to every float value: any NaN becomes [`Float::NAN`], and under [`FloatMode::Canonical`] a magnitude at most that
    /// of the smallest normal number becomes +0.
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
            const INFINITY_BITS: u64 = $type::INFINITY.to_bits() as u64;

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
    if a < F::ZERO || a > F::ZERO { F::ONE.copysign(a) } else { a }
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
    if a.abs() < b.abs() || b.is_infinite() {
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
    let inexact = error < 0.0 || error > 0.0;
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
    if c == 0.0 {
        // The exact sum is the product and not zero: adding c could only spoil the sign of an underflow.
        return a * b;
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

/// `(m, e)` with `|a| = m * 2^e` and bit 52 of `m` the highest one; `a` is finite and not zero.
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
