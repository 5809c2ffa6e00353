//! FNV-1a.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL_32: Template = Template::new(include_str!("../../kernels/fnv1a32.vyre"));
static KERNEL_64: Template = Template::new(include_str!("../../kernels/fnv1a64.vyre"));

/// FNV-1a with 32 bits, of messages of `bytes` bytes each.
///
/// | buffer | | |
/// |---|---|---|
/// | `messages` @0 | read u8 | one message after the other |
/// | `hashes` @1 | output u32 | one for each message |
///
/// Launch: an invocation for each message. One multiplication a byte.
#[must_use]
pub fn fnv1a_32(workgroup: [u32; 3], bytes: u32) -> Program {
    KERNEL_32.program(workgroup, &[("bytes", SpecValue::U32(bytes))])
}

/// FNV-1a with 64 bits, of messages of `bytes` bytes each.
///
/// | buffer | | |
/// |---|---|---|
/// | `messages` @0 | read u8 | one message after the other |
/// | `hashes` @1 | output u64 | one for each message |
///
/// Launch: an invocation for each message. One multiplication a byte.
#[must_use]
pub fn fnv1a_64(workgroup: [u32; 3], bytes: u32) -> Program {
    KERNEL_64.program(workgroup, &[("bytes", SpecValue::U32(bytes))])
}

/// FNV-1a of a message, with the prime taken apart into powers of two.
#[must_use]
pub fn fnv1a_32_on_cpu(message: &[u8]) -> u32 {
    message.iter().fold(0x811C_9DC5, |hash, byte| {
        let hash = hash ^ u32::from(*byte);
        [1, 4, 7, 8, 24].iter().fold(hash, |sum: u32, shift| sum.wrapping_add(hash << shift))
    })
}

/// FNV-1a of a message with 64 bits, with the prime taken apart into powers of two.
#[must_use]
pub fn fnv1a_64_on_cpu(message: &[u8]) -> u64 {
    message.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        let hash = hash ^ u64::from(*byte);
        [1, 4, 5, 7, 8, 40].iter().fold(hash, |sum: u64, shift| sum.wrapping_add(hash << shift))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test suite of the authors.
    #[test]
    fn published_values() {
        assert_eq!(fnv1a_32_on_cpu(b""), 0x811C_9DC5);
        assert_eq!(fnv1a_32_on_cpu(b"a"), 0xE40C_292C);
        assert_eq!(fnv1a_32_on_cpu(b"foobar"), 0xBF9C_F968);
        assert_eq!(fnv1a_64_on_cpu(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a_64_on_cpu(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a_64_on_cpu(b"foobar"), 0x8594_4171_F739_67E8);
    }
}
