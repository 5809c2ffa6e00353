//! Hashes and checksums of many messages at once, one invocation a message.

mod crc32;
mod fnv1a;
mod murmur3;
mod sha256;
mod siphash;

pub use crc32::{crc32, crc32_on_cpu};
pub use fnv1a::{fnv1a_32, fnv1a_32_on_cpu, fnv1a_64, fnv1a_64_on_cpu};
pub use murmur3::{murmur3, murmur3_on_cpu};
pub use sha256::{sha256, sha256_on_cpu};
pub use siphash::{siphash_2_4, siphash_2_4_on_cpu};
