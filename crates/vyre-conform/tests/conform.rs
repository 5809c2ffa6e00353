//! Runs of the suite: what they say, when they say nothing, and what does not change it.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::{How, conform, parts, plan, xor};
use vyre_conform::evidence::Verdict;
use vyre_conform::expectations::Judged;
use vyre_conform::ledger::{Ledger, LedgerError, Store, root_of};
use vyre_conform::{Comparator, Digest, FindingKind, OpSpec, Plan, RunError, Selection, Tier};
use vyre_worker::{Answer, Case, Failure};

/// An op of which nobody knows whether it is right.
fn indifferent(agree: fn(&[u8], &[u8]) -> Result<(), String>) -> OpSpec {
    parts("demo.xor", 1000).comparator(Comparator::Custom(Arc::new(agree))).build().expect("a whole spec")
}

/// Gets every case wrong whose first operand is 70,000.
fn wrong(case: &Case, answer: &mut Answer) {
    let Ok(outputs) = &mut answer.outcome else { return };
    for (a, out) in case.inputs[0].chunks_exact(4).zip(outputs[0].chunks_exact_mut(4)) {
        if a == 70_000u32.to_le_bytes() {
            out[0] ^= 1;
        }
    }
}

#[test]
fn a_right_device_holds_whatever_the_number_of_threads() {
    let plan = plan(vec![xor(200_000)]);
    let one = conform(&plan, &How { threads: 1, ..How::default() }).unwrap();
    let three = conform(&plan, &How { threads: 3, ..How::default() }).unwrap();
    assert_eq!((&one.verdict, &three.verdict), (&Verdict::Holds, &Verdict::Holds));
    assert_eq!(one.report.root, three.report.root);
    // 200,000 cases at each of two sizes, in units of 65,536.
    let summary = one.report.summary;
    assert_eq!((summary.tested, summary.passed, summary.failed, one.report.units), (400_000, 400_000, 0, 8));
    assert!(summary.referred * 100 >= summary.tested, "{summary:?}");
    assert!(one.data.info.controls.ran * 50 >= one.report.units && one.data.info.controls.caught == one.data.info.controls.ran);
    assert_eq!(one.report.not_confirmed, []);
}

#[test]
fn one_wrong_case_is_found_and_changes_the_root() {
    let plan = plan(vec![xor(200_000)]);
    let right = conform(&plan, &How::default()).unwrap();
    let found = conform(&plan, &How { change: wrong, ..How::default() }).unwrap();
    assert_eq!((&found.verdict, found.report.summary.failed), (&Verdict::Fails, 2));
    assert_ne!(found.report.root, right.report.root);
    let failure = &found.report.failures[0];
    assert_eq!((failure.input_label.as_str(), failure.kind), ("70000", FindingKind::Mismatch));
    assert_eq!((failure.cpu_output[0] ^ failure.gpu_output[0], failure.input.len()), (1, 8));
}

#[test]
fn shards_together_have_the_root_of_the_whole() {
    let plan = plan(vec![xor(200_000), parts("demo.other", 70_000).build().unwrap()]);
    let whole = conform(&plan, &How::default()).unwrap();
    let mut leaves: BTreeMap<String, BTreeMap<u64, Digest>> = BTreeMap::new();
    let mut tested = 0;
    for shard in 0..5 {
        let state = tempfile::tempdir().unwrap();
        let part = conform(&plan, &How { shard: (shard, 5), state: Some(state.path()), ..How::default() }).unwrap();
        assert_eq!(part.verdict, Verdict::Holds);
        tested += part.report.summary.tested;
        let (ledger, ..) = Ledger::read(state.path()).unwrap();
        let mut add = |section: &str, record: vyre_conform::ledger::UnitRecord| {
            let there = leaves.entry(section.into()).or_default().insert(record.first, record.leaf(section));
            assert_eq!(there, None, "a unit is in one shard");
        };
        ledger.for_each_unit(&mut add).unwrap();
    }
    assert_eq!((root_of(&leaves), tested), (whole.report.root, whole.report.summary.tested));
    // There are 12 units: shard 12 of 13 has none of them, and that is a verdict.
    let empty = conform(&plan, &How { shard: (12, 13), ..How::default() }).unwrap();
    assert_eq!((empty.verdict, empty.report.units), (Verdict::Holds, 0));
    assert!(matches!(conform(&plan, &How { shard: (5, 4), ..How::default() }), Err(RunError::Usage(_))));
}

