//! Float ops by integer arithmetic: remainder, fused multiply-add, reciprocal square root.

/// A finite float other than zero as an integer times a power of two, without its sign.
fn parts_f32(a: f32) -> (u64, i32) {
    let (fraction, biased) = (a.to_bits() & 0x7F_FFFF, (a.to_bits() >> 23 & 0xFF) as i32);
    if biased == 0 { (fraction.into(), -149) } else { ((fraction | 1 << 23).into(), biased - 150) }
}

/// The same for f64.
fn parts_f64(a: f64) -> (u64, i32) {
    let (fraction, biased) = (a.to_bits() & ((1 << 52) - 1), (a.to_bits() >> 52 & 0x7FF) as i32);
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) }
}

/// 2 to the power of an exponent that an f64 has.
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1074..=1023).contains(&exponent));
    if exponent < -1022 { f64::from_bits(1 << (exponent + 1074)) } else { f64::from_bits(((exponent + 1023) as u64) << 52) }
}

/// `a * 2^shift mod m`, in steps that leave room for a product: `m` has at most 53 bits.
fn shifted_remainder(a: u64, shift: u32, m: u64) -> u64 {
    let (mut rest, mut left) = (a % m, shift);
    while left > 0 && rest != 0 {
        let step = left.min(64);
        rest = ((u128::from(rest) << step) % u128::from(m)) as u64;
        left -= step;
    }
    rest
}

/// The exact remainder of truncated division, with the sign of the dividend.
#[must_use]
pub fn rem_f32(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() || a.is_infinite() || b == 0.0 {
        return f32::NAN;
    }
    if b.is_infinite() || a.abs() < b.abs() {
        return a;
    }
    // The dividend is not the smaller one, so its exponent is not either.
    let ((a_int, a_exponent), (b_int, b_exponent)) = (parts_f32(a), parts_f32(b));
    let rest = shifted_remainder(a_int, (a_exponent - b_exponent) as u32, b_int);
    ((rest as f64 * power_of_two(b_exponent)) as f32).copysign(a)
}

/// The same for f64.
#[must_use]
pub fn rem_f64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() || a.is_infinite() || b == 0.0 {
        return f64::NAN;
    }
    if b.is_infinite() || a.abs() < b.abs() {
        return a;
    }
    let ((a_int, a_exponent), (b_int, b_exponent)) = (parts_f64(a), parts_f64(b));
    let rest = shifted_remainder(a_int, (a_exponent - b_exponent) as u32, b_int);
    // The result is a multiple of 2^b_exponent below b, so the product is exact.
    (rest as f64 * power_of_two(b_exponent)).copysign(a)
}

/// `a * b + c`, rounded once.
///
/// The product of two f32 is exact in f64. The sum is rounded to odd there: if it is inexact, its last bit is made one by going to the
/// neighbour on the side of the error. f64 has more than two bits beyond f32, so rounding that to f32 is rounding the exact sum.
#[must_use]
pub fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    if !sum.is_finite() {
        return sum as f32;
    }
    // The error of the sum, exactly, whichever operand is larger.
    let taken = sum - product;
    let error = (product - (sum - taken)) + (c - taken);
    let bits = sum.to_bits();
    let odd = if error == 0.0 || bits & 1 == 1 {
        bits
    } else if (error > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    };
    f64::from_bits(odd) as f32
}

/// A magnitude as `mantissa * 2^exponent` with bit 126 of the mantissa set.
#[derive(Clone, Copy)]
struct Wide {
    mantissa: u128,
    exponent: i32,
}

impl Wide {
    fn new(mantissa: u128, exponent: i32) -> Wide {
        let shift = mantissa.leading_zeros() as i32 - 1;
        Wide { mantissa: mantissa << shift, exponent: exponent - shift }
    }
}

/// `a >> shift`; the last bit also stands for all that were lost.
fn shift_sticky(a: u128, shift: u32) -> u128 {
    match shift {
        0 => a,
        1..128 => a >> shift | u128::from(a << (128 - shift) != 0),
        _ => u128::from(a != 0),
    }
}

/// `a * b + c`, rounded once.
///
/// Product and addend are brought to 127 bits. The smaller one is shifted right until the exponents agree, which loses bits only if
/// they differ by more than 20: then at most one leading bit cancels, and the last bit, which stands for what was lost, is far below
/// where the result is rounded.
#[must_use]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    if !a.is_finite() || !b.is_finite() || !c.is_finite() || a == 0.0 || b == 0.0 {
        // What is infinite or NaN stays so, and a product with zero is exact.
        return if c.is_infinite() && a.is_finite() && b.is_finite() { c } else { a * b + c };
    }
    let negative = a.is_sign_negative() != b.is_sign_negative();
    let ((a_int, a_exponent), (b_int, b_exponent)) = (parts_f64(a), parts_f64(b));
    let product = Wide::new(u128::from(a_int) * u128::from(b_int), a_exponent + b_exponent);
    if c == 0.0 {
        return round_f64(product, negative);
    }
    let (c_int, c_exponent) = parts_f64(c);
    let (mut large, mut small) = (product, Wide::new(c_int.into(), c_exponent));
    let (mut large_negative, mut small_negative) = (negative, c.is_sign_negative());
    if (small.exponent, small.mantissa) > (large.exponent, large.mantissa) {
        (large, small) = (small, large);
        (large_negative, small_negative) = (small_negative, large_negative);
    }
    let small = shift_sticky(small.mantissa, (large.exponent - small.exponent) as u32);
    let mantissa = if large_negative == small_negative { large.mantissa + small } else { large.mantissa - small };
    if mantissa == 0 {
        return 0.0;
    }
    // A sum may need bit 127; its last bit is kept in what becomes the last.
    if mantissa >> 127 == 1 {
        return round_f64(Wide { mantissa: shift_sticky(mantissa, 1), exponent: large.exponent + 1 }, large_negative);
    }
    round_f64(Wide::new(mantissa, large.exponent), large_negative)
}

