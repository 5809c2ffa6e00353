//! Whether the generator finds faults and the reducer makes them small: every fault of `vyre_reference::faults`, of the plain
//! interpreter and of the bulk evaluator, is found within 100,000 programs, and what shows it is a few statements and expressions.
//!
//! Usually a sample of the faults is tried; `VYRE_LONG=1` tries all and prints what it took.

use std::time::Instant;
use vyre_reference::faults::{self, BulkFault, Fault};
use vyre_reference::{Options, RunError, run};
use vyre_smith::generate::{Preset, dna, generate};
use vyre_smith::reduce::{Config, reduce};
use vyre_worker::Case;

const SEED: u64 = 5;
const PROGRAMS: u64 = 100_000;

/// Statements and expressions that are left of a program that shows a fault of one op, and of one that is about control or shape.
const NODES_OF_OPS: usize = 12;
const NODES: usize = 24;

/// A fault that is planted.
#[derive(Clone, Copy)]
enum Planted {
    Plain(Fault),
    Bulk(BulkFault),
}

impl Planted {
    /// As after `--subject`.
    fn name(self) -> String {
        match self {
            Planted::Plain(fault) => format!("fault:{}", fault.name()),
            Planted::Bulk(fault) => format!("bulk-fault:{}", fault.name()),
        }
    }

    fn run(self, case: &Case, options: &Options) -> Result<Vec<Vec<u8>>, RunError> {
        match self {
            Planted::Plain(fault) => faults::run(fault, &case.program, &case.input_slices(), options),
            Planted::Bulk(fault) => faults::run_bulk(fault, &case.program, &case.input_slices(), options),
        }
    }

    /// How small a program that shows it becomes.
    fn nodes(self) -> usize {
        match self {
            // The list begins with the faults of single ops and rules.
            Planted::Plain(fault) if fault <= Fault::TrapLast => NODES_OF_OPS,
            Planted::Plain(_) | Planted::Bulk(_) => NODES,
        }
    }
}

fn options(case: &Case) -> Options {
    Options::from(case)
}

/// Whether a case gives other bytes, or another trap, with the fault.
fn shows(fault: Planted, case: &Case) -> bool {
    let trap = |error: RunError| match error {
        RunError::Trap { tag, invocation, .. } => Some((tag, invocation)),
        RunError::Rejected(_) | RunError::OutOfFuel { .. } | RunError::Timeout | RunError::Cancelled => None,
    };
    let options = options(case);
    let right = run(&case.program, &case.input_slices(), &options).map_err(trap);
    // What does not run at all shows nothing.
    right != Err(None) && fault.run(case, &options).map_err(trap) != right
}

/// The first program that shows the fault, and how many were tried: of the mix, and for every 200 of them one of each large preset.
fn found(fault: Planted) -> Option<(u64, Case)> {
    let mut tried = 0;
    (0..PROGRAMS).find_map(|number| {
        let large = Preset::large().iter().filter(|_| number % 200 == 0).map(|preset| (*preset, number / 200));
        large.chain([(Preset::mixed(number), number)]).find_map(|(preset, number)| {
            tried += 1;
            let dna = dna(SEED, number);
            let case = generate(preset, &dna).case(&dna);
            shows(fault, &case).then_some((tried, case))
        })
    })
}

/// Tries every fault, or every eighth.
fn find_and_reduce(faults: impl Iterator<Item = Planted>) {
    let long = std::env::var("VYRE_LONG").is_ok_and(|value| value == "1");
    let (mut missed, mut too_large) = (Vec::new(), Vec::new());
    for fault in faults.step_by(if long { 1 } else { 8 }) {
        let (name, start) = (fault.name(), Instant::now());
        let Some((number, case)) = found(fault) else {
            println!("{name:40} not in {PROGRAMS} programs, {:.1?}", start.elapsed());
            missed.push(name);
            continue;
        };
        let (before, time) = (case.program.walk().count(), start.elapsed());
        let start = Instant::now();
        let config = Config { race_free: true, ..Config::default() };
        let reduced = reduce(case, &config, &mut |case| shows(fault, case).into(), &mut |_| {})
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let nodes = reduced.case.program.walk().count();
        assert!(shows(fault, &reduced.case), "{name}: the reduced program does not show it");
        if nodes > fault.nodes() {
            too_large.push(format!("{name}: {nodes} nodes\n{}", reduced.case.program));
        }
        if long {
            println!("{name:40} program {number:6} in {time:8.1?}, {before:4} nodes to {nodes:2} in {:.1?}", start.elapsed());
        }
    }
    assert!(too_large.is_empty(), "too much is left:\n{}", too_large.join("\n"));
    assert!(missed.is_empty(), "not found in {PROGRAMS} programs: {}", missed.join(", "));
}

#[test]
fn faults_of_the_interpreter_are_found_and_made_small() {
    find_and_reduce(Fault::ALL.iter().copied().map(Planted::Plain));
}

#[test]
fn faults_of_the_bulk_evaluator_are_found_and_made_small() {
    find_and_reduce(BulkFault::ALL.iter().copied().map(Planted::Bulk));
}
