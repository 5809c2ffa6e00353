//! The words that the library reads at run time: what is too long to be written into code.

use vyre_spec::nibble;

/// Where the values of E2M1 nibbles start in the table.
pub(super) const FP4: usize = 0;
/// Where the values of NormalFloat nibbles start.
pub(super) const NF4: usize = FP4 + nibble::FP4.len();
const LEN: usize = NF4 + nibble::NF4.len();

const TABLE: [u32; LEN] = {
    let mut words = [0; LEN];
    let mut i = 0;
    while i < nibble::FP4.len() {
        words[FP4 + i] = nibble::FP4[i];
        words[NF4 + i] = nibble::NF4[i];
        i += 1;
    }
    words
};

/// The words that `vy_table` indexes.
#[must_use]
pub fn table() -> &'static [u32] {
    &TABLE
}
