//! Operands: boundary values in all pairs first, then random patterns of the kinds that arithmetic goes wrong on.

use super::library::FloatOp;
use std::collections::BTreeSet;
use vyre_spec::FloatMode;

/// Where formats, integers and roundings begin and end, each with its neighbours and of both signs.
const EDGES: [u32; 26] = [
    0x0000_0000, // zero, the smallest subnormal
    0x0080_0000, // the largest subnormal, the smallest normal number
    0x0100_0000,
    0x3300_0000, // 2^-25
    0x3380_0000,
    0x3400_0000, // the last place of 1
    0x3700_0000, // the smallest e5m2
    0x3A80_0000, // the smallest e4m3
    0x3C00_0000,
    0x3F00_0000, // a half
    0x3F80_0000, // one
    0x3FC0_0000,
    0x4000_0000,
    0x4020_0000, // 2.5
    0x4060_0000, // 3.5
    0x43E0_0000, // 448
    0x4760_0000, // 57344
    0x477F_E000, // 65504
    0x4B00_0000, // 2^23
    0x4B80_0000, // 2^24
    0x4F00_0000, // 2^31
    0x4F80_0000, // 2^32
    0x5F00_0000, // 2^63
    0x5F80_0000, // 2^64
    0x7F00_0000,
    0x7F80_0000, // infinity; its neighbour above is a NaN
];

/// Fewer of them: the values on which devices differ.
const FEW: [u32; 27] = [
    0x0000_0000,
    0x0000_0001,
    0x0040_0000,
    0x007F_FFFF,
    0x0080_0000,
    0x0080_0001,
    0x0100_0000,
    0x1F80_0000, // 2^-64
    0x3380_0000,
    0x3400_0000,
    0x3EAA_AAAB, // 1/3
    0x3F00_0000,
    0x3F7F_FFFF,
    0x3F80_0000,
    0x3F80_0001,
    0x3FC0_0000,
    0x3FFF_FFFF,
    0x4000_0000,
    0x4040_0000,
    0x4B7F_FFFF,
    0x4B80_0000,
    0x5F80_0000, // 2^64
    0x7F00_0000,
    0x7F7F_FFFF,
    0x7F80_0000,
    0x7F80_0001,
    0x7FC0_0000,
];

/// A stream of patterns, so many words a case, always the same one.
#[derive(Clone, Debug)]
pub struct Samples {
    words: usize,
    edges: Vec<u32>,
    position: u64,
    random: u64,
}

impl Samples {
    /// Cases of one to three words, with many boundary values.
    #[must_use]
    pub fn many(words: usize) -> Samples {
        let mut edges: Vec<u32> = EDGES.iter().flat_map(|edge| [edge.wrapping_sub(1), *edge, edge + 1]).collect();
        edges.extend([0xFFFF_FFFF, 0x7FC0_0000, 0x7FFF_FFFF, 0x8000_0001, 0xFF80_0001, 0x4049_0FDB, 0x3EAA_AAAB]);
        edges.sort_unstable();
        edges.dedup();
        Samples::of(words, &edges)
    }

    /// Cases of one to three words, with few boundary values.
    #[must_use]
    pub fn few(words: usize) -> Samples {
        Samples::of(words, &FEW)
    }

    fn of(words: usize, edges: &[u32]) -> Samples {
        let edges: BTreeSet<u32> = edges.iter().flat_map(|edge| [*edge, edge ^ 0x8000_0000]).collect();
        Samples { words, edges: edges.into_iter().collect(), position: 0, random: 0x9E37_79B9_7F4A_7C15 }
    }

    /// The next cases as operands of an op, side by side.
    #[must_use]
    pub fn operands(&mut self, op: FloatOp, mode: FloatMode, cases: usize) -> Vec<u32> {
        let patterns = self.patterns(cases);
        patterns.into_iter().map(|pattern| op.operand(mode, pattern)).collect()
    }

    /// The next cases, side by side.
    #[must_use]
    pub fn patterns(&mut self, cases: usize) -> Vec<u32> {
        let mut patterns = Vec::with_capacity(cases * self.words);
        for _ in 0..cases {
            patterns.extend(&self.case()[..self.words]);
            self.position += 1;
        }
        patterns
    }

    fn next(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u32
    }

    fn case(&mut self) -> [u32; 3] {
        let edges = self.edges.len() as u64;
        let place = self.position;
        if place < edges.pow(self.words.min(2) as u32) {
            // All triples would be too many: the third goes its own way.
            return [place % edges, place / edges % edges, (place * 7 + place / edges * 3) % edges]
                .map(|index| self.edges[index as usize]);
        }
        let [a, b, c, kind] = [(); 4].map(|()| self.next());
        // A number whose exponent is off by up to 64 from another's, and one with few bits.
        let near =
            |x: u32, shift: u32| (x.wrapping_add((shift % 129) << 23).wrapping_sub(64 << 23)) & 0x7FFF_FFFF | shift & 1 << 31;
        let sparse = |x: u32, y: u32| x & 0xFF80_0000 | (x & y & 0x007F_FFFF);
        match kind % 9 {
            0 | 1 => [a, b, c],
            2 => [a, near(b & 0x007F_FFFF | a & 0x7F80_0000, kind >> 3), near(c & 0x007F_FFFF | a & 0x7F80_0000, kind >> 11)],
            3 => [sparse(a, b), sparse(b, c), sparse(c, a)],
            // Few bits, a power of two further down: ties, also of conversions to narrower formats.
            8 => [a, b, c].map(|x| (x & (u32::MAX << (10 + (kind >> 8) % 14))) | (1 << ((kind >> 8) % 24))),
            // Close together, so that sums cancel.
            4 => [a, a ^ 0x8000_0000 ^ (b & 0xF), a ^ (c & 0x8000_001F)],
            // An addend near the product.
            5 => {
                let product = (f32::from_bits(a) * f32::from_bits(b)).to_bits();
                [a, b, product ^ 0x8000_0000 ^ (c & 0x3F)]
            }
            // Around 1, whose products and quotients are near ties and ends.
            6 => [0x3F80_0000 ^ (a & 0x8100_FFFF), 0x3F80_0000 ^ (b & 0x8180_FFFF), c & 0x81FF_FFFF],
            // Products and quotients near the smallest numbers.
            _ => [a & 0x807F_FFFF | (40 + (a >> 24) % 60) << 23, b & 0x807F_FFFF | ((a >> 24) % 90) << 23, c & 0x80FF_FFFF],
        }
    }
}
