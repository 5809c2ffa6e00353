//! Random programs: what must hold for every program, tried on many.
//!
//! A failure names the program and prints it. `VYRE_SMITH_PROGRAMS` sets how many are tried.

use vyre::analysis::determinism::Proof;
use vyre::launch::plan;
use vyre::reference::checked::{Effort, check};
use vyre::reference::{Options, RunError, Schedule, run};
use vyre_smith::generate::{Figure, Numbered};

const SEED: u64 = 21;

/// How often each outcome was seen, so that the test itself can be judged.
#[derive(Default, Debug)]
struct Tally {
    ran: u64,
    trapped: u64,
    clean: u64,
    proven: u64,
    nonzero: u64,
}

fn one_program(numbered: &Numbered, tally: &mut Tally) {
    let case = numbered.case();
    let program = &case.program;
    let seed = format!("program {} of {}, seed {}", numbered.number, numbered.preset.name(), numbered.seed);
    if let Err(report) = program.validated() {
        panic!("{seed}: the generator made an invalid program\n{report}\n{program}");
    }

    let printed = program.to_string();
    let again = vyre::text::parse("printed", &printed)
        .unwrap_or_else(|report| panic!("{seed}: the printed program does not parse\n{report}\n{printed}"));
    assert!(again == *program, "{seed}: print and parse changed the program\n{printed}\n{again}");
    let formatted = vyre::text::format("printed", &printed).expect("what parses formats");
    assert_eq!(
        vyre::text::format("formatted", &formatted).expect("what is formatted formats"),
        formatted,
        "{seed}: formatting is not idempotent"
    );
    let same = vyre::text::parse("formatted", &formatted).expect("what is formatted parses");
    assert!(same == *program, "{seed}: formatting changed the program\n{formatted}");

    let wire = vyre::wire::to_wire(program).expect("a valid program is not too deep");
    let decoded = vyre::wire::from_wire(&wire).unwrap_or_else(|error| panic!("{seed}: {error}\n{printed}"));
    assert!(decoded == *program, "{seed}: the wire form changed the program\n{printed}\n{decoded}");

    let borrowed = case.input_slices();
    let mut options = Options::from(&case);
    let forward = run(program, &borrowed, &options);
    match &forward {
        Ok(outputs) => {
            tally.ran += 1;
            tally.nonzero += u64::from(outputs.iter().any(|bytes| bytes.iter().any(|byte| *byte != 0)));
        }
        Err(RunError::Trap { .. }) => tally.trapped += 1,
        Err(other) => panic!("{seed}: {other}\n{printed}"),
    }
    // One observing run; what it is sure of is what every schedule gives.
    let effort = Effort { schedules: Vec::new(), executions: 0, ..Effort::default() };
    let report = check(program, &borrowed, &options, &effort).unwrap_or_else(|error| panic!("{seed}: {error}\n{printed}"));
    if report.holds() && report.exhaustive() {
        tally.clean += 1;
        for (how, bulk) in [
            ("the bulk evaluator", vyre::reference::bulk::run(program, &borrowed, &options)),
            ("the bulk evaluator with compacted lanes", vyre::reference::bulk::run_compacted(program, &borrowed, &options)),
        ] {
            assert!(bulk == forward, "{seed}: {how} differs\n{printed}\n{forward:?}\n{bulk:?}");
        }
    }
    let values = case.config.specialization.iter();
    let special = vyre::specialize(program, values).expect("its values fit");
    let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let planned = plan(&special, &sizes, &case.config.launch()).expect("it ran");
    if special.proof_for(&planned, &borrowed).expect("it is valid") == Proof::Holds {
        tally.proven += 1;
        options.schedule = Schedule::Reverse;
        let reverse = run(program, &borrowed, &options);
        assert!(
            reverse == forward,
            "{seed}: proven deterministic, but the order of invocations shows\n{printed}\n{forward:?}\n{reverse:?}"
        );
    }
}

#[test]
fn random_programs_print_parse_format_run_and_keep_their_bytes_in_any_order() {
    let figure = Figure::asked(SEED, 20_000).and_undetermined();
    let count = figure.programs();
    let totals: Vec<Tally> = figure.count(one_program);
    let sum = |of: fn(&Tally) -> u64| totals.iter().map(of).sum::<u64>();
    println!(
        "{count} programs: {} ran, {} trapped, {} are clean, {} proven to be",
        sum(|t| t.ran),
        sum(|t| t.trapped),
        sum(|t| t.clean),
        sum(|t| t.proven)
    );
    // A generator that makes nothing of interest would make this test pass on any interpreter.
    assert!(sum(|t| t.clean) * 4 > count, "too few programs are run in bulk");
    assert!(sum(|t| t.proven) * 20 > count, "too few programs are proven deterministic");
    assert!(sum(|t| t.nonzero) * 4 > count, "too few programs write anything");
    assert!(sum(|t| t.trapped) > 0 || count < 1000, "no program traps");
}
