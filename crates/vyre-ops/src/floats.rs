//! Floats on the host as the language has them: one NaN, and elementary functions rounded correctly.
//!
//! The functions are computed with about 100 bits, as sums of two f64 of which the second is what the first lacks, and rounded once at the
//! end. No f32 comes near enough to the middle between two others for that to be in doubt: the worst case of each function is known to
//! be decided within 64 bits.

/// The same number; every NaN is the one NaN.
pub(crate) fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(0x7FC0_0000) } else { x }
}

/// The larger: a number beats NaN, and +0 beats −0.
pub(crate) fn max(a: f32, b: f32) -> f32 {
    match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Less) => b,
        Some(std::cmp::Ordering::Greater) => a,
        Some(std::cmp::Ordering::Equal) => f32::from_bits(a.to_bits() & b.to_bits()),
        None if a.is_nan() => b,
        None => a,
    }
}

/// e to the x.
pub(crate) fn exp(x: f32) -> f32 {
    if x.is_nan() {
        return canonical(x);
    }
    // Past these every result is infinite or less than half the smallest number.
    if x > 90.0 {
        return f32::INFINITY;
    }
    if x < -110.0 {
        return 0.0;
    }
    let x = f64::from(x);
    let k = (x / LN_2.0).round();
    let rest = Pair::from(x) + -(LN_2 * Pair::from(k));
    // 1 + r (1 + r/2 (1 + r/3 (…))), where |r| < 0.35.
    let sum = (1..=28).rev().fold(ONE, |sum, n| ONE + rest * sum.over(f64::from(n)));
    // An exact power of two: every result is far from the limits of f64.
    sum.to_f32(2f64.powi(k as i32))
}

/// The sine of an angle of at most an eighth of a turn.
pub(crate) fn sin(angle: f32) -> f32 {
    debug_assert!((0.0..=0.79).contains(&angle));
    // x (1 - x²/(2·3) (1 - x²/(4·5) (…)))
    let x = Pair::from(f64::from(angle));
    let sum = (1..=14).rev().fold(ONE, |sum, n| ONE + -(x * x * sum).over(f64::from(2 * n * (2 * n + 1))));
    (x * sum).to_f32(1.0)
}

/// The cosine of an angle of at most an eighth of a turn.
pub(crate) fn cos(angle: f32) -> f32 {
    debug_assert!((0.0..=0.79).contains(&angle));
    let x = Pair::from(f64::from(angle));
    let sum = (1..=14).rev().fold(ONE, |sum, n| ONE + -(x * x * sum).over(f64::from(2 * n * (2 * n - 1))));
    sum.to_f32(1.0)
}

/// A sum of two numbers, of which the second is too small to change the first.
#[derive(Clone, Copy)]
struct Pair(f64, f64);

const ONE: Pair = Pair(1.0, 0.0);
const LN_2: Pair = Pair(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);

impl From<f64> for Pair {
    fn from(x: f64) -> Self {
        Pair(x, 0.0)
    }
}

impl Pair {
    /// The exact sum of two numbers.
    fn sum(a: f64, b: f64) -> Pair {
        let sum = a + b;
        let of_b = sum - a;
        Pair(sum, (a - (sum - of_b)) + (b - of_b))
    }

    fn over(self, divisor: f64) -> Pair {
        let quotient = self.0 / divisor;
        let left = (-quotient).mul_add(divisor, self.0) + self.1;
        Pair::sum(quotient, left / divisor)
    }

    /// The nearest f32 of this times a power of two.
    fn to_f32(self, scale: f64) -> f32 {
        // Rounded to odd first: if the last bit of the first number says that there is something behind it, one rounding is left.
        let (first, second) = (self.0 * scale, self.1 * scale);
        let bits = first.to_bits();
        let odd = match (second == 0.0 || bits & 1 == 1, (second > 0.0) == (first > 0.0)) {
            (true, _) => bits,
            (false, true) => bits + 1,
            (false, false) => bits - 1,
        };
        f64::from_bits(odd) as f32
    }
}

impl std::ops::Neg for Pair {
    type Output = Pair;

    fn neg(self) -> Pair {
        Pair(-self.0, -self.1)
    }
}

impl std::ops::Add for Pair {
    type Output = Pair;

    fn add(self, other: Pair) -> Pair {
        let (high, low) = (Pair::sum(self.0, other.0), Pair::sum(self.1, other.1));
        let high = Pair::sum(high.0, high.1 + low.0);
        Pair::sum(high.0, high.1 + low.1)
    }
}

impl std::ops::Mul for Pair {
    type Output = Pair;

    fn mul(self, other: Pair) -> Pair {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product) + (self.0 * other.1 + self.1 * other.0);
        Pair::sum(product, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of numbers and their neighbours, from tables.
    #[test]
    fn known_values() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(1.0), std::f32::consts::E);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::NAN).to_bits(), 0x7FC0_0000);
        // The last finite result, the first infinite one; the last that is not zero, the first that is.
        assert_eq!(exp(f32::from_bits(0x42B1_7217)).to_bits(), 0x7F7F_FF84);
        assert_eq!(exp(f32::from_bits(0x42B1_7218)), f32::INFINITY);
        assert_eq!(exp(f32::from_bits(0xC2CF_F1B4)).to_bits(), 1);
        assert_eq!(exp(f32::from_bits(0xC2CF_F1B5)), 0.0);
        assert_eq!(sin(0.0), 0.0);
        assert_eq!(cos(0.0), 1.0);
        assert_eq!(sin(std::f32::consts::FRAC_PI_4), std::f32::consts::FRAC_1_SQRT_2);
        assert_eq!(cos(std::f32::consts::FRAC_PI_4), std::f32::consts::FRAC_1_SQRT_2);
    }
    /// The language's own functions are another opinion: all over their range, and every angle that a transform of up to 8192 points has.
    #[test]
    fn the_language_agrees() {
        let same = |found: f32, of: fn(f32) -> f32, x: f32| {
            assert_eq!(found.to_bits(), canonical(of(x)).to_bits(), "of {:08x}", x.to_bits())
        };
        for n in 0..100_000u32 {
            let x = f32::from_bits(n.wrapping_mul(0x9E37_79B1));
            same(exp(x), vyre::scalar::elementary::exp, x);
            // Where results are neither 0 nor infinite nor 1.
            let x = n as f32 * 0.002 - 105.0;
            same(exp(x), vyre::scalar::elementary::exp, x);
        }
        for n in 0..=1024u16 {
            let angle = f32::from(n) / 8192.0 * std::f32::consts::TAU;
            same(sin(angle), vyre::scalar::elementary::sin, angle);
            same(cos(angle), vyre::scalar::elementary::cos, angle);
        }
    }
}
