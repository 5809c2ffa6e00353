//! CRC-32.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../../kernels/crc32.vyre"));

/// CRC-32 of messages of `bytes` bytes each: the checksum of zip, PNG and Ethernet, reflected polynomial EDB88320.
///
/// | buffer | | |
/// |---|---|---|
/// | `messages` @0 | read u8 | one message after the other |
/// | `sums` @1 | output u32 | one for each message |
///
/// Launch: an invocation for each message. 8 steps a byte, no table.
#[must_use]
pub fn crc32(workgroup: [u32; 3], bytes: u32) -> Program {
    KERNEL.program(workgroup, &[("bytes", SpecValue::U32(bytes))])
}

/// What every byte does to an empty checksum.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut bits = n as u32;
        let mut k = 0;
        while k < 8 {
            bits = if bits & 1 == 1 { bits >> 1 ^ 0xEDB8_8320 } else { bits >> 1 };
            k += 1;
        }
        table[n] = bits;
        n += 1;
    }
    table
};

/// CRC-32 of a message, byte by byte with a table.
#[must_use]
pub fn crc32_on_cpu(message: &[u8]) -> u32 {
    !message.iter().fold(u32::MAX, |crc, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogue of CRCs, and those that zlib gives.
    #[test]
    fn published_values() {
        assert_eq!(crc32_on_cpu(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32_on_cpu(b""), 0);
        assert_eq!(crc32_on_cpu(b"a"), 0xE8B7_BE43);
        assert_eq!(crc32_on_cpu(b"The quick brown fox jumps over the lazy dog"), 0x414F_A339);
    }
}
