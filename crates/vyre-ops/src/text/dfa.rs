//! Deterministic automata over bytes.

use crate::template::Template;
use vyre_foundation::ir::{Program, SpecValue};

static KERNEL: Template = Template::new(include_str!("../../kernels/dfa.vyre"));

/// The longest match of an automaton that begins at each byte of a text, up to `longest` bytes.
///
/// The automaton begins in state 1. In state s, byte b takes it to state `table[256 * s + b] % 2³¹`; if the highest bit is set, a match
/// ends with that byte. From state 0 there are no matches; an entry that the table does not have is 0. (Indices are
/// modulo 2³².)
///
/// | buffer | | |
/// |---|---|---|
/// | `table` @0 | read u32 | 256 entries for each state |
/// | `text` @1 | read u8 | |
/// | `lengths` @2 | output u32 | as long as `text`; 0 where no match begins |
///
/// Launch: an invocation for each byte of the text. As many steps as a match can go on.
#[must_use]
pub fn dfa_matches(workgroup: [u32; 3], longest: u32) -> Program {
    KERNEL.program(workgroup, &[("longest", SpecValue::U32(longest))])
}

/// What [`dfa_matches`] gives, in one pass over the text with all matches that are under way.
#[must_use]
pub fn dfa_matches_on_cpu(table: &[u32], text: &[u8], longest: u32) -> Vec<u32> {
    let mut lengths = vec![0; text.len()];
    let mut running: Vec<(usize, u32)> = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        running.push((at, 1));
        running.retain_mut(|(start, state)| {
            let length = (at - *start + 1) as u32;
            if length > longest {
                return false;
            }
            let index = state.wrapping_mul(256).wrapping_add(u32::from(*byte));
            let entry = table.get(index as usize).copied().unwrap_or(0);
            if entry >= 1 << 31 {
                lengths[*start] = length;
            }
            *state = entry % (1 << 31);
            *state != 0
        });
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An a, then any number of b.
    #[test]
    fn worked_out_by_hand() {
        let mut table = vec![0; 3 * 256];
        table[256 + usize::from(b'a')] = 2 | 1 << 31;
        table[512 + usize::from(b'b')] = 2 | 1 << 31;
        assert_eq!(dfa_matches_on_cpu(&table, b"abbxaab", 8), [3, 0, 0, 0, 1, 2, 0]);
        assert_eq!(dfa_matches_on_cpu(&table, b"abbxaab", 2), [2, 0, 0, 0, 1, 2, 0]);
    }
}
