//! The sixteen faults of the suite that this one replaces, each as a test that a runner with the fault does not pass.
//!
//! Most of these promises are kept by more tests elsewhere; here they stand together, in the order of the list of faults.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::{Counting, How, NEVER, conform, parts, plan, xor};
use vyre::ir::{BinaryOp, BufferDecl, DataType, Expr, Item, Node, Program};
use vyre::{DispatchConfig, VyreBackend};
use vyre_conform::cert::{CertError, Certificate, SecretKey};
use vyre_conform::conform::Conformed;
use vyre_conform::evidence::{RunData, Verdict};
use vyre_conform::expectations::Judged;
use vyre_conform::ledger::{Ledger, LedgerError, Store};
use vyre_conform::swap::every_assignment;
use vyre_conform::{Digest, FindingKind, OpSpec, Plan, ProgramCases, RunError, Selection, Tier, mutants, suite, teeth};
use vyre_driver::backend::registry::acquire;
use vyre_smith::generate::Preset;
use vyre_worker::{Answer, Case, Failure, Sequence, SequenceStep, Side};

/// Flips a bit of the first output for the cases whose first operand is this.
fn flip(case: &Case, answer: &mut Answer, operand: u32) {
    let Ok(outputs) = &mut answer.outcome else { return };
    for (a, out) in case.inputs[0].chunks_exact(4).zip(outputs[0].chunks_exact_mut(4)) {
        if a == operand.to_le_bytes() {
            out[0] ^= 1;
        }
    }
}

/// Leaves by section and first case.
fn leaves(state: &std::path::Path) -> BTreeMap<(String, u64), Digest> {
    let (ledger, ..) = Ledger::read(state).expect("a run");
    let mut leaves = BTreeMap::new();
    ledger
        .for_each_unit(&mut |section, record| {
            leaves.insert((section.to_string(), record.first), record.leaf(section));
        })
        .expect("it is whole");
    leaves
}

fn in_state(plan: &Plan, state: &std::path::Path, change: fn(&Case, &mut Answer)) -> Conformed {
    conform(plan, &How { change, state: Some(state), ..How::default() }).expect("a run")
}

/// Every dispatch of the sweep was the same one, and counted once for each size.
#[test]
fn d01_each_workgroup_size_runs_and_what_ran_is_checked() {
    let at_37 = |case: &Case, answer: &mut Answer| {
        if case.program.workgroup_size()[0] == 37 {
            flip(case, answer, 5);
        }
    };
    let found = conform(&plan(vec![xor(100)]), &How { change: at_37, ..How::default() }).unwrap();
    assert_eq!((&found.verdict, found.report.summary.failed), (&Verdict::Fails, 1));
    assert_eq!(found.report.failures[0].workgroup_size, 37);
    // A device that runs another size than it was asked to, and is right about every byte.
    let other = |_: &Case, answer: &mut Answer| {
        if let Some(ran) = &mut answer.ran {
            ran.workgroup = [64, 1, 1];
        }
    };
    let found = conform(&plan(vec![xor(100)]), &How { change: other, ..How::default() }).unwrap();
    assert_eq!(found.report.summary.failed, 100);
    assert!(found.report.failures.iter().all(|failure| failure.kind == FindingKind::Configuration));
}

/// The swap harness made one dispatch, so that nothing ever went from one backend to the other.
#[test]
fn d02_state_really_goes_from_backend_to_backend() {
    let source = "program advance {\n  workgroup 4\n  buffer state: read_write u32 @0\n  buffer step: read u32 @1\n  state[gid.x] = state[gid.x] * 3 + step[gid.x]\n}\n";
    let program = vyre::text::parse("advance", source).expect("it parses");
    let step = SequenceStep { program, config: DispatchConfig::default(), buffers: vec![0, 1] };
    let sequence = Sequence { buffers: vec![vec![1; 16], vec![2; 16]], steps: vec![step; 4], fuel: 1 << 20 };
    let open = |id: &str| -> Box<dyn VyreBackend> { acquire(id).expect("it is registered") };
    let (bulk, reference) = (open("bulk"), open("reference"));
    let report = every_assignment(&[&*bulk, &*reference], &sequence).expect("it can be asked");
    assert_eq!((report.compared, report.holds()), (16, true));
    // All but two of the assignments hand the state over at least once after the first step.
    assert!(report.hand_overs > 14 + 2 * 16, "{report:?}");
}

