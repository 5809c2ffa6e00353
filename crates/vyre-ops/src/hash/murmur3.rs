//! MurmurHash3.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../../kernels/murmur3.vyre"));

/// MurmurHash3_x86_32 of messages of `bytes` bytes each.
///
/// | buffer | | |
/// |---|---|---|
/// | `messages` @0 | read u8 | one message after the other |
/// | `seeds` @1 | read u32 | one for each message |
/// | `hashes` @2 | output u32 | one for each message |
///
/// Launch: an invocation for each message. Three multiplications for four bytes.
#[must_use]
pub fn murmur3(workgroup: [u32; 3], bytes: u32) -> Program {
    KERNEL.program(workgroup, &[("bytes", SpecValue::U32(bytes))])
}

/// MurmurHash3_x86_32 of a message.
#[must_use]
pub fn murmur3_on_cpu(message: &[u8], seed: u32) -> u32 {
    let scrambled = |block: &[u8]| {
        let word = block.iter().rev().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
        word.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
    };
    let blocks = message.chunks_exact(4);
    let tail = scrambled(blocks.remainder());
    let hash =
        blocks.fold(seed, |hash, block| (hash ^ scrambled(block)).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64));
    let mut hash = hash ^ tail ^ message.len() as u32;
    for (shift, factor) in [(16, 0x85EB_CA6B), (13, 0xC2B2_AE35), (16, 1)] {
        hash = (hash ^ hash >> shift).wrapping_mul(factor);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        assert_eq!(murmur3_on_cpu(b"", 0), 0);
        assert_eq!(murmur3_on_cpu(b"", 1), 0x514E_28B7);
        assert_eq!(murmur3_on_cpu(b"", 0xFFFF_FFFF), 0x81F1_6F39);
        assert_eq!(murmur3_on_cpu(&[0x21, 0x43, 0x65, 0x87], 0), 0xF55B_516B);
        assert_eq!(murmur3_on_cpu(&[0x21, 0x43, 0x65], 0), 0x7E4A_8634);
        assert_eq!(murmur3_on_cpu(b"test", 0x9747_B28C), 0x704B_81DC);
    }

    /// How SMHasher knows an implementation: the hash of the hashes of 256 messages with as many seeds.
    #[test]
    fn verification_value() {
        let bytes: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256).flat_map(|n| murmur3_on_cpu(&bytes[..n], 256 - n as u32).to_le_bytes()).collect();
        assert_eq!(murmur3_on_cpu(&hashes, 0), 0xB0F5_7EE3);
    }
}
