//! `pow` against CORE-MATH on pairs of floats, of which there are too many to try all.
//!
//! That it is right on all of them follows from the error bounds in `src/elementary/pow.rs`: a first stage off by less than
//! 2⁻⁴³·³, believed only where 2⁻⁴² does not change the rounding; exact ties by exact arithmetic; a second stage off by less
//! than 2⁻¹²⁸, believed only where that does not change the rounding, else repeated with twice the precision. What could still
//! be wrong is a mistake in a bound, a table or the code. It would show where results are close to a tie, near the ends of the
//! range, near 1, or in special cases, so that is where the pairs come from: 1.2 × 10⁹ in the long form (`VYRE_LONG=1`), else
//! 10⁶.
//!
//! The search: random pairs come no closer to a tie than their number allows, 2⁻³⁰ units of the last place for 10⁹. Closer ones
//! are found by scanning. For a fixed `y` the power is, over a few hundred consecutive `x`, a cubic polynomial to within 2⁻³⁴
//! units, whose fractional part three additions of differences carry from one `x` to the next. The long form scans 2³⁸ pairs that
//! way and compares those within 2⁻³⁰ of a tie. CORE-MATH publishes pairs found by much longer searches, with up to 51 equal bits
//! after the rounding bit; some are among the vectors in `data/vectors.txt`.

mod sweep;

use std::f64::consts::LN_2;
use sweep::{Random, Report, Type, cases};
use vyre_scalar::binary;
use vyre_spec::{BinaryOp, FloatMode, Scalar};

/// Compares in both modes.
fn check(report: &mut Report, x: f32, y: f32) {
    for mode in FloatMode::ALL {
        let [x, y] = [x, y].map(|operand| Type::F32.canonical(mode, operand.to_bits().into()));
        let power = core_math::powf(f32::from_bits(x as u32), f32::from_bits(y as u32));
        let expected = Type::F32.canonical(mode, power.to_bits().into());
        let found = binary(BinaryOp::Pow, Scalar::F32, mode, x, y);
        report.check(found, expected, || format!("pow({x:#010x}, {y:#010x}), {mode:?}"));
    }
}

fn unit(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1u64 << 53) as f64
}

/// A positive finite float, every bit pattern as likely as another.
fn positive(random: &mut Random) -> f32 {
    f32::from_bits(1 + random.below(0x7F7F_FFFF) as u32)
}

/// The exponent that takes `x` to about `2^target`.
fn exponent_for(x: f32, target: f64) -> f32 {
    (target / f64::from(x).log2()) as f32
}

fn nudged(random: &mut Random, x: f32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(random.below(5) as u32).wrapping_sub(2))
}

/// Draws a base and an exponent.
type Family = fn(&mut Random) -> (f32, f32);

const FAMILIES: [(&str, Family); 10] = [
    ("any bits", |random| (f32::from_bits(random.next() as u32), f32::from_bits(random.next() as u32))),
    ("result in range", |random| {
        let x = positive(random);
        (x, exponent_for(x, unit(random) * 282.0 - 152.0))
    }),
    ("base near 1", |random| {
        let (distance, side) = (random.next() as u32 & 0x3_FFFF, random.next() & 1);
        let shift = random.below(18);
        let x = f32::from_bits(if side == 0 { 0x3F80_0001 + (distance >> shift) } else { 0x3F7F_FFFF - (distance >> shift) });
        (x, exponent_for(x, unit(random) * 282.0 - 152.0))
    }),
    ("subnormal result", |random| {
        let x = positive(random);
        (x, exponent_for(x, -125.0 - unit(random) * 27.0))
    }),
    ("ends of the range", |random| {
        let x = positive(random);
        let end = random.pick(&[128.0, -126.0, -149.0, -150.0]);
        let y = exponent_for(x, end + (unit(random) - 0.5) / (1u64 << random.below(24)) as f64);
        (x, nudged(random, y))
    }),
    ("result near 1", |random| {
        let x = positive(random);
        let y = exponent_for(x, (unit(random) - 0.5) / (1u64 << random.below(28)) as f64);
        (x, y)
    }),
    ("exact or nearly", |random| {
        let halvings = random.below(5) as i32;
        let degree = 1 << halvings;
        let root = 1 + random.below([1 << 24, 4096, 64, 8, 3][halvings as usize]);
        let x = (root as f64).powi(degree) * 2f64.powi((random.below(40) as i32 - 20) * degree);
        let y = (random.below(40) as f32 - 8.0) / degree as f32;
        match random.below(4) {
            0 => (nudged(random, x as f32), y),
            1 => (x as f32, nudged(random, y)),
            _ => (x as f32, y),
        }
    }),
    ("next to a midpoint's root", |random| {
        let y = (unit(random) * 8.0 - 4.0) as f32;
        let midpoint = (random.next() >> 40 | 1 << 24 | 1) as f64 * 2f64.powi(random.below(200) as i32 - 120);
        let x = (midpoint.log2() / f64::from(y)).exp2() as f32;
        (nudged(random, x), y)
    }),
    ("common exponents", |random| {
        let numerator = random.below(257) as f32 - 128.0;
        (positive(random), numerator / random.pick(&[1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 8.0, 10.0, 16.0, 100.0]))
    }),
    ("negative base", |random| {
        let x = positive(random);
        let y = exponent_for(x, unit(random) * 300.0 - 160.0);
        (-x, if random.below(8) == 0 { y } else { y.round_ties_even() })
    }),
];

