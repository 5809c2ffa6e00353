//! Elementary functions of f32, correctly rounded.
//!
//! `libm`, a port of MUSL's functions to Rust, computes in f64; errors are below one unit of the last place as its sources say, two for
//! `tanh`: 2⁻⁵¹. A result is believed if everything within four times as much rounds to the same f32. That leaves one result in 2²⁴ in
//! doubt, between two neighbouring f32; on which side of the middle between them it lies is found out with arbitrary precision
//! (`settle`). A test below compares the two.
//!
//! That ends if the exact result is not the middle itself. Results of these functions are transcendental, unless the operand is 0 or
//! 1 and the result too, except for powers: those of 2 are exact at integers, and `exact_power` says which others are.

use super::exact::power_of_two;
use astro_float_num::{BigFloat, Consts, RoundingMode};
use std::cell::RefCell;

/// How far off results in f64 are thought to be, relative to their size.
const DOUBT: f64 = 1.0 / (1_u64 << 49) as f64;

thread_local! {
    /// Digits of π, e and ln 2 that were needed so far.
    static CONSTANTS: RefCell<Consts> = RefCell::new(Consts::new().expect("there is memory for a few constants"));
}

/// The f32 nearest to a value that is about `near`, and that `exact` computes with so many bits.
#[inline]
fn round(near: f64, exact: impl Fn(usize, &mut Consts) -> BigFloat) -> f32 {
    let margin = near.abs() * DOUBT;
    let (low, high) = ((near - margin) as f32, (near + margin) as f32);
    // Zeros and NaN have no margin; infinities have a margin that is NaN.
    if low.to_bits() == high.to_bits() || !near.is_finite() || near == 0.0 { near as f32 } else { settle(low, high, exact) }
}

/// Which of two neighbours is nearer to a value between them.
#[cold]
#[inline(never)]
fn settle(low: f32, high: f32, exact: impl Fn(usize, &mut Consts) -> BigFloat) -> f32 {
    // Beyond the largest f32 the next one would be 2^128; results from the middle on become infinite.
    let wide = |a: f32| if a.is_infinite() { power_of_two(128).copysign(a.into()) } else { f64::from(a) };
    let middle = (wide(low) + wide(high)) / 2.0;
    CONSTANTS.with_borrow_mut(|constants| {
        let mut bits = 128;
        loop {
            let none = RoundingMode::None;
            let value = exact(bits, constants);
            let distance = value.sub(&BigFloat::from_f64(middle, bits), bits, none);
            // The last bits of the value are not to be trusted; 32 of them are more than the library's own guard.
            let unsure = value.abs().mul(&BigFloat::from_f64(power_of_two(32 - bits as i32), bits), bits, none);
            if distance.abs().cmp(&unsure).is_some_and(|order| order > 0) {
                return if distance.is_negative() { low } else { high };
            }
            assert!(bits < 1 << 16, "a transcendental number is not the middle between two f32");
            bits *= 2;
        }
    })
}

/// An operand, exactly.
fn big(a: f32) -> BigFloat {
    BigFloat::from_f64(a.into(), 64)
}

