//! Philox.

use crate::template::Template;
use vyre_foundation::ir::Program;

static KERNEL: Template = Template::new(include_str!("../../kernels/philox.vyre"));

/// Philox 4x32-10: four random words from a counter and a key, without a state.
///
/// | buffer | | |
/// |---|---|---|
/// | `counters` @0 | read vec4\<u32\> | |
/// | `keys` @1 | read vec2\<u32\> | one for each counter |
/// | `words` @2 | output vec4\<u32\> | those of each counter |
///
/// Launch: an invocation for each counter. 40 multiplications each.
#[must_use]
pub fn philox(workgroup: [u32; 3]) -> Program {
    KERNEL.program(workgroup, &[])
}

/// Philox 4x32-10 of a counter and a key, with products of 64 bits.
#[must_use]
pub fn philox_on_cpu(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    (0..10u32).fold(counter, |[a, b, c, d], round| {
        let first = u64::from(a) * 0xD251_1F53;
        let second = u64::from(c) * 0xCD9E_8D57;
        let k = key[0].wrapping_add(round.wrapping_mul(0x9E37_79B9));
        let l = key[1].wrapping_add(round.wrapping_mul(0xBB67_AE85));
        [(second >> 32) as u32 ^ b ^ k, second as u32, (first >> 32) as u32 ^ d ^ l, first as u32]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of Random123.
    #[test]
    fn published_values() {
        assert_eq!(philox_on_cpu([0; 4], [0; 2]), [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
        assert_eq!(philox_on_cpu([u32::MAX; 4], [u32::MAX; 2]), [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]);
        let pi = philox_on_cpu([0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344], [0xA409_3822, 0x299F_31D0]);
        assert_eq!(pi, [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1]);
    }
}
