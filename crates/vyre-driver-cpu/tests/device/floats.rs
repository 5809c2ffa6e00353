//! The float state of the process changes no byte, and is the caller's afterwards.

use crate::{TIERS, dispatch, eager, generated, meaning};
use vyre_driver::VyreBackend;
use vyre_foundation::case::Case;
use vyre_host_floats::hostile;

fn has_floats(case: &Case) -> bool {
    case.program.to_string().contains("f32")
}

#[test]
fn the_bytes_are_the_same_under_every_float_state() {
    let cases: Vec<(Case, crate::Outcome)> = (0..)
        .map(|number| generated(0xF1, number))
        .filter(has_floats)
        .take(60)
        .map(|case| (case.clone(), meaning(&case)))
        .collect();
    for portable in TIERS {
        for threads in [1, 3] {
            let device = eager(threads, portable);
            for state in hostile::states() {
                for (case, expected) in &cases {
                    // Compiled under the state the first time, and found in the cache afterwards.
                    let found = hostile::under(state, || dispatch(&*device as &dyn VyreBackend, case));
                    assert!(found == *expected, "{state}, {threads} threads, portable: {portable}\n{}", case.program);
                }
            }
        }
    }
}