/// "Streaming" collected all cases before the first ran.
#[test]
fn d03_cases_are_made_when_they_are_run() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    let stop = |case: &Case, _: &mut Answer| {
        MADE.fetch_add(case.inputs[0].len() / 4, Ordering::Relaxed);
        STOP.store(true, Ordering::Relaxed);
    };
    // So many that nobody could hold them; the run is told to stop with the first answer.
    let plan = plan(vec![xor(1 << 40)]);
    assert_eq!(plan.units(), 2 << 24);
    let cut = conform(&plan, &How { change: stop, stop: &STOP, ..How::default() }).unwrap();
    assert!(matches!(cut.verdict, Verdict::None(_)));
    let made = MADE.load(Ordering::Relaxed);
    assert!(made > 0 && made < 64 << 16, "{made} cases were made");
}

/// Cases were known by a running number: another op, or a regression, shifted all of them, and a resumed run skipped what had never run.
#[test]
fn d04_another_op_or_a_regression_renumbers_nothing() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let states: [tempfile::TempDir; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let [alone, both, resumed] = &states;
    let one = || plan(vec![xor(80_000)]);
    let two = plan(vec![parts("demo.and", 70_000).build().unwrap(), xor(80_000)]);
    in_state(&one(), alone.path(), |_, _| {});
    in_state(&two, both.path(), |_, _| {});
    let (alone, both) = (leaves(alone.path()), leaves(both.path()));
    assert!(both.len() > alone.len() && alone.iter().all(|(unit, leaf)| both.get(unit) == Some(leaf)));
    // A failure that is kept, a run that is cut off behind it, and one that goes on with the bundle there: the same leaves.
    let wrong = |case: &Case, answer: &mut Answer| flip(case, answer, 7);
    in_state(&one(), resumed.path(), wrong);
    let stop = |_: &Case, _: &mut Answer| STOP.store(true, Ordering::Relaxed);
    let how = || How { state: Some(resumed.path()), threads: 1, ..How::default() };
    conform(&one(), &How { change: stop, stop: &STOP, ..how() }).unwrap();
    // In another suite it is another run.
    let other = conform(&two, &how());
    assert!(matches!(other, Err(RunError::Ledger(LedgerError::OtherRun { .. }))));
    let last = conform(&one(), &how()).unwrap();
    assert_eq!((last.verdict, last.report.summary.regressions), (Verdict::Holds, 2));
    assert_eq!(leaves(resumed.path()), alone);
}

/// Checkpoints were written only when the number of cases was a multiple of 1024, and write errors were ignored.
#[test]
fn d05_whatever_is_done_is_committed_and_a_write_that_fails_is_told() {
    static STOP: AtomicBool = AtomicBool::new(false);
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let state = tempfile::tempdir().unwrap();
    let stop = |_: &Case, _: &mut Answer| {
        if SEEN.fetch_add(1, Ordering::Relaxed) == 12 {
            STOP.store(true, Ordering::Relaxed);
        }
    };
    // Sections of 1001 cases each.
    let ops = || plan((0..20).map(|n| parts(&format!("demo.op{n}"), 1001).build().unwrap()).collect());
    let cut = conform(&ops(), &How { change: stop, stop: &STOP, threads: 1, state: Some(state.path()), ..How::default() });
    let done = cut.unwrap().report.units;
    assert!((3..40).contains(&done), "{done} units");
    assert_eq!(leaves(state.path()).len() as u64, done);
    let file = state.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let refused = conform(&ops(), &How { state: Some(&file.join("below")), ..How::default() });
    assert!(matches!(refused, Err(RunError::Ledger(LedgerError::Io(..)))));
}

