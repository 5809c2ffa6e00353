//! Facts are claims, and here they are tested against what runs really did.
//!
//! Every fact of `vyre_foundation::analysis` is asked for generated programs, of all presets, also those that race; then the program is
//! run by the plain interpreter, under some schedule, and for everything that happens it is checked that no fact says otherwise. A fact
//! that claims nothing is never wrong, so each kind of claim is counted and has to occur. `VYRE_SMITH_PROGRAMS` sets how many programs
//! are tried; a failure names the number of the program and shows it.
//!
//! - Uniformity: what is uniform was equal for all that evaluated it together; branches, loops, exits that do not diverge were taken by
//!   all alike; regions that are reached together were reached by all that were not retired before.
//! - Numbers: values with one number were equal.
//! - Ranges: numbers were inside, and below the lengths that they are said to be below.
//! - Index forms: their sum was the value; neighbouring lanes were apart by the stride.
//! - Bounds: what is proven was in bounds.
//! - Epochs: what cannot meet was never between the same two barriers.
//! - Determinism: a launch that is proven has no race and no order that shows, as the checked mode finds.

mod kernels;
mod watch;

use kernels::kernel;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::analysis::determinism::Proof;
use vyre_foundation::ir::Program;
use vyre_foundation::launch::plan;
use vyre_foundation::passes::optimize;
use vyre_foundation::{specialize, text};
use vyre_reference::checked::{Effort, Kind, Verdict, check};
use vyre_reference::{Options, RunError, Schedule, trace};
use vyre_smith::generate::{Figure, Numbered, Preset, asked};
use vyre_worker::Case;
use watch::{Claim, Counts, Facts, Watch};

const SEED: u64 = 9;

fn options(case: &Case, schedule: Schedule) -> Options {
    Options { launch: case.config.launch(), fuel: case.fuel.saturating_mul(4), schedule, ..Options::default() }
}

/// What is wrong with the facts about a program, as one run of it shows.
fn wrong_in_run(case: &Case, program: &Program, schedule: Schedule, width: u32, counts: &mut Counts) -> Option<String> {
    let validated = program.validated().unwrap_or_else(|report| panic!("{report}"));
    let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(program, &sizes, &case.config.launch()).unwrap_or_else(|report| panic!("{report}"));
    let facts = Facts::of(validated, &launch, width);
    let mut watch = Watch::new(&facts, counts);
    match trace::run(program, &case.input_slices(), &options(case, schedule), &mut watch) {
        Ok(_) | Err(RunError::Trap { .. }) => watch.finish(),
        Err(other) => Some(other.to_string()),
    }
}

/// What is wrong with a proof of determinism, as the checked mode finds.
fn wrong_proof(case: &Case, program: &Program, counts: &mut Counts) -> Option<String> {
    let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let launch = plan(program, &sizes, &case.config.launch()).unwrap_or_else(|report| panic!("{report}"));
    if program.proof_for(&launch, &case.input_slices()).unwrap_or_else(|report| panic!("{report}")) != Proof::Holds {
        return None;
    }
    counts.add(Claim::Deterministic);
    let effort = Effort { executions: 200, steps: 1 << 18, outcomes: 4, ..Effort::default() };
    let report = check(program, &case.input_slices(), &options(case, Schedule::Forward), &effort).ok()?;
    let raced = report.findings.iter().any(|finding| finding.kind == Kind::Race);
    let why = report.report(program).map(|report| report.to_string()).unwrap_or_default();
    (raced || report.verdict != Verdict::Deterministic).then(|| format!("proven, and it is {}\n{why}", report.verdict))
}

fn schedule(number: u64) -> Schedule {
    match number % 5 {
        0 | 1 => Schedule::Forward,
        2 => Schedule::Reverse,
        3 => Schedule::Random(number),
        _ => Schedule::Interleave,
    }
}

/// Holds the facts about a program against a run of it and against the checked mode.
fn hold(who: &str, case: &Case, program: &Program, number: u64, counts: &mut Counts) {
    let width = [2, 4, 8, 16][(number % 4) as usize];
    let wrong = wrong_in_run(case, program, schedule(number), width, counts).or_else(|| wrong_proof(case, program, counts));
    if let Some(wrong) = wrong {
        let shown = Case { program: program.clone(), ..case.clone() };
        panic!("{who}: {wrong}\n{program}\n{shown:?}");
    }
}

#[test]
fn what_is_claimed_about_generated_programs_holds() {
    let totals = Counts::totals();
    let figure = Figure::asked(SEED, 6_000).and_undetermined();
    let count = figure.programs();
    let counted = figure.count(|numbered: &Numbered, counts: &mut Counts| {
        let mut case = numbered.case();
        let values = std::mem::take(&mut case.config.specialization);
        let values = values.iter();
        case.program = specialize(&case.program, values).unwrap_or_else(|report| panic!("{report}"));
        let who = format!("program {} of {}", numbered.number, numbered.preset.name());
        let optimized = optimize(&case.program);
        let optimized = Some(&optimized).filter(|optimized| **optimized != case.program);
        for program in [&case.program].into_iter().chain(optimized) {
            hold(&who, &case, program, numbered.number / Preset::ALL.len() as u64, counts);
        }
    });
    counted.into_iter().for_each(|counts| counts.add_to(&totals));
    println!("{count} programs");
    Counts::check(&totals, count);
}

#[test]
fn what_is_claimed_about_kernels_that_almost_race_holds() {
    let totals = Counts::totals();
    let valid = AtomicU64::new(0);
    let (next, count) = (AtomicU64::new(0), asked(30_000));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let Some(case) = kernel(number) else { continue };
            let mut counts = Counts::default();
            hold(&format!("kernel {number}"), &case, &case.program, number, &mut counts);
            counts.add_to(&totals);
            valid.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let valid = valid.into_inner();
    let proven = totals[Claim::Deterministic as usize].load(Ordering::Relaxed);
    println!("{valid} valid kernels, {proven} launches proven");
    assert!(proven * 10 > valid, "only {proven} of {valid} launches are proven");
}

#[test]
fn what_is_easily_claimed_wrongly_holds() {
    // What a bool is made of is not what it is: the index was proven to be in bounds.
    let numbers_as_bools = "let x = (lid.x & 1) + 5  out[u32(bool(x)) - 3] = 1";
    // Which way an iteration ends chooses what the loop results in, also without a `break`: `s` was uniform.
    let a_continue_chooses = "let s = 0  for k in 0..3 { if gid.x == 2 { s = 7  continue }  s = 2 }  out[gid.x] = s";
    // Who continues does not get to the `break`, which did not diverge.
    let behind_a_continue = "for k in 0..3 { if gid.x == 2 { continue }  if len(out) == 8 { break } }  out[gid.x] = 1";
    // Who continues misses the `break`, and leaves the loop later with another value: `s` is not uniform.
    let past_a_break =
        "let s = 0  for k in 0..3 { s = k + 1  if gid.x == 2 { continue }  if len(out) == 8 { break } }  out[gid.x] = s";
    for body in [numbers_as_bools, a_continue_chooses, behind_a_continue, past_a_break] {
        let body = body.replace("  ", "\n").replace("{ ", "{\n").replace(" }", "\n}");
        let program = format!("program reduced {{\nworkgroup 8\nbuffer out: output u32[8] @0\n{body}\n}}\n");
        let program = text::parse("reduced", &program).unwrap_or_else(|report| panic!("{report}"));
        let case = Case::new(program.clone(), Vec::new());
        hold("reduced", &case, &program, 0, &mut Counts::default());
    }
}
