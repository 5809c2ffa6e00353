//! PCG.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../../kernels/pcg32.vyre"));

/// PCG32 (XSH-RR 64/32): the first `draws` words of each of many generators.
///
/// | buffer | | |
/// |---|---|---|
/// | `seeds` @0 | read u64 | `initstate` of each generator |
/// | `streams` @1 | read u64 | `initseq` of each generator |
/// | `words` @2 | output u32 | `draws` of each generator, one generator after the other |
///
/// Launch: an invocation for each generator. One 64-bit multiplication a word.
#[must_use]
pub fn pcg32(workgroup: [u32; 3], draws: u32) -> Program {
    KERNEL.program(workgroup, &[("draws", SpecValue::U32(draws))])
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// Word `n` of a generator, without those before it: the state is a linear function of that at the start, and n steps are log n squarings.
#[must_use]
pub fn pcg32_on_cpu(seed: u64, stream: u64, n: u64) -> u32 {
    let increment = stream.wrapping_mul(2).wrapping_add(1);
    // Seeding is a step from zero, which gives the increment, then the seed is added, then another step; and n more.
    let (factor, sum) = steps(n.wrapping_add(1), increment);
    let state = increment.wrapping_add(seed).wrapping_mul(factor).wrapping_add(sum);
    let (high, rotation) = (((state >> 18) ^ state) >> 27, (state >> 59) as u32);
    let word = high as u32;
    word >> rotation | word.checked_shl(32 - rotation).unwrap_or(0)
}

/// What `n` steps do to a state: multiply it by the first, add the second.
fn steps(n: u64, increment: u64) -> (u64, u64) {
    let (mut all, mut power) = ((1, 0), (MULTIPLIER, increment));
    for bit in 0..64 {
        if n >> bit & 1 == 1 {
            all = (power.0.wrapping_mul(all.0), power.0.wrapping_mul(all.1).wrapping_add(power.1));
        }
        power = (power.0.wrapping_mul(power.0), power.0.wrapping_add(1).wrapping_mul(power.1));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the demonstration program of the author prints first.
    #[test]
    fn published_values() {
        let words: Vec<u32> = (0..6).map(|n| pcg32_on_cpu(42, 54, n)).collect();
        assert_eq!(words, [0xA15C_02B7, 0x7B47_F409, 0xBA1D_3330, 0x83D2_F293, 0xBFA4_784B, 0xCBED_606E]);
    }
}