#[test]
fn pow_equals_core_math_where_mistakes_would_show() {
    for (seed, (family, pair)) in FAMILIES.into_iter().enumerate() {
        let mut report = Report::new(format!("pow, {family}"));
        let mut random = Random(seed as u64 + 1);
        for _ in 0..cases(120_000_000, 100_000) {
            let (x, y) = pair(&mut random);
            check(&mut report, x, y);
        }
        report.finish();
    }
}

/// Each special value and its neighbours with each other.
#[test]
fn pow_equals_core_math_on_special_values() {
    let mut report = Report::new("pow, special values");
    let powers = (0..256u32).filter(|field| field % 8 < 2 || (120..136).contains(field)).map(|field| field << 23);
    let integers = (1..32u32).chain([63, 64, 127, 128, 149, 150, 151, 1 << 23, 1 << 24, 1 << 25]).map(|n| (n as f32).to_bits());
    let centers: Vec<u32> = powers.chain(integers).chain([0x3F00_0000, 0x3FC0_0000, 0x7F80_0000, 0x7FC0_0000]).collect();
    let values = centers.iter().flat_map(|center| [center.saturating_sub(1), *center, center + 1]);
    let values: Vec<f32> = values.flat_map(|bits| [bits, bits | 0x8000_0000]).map(f32::from_bits).collect();
    for x in &values {
        for y in &values {
            check(&mut report, *x, *y);
        }
    }
    report.finish();
}

/// A number as an unevaluated sum of two f64, good to about 2⁻¹⁰⁰: neither ours nor CORE-MATH's arithmetic.
#[derive(Clone, Copy)]
struct Pair(f64, f64);

impl Pair {
    const LN_2: Pair = Pair(LN_2, f64::from_bits(0x3C7A_BC9E_3B39_803F));

    fn sum(a: f64, b: f64) -> Pair {
        let sum = a + b;
        let from_b = sum - a;
        Pair(sum, (a - (sum - from_b)) + (b - from_b))
    }

    fn plus(self, other: Pair) -> Pair {
        let high = Pair::sum(self.0, other.0);
        Pair::sum(high.0, high.1 + (self.1 + other.1))
    }

    fn times(self, factor: f64) -> Pair {
        let high = self.0 * factor;
        Pair::sum(high, self.0.mul_add(factor, -high) + self.1 * factor)
    }

    fn by(self, other: Pair) -> Pair {
        let high = self.0 * other.0;
        Pair::sum(high, self.0.mul_add(other.0, -high) + (self.0 * other.1 + self.1 * other.0))
    }

    /// By a reduction to 1/512 of ln 2, the series, and squaring.
    fn exp(self) -> Pair {
        let n = (self.0 / LN_2).round();
        let r = self.plus(Pair::LN_2.times(-n)).times(1.0 / 256.0);
        let mut sum = Pair(1.0, 0.0);
        for i in (1..=11).rev() {
            // 1/i to twice the precision.
            let (i, inverse) = (f64::from(i), 1.0 / f64::from(i));
            let over = r.by(Pair(inverse, -inverse.mul_add(i, -1.0) / i));
            sum = Pair(1.0, 0.0).plus(sum.by(over));
        }
        for _ in 0..8 {
            sum = sum.by(sum);
        }
        let scale = 2f64.powi(n as i32);
        Pair(sum.0 * scale, sum.1 * scale)
    }

    /// One step of Newton's method from the f64 logarithm.
    fn ln(x: f64) -> Pair {
        let guess = x.ln();
        let ratio = Pair(-guess, 0.0).exp().times(x);
        Pair(guess, 0.0).plus(ratio.plus(Pair(-1.0, 0.0)))
    }

    /// The fractional part in units of 2⁻⁶⁴; this number is below 2²⁹.
    fn fraction(self) -> u64 {
        const TWO_64: f64 = 18_446_744_073_709_551_616.0;
        (((self.0 - self.0.floor()) * TWO_64) as u64).wrapping_add((self.1 * TWO_64) as i64 as u64)
    }
}

/// The power of two that makes the last place of the f32 at `magnitude`, which is normal, 1.
fn places(magnitude: f64) -> f64 {
    2f64.powi(23 - ((magnitude.to_bits() >> 52) as i32 - 1023))
}

