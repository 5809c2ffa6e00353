//! Tables by keys that are a few small numbers: ops over values, loads, literals.
//!
//! The standard hash costs more than everything else that a pass does with an op. This one multiplies every word of the key into its
//! state and folds the two halves of the product. It starts from a number that is drawn once per process, so that nobody can write a
//! program all of whose literals meet in one bucket. The order of such a table is nobody's business: they are asked, never walked.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// A table by a few small numbers.
pub(crate) type Table<K, V> = HashMap<K, V, Seed>;

/// What hashes start from.
#[derive(Clone, Copy)]
pub(crate) struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        static DRAWN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        Seed(*DRAWN)
    }
}

impl BuildHasher for Seed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// A hash so far.
pub(crate) struct Folded(u64);

impl Folded {
    fn mix(&mut self, word: u64) {
        // Odd, with bits all over: the fraction of the golden ratio.
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// How many different values some bits of the hashes of numbers have.
    fn different(keys: impl Iterator<Item = (u32, u64)>, bits: impl Fn(u64) -> u64) -> usize {
        let seed = Seed::default();
        keys.map(|key| bits(seed.hash_one(key))).collect::<HashSet<u64>>().len()
    }

    #[test]
    fn keys_that_look_alike_are_spread() {
        // Of 2^16 throws into 2^16 places about 63 % of the places are met.
        let pairs = || (0..1u32 << 8).flat_map(|a| (0..1u64 << 8).map(move |b| (a, b)));
        let floats = || (0..1u64 << 16).map(|n| (7, n << 48));
        let steps = || (0..1u64 << 16).map(|n| (7, n * 4096));
        for (what, low, high, all) in [
            ("pairs", different(pairs(), |h| h & 0xFFFF), different(pairs(), |h| h >> 48), different(pairs(), |h| h)),
            ("floats", different(floats(), |h| h & 0xFFFF), different(floats(), |h| h >> 48), different(floats(), |h| h)),
            ("steps", different(steps(), |h| h & 0xFFFF), different(steps(), |h| h >> 48), different(steps(), |h| h)),
        ] {
            assert!(low > 36_000 && high > 36_000 && all == 1 << 16, "{what}: {low} low, {high} high, {all} of 65536");
        }
    }
}
