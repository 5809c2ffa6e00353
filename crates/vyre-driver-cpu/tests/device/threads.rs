//! Generated programs on 1, 2 and 7 threads, in both tiers. `VYRE_CPU_PROGRAMS=100000` takes so many.

use crate::{TIERS, dispatch, eager, generated, meaning, programs};
use std::sync::Arc;
use vyre_driver::VyreBackend;

const SEED: u64 = 0xC9;

#[test]
fn the_bytes_are_the_references_on_any_number_of_threads() {
    let devices: Vec<(u32, bool, Arc<dyn VyreBackend>)> =
        [1, 2, 7].into_iter().flat_map(|threads| TIERS.map(|portable| (threads, portable, eager(threads, portable)))).collect();
    for number in 0..programs(1500) {
        let case = generated(SEED, number);
        let expected = meaning(&case);
        for (threads, portable, device) in &devices {
            let found = dispatch(&**device, &case);
            assert!(
                found == expected,
                "program {number} of seed {SEED} on {threads} threads, portable: {portable}:\n{}\nexpected {expected:?}\nfound {found:?}",
                case.program
            );
        }
    }
}
