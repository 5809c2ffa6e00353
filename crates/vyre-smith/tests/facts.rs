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
//! - Epochs: what cannot meet was never between the same two barriers, and each epoch began where it may.
//! - Loops: each made as many iterations as it may, and was left in the ways that are known.
//! - Outputs: every element of those that are said to be written completely was stored to before it was read, and a run in which they
//!   begin with other bytes than 0 gives the same.
//! - Floats: each was of one of its kinds.
//! - Liveness: on the way of an invocation through the form nothing was read behind what it is not held across, and no more words
//!   were held at once than is said.
//! - Determinism: a launch that is proven has no race and no order that shows, as the checked mode finds.

mod kernels;
mod watch;

use kernels::covering::covering;
use kernels::kernel;
use std::sync::atomic::{AtomicU64, Ordering};
use vyre_foundation::analysis::determinism::Proof;
use vyre_foundation::ir::Program;
use vyre_foundation::kernel::BufferId;
use vyre_foundation::launch::{Launch, plan};
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
    let options = options(case, schedule);
    let mut watch = Watch::new(&facts, counts);
    let result = trace::run(program, &case.input_slices(), &options, &mut watch);
    let wrong = match &result {
        Ok(_) => watch.finish(false),
        Err(RunError::Trap { .. }) => watch.finish(true),
        Err(other) => Some(other.to_string()),
    };
    let covered: Vec<BufferId> = facts.covered().collect();
    wrong.or_else(|| wrong_if_poisoned(case, program, &covered, &launch, options, &result, counts))
}

/// What another run gives in which some outputs are not zero at the start, if that is not the same.
fn wrong_if_poisoned(
    case: &Case,
    program: &Program,
    covered: &[BufferId],
    launch: &Launch,
    mut options: Options,
    result: &Result<Vec<Vec<u8>>, RunError>,
    counts: &mut Counts,
) -> Option<String> {
    if covered.is_empty() {
        return None;
    }
    // A buffer that the caller gives the bytes of, instead of one that is zero. The order of outputs is that of bindings.
    let mut text = program.to_string();
    let mut inputs: Vec<(Option<u32>, Vec<u8>)> = program
        .interface()
        .inputs
        .iter()
        .zip(&case.inputs)
        .map(|(n, bytes)| (program.buffers()[*n].binding, bytes.clone()))
        .collect();
    for buffer in covered {
        let declared = &program.buffers()[buffer.index()];
        let head = |access: &str| format!("buffer {}: {access} ", declared.name);
        text = text.replacen(&head("output"), &head("read_write"), 1);
        let elements = u64::from(launch.lengths[buffer.index()]);
        if elements > launch.invocations() {
            counts.add(Claim::CoveredBySeveral);
        } else if elements > u64::from(launch.grid[0]) * u64::from(launch.workgroup_size[0]) {
            counts.add(Claim::CoveredByRows);
        }
        if launch.workgroup_size != program.workgroup_size() {
            counts.add(Claim::CoveredOverridden);
        }
        options.launch.output_counts.remove(declared.name.as_str());
        inputs.push((declared.binding, vec![0xA5; launch.bytes[buffer.index()] as usize]));
    }
    inputs.sort_by_key(|(binding, _)| *binding);
    let inputs: Vec<&[u8]> = inputs.iter().map(|(_, bytes)| &bytes[..]).collect();
    let poisoned = text::parse("poisoned", &text).unwrap_or_else(|report| panic!("{report}"));
    if options.launch.workgroup_override.is_none() {
        options.launch.grid = Some(launch.grid);
    }
    let other = vyre_reference::run(&poisoned, &inputs, &options);
    let same = match (result, &other) {
        (Ok(bytes), Ok(others)) => bytes == others,
        (Err(RunError::Trap { tag, invocation, .. }), Err(RunError::Trap { tag: other, invocation: others, .. })) => {
            (tag, invocation) == (other, others)
        }
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    };
    counts.add(Claim::Poisoned);
    (!same).then(|| {
        format!("{covered:?} are written completely, and with other bytes at the start it gives {other:?}, not {result:?}")
    })
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
    let width = [1, 2, 3, 4, 5, 8, 16, 32, 64][(number % 9) as usize];
    let wrong = wrong_in_run(case, program, schedule(number), width, counts).or_else(|| wrong_proof(case, program, counts));
    if let Some(wrong) = wrong {
        let short = case.inputs.iter().map(Vec::len).sum::<usize>() < 1000;
        let sizes: Vec<usize> = case.inputs.iter().map(Vec::len).collect();
        let inputs = if short { format!("{:?}", case.inputs) } else { format!("of {sizes:?} bytes") };
        panic!("{who}: {wrong}\n{program}\n{:?}\ninputs {inputs}", case.config);
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
        let who = format!("program {} of {}, seed {}", numbered.number, numbered.preset.name(), numbered.seed);
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

/// Holds the facts about so many kernels; gives how many of them were valid, and the counts.
fn hold_kernels(count: u64, make: fn(u64) -> Option<Case>) -> (u64, Vec<AtomicU64>) {
    let totals = Counts::totals();
    let (next, valid) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let Some(case) = make(number) else { continue };
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
    (valid.into_inner(), totals)
}

#[test]
fn what_is_claimed_about_kernels_that_almost_race_holds() {
    let (valid, totals) = hold_kernels(asked(30_000), kernel);
    let proven = totals[Claim::Deterministic as usize].load(Ordering::Relaxed);
    println!("{valid} valid kernels, {proven} launches proven");
    assert!(proven * 10 > valid, "only {proven} of {valid} launches are proven");
}

#[test]
fn what_is_claimed_about_outputs_that_are_almost_covered_holds() {
    let (valid, totals) = hold_kernels(asked(30_000), covering);
    let [poisoned, elements] = [Claim::Poisoned, Claim::Covered].map(|claim| totals[claim as usize].load(Ordering::Relaxed));
    println!("{valid} valid kernels, {poisoned} launches with outputs that are written completely, {elements} elements");
    assert!(poisoned * 10 > valid, "only {poisoned} of {valid} launches write an output completely");
    for claim in [Claim::CoveredBySeveral, Claim::CoveredByRows, Claim::CoveredOverridden] {
        let count = totals[claim as usize].load(Ordering::Relaxed);
        println!("{count:>12} {claim:?}");
        assert!(count * 200 > valid, "{claim:?}: only {count} of {valid}");
    }
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