#[test]
fn a_run_that_could_not_have_failed_has_no_verdict() {
    let rows: [(&str, OpSpec, How<'_>, &str); 4] = [
        ("comparator disabled", indifferent(|_, _| Ok(())), How::default(), "not noticed"),
        (
            "output compared with itself",
            indifferent(|found, _| if found == found { Ok(()) } else { Err(String::new()) }),
            How::default(),
            "not noticed",
        ),
        (
            "everything skipped",
            xor(1000),
            How { change: |_, answer| answer.outcome = Err(Failure::Unsupported("xor".into())), ..How::default() },
            "cannot run any",
        ),
        ("controls removed", xor(1000), How { controls: false, ..How::default() }, "no controls"),
    ];
    for (name, spec, how, why) in rows {
        // Other secrets plant other faults: whatever they are, nothing is said.
        for _ in 0..8 {
            let outcome = conform(&plan(vec![spec.clone()]), &how).unwrap();
            assert!(matches!(&outcome.verdict, Verdict::None(said) if said.contains(why)), "{name}: {:?}", outcome.verdict);
        }
    }
    let nothing = Plan::new(vec![xor(10)], Vec::new(), &Selection::new(["ops.int"]).unwrap(), Tier::Smoke);
    assert!(nothing.is_err_and(|said| said.contains("`ops.int` matches nothing")));
}

#[test]
fn what_a_device_did_not_run_is_a_failure() {
    let other = |_: &Case, answer: &mut Answer| {
        if let Some(ran) = &mut answer.ran {
            ran.workgroup = [64, 1, 1];
        }
    };
    let outcome = conform(&plan(vec![xor(100)]), &How { change: other, ..How::default() }).unwrap();
    assert_eq!((outcome.verdict, outcome.report.summary.failed), (Verdict::Fails, 100));
    assert!(
        outcome.report.failures.iter().all(|failure| failure.workgroup_size == 37 && failure.kind == FindingKind::Configuration)
    );
    let silent = conform(&plan(vec![xor(100)]), &How { change: |_, answer| answer.ran = None, ..How::default() }).unwrap();
    assert_eq!((silent.verdict, silent.report.not_confirmed.len()), (Verdict::Holds, 2));
}

#[test]
fn a_case_that_takes_its_dispatch_with_it_is_found_among_thousands() {
    let crash = |case: &Case, answer: &mut Answer| {
        let has = |n: u32| case.inputs[0].chunks_exact(4).any(|word| word == n.to_le_bytes());
        if has(4321) || has(777) {
            answer.outcome = Err(Failure::Crashed("signal 11".into()));
        }
    };
    let outcome = conform(&plan(vec![xor(10_000)]), &How { change: crash, ..How::default() }).unwrap();
    let summary = outcome.report.summary;
    assert_eq!((summary.tested, summary.passed, summary.failed), (20_000, 19_996, 4));
    let mut labels: Vec<&str> = outcome.report.failures.iter().map(|failure| failure.input_label.as_str()).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["4321", "4321", "777", "777"]);
    assert!(outcome.report.failures.iter().all(|failure| failure.message.contains("signal 11")));
}