/// A function's name, what computes it in f64, and what does with more bits.
#[cfg(test)]
type Both = (&'static str, fn(f64) -> f64, fn(f32, &mut Consts) -> BigFloat);

macro_rules! functions {
    ($( $(#[$doc:meta])* $name:ident: $near:path, $exact:ident; )*) => { $(
        $(#[$doc])*
        #[must_use]
        pub fn $name(a: f32) -> f32 {
            round($near(a.into()), |bits, constants| big(a).$exact(bits, RoundingMode::None, constants))
        }
    )*

        /// Both ways to compute each function.
        #[cfg(test)]
        const BOTH: &[Both] =
            &[$( (stringify!($name), $near, |a, constants| big(a).$exact(128, RoundingMode::None, constants)) ),*];
    };
}

functions! {
    /// e to the a.
    exp: libm::exp, exp;
    /// The natural logarithm.
    log: libm::log, ln;
    /// The logarithm of base 2.
    log2: libm::log2, log2;
    /// The sine of radians.
    sin: libm::sin, sin;
    /// The cosine of radians.
    cos: libm::cos, cos;
    /// The tangent of radians.
    tan: libm::tan, tan;
    /// The hyperbolic tangent.
    tanh: libm::tanh, tanh;
    /// The arc tangent.
    atan: libm::atan, atan;
}

/// 2 to the a. Exact at integers, of which 2⁻¹⁵⁰ is the middle between 0 and the smallest f32.
#[must_use]
pub fn exp2(a: f32) -> f32 {
    if (-160.0..=160.0).contains(&a) && a as i32 as f32 == a {
        return power_of_two(a as i32) as f32;
    }
    round(libm::exp2(a.into()), |bits, constants| BigFloat::from_f64(2.0, 64).pow(&big(a), bits, RoundingMode::None, constants))
}

/// `a` to the power of `b`; the special cases of IEEE 754-2019, 9.2.1.
#[must_use]
pub fn pow(a: f32, b: f32) -> f32 {
    if b == 0.0 || a == 1.0 {
        return 1.0;
    }
    if a.is_nan() || b.is_nan() {
        return f32::NAN;
    }
    // From 2^24 on every f32 is an even integer.
    let integer = b.abs() >= 16_777_216.0 || b as i32 as f32 == b;
    let odd = b.abs() < 16_777_216.0 && integer && b as i32 % 2 != 0;
    if a < 0.0 && a.is_finite() && b.is_finite() && !integer {
        return f32::NAN;
    }
    let magnitude = power_of_magnitude(a.abs(), b);
    if odd && a.is_sign_negative() { -magnitude } else { magnitude }
}

fn power_of_magnitude(a: f32, b: f32) -> f32 {
    if a == 1.0 {
        return 1.0;
    }
    if a == 0.0 || a.is_infinite() || b.is_infinite() {
        return if (a > 1.0) == (b > 0.0) { f32::INFINITY } else { 0.0 };
    }
    let near = libm::pow(a.into(), b.into());
    // Far outside of f32, where the f64 itself may be infinite, zero or subnormal.
    if near > power_of_two(200) {
        return f32::INFINITY;
    }
    if near < power_of_two(-200) {
        return 0.0;
    }
    let margin = near * DOUBT;
    if (near - margin) as f32 != (near + margin) as f32
        && let Some(exact) = exact_power(a, b)
    {
        return exact as f32;
    }
    round(near, |bits, constants| big(a).pow(&big(b), bits, RoundingMode::None, constants))
}

/// `a` to the power of `b`, both finite and `a` positive, if that has at most 53 bits; otherwise it is not the middle between two f32.
///
/// Let a = m · 2ᵉ with m odd. If b is an integer n ≥ 0, the result is mⁿ · 2ᵉⁿ. If b = n / 2ᵏ with n odd, it is rational only if a is the
/// 2ᵏ-th power of a rational number, hence m of an integer and e a multiple of 2ᵏ. If b < 0, it has finitely many bits only if m = 1.
fn exact_power(a: f32, b: f32) -> Option<f64> {
    let odd_part = |value: f64| -> (u64, i32) {
        let bits = value.abs().to_bits();
        let int = bits & ((1 << 52) - 1) | 1 << 52;
        (int >> int.trailing_zeros(), (bits >> 52) as i32 - 1075 + int.trailing_zeros() as i32)
    };
    let (mut m, mut e) = odd_part(a.into());
    let (n, k) = odd_part(b.into());
    for _ in k..0 {
        if m.isqrt().pow(2) != m || e % 2 != 0 {
            return None;
        }
        (m, e) = (m.isqrt(), e / 2);
    }
    // Above 2^56 any power of what is not 1 is far outside of f32.
    let n = if k > 32 { return None } else { (n as i64) << k.max(0) };
    if m != 1 && (b < 0.0 || n > 53) {
        return None;
    }
    let power = if m == 1 { 1 } else { m.checked_pow(n as u32).filter(|power| *power < 1 << 53)? };
    let exponent = i32::try_from(i64::from(e) * if b < 0.0 { -n } else { n }).ok().filter(|it| (-300..=300).contains(it))?;
    Some(power as f64 * power_of_two(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::mix;

    /// Operands at which results are finite and not zero, of all sizes.
    fn operand(n: u64) -> f32 {
        f32::from_bits((0x0080_0000 + mix(n) % 0x4200_0000) as u32 | (mix(!n) as u32) << 31)
    }

    /// How far an f64 is from a value, relative to it, as a power of two.
    fn off(near: f64, value: &BigFloat) -> i32 {
        let error = value.sub(&BigFloat::from_f64(near, 128), 128, RoundingMode::None);
        match (error.is_zero(), error.exponent(), value.exponent()) {
            (false, Some(error), Some(value)) => error - value,
            _ => i32::MIN,
        }
    }

    #[test]
    fn results_in_f64_are_nearer_than_they_need_to_be() {
        CONSTANTS.with_borrow_mut(|constants| {
            for (name, near, exact) in BOTH {
                let worst = (0..2000).map(operand).filter(|a| near((*a).into()).is_normal());
                let worst = worst.map(|a| off(near(a.into()), &exact(a, constants))).max().unwrap_or(0);
                assert!((-70..=-51).contains(&worst), "{name}: off by 2^{worst}");
            }
            for n in 0..2000 {
                let (a, b) = (operand(n).abs(), operand(n + 5000));
                let near = libm::pow(a.into(), b.into());
                if near.is_normal() && near != 1.0 {
                    let value = big(a).pow(&big(b), 128, RoundingMode::None, constants);
                    assert!(off(near, &value) <= -51, "pow({a}, {b})");
                }
            }
        });
    }

    #[test]
    fn powers_that_are_exact_or_halfway() {
        assert_eq!((exact_power(3.0, 5.0), exact_power(9.0, 1.5), exact_power(0.25, -0.5)), (Some(243.0), Some(27.0), Some(2.0)));
        assert_eq!((exact_power(3.0, -1.0), exact_power(2.0, 0.5), exact_power(5.0, 40.0)), (None, None, None));
        // 4097^2 = 2^24 + 2^13 + 1 is the middle between two f32; the even one is below.
        assert_eq!(pow(4097.0, 2.0), 16_785_408.0);
        // So is (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24.
        assert_eq!(pow(1.0 + 2.0_f32.powi(-12), 2.0), 1.0 + 2.0_f32.powi(-11));
        assert_eq!((exp2(-149.0), exp2(-150.0), exp2(-149.5)), (f32::from_bits(1), 0.0, f32::from_bits(1)));
        assert_eq!((pow(2.0, -150.0), pow(0.5, 149.0), pow(-2.0, -151.0).to_bits()), (0.0, f32::from_bits(1), 1 << 31));
    }

    #[test]
    fn a_cosine_that_two_libraries_get_wrong() {
        // 0.4999999987 units from the lower neighbour; 400 bits say so.
        assert_eq!(cos(f32::from_bits(0x5922_AA80)).to_bits(), 0x3F08_AEBF);
    }
}