/// Counters and failures were not in the checkpoint: a resumed run reported its second half.
#[test]
fn d06_a_resumed_run_reports_all_of_it() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let wrong = |case: &Case, answer: &mut Answer| flip(case, answer, 5);
    let wrong_and_stop = |case: &Case, answer: &mut Answer| {
        flip(case, answer, 5);
        STOP.store(true, Ordering::Relaxed);
    };
    let plan = plan(vec![xor(300_000)]);
    let (whole, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = in_state(&plan, whole.path(), wrong);
    let how = || How { state: Some(state.path()), threads: 1, ..How::default() };
    // The first unit has the case that fails.
    let cut = conform(&plan, &How { change: wrong_and_stop, stop: &STOP, ..how() }).unwrap();
    assert!(matches!(cut.verdict, Verdict::None(_)) && cut.report.summary.failed == 1, "{:?}", cut.report.summary);
    let rest = conform(&plan, &How { change: wrong, ..how() }).unwrap();
    let (ours, all) = (rest.report.summary, whole.report.summary);
    // The bundle of the first half is a regression of the second.
    assert_eq!((ours.tested - ours.regressions, ours.failed - ours.regressions), (all.tested, all.failed));
    assert_eq!(rest.report.root, whole.report.root);
    let labels = |report: &Conformed| -> BTreeSet<String> {
        let of_units = report.report.failures.iter().filter(|failure| !failure.unit.is_empty());
        of_units.map(|failure| format!("{} {}", failure.unit, failure.input_label)).collect()
    };
    assert_eq!(labels(&rest), labels(&whole));
}

/// Regressions were numbered from 0 in each process, so that each run overwrote the last one's, and were never run again.
#[test]
fn d07_regressions_are_never_overwritten_and_run_again() {
    let state = tempfile::tempdir().unwrap();
    let plan = plan(vec![xor(1000)]);
    let bundles = || -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(state.path().join("regressions")).unwrap();
        entries
            .map(|it| it.unwrap())
            .map(|it| (it.file_name().into_string().unwrap(), std::fs::read(it.path()).unwrap()))
            .collect()
    };
    in_state(&plan, state.path(), |case, answer| flip(case, answer, 5));
    let first = bundles();
    in_state(&plan, state.path(), |case, answer| flip(case, answer, 6));
    let second = bundles();
    assert_eq!((first.len(), second.len()), (2, 4));
    assert!(first.iter().all(|(name, bytes)| second.get(name) == Some(bytes)));
    // The op has a dot in its name. All four run, though nothing is wrong any more.
    let third = in_state(&plan, state.path(), |_, _| {});
    assert_eq!((third.verdict, third.report.summary.regressions), (Verdict::Holds, 4));
    // A bundle holds the case itself: it fails though no unit of this run has it.
    let fewer = in_state(&support::plan(vec![xor(4)]), state.path(), |case, answer| flip(case, answer, 6));
    assert_eq!((fewer.verdict, fewer.report.summary.failed), (Verdict::Fails, 2));
}

/// Paths were those of the checkout that the suite was compiled in.
#[test]
fn d08_state_is_where_it_was_asked_for_and_nowhere_else() {
    let names = |folder: &std::path::Path| -> BTreeSet<String> {
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    };
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let before = (names(here), names(&std::env::current_dir().unwrap()));
    let state = tempfile::tempdir().unwrap();
    let plan = plan(vec![xor(1000)]);
    let wrong = |case: &Case, answer: &mut Answer| flip(case, answer, 5);
    in_state(&plan, &state.path().join("a/b"), wrong);
    conform(&plan, &How { change: wrong, ..How::default() }).unwrap();
    assert_eq!((names(here), names(&std::env::current_dir().unwrap())), before);
    assert_eq!(names(&state.path().join("a/b")), BTreeSet::from(["regressions".to_string(), "run.redb".to_string()]));
}

