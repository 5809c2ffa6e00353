//! The words that the library reads at run time: tables, and the coefficients of its polynomials.
//!
//! Functions of the library refer to a section by the constant `VY_AT_…`. All numbers are fractions in fixed point, the lowest word
//! first, and cut off, not rounded. A polynomial lists its coefficients from the highest power down.

use super::fixed::Fixed;
use std::sync::LazyLock;
use vyre_spec::nibble;

/// The words and where their sections start.
struct Table {
    words: Vec<u32>,
    starts: Vec<(&'static str, usize)>,
}

impl Table {
    fn section(&mut self, name: &'static str, words: impl IntoIterator<Item = u32>) {
        self.starts.push((name, self.words.len()));
        self.words.extend(words);
    }

    /// Coefficients of two words each, given from the lowest power up.
    fn polynomial(&mut self, name: &'static str, coefficients: Vec<Fixed>) {
        self.section(name, coefficients.iter().rev().flat_map(Fixed::fraction::<2>));
    }
}

/// How many reciprocals there are between 1 and 1/2, at both ends too.
pub(super) const RECIPROCALS: u32 = 33;

/// 2¹⁶ / (1 + j/32), rounded: short enough that its product with 24 bits is exact, and the logarithm of what that leaves is small.
const fn reciprocal(j: u32) -> u32 {
    ((1 << 22) / (32 + j)).div_ceil(2)
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { words: Vec::new(), starts: Vec::new() };
    let ln2 = Fixed::ln(2, 1);
    let log2e = ln2.reciprocal();
    let pi = Fixed::pi();
    let powers = |x: Fixed, count: usize| {
        std::iter::successors(Some(Fixed::integer(1)), move |power| Some(power.multiply(&x))).take(count)
    };
    let factorial = |value: Fixed, n: u32| (1..=n).fold(value, |value, k| value.over(k));

    table.section("FP4", nibble::FP4);
    table.section("NF4", nibble::NF4);

    // 2^(j/32) / 2.
    table.section("EXP", (0..32).flat_map(|j| ln2.times(j).over(32).exp().over(2).fraction::<2>()));
    // 2^(w/32) - 1, over w.
    let coefficients = powers(ln2.over(32), 10).zip(0..).skip(1).map(|(power, k)| factorial(power, k));
    table.polynomial("EXP_POLY", coefficients.collect());
    table.section("LOG2E_HALF", log2e.over(2).fraction::<3>());

    table.section("RECIPROCAL", (0..RECIPROCALS).map(reciprocal));
    // For logarithms to the bases e and 2, one after the other: that of 2, with 96 bits and an integer part; those of the
    // reciprocals, negated, but that of 1/2 as 0, since the exponent has it; and that of 1 + z over 2z, the first sign positive, as
    // a polynomial in |z|.
    for (name, unit) in [("LOG", Fixed::integer(1)), ("LOG2", log2e)] {
        let two = if name == "LOG" { ln2 } else { Fixed::integer(1) };
        let reciprocals = (0..RECIPROCALS).flat_map(|j| {
            let value = if j + 1 == RECIPROCALS { Fixed::ZERO } else { Fixed::ln(1 << 16, reciprocal(j)).multiply(&unit) };
            value.fraction::<3>()
        });
        let two = two.fraction::<3>().into_iter().chain([two.whole()]);
        let series = (0..LOG_TERMS).rev().flat_map(|k| unit.over(2 * (k + 1)).fraction::<2>());
        table.section(name, two.chain(reciprocals).chain(series));
    }

    // 2/pi from the highest word down, after 64 zeros.
    let mut bits = pi.over(2).reciprocal().fraction::<12>();
    bits.reverse();
    table.section("TWO_OVER_PI", [0, 0].into_iter().chain(bits));
    table.section("PI_OVER_4", pi.over(4).fraction::<2>());
    // sin(x) / 2x and cos(x) / 2 in x^2, one after the other.
    table.polynomial("SIN_POLY", (0..SIN_TERMS).map(|k| factorial(Fixed::ratio(1, 2), 2 * k + 1)).collect());
    table.polynomial("COS_POLY", (0..SIN_TERMS).map(|k| factorial(Fixed::ratio(1, 2), 2 * k)).collect());

    // tanh(x) / 2x in x^2: y' = 1 - y^2 gives each coefficient from those before.
    let mut tanh = vec![Fixed::integer(1)];
    for n in 1..TANH_TERMS {
        let products = (0..n).map(|i| tanh[i].multiply(&tanh[n - 1 - i]));
        tanh.push(products.fold(Fixed::ZERO, |sum, product| sum.plus(&product)).over(2 * n as u32 + 1));
    }
    table.polynomial("TANH_POLY", tanh.iter().map(|coefficient| coefficient.over(2)).collect());

    // atan(j/16) with 96 bits, then pi/2 with an integer part, and atan(x) / 2x in x^2.
    table.section("ATAN", (0..=16).flat_map(|j| Fixed::atan(j, 16).fraction::<3>()));
    table.section("PI_OVER_2", pi.over(2).fraction::<3>().into_iter().chain([pi.over(2).whole()]));
    table.polynomial("ATAN_POLY", (0..ATAN_TERMS).map(|k| Fixed::ratio(1, 2 * (2 * k + 1))).collect());

    // pow: as for the logarithm of base 2 and for powers of it, with 128 bits for what matters most. Negated logarithms of the
    // reciprocals; that of 1 + z over 2z; 2^(j/32) / 2; 2^x - 1 over x.
    let reciprocals = (0..RECIPROCALS).flat_map(|j| {
        let value = if j + 1 == RECIPROCALS { Fixed::ZERO } else { Fixed::ln(1 << 16, reciprocal(j)).multiply(&log2e) };
        value.fraction::<4>()
    });
    table.section("POW_RECIPROCALS", reciprocals);
    let logarithm = |k: u32| log2e.over(2 * (k + 1));
    table.section("POW_LOG_HIGHER", (10..20).rev().flat_map(|k| logarithm(k).fraction::<2>()));
    table.section("POW_LOG", (0..10).rev().flat_map(|k| logarithm(k).fraction::<4>()));
    table.section("POW_POWERS", (0..32).flat_map(|j| ln2.times(j).over(32).exp().over(2).fraction::<4>()));
    let exponential: Vec<Fixed> = powers(ln2, 17).zip(0..).skip(1).map(|(power, k)| factorial(power, k)).collect();
    table.section("POW_EXP_HIGHER", exponential[8..].iter().rev().flat_map(Fixed::fraction::<2>));
    table.section("POW_EXP", exponential[..8].iter().rev().flat_map(Fixed::fraction::<4>));
    table
});

const LOG_TERMS: u32 = 12;
const SIN_TERMS: u32 = 12;
const TANH_TERMS: usize = 10;
const ATAN_TERMS: u32 = 8;

/// The words that `vy_table` indexes.
#[must_use]
pub fn table() -> &'static [u32] {
    &TABLE.words
}

/// Where the sections start, as WGSL constants: name and text.
pub(super) fn constants() -> impl Iterator<Item = (String, String)> {
    TABLE.starts.iter().map(|(name, start)| (format!("VY_AT_{name}"), format!("const VY_AT_{name} = {start}u;\n")))
}
