//! Generated programs keep what the generator promises: valid, ending, and, where the preset says so, the same under every schedule.
//!
//! `VYRE_SMITH_PROGRAMS` sets how many are tried ([`Figure`]); a failure names the preset and the number of the program.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::ir::{BinaryOp, Expr, Item, Name, Node, Walk};
use vyre_foundation::launch::plan;
use vyre_foundation::wire::{from_wire, to_wire};
use vyre_foundation::{specialize, text};
use vyre_reference::checked::{Effort, Verdict, check};
use vyre_reference::{Options, RunError, bulk, run};
use vyre_smith::coverage::Coverage;
use vyre_smith::generate::{Figure, Numbered, Preset, dna, generate};
use vyre_worker::Case;

const SEED: u64 = 1;

fn options(case: &Case) -> Options {
    Options::from(case)
}

fn say(numbered: &Numbered, case: &Case) -> String {
    let Numbered { preset, seed, number, .. } = numbered;
    let inputs: Vec<&[u8]> = case.inputs.iter().map(|bytes| &bytes[..bytes.len().min(400)]).collect();
    format!("program {number} of {}, seed {seed}\n{}\n{:?}\n{inputs:?}", preset.name(), case.program, case.config)
}

#[derive(Default)]
struct Ran {
    programs: u64,
    traps: u64,
}

#[test]
fn programs_are_valid_end_within_their_fuel_and_give_the_same_bytes_in_bulk() {
    let figure = Figure::asked(SEED, 20_000).and_undetermined();
    let totals = figure.count(|numbered, ran: &mut Ran| {
        let case = numbered.case();
        let plain = run(&case.program, &case.input_slices(), &options(&case));
        match &plain {
            Ok(_) => {}
            Err(RunError::Trap { .. }) => ran.traps += 1,
            Err(RunError::Rejected(report)) => panic!("{report}\n{}", say(numbered, &case)),
            Err(error @ (RunError::Timeout | RunError::Cancelled)) => panic!("nobody asked for it: {error}"),
            Err(RunError::OutOfFuel { fuel }) => panic!("{fuel} steps are not enough: {}", say(numbered, &case)),
        }
        ran.programs += 1;
        if numbered.preset.is_deterministic() {
            let bulk = bulk::run(&case.program, &case.input_slices(), &options(&case));
            assert!(bulk == plain, "bulk gives other bytes: {}", say(numbered, &case));
            let compacted = bulk::run_compacted(&case.program, &case.input_slices(), &options(&case));
            assert!(compacted == plain, "bulk gives other bytes with compacted lanes: {}", say(numbered, &case));
        }
    });
    let sum = |of: fn(&Ran) -> u64| totals.iter().map(of).sum::<u64>();
    assert_eq!(sum(|ran| ran.programs), figure.programs());
    // A program that traps shows nothing but that.
    let (traps, programs) = (sum(|ran| ran.traps), figure.programs());
    assert!(traps * 8 < programs, "{traps} of {programs} programs trap: too many to learn from");
}

/// Whether a statement, or one below it, gives a variable a value.
fn sets(node: &Node, wanted: &Name) -> bool {
    let by = |node: &Node| matches!(node, Node::Let { name, .. } | Node::Assign { name, .. } if name == wanted);
    by(node) || node.bodies().flat_map(|body| Walk::body(body)).any(|(item, _)| matches!(item, Item::Node(inner) if by(inner)))
}

/// How many loops of these statements, and below, have a bound that is a variable. The variable must get its value, a remainder, from
/// the last statement before the loop that gives it one.
fn variable_bounds(nodes: &[Node], who: &dyn Fn() -> String) -> u64 {
    let mut found = 0;
    for (n, node) in nodes.iter().enumerate() {
        if let Node::Loop(repeat) = node {
            for bound in [&repeat.from, &repeat.to] {
                let Expr::Var(name) = bound else { continue };
                let last = nodes[..n].iter().rev().find(|before| sets(before, name));
                let is_remainder = |value: &Expr| matches!(value, Expr::Binary { op: BinaryOp::Rem, .. });
                let is_small = matches!(last, Some(Node::Let { value, .. } | Node::Assign { value, .. }) if is_remainder(value));
                assert!(is_small, "the bound `{name}` of a loop can be anything: {}", who());
                found += 1;
            }
        }
        found += node.bodies().map(|body| variable_bounds(body, who)).sum::<u64>();
    }
    found
}