/// How far the power is from the middle between two floats, in units of the last place, to about 2⁻⁶⁴.
fn distance_from_tie(x: f32, y: f32) -> f64 {
    let power = Pair::ln(x.into()).times(y.into()).exp();
    let fraction = power.times(places(power.0)).fraction();
    fraction.abs_diff(1 << 63) as f64 / 18_446_744_073_709_551_616.0
}

const HALF_WIDTH: i32 = 1 << 15;
const RUN: i32 = 256;

/// The floats `x` within [`HALF_WIDTH`] steps of `center` whose power is closer to a tie than `within`, in units of 2⁻⁶⁴.
fn scan(center: f32, y: f32, within: u64) -> Vec<f32> {
    let step = f64::from(center.next_up()) - f64::from(center);
    let power = Pair::ln(center.into()).times(y.into()).exp();
    // In last places the power i steps away is a sum of c_k i^k.
    let mut coefficients = [power.times(places(power.0)); 9];
    let ratio = step / f64::from(center);
    let ratio = Pair(ratio, -ratio.mul_add(f64::from(center), -step) / f64::from(center));
    for k in 1..9 {
        let rest = Pair::sum(f64::from(y), -(k as f64 - 1.0));
        let inverse = Pair(1.0 / k as f64, -(1.0 / k as f64).mul_add(k as f64, -1.0) / k as f64);
        coefficients[k] = coefficients[k - 1].by(rest).by(ratio).by(inverse);
    }
    let [c0, c1, ..] = coefficients;
    let high = coefficients.map(|c| c.0);
    // The part beyond c_1 and the first three derivatives are small enough for f64.
    let sum = |i: f64, from: usize, factor: fn(f64) -> f64| {
        high.iter().enumerate().skip(from).rev().fold(0.0, |sum, (k, c)| sum * i + c * factor(k as f64))
    };
    let value = |i: f64| c0.plus(c1.times(i)).plus(Pair(i * i * sum(i, 2, |_| 1.0), 0.0));
    // All in one power of two, of the base and of the result.
    let ends = [-HALF_WIDTH, HALF_WIDTH].map(|i| value(i.into()).0);
    let fraction = center.to_bits() as i32 & 0x7F_FFFF;
    if ends.iter().any(|end| !(8_388_608.0..16_777_216.0).contains(end))
        || !(HALF_WIDTH..0x80_0000 - HALF_WIDTH).contains(&fraction)
    {
        return vec![];
    }
    let mut found = vec![];
    for start in (-HALF_WIDTH..HALF_WIDTH).step_by(RUN as usize) {
        let i = f64::from(start);
        let (first, second) = (sum(i, 1, |k| k), sum(i, 2, |k| k * (k - 1.0)));
        let third = sum(i, 3, |k| k * (k - 1.0) * (k - 2.0));
        let mut value = value(i).fraction();
        let mut d1 = Pair(first + second / 2.0 + third / 6.0, 0.0).fraction();
        let mut d2 = Pair(second + third, 0.0).fraction();
        let d3 = Pair(third, 0.0).fraction();
        for i in start..start + RUN {
            if value.wrapping_sub((1 << 63) - within) < 2 * within {
                found.push(f32::from_bits(center.to_bits().wrapping_add_signed(i)));
            }
            value = value.wrapping_add(d1);
            d1 = d1.wrapping_add(d2);
            d2 = d2.wrapping_add(d3);
        }
    }
    found
}

#[test]
fn pow_equals_core_math_on_the_hardest_pairs_of_a_search() {
    let mut report = Report::new("pow, closest to a tie");
    let mut random = Random(77);
    let within = cases(1 << 34, 1 << 44);
    let mut closest = (1.0, 0.0, 0.0);
    let mut scans = 0;
    while scans < cases(1 << 22, 1 << 9) {
        let y = (if random.below(4) == 0 { -0.1 - unit(&mut random) * 1.2 } else { 0.1 + unit(&mut random) * 3.4 }) as f32;
        // A result well inside the range.
        let target = unit(&mut random) * 230.0 - 115.0;
        let center = (target / f64::from(y)).exp2() as f32;
        if !(1e-37..1e38).contains(&center) {
            continue;
        }
        scans += 1;
        for x in scan(center, y, within) {
            let distance = distance_from_tie(x, y);
            assert!(
                distance < 2.0 * within as f64 / 2f64.powi(64),
                "the scan is wrong about pow({:#010x}, {:#010x})",
                x.to_bits(),
                y.to_bits()
            );
            if distance < 2f64.powi(-36) {
                println!("pow {:08x} {:08x} is 2^{:.1} from a tie", x.to_bits(), y.to_bits(), distance.log2());
            }
            if distance < closest.0 {
                closest = (distance, x, y);
            }
            check(&mut report, x, y);
        }
    }
    println!("closest to a tie: pow({:e}, {:e}), 2^{:.1} units", closest.1, closest.2, closest.0.log2());
    report.finish();
}
