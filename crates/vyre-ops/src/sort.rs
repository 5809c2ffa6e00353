//! Sorting whole buffers, and the largest elements of rows.

use crate::template::{Template, in_a_row, part};
use vyre_foundation::ir::{Expr, Node, Program, SpecValue};
use vyre_foundation::memory_model::MemoryOrdering;

static SORT: Template = Template::new(include_str!("../kernels/radix_sort.vyre"));
static TOP_K: Template = Template::new(include_str!("../kernels/top_k.vyre"));

/// Bits of a digit.
const DIGIT: u32 = 4;
/// Digits of a key. Even, so that the keys end where they began.
const PASSES: u32 = u32::BITS / DIGIT;
/// Invocations of a workgroup that have keys; each takes a counter for every digit.
const MAX_LANES: u32 = 256;

/// Sorts words, the smallest first.
///
/// | buffer | | |
/// |---|---|---|
/// | `keys` @0 | read_write u32 | |
/// | `spare` @1 | output u32 | as long as `keys`; at the end it has them in the order of their lower 28 bits, equal ones as they were |
/// | `counts` @2 | output u32, 1024 elements | zero at the end |
///
/// Launch: any grid along x, of which 64 workgroups have work. Radix sort from the lowest digit of four bits to the highest: eight
/// passes, each of which reads the keys three times and writes them once. 24 grid barriers, 16 KiB of workgroup memory at most beside
/// one word for each invocation.
#[must_use]
pub fn radix_sort(workgroup: [u32; 3]) -> Program {
    let lanes = in_a_row(workgroup).min(MAX_LANES);
    let values = [("lanes", SpecValue::U32(lanes)), ("cells_of_all", SpecValue::U32(lanes << DIGIT))];
    SORT.program(workgroup, &values)
}

/// One pass after the other, from the keys to the spare memory and back.
pub(crate) fn radix_passes() -> Vec<Node> {
    let mut nodes = Vec::new();
    for pass in 0..PASSES {
        let names = if pass % 2 == 0 { [("from", "keys"), ("to", "spare")] } else { [("from", "spare"), ("to", "keys")] };
        if pass > 0 {
            nodes.push(Node::barrier_with_ordering(MemoryOrdering::GridSync));
        }
        let mut body = vec![Node::let_bind("shift", Expr::u32(pass * DIGIT))];
        body.extend(part("radix pass", &names));
        nodes.push(Node::region("radix pass", body));
    }
    nodes
}

/// What [`radix_sort`] gives: the keys sorted, and the spare memory.
#[must_use]
pub fn radix_sort_on_cpu(keys: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut sorted, mut spare) = (keys.to_vec(), keys.to_vec());
    sorted.sort_unstable();
    spare.sort_by_key(|key| key & 0x0FFF_FFFF);
    (sorted, spare)
}

/// The `k` largest elements of rows of `columns` elements each, the largest first, of equal ones the first first.
///
/// | buffer | | |
/// |---|---|---|
/// | `x` @0 | read u32 | one row after the other |
/// | `values` @1 | output u32 | `k` for each row; zeros behind those of a shorter row |
/// | `indices` @2 | output u32 | `k` for each row: the columns that they were in |
///
/// Launch: a workgroup for each row. The smallest of the largest is found by its digits, eight bits at a time, in four passes over the
/// row; a fifth collects what is chosen, and its order takes k² comparisons. 1 KiB and 8 bytes for each of the `k` in workgroup memory.
#[must_use]
pub fn top_k(workgroup: [u32; 3], columns: u32, k: u32) -> Program {
    TOP_K.program(workgroup, &[("columns", SpecValue::U32(columns)), ("k", SpecValue::U32(k))])
}

/// What [`top_k`] gives for one row: values and columns.
#[must_use]
pub fn top_k_on_cpu(row: &[u32], k: usize) -> (Vec<u32>, Vec<u32>) {
    let mut all: Vec<(u32, u32)> = row.iter().zip(0..).map(|(value, column)| (*value, column)).collect();
    all.sort_by_key(|(value, _)| std::cmp::Reverse(*value));
    all.resize(k, (0, 0));
    all.into_iter().unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        let keys = [0x7000_0001, 5, u32::MAX, 0x6000_0001];
        let spare = vec![0x7000_0001, 0x6000_0001, 5, u32::MAX];
        assert_eq!(radix_sort_on_cpu(&keys), (vec![5, 0x6000_0001, 0x7000_0001, u32::MAX], spare));
        assert_eq!(top_k_on_cpu(&[4, 9, 4, 7], 3), (vec![9, 7, 4], vec![1, 3, 0]));
        assert_eq!(top_k_on_cpu(&[4], 3), (vec![4, 0, 0], vec![0, 0, 0]));
    }
}
