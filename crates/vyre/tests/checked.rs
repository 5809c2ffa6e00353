//! The checked mode on random programs: it gives the bytes of the plain interpreter, and what it says about schedules holds.
//!
//! A failure names the program and prints it. `VYRE_SMITH_PROGRAMS` sets how many are tried.

mod rng;

use rng::Rng;
use std::collections::HashSet;
use std::fmt::Write;
use vyre::analysis::determinism::Proof;
use vyre::ir::Program;
use vyre::launch::plan;
use vyre::reference::checked::{CheckedReport, Effort, Kind, Verdict, check};
use vyre::reference::{Options, RunError, Schedule, run};
use vyre_smith::generate::{Figure, Numbered, Preset};

const SEED: u64 = 22;

/// How often each verdict was seen, so that the test itself can be judged.
#[derive(Default, Debug)]
struct Tally {
    statically_proven: u64,
    clean: u64,
    sampled: u64,
    order_dependent: u64,
    racy: u64,
    /// Programs that were meant to be.
    of_racy: u64,
    shown: u64,
}

fn one_program(numbered: &Numbered, tally: &mut Tally) {
    let case = numbered.case();
    let seed = format!("program {} of {}, seed {}", numbered.number, numbered.preset.name(), numbered.seed);
    let values = case.config.specialization.iter();
    let program = vyre::specialize(&case.program, values).expect("its values fit");
    let inputs = case.input_slices();
    let options = Options { launch: case.config.launch(), fuel: case.fuel, ..Options::default() };
    let plain = |schedule: &Schedule| {
        let result = run(&program, &inputs, &Options { schedule: schedule.clone(), ..options.clone() });
        assert!(!matches!(result, Err(RunError::Rejected(_) | RunError::OutOfFuel { .. })), "{seed}: {result:?}\n{program}");
        result
    };
    let effort = Effort { executions: 200, ..Effort::default() };
    let report = check(&program, &inputs, &options, &effort).unwrap_or_else(|error| panic!("{seed}: {error}\n{program}"));
    let said = |report: &CheckedReport| match report.report(&program) {
        Some(drawn) => format!("{} ({:?})\n{drawn}", report.verdict, report.gap),
        None => format!("{} ({:?})\n{program}", report.verdict, report.gap),
    };
    assert!(report.outcome == plain(&Schedule::Forward), "{seed}: other bytes than the plain interpreter\n{program}");

    let sizes: Vec<u64> = case.inputs.iter().map(|bytes| bytes.len() as u64).collect();
    let planned = plan(&program, &sizes, &case.config.launch()).expect("it ran");
    if program.proof_for(&planned, &inputs).expect("it is valid") == Proof::Holds {
        tally.statically_proven += 1;
        assert!(report.holds() && report.exhaustive(), "{seed}: proven deterministic, but {}", said(&report));
    }
    let pairs = report.findings.iter().filter(|finding| matches!(finding.kind, Kind::Race | Kind::Order));
    assert_eq!(pairs.count() > 0, !report.holds(), "{seed}: {}", said(&report));
    for finding in &report.findings {
        let other = finding.other.as_ref();
        assert!(other.is_none_or(|other| other.invocation != finding.access.invocation), "{seed}: {}", said(&report));
    }

    let adversarial = Schedule::adversarial();
    match report.verdict {
        Verdict::Deterministic if report.exhaustive() => {
            tally.clean += 1;
            for schedule in &adversarial {
                assert!(plain(schedule) == report.outcome, "{seed}: {schedule} gives other bytes\n{}", said(&report));
            }
        }
        Verdict::Deterministic => tally.sampled += 1,
        Verdict::OrderDependent => {
            tally.order_dependent += 1;
            assert!(report.difference.is_some(), "{seed}: {}", said(&report));
            if let Some(legal) = &report.legal_outcomes {
                for schedule in &adversarial {
                    assert!(legal.contains(&plain(schedule)), "{seed}: {schedule} is not legal\n{}", said(&report));
                }
            }
        }
        Verdict::Racy => tally.racy += 1,
    }
    tally.of_racy += u64::from(numbered.preset == Preset::Racy);
    if let Some(difference) = &report.difference {
        tally.shown += 1;
        let again = plain(&difference.schedule);
        assert!(again != report.outcome, "{seed}: {} shows no difference\n{}", difference.schedule, said(&report));
    }
}

