//! SipHash.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../../kernels/siphash24.vyre"));

/// SipHash-2-4 of messages of `bytes` bytes each.
///
/// | buffer | | |
/// |---|---|---|
/// | `messages` @0 | read u8 | one message after the other |
/// | `keys` @1 | read u64 | two words for each message |
/// | `hashes` @2 | output u64 | one for each message |
///
/// Launch: an invocation for each message. Two rounds for eight bytes, and six more.
#[must_use]
pub fn siphash_2_4(workgroup: [u32; 3], bytes: u32) -> Program {
    KERNEL.program(workgroup, &[("bytes", SpecValue::U32(bytes))])
}

/// SipHash-2-4 of a message.
#[must_use]
pub fn siphash_2_4_on_cpu(message: &[u8], key: [u64; 2]) -> u64 {
    let mut padded = message.to_vec();
    padded.resize(message.len() / 8 * 8 + 7, 0);
    padded.push(message.len() as u8);
    let start: [u64; 4] = [b"somepseu", b"dorandom", b"lygenera", b"tedbytes"].map(|text| u64::from_be_bytes(*text));
    let mut v = [start[0] ^ key[0], start[1] ^ key[1], start[2] ^ key[0], start[3] ^ key[1]];
    for block in padded.chunks_exact(8) {
        let word = block.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        v[3] ^= word;
        v = round(round(v));
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    v = round(round(round(round(v))));
    v.iter().fold(0, |hash, word| hash ^ word)
}

fn round([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
    let (b, d) = (b.rotate_left(13) ^ a, d.rotate_left(16) ^ c);
    let (a, c) = (a.rotate_left(32).wrapping_add(d), c.wrapping_add(b));
    [a, b.rotate_left(17) ^ c, c.rotate_left(32), d.rotate_left(21) ^ a]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u64; 2] = [0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908];

    /// The example of the paper, and the first vectors of its reference implementation, as the bytes stand there.
    #[test]
    fn published_values() {
        let message: Vec<u8> = (0..64).collect();
        assert_eq!(siphash_2_4_on_cpu(&message[..15], KEY), 0xA129_CA61_49BE_45E5);
        let vectors = [
            0x310E_0EDD_47DB_6F72u64,
            0xFD67_DC93_C539_F874,
            0x5A4F_A9D9_0980_6C0D,
            0x2D7E_FBD7_9666_6785,
            0xB787_7127_E094_27CF,
            0x8DA6_99CD_6455_7618,
            0xCEE3_FE58_6E46_C9CB,
            0x37D1_018B_F500_02AB,
            0x6224_939A_79F5_F593,
        ];
        for (length, vector) in vectors.iter().enumerate() {
            assert_eq!(siphash_2_4_on_cpu(&message[..length], KEY), vector.swap_bytes(), "{length} bytes");
        }
    }

    /// The standard library has had this function too.
    #[test]
    #[expect(deprecated, reason = "it is SipHash-2-4 by that name only")]
    fn the_standard_library_agrees() {
        use std::hash::{Hasher, SipHasher};
        let message: Vec<u8> = (0..200u32).map(|n| (n * 37) as u8).collect();
        for length in 0..message.len() {
            let key = [(length as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15), !(length as u64)];
            let mut hasher = SipHasher::new_with_keys(key[0], key[1]);
            hasher.write(&message[..length]);
            assert_eq!(siphash_2_4_on_cpu(&message[..length], key), hasher.finish(), "{length} bytes");
        }
    }
}