/// The f64 nearest to a magnitude, ties to even, with this sign.
fn round_f64(wide: Wide, negative: bool) -> f64 {
    // The exponent of the last bit that an f64 of this size keeps.
    let last = (wide.exponent + 127 - 53).max(-1074);
    let magnitude = if last > 971 {
        f64::INFINITY
    } else {
        let drop = (last - wide.exponent) as u32;
        let (kept, lost) = if drop > 127 { (0, 1) } else { (wide.mantissa >> drop, wide.mantissa & ((1 << drop) - 1)) };
        let half = if drop > 127 { u128::MAX } else { 1 << (drop - 1) };
        let up = lost > half || (lost == half && kept & 1 == 1);
        // At most 2^53, which is exact; a product that is too large is an infinity.
        (kept + u128::from(up)) as f64 * power_of_two(last)
    };
    if negative { -magnitude } else { magnitude }
}

/// `1 / sqrt(a)`, rounded once.
///
/// Root and quotient in f64 are each off by half a unit at most, so that the result is believed if everything within 2⁻⁵⁰ of it, which is
/// four times as much, rounds to the same f32.
#[must_use]
pub fn rsqrt_f32(a: f32) -> f32 {
    let near = 1.0 / f64::from(a).sqrt();
    let (low, high) = (near * (1.0 - power_of_two(-50)), near * (1.0 + power_of_two(-50)));
    if low as f32 == high as f32 || a.is_nan() || a <= 0.0 {
        return near as f32;
    }
    rsqrt_by_integers(a)
}

/// The same for finite numbers above 0: the root of an integer quotient with about twice the bits that are kept.
fn rsqrt_by_integers(a: f32) -> f32 {
    let (mut int, mut exponent) = parts_f32(a);
    if exponent % 2 != 0 {
        (int, exponent) = (int << 1, exponent - 1);
    }
    // 1 / sqrt(int * 2^exponent) = sqrt(2^124 / int) * 2^(-62 - exponent / 2). The root has at least 50 bits, of
    // which 26 are kept; one more says whether anything was lost, here or in quotient and root.
    let quotient = (1_u128 << 124) / u128::from(int);
    let root = quotient.isqrt();
    let exact = int.is_power_of_two() && root * root == quotient;
    let root = root as u64;
    let cut = 64 - root.leading_zeros() - 26;
    let sticky = u64::from(!exact || root & ((1 << cut) - 1) != 0);
    // 26 bits and one for the rest: exact in f64, and so is the power of two.
    ((root >> cut << 1 | sticky) as f64 * power_of_two(cut as i32 - 1 - 62 - exponent / 2)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::mix;

    #[test]
    fn reciprocal_roots_by_f64_and_by_integers_agree() {
        for n in 0..200_000 {
            let a = f32::from_bits((1 + mix(n) % 0x7F7F_FFFF) as u32);
            assert_eq!(rsqrt_f32(a).to_bits(), rsqrt_by_integers(a).to_bits(), "{a:e}");
        }
        assert_eq!((rsqrt_f32(4.0), rsqrt_f32(f32::INFINITY)), (0.5, 0.0));
        assert_eq!((rsqrt_f32(-0.0), rsqrt_f32(0.0)), (f32::NEG_INFINITY, f32::INFINITY));
        assert!(rsqrt_f32(-1.0).is_nan() && rsqrt_f32(f32::NAN).is_nan());
    }

    /// What a sum of integers of 128 bits says, where all operands are small integers times one power of two.
    #[test]
    fn fused_multiply_add_of_integers_is_that_of_integers() {
        for n in 0..200_000_u64 {
            let [a, b] = [mix(n), mix(n ^ 1 << 40)].map(|bits| (bits as i64) >> (bits >> 58));
            let [a, b] = [a >> 11, b >> 11];
            // Near to what cancels the product, and far from it.
            let product = i128::from(a) * i128::from(b);
            let c = if n % 2 == 0 { -(product as f64) } else { (mix(!n) as i64 >> (n % 64)) as f64 };
            let sum = product + c as i128;
            assert_eq!(fma_f64(a as f64, b as f64, c), sum as f64, "{a} * {b} + {c}");
        }
    }
}