#[test]
fn nothing_comes_between_a_variable_and_the_loop_it_bounds() {
    let totals = Figure::asked(SEED, 60_000).count(|numbered, found: &mut u64| {
        let case = numbered.case();
        *found += variable_bounds(&case.program.parts().body, &|| say(numbered, &case));
    });
    assert!(totals.iter().sum::<u64>() > 1_000, "{totals:?} loops have a variable as a bound");
}

/// By preset: how many programs there were, and how many of them do what the preset is about.
#[derive(Default)]
struct Verdicts(BTreeMap<Preset, (u64, u64)>);

#[test]
fn no_schedule_changes_the_bytes_outside_the_presets_that_are_about_it() {
    let totals = Figure::asked(SEED, 6_000).and_undetermined().count(|numbered, verdicts: &mut Verdicts| {
        let (preset, case) = (numbered.preset, numbered.case());
        let effort = Effort { executions: 50, ..Effort::default() };
        let report = check(&case.program, &case.input_slices(), &options(&case), &effort)
            .unwrap_or_else(|error| panic!("{error}: {}", say(numbered, &case)));
        if preset.is_deterministic() {
            let drawn = report.report(&case.program).map(|drawn| drawn.to_string()).unwrap_or_default();
            assert!(report.verdict == Verdict::Deterministic, "{}: {drawn}\n{}", report.verdict, say(numbered, &case));
            return;
        }
        let wanted = if preset == Preset::Racy { Verdict::Racy } else { Verdict::OrderDependent };
        let (found, of) = verdicts.0.entry(preset).or_default();
        *found += u64::from(report.verdict == wanted);
        *of += 1;
    });
    for preset in Preset::undetermined() {
        let of =
            |part: fn(&(u64, u64)) -> u64| totals.iter().filter_map(|verdicts| verdicts.0.get(preset)).map(part).sum::<u64>();
        let (found, of) = (of(|counts| counts.0), of(|counts| counts.1));
        // About half of them are; a fifth leaves room for chance.
        assert!(found * 5 > of, "only {found} of {of} programs of {} are", preset.name());
    }
}

#[test]
fn the_same_bytes_give_the_same_program() {
    for number in 0..300 {
        for preset in Preset::ALL {
            let dna = dna(SEED, number);
            let (one, two) = (generate(*preset, &dna), generate(*preset, &dna));
            assert_eq!(one.program, two.program);
            assert_eq!(one.config, two.config);
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
                let values = case.config.specialization.iter();
                let program = specialize(&case.program, values).expect("its values fit");
                let sizes: Vec<u64> = case.inputs.iter().map(|input| input.len() as u64).collect();
                plan(&program, &sizes, &case.config.launch()).unwrap_or_else(|report| panic!("{report}\n{program}"));
            }
        }
    }
}

#[test]
fn every_cell_of_the_grid_is_reached_within_200_000_programs() {
    let figure = Figure::of(SEED, 200_000);
    let (next, total) = (AtomicU64::new(0), Mutex::new(Coverage::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut own = Coverage::default();
                loop {
                    let run = next.fetch_add(1000, Ordering::Relaxed);
                    for n in run..figure.programs().min(run + 1000) {
                        let numbered = figure.program(n);
                        own.add_case(&numbered.case());
                        let generated = numbered.generated;
                        let values = generated.config.specialization.iter();
                        own.add(&specialize(&generated.program, values).expect("its values fit"));
                    }
                    let mut total = total.lock().expect("no thread panicked");
                    total.merge(&own);
                    if total.reached() == total.cells() || run >= figure.programs() {
                        return;
                    }
                }
            });
        }
    });
    let total = total.into_inner().expect("no thread panicked");
    assert!(total.holes().is_empty(), "{}", total.report());
}

#[test]
fn the_text_and_wire_forms_give_every_program_back() {
    Figure::asked(SEED, 20_000).and_undetermined().count(|numbered, (): &mut ()| {
        let Numbered { preset, number, generated, .. } = numbered;
        let program = &generated.program;
        let who = || format!("program {number} of {}", preset.name());
        let again = to_wire(program).and_then(|bytes| from_wire(&bytes));
        assert!(again.as_ref() == Ok(program), "{}: {again:?}\n{program}", who());
        let printed = program.to_string();
        let parsed = text::parse("printed", &printed).unwrap_or_else(|report| panic!("{}\n{report}", who()));
        assert!(parsed == *program, "{}: print and parse change the program\n{printed}\n{parsed}", who());
    });
}

#[test]
fn large_programs_are_valid_however_little_workgroup_memory_is_left() {
    for preset in Preset::large() {
        for number in 0..8_000 {
            let generated = generate(*preset, &dna(5, number));
            assert!(generated.program.validated().is_ok(), "{} {number}:\n{}", preset.name(), generated.program);
        }
    }
}
