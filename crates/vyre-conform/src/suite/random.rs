//! Random numbers that cases are made from, and spaces of cases that are made one by one.

use crate::space::{Draw, Evidence, Space};
use std::ops::Range;

/// Random numbers of one case: SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    /// Those of case `n` under a seed.
    pub(crate) fn of_case(seed: u64, n: u64) -> Random {
        let mut random = Random(seed ^ 0x6A09_E667_F3BC_C908);
        random.0 ^= random.word().wrapping_add(n.wrapping_mul(0xD605_1C2F_9E3B_1D25));
        random
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.word() as u8).collect()
    }

    pub(crate) fn u32(&mut self) -> u32 {
        self.word() as u32
    }

    /// So many words, of one of the kinds at which integer algorithms go wrong.
    pub(crate) fn words(&mut self, n: usize) -> Vec<u32> {
        let (kind, value) = (self.below(8), self.u32());
        (0..n as u32)
            .map(|k| match kind {
                0 => value,
                1 => k,
                2 => u32::MAX - k,
                3 => [0, u32::MAX, 0x7FFF_FFFF, 0x8000_0000][self.below(4)],
                4 => self.below(3) as u32,
                5 => 1 << self.below(32),
                _ => self.u32(),
            })
            .collect()
    }

    /// So many floats, of one of the kinds at which sums go wrong; sometimes with what is not finite.
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        let kind = self.below(8);
        let moderate = |random: &mut Random| random.u32() as i32 as f32 / (1u32 << 28) as f32;
        let value = moderate(self);
        (0..n)
            .map(|k| match kind {
                0 => value,
                1 => k as f32 * 0.1,
                2 => [1e30, 1.0, -1e30, 1e-30][self.below(4)],
                3 => f32::from_bits(self.u32() & 0x80FF_FFFF),
                4 => [0.0, -0.0, f32::MIN_POSITIVE, 1.0][self.below(4)],
                5 => f32::from_bits(self.u32()),
                _ => moderate(self),
            })
            .collect()
    }

    /// One of so few flags that are set rarely, often or always.
    pub(crate) fn flags(&mut self, n: usize) -> Vec<u32> {
        let one_of = [1, 2, 40, 500, usize::MAX][self.below(5)];
        (0..n).map(|_| if self.below(one_of) == 0 { self.u32() | 1 } else { 0 }).collect()
    }

    /// A number of rows or columns: one, few, or some more; not more than `most`.
    pub(crate) fn extent(&mut self, most: usize) -> usize {
        let range = [1, most / 8, most][self.below(3)];
        1 + self.below(range.max(1))
    }

    /// A length around the edges of workgroups of this size, or any.
    pub(crate) fn length(&mut self, workgroup: u32) -> usize {
        let size = workgroup as usize;
        let groups = 1 + self.below(5);
        match self.below(8) {
            0 => self.below(3),
            1..=4 => (groups * size + self.below(3)).saturating_sub(1),
            _ => self.below(4 * size + 300),
        }
    }
}

/// The bytes of words.
pub(crate) fn of_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words in bytes.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Cases that are made one by one: the bytes of each input, from random numbers and the workgroup size.
pub(crate) struct Drawn<F> {
    pub(crate) cases: u64,
    pub(crate) make: F,
}

impl<F: Fn(&mut Random, u32) -> Vec<Vec<u8>> + Send + Sync> Space for Drawn<F> {
    fn name(&self) -> &str {
        "drawn"
    }

    fn cases(&self, _: u32) -> u64 {
        self.cases
    }

    fn evidence(&self) -> Evidence {
        Evidence::Sampled
    }

    fn fill(&self, draw: Draw, cases: Range<u64>, columns: &mut [Vec<u8>]) {
        for case in cases {
            let inputs = (self.make)(&mut Random::of_case(draw.seed, case), draw.workgroup);
            assert_eq!(inputs.len(), columns.len(), "a case has bytes of every input");
            columns.iter_mut().zip(inputs).for_each(|(column, bytes)| column.extend(bytes));
        }
    }
}