/// The second dispatch repeated the first one, and if they differed, the first was filed as the reference's.
#[test]
fn d09_the_second_dispatch_is_another_one_and_the_reference_stays_the_reference() {
    // Wrong at one place of the buffer, the same in every dispatch: what moves the cases shows it.
    let at_5 = |_: &Case, answer: &mut Answer| {
        if let Ok(outputs) = &mut answer.outcome
            && let Some(byte) = outputs[0].get_mut(20)
        {
            *byte ^= 1;
        }
    };
    let found = conform(&plan(vec![xor(100)]), &How { change: at_5, ..How::default() }).unwrap();
    let kinds: BTreeSet<FindingKind> = found.report.failures.iter().map(|failure| failure.kind).collect();
    assert_eq!(kinds, BTreeSet::from([FindingKind::Nondeterministic]));
    for failure in &found.report.failures {
        let n = u32::from_le_bytes(*failure.input.first_chunk().unwrap());
        assert_eq!(failure.cpu_output, (n ^ 7).to_le_bytes(), "{failure:?}");
        assert_ne!(failure.gpu_output, failure.cpu_output);
        assert!(failure.message.contains("the order of cases"), "{}", failure.message);
    }
}

/// Only the first output was compared; writes elsewhere were not looked for.
#[test]
fn d10_every_output_counts_and_so_does_what_is_around_them() {
    let program = |workgroup: [u32; 3]| {
        let i = Expr::gid_x;
        Program::wrapped(
            vec![
                BufferDecl::read("a", 0, DataType::U32),
                BufferDecl::read("b", 1, DataType::U32),
                BufferDecl::output("same", 2, DataType::U32),
                BufferDecl::output("both", 3, DataType::U32),
            ],
            workgroup,
            vec![
                Node::store("same", i(), Expr::load("a", i())),
                Node::store("both", i(), Expr::bitxor(Expr::load("a", i()), Expr::load("b", i()))),
            ],
        )
    };
    let two = || {
        OpSpec::builder("demo.two")
            .signature([DataType::U32, DataType::U32], [DataType::U32, DataType::U32])
            .cpu_fn(|case| case[..4].iter().copied().chain(case[..4].iter().zip(&case[4..]).map(|(a, b)| a ^ b)).collect())
            .program(program)
            .workgroup_sizes([64])
            .space(Counting(100))
            .build()
            .expect("a whole spec")
    };
    let second = |_: &Case, answer: &mut Answer| {
        if let Ok(outputs) = &mut answer.outcome {
            outputs[1].iter_mut().step_by(4).for_each(|byte| *byte ^= 0x80);
        }
    };
    let right = conform(&plan(vec![two()]), &How::default()).unwrap();
    let wrong = conform(&plan(vec![two()]), &How { change: second, ..How::default() }).unwrap();
    assert_eq!((right.verdict, wrong.verdict, wrong.report.summary.failed), (Verdict::Holds, Verdict::Fails, 100));
    // What a worker says about the memory around its buffers and its inputs is a failure of the case, with right bytes too.
    let wild = |case: &Case, answer: &mut Answer| {
        if case.inputs[0].chunks_exact(4).any(|word| word == 42u32.to_le_bytes()) {
            answer.outcome = Err(Failure::WildWrite { buffer: "input 0".into(), side: Side::Inside, offset: 2 });
        }
    };
    let found = conform(&plan(vec![two()]), &How { change: wild, ..How::default() }).unwrap();
    assert_eq!((found.report.summary.failed, found.report.failures[0].input_label.as_str()), (1, "42"));
}

