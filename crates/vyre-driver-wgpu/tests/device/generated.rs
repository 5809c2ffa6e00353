//! Generated programs against the reference. `VYRE_WGPU_PROGRAMS=100000` takes so many: compiling them is what takes the time.

use crate::{DEVICES, meaning, open};
use vyre_driver::BackendError;
use vyre_smith::generate::{Preset, dna, generate};

const SEED: u64 = 0x96;

#[test]
fn the_bytes_are_the_references() {
    let count = std::env::var("VYRE_WGPU_PROGRAMS").map_or(120, |count| count.parse().expect("VYRE_WGPU_PROGRAMS is a number"));
    std::thread::scope(|scope| {
        for id in DEVICES {
            scope.spawn(move || {
                let device = open(id);
                let mut refused = 0;
                for number in 0..count {
                    let dna = dna(SEED, number);
                    let case = generate(Preset::mixed(number), &dna).case(&dna);
                    let found = device.dispatch_borrowed(&case.program, &case.input_slices(), &case.config);
                    if let Err(BackendError::UnsupportedFeature { .. }) = found {
                        refused += 1;
                        continue;
                    }
                    let expected = meaning(&case);
                    assert!(
                        found == expected,
                        "program {number} of seed {SEED} on {id}:\n{}\nexpected {expected:?}\nfound {found:?}",
                        case.program
                    );
                }
                // Those with f64, mostly.
                assert!(refused * 2 < count, "{id} refuses {refused} of {count}");
            });
        }
    });
}
