//! Whether the generator finds faults and the reducer makes them small: every faulty interpreter of `vyre_reference::faults` is found
//! within 100,000 programs, and what shows it has at most 12 statements and expressions.
//!
//! Usually a sample of the faults is tried; `VYRE_LONG=1` tries all and prints what it took.

use std::time::Instant;
use vyre_reference::faults::{self, Fault};
use vyre_reference::{Options, RunError, run};
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::reduce::{Config, reduce};
use vyre_worker::Case;

const SEED: u64 = 5;
const PROGRAMS: u64 = 100_000;
const NODES: usize = 12;

fn options(case: &Case) -> Options {
    Options { launch: case.launch.clone(), specialization: case.specialization.clone(), fuel: case.fuel, ..Options::default() }
}

/// Whether a case gives other bytes, or another trap, with the fault.
fn shows(fault: Fault, case: &Case) -> bool {
    let trap = |error: RunError| match error {
        RunError::Trap { tag, invocation, .. } => Some((tag, invocation)),
        RunError::Rejected(_) | RunError::OutOfFuel { .. } => None,
    };
    let right = run(&case.program, &case.input_slices(), &options(case)).map_err(trap);
    // What does not run at all shows nothing.
    right != Err(None) && faults::run(fault, &case.program, &case.input_slices(), &options(case)).map_err(trap) != right
}

/// The first program that shows the fault.
fn found(fault: Fault) -> Option<(u64, Case)> {
    (0..PROGRAMS).find_map(|number| {
        let dna = dna(SEED, number);
        let case = generate(Preset::mixed(number), &dna).case(&dna);
        shows(fault, &case).then_some((number, case))
    })
}

#[test]
fn faults_are_found_and_made_small() {
    let long = std::env::var("VYRE_LONG").is_ok_and(|value| value == "1");
    let mut too_large = Vec::new();
    for fault in Fault::ALL.iter().copied().step_by(if long { 1 } else { 8 }) {
        let start = Instant::now();
        let (number, case) = found(fault).unwrap_or_else(|| panic!("{} is not found in {PROGRAMS} programs", fault.name()));
        let (before, time) = (case.program.walk().count(), start.elapsed());
        let start = Instant::now();
        let config = Config { race_free: true, ..Config::default() };
        let reduced = reduce(case, &config, &mut |case| shows(fault, case).into(), &mut |_| {})
            .unwrap_or_else(|error| panic!("{}: {error}", fault.name()));
        let nodes = reduced.case.program.walk().count();
        assert!(shows(fault, &reduced.case), "{}: the reduced program does not show it", fault.name());
        if nodes > NODES {
            too_large.push(format!("{}: {nodes} nodes\n{}", fault.name(), reduced.case.program));
        }
        if long {
            println!(
                "{:20} program {number:5} in {time:.1?}, {before} nodes to {nodes} in {:.1?}",
                fault.name(),
                start.elapsed()
            );
        }
    }
    assert!(too_large.is_empty(), "more than {NODES} nodes:\n{}", too_large.join("\n"));
}
