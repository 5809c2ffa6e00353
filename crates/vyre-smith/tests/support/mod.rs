//! Generated programs for tests that try many.

use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::specialize;
use vyre_smith::generate::{Preset, dna, generate};
use vyre_worker::Case;

/// How many programs are tried: `VYRE_SMITH_PROGRAMS`, or as many as usually.
pub fn programs(usually: u64) -> u64 {
    std::env::var("VYRE_SMITH_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// Calls `each` with the numbers below `count`, on two threads; when one fails, the other goes no further.
pub fn in_parallel(count: u64, each: impl Fn(u64) + Sync) {
    struct StopIfPanicking<'a>(&'a AtomicU64, u64);
    impl Drop for StopIfPanicking<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.store(self.1, Ordering::Relaxed);
            }
        }
    }
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _stop = StopIfPanicking(&next, count);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    each(number);
                }
            });
        }
    });
}

/// The preset of a program with this number: each in turn.
pub fn preset(number: u64) -> Preset {
    Preset::ALL[(number % Preset::ALL.len() as u64) as usize]
}

/// The program with this number, its constants replaced.
pub fn case(seed: u64, number: u64) -> Case {
    let dna = dna(seed, number);
    let mut case = generate(preset(number), &dna).case(&dna);
    let values = std::mem::take(&mut case.specialization);
    let values = values.iter().map(|(name, value)| (name.as_str(), value));
    case.program = specialize(&case.program, values).unwrap_or_else(|report| panic!("{report}"));
    case
}