#[test]
fn random_programs_are_judged_as_their_schedules_show() {
    let figure = Figure::asked(SEED, 6_000).and_undetermined();
    let count = figure.programs();
    let totals: Vec<Tally> = figure.count(one_program);
    println!("{totals:#?}");
    let sum = |of: fn(&Tally) -> u64| totals.iter().map(of).sum::<u64>();
    // A generator that makes nothing of interest would make this test pass on any checked mode.
    assert!(sum(|t| t.statically_proven) * 20 > count, "too few programs are proven deterministic");
    assert!(sum(|t| t.clean) > sum(|t| t.statically_proven), "nothing but what is proven statically is clean");
    assert!(sum(|t| t.racy) * 5 > sum(|t| t.of_racy), "too few programs are racy");
    for (seen, what) in [
        (sum(|t| t.order_dependent), "depends on the order"),
        (sum(|t| t.sampled), "is too large or too relaxed to be known in all orders"),
        (sum(|t| t.shown), "shows a difference"),
    ] {
        assert!(seen > 0 || count < 1000, "no program {what}");
    }
}

fn pick<'a, T>(rng: &mut Rng, items: &'a [T]) -> &'a T {
    &items[rng.below(items.len())]
}

/// A program whose invocations do nothing but atomics: `count` statements of them, some with results that decide what comes next.
fn atomics(rng: &mut Rng, workgroup: usize, count: usize) -> Program {
    let mut body = String::new();
    for n in 0..count {
        let buffer = *pick(rng, &["near", "far"]);
        let index = *pick(rng, &["0", "0", "0", "1", "gid.x % 2", "sum % 2"]);
        let value = *pick(rng, &["1", "2", "gid.x + 1", "sum"]);
        let operation = match rng.below(9) {
            0 => format!("load({buffer}, {index})"),
            1 => format!("store({buffer}, {index}, {value})"),
            2 => format!("exchange({buffer}, {index}, {value})"),
            3 => format!("compare_exchange({buffer}, {index}, {}, {value})", rng.below(2)),
            _ => format!("{}({buffer}, {index}, {value})", pick(rng, &["add", "sub", "min", "max", "and", "or", "xor"])),
        };
        let with_result = !operation.starts_with("store") && rng.below(2) == 0;
        let statement = match with_result {
            true => format!("let r{n} = atomic.{operation}\n  sum = sum * 3 + r{n}"),
            false => format!("atomic.{operation}"),
        };
        match rng.below(6) {
            0 => drop(writeln!(body, "  if gid.x != {} {{\n  {statement}\n  }}", rng.below(3))),
            1 => drop(writeln!(body, "  if sum % 2 == 0 {{\n  {statement}\n  }}")),
            2 => drop(writeln!(body, "  {}\n  {statement}", pick(rng, &["barrier", "barrier", "barrier.grid"]))),
            _ => drop(writeln!(body, "  {statement}")),
        }
    }
    let text = format!(
        "program atomics {{\n  workgroup {workgroup}\n  buffer far: output u32[2] @0\n  buffer out: output u32[3] @1\n  \
         buffer near: workgroup u32[2]\n\n  let sum = 0\n{body}  out[gid.x] = sum\n}}\n"
    );
    vyre::text::parse("atomics", &text).unwrap_or_else(|report| panic!("{report}"))
}

/// The search finds exactly what running every list of choices finds.
#[test]
fn all_legal_outcomes_are_those_of_all_orders() {
    let (mut several, mut one, mut relaxed) = (0, 0, 0);
    for seed in 0..800 {
        let mut rng = Rng(seed);
        // Workgroup, grid, atomics of each invocation.
        let (workgroup, grid, count) = *pick(&mut rng, &[(2, 1, 4), (1, 2, 4), (3, 1, 2), (1, 3, 2)]);
        let program = atomics(&mut rng, workgroup, count);
        let mut options = Options::default();
        options.launch.grid = Some([grid, 1, 1]);
        let report = check(&program, &[], &options, &Effort::default()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let invocations = workgroup * grid as usize;
        let length = invocations * count;
        let mut outcomes = HashSet::new();
        for number in 0..invocations.pow(length as u32) {
            let list = (0..length as u32).map(|n| (number / invocations.pow(n) % invocations) as u32).collect();
            options.schedule = Schedule::Atomics(list);
            outcomes.insert(run(&program, &[], &options).expect("it does not trap"));
        }
        let said = format!("seed {seed}: {} ({:?}), all orders give {outcomes:?}\n{program}", report.verdict, report.gap);
        let expected = if outcomes.len() > 1 { Verdict::OrderDependent } else { Verdict::Deterministic };
        assert_eq!(report.verdict, expected, "{said}");
        match &report.legal_outcomes {
            None => relaxed += 1,
            Some(legal) => {
                let legal: Vec<_> = legal.iter().map(|outcome| outcome.clone().expect("it does not trap")).collect();
                assert!(legal.len() == outcomes.len() && legal.iter().all(|legal| outcomes.contains(legal)), "{said}\n{legal:?}");
                if legal.len() > 1 { several += 1 } else { one += 1 }
            }
        }
    }
    println!("{several} with several outcomes, {one} with one, {relaxed} not known");
    assert!(several > 0 && one > 0 && relaxed > 0);
}
