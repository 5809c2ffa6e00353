//! Values at which ops go wrong, in all combinations.
//!
//! Integers go wrong at 0, ±1, the ends of their range, powers of two and what is next to them; floats at zeros, subnormals, the
//! smallest normal number, one and what is next to it, ties of rounding, the ends of the integers, the largest number, infinities and
//! NaNs with payload. An op adds values of its own: [`OpSpec::boundary`](crate::OpSpec::boundary).
//!
//! Which cases there are depends on the units that a case has (see [`Layout`]):
//! - One of each operand, and at most 2²⁰ combinations: all combinations.
//! - One of each, and more: for each two operands all combinations of their values, with other operands at values that the number of the
//!   case chooses.
//! - Several units of an operand: 16 rounds. In each, every unit takes every value of its list once; in the first all units have the
//!   same value, in the second neighbours have neighbouring values, in the others they are shuffled differently each.

use super::layout::{Kind, Layout, Unit};
use super::strata::mix;
use super::{Draw, Evidence, Space};
use std::ops::Range;

/// The most combinations that are tried all.
pub const MOST_COMBINATIONS: u64 = 1 << 20;

const ROUNDS: u64 = 16;

/// The values at which units of this kind go wrong, as bits, without repetitions.
#[must_use]
pub fn values(unit: Unit) -> Vec<u64> {
    let width = unit.bytes * 8;
    let mask = u64::MAX >> (64 - width);
    let mut values = match unit.kind {
        Kind::Int { .. } => integers(width),
        Kind::Float { exponent } => floats(width, exponent),
        Kind::Bool => vec![0, 1, 2, 0x100, 0x8000_0000, 0xFFFF_FFFF],
        Kind::Nibbles => (0..=255).collect(),
    };
    values.iter_mut().for_each(|value| *value &= mask);
    unique(values)
}

/// Keeps the first of each.
fn unique(values: Vec<u64>) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    values.into_iter().filter(|value| seen.insert(*value)).collect()
}

fn integers(width: u32) -> Vec<u64> {
    let mut values = vec![0, u64::MAX];
    for bit in 0..width {
        let power = 1_u64 << bit;
        values.extend([power - 1, power, power.wrapping_add(1)]);
    }
    // What is next to the ends, alternating bits and bytes, and small negative numbers.
    values.extend([u64::MAX - 1, u64::MAX - 2, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA, 0x00FF_00FF_00FF_00FF]);
    values.extend([10, 100, 0x0123_4567_89AB_CDEF, 0x8000_0001_7FFF_FFFF]);
    values
}

/// Every class of float, by its parts: no decimal, so that one list serves all formats.
fn floats(width: u32, exponent_bits: u32) -> Vec<u64> {
    let mantissa_bits = width - 1 - exponent_bits;
    let one = 1_u64 << mantissa_bits;
    let bias = (1_u64 << (exponent_bits - 1)) - 1;
    let top = (1_u64 << exponent_bits) - 1;
    let power = |exponent: i64| (bias as i64 + exponent).clamp(1, top as i64 - 1) as u64 * one;
    let last = mantissa_bits as i64;
    // Zero, the smallest and largest subnormals, and what is around the smallest normal number.
    let mut values = vec![0, 1, 2, one / 2, one - 1, one, one + 1, 2 * one];
    // One, what is next to it, ties of rounding to integers.
    values.extend([power(0) - 1, power(0), power(0) + 1, power(-1) - 1, power(-1), power(-1) + 1]);
    values.extend([power(0) + one / 2, power(1), power(1) + one / 4, power(1) + one / 2, power(2)]);
    // Half an ulp of one, where sums begin to be lost, and where fractions end.
    values.extend([power(-last - 1), power(-last), power(last - 1) + 1, power(last), power(last) + 1, power(last + 1)]);
    // Products and squares that just overflow or underflow.
    let half = bias as i64 / 2;
    values.extend([power(half), power(half + 1), power(-half), power(-half - 1), power(-half - last / 2)]);
    // The ends of the integers, as far as there are such floats.
    for bits in [31, 32, 63, 64] {
        if bits <= bias as i64 {
            values.extend([power(bits) - 1, power(bits)]);
        }
    }
    // A number with many digits, the largest ones, infinity.
    values.extend([power(0) + one / 3, power(1) + one / 5 * 2, (top - 1) * one, top * one - 2, top * one - 1, top * one]);
    let negative = 1_u64 << (width - 1);
    let mut values: Vec<u64> = values.into_iter().flat_map(|value| [value, value | negative]).collect();
    // NaNs: quiet, signalling, with payload, negative.
    values.extend([
        top * one + one / 2,
        top * one + 1,
        top * one + one / 2 + 5,
        negative | (top * one + one / 2),
        negative | (top * one + one - 1),
    ]);
    values
}