/// One case in a hundred takes its process with it, and one in a thousand never ends.
#[test]
fn many_that_crash_and_some_that_hang_are_each_found_by_themselves() {
    let change = |case: &Case, answer: &mut Answer| {
        let words = || case.inputs[0].chunks_exact(4).map(|word| u32::from_le_bytes(*word.first_chunk().unwrap()));
        if words().any(|word| word % 1000 == 13) {
            answer.outcome = Err(Failure::Hung(std::time::Duration::from_secs(60)));
        } else if words().any(|word| word % 100 == 7) {
            answer.outcome = Err(Failure::Crashed("signal 11".into()));
        }
    };
    let spec = parts("demo.xor", 20_000).workgroup_sizes([64]).build().unwrap();
    let outcome = conform(&plan(vec![spec]), &How { change, ..How::default() }).unwrap();
    let summary = outcome.report.summary;
    assert_eq!((summary.tested, summary.passed, summary.failed), (20_000, 20_000 - 220, 220));
    let number = |failure: &vyre_conform::ParityFailure| failure.input_label.parse::<u32>().expect("a number");
    let mut found: Vec<u32> = outcome.report.failures.iter().map(number).collect();
    found.sort_unstable();
    assert_eq!(found, (0..20_000).filter(|n| n % 1000 == 13 || n % 100 == 7).collect::<Vec<u32>>());
    for failure in &outcome.report.failures {
        let said = if number(failure) % 1000 == 13 { "gave no answer" } else { "signal 11" };
        assert!(failure.message.contains(said) && failure.kind == FindingKind::Dispatch, "{failure:?}");
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_and_ends_with_the_same_root() {
    static STOP: AtomicBool = AtomicBool::new(false);
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let plan = plan(vec![xor(1_000_000)]);
    let whole = conform(&plan, &How::default()).unwrap();
    let state = tempfile::tempdir().unwrap();
    let stop = |_: &Case, _: &mut Answer| {
        if SEEN.fetch_add(1, Ordering::Relaxed) == 9 {
            STOP.store(true, Ordering::Relaxed);
        }
    };
    let cut = conform(&plan, &How { change: stop, state: Some(state.path()), stop: &STOP, ..How::default() }).unwrap();
    assert!(matches!(&cut.verdict, Verdict::None(said) if said.contains("the same command resumes it")), "{:?}", cut.verdict);
    assert!(cut.report.units > 0 && cut.report.units < whole.report.units, "{}", cut.report.units);
    // Another version of the backend is another run; what was done stays.
    let other = conform(&plan, &How { state: Some(state.path()), version: Some("2"), ..How::default() });
    let Err(RunError::Ledger(LedgerError::OtherRun { differences, .. })) = other else { panic!("it is another run") };
    assert_eq!(differences, [("version of the backend".to_string(), "1".to_string(), "2".to_string())]);
    let rest = conform(&plan, &How { state: Some(state.path()), ..How::default() }).unwrap();
    assert_eq!((rest.verdict, rest.report.root, rest.report.summary), (Verdict::Holds, whole.report.root, whole.report.summary));
    assert_eq!(rest.data.info.controls.commitment, cut.data.info.controls.commitment);
    // A finished run says nothing about the next one.
    let again = conform(&plan, &How { change: wrong, state: Some(state.path()), ..How::default() }).unwrap();
    assert_eq!(again.verdict, Verdict::Fails);
}

#[test]
fn what_failed_once_comes_first() {
    let state = tempfile::tempdir().unwrap();
    let plan = plan(vec![xor(80_000)]);
    let first = conform(&plan, &How { change: wrong, state: Some(state.path()), ..How::default() }).unwrap();
    assert_eq!((first.report.summary.failed, first.report.summary.regressions), (2, 0));
    let second = conform(&plan, &How { change: wrong, state: Some(state.path()), ..How::default() }).unwrap();
    assert_eq!((second.report.summary.failed, second.report.summary.regressions), (4, 2));
    // Regressions are outside of the tree.
    assert_eq!(first.report.root, second.report.root);
    let mended = conform(&plan, &How { state: Some(state.path()), ..How::default() }).unwrap();
    assert_eq!((mended.verdict, mended.report.summary.regressions, mended.report.summary.failed), (Verdict::Holds, 2, 0));
}

/// The first run writes a bundle, which the second one runs first.
#[test]
fn a_failure_that_is_known_is_an_exception_and_only_as_long_as_it_is_so() {
    const LATER: &str = "2999-12-31";
    let known = |query: &str, expires: &str| {
        format!(r#"[{{"query":"{query}","backend":"changed","reason":"a bit is lost","expires":"{expires}"}}]"#)
    };
    let plan = plan(vec![xor(80_000)]);
    let state = tempfile::tempdir().unwrap();
    let run = |change: fn(&Case, &mut Answer), known: &str| {
        conform(&plan, &How { change, known, state: Some(state.path()), ..How::default() }).unwrap()
    };
    for regressions in [0, 2] {
        let found = run(wrong, &known("demo.xor:counting", LATER));
        assert_eq!((&found.verdict, found.known.known.len()), (&Verdict::WithExceptions, 2), "{:?}", found.known);
        assert_eq!((found.report.summary.regressions, found.data.info.still_failing.len()), (regressions, regressions as usize));
    }
    // One of the two sizes at which it fails is not known; its day has passed; it holds.
    assert_eq!(run(wrong, &known("demo.xor:wg=64", LATER)).verdict, Verdict::Fails);
    assert_eq!(run(wrong, &known("demo.xor", "2020-01-01")).verdict, Verdict::Fails);
    let mended = run(|_, _| {}, &known("demo.xor", LATER));
    assert_eq!((mended.verdict, mended.known.problems.len()), (Verdict::Fails, 2));
    assert_eq!(run(|_, _| {}, "[]").verdict, Verdict::Holds);
    // A file makes no verdict out of none.
    let blind = conform(&plan, &How { change: wrong, known: &known("demo.xor", LATER), controls: false, ..How::default() });
    assert!(matches!(blind.unwrap().verdict, Verdict::None(_)));
}

/// Runs that only a case of an earlier run speaks against are not taken to hold by what reads their ledger.
#[test]
fn what_failed_once_and_fails_still_is_in_the_ledger() {
    let state = tempfile::tempdir().unwrap();
    let run = |cases: u64| conform(&plan(vec![xor(cases)]), &How { change: wrong, state: Some(state.path()), ..How::default() });
    run(80_000).unwrap();
    // The case that fails is not among these.
    let fewer = run(60_000).unwrap();
    assert_eq!((&fewer.verdict, fewer.report.summary.failed), (&Verdict::Fails, 2));
    let data = vyre_conform::evidence::RunData::read(state.path()).unwrap();
    assert_eq!((data.totals().failed, Judged::default().verdict(&data)), (0, Verdict::Fails));
}

#[test]
fn a_second_run_on_one_folder_is_refused_by_name() {
    let state = tempfile::tempdir().unwrap();
    let plan = plan(vec![xor(1000)]);
    conform(&plan, &How { state: Some(state.path()), ..How::default() }).unwrap();
    let held = Ledger::read(state.path()).unwrap();
    let second = conform(&plan, &How { state: Some(state.path()), ..How::default() });
    assert!(matches!(&second, Err(RunError::Ledger(LedgerError::Busy(folder))) if folder == state.path()));
    drop(held);
    assert!(conform(&plan, &How { state: Some(state.path()), ..How::default() }).is_ok());
}

#[test]
fn a_damaged_ledger_is_told_and_not_believed() {
    let state = tempfile::tempdir().unwrap();
    let plan = plan(vec![xor(100_000)]);
    conform(&plan, &How { state: Some(state.path()), ..How::default() }).unwrap();
    let path = state.path().join("run.redb");
    let whole = std::fs::read(&path).unwrap();
    let (reference, ..) = Ledger::read(state.path()).unwrap();
    let mut records = Vec::new();
    reference.for_each_unit(&mut |section, record| records.push((section.to_string(), record))).unwrap();
    drop(reference);
    let mut told = 0;
    for at in (0..whole.len()).step_by(311) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        // Whatever is read is what was written; bytes that nobody looks at may be anything.
        let mut found = Vec::new();
        let read = Ledger::read(state.path())
            .and_then(|(ledger, ..)| ledger.for_each_unit(&mut |section, record| found.push((section.to_string(), record))));
        match read {
            Err(_) => told += 1,
            Ok(()) => assert_eq!(found, records, "byte {at}"),
        }
    }
    assert!(told > 0);
}

#[test]
fn a_device_that_fails_on_everything_is_not_asked_about_every_case() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let broken = |_: &Case, answer: &mut Answer| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        answer.outcome = Err(Failure::Hung(std::time::Duration::from_secs(60)));
    };
    let outcome = conform(&plan(vec![xor(65_536)]), &How { change: broken, ..How::default() }).unwrap();
    assert_eq!((outcome.report.summary.failed, outcome.report.summary.passed), (2 * 65_536, 0));
    // Two sections and perhaps a control, each halved sixteen times until the first case is reached, and fifteen more cases.
    let asked = ASKED.load(Ordering::Relaxed);
    assert!(asked < 600, "{asked} dispatches");
}
