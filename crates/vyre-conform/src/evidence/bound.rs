//! How sure a sample makes.

use std::fmt;

/// What n independent draws say: a fault that touches a fraction p of what is drawn from escapes all of them with probability
/// (1 − p)ⁿ, under the sampler, whose strata are not the distribution of anybody's data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bound {
    /// Draws.
    pub n: u64,
}

impl Bound {
    /// The probability that a fault escaped which touches this fraction of what is drawn from.
    #[must_use]
    pub fn escape(self, fraction: f64) -> f64 {
        (self.n as f64 * (-fraction).ln_1p()).exp()
    }

    /// The fraction from which on a fault escaped with at most this probability.
    #[must_use]
    pub fn fraction(self, escape: f64) -> f64 {
        if self.n == 0 { 1.0 } else { -(escape.ln() / self.n as f64).exp_m1() }
    }

    /// The bound in words, about values or launches.
    #[must_use]
    pub fn sentence(self, of: &str) -> String {
        let Bound { n } = self;
        if n == 0 {
            return format!("no {of}: nothing is known");
        }
        let fraction = number(self.fraction(0.01));
        format!("n = {n} {of}: a fault that touches a fraction {fraction} of {of} escaped with probability ≤ 1 %")
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n = {}, p ≥ {} at 99 %", self.n, number(self.fraction(0.01)))
    }
}

/// A probability with two digits, rounded up so that the bound stays one.
fn number(p: f64) -> String {
    if p <= 0.0 {
        return "0".into();
    }
    let mut exponent = p.log10().floor() as i32;
    let mut digits = (p / 10f64.powi(exponent - 1)).ceil();
    if digits >= 100.0 {
        digits /= 10.0;
        exponent += 1;
    }
    if exponent >= -2 {
        format!("{:.*}", (1 - exponent).max(0) as usize, digits * 10f64.powi(exponent - 1))
    } else {
        format!("{:.1}e{exponent}", digits / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_power_that_it_is_said_to_be() {
        // 459 draws find 1 % with 99 %; 4603 find one in a thousand.
        assert!(Bound { n: 459 }.escape(0.01) <= 0.01 && Bound { n: 458 }.escape(0.01) > 0.01);
        assert!(Bound { n: 4603 }.escape(0.001) <= 0.01 && Bound { n: 4602 }.escape(0.001) > 0.01);
        for n in [1, 5, 459, 1 << 20, 1 << 40] {
            let bound = Bound { n };
            assert!((bound.escape(bound.fraction(0.01)) - 0.01).abs() < 1e-6, "{n}");
        }
        assert_eq!(Bound { n: 0 }.escape(0.5), 1.0);
    }

    #[test]
    fn numbers_are_rounded_up() {
        for (n, text) in [(1, "0.99"), (459, "0.010"), (460, "0.010"), (4603, "1.0e-3"), (1_000_000, "4.7e-6")] {
            assert_eq!(number(Bound { n }.fraction(0.01)), text, "{n}");
        }
        assert_eq!(number(0.0999), "0.10");
    }
}