struct Operand {
    bytes: usize,
    values: Vec<u64>,
}

/// Combinations of values at which ops go wrong.
pub struct Boundary {
    layout: Layout,
    operands: Vec<Operand>,
}

impl Boundary {
    /// Of the operands of an op; `more` has values of its own, by operand.
    #[must_use]
    pub fn of(layout: &Layout, more: &[Vec<Vec<u8>>]) -> Boundary {
        let operand = |(i, unit): (usize, Unit)| {
            let mut all = values(unit);
            for bytes in more.get(i).into_iter().flatten() {
                let mut value = [0; 8];
                value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                all.push(u64::from_le_bytes(value));
            }
            Operand { bytes: unit.bytes as usize, values: unique(all) }
        };
        Boundary { layout: layout.clone(), operands: layout.units().enumerate().map(operand).collect() }
    }

    fn combinations(&self) -> Option<u64> {
        let product = self.operands.iter().try_fold(1_u64, |all, operand| all.checked_mul(operand.values.len() as u64));
        product.filter(|all| *all <= MOST_COMBINATIONS)
    }

    /// Every two operands.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.operands.len();
        (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
    }

    fn pair_cases(&self, (i, j): (usize, usize)) -> u64 {
        self.operands[i].values.len() as u64 * self.operands[j].values.len() as u64
    }

    fn longest(&self) -> u64 {
        self.operands.iter().map(|operand| operand.values.len() as u64).max().unwrap_or(1)
    }

    /// Which value each operand has in case `n`, if a case has one unit of each.
    fn choose(&self, n: u64, chosen: &mut [u64]) {
        let lengths = || self.operands.iter().map(|operand| operand.values.len() as u64);
        let mut rest = n;
        if self.combinations().is_some() {
            for (chosen, length) in chosen.iter_mut().zip(lengths()) {
                *chosen = rest % length;
                rest /= length;
            }
            return;
        }
        for (k, (chosen, length)) in chosen.iter_mut().zip(lengths()).enumerate() {
            *chosen = mix(n ^ (k as u64) << 56) % length;
        }
        for (i, j) in self.pairs() {
            let cases = self.pair_cases((i, j));
            if rest < cases {
                let length = self.operands[i].values.len() as u64;
                (chosen[i], chosen[j]) = (rest % length, rest / length);
                return;
            }
            rest -= cases;
        }
    }
}

impl Space for Boundary {
    fn name(&self) -> &str {
        "boundary"
    }

    fn cases(&self, workgroup: u32) -> u64 {
        if self.layout.counts(workgroup).iter().any(|count| *count != 1) {
            return ROUNDS * self.longest();
        }
        self.combinations().unwrap_or_else(|| self.pairs().map(|pair| self.pair_cases(pair)).sum())
    }

    fn evidence(&self) -> Evidence {
        Evidence::Boundary
    }

    fn fill(&self, draw: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]) {
        let counts = self.layout.counts(draw.workgroup);
        if counts.iter().all(|count| *count == 1) {
            let mut chosen = vec![0; self.operands.len()];
            for n in cases {
                self.choose(n, &mut chosen);
                for ((operand, column), chosen) in self.operands.iter().zip(&mut *columns).zip(&chosen) {
                    column.extend(&operand.values[*chosen as usize].to_le_bytes()[..operand.bytes]);
                }
            }
            return;
        }
        let longest = self.longest();
        for (k, ((operand, column), count)) in self.operands.iter().zip(columns).zip(counts).enumerate() {
            for n in cases.clone() {
                let (round, step) = (n / longest, n % longest);
                for unit in 0..u64::from(count) {
                    let offset = match round {
                        0 => 0,
                        1 => unit,
                        _ => mix(round << 48 ^ (k as u64) << 40 ^ unit) >> 32,
                    };
                    let value = operand.values[((step + offset) % operand.values.len() as u64) as usize];
                    column.extend(&value.to_le_bytes()[..operand.bytes]);
                }
            }
        }
    }
}
