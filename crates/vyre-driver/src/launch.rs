//! A program's identity as devices take it.

use vyre_foundation::ir::Program;

/// The fingerprint as eight words, the first bytes first.
#[must_use]
pub fn program_vsa_fingerprint_words(program: &Program) -> [u32; 8] {
    let bytes = program.fingerprint();
    std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])))
}
