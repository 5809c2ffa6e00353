//! Random values, not uniform ones: strata by bit pattern and by exponent.
//!
//! Uniform bits hardly ever give a small integer, a float near one or a pair of equal operands. So each unit first draws a stratum, and
//! then its bits within that: `(random & and) ^ xor`, with masks from a table. Operands of one type are moreover related in three of
//! eight blocks of cases: equal, nearly equal, or nearly opposite, which is where sums cancel and comparisons turn over.
//!
//! The generator counts: unit i of a column is a hash of (seed, column, i), so that any case can be made by itself.

use super::layout::{Kind, Layout, Unit};
use super::{Draw, Evidence, Space};
use std::ops::Range;

/// A bijection of 64 bits without visible structure (the finaliser of SplitMix64).
#[must_use]
pub const fn mix(seed: u64) -> u64 {
    let a = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let b = (a ^ a >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ b >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ c >> 31
}

/// Random bits by number: the generator wyrand, whose state is a counter. Half the work of [`mix`].
#[inline]
const fn draw(key: u64, number: u64) -> u64 {
    let state = key.wrapping_add(number.wrapping_mul(0xA076_1D64_78BD_642F));
    let product = state as u128 * (state ^ 0xE703_7ED1_A0B4_28DB) as u128;
    (product >> 64) as u64 ^ product as u64
}

/// Cases in a row whose operands are related in the same way.
const BLOCK: u64 = 64;

/// What is kept of random bits, and what is flipped then.
#[derive(Clone, Copy)]
struct Stratum {
    and: u64,
    xor: u64,
}

type Strata = [Stratum; 64];

fn strata(unit: Unit) -> Strata {
    let width = unit.bytes * 8;
    let mask = u64::MAX >> (64 - width);
    let sign = 1 << (width - 1);
    let low = |bits: u32| if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
    let stratum = |i: u32| -> Stratum {
        let all = Stratum { and: mask, xor: 0 };
        match unit.kind {
            Kind::Nibbles => all,
            // As most programs write them, and any bits.
            Kind::Bool => Stratum { and: if i < 48 { 1 } else { mask << (i % 16 * 2) & mask }, xor: 0 },
            Kind::Int { .. } => match i {
                0..16 => all,
                // Small ones, and as much below 0, below the largest and above the smallest.
                16..48 => {
                    Stratum { and: low(1 + (i - 16) % 16 * (width - 1) / 16), xor: [0, mask, sign - 1, sign][i as usize % 4] }
                }
                // Few bits at the top, and one byte anywhere.
                48..56 => Stratum { and: mask & !low(width - 1 - i % 8 * (width - 1) / 8), xor: 0 },
                _ => Stratum { and: 0xFF << (i % (width / 8) * 8), xor: [0, mask][i as usize % 2] },
            },
            Kind::Float { exponent } => {
                let mantissa = width - 1 - exponent;
                let one = low(exponent - 1) << mantissa;
                let outside = sign | low(mantissa);
                let keep = |bits: u32| outside | low(bits) << mantissa;
                match i {
                    0..16 => all,
                    // About one, nearer and nearer: below it and above.
                    16..24 => Stratum { and: keep(i % 4), xor: one & !(low(i % 4) << mantissa) },
                    24..32 => Stratum {
                        and: keep(i % 4),
                        xor: (one & !(low(i % 4) << mantissa)).wrapping_add(1 << (mantissa + i % 4)) & !sign,
                    },
                    // Few digits.
                    32..44 => Stratum { and: mask & !low(mantissa - (i - 32) % mantissa.min(12)), xor: 0 },
                    // Tiny and huge.
                    44..48 => Stratum { and: keep(i % 4), xor: 0 },
                    48..52 => Stratum { and: keep(i % 4), xor: (low(exponent) & !low(i % 4)) << mantissa },
                    // All digits one but the last few; none but the last few.
                    52..58 => Stratum { and: sign | low(exponent) << mantissa | low(i % 3), xor: low(mantissa) },
                    _ => Stratum { and: sign | low(exponent) << mantissa | low(i % 3), xor: 0 },
                }
            }
        }
    };
    std::array::from_fn(|i| stratum(i as u32))
}

/// How the operand of a block of cases comes from an earlier one of the same type.
#[derive(Clone, Copy)]
enum Relation {
    Unrelated,
    /// Equal but for these bits, of which some are flipped at random, and for those that always are.
    Near {
        some: u64,
        always: u64,
    },
}

/// Random values by strata, without end.
pub struct Sampled {
    layout: Layout,
    columns: Vec<Column>,
}

struct Column {
    unit: Unit,
    strata: Strata,
    /// The first column of the same type.
    like: Option<usize>,
}

impl Sampled {
    /// Of the operands of an op.
    #[must_use]
    pub fn of(layout: &Layout) -> Sampled {
        let units: Vec<Unit> = layout.units().collect();
        let column = |(k, unit): (usize, &Unit)| {
            let like = units[..k].iter().position(|other| other == unit && unit.kind != Kind::Nibbles);
            Column { unit: *unit, strata: strata(*unit), like }
        };
        Sampled { layout: layout.clone(), columns: units.iter().enumerate().map(column).collect() }
    }

    fn key(seed: u64, column: usize) -> u64 {
        mix(seed ^ mix(column as u64 + 1))
    }

    /// The unit with this number.
    #[inline]
    fn unit<const BYTES: usize>(strata: &Strata, key: u64, number: u64) -> u64 {
        let random = draw(key, number);
        // The bits that the unit leaves over, if there are such.
        let spare = if BYTES < 8 { random } else { random.wrapping_mul(0xD6E8_FEB8_6659_FD93) };
        let stratum = strata[(spare >> 58) as usize];
        random & stratum.and ^ stratum.xor
    }

    fn relation(unit: Unit, key: u64, block: u64) -> Relation {
        let sign = 1 << (unit.bytes * 8 - 1);
        match mix(key.rotate_left(32) ^ block) & 7 {
            0 => Relation::Near { some: 0, always: 0 },
            1 => Relation::Near { some: 3, always: 0 },
            2 => Relation::Near { some: 1, always: sign },
            _ => Relation::Unrelated,
        }
    }

    /// Puts units `numbers` of a column behind what it holds.
    fn fill_column<const BYTES: usize>(&self, k: usize, seed: u64, numbers: Range<u64>, column: &mut Vec<u8>) {
        let this = &self.columns[k];
        let key = Sampled::key(seed, k);
        let start = column.len();
        column.resize(start + (numbers.end - numbers.start) as usize * BYTES, 0);
        let mut rest = column[start..].as_chunks_mut::<BYTES>().0;
        let mut first = numbers.start;
        while !rest.is_empty() {
            let count = (BLOCK - first % BLOCK).min(rest.len() as u64) as usize;
            let (block, behind) = rest.split_at_mut(count);
            let related = this.like.map_or(Relation::Unrelated, |_| Sampled::relation(this.unit, key, first / BLOCK));
            match (this.like, related) {
                (Some(like), Relation::Near { some, always }) => {
                    let like_key = Sampled::key(seed, like);
                    for (i, to) in block.iter_mut().enumerate() {
                        let number = first.wrapping_add(i as u64);
                        let value = Sampled::unit::<BYTES>(&this.strata, like_key, number) ^ draw(key, number) & some ^ always;
                        to.copy_from_slice(&value.to_le_bytes()[..BYTES]);
                    }
                }
                (None, _) | (Some(_), Relation::Unrelated) => {
                    for (i, to) in block.iter_mut().enumerate() {
                        let number = first.wrapping_add(i as u64);
                        to.copy_from_slice(&Sampled::unit::<BYTES>(&this.strata, key, number).to_le_bytes()[..BYTES]);
                    }
                }
            }
            (rest, first) = (behind, first + count as u64);
        }
    }
}

impl Space for Sampled {
    fn name(&self) -> &str {
        "sampled"
    }

    /// As many as anyone will run.
    fn cases(&self, _: u32) -> u64 {
        1 << 40
    }

    fn evidence(&self) -> Evidence {
        Evidence::Sampled
    }

    fn fill(&self, draw: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]) {
        for (k, (column, count)) in columns.iter_mut().zip(self.layout.counts(draw.workgroup)).enumerate() {
            let numbers = cases.start * u64::from(count)..cases.end * u64::from(count);
            match self.columns[k].unit.bytes {
                1 => self.fill_column::<1>(k, draw.seed, numbers, column),
                2 => self.fill_column::<2>(k, draw.seed, numbers, column),
                4 => self.fill_column::<4>(k, draw.seed, numbers, column),
                _ => self.fill_column::<8>(k, draw.seed, numbers, column),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case is the same whether it comes alone or among others, and another one under another seed.
    #[test]
    fn cases_come_from_their_numbers() {
        let specs = crate::suite::elementwise();
        for id in ["ops.float.fma:f32", "ops.int.add:u64", "memory.load:i4", "memory.load:vec3<f32>", "memory.store:u8"] {
            let spec = specs.iter().find(|spec| spec.id() == id).expect("a spec");
            for space in crate::space::derived(spec) {
                let fill = |seed: u64, cases: Range<u64>| {
                    let mut columns = vec![vec![0xEE]; spec.signature().inputs.len()];
                    space.fill(Draw { seed, workgroup: 64 }, cases, &mut columns);
                    columns
                };
                let count = space.cases(64).min(300);
                let (all, other) = (fill(7, 0..count), fill(8, 0..count));
                assert_eq!(all != other, space.evidence() == Evidence::Sampled, "{id} {}", space.name());
                for (k, column) in all.iter().enumerate() {
                    let each = (column.len() - 1) / count as usize;
                    for n in [0, 1, 63, 64, count - 1] {
                        assert_eq!(
                            fill(7, n..n + 1)[k][1..],
                            column[1 + n as usize * each..][..each],
                            "{id} {} {n}",
                            space.name()
                        );
                    }
                }
            }
        }
    }

    /// Of a hundred thousand floats some are in every class, and some pairs cancel.
    #[test]
    fn samples_reach_every_class_of_float() {
        let specs = crate::suite::elementwise();
        let spec = specs.iter().find(|spec| spec.id() == "ops.float.sub:f32").expect("a spec");
        let mut columns = vec![Vec::new(); 2];
        Sampled::of(&Layout::of(spec).expect("elements")).fill(Draw { seed: 1, workgroup: 64 }, 0..100_000, &mut columns);
        let floats = |k: usize| columns[k].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<_>>();
        let (a, b) = (floats(0), floats(1));
        let count = |holds: fn(&(&f32, &f32)) -> bool| a.iter().zip(&b).filter(holds).count();
        let classes = [
            ("subnormal", count(|(a, _)| a.is_subnormal())),
            ("NaN", count(|(a, _)| a.is_nan())),
            ("near one", count(|(a, _)| (0.5..2.0).contains(&a.abs()))),
            ("huge", count(|(a, _)| a.abs() > 1e37 && a.is_finite())),
            ("whole", count(|(a, _)| a.abs() > 1.0 && a.abs() < 1e6 && a.fract() == 0.0)),
            ("equal", count(|(a, b)| a == b)),
            ("nearly equal", count(|(a, b)| a != b && (*a - *b).abs() < a.abs() * 1e-6)),
            ("nearly opposite", count(|(a, b)| (*a + *b).abs() < a.abs() * 1e-6)),
        ];
        for (class, cases) in classes {
            assert!(cases > 500, "{cases} cases are {class}");
        }
    }
}
