//! Generated programs keep what the generator promises: valid, ending, and, where the preset says so, the same under every schedule.
//!
//! `VYRE_SMITH_PROGRAMS` sets how many are tried; a failure names the preset and the number of the program.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::launch::plan;
use vyre_foundation::specialize;
use vyre_foundation::wire::{from_wire, to_wire};
use vyre_reference::checked::{Effort, Verdict, check};
use vyre_reference::{Options, RunError, bulk, run};
use vyre_smith::coverage::Coverage;
use vyre_smith::generate::{Generated, Preset, dna, generate};
use vyre_worker::Case;

const SEED: u64 = 1;

fn programs(usually: u64) -> u64 {
    std::env::var("VYRE_SMITH_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// Calls `each` with every program number, on two threads.
fn for_each(count: u64, each: impl Fn(u64, Preset, &Generated, &[u8]) + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let preset = Preset::ALL[(number % Preset::ALL.len() as u64) as usize];
                    let dna = dna(SEED, number);
                    each(number, preset, &generate(preset, &dna), &dna);
                }
            });
        }
    });
}

fn options(case: &Case) -> Options {
    Options { launch: case.launch.clone(), specialization: case.specialization.clone(), fuel: case.fuel, ..Options::default() }
}

fn say(number: u64, preset: Preset, case: &Case) -> String {
    format!("program {number} of {}\n{}\n{:?}\n{:?}", preset.name(), case.program, case.launch, case.inputs)
}

#[test]
fn programs_are_valid_end_within_their_fuel_and_give_the_same_bytes_in_bulk() {
    let (traps, total) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each(programs(20_000), |number, preset, generated, dna| {
        let case = generated.case(dna);
        let plain = run(&case.program, &case.input_slices(), &options(&case));
        match &plain {
            Ok(_) => {}
            Err(RunError::Trap { .. }) => {
                traps.fetch_add(1, Ordering::Relaxed);
            }
            Err(RunError::Rejected(report)) => panic!("{report}\n{}", say(number, preset, &case)),
            Err(RunError::OutOfFuel { fuel }) => panic!("{fuel} steps are not enough: {}", say(number, preset, &case)),
        }
        total.fetch_add(1, Ordering::Relaxed);
        if preset.is_deterministic() {
            let bulk = bulk::run(&case.program, &case.input_slices(), &options(&case));
            assert!(bulk == plain, "bulk gives other bytes: {}", say(number, preset, &case));
            let packed = bulk::run_compacted(&case.program, &case.input_slices(), &options(&case));
            assert!(packed == plain, "bulk gives other bytes with packed lanes: {}", say(number, preset, &case));
        }
    });
    let (traps, total) = (traps.into_inner(), total.into_inner());
    assert!(traps * 8 < total, "{traps} of {total} programs trap: too many to learn from");
}

#[test]
fn no_schedule_changes_the_bytes_outside_the_presets_that_are_about_it() {
    let (racy, ordered, of_racy, of_ordered) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    for_each(programs(6_000), |number, preset, generated, dna| {
        let case = generated.case(dna);
        let effort = Effort { executions: 50, ..Effort::default() };
        let report = check(&case.program, &case.input_slices(), &options(&case), &effort)
            .unwrap_or_else(|error| panic!("{error}: {}", say(number, preset, &case)));
        if preset.is_deterministic() {
            let drawn = report.report(&case.program).map(|drawn| drawn.to_string()).unwrap_or_default();
            assert!(report.verdict == Verdict::Deterministic, "{}: {drawn}\n{}", report.verdict, say(number, preset, &case));
            return;
        }
        let counters = if preset == Preset::Racy {
            (&racy, &of_racy, Verdict::Racy)
        } else {
            (&ordered, &of_ordered, Verdict::OrderDependent)
        };
        counters.1.fetch_add(1, Ordering::Relaxed);
        if report.verdict == counters.2 {
            counters.0.fetch_add(1, Ordering::Relaxed);
        }
    });
    for (found, of, what) in [(racy, of_racy, "racy"), (ordered, of_ordered, "order-dependent")] {
        let (found, of) = (found.into_inner(), of.into_inner());
        assert!(found * 5 > of, "only {found} of {of} programs of the preset are {what}");
    }
}

#[test]
fn the_same_bytes_give_the_same_program() {
    for number in 0..300 {
        for preset in Preset::ALL {
            let dna = dna(SEED, number);
            let (one, two) = (generate(*preset, &dna), generate(*preset, &dna));
            assert_eq!(one.program, two.program);
            assert_eq!(one.launch, two.launch);
            assert_eq!(one.case(&dna).inputs, two.case(&dna).inputs);
        }
    }
}

#[test]
fn any_bytes_give_a_program() {
    let mut bytes = Vec::new();
    for length in 0..200 {
        for fill in [0, 1, 0x7F, 0x80, 0xFF, length as u8] {
            bytes.clear();
            bytes.resize(length, fill);
            for preset in Preset::ALL {
                let case = generate(*preset, &bytes).case(&bytes);
                let values = case.specialization.iter().map(|(name, value)| (name.as_str(), value));
                let program = specialize(&case.program, values).expect("its values fit");
                let sizes: Vec<u64> = case.inputs.iter().map(|input| input.len() as u64).collect();
                plan(&program, &sizes, &case.launch).unwrap_or_else(|report| panic!("{report}\n{program}"));
            }
        }
    }
}

#[test]
fn every_cell_of_the_grid_is_reached_within_200_000_programs() {
    let total = Mutex::new(Coverage::default());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let total = &total;
            scope.spawn(move || {
                let mut own = Coverage::default();
                for number in (thread..200_000).step_by(2) {
                    let preset = Preset::ALL[(number / 2 % Preset::ALL.len() as u64) as usize];
                    let generated = generate(preset, &dna(SEED, number));
                    own.add(&generated.program);
                    let values = generated.specialization.iter().map(|(name, value)| (name.as_str(), value));
                    own.add(&specialize(&generated.program, values).expect("its values fit"));
                    if number % 1000 < 2 {
                        let mut total = total.lock().expect("no thread panicked");
                        total.merge(&own);
                        if total.reached() == total.cells() {
                            return;
                        }
                    }
                }
                total.lock().expect("no thread panicked").merge(&own);
            });
        }
    });
    let total = total.into_inner().expect("no thread panicked");
    assert!(total.holes().is_empty(), "{}", total.report());
}

#[test]
fn the_wire_form_gives_every_program_back() {
    for_each(programs(20_000), |number, preset, generated, _| {
        let again = to_wire(&generated.program).and_then(|bytes| from_wire(&bytes));
        assert!(
            again.as_ref() == Ok(&generated.program),
            "program {number} of {}: {again:?}\n{}",
            preset.name(),
            generated.program
        );
    });
}