/// A hang or a panic ended everything, and failures were collected without end.
#[test]
fn d11_a_bad_case_costs_itself_and_failures_are_counted_but_not_hoarded() {
    let spec = parts("demo.xor", 1000)
        .cpu_fn(|case| {
            let a = u32::from_le_bytes(*case.first_chunk().unwrap());
            assert_ne!(a, 7);
            case[..4].iter().zip(&case[4..]).map(|(a, b)| a ^ b).collect()
        })
        .build()
        .unwrap();
    // The judge panics on 7, the device hangs on 500 and crashes on 600.
    let change = |case: &Case, answer: &mut Answer| {
        let has = |n: u32| case.inputs[0].chunks_exact(4).any(|word| word == n.to_le_bytes());
        if has(500) {
            answer.outcome = Err(Failure::Hung(std::time::Duration::from_secs(1)));
        } else if has(600) {
            answer.outcome = Err(Failure::Crashed("signal 11".into()));
        }
    };
    let found = conform(&plan(vec![spec]), &How { change, ..How::default() }).unwrap();
    assert_eq!((found.report.summary.passed, found.report.summary.failed), (2 * 997, 2 * 3));
    let labels: BTreeSet<&str> = found.report.failures.iter().map(|failure| failure.input_label.as_str()).collect();
    assert_eq!(labels, BTreeSet::from(["7", "500", "600"]));
    let all = |_: &Case, answer: &mut Answer| {
        if let Ok(outputs) = &mut answer.outcome {
            outputs[0].iter_mut().step_by(4).for_each(|byte| *byte ^= 0x80);
        }
    };
    let found = conform(&plan(vec![xor(65_536)]), &How { change: all, ..How::default() }).unwrap();
    assert_eq!(found.report.summary.failed, 2 * 65_536);
    assert!(found.report.failures.len() <= 256, "{}", found.report.failures.len());
}

/// The seed was a hash of the op's name: every run tried the same cases for ever.
#[test]
fn d12_another_seed_is_other_cases_and_the_same_seed_the_same() {
    let specs: Vec<OpSpec> = suite::all().into_iter().filter(|spec| spec.id() == "ops.int.add:u32").collect();
    let selection = Selection::new(["*:wg=64:sampled", "!*:alt=*"]).unwrap();
    let plan = Plan::new(specs, Vec::new(), &selection, Tier::Smoke).unwrap();
    let root = |seed: u64| {
        let conformed = conform(&plan, &How { seed, ..How::default() }).unwrap();
        assert_eq!(conformed.verdict, Verdict::Holds);
        conformed.report.root
    };
    assert!(root(1) == root(1) && root(1) != root(2));
}

/// Each case was a dispatch of its own, twice.
#[test]
fn d13_thousands_of_cases_go_to_a_dispatch() {
    static DISPATCHES: AtomicUsize = AtomicUsize::new(0);
    let count = |_: &Case, _: &mut Answer| {
        DISPATCHES.fetch_add(1, Ordering::Relaxed);
    };
    let outcome = conform(&plan(vec![xor(131_072)]), &How { change: count, controls: false, ..How::default() }).unwrap();
    assert_eq!(outcome.report.summary.tested, 262_144);
    // Four units, each twice.
    assert_eq!(DISPATCHES.load(Ordering::Relaxed), 8);
}

/// The key was made for the occasion and stood in the certificate, so that the signature said nothing.
#[test]
fn d14_a_certificate_holds_under_the_readers_key_and_no_other() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(in_state(&plan(vec![xor(1000)]), state.path(), |_, _| {}).verdict, Verdict::Holds);
    let run = RunData::read(state.path()).unwrap();
    let certificate = Certificate::of(&run, &Judged::default(), None).expect("it holds");
    let (mine, forger) = (SecretKey::from_seed([1; 32]), SecretKey::generate().expect("a key"));
    assert_eq!(Certificate::verify(certificate.sign(&mine).as_bytes(), &mine.public()), Ok(certificate.clone()));
    let forged = certificate.sign(&forger);
    let is_rejected =
        |file: &str| matches!(Certificate::verify(file.as_bytes(), &mine.public()), Err(CertError::Rejected { .. }));
    assert!(is_rejected(&forged));
    // Nor does it help to write the reader's key into it.
    assert!(is_rejected(&forged.replace(&forger.public().id().to_string(), &mine.public().id().to_string())));
}

fn has_xor(program: &Program) -> bool {
    program.walk().any(|(item, _)| matches!(item, Item::Expr(Expr::Binary { op: BinaryOp::BitXor, .. })))
}

/// What was called a minimizer searched one number by halving: no program was ever made smaller.
#[test]
fn d15_a_program_that_fails_is_made_small() {
    let change = |case: &Case, answer: &mut Answer| {
        if let Ok(outputs) = &mut answer.outcome
            && has_xor(&case.program)
            && let Some(byte) = outputs.iter_mut().find_map(|output| output.first_mut())
        {
            *byte ^= 1;
        }
    };
    let cases = Arc::new(ProgramCases::new(Preset::Ints));
    let plan = Plan::new(Vec::new(), vec![cases], &Selection::default(), Tier::Smoke).unwrap();
    let state = tempfile::tempdir().unwrap();
    let found = in_state(&plan, state.path(), change);
    assert_eq!(found.verdict, Verdict::Fails);
    let run = RunData::read(state.path()).unwrap();
    let reduced = run.sections[0].reduced.as_ref().expect("a reduced program");
    assert!(reduced.from_nodes > 2 * reduced.nodes && reduced.nodes <= 10, "{reduced:?}");
    let program = vyre::text::parse("reduced", &reduced.program).expect("it is a program");
    assert!(has_xor(&program), "{}", reduced.program);
    assert!(reduced.diff().first == Some(0) && reduced.lane().is_some_and(|lane| lane.number == 0), "{reduced:?}");
    assert!(reduced.again.as_ref().is_some_and(|again| again.contains("--replay")));
}

/// Mutants were edits of the source, compiled one after the other.
#[test]
fn d16_hundreds_of_mutants_are_there_at_run_time() {
    let all = mutants::all();
    assert!(all.len() >= 500, "{}", all.len());
    let specs: Vec<OpSpec> = suite::all().into_iter().filter(|spec| spec.id() == "ops.int.add:u32").collect();
    let plan = Plan::new(specs, Vec::new(), &Selection::new(["*:wg=64"]).unwrap(), Tier::Smoke).unwrap();
    let of_add: Vec<_> =
        all.iter().filter(|mutant| mutant.name.starts_with("operator/add.u32-")).take(3).map(teeth::Faulty::from).collect();
    assert!(!of_add.is_empty());
    let bites = teeth::measure(&plan, &of_add, 0, 2, &NEVER, &|_| ());
    assert_eq!(bites.iter().filter(|bite| bite.killed_by.is_some()).count(), of_add.len());
}

/// A unit that fails on the device without the fault too, for want of time or anything else, has found nothing out.
#[test]
fn what_fails_without_the_fault_too_is_no_kill() {
    let specs: Vec<OpSpec> = suite::all().into_iter().filter(|spec| spec.id() == "ops.int.add:u32").collect();
    let plan = Plan::new(specs, Vec::new(), &Selection::new(["*:wg=64"]).unwrap(), Tier::Smoke).unwrap();
    let mutant = mutants::all().iter().find(|mutant| mutant.name.starts_with("operator/add.u32-")).expect("add has mutants");
    let wrong = || Ok(mutant.subject());
    let same = teeth::Faulty::new("operator", "same", wrong, wrong, |_| true);
    let found = teeth::Faulty::new("operator", "found", wrong, || Ok(vyre_smith::subjects::subject("bulk").unwrap()), |_| true);
    let bites = teeth::measure(&plan, &[same, found], 0, 1, &NEVER, &|_| ());
    assert_eq!(bites.iter().map(|bite| bite.killed_by.is_some()).collect::<Vec<_>>(), [false, true]);
}
